"""Whether processes have ended."""

import time
from pathlib import Path


def ends(pid: int) -> bool:
    """Whether a process is gone soon: one that was killed is there for a while without a memory."""
    for _ in range(3000):
        if _has_ended(pid):
            return True
        time.sleep(0.02)
    return False


def _has_ended(pid: int) -> bool:
    try:
        return 'State:\tZ' in Path(f'/proc/{pid}/status').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
