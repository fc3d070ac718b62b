"""The command ``provenance``: what figures were measured with, and what changed since.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay import AssayError
from assay.running import runs
from assay.text import plain

if TYPE_CHECKING:
    from assay.results.cases import Case, Report

Facts = tuple[tuple[str, str], ...]


def provenance(
    check: Annotated[
        str, typer.Argument(metavar='CHECK', help='Which cases: a regular expression.')
    ] = '',
    report: Annotated[
        Path | None, typer.Option(metavar='FILE', help='A report of a run; the newest if none.')
    ] = None,
    against: Annotated[
        Path | None, typer.Option(metavar='FILE', help='An earlier one: print what differs.')
    ] = None,
) -> None:
    """Print what was measured: what it was built from, and what it ran with and where.

    Job and nodes stand beside the case; they are not compared.

    Examples:

    \b
      assay provenance Ring
      assay provenance 'MiniFE.*mpich' --against old-report.json
    """
    from assay.results.cases import read_report

    path = report or runs.newest_report()
    run = read_report(path)
    now, where = facts_by_case(run, check), where_by_case(run)
    if not now:
        raise AssayError(f'no case that ran matches {check!r} in {path}.')
    if against is None:
        _show(now, where)
        return
    then = facts_by_case(read_report(against), check)
    if not (both := [case for case in now if case in then]):
        raise AssayError(f'{against} has no case that matches {check!r} and ran in both.')
    changed = {case: differences(then[case], now[case]) for case in both}
    _show({case: lines for case, lines in changed.items() if lines}, where)
    print(f'{sum(map(bool, changed.values()))} of {len(both)} cases were built or ran otherwise')


def facts_by_case(report: Report, pattern: str) -> dict[str, Facts]:
    """What each case that ran was built from; those only whose name the pattern is found in."""
    from assay.results.cases import last_cases, title

    return {
        title(case): _facts(case)
        for case in last_cases(report)
        if re.search(pattern, title(case)) and case.get('built_by')
    }


def where_by_case(report: Report) -> dict[str, str]:
    """The job and the nodes of each case."""
    from reframe.utility import nodelist_abbrev

    from assay.results.cases import last_cases, title

    return {
        title(case): f'job {case["jobid"]} on {nodelist_abbrev(case.get("job_nodelist") or [])}'
        for case in last_cases(report)
        if case.get('jobid')
    }


def _facts(case: Case) -> Facts:
    facts = {
        name.removeprefix('built_'): value
        for name, value in sorted(case.items())
        if name.startswith(('built_', 'ran_')) or name == 'suite_commit'
    }
    # A variable is a fact of its own.
    for setting in shlex.split(facts.pop('ran_variables', '')):
        name, _, value = setting.partition('=')
        facts[name] = value
    return tuple(facts.items())


def differences(then: Facts, now: Facts) -> Facts:
    """The facts that changed, as lines of text."""
    before, after = dict(then), dict(now)
    return tuple(
        (name, f'{before.get(name) or "-"} -> {after.get(name) or "-"}')
        for name in sorted(before | after)
        if before.get(name) != after.get(name)
    )


def _show(facts: Mapping[str, Facts], where: Mapping[str, str]) -> None:
    """The cases that share their facts, each with where it ran, and those."""
    cases: dict[Facts, list[str]] = {}
    for case, lines in facts.items():
        cases.setdefault(lines, []).append(f'{case}  {where.get(case, "")}'.rstrip())
    for lines, names in cases.items():
        print(*names, sep='\n')
        width = max(len(name) for name, _ in lines)
        for name, value in lines:
            print(f'    {name:{width}} {plain(value or "-")}')
