"""What cases were measured with: what they were built from, what they ran with, and where."""

from __future__ import annotations

import re
import shlex

from assay.results.cases import Case, Report, last_cases, title

#: Name and value of each.
Facts = tuple[tuple[str, str], ...]


def facts_by_case(report: Report, pattern: str) -> dict[str, Facts]:
    """What each case that ran was built from; those only whose name the pattern is found in."""
    return {
        title(case): facts(case)
        for case in last_cases(report)
        if re.search(pattern, title(case)) and case.get('built_by')
    }


def where_by_case(report: Report) -> dict[str, str]:
    """The job and the nodes of each case."""
    from reframe.utility import nodelist_abbrev

    return {
        title(case): f'job {case["jobid"]} on {nodelist_abbrev(case.get("job_nodelist") or [])}'
        for case in last_cases(report)
        if case.get('jobid')
    }


def facts(case: Case) -> Facts:
    """What a case was built from, and what it ran with; empty of one that never ran."""
    found = {
        name.removeprefix('built_'): value
        for name, value in sorted(case.items())
        if name.startswith(('built_', 'ran_')) or name == 'suite_commit'
    }
    # A variable is a fact of its own.
    for setting in shlex.split(found.pop('ran_variables', '')):
        name, _, value = setting.partition('=')
        found[name] = value
    return tuple(found.items())


def differences(then: Facts, now: Facts) -> Facts:
    """The facts that changed, as lines of text."""
    before, after = dict(then), dict(now)
    return tuple(
        (name, f'{before.get(name) or "-"} -> {after.get(name) or "-"}')
        for name in sorted(before | after)
        if before.get(name) != after.get(name)
    )
