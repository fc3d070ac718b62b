"""The catalogue of known defects of MPIs, and what it means for a version that one shows or not.

``config/defects.yaml`` has the entries, and its header explains the fields.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, Field

from assay import paths
from assay.config.fabrics import read_entry
from assay.mpis import FAMILIES
from assay.mpis.family import Entry, Variables

CATALOGUE = paths.CONFIG / 'defects.yaml'

#: What is known of a version: it has the defect, it has it no more, or nobody has said.
State = Literal['known', 'fixed', 'unknown']


def _version(text: str) -> str:
    Version(text)  # or a ValueError
    return text


def _family(name: str) -> str:
    if name not in FAMILIES:
        raise ValueError(f'none of the MPIs {", ".join(FAMILIES)}')
    return name


Release = Annotated[str, AfterValidator(_version)]


class AffectedVersions(Entry):
    """The versions of an MPI that have a defect.

    :param since: the first that is known to have it.
    :param fixed: the first good release of each series (the first two numbers); in later series
        than the last of them it is fixed as well.
    :param env: variables without which the MPI takes another way, and not the one with the defect.
    """

    since: Release
    fixed: list[Release] = []
    env: Variables = {}

    def state(self, version: str) -> State:
        """The state of a version: known to have the defect, known to be free of it, or unknown."""
        try:
            asked = Version(version)
        except InvalidVersion:
            return 'unknown'
        fixed = sorted(map(Version, self.fixed))
        of_series = [one for one in fixed if one.release[:2] == asked.release[:2]]
        if any(asked >= one for one in of_series) or (
            fixed and not of_series and asked >= fixed[-1]
        ):
            return 'fixed'
        return 'known' if asked >= Version(self.since) else 'unknown'


class Defect(Entry):
    """A defect, by the fields of its entry."""

    shows: str
    call: str = Field(pattern='^MPI_[A-Z][a-z_]+$')
    link: str
    fabrics: list[str] = Field(default=['shm', 'ucx-shm'], min_length=1)
    seconds: int = Field(default=20, gt=0, le=60)
    ends: bool = False
    known: dict[Annotated[str, AfterValidator(_family)], AffectedVersions] = Field(min_length=1)

    def report(self, family: str, version: str, shown: str | None) -> tuple[State, str]:
        """Compare a run of the reproducer with what is known of this version of the MPI.

        :param shown: how it showed, in words; None if it did not.
        :returns: what was known of the version, and a sentence; empty if there is nothing to say.
        """
        known = self.known[family]
        state, mpi = known.state(version), f'{FAMILIES[family].name} {version}'
        fixed = f'fixed in {", ".join(known.fixed)}' if known.fixed else 'no fixed release is known'
        if shown is None:
            had = 'is known to have'
            if not known.fixed and version != known.since:
                had = f'may have, as {known.since} has'
            said = f'{mpi} {had}, and did not show: {self.shows} ({self.link})'
            return state, said if state == 'known' else ''
        return state, f'{mpi} has: {self.shows} ({shown}; {fixed}; {self.link})'


class DefectCatalogue(Entry):
    """All defects, by names."""

    defects: dict[Annotated[str, Field(pattern=r'^[a-z][a-z0-9-]*$')], Defect]


@lru_cache(maxsize=1)
def load_defects(path: Path = CATALOGUE) -> dict[str, Defect]:
    """Read and validate the catalogue.

    :raises AssayError: if the file cannot be read, is not YAML, or an entry is wrong.
    """
    return read_entry(path, DefectCatalogue).defects
