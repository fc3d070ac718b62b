"""ReFrame's perflogs: text files with a line a figure, which only grow until old lines are removed.

ReFrame opens such a file for each line, under a lock of its own beside it (``locking_enable`` in
config/common.py). Under the same lock a file can be replaced, and no line is lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO

from assay import AssayError, locks
from assay.files import keep_access

#: The column of config/common.py by which a line has its age: no line names its run.
TIME = b'job_completion_time'


def perflogs(folder: Path) -> list[Path]:
    """The perflogs below a folder, and those that ReFrame renamed as their columns changed.

    :raises AssayError: if something below it cannot be searched, or vanishes meanwhile.
    """
    try:
        found = {*folder.rglob('*.log'), *folder.rglob('*.log.h[0-9]*')}
        # What begins with a dot is a draft of ours.
        return sorted(path for path in found if not path.name.startswith('.') and path.is_file())
    except OSError as error:
        raise AssayError(f'{folder}: cannot be searched for perflogs: {error}') from None


def count_before(path: Path, limit: datetime) -> int:
    """How many lines of a perflog are of jobs that ended before a time.

    :raises AssayError: if it cannot be read.
    """
    with _told(path), path.open('rb') as file:
        return sum(is_old for _, is_old in _lines(file, limit))


def remove_before(path: Path, limit: datetime) -> int:
    """Remove the lines of jobs that ended before a time; whoever is killed leaves the old file.

    The line of columns stays, and so does each line whose time cannot be read.

    :returns: how many there were.
    :raises AssayError: if it cannot be written.
    """
    # The file of ReFrame's lock; all files of one check share it.
    lock = path.with_name(f'.{path.name.partition(".log")[0]}.lock')
    draft = path.with_name(f'.{path.name}.draft')
    with _told(path), lock.open('a') as held:
        locks.lock_as_reframe(held.fileno(), lock)
        with path.open('rb') as old, draft.open('wb') as new:
            removed = _copy_rest(_lines(old, limit), new)
            keep_access(os.fstat(old.fileno()), new.fileno())
            new.flush()
            os.fsync(new.fileno())
        if removed:
            draft.replace(path)
        else:
            draft.unlink()
        return removed


def _copy_rest(lines: Iterable[tuple[bytes, bool]], new: IO[bytes]) -> int:
    removed = 0
    for line, is_old in lines:
        if is_old:
            removed += 1
        else:
            new.write(line)
    return removed


def _lines(file: Iterable[bytes], limit: datetime) -> Iterator[tuple[bytes, bool]]:
    """Each line, and whether its job ended before the limit."""
    # Times of lines are in whole seconds.
    limit, column = limit.replace(microsecond=0), None
    for line in file:
        fields = line.rstrip(b'\n').split(b'|')
        if TIME in fields:
            column = fields.index(TIME)
            yield line, False
        else:
            yield line, column is not None and _is_before(fields[column : column + 1], limit)


def _is_before(field: list[bytes], limit: datetime) -> bool:
    try:
        # Without a zone it is of this machine's clock.
        return datetime.fromisoformat(field[0].decode()).astimezone() < limit
    except (IndexError, OSError, OverflowError, ValueError):
        return False


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """:raises AssayError: for what goes wrong with a file."""
    try:
        yield
    except OSError as error:
        raise AssayError(f'{path} stays as it is: {error.strerror}') from None
