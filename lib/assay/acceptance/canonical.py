"""One way to write a record as bytes: what is hashed and signed has no second spelling."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NoReturn

#: Bytes of a file that are hashed at a time.
PIECE = 1 << 20


def canonical(record: Any) -> bytes:
    """JSON in one line of ASCII, keys sorted, no blanks.

    :raises ValueError: if a number is not finite.
    """
    text = json.dumps(record, sort_keys=True, separators=(',', ':'), allow_nan=False)
    return text.encode('ascii')


def parse(data: bytes) -> dict[str, Any]:
    """The record that bytes are the canonical form of.

    :raises ValueError: if they are of none: changed, or written by something else.
    """
    try:
        record = json.loads(data, parse_constant=_refuse_constant)
        if isinstance(record, dict) and canonical(record) == data:
            return record
    except (RecursionError, ValueError):
        raise ValueError('it is not JSON') from None
    raise ValueError('it is not written as Assay writes it')


def digest(data: bytes) -> str:
    """SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def digest_of(path: Path) -> str:
    """That of a file's content.

    :raises OSError: if it cannot be read.
    """
    found = hashlib.sha256()
    with path.open('rb') as file:
        while piece := file.read(PIECE):
            found.update(piece)
    return found.hexdigest()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
