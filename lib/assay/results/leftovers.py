"""Variables that were left in a job's environment or in files, as sentences tell them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.results.cases import Case
from assay.text import plain
from assay.witness.variables import OF_THE_MEETING

#: Variables that a sentence names.
MOST = 4

#: Said where commands or modules may have set them.
UNSURE = " (what the system's file sets by commands or modules is not known)"

#: What explains nothing: which warnings an MPI prints, and components that Open MPI's own file
#: excludes, as in Debian's and conda-forge's packages; what a job may use is set, and proved.
_HARMLESS = re.compile(
    r'\w+_(?:warn|show|help)(?:_\w+)?=.*'
    r'|(?:pml|btl|mtl|osc)=\^\S+ in \S+/openmpi-mca-params\.conf'
)


def of_files(case: Case) -> list[str]:
    """What files set for a case's job, but for what explains nothing."""
    return [one for one in case.leftovers.in_files if not _HARMLESS.fullmatch(one)]


def left(case: Case) -> str:
    """What was left for a case's job, and how its nodes differ, as the end of its sentence."""
    return f'{_in_environment(case)}{_in_files(case)}{_differences(case)}'


def _in_files(case: Case) -> str:
    if not (found := of_files(case)):
        return ''
    return f"; files set {named(found)}, which neither Assay nor the system's file does"


def _differences(case: Case) -> str:
    if not (found := case.leftovers.hosts_differ_in):
        return ''
    return f'; its nodes differ in {named(found)}'


def _in_environment(case: Case) -> str:
    is_seen = case.leftovers.are_seen
    # Whose ranks were in MPI_Init had found each other.
    harmless = OF_THE_MEETING if is_seen else ()
    found = [one for one in case.leftovers.variables if not one.startswith(harmless)]
    if not found:
        return ''
    unsure = case.leftovers.are_unsure
    if is_seen:
        who = 'Assay does not' if unsure else "neither Assay nor the system's file does"
        return f'; the environment sets {named(found)}, which {who}{UNSURE if unsure else ""}'
    who = 'Assay does not set' if unsure else "neither Assay nor the system's file sets"
    return (
        f'; its job was submitted with {named(found)}, which {who} (what its ranks had is not '
        f'known){UNSURE if unsure else ""}'
    )


def named(variables: Sequence[str]) -> str:
    """Some variables of a job, which are text of others."""
    more = f' and {len(variables) - MOST} more' if len(variables) > MOST else ''
    return ', '.join(map(plain, variables[:MOST])) + more
