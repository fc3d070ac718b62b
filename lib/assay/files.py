"""Files: whole or not at all when they are written, within bounds when they are read."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from assay import AssayError, locks

#: Raised where data are read that may hold anything, as somebody may have changed them.
DAMAGED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@contextmanager
def explain_errors(path: Path, done: str, kind: type[AssayError] = AssayError) -> Iterator[None]:
    """Turn an error of the system into a sentence that names the file.

    :param path: named if the error itself names none.
    :param done: to the file: ``read``, ``written``, ``made``.
    :param kind: of the error that is raised.
    """
    try:
        yield
    except OSError as error:
        raise kind(f'{error.filename or path}: cannot be {done}: {error.strerror}') from None


def read_bounded(path: Path, most: int) -> bytes:
    """The content of a file.

    :param most: bytes that it may have.
    :raises AssayError: if it has more, or cannot be read.
    """
    with explain_errors(path, 'read'):
        # A pipe would wait for somebody who writes.
        if path.exists() and not path.is_file():
            raise AssayError(f'{path}: is no file: remove it')
        with path.open('rb') as file:
            data = file.read(most + 1)
    if len(data) > most:
        raise AssayError(f'{path} has more than {most} bytes')
    return data


def strict_json(data: str | bytes) -> Any:
    """Parse JSON; NaN and infinity, which Python takes for numbers, are refused.

    :raises ValueError, RecursionError: if it is not JSON.
    """
    return json.loads(data, parse_constant=_refuse_constant)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON of what is known: of dataclasses objects, of collections lists, of times ISO 8601.

    A number that is not finite is null, as JSON has no word for it.

    :raises TypeError: at a value of another kind, and at a set whose members cannot be sorted.
    :raises ValueError: at a key that is not finite.
    """
    return json.dumps(_plain(value), indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, AbstractSet):
        return sorted(map(_plain, value))
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is not a measured value')


def write_whole(path: Path, content: str | bytes) -> None:
    """Write so that a reader sees the old content or the new, never a part.

    A file that is there keeps its mode and, where that is permitted, its owner; a symbolic link
    stays one. Anything else, such as ``/dev/stdout``, is written to.

    :raises OSError: if that cannot be; the old content stays, and nothing is left beside it.
    """
    data = content.encode() if isinstance(content, str) else content
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    draft = path.with_name(f'{path.name}.{os.getpid()}')
    try:
        with draft.open('wb') as file:
            with suppress(FileNotFoundError):
                # Before there is anything in it that not everybody may read.
                keep_access(path.stat(), file.fileno())
            file.write(data)
        draft.replace(path)
    except OSError as error:
        error.filename = str(path)  # the draft is nobody's business
        raise
    finally:  # as where the disk is full
        draft.unlink(missing_ok=True)


def append_line(path: Path, line: str) -> None:
    """Add a line to a record, and return once it is on the disk.

    It takes the place of one that was cut off while it was written, by no other process now.

    :raises AssayError: if it cannot be written or locked.
    """
    with explain_errors(path, 'written'):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open('ab+') as file:
            locks.lock(file.fileno(), path)
            file.seek(0)
            torn = file.read().rpartition(b'\n')[2]
            file.truncate(file.tell() - len(torn))
            file.write(f'{line}\n'.encode())
            file.flush()
            os.fsync(file.fileno())


def whole_lines(path: Path) -> list[str]:
    """The lines of such a record but for one that was cut off; none if there is no file.

    :raises AssayError: if it cannot be read.
    """
    if not path.exists():
        return []
    with explain_errors(path, 'read'):
        whole, _, _ = path.read_bytes().rpartition(b'\n')
    return whole.decode(errors='replace').split('\n') if whole else []


def keep_access(old: os.stat_result, new: int) -> None:
    """Give an open file the mode of another and, where that is permitted, its owner and group.

    :param new: descriptor of a file of this user.
    """
    # A group of one's own can be given where an owner cannot; a container may not know either.
    for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
        with suppress(OSError):
            os.fchown(new, owner, group)
    os.fchmod(new, stat.S_IMODE(old.st_mode))  # last: a change of owner takes bits of it away
