"""Lets processes that share a CPU take turns.

    python turns.py CPU CPUS FILE...

A rank that waits polls, and keeps its CPU from the rank that it waits for until the kernel's tick,
4 ms later. While a node gets a part of its CPUs' time, and not all of it, this process wakes up
often, for nothing: when it sleeps again, the kernel gives the CPU to the process that has had less
of it. Where a rank has a CPU to itself it would only be in its way, and sleeps.

CPUS is how many each node has, and each FILE tells how much of their time one has had
(`Group.used`).
"""

import os
import sys
import time
from typing import NoReturn

#: Seconds from one turn to the next, to which the kernel adds 50 us.
TURN = 50e-6
#: Seconds from one look at what the nodes get to the next.
LOOK = 10e-3
#: A node whose share of its CPUs' time is between these wants more of it: less is what its daemons
#: take, and more what a rank has whose CPU nobody else uses.
LEAST, MOST = 0.1, 0.7


def seconds_used(file: str) -> float:
    """Seconds of CPU time that a node has had; 0 if it is down."""
    try:
        with open(file) as opened:
            words = opened.read().split()
    except OSError:
        return 0.0
    return int(words[0]) * 1e-9 if len(words) == 1 else int(words[1]) * 1e-6


def take_turns(cpu: int, cpus: int, files: list[str]) -> NoReturn:
    """As the command line says."""
    os.sched_setaffinity(0, {cpu})
    had, begin = [seconds_used(file) for file in files], time.monotonic()
    pause = LOOK
    while True:
        while time.monotonic() < begin + LOOK:
            time.sleep(pause)
        have, now = [seconds_used(file) for file in files], time.monotonic()
        shares = [(b - a) / (now - begin) / cpus for a, b in zip(had, have, strict=True)]
        pause = TURN if any(LEAST < share < MOST for share in shares) else LOOK
        had, begin = have, now


if __name__ == '__main__':
    take_turns(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
