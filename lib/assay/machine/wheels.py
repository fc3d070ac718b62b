"""MPIs that come as wheels: each in a prefix of its own, with what its lock file lists."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

from assay import AssayError, locks, paths
from assay.mpis import FAMILIES


def pip(purpose: str, log: Path, command: str, *options: str) -> None:
    """Have pip do something with the wheels of lock files, and with no others.

    :param purpose: what it is for, for the message of a failure: ``installing mpich``.
    :param log: where its output goes.
    :raises AssayError: if it fails, saying what could not be fetched.
    """
    words = [sys.executable, '-m', 'pip', command, '--disable-pip-version-check', '--no-input']
    words += ['--require-hashes', '--only-binary', ':all:', *options]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open('w') as out:
        code = subprocess.run(words, stdout=out, stderr=subprocess.STDOUT).returncode
    if code == 0:
        return
    text = log.read_text(errors='replace')
    missing = re.search(r'No matching distribution found for (\S+)', text)
    if missing and paths.BUNDLE.exists():
        raise AssayError(
            f'the bundle in use, {paths.BUNDLE.resolve()}, has no {missing[1]} that fits this '
            f"machine: make one that has, with `assay bundle create`. pip's log: {log}"
        )
    if missing:
        raise AssayError(
            f'cannot fetch {missing[1]}: that needs a package index that this machine reaches and '
            'that has it for this platform. Connect the machine, name a mirror with PIP_INDEX_URL, '
            f"or bring a bundle (docs/closed-networks.md). pip's log: {log}"
        )
    last = ' / '.join(line.strip() for line in text.splitlines()[-3:])
    raise AssayError(f"{purpose} failed: {last}. pip's log: {log}")


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
    :returns: whether anything had to be installed, by this run or by one that it waited for.
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
    with locks.hold_lock(paths.MPI_PREFIXES / f'{name}.install-lock'):
        if stamp.is_file() and stamp.read_text() == wanted:
            return True  # another run has just installed it
        new = prefix.with_name(f'{name}.new')
        shutil.rmtree(new, ignore_errors=True)
        options = ['--ignore-installed', '--no-compile', '--no-warn-script-location']
        pip(f'installing {name}', log, 'install', *options, '--prefix', str(new), '-r', str(lock))
        (new / STAMP).write_text(wanted)
        shutil.rmtree(prefix, ignore_errors=True)
        new.rename(prefix)
    return True
