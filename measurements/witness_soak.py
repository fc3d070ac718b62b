"""Random MPI programs without the witness and with it: same output, and counts equal to their own.

    .venv/bin/python measurements/witness_soak.py --programs 10000 --minutes 10 [--sanitize]

The program is tests/programs/witness/soak.c, which writes what it called and sent. Each launch runs
a batch of programs, first without the witness, then with it. Jobs use the shared-memory fabric of an
MPI. Batches that fail without the witness show faults of the MPI, and are counted apart. With
--sanitize the witness is built with the address and undefined-behaviour sanitizers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay import paths
from assay.machine.mpi import Mpi, find_mpis
from common import build, environment

SOURCE = paths.ROOT / 'tests' / 'programs' / 'witness' / 'soak.c'
#: Operations of a program, programs of a launch, and seconds that one may take.
OPERATIONS, BATCH, LIMIT = 30, 20, 60
SANITIZERS = 'address,undefined'

Launch = Callable[[list[str], Path, bool], 'subprocess.CompletedProcess[str]']


class FailsAlone(Exception):
    """The programs fail without the witness."""


def differences(launch: Launch, first: int, programs: int, ranks: int, folder: Path) -> list[str]:
    """What is not the same with the witness as without it, or not as the programs counted.

    :param launch: runs the program with these arguments, in a folder, with the witness or without.
    :raises FailsAlone: if there is nothing to compare with.
    """
    arguments = [str(first), str(programs), str(OPERATIONS)]
    without = launch(arguments, folder, False)
    if without.returncode:
        raise FailsAlone(f'exit code {without.returncode}: {without.stderr[-2000:]}')
    with_it = launch(arguments, folder, True)
    if with_it.returncode:
        return [f'exit code {with_it.returncode}: {with_it.stderr[-2000:]}']
    if sorted(with_it.stdout.splitlines()) != sorted(without.stdout.splitlines()):
        return [f'output: {with_it.stdout}, without the witness: {without.stdout}']
    report = json.loads((folder / 'report.json').read_text())
    found = [] if report['complete'] else ['the report is not complete']
    for rank in range(ranks):
        counted = json.loads((folder / f'soak-{rank}.json').read_text())
        found += differences_of_rank(report['processes'][rank], counted)
    return found


def differences_of_rank(process: dict[str, Any], counted: dict[str, Any]) -> list[str]:
    """Where a process of the report is not what its rank counted."""
    rank = process['rank']
    calls = {name: [call['count'], call['bytes']] for name, call in process['calls'].items()}
    found = [
        f'rank {rank}: {name}: {calls.get(name)}, counted {counted["calls"].get(name)}'
        for name in sorted({*calls, *counted['calls']})
        if calls.get(name) != counted['calls'].get(name)
    ]
    partners, own = ({one['rank']: one for one in side} for side in (process['partners'],
                                                                     counted['partners']))
    return found + [
        f'rank {rank} to {to}: {partners.get(to)}, counted {own.get(to)}'
        for to in sorted({*partners, *own})
        if partners.get(to) != own.get(to)
    ]


def launcher(mpi: Mpi, ranks: int, program: Path, witness: Path, sanitized: bool) -> Launch:
    """Runs the program on an MPI of this machine."""
    variables = {**environment(mpi, 'shm'), 'OMPI_MCA_rmaps_base_oversubscribe': '1'}
    variables |= {'PRTE_MCA_rmaps_default_mapping_policy': ':oversubscribe'}
    variables |= {'OMPI_MCA_mpi_yield_when_idle': '1', 'MPIR_CVAR_ENABLE_HEAVY_YIELD': '1'}
    variables |= {'MPIR_CVAR_POLLS_BEFORE_YIELD': '100'}
    for name in ('ALLREDUCE', 'BARRIER', 'BCAST', 'REDUCE'):
        variables[f'MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM'] = 'mpir'
    preload = [str(witness)]
    if sanitized:
        # Leaks are looked for by tests of programs that free all they have.
        variables |= {'ASAN_OPTIONS': 'detect_leaks=0', 'UBSAN_OPTIONS': 'print_stacktrace=1'}
        question = [mpi.cc, '-print-file-name=libasan.so']
        runtime = subprocess.run(question, capture_output=True, text=True, check=True)
        preload.insert(0, runtime.stdout.strip())

    def launch(
        arguments: list[str], folder: Path, witnessed: bool
    ) -> subprocess.CompletedProcess[str]:
        command = [mpi.launcher, '-n', str(ranks)]
        if witnessed:
            command += ['env', f'LD_PRELOAD={":".join(preload)}']
        command += [str(program), *arguments]
        env = {**variables, 'ASSAY_WITNESS_REPORT': str(folder / 'report.json')}
        command = ['timeout', '-k', '10', str(LIMIT), *command]
        return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True)

    return launch


def soak(mpi: Mpi, arguments: argparse.Namespace, folder: Path) -> Counter[str]:
    """How many programs were the same, were different, or failed without the witness."""
    options = [f'-DASSAY_SANITIZE={SANITIZERS}'] if arguments.sanitize else []
    witness = build(mpi, folder, *options, target='assay_witness') / 'libassay_witness.so'
    program = folder / 'soak'
    compiler = [mpi.cc, '-std=c11', '-O1', '-g', '-pthread', '-w']
    subprocess.run([*compiler, SOURCE, '-o', program], check=True)
    launch = launcher(mpi, arguments.ranks, program, witness, arguments.sanitize)
    outcomes: Counter[str] = Counter()
    until = time.monotonic() + 60 * arguments.minutes
    for first in range(arguments.first, arguments.first + arguments.programs, BATCH):
        if time.monotonic() > until:
            break
        try:
            found = differences(launch, first, BATCH, arguments.ranks, folder)
            outcome = 'different' if found else 'same'
        except FailsAlone as error:
            found, outcome = [str(error)], 'fails alone'
        outcomes[outcome] += BATCH
        for one in found:
            print(f'{mpi.name}, program {first} and on, {outcome}: {one}', file=sys.stderr)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--first', type=int, default=1)
    parser.add_argument('--programs', type=int, default=1000)
    parser.add_argument('--minutes', type=float, default=10, help='that an MPI may take')
    parser.add_argument('--ranks', type=int, default=4)
    parser.add_argument('--sanitize', action='store_true')
    parser.add_argument('--mpi', nargs='+', default=['openmpi', 'mpich'])
    arguments = parser.parse_args()
    print('| MPI | ranks | programs | same | different | fail without the witness | minutes |')
    print('|---|---:|---:|---:|---:|---:|---:|')
    for mpi in find_mpis():
        if mpi.name not in arguments.mpi:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as name:
            outcomes = soak(mpi, arguments, Path(name))
        counts = [outcomes[name] for name in ('same', 'different', 'fails alone')]
        minutes = (time.monotonic() - began) / 60
        cells = [f'{mpi.name} {mpi.version}', arguments.ranks, outcomes.total(), *counts]
        print('| ' + ' | '.join(map(str, [*cells, f'{minutes:.1f}'])) + ' |', flush=True)


if __name__ == '__main__':
    main()
