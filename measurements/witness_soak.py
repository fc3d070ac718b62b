"""Random MPI programs without the witness and with it: same output, and counts equal to their own.

    .venv/bin/python measurements/witness_soak.py --programs 10000 --minutes 20 [--sanitize]

The program is tests/programs/witness/soak.c, which writes what it called and sent. Each launch runs
a batch of programs, first without the witness, then with it; every second launch has threads. Jobs
use the shared-memory fabric of an MPI. Of a batch that is not the same, the program that differs,
fails or has no end is looked for, in launches of fewer programs, and its seed is told:

    .venv/bin/python measurements/witness_soak.py --mpi mpich --first SEED --programs 1

What fails without the witness is a fault of the MPI or of the program, and is counted apart, as is
what happens in one try and not in the next ("once"): some MPIs hang now and then. With --sanitize
the witness is built with the address and undefined-behaviour sanitizers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

from common import build, environment

from assay import paths
from assay.machine.mpi import Mpi, find_mpis

sys.path.append(str(paths.ROOT / 'tests' / 'support'))

from building import SANITIZED
from running import SURROUNDINGS, YIELDING_COLLECTIVES, Run, run_command
from soaking import STEP, Launch, compare

SOURCE = paths.ROOT / 'tests' / 'programs' / 'witness' / 'soak.c'
#: Programs of a launch: to start the MPI takes as long as some 100.
BATCH = 200
#: What may become of a program.
OUTCOMES = ('same', 'different', 'different once', 'fails alone', 'fails alone once')


def limit(programs: int) -> float:
    """Seconds that a launch may take."""
    return 30 + 0.5 * programs


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
        longest = limit(int(arguments[1]))
        try:
            return run_command([*command, str(program), *arguments], env, folder, longest, folder)
        except subprocess.TimeoutExpired as error:
            out = (error.stdout or b'').decode(errors='replace')
            return Run(-1, out, f'not at an end after {longest:.0f} s', folder)

    return launch


def soak(mpi: Mpi, arguments: argparse.Namespace, folder: Path) -> Counter[str]:
    """How many programs were the same, were different, or failed without the witness."""
    options = [f'-DASSAY_SANITIZE={SANITIZED}'] if arguments.sanitize else []
    witness = build(mpi, folder, *options, target='assay_witness') / 'libassay_witness.so'
    program = folder / 'soak'
    compiler = [mpi.cc, '-std=c11', '-O1', '-g', '-pthread', '-w']
    subprocess.run([*compiler, SOURCE, '-o', program], check=True)
    print(f'{mpi.name}:', file=sys.stderr)
    launch = launcher(mpi, arguments.ranks, program, witness, arguments.sanitize)
    outcomes: Counter[str] = Counter()
    until = time.monotonic() + 60 * arguments.minutes
    for batch in range(0, arguments.programs, BATCH):
        if time.monotonic() > until:
            break
        # Batches in turn have the odd and the even programs of the same numbers.
        pair, second = divmod(batch // BATCH, 2)
        first = arguments.first + pair * BATCH * STEP + second
        programs = min(BATCH, arguments.programs - batch)
        outcomes += try_programs(launch, first, programs, arguments.ranks, folder)
    return outcomes


def try_programs(
    launch: Launch, first: int, programs: int, ranks: int, folder: Path
) -> Counter[str]:
    """How many came to what end; what was not the same is told on stderr."""
    verdict = compare(launch, first, programs, ranks, folder)
    if verdict.outcome == 'same':
        return Counter(same=programs)
    last = f' to {first + (programs - 1) * STEP}' if programs > 1 else ''
    print(f'program {first}{last}: {verdict.outcome}:', *verdict.found, sep='\n  ', file=sys.stderr)
    outcomes: Counter[str] = Counter()
    for skipped, count in parts(programs, verdict.good):
        part = first + skipped * STEP
        if programs > 1:
            outcomes += try_programs(launch, part, count, ranks, folder)
        else:
            outcomes[compare(launch, part, 1, ranks, folder).outcome] += 1
    if outcomes['same'] == programs:
        outcomes = Counter({'same': programs - 1, f'{verdict.outcome} once': 1})
    return outcomes


def parts(programs: int, good: int) -> list[tuple[int, int]]:
    """Where a batch is cut, as (programs before it, programs): around the one that is the reason.

    Where it is not known, in halves.
    """
    cuts = [0, programs // 2, programs] if good == programs else [0, good, good + 1, programs]
    return [(cut, after - cut) for cut, after in pairwise(cuts) if after > cut]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--first', type=int, default=1)
    parser.add_argument('--programs', type=int, default=1000)
    parser.add_argument('--minutes', type=float, default=10, help='that an MPI may take, about')
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
