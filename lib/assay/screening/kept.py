"""The screenings of a partition that are kept, a file each, by when they began."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from assay import AssayError, paths, say
from assay.screening.measured import Screening, read_screening, write_screening

#: The word for the newest.
LAST = 'last'
#: Files are named by when they began, in UTC.
_NAME = '%Y%m%dT%H%M%S.%f'
#: At any time before and after which a screening may have begun whose file a user named.
_EVER = datetime.min.replace(tzinfo=timezone.utc), datetime.max.replace(tzinfo=timezone.utc)


def folder_of_screenings(system: str) -> Path:
    """The folder of the screenings of ``system:partition``."""
    return paths.SCREENINGS.joinpath(*system.split(':'))


def path_of(measured: Screening) -> Path:
    """The file of a screening."""
    begun = measured.begun.astimezone(timezone.utc)
    return folder_of_screenings(measured.system) / f'{begun:{_NAME}}.json'


def keep_screening(measured: Screening) -> Path:
    """Write a file of a screening.

    :returns: its path.
    :raises AssayError: if that cannot be.
    """
    path = path_of(measured)
    write_screening(path, measured)
    return path


def find_screening(word: str, system: str) -> Path:
    """The file that a user names.

    :param word: a path, or ``last``.
    :raises AssayError: if there is none, or one is damaged that may be the last.
    """
    if word != LAST:
        return Path(word)
    for path, _ in newest_first(folder_of_screenings(system), is_strict=True):
        return path
    raise AssayError(f'there is no screening of {system} in {folder_of_screenings(system)} yet')


def newest(system: str, until: datetime) -> tuple[Path, Screening] | None:
    """The newest of a partition that had begun by then, and its file; None if there is none.

    One that is damaged is reported, and left out.

    :param system: ``system:partition``, as a job may have written it.
    """
    if not all(re.fullmatch(r'\w[\w.+-]*', part) for part in system.split(':')):
        return None
    for path, found in newest_first(folder_of_screenings(system), until=until):
        if found.begun <= until:
            return path, found
    return None


def screenings_since(system: str, begun: datetime) -> list[tuple[Path, Screening]]:
    """The screenings of a partition that began then or later, oldest first, with their files.

    :raises AssayError: if one is damaged that may be of them.
    """
    found: list[tuple[Path, Screening]] = []
    for path, one in newest_first(folder_of_screenings(system), is_strict=True):
        if one.begun < begun:
            break
        found.append((path, one))
    return found[::-1]


def earlier_screenings(path: Path, now: Screening, most: int) -> dict[Path, Screening]:
    """Earlier screenings of the same nodes, environment and fabric by file, oldest first.

    One that is damaged is reported, and left out.

    :param path: of its file.
    """
    found: dict[Path, Screening] = {}
    for other, one in newest_first(path.parent, until=now.begun):
        if len(found) == most:
            break
        if one.begun < now.begun and one.kind == now.kind:
            found[other] = one
    return dict(reversed(found.items()))


def newest_first(
    folder: Path, until: datetime = _EVER[1], is_strict: bool = False
) -> Iterator[tuple[Path, Screening]]:
    """The screenings of a folder by when they began, with their files.

    No more of them are read than are asked for, and those that may be newer.

    :param until: what began later by the name of its file is not read.
    :param is_strict: whether one that is damaged is an error; otherwise it is reported.
    :raises AssayError: if it is.
    """
    held: list[tuple[Path, Screening]] = []
    for path in sorted(folder.glob('*.json'), key=lambda path: _began(path)[1], reverse=True):
        earliest, latest = _began(path)
        if earliest > until:
            continue
        while held and held[-1][1].begun > latest:
            yield held.pop()
        try:
            held.append((path, read_screening(path)))
        except AssayError as error:
            if is_strict:
                raise
            say(f'left out: {error}')
        held.sort(key=lambda one: (one[1].begun, one[0]))
    yield from reversed(held)


def _began(path: Path) -> tuple[datetime, datetime]:
    """When a screening began at the earliest and at the latest, by the name of its file."""
    try:
        named = datetime.strptime(path.stem, _NAME).replace(tzinfo=timezone.utc)
        return named, named
    except ValueError:
        return _EVER
