"""Writing files that others read at the same time."""

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write so that a reader sees the old text or the new, never a part."""
    draft = path.with_name(f'{path.name}.{os.getpid()}')
    try:
        draft.write_text(text, encoding='utf-8', newline='')
        draft.replace(path)
    finally:  # as where the disk is full
        draft.unlink(missing_ok=True)
