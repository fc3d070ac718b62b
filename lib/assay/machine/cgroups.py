"""The control groups of this process, and what they leave it of CPU time and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

#: The control groups of a process, and where the kernel shows them.
CGROUP, CGROUPS = Path('/proc/self/cgroup'), Path('/sys/fs/cgroup')


def usable_memory() -> int:
    """Bytes of this machine's memory, or what its control groups leave this process of it."""
    return min([os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'), *_memory_limits()])


def _memory_limits() -> Iterator[int]:
    """Bytes, for each group that has a limit."""
    for is_v2, folder in _groups('memory'):
        # In a container the upper groups may not be there to see.
        with suppress(OSError, ValueError):  # no number: no limit
            name = 'memory.max' if is_v2 else 'memory.limit_in_bytes'
            yield int((folder / name).read_text())


def cpu_limits() -> Iterator[float]:
    """CPUs' worth of time, for each group that has a limit."""
    for is_v2, folder in _groups('cpu'):
        with suppress(OSError, ValueError):
            if is_v2:
                quota, period = map(int, (folder / 'cpu.max').read_text().split())
            else:
                quota = int((folder / 'cpu.cfs_quota_us').read_text())
                period = int((folder / 'cpu.cfs_period_us').read_text())
            if quota > 0 < period:
                yield quota / period


def _groups(controller: str) -> Iterator[tuple[bool, Path]]:
    """Folders of this process's groups and of those above; whether they are of version 2."""
    try:
        lines = CGROUP.read_text().splitlines()
    except OSError:  # a kernel without them
        return
    for line in lines:
        _, controllers, inner = line.split(':', 2)
        if not controllers:
            top = CGROUPS
        elif controller in controllers.split(','):
            top = CGROUPS / controller
        else:
            continue
        own = top / inner.lstrip('/')
        for folder in (own, *own.parents):
            yield not controllers, folder
