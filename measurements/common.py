"""What the measurements share: building the sources, and running ranks on this machine alone."""

from __future__ import annotations

import os
import statistics
import subprocess
from pathlib import Path

from assay import paths
from assay.config.environments import AS_ROOT, tcp_over
from assay.config.fabrics import load_catalogue
from assay.machine.mpi import Mpi

# All traffic on the loopback interface; Open MPI starts as root only when it is told so.
SURROUNDINGS = dict(AS_ROOT + tcp_over('lo'))


def build(mpi: Mpi, folder: Path, *options: str, target: str = 'all') -> Path:
    """Build the sources with the MPI's compilers; returns the folder that the programs are in."""
    cmake = paths.VENV_BIN / 'cmake'
    configure = [cmake, '-S', paths.SOURCES, '-B', folder]
    configure += [f'-DCMAKE_C_COMPILER={mpi.cc}', f'-DCMAKE_CXX_COMPILER={mpi.cxx}']
    configure += ['-DCMAKE_C_FLAGS=-march=native', '-DCMAKE_CXX_FLAGS=-march=native']
    make = [cmake, '--build', folder, '--target', target, '--parallel', '2']
    for command in ([*configure, *options], make):
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **mpi.env}
        )
    return folder


def environment(mpi: Mpi, fabric: str) -> dict[str, str]:
    """Variables for a launcher and its ranks on a fabric."""
    recipe = load_catalogue().recipe(fabric, mpi.family)
    path = f'{mpi.bindir}:{os.environ["PATH"]}'
    return {**os.environ, **SURROUNDINGS, **recipe.env, **mpi.env, 'PATH': path}


def interval(values: list[float]) -> tuple[float, float, float]:
    """Median, and its 95% interval from order statistics (binomial, p = 1/2)."""
    ordered = sorted(values)
    skip = max(0, int(len(ordered) / 2 - 0.98 * len(ordered) ** 0.5))
    return statistics.median(ordered), ordered[skip], ordered[-1 - skip]
