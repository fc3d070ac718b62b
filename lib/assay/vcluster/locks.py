"""Processes that run, as the kernel knows them: by the locks that they hold.

Anybody can run a process that looks like ours, and a number in a file outlives its process. So each
process that has to be found again holds a lock on one byte of a file that only root can open: the
kernel says which process that is, and takes the lock away when it ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import stat
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from assay import AssayError
from assay.files import explain_errors

#: Seconds that a process may take to end when it is killed.
PATIENCE = 10

# struct flock: type, whence, start, length, pid.
FLOCK = 'hhqqi4x'


def check_private(folder: Path) -> None:
    """Make sure that a folder is root's alone.

    :raises AssayError: if it is another's, open to others, or a link.
    """
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o077:
        raise AssayError(
            f'{folder} is not a folder that only root can use, so it may hold what another user '
            f'has put there. Remove it: rm -r {folder}'
        )


class Locks:
    """The locks of a cluster's processes, a number each.

    :param folder: where their file is, in a folder that only root can write to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self) -> None:
        """Make the folder, if it is not there.

        :raises AssayError: if it cannot be made, or is not root's alone.
        """
        with explain_errors(self.folder, 'made'):
            self.folder.mkdir(mode=0o700, exist_ok=True)
        check_private(self.folder)

    def open(self) -> int:
        """A file descriptor for :meth:`take`; the only one of the process that takes the lock."""
        return os.open(self.folder / 'processes', os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @staticmethod
    def take(file: int, number: int) -> None:
        """Let this process, and the command that it becomes, hold the lock until it ends.

        :raises OSError: if another process holds it.
        """
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)

    def holder(self, number: int) -> int | None:
        """The id of the process that holds the lock; None if none does.

        :raises AssayError: if we are not root, or cannot see the process from where we are.
        """
        try:
            check_private(self.folder)
            file = os.open(self.folder / 'processes', os.O_RDONLY)
        except FileNotFoundError:
            return None
        except PermissionError:
            raise AssayError(
                f'the virtual cluster needs root: you cannot read {self.folder}'
            ) from None
        try:
            question = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0)
            answer = struct.unpack(FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, question))
        finally:
            os.close(file)
        if answer[0] == fcntl.F_UNLCK:
            return None
        if answer[4] == 0:
            raise AssayError(
                'this is a node of the virtual cluster, which does not see the others: '
                'do it on the machine itself'
            )
        return int(answer[4])

    def process(self, number: int) -> int | None:
        """A pidfd of the process that holds the lock, to be closed; None if none does."""
        while (pid := self.holder(number)) is not None:
            try:
                process = os.pidfd_open(pid)
            except ProcessLookupError:  # it ended meanwhile
                continue
            if self.holder(number) == pid:
                return process
            os.close(process)  # it may be of another that was given the id
        return None

    def command_line(self, number: int) -> list[str] | None:
        """The command line of the process that holds the lock; None if none does."""
        while (pid := self.holder(number)) is not None:
            try:
                line = Path(f'/proc/{pid}/cmdline').read_bytes().decode(errors='replace')
            except OSError:  # it ended meanwhile
                continue
            if self.holder(number) == pid:
                return line.split('\0')[:-1]
        return None

    def kill(self, numbers: Iterable[int]) -> None:
        """Kill the processes that hold these locks, and wait until they have ended.

        :raises AssayError: if one does not.
        """
        found = [self.process(number) for number in numbers]
        processes = [process for process in found if process is not None]
        try:
            for process in processes:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
            deadline = time.monotonic() + PATIENCE
            for process in processes:
                while not select.select([process], [], [], 0.05)[0]:
                    if time.monotonic() > deadline:
                        raise AssayError(
                            f'a process of the virtual cluster was killed and has not ended after '
                            f'{PATIENCE} s. Try again: ./assay cluster down'
                        )
                    _reap_children()
        finally:
            for process in processes:
                os.close(process)


def _reap_children() -> None:
    """Wait for our own children that have ended.

    A node's process 1 ends after all that ran on the node, and what we started there has only ended
    once it was waited for. A signal may have come just when nothing but the kernel knew of it.
    """
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
