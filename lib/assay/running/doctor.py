"""Check what this machine has for the suite and what it lacks, with a remedy for each."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Sequence

from assay import AssayError, paths
from assay.config import fabrics, settings
from assay.config.fabrics import never_run
from assay.machine import mpi, topology, wheels
from assay.machine.topology import usable_memory
from assay.spack.tool import find_spack
from assay.text import as_list, many, plain
from assay.vcluster import cluster

SCHEDULERS = {'slurm': 'sbatch', 'pbs': 'qsub', 'flux': 'flux', 'lsf': 'bsub'}


class Findings:
    """Prints as it goes; remembers whether `assay run` can work."""

    def __init__(self) -> None:
        self.can_run = True

    def section(self, title: str) -> None:
        print(f'\n{plain(title)}')

    def confirm(self, text: str) -> None:
        print(f'  ok       {plain(text)}')

    def note(self, text: str) -> None:
        print(f'  -        {plain(text)}')

    def problem(self, text: str) -> None:
        print(f'  PROBLEM  {plain(text)}')
        self.can_run = False


def examine(defects: Sequence[str] = ()) -> bool:
    """Print everything; return whether `assay run` could work on this machine.

    :param defects: what runs have found of known defects, sentences that begin with an MPI.
    """
    found = Findings()
    found.section('Python')
    found.confirm(f'{platform.python_version()} in {sys.prefix}')
    _compilers(found)
    if _checkout(found):  # the rest of what is looked at writes there
        _configuration(found)
        _mpis(found, defects)
    _scheduler(found)
    _spack(found)
    _hardware(found)
    print()
    print('assay run can work here.' if found.can_run else 'assay run cannot work here: see above.')
    return found.can_run


def _checkout(found: Findings) -> bool:
    """Whether it can be written to."""
    found.section('Checkout')
    try:
        settings.assert_writable()
    except AssayError as error:
        found.problem(str(error))
        return False
    found.confirm(f'{paths.ROOT}: can be written to')
    return True


def _compilers(found: Findings) -> None:
    found.section('Compilers and CMake')
    compilers = {n: shutil.which(n) for n in ('cc', 'gcc', 'clang', 'icx', 'c++', 'g++')}
    for name, path in compilers.items():
        if path:
            found.confirm(f'{name}: {path}')
    if not any(compilers[name] for name in ('cc', 'gcc', 'clang', 'icx')):
        found.problem(
            'no C compiler. Install gcc '
            '(Debian: apt install gcc libc6-dev; Red Hat: dnf install gcc)'
        )
    found.confirm(f'cmake: {paths.VENV_BIN / "cmake"}')
    if make := shutil.which('make') or shutil.which('gmake'):
        found.confirm(f'make: {make}')
    else:
        found.problem('no make. Install it (Debian: apt install make; Red Hat: dnf install make)')


def _configuration(found: Findings) -> None:
    found.section('Configuration')
    for system in settings.known_systems():
        try:
            settings.exports(system)
            settings.load_system(system)
        except AssayError as error:
            found.problem(str(error))
        else:
            found.confirm(f'system {system}')


def _mpis(found: Findings, defects: Sequence[str]) -> None:
    try:
        catalogue = fabrics.load_catalogue()
    except AssayError as error:
        found.section('Fabrics')
        found.problem(str(error))
        return
    try:
        known = mpi.find_mpis()
    except AssayError as error:
        found.section('MPI')
        found.problem(str(error))
        return
    for one in known:
        if one.fault:
            found.section(f'MPI {one.name} ({one.source})')
            (found.note if one.is_stranger else found.problem)(one.fault)
            continue
        found.section(f'MPI {one.name}: {one.family} {one.version} in {one.prefix} ({one.source})')
        if one.left_out:
            found.note(one.left_out)
        else:
            found.confirm(f'launcher {one.launcher}')
        if not one.kind.was_run:
            found.note(never_run(one.kind))
        found.confirm(f'C compiler {one.compiler}, called by {one.cc}')
        for fabric in catalogue.fabrics:
            reason = catalogue.why_missing(fabric, one)
            if reason is None:
                found.confirm(f'fabric {fabric}')
            else:
                found.note(f'no fabric {fabric}: {reason}')
        for words in defects:
            if words.startswith(f'{one.kind.name} {one.version} '):
                found.note(words)
    for name in wheels.wheel_names():
        if name not in {one.name for one in known}:
            lacking = name in wheels.NEEDED and name not in {one.family for one in known}
            found.section(f'MPI {name}')
            found.note(
                f'no wheel installed: `assay run{"" if lacking else f" --with {name}"}` installs it'
            )


def _scheduler(found: Findings) -> None:
    found.section('Launchers and schedulers')
    for name in ('mpirun', 'mpiexec', 'srun'):
        if path := shutil.which(name):
            found.confirm(f'{name}: {path}')
    present = {name: shutil.which(command) for name, command in SCHEDULERS.items()}
    for name, path in present.items():
        if path:
            found.confirm(f'{name}: {path}')
    if not any(present.values()):
        found.note('no scheduler: jobs run on this machine (system generic)')
    if lacking := cluster.what_is_missing():
        found.note(f'no virtual cluster: {"; ".join(lacking)}')
    else:
        found.confirm('virtual cluster: `assay cluster up`')


def _spack(found: Findings) -> None:
    found.section('Spack')
    try:
        spack = find_spack()
    except AssayError as error:
        found.note(str(error))
    else:
        found.confirm(f'{spack.version} in {spack.root}: `assay run --with spack`')


def _hardware(found: Findings) -> None:
    found.section('Hardware')
    name, there, usable = topology.names(), topology.this_machine(), topology.usable_topology()
    found.confirm(
        f'{name["model"]} ({name["arch"]}): {len(there.sockets)} socket(s), '
        f'{len(there.domains)} NUMA domain(s), {len(there.cores)} core(s), {len(there.cpus)} CPU(s)'
    )
    if there.offline:
        found.note(f'{many(len(there.offline), "CPU")} offline: {as_list(there.offline)}')
    if there.memory_domains:
        found.note(
            f'NUMA domains without CPUs: {as_list(there.memory_domains)}: no rank sits there'
        )
    if len(kinds := there.core_kinds) > 1:
        numbers = ' + '.join(map(str, kinds))
        found.note(
            f'cores of {len(kinds)} kinds ({numbers}, the fastest first): '
            f'figures that compare cores are not held'
        )
    cores = topology.usable_cores()
    if cores < 2:
        found.problem(
            f'{cores} core may be used, but messages need two ranks. Use more CPUs (see taskset)'
        )
    elif usable.cpus < there.cpus or cores < len(usable.cores):
        found.note(f'this process may use {many(cores, "core")}, of CPUs {as_list(usable.cpus)}')
    found.confirm(f'{usable_memory() / 2**30:.1f} GiB of memory')
