"""What is remembered from night to night, and that there is one at a time.

Each system and mode has a folder of its own in ``perflogs/nights``.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay import AssayError, paths, say
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
    since: datetime | None = None

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
    put_off: datetime | None = None

    def after(self, told: Told, good: str | None = None, put_off: datetime | None = None) -> Memory:
        """What the next night knows.

        :param good: the identifier of this one's run, if it was good.
        """
        runs = (*self.good, good) if good else self.good
        return Memory(told=told, good=runs[-KEPT:], put_off=put_off)


class Folder:
    """Where it is kept for a system and a mode."""

    def __init__(self, system: str, mode: str) -> None:
        self.path = paths.NIGHTS.joinpath(*system.split(':'), mode)
        self.file = self.path / 'memory.json'

    @contextmanager
    def alone(self) -> Iterator[int | None]:
        """While no other night is under way: the handle of its lock; None if one is.

        Whoever inherits the handle holds the lock as well, to its end.

        :raises AssayError: if that cannot be known.
        """
        path = self.path / 'lock'
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise AssayError(f'{error.filename}: {error.strerror}') from None
        try:
            yield handle if _locked(handle, path) else None
        finally:
            os.close(handle)

    def read(self) -> Memory:
        """What is known; where it is damaged, that is said, and all begins anew."""
        try:
            return Memory.model_validate_json(self.file.read_bytes())
        except FileNotFoundError:
            return Memory()
        except (OSError, ValidationError) as error:
            aside = self.file.with_name(f'{self.file.name}.damaged-{datetime.now():%Y%m%dT%H%M%S}')
            try:
                self.file.rename(aside)
            except OSError:
                raise AssayError(f'{self.file}: cannot be read: {error}') from None
            say(f'what was known of the nights before was damaged: it is {aside} now')
            return Memory()

    def write(self, memory: Memory) -> None:
        """:raises AssayError: if it cannot be written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.file, f'{memory.model_dump_json(indent=2)}\n')
        except OSError as error:
            raise AssayError(f'{self.file}: cannot be written: {error.strerror}') from None


def _locked(handle: int, path: Path) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise AssayError(f'{path}: cannot be locked: {error.strerror}') from None
    return True
