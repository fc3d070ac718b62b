"""The screenings of a partition that are kept, a file each, by when they began."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

from assay import AssayError, paths, say
from assay.screening.measured import Screening, read, write

#: The word for the newest.
LAST = 'last'
#: Files are named by local time, which is ahead of UTC by no more than this anywhere.
_AHEAD = timedelta(hours=15)
_NAME = '%Y%m%dT%H%M%S.%f'


def folder_of(system: str) -> Path:
    """Where those of ``system:partition`` are."""
    return paths.SCREENINGS.joinpath(*system.split(':'))


def keep(measured: Screening) -> Path:
    """Write a file of a screening.

    :returns: its path.
    :raises AssayError: if that cannot be.
    """
    path = folder_of(measured.system) / f'{measured.begun:{_NAME}}.json'
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


def newest(system: str, until: datetime) -> tuple[Path, Screening] | None:
    """The newest of a partition that had begun by then, and its file; None if there is none.

    One that is damaged is told, and left out.

    :param system: ``system:partition``, as a job may have written it.
    """
    if not all(re.fullmatch(r'\w[\w.+-]*', part) for part in system.split(':')):
        return None
    last = f'{until.astimezone(timezone.utc) + _AHEAD:{_NAME}}.json'
    for path in sorted(folder_of(system).glob('*.json'), reverse=True):
        if path.name > last:
            continue
        try:
            found = read(path)
        except AssayError as error:
            say(f'left out: {error}')
            continue
        if found.begun.timestamp() <= until.timestamp():
            return path, found
    return None


def earlier(path: Path, now: Screening, most: int) -> list[Screening]:
    """Those beside a screening that were of the same environment and fabric, oldest first.

    One that is damaged is told, and left out.

    :param path: of its file.
    """
    return [*earlier_by_file(path, now, most).values()]


def earlier_by_file(path: Path, now: Screening, most: int) -> dict[Path, Screening]:
    """As :func:`earlier`, each with its file."""
    found: dict[Path, Screening] = {}
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
                found[other] = one
    return dict(reversed(found.items()))
