"""Wrong kernels: which of them do the checks accept?

    ./assay run --with mpich -l   # once: brings an MPI
    .venv/bin/python measurements/mutants.py [--program minife] [--only 'wrong alpha'] [--hard]

Each mutant of ``wrong_kernels`` is one replacement in the sources. Of each the program is built
anew, run at small sizes with the ranks and threads that its file asks for, and what it wrote is
read by the check's own reader, verdict and all. A mutant is noticed if one of the runs is refused.
The unchanged program has to be accepted first. Exit code 1 if a mutant was accepted that is not
listed as equivalent, or if an unchanged program was refused.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from common import environment
from wrong_kernels import Built, Mutant

from assay import paths
from assay.machine.mpi import Mpi, find_mpis

#: Each has MUTANTS, and ``complaint(built, program)``: what the check says of the program's runs,
#: or nothing if it accepts them all.
KINDS = ('minife', 'hpl', 'minimd', 'minighost', 'mpi', 'node')

#: More ranks and threads than cores, which leave these to those that work.
_SHARING = {
    'OMPI_MCA_rmaps_base_oversubscribe': '1',
    'PRTE_MCA_rmaps_default_mapping_policy': ':oversubscribe',
    'OMPI_MCA_mpi_yield_when_idle': '1',
    'MPIR_CVAR_ENABLE_HEAVY_YIELD': '1',
    'OMP_WAIT_POLICY': 'passive',
}


class Workshop:
    """A copy of the sources and a build of them."""

    def __init__(self, folder: Path, mpi: Mpi) -> None:
        """Configure a build with the MPI's compilers in a folder that is empty."""
        self.sources = folder / 'sources'
        shutil.copytree(paths.SOURCES, self.sources)
        env = {**environment(mpi, 'shm'), **_SHARING}
        build = folder / 'build'
        witness = build / 'libassay_witness.so'
        self.built = Built(build, mpi.launcher, env, folder / 'run', witness=witness)
        configure = [f'-DCMAKE_C_COMPILER={mpi.cc}', f'-DCMAKE_CXX_COMPILER={mpi.cxx}']
        # Wrong at any optimisation, and at this one the compiler is done sooner.
        configure += ['-DCMAKE_C_FLAGS=-O1', '-DCMAKE_CXX_FLAGS=-O1']
        self._cmake('-S', str(self.sources), '-B', str(build), *configure)
        self.make('assay_witness')

    def make(self, program: str) -> None:
        """Build a program from the sources as they are."""
        self._cmake('--build', str(self.built.folder), '--target', program, '--parallel', '2')

    def complaint(self, kind: ModuleType, mutant: Mutant) -> str:
        """What the check says of a mutant; empty if it accepts it."""
        path = self.sources / mutant.path
        text = path.read_text()
        if (times := text.count(mutant.before)) != 1:
            place = f'{mutant.before!r} is {times} times in {mutant.path}'
            sys.exit(f'{mutant.program}, {mutant.name}: {place}')
        path.write_text(text.replace(mutant.before, mutant.after))
        try:
            self.make(mutant.program)
            return str(kind.complaint(self.built, mutant.program))
        finally:
            path.write_text(text)

    def _cmake(self, *arguments: str) -> None:
        command = [str(paths.VENV_BIN / 'cmake'), *arguments]
        done = subprocess.run(command, env=dict(self.built.env), capture_output=True, text=True)
        if done.returncode:
            sys.exit(f'{" ".join(command)}\n{done.stdout}{done.stderr}')


def try_all(workshop: Workshop, kind: ModuleType, mutants: Sequence[Mutant]) -> Counter[str]:
    """Try mutants of a kind; how many of a program came to what end."""
    counts: Counter[str] = Counter()
    for program in sorted({mutant.program for mutant in mutants}):
        workshop.make(program)
        if complaint := kind.complaint(workshop.built, program):
            print(f'{program}: REFUSED though nothing is wrong: {complaint}', flush=True)
            counts['refused'] += 1
    for mutant in mutants:
        complaint = workshop.complaint(kind, mutant)
        if mutant.equivalent:
            outcome = 'refused' if complaint else 'equivalent'
        else:
            outcome = 'noticed' if complaint else 'ACCEPTED'
        counts[outcome] += 1
        reason = complaint or mutant.equivalent
        print(f'{mutant.program}: {mutant.name}: {outcome} {reason[:120]}'.rstrip(), flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description='Which wrong kernels do the checks accept?')
    parser.add_argument('--program', help='only those of a program')
    parser.add_argument('--only', metavar='NAME', nargs='+', help='only those of these names')
    parser.add_argument('--hard', action='store_true', help='only the few hardest')
    parser.add_argument('--mpi', help='a name that ./assay knows it by; else the first there is')
    options = parser.parse_args()
    mpis = {mpi.name: mpi for mpi in find_mpis() if not mpi.fault}
    mpi = mpis.get(options.mpi or next(iter(mpis), ''))
    if not mpi:
        sys.exit(f'no such MPI; there are {", ".join(mpis) or "none"}')

    totals: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        workshop = Workshop(Path(name), mpi)
        for kind in (importlib.import_module(f'wrong_kernels.{name}') for name in KINDS):
            chosen = [
                mutant
                for mutant in kind.MUTANTS
                if options.program in (None, mutant.program)
                and (options.only is None or mutant.name in options.only)
                and (mutant.hard or not options.hard)
            ]
            totals += try_all(workshop, kind, chosen)
    print(', '.join(f'{count} {outcome}' for outcome, count in totals.items()) or 'no such mutant')
    if not totals or totals['ACCEPTED'] or totals['refused']:
        sys.exit(1)


if __name__ == '__main__':
    main()
