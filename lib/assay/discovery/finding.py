"""The way to a draft: what Slurm tells, the MPIs that are here, and the jobs that ask the nodes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from assay import AssayError, locks, paths, say
from assay.config import settings
from assay.discovery.draft import Asked, Draft, draft
from assay.discovery.partitions import cluster_name, see
from assay.discovery.probing import probe
from assay.machine.mpi import Mpi, find_in, find_mpis
from assay.running import prepare
from assay.spelling import unknown


def file_of(name: str | None) -> Path:
    """The file of a system; of Slurm's cluster if no name is given.

    :raises AssayError: if there is no Slurm here, or no system can have the name.
    """
    if not shutil.which('sbatch'):
        raise AssayError(
            'there is no sbatch on PATH, and `assay init` asks Slurm. A single machine needs no '
            'configuration: ./assay run. For another scheduler copy '
            f'{paths.SYSTEMS / "example-slurm.py"}, and see docs/schedulers.md.'
        )
    name = name or cluster_name()
    if not re.fullmatch(r'[A-Za-z0-9_][A-Za-z0-9_-]*', name):
        raise AssayError(f'a system cannot be called {name!r}: take letters, digits, _ and -')
    return paths.SYSTEMS / f'{name}.py'


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Keeps another `assay init` of the same system out.

    :raises AssayError: if one is under way.
    """
    settings.assert_writable()
    paths.INIT.mkdir(parents=True, exist_ok=True)
    with ExitStack() as opened:
        try:
            opened.enter_context(locks.held(paths.INIT / f'{name}.lock', wait=False))
        except locks.LockedError:
            raise AssayError(f'another `assay init {name}` is under way') from None
        yield


def find(name: str, asked: Asked, patience: float) -> Draft:
    """Look at everything, and submit a job for each type of nodes.

    :param name: of the system.
    :param patience: seconds that the jobs may wait and run.
    :raises AssayError: if nothing is left to make a system of, with the reasons.
    """
    seen = see(asked.partitions, asked.access)
    if not seen.partitions:
        words = [f'{key}: {why}' for key, why in seen.left_out.items()]
        raise AssayError(
            '\n'.join(
                [
                    'no partition of Slurm can be used:',
                    *(words or ['there is none']),
                    'What jobs need is named by --access, such as --access=--account=NAME.',
                ]
            )
        )
    mpis = _chosen(asked.mpis)
    say(f'MPIs: {", ".join(one.name for one in mpis)}')
    found = draft(name, asked, seen, probe(seen, mpis, paths.INIT / name, patience), mpis)
    if not found.partitions:
        raise AssayError('\n'.join(['nothing was found that works:', *found.missing]))
    return found


def _chosen(asked: tuple[str, ...]) -> list[Mpi]:
    """The MPIs that are to be used: all, or those that somebody named.

    :param asked: names of MPIs, and places where others are.
    :raises AssayError: if there is none, or one that was named is not there.
    """
    if not asked:
        return _all()
    found = {one.name: one for one in find_mpis()}
    others = []
    for name in asked:
        if name in found:
            continue
        try:
            others.append(find_in(name))
        except AssayError as error:
            known = unknown(name, 'MPI', found or ['none'])
            raise AssayError(f'--mpi {name}: {known}; {error}') from None
    return [*(one for name, one in found.items() if name in asked), *others]


def _all() -> list[Mpi]:
    """Those of this machine; where it has none, those that come as wheels: nodes have them as well.

    One that cannot be driven, as a vendor's, is none.

    :raises AssayError: if there is none, and none can be had.
    """
    found = find_mpis()
    if any(not one.is_stranger for one in found):
        return found
    strange = [one.fault for one in found if one.fault]
    say('; '.join(strange) or 'there is no MPI on PATH, in modules, or in the usual places')
    try:
        prepare.install_mpis(settings.DEFAULT_SYSTEM, [])
    except AssayError as error:
        raise AssayError(
            'there is no MPI on this machine: put its mpicc and mpirun on PATH, or name its module '
            'or its folder by --mpi, such as --mpi mpi/acme/2.1 or --mpi /opt/acme. The wheels '
            f'that `assay run` uses would do, and cannot be had: {error}'
        ) from None
    return find_mpis()
