"""Variables that were left in the environment of jobs: in the sentence of a case, and of a run."""

from __future__ import annotations

from collections import Counter

from assay.results.cases import GOOD, Case, Report, counted
from assay.text import plain
from assay.witness.variables import OF_THE_START

#: Variables that a sentence names.
MOST = 4


def left(case: Case) -> str:
    """What was left in the environment of a case's job, as the end of its sentence; or nothing."""
    named = _named([*map(plain, case.get('leftovers') or ())])
    if not named:
        return ''
    if case.get('leftovers_seen'):
        return f"; the environment sets {named}, which neither Assay nor the system's file does"
    return (
        f"; its job was started with {named}, which neither Assay nor the system's file sets (what "
        f'its ranks had is not known)'
    )


def left_in_good_cases(report: Report) -> str | None:
    """What was left in the environment of cases that passed, in a sentence; None if nothing was.

    What steers how ranks are started has done no harm where they have started.
    """
    cases = [case for case in counted(report) if case['result'] in GOOD and not case['fixture']]
    counts: Counter[str] = Counter()
    for case in cases:
        counts.update(
            one for one in set(case.get('leftovers') or ()) if not one.startswith(OF_THE_START)
        )
    if not counts:
        return None
    told = [f'{plain(one)} ({count} of {len(cases)})' for one, count in sorted(counts.items())]
    return (
        f'cases that passed had variables in their environment which neither Assay nor the '
        f"system's file sets: {_named(told)}"
    )


def _named(found: list[str]) -> str:
    more = f' and {len(found) - MOST} more' if len(found) > MOST else ''
    return ', '.join(found[:MOST]) + more
