"""Writing files that others read at the same time."""

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write so that a reader sees the old content or the new, never a part.

    :raises OSError: if that cannot be; the old content stays, and nothing is left beside it.
    """
    draft = path.with_name(f'{path.name}.{os.getpid()}')
    try:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        draft.replace(path)
    finally:  # as where the disk is full
        draft.unlink(missing_ok=True)
