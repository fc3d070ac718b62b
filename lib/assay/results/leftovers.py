"""Variables that were left in the environment of a job, as sentences tell them."""

from __future__ import annotations

from assay.results.cases import Case
from assay.text import plain

#: Variables that a sentence names.
MOST = 4


def left(case: Case) -> str:
    """What was left in the environment of a case's job, as the end of its sentence; or nothing."""
    if not (found := case.get('leftovers')):
        return ''
    if case.get('leftovers_seen'):
        return (
            f"; the environment sets {named(found)}, which neither Assay nor the system's file does"
        )
    return (
        f'; its job was submitted with {named(found)}, which neither Assay nor the '
        f"system's file sets (what its ranks had is not known)"
    )


def named(variables: list[str]) -> str:
    """Some variables of a job, which are text of others."""
    more = f' and {len(variables) - MOST} more' if len(variables) > MOST else ''
    return ', '.join(map(plain, variables[:MOST])) + more
