"""What measurements beside IMB-MPI1 share: the same MPICH and cores, and when a claim is made."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from common import environment

from assay.machine.mpi import Mpi, find_imb, find_mpis

#: How far the two may be apart. Where IMB's own spread is more, none is made.
CLAIM = 0.05


def mpich() -> Mpi:
    """The MPICH of the wheels; the program ends where there is none on which IMB-MPI1 runs."""
    mpi = next((mpi for mpi in find_mpis() if mpi.name == 'mpich'), None)
    if mpi is None or find_imb(mpi) is None:
        sys.exit('MPICH with an IMB-MPI1 is needed: ./assay run --with mpich --with intelmpi -l')
    return mpi


def run(
    mpi: Mpi, fabric: str, command: list[str], libraries: Path, ranks: int = 2
) -> tuple[str, float]:
    """Standard output and wall seconds of a program on bound ranks."""
    env = environment(mpi, fabric) | {'LD_LIBRARY_PATH': str(libraries)}
    launch = [mpi.launcher, '-n', str(ranks), '-bind-to', 'core', '-map-by', 'core', *command]
    start = time.monotonic()
    done = subprocess.run(launch, env=env, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f'{command[0]} ended with exit code {done.returncode}: {done.stderr.strip()}')
    return done.stdout, time.monotonic() - start


def spread(values: list[float]) -> float:
    """Interquartile range over median."""
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / statistics.median(values)


def verdict(ours: list[float], theirs: list[float]) -> tuple[float, str]:
    """The ratio of the medians, and whether that is near enough to 1: ``yes``, ``NO``, no claim."""
    ratio = statistics.median(ours) / statistics.median(theirs)
    if spread(theirs) > CLAIM:
        return ratio, 'no claim: IMB spread'
    return ratio, 'yes' if abs(ratio - 1) <= CLAIM else 'NO'
