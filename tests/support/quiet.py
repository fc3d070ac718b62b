"""Tests that measure: a machine that others use as well is no reason to fail."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

ATTEMPTS = 5
OTHERS = 0.1  # of a CPU, by which a measurement may be disturbed
TICK = 1 / os.sysconf('SC_CLK_TCK')  # of the kernel's counters, in seconds

T = TypeVar('T')


def measured(run: Callable[[], T], check: Callable[[T], object], attempts: int = ATTEMPTS) -> T:
    """What the first run returns whose measurements `check` finds good.

    Where none is, the test is skipped if others used this machine during all of them. What no
    load can change, such as exit codes and counts, belongs into `run`, which fails at once.

    :raises AssertionError: that of `run`, or that of the last `check`.
    """
    used = []
    for _ in range(attempts):
        began, before = time.monotonic(), _used_by_others()
        done = run()
        try:
            check(done)
        except AssertionError as error:
            failure = error
        else:
            return done
        elapsed = time.monotonic() - began
        used.append((_used_by_others() - before) / max(elapsed, TICK))
    if min(used) > OTHERS:
        pytest.skip(f'this machine is too busy: others used at least {min(used):.1f} of its CPUs')
    raise failure


def _used_by_others() -> float:
    """Seconds of CPU time, those of the host of a virtual machine included."""
    user, nice, system, _, _, irq, softirq, steal, *_ = map(
        int, Path('/proc/stat').read_text().split('\n', 1)[0].split()[1:]
    )
    busy = (user + nice + system + irq + softirq + steal) * TICK
    ours = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return busy - sum(one.ru_utime + one.ru_stime for one in ours)
