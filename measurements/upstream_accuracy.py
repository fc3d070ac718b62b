"""Our benchmarks beside those of IMB and OSU that measure the same: same MPI, fabric, cores.

    ./assay run --with mpich --with intelmpi -l   # once: IMB comes with Intel MPI
    .venv/bin/python measurements/upstream_accuracy.py --osu FOLDER --keep runs.json

FOLDER is a tree of the OSU Micro-Benchmarks, built with the mpicc of that MPICH; without it only
IMB is run. Each command measures for --seconds and prints the table of all that --keep has. Given
again it goes on, with what was measured least often; --seconds 0 only prints.

All cores have a rank (-npmin), but for messages between two ranks. Of each program the least of its
runs counts: whatever else the machine does makes a run longer, and none shorter. Odd runs and even
runs tell how well that is known: where the least of the one and that of the other are more than 5%
apart, no claim is made about 5%.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from against_imb import CLAIM, mpich, run
from common import build

from assay.machine.mpi import Mpi, find_imb
from assay.machine.topology import usable_cores
from assay.programs.imb import read_imb_tables

#: Rounds without which no claim is made: of fewer the odd and the even ones may agree by chance.
ROUNDS = 10
SIZES = (8, 1 << 10, 64 << 10)
#: IMB-RMA's tables of operations that are completed together.
AGGREGATE = re.compile(
    r'# Benchmarking (?:(?!# Benchmarking|# All processes).)*MODE: AGGREGATE'
    r'(?:(?!# Benchmarking|# All processes).)*',
    re.DOTALL,
)

Times = dict[str, dict[int, float]]
"""Seconds, by operation and size."""
Kept = dict[str, list[list[float]]]
"""Our seconds and theirs, of each round."""


@dataclass(frozen=True)
class Twins:
    """One of our programs, and one of IMB or several of OSU.

    :param program: ours, with its options.
    :param tables: by operation of ours, the table of IMB or the program of OSU.
    :param upstream: the program of IMB; the folder of OSU's programs.
    :param options: of the upstream's program.
    :param named: the option of ours that chooses operations, and their name in its report.
    :param in_list: whether sizes are listed in one option of ours.
    :param sizes: bytes.
    :param is_pair: whether two ranks have part, and not one on each core.
    :param column: of OSU's, behind that of the size, in microseconds.
    """

    name: str
    program: str
    ours: Sequence[str]
    tables: dict[str, str]
    upstream: str
    options: Sequence[str] = ()
    named: str = 'op'
    in_list: bool = False
    sizes: Sequence[int] = SIZES
    is_pair: bool = False
    column: int = -1

    @property
    def is_imb(self) -> bool:
        return self.upstream.startswith('IMB-')

    def key(self, op: str, size: int) -> str:
        """Of what is kept."""
        return f'{self.name}|{op}|{"IMB" if self.is_imb else "OSU"} {self.tables[op]}|{size}'

    def rounds(self, kept: Kept) -> int:
        """How often they were measured."""
        return max(len(kept.get(self.key(op, self.sizes[-1]), ())) for op in self.tables)


# Called back to back in ours, and in IMB with -sync off.
WITHOUT_ROOT = {
    'allreduce': 'Allreduce',
    'allgather': 'Allgather',
    'alltoall': 'Alltoall',
    'allgatherv': 'Allgatherv',
    'alltoallv': 'Alltoallv',
    'reduce_scatter': 'Reduce_scatter_block',
}
# A barrier before each call in both.
WITH_ROOT = {name: name.capitalize() for name in ('bcast', 'reduce', 'scatter', 'gather')}
WITH_ROOT |= {name: name.capitalize() for name in ('scatterv', 'gatherv')}
# As many as a batch of ours has: a run's mean is of them all.
OF_SOME = ('-i', '300', '-x', '30')
# OSU has a barrier between calls of all operations, and its reduce_scatter other sizes. Its
# reductions add up single bytes unless it is told otherwise. The mean of the slowest rank counts.
ONE_BY_ONE = [*[*WITHOUT_ROOT][:-1], *WITH_ROOT]
OF_CALLS = ('-f', *OF_SOME, '-T', 'mpi_float')
OF_SLOWEST = 2
# OSU accumulates single bytes, and ours doubles.
ONE_SIDED = {'put': 'osu_put_latency', 'get': 'osu_get_latency'}
# Of IMB's rates: bytes that a rank moves for each of the size.
RATES = {'Sendrecv': 2, 'Exchange': 4}


ALL = (
    Twins(
        'ping-pong',
        'pt2pt',
        (),
        {'ping-pong': 'PingPong', 'ping-ping': 'PingPing'},
        'IMB-MPI1',
        named='pattern',
        is_pair=True,
    ),
    Twins(
        'ping-pong',
        'pt2pt',
        (),
        {'ping-pong': 'osu_latency'},
        'pt2pt/standard',
        OF_SOME,
        named='pattern',
        is_pair=True,
    ),
    Twins(
        'chain',
        'pt2pt',
        (),
        {'sendrecv': 'Sendrecv', 'exchange': 'Exchange'},
        'IMB-MPI1',
        ('-sync', 'off'),
        named='pattern',
    ),
    Twins(
        'persistent messages',
        'partitioned',
        ('--partitions', '1'),
        {'whole': 'osu_latency_persistent'},
        'pt2pt/persistent',
        OF_SOME,
        named='way',
        in_list=True,
        sizes=SIZES[1:],
        is_pair=True,
    ),
    Twins('collectives', 'collectives', (), WITHOUT_ROOT, 'IMB-MPI1', ('-sync', 'off')),
    Twins('collectives', 'collectives', (), WITH_ROOT, 'IMB-MPI1'),
    Twins(
        'collectives, one by one',
        'collectives',
        ('--start', 'barrier'),
        {name: f'osu_{name}' for name in ONE_BY_ONE},
        'collective/blocking',
        OF_CALLS,
        column=OF_SLOWEST,
    ),
    Twins(
        'persistent, one by one',
        'collectives',
        ('--call', 'persistent', '--start', 'barrier'),
        {name: f'osu_{name}_persistent' for name in ONE_BY_ONE},
        'collective/persistent',
        OF_CALLS,
        column=OF_SLOWEST,
    ),
    Twins(
        'nonblocking',
        'collectives',
        ('--call', 'nonblocking'),
        {name: f'I{name}_pure' for name in ('allreduce', 'allgather', 'alltoall')},
        'IMB-NBC',
        ('-sync', 'off'),
    ),
    Twins(
        'nonblocking',
        'collectives',
        ('--call', 'nonblocking'),
        {name: f'I{name}_pure' for name in ('bcast', 'reduce', 'scatter', 'gather')},
        'IMB-NBC',
    ),
    Twins(
        'one-sided, flush',
        'onesided',
        ('--sync', 'flush'),
        {'put': 'Unidir_put', 'get': 'Unidir_get', 'accumulate': 'Accumulate'}
        | {'fetch_add': 'Fetch_and_op'},
        'IMB-RMA',
        is_pair=True,
    ),
    *(
        Twins(
            f'one-sided, {sync}',
            'onesided',
            ('--sync', sync),
            ONE_SIDED,
            'one-sided',
            ('-w', 'create', '-s', sync, *OF_SOME),
            is_pair=True,
        )
        for sync in ('fence', 'pscw', 'lock', 'flush')
    ),
)


@dataclass(frozen=True)
class Job:
    """How programs are started.

    :param build: the folder of ours.
    :param folder: for files.
    :param osu: the tree of OSU's.
    """

    mpi: Mpi
    fabric: str
    all_ranks: int
    build: Path
    folder: Path
    osu: Path | None

    def start(self, twins: Twins, command: list[str]) -> str:
        ranks = 2 if twins.is_pair else self.all_ranks
        return run(self.mpi, self.fabric, command, find_imb(self.mpi).libraries, ranks)[0]


def ours(twins: Twins, job: Job) -> Times:
    result = job.folder / 'result.json'
    listed = ','.join(map(str, twins.sizes))
    command = [str(job.build / twins.program), f'--{twins.named}', ','.join(twins.tables)]
    command += twins.ours
    command += ['--sizes', listed] if twins.in_list else ['--focus', listed, '--min', '8']
    command += [] if twins.in_list else ['--max', str(twins.sizes[-1])]
    job.start(twins, [*command, '--budget', '0.005', '--json', str(result)])
    times: Times = {}
    for entry in json.loads(result.read_text())['results']:
        times.setdefault(entry[twins.named], {})[entry['size']] = entry['time']['best']
    return times


def of_imb(twins: Twins, job: Job) -> Times:
    """The slowest rank's times, as ours are; by the rates, which have more digits, where it has."""
    sizes = job.folder / 'sizes'
    sizes.write_text(''.join(f'{size}\n' for size in twins.sizes))
    program = find_imb(job.mpi).program.with_name(twins.upstream)
    ranks = 2 if twins.is_pair else job.all_ranks
    command = [str(program), '-npmin', str(ranks), '-iter', '100,4', '-msglen', str(sizes)]
    output = job.start(twins, [*command, *twins.options, *twins.tables.values()])
    output = AGGREGATE.sub('', output).replace('t_avg', 't_mean').replace('t_max', 't_avg')
    tables = read_imb_tables(output)
    return {
        op: {
            row.size: RATES.get(table, 1) * row.size / row.bandwidth if row.bandwidth else row.time
            for row in tables[table][1]
        }
        for op, table in twins.tables.items()
    }


def of_osu(twins: Twins, job: Job) -> Times:
    assert job.osu
    times: Times = {}
    for op, program in twins.tables.items():
        path = job.osu / 'c' / 'mpi' / twins.upstream / program
        limits = ['-m', f'{twins.sizes[0]}:{twins.sizes[-1]}']
        output = job.start(twins, [str(path), *twins.options, *limits])
        rows = re.findall(r'^(\d+) +([\d. ]+)$', output, re.MULTILINE)
        times[op] = {
            int(size): 1e-6 * float(row.split()[twins.column])
            for size, row in rows
            if int(size) in twins.sizes
        }
    return times


def table(kept: Kept) -> Iterator[str]:
    """A line for each operation: at each size ours over theirs, and whether it is within 5%."""
    names = [f'{size >> 10} KiB' if size >= 1 << 10 else f'{size} B' for size in SIZES]
    yield f'| benchmark | operation | beside | {" | ".join(names)} |'
    yield f'|---|---|---|{"---|" * len(SIZES)}'
    rows: dict[tuple[str, str, str], dict[int, list[list[float]]]] = {}
    for key, pairs in kept.items():
        name, op, upstream, size = key.split('|')
        if len(pairs) > 1:  # of one nobody knows how far another would be off
            rows.setdefault((name, op, upstream), {})[int(size)] = pairs
    for of, by_size in rows.items():
        cells = [_cell(by_size[size]) if size in by_size else '' for size in SIZES]
        yield f'| {" | ".join((*of, *cells))} |'


def _cell(pairs: list[list[float]]) -> str:
    mine, theirs = (sorted(values) for values in zip(*pairs, strict=True))
    ratio = mine[0] / theirs[0]
    odd, even = (min(other for _, other in pairs[start::2]) for start in (0, 1))
    apart = max(odd, even) / min(odd, even) - 1
    if apart > CLAIM or len(pairs) < ROUNDS:
        return f'{ratio:.2f} (no claim: {apart:.0%})'
    return f'**{ratio:.2f}**' if abs(ratio - 1) <= CLAIM else f'{ratio:.2f}'


def measure(kept: Kept, job: Job, seconds: float, file: Path) -> None:
    """Add rounds to what is kept, until the time is over."""
    end = time.monotonic() + seconds
    chosen = [one for one in ALL if one.is_imb or job.osu]
    while time.monotonic() < end:
        twins = min(chosen, key=lambda one: one.rounds(kept))
        theirs = of_imb(twins, job) if twins.is_imb else of_osu(twins, job)
        mine = ours(twins, job)
        for op, times in theirs.items():
            for size in sorted({*times} & {*mine[op]}):
                pair = [mine[op][size], times[size]]
                kept.setdefault(twins.key(op, size), []).append(pair)
        file.write_text(json.dumps(kept))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--keep', type=Path, required=True, help='JSON file of all rounds')
    parser.add_argument('--seconds', type=float, default=300, help='for more rounds')
    parser.add_argument('--ranks', type=int, default=max(2, usable_cores()))
    parser.add_argument('--fabric', default='shm')
    parser.add_argument('--osu', type=Path, help='built tree of the OSU Micro-Benchmarks')
    parser.add_argument('--build', type=Path, help='folder of our programs, to build them once')
    arguments = parser.parse_args()
    kept = json.loads(arguments.keep.read_text()) if arguments.keep.exists() else {}
    if arguments.seconds:
        mpi = mpich()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            built = arguments.build or folder / 'build'
            for program in sorted({one.program for one in ALL}):
                build(mpi, built, target=program)
            job = Job(mpi, arguments.fabric, arguments.ranks, built, folder, arguments.osu)
            measure(kept, job, arguments.seconds, arguments.keep)
    rounds = [one.rounds(kept) for one in ALL if one.is_imb or arguments.osu]
    print(
        f'{min(rounds)} to {max(rounds)} rounds, {arguments.ranks} ranks, {arguments.fabric}\n',
        file=sys.stderr,
    )
    print('\n'.join(table(kept)))


if __name__ == '__main__':
    main()
