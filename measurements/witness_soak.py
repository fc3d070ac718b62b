"""Random MPI programs without the witness and with it: same output, and counts equal to their own.

    .venv/bin/python measurements/witness_soak.py --programs 10000 --minutes 10 [--sanitize]

The program is tests/programs/witness/soak.c, which writes what it called and sent. Each launch runs
a batch of programs, first without the witness, then with it; every second launch has threads. Jobs
use the shared-memory fabric of an MPI. Batches that fail without the witness are faults of the MPI
or of the program, and are counted apart, as are those that differ in one try and not in the next:
some MPIs hang now and then. With --sanitize the witness is built with the address and
undefined-behaviour sanitizers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from common import build, environment

from assay import paths
from assay.machine.mpi import Mpi, find_mpis

sys.path.append(str(paths.ROOT / 'tests' / 'support'))

from building import SANITIZED
from running import SURROUNDINGS, YIELDING_COLLECTIVES, Run, run_command
from soaking import FailsAloneError, Launch, differences

SOURCE = paths.ROOT / 'tests' / 'programs' / 'witness' / 'soak.c'
#: Programs of a launch, odd so that the first seeds are odd and even in turn, and seconds that it
#: may take.
BATCH, LIMIT = 21, 90
#: What may become of a batch.
OUTCOMES = ('same', 'different', 'different once', 'fails alone')


def launcher(mpi: Mpi, ranks: int, program: Path, witness: Path, sanitized: bool) -> Launch:
    """Runs the program on an MPI of this machine."""
    variables = {**environment(mpi, 'shm'), **SURROUNDINGS, **YIELDING_COLLECTIVES}
    preload = [str(witness)]
    if sanitized:
        # The program frees nothing that it leaves to the end, and nor do the MPIs.
        variables['ASAN_OPTIONS'] = 'detect_leaks=0'
        question = [mpi.cc, '-print-file-name=libasan.so']
        runtime = subprocess.run(question, capture_output=True, text=True, check=True)
        preload.insert(0, runtime.stdout.strip())

    def launch(arguments: list[str], folder: Path, witnessed: bool) -> Run:
        command = [mpi.launcher, '-n', str(ranks)]
        if witnessed:
            command += ['env', f'LD_PRELOAD={":".join(preload)}']
        env = {**variables, 'ASSAY_WITNESS_REPORT': str(folder / 'report.json')}
        try:
            return run_command([*command, str(program), *arguments], env, folder, LIMIT, folder)
        except subprocess.TimeoutExpired:
            return Run(-1, '', f'not at an end after {LIMIT} s', folder)

    return launch


def soak(mpi: Mpi, arguments: argparse.Namespace, folder: Path) -> Counter[str]:
    """How many programs were the same, were different, or failed without the witness."""
    options = [f'-DASSAY_SANITIZE={SANITIZED}'] if arguments.sanitize else []
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
        outcome, found = try_batch(launch, first, arguments.ranks, folder)
        outcomes[outcome] += BATCH
        for one in found:
            print(f'{mpi.name}, program {first} and on, {outcome}: {one}', file=sys.stderr)
    return outcomes


def try_batch(launch: Launch, first: int, ranks: int, folder: Path) -> tuple[str, list[str]]:
    """What became of a batch, one of :data:`OUTCOMES`, and what was not as it should be."""
    found: list[str] = []
    try:
        if found := differences(launch, first, BATCH, ranks, folder):
            again = differences(launch, first, BATCH, ranks, folder)
            return 'different' if again else 'different once', found
    except FailsAloneError as error:
        return 'fails alone', [*found, str(error)]
    return 'same', []


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--first', type=int, default=1)
    parser.add_argument('--programs', type=int, default=1000)
    parser.add_argument('--minutes', type=float, default=10, help='that an MPI may take')
    parser.add_argument('--ranks', type=int, default=4)
    parser.add_argument('--sanitize', action='store_true')
    parser.add_argument('--mpi', nargs='+', help='names; else all but Intel MPI, which hangs')
    arguments = parser.parse_args()
    mpis = {mpi.name: mpi for mpi in find_mpis() if not mpi.fault}
    names = arguments.mpi or [name for name, mpi in mpis.items() if mpi.family != 'intelmpi']
    if unknown := set(names) - set(mpis):
        sys.exit(f'no such MPI: {", ".join(sorted(unknown))}; there are {", ".join(mpis)}')
    print('| MPI | ranks | programs | ' + ' | '.join(OUTCOMES) + ' | minutes |')
    print('|---|---:|---:|' + '---:|' * len(OUTCOMES) + '---:|')
    for mpi in map(mpis.__getitem__, names):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as name:
            outcomes = soak(mpi, arguments, Path(name))
        counts = [outcomes[name] for name in OUTCOMES]
        minutes = (time.monotonic() - began) / 60
        cells = [f'{mpi.name} {mpi.version}', arguments.ranks, outcomes.total(), *counts]
        print('| ' + ' | '.join(map(str, [*cells, f'{minutes:.1f}'])) + ' |', flush=True)


if __name__ == '__main__':
    main()
