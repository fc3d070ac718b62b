"""MPIs that come as wheels: each in a prefix of its own, with what its lock file lists."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from assay import locks, paths
from assay.machine.pip import pip
from assay.mpis import FAMILIES

#: The families that the generic system needs: it installs the wheel of one that the machine lacks.
NEEDED = tuple(key for key, family in FAMILIES.items() if family.is_needed)

#: Written last into a prefix, so that a half-made one has none.
STAMP = '.assay-lock'


def wheel_names() -> list[str]:
    """The MPIs that ``install_wheel`` knows: one lock file each in ``config/mpi``."""
    return sorted(path.stem for path in paths.MPI_LOCKS.glob('*.lock'))


def install_wheel(name: str, log: Path) -> bool:
    """Install the wheels of ``config/mpi/<name>.lock`` into their prefix, unless they are there.

    :param log: where pip's output goes.
    :returns: whether anything had to be installed.
    :raises AssayError: if pip fails, saying what could not be fetched.
    """
    lock = paths.MPI_LOCKS / f'{name}.lock'
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    prefix = paths.MPI_PREFIXES / name
    stamp = prefix / STAMP
    if stamp.is_file() and stamp.read_text() == wanted:
        return False
    paths.MPI_PREFIXES.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    with locks.held(paths.MPI_PREFIXES / f'{name}.install-lock'):
        if stamp.is_file() and stamp.read_text() == wanted:
            return False  # another run has just installed it
        new = prefix.with_name(f'{name}.new')
        shutil.rmtree(new, ignore_errors=True)
        options = ['--ignore-installed', '--no-compile', '--no-warn-script-location']
        pip(f'installing {name}', log, 'install', *options, '--prefix', str(new), '-r', str(lock))
        (new / STAMP).write_text(wanted)
        shutil.rmtree(prefix, ignore_errors=True)
        new.rename(prefix)
    return True
