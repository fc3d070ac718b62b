"""Lets processes that share a CPU take turns.

    python turns.py CPU

A rank that waits polls, and keeps its CPU from the rank that it waits for until the kernel's tick,
4 ms later. This process wakes up more often, for nothing: when it sleeps again, the kernel gives
the CPU to the process that has had less of it.
"""

import os
import sys
import time

SECONDS = 500e-6

os.sched_setaffinity(0, {int(sys.argv[1])})
while True:
    time.sleep(SECONDS)
