"""Locks on files, which the system ends with the last process that has the file open.

Lustre that is mounted without ``flock``, and NFS without a lock daemon, have none. Nothing stands
in for them: the history (SQLite) and ReFrame's perflogs need them as well.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from assay import AssayError

#: What a file system says that has none.
_NONE = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK}


class LockedError(AssayError):
    """Another process has the lock."""


def lock(handle: int, path: Path, wait: bool = True) -> None:
    """Lock an open file for this process, and for those that inherit the handle.

    :param path: of the file, for the message.
    :raises LockedError: if another process has it, and nobody waits.
    :raises AssayError: if it cannot be locked.
    """
    _lock(fcntl.flock, handle, path, wait)


def try_lock(handle: int, path: Path) -> bool:
    """Lock an open file if no other process has it; whether that was done.

    :raises AssayError: if it cannot be locked.
    """
    try:
        lock(handle, path, wait=False)
    except LockedError:
        return False
    return True


def lock_as_reframe(handle: int, path: Path) -> None:
    """Wait for a lock in the way of ReFrame, which does not see those of :func:`lock`."""
    _lock(fcntl.lockf, handle, path, wait=True)


def _lock(how: Callable[[int, int], object], handle: int, path: Path, wait: bool) -> None:
    try:
        how(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise LockedError(f'{path}: another process has it locked') from None
    except OSError as error:
        problem = f'cannot be locked: {error.strerror}'
        if error.errno in _NONE:
            problem = (
                f'its file system has no locks ({error.strerror}), which Assay needs where it '
                'keeps files: use a checkout on another file system, or have this one mounted with '
                'them (Lustre: -o flock; NFS: with a lock daemon, not -o nolock)'
            )
        raise AssayError(f'{path}: {problem}') from None


@contextmanager
def hold_lock(path: Path, wait: bool = True) -> Iterator[int]:
    """Hold the lock of a file, which is made if it is missing.

    :raises LockedError, AssayError: as :func:`lock`.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise AssayError(f'{path}: {error.strerror}') from None
    try:
        lock(handle, path, wait)
        yield handle
    finally:
        os.close(handle)


def assert_lockable(folder: Path) -> None:
    """:raises AssayError: if files in a folder, or where that will be, cannot be locked."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            for how in (fcntl.flock, fcntl.lockf):
                _lock(how, file.fileno(), there, wait=False)
    except OSError as error:
        raise AssayError(f'{there}: {error.strerror}') from None
