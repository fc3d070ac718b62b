"""What is remembered from night to night, and that there is one at a time.

Each system and mode has a folder of its own in ``perflogs/nights``.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from assay import AssayError, locks, paths, say
from assay.files import write_whole
from assay.nights.outcome import Outcome, Word

#: Good nights that are remembered.
KEPT = 20


class Told(BaseModel):
    """The verdict that people know.

    :param since: the night that it is of first.
    """

    model_config = ConfigDict(extra='forbid', frozen=True)

    word: Word = 'PASSED'
    culprits: tuple[str, ...] = ()
    since: AwareDatetime | None = None

    def is_of(self, outcome: Outcome) -> bool:
        """Whether people know as much of a night already."""
        return (self.word, {*self.culprits}) == (outcome.word, {*outcome.culprits})


class Memory(BaseModel):
    """What one night knows of those before.

    :param told: before the first night nobody has complained.
    :param good: identifiers of the runs of good nights, the newest last.
    :param put_off: since when nights have been put off; None if the last was not.
    """

    model_config = ConfigDict(extra='forbid', frozen=True)

    told: Told = Field(default_factory=Told)
    good: tuple[str, ...] = ()
    put_off: AwareDatetime | None = None

    def after(self, told: Told, good: str | None = None, put_off: datetime | None = None) -> Memory:
        """What the next night knows.

        :param good: the identifier of this one's run, if it was good.
        """
        runs = (*self.good, good) if good else self.good
        return Memory(told=told, good=runs[-KEPT:], put_off=put_off)


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
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise AssayError(f'{error.filename}: {error.strerror}') from None
        try:
            if _locked(handle, path):
                os.utime(handle)
                yield handle
            else:
                yield None
        finally:
            os.close(handle)

    def busy_for(self) -> timedelta:
        """How long another night has been under way."""
        return timedelta(seconds=time.time() - (self.path / 'lock').stat().st_mtime)

    def read(self) -> Memory:
        """What is known; where it is damaged, that is said, and all begins anew."""
        if not self.file.exists():
            return Memory()
        with self._told('read'):
            text = self.file.read_bytes()
        try:
            return Memory.model_validate_json(text)
        except ValidationError:
            aside = self.file.with_name(f'{self.file.name}.damaged-{datetime.now():%Y%m%dT%H%M%S}')
            with self._told('renamed'):
                self.file.rename(aside)
            say(f'what was known of the nights before was damaged: it is {aside} now')
            return Memory()

    def write(self, memory: Memory) -> None:
        """:raises AssayError: if it cannot be written."""
        with self._told('written'):
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.file, f'{memory.model_dump_json(indent=2)}\n')

    @contextmanager
    def _told(self, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise AssayError(f'{self.file}: cannot be {done}: {error.strerror}') from None


def _locked(handle: int, path: Path) -> bool:
    try:
        locks.lock(handle, path, wait=False)
    except locks.LockedError:
        return False
    return True
