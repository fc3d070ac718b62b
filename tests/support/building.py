"""Building what stands in ``sources`` and in ``tests/programs``."""

from __future__ import annotations

import subprocess
from pathlib import Path

from assay import paths
from assay.machine.mpi import Mpi

SOURCES = paths.SOURCES
FAULTS = paths.ROOT / 'tests' / 'programs' / 'faults'
PROGRAMS = paths.ROOT / 'tests' / 'programs' / 'witness'
CMAKE = str(paths.VENV_BIN / 'cmake')

#: The sanitizers that programs are run under; threads have their own.
SANITIZED = 'address,undefined'


def check_command(command: list[str], env: dict[str, str]) -> None:
    """Run a command that has to succeed without a warning."""
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f'{" ".join(command)}\n{done.stdout}{done.stderr}'
    assert 'warning:' not in done.stdout + done.stderr, done.stdout + done.stderr


def configure(
    mpi: Mpi, env: dict[str, str], folder: Path, *options: str, sources: Path = SOURCES
) -> None:
    """Make a build folder of the sources for an MPI."""
    compilers = [f'-DCMAKE_C_COMPILER={mpi.cc}', f'-DCMAKE_CXX_COMPILER={mpi.cxx}']
    check_command([CMAKE, '-S', str(sources), '-B', str(folder), *compilers, *options], env)


def make(folder: Path, target: str, env: dict[str, str]) -> None:
    """Build a target in a build folder."""
    check_command([CMAKE, '--build', str(folder), '--target', target, '--parallel', '2'], env)
