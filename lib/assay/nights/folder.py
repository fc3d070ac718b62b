"""What is remembered from night to night, and a lock that keeps nights apart.

Each system and mode has a folder of its own in ``perflogs/nights``.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta

from pydantic import ValidationError

from assay import AssayError, locks, paths, say
from assay.files import explained, write_whole
from assay.nights.outcome import NightMemory


class Folder:
    """Where it is kept for a system and a mode.

    :raises AssayError: if their names are none of files.
    """

    def __init__(self, system: str, mode: str) -> None:
        for name in (system, mode):
            if not re.fullmatch(r'[\w:+-][\w.:+-]*', name):
                raise AssayError(f'{name!r} cannot be the name of a folder')
        self.path = paths.NIGHTS.joinpath(*system.split(':'), mode)
        self.file = self.path / 'memory.json'

    @contextmanager
    def alone(self) -> Iterator[int | None]:
        """While no other night is under way: the handle of its lock; None if one is.

        A process that inherits the handle holds the lock as well, to its end.

        :raises AssayError: if that cannot be known.
        """
        path = self.path / 'lock'
        with explained(self.path, 'made'):
            self.path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            handle: int | None = None
            with suppress(locks.LockedError):
                handle = opened.enter_context(locks.held(path, wait=False))
                os.utime(handle)
            yield handle

    def busy_for(self) -> timedelta:
        """How long another night has been under way."""
        return timedelta(seconds=time.time() - (self.path / 'lock').stat().st_mtime)

    def read(self) -> NightMemory:
        """What is known; where it is damaged, that is said, and all begins anew."""
        if not self.file.exists():
            return NightMemory()
        with explained(self.file, 'read'):
            text = self.file.read_bytes()
        try:
            return NightMemory.model_validate_json(text)
        except ValidationError:
            aside = self.file.with_name(f'{self.file.name}.damaged-{datetime.now():%Y%m%dT%H%M%S}')
            with explained(self.file, 'renamed'):
                self.file.rename(aside)
            say(f'what was known of the nights before was damaged: it is {aside} now')
            return NightMemory()

    def write(self, memory: NightMemory) -> None:
        """:raises AssayError: if it cannot be written."""
        with explained(self.file, 'written'):
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.file, f'{memory.model_dump_json(indent=2)}\n')
