"""Building what stands in ``sources`` and in ``tests/programs``."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import fasteners

from assay import paths
from assay.machine.mpi import Mpi
from assay.machine.provenance import checksum

SOURCES = paths.SOURCES
FAULTS = paths.ROOT / 'tests' / 'programs' / 'faults'
PROGRAMS = paths.ROOT / 'tests' / 'programs' / 'witness'
CMAKE = str(paths.VENV_BIN / 'cmake')

#: The sanitizers that programs are run under; threads have their own.
SANITIZED = 'address,undefined'


#: Folders of builds that stay: those of three MPIs, before and after a change.
KEPT = 6

#: What the folder of builds by an MPI is called.
_BUILDS = re.compile(r'[0-9a-f]{16}')

#: What compilers, linker and CMake heed in the environment; a launcher's leave to run is none.
_STEERS = re.compile(
    r'CMAKE_|(C|CXX|CPP|LD)FLAGS$|.*(LIBRARY|INCLUDE)_PATH$|.*(?<!RUN_AS)_ROOT$|.*BLAS'
)


def check_command(command: list[str], env: dict[str, str]) -> None:
    """Run a command that has to succeed without a warning."""
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f'{" ".join(command)}\n{done.stdout}{done.stderr}'
    assert 'warning:' not in done.stdout + done.stderr, done.stdout + done.stderr


def kept_builds(mpi: Mpi, env: dict[str, str]) -> Path:
    """Where builds of the sources by an MPI stay for later tests.

    It is another folder as soon as anything differs that they depend on. The newest few are kept.
    """
    # Which PATH does not lead to but for root.
    libraries = shutil.which('ldconfig', path=f'{env.get("PATH", "")}:/usr/sbin:/sbin') or 'true'
    commands = ([mpi.cc, '-show'], [mpi.cc, '-v'], [CMAKE, '--version'], [libraries, '-p'])
    answers = [subprocess.run(one, env=env, capture_output=True) for one in commands]
    said = [(one.stdout, one.stderr) for one in answers]
    steering = sorted(f'{name}={value}' for name, value in env.items() if _STEERS.match(name))
    facts = repr([checksum(), mpi.description, str(paths.VENV_BIN), steering, said])
    folder = paths.STATE / 'tests' / hashlib.sha256(facts.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    remove_old(folder.parent)
    return folder


def remove_old(folder: Path) -> None:
    """Keep the newest builds. Beside them are the runs of this session, which may be under way."""
    builds = [path for path in folder.iterdir() if _BUILDS.fullmatch(path.name)]
    for old in sorted(builds, key=os.path.getmtime)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def configure(
    mpi: Mpi, env: dict[str, str], folder: Path, *options: str, sources: Path = SOURCES
) -> None:
    """Make a build folder of the sources for an MPI."""
    compilers = [f'-DCMAKE_C_COMPILER={mpi.cc}', f'-DCMAKE_CXX_COMPILER={mpi.cxx}']
    check_command([CMAKE, '-S', str(sources), '-B', str(folder), *compilers, *options], env)


def make(folder: Path, target: str, env: dict[str, str]) -> None:
    """Build a target in a build folder."""
    check_command([CMAKE, '--build', str(folder), '--target', target, '--parallel', '2'], env)


def build_once(
    kept: Path, mpi: Mpi, env: dict[str, str], target: str, sanitizers: str = ''
) -> Path:
    """Build a target where no other test has built it; returns the folder it is in.

    :param kept: :func:`kept_builds` of that MPI.
    """
    folder = kept / (sanitizers or 'plain')
    with fasteners.InterProcessLock(folder.with_suffix('.lock')):
        try:
            if not (folder / 'Makefile').exists():
                configure(mpi, env, folder, f'-DASSAY_SANITIZE={sanitizers}')
            make(folder, target, env)
        except BaseException:  # what has been compiled would warn no more
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder
