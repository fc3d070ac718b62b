"""The screenings of a partition that are kept, a file each, by when they began."""

from __future__ import annotations

from pathlib import Path

from assay import AssayError, paths, say
from assay.screening.measured import Screening, read, write

#: The word for the newest.
LAST = 'last'


def folder_of(system: str) -> Path:
    """Where those of ``system:partition`` are."""
    return paths.SCREENINGS.joinpath(*system.split(':'))


def keep(measured: Screening) -> Path:
    """Write a file of a screening.

    :returns: its path.
    :raises AssayError: if that cannot be.
    """
    path = folder_of(measured.system) / f'{measured.begun:%Y%m%dT%H%M%S.%f}.json'
    write(path, measured)
    return path


def find(word: str, system: str) -> Path:
    """The file that a user names.

    :param word: a path, or ``last``.
    :raises AssayError: if there is none.
    """
    if word != LAST:
        return Path(word)
    files = sorted(folder_of(system).glob('*.json'))
    if not files:
        raise AssayError(f'there is no screening of {system} in {folder_of(system)} yet')
    return files[-1]


def earlier(path: Path, now: Screening, most: int) -> list[Screening]:
    """Those beside a screening that were of the same environment and fabric, oldest first.

    One that is damaged is told, and left out.

    :param path: of its file.
    """
    found: list[Screening] = []
    for other in sorted(path.parent.glob('*.json'), reverse=True):
        if len(found) == most:
            break
        if other.name < path.name:
            try:
                one = read(other)
            except AssayError as error:
                say(f'left out: {error}')
                continue
            if (one.environment, one.fabric) == (now.environment, now.fabric):
                found.append(one)
    return found[::-1]
