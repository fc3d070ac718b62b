"""Runs on one machine take turns: two at once would disturb each other.

The turn is a lock of the machine, for runs of all users and checkouts. The system ends it with the
last process that holds it, however that ends. A process that sets ``ASSAY_HAS_TURN`` holds the turn
for the runs it starts, to their end: they neither take the lock nor hand it to ReFrame.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError, locks
from assay.text import plain

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

#: Set by what has the turn for the runs that it starts: `assay run` for ReFrame, a measurement of
#: many runs for each `assay run`.
VARIABLE = 'ASSAY_HAS_TURN'

#: Seconds to wait, and between two words about it.
PATIENCE, REMINDER = 24 * 3600, 60

#: More than a holder says of itself.
MOST = 200


def take(run: str, tell: Callable[[str], None]) -> int:
    """Wait until no other run uses this machine.

    :param run: what others wait for, in their messages.
    :param tell: is given a sentence about what is waited for.
    :returns: a handle: a process has its turn as long as it keeps that open.
    :raises AssayError: if the lock cannot be used, or the others take longer than
        :data:`PATIENCE`.
    """
    path = _folder() / 'assay.turn'
    handle = _open(path)
    began, told = time.monotonic(), None
    while not locks.try_lock(handle, path):
        now = time.monotonic()
        if now - began > PATIENCE:
            raise AssayError(f'gave up after {PATIENCE // 3600} h: {_holder(handle)} has {path}')
        if told is None or now - told > REMINDER:
            told = now
            tell(f'waiting, since jobs at once would disturb each other: {_holder(handle)}')
        time.sleep(0.2)
    os.ftruncate(handle, 0)
    since = datetime.now().astimezone().isoformat(timespec='seconds')
    os.pwrite(handle, f'{run} (process {os.getpid()}) has this machine since {since}'.encode(), 0)
    return handle


def is_needed(site: _SiteConfig) -> bool:
    """Whether jobs of the selected system run on this machine, where others may as well."""
    return any(
        partition['scheduler'] == 'local' or partition.get('extras', {}).get('on_this_machine')
        for partition in site.get('systems/0/partitions')
    )


def _folder() -> Path:
    """The same for all users of a machine, and for the nodes of a virtual cluster on it."""
    shared = Path('/run/lock')
    everybody = shared.is_dir() and shared.stat().st_mode & stat.S_IWOTH
    return shared if everybody else Path('/tmp')


def _open(path: Path) -> int:
    # Not by O_CREAT alone: the kernel refuses that for a file of somebody else's in such a folder.
    for _ in range(10):
        try:
            return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise AssayError(
                f'{path}: {error.strerror}: runs on this machine could not take turns. '
                'Its owner has to remove it.'
            ) from None
        before = os.umask(0)
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        except FileExistsError:  # another run has just made it
            continue
        except OSError as error:
            raise AssayError(f'{path}: {error.strerror}') from None
        finally:
            os.umask(before)
    raise AssayError(f'{path}: comes and goes: runs on this machine could not take turns')


def _holder(handle: int) -> str:
    words = os.pread(handle, MOST, 0).decode(errors='replace')
    return plain(words) or 'another run has this machine'
