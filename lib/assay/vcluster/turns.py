"""Lets processes that share a CPU take turns.

    python turns.py CPU CPUS

A rank that waits polls, and keeps its CPU from the rank that it waits for until the kernel's tick,
4 ms later. Where more processes of the machine want to run than the cluster has CPUs, this one
wakes up often, for nothing: when it sleeps again, the kernel gives the CPU to the process that has
had less of it. Where ranks have a CPU each it would only be in their way, and sleeps.
"""

import os
import sys
import time

#: Seconds from one turn to the next, to which the kernel adds 50 us.
TURN = 50e-6
#: Seconds of turns, before it looks again who wants to run.
TURNS = 10e-3
#: Seconds from one look to the next while there are no turns, and how many in a row have to find
#: too many: what carries packets runs for a moment beside any rank.
LOOK, LOOKS = 4e-3, 3


def are_too_many(cpus: int) -> bool:
    """Whether more processes than that want to run on the machine, without this one."""
    with open('/proc/loadavg') as file:
        running = int(file.read().split()[3].partition('/')[0])
    return running - 1 > cpus


os.sched_setaffinity(0, {int(sys.argv[1])})
cpus = int(sys.argv[2])
found = 0
while True:
    found = found + 1 if are_too_many(cpus) else 0
    if found < LOOKS:
        time.sleep(LOOK)
        continue
    until = time.monotonic() + TURNS
    while time.monotonic() < until:
        time.sleep(TURN)
