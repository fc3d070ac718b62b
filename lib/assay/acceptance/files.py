"""The files of an archive: one way to write and hash a record, and which files there are."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict

from assay import AssayError
from assay.files import explain_errors, strict_json

#: Bytes of a file that are hashed at a time.
PIECE = 1 << 20


def canonical(record: Any) -> bytes:
    """JSON in one line of ASCII, keys sorted, no blanks.

    :raises ValueError: if a number is not finite.
    """
    text = json.dumps(record, sort_keys=True, separators=(',', ':'), allow_nan=False)
    return text.encode('ascii')


def parse_record(data: bytes) -> dict[str, Any]:
    """The record that bytes are the canonical form of.

    :raises ValueError: if they are of none: changed, or written by something else.
    """
    try:
        record = strict_json(data)
        if isinstance(record, dict) and canonical(record) == data:
            return record
    except (RecursionError, ValueError):
        raise ValueError('it is not JSON') from None
    raise ValueError('it is not written as Assay writes it')


def digest(data: bytes) -> str:
    """SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def digest_of(path: Path) -> str:
    """The digest of a file's content.

    :raises OSError: if it cannot be read.
    """
    found = hashlib.sha256()
    with path.open('rb') as file:
        while piece := file.read(PIECE):
            found.update(piece)
    return found.hexdigest()


def settle(folder: Path) -> None:
    """Let names in a folder outlive a power cut.

    :raises OSError: if the file system cannot.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


#: Files of an archive at most, and folders that are within each other.
MOST_FILES, DEEPEST = 200_000, 12


class Checksum(BaseModel):
    """The size and the digest of a file.

    :param sha256: of its content, hexadecimal.
    :param size: bytes.
    """

    model_config = ConfigDict(extra='forbid', frozen=True, strict=True)

    sha256: str
    size: int

    @classmethod
    def of(cls, path: Path) -> Checksum:
        """The checksum of a file as it is now.

        :raises OSError: if it cannot be read.
        """
        return cls(sha256=digest_of(path), size=path.stat().st_size)


#: What files hold, by their names in an archive.
Files: TypeAlias = dict[str, Checksum]


def files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder and of those in it: their names with slashes, and where they are.

    :raises AssayError: for anything but folders and files of one name, by which something outside
        of the archive could be read.
    """
    yield from _below(folder, folder, 0)


def _below(folder: Path, top: Path, depth: int) -> Iterator[tuple[str, Path]]:
    if depth > DEEPEST:
        raise AssayError(f'{folder}: more than {DEEPEST} folders within each other: remove it')
    with explain_errors(folder, 'read'):
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            path, seen = Path(entry.path), entry.stat(follow_symlinks=False)
            if not entry.name.isprintable():
                raise AssayError(f'{folder}: {entry.name!r} is no name of a file: remove it')
            if stat.S_ISDIR(seen.st_mode):
                yield from _below(path, top, depth + 1)
            elif not stat.S_ISREG(seen.st_mode):
                raise AssayError(f'{path} is neither a file nor a folder: remove it')
            elif seen.st_nlink > 1:
                raise AssayError(f'{path} has another name as well (a hard link): copy the archive')
            else:
                yield path.relative_to(top).as_posix(), path


def checksums_in(folder: Path, where: str = '') -> Files:
    """The checksums of the files of a folder, by their names.

    :param where: before each name: the folder in the archive.
    :raises AssayError: as :func:`files_in`.
    """
    kept: Files = {}
    for name, path in files_in(folder):
        if len(kept) == MOST_FILES:
            raise AssayError(f'{folder}: more than {MOST_FILES} files: it is no archive')
        with explain_errors(path, 'read'):
            kept[where + name] = Checksum.of(path)
    return kept
