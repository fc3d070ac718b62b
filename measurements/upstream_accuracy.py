"""Our benchmarks beside those of IMB and OSU that measure the same: same MPI, fabric, cores.

    ./assay run --with mpich --with intelmpi -l   # once: IMB comes with Intel MPI
    .venv/bin/python measurements/upstream_accuracy.py --osu FOLDER --keep runs.json --seconds 900

FOLDER is a built tree of the OSU Micro-Benchmarks; without it only IMB is run. Programs run in
turn, one after the other, and each round of all of them is added to the file of --keep, from which
the table is made: so a measurement can go on where it stopped, and --seconds 0 prints the table.

All ranks take part (-npmin). Of each program the least of its runs counts: whatever else the
machine does makes a run longer, and none shorter. Odd runs and even runs tell how well that is
known: where the least of the one and that of the other are more than 5% apart, no claim is made
about 5%.
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
from assay.programs.imb import parse

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


@dataclass(frozen=True)
class Twins:
    """One of our programs, and one of IMB or several of OSU.

    :param program: ours, with its options.
    :param tables: by operation of ours, the table of IMB or the program of OSU.
    :param upstream: the program of IMB; the folder of OSU's programs.
    :param options: of the upstream's program.
    """

    name: str
    program: str
    ours: Sequence[str]
    tables: dict[str, str]
    upstream: str
    options: Sequence[str] = ()

    @property
    def is_imb(self) -> bool:
        return self.upstream.startswith('IMB-')


# Called back to back in ours, and in IMB with -sync off. OSU puts a barrier between calls, which is
# another thing to measure: one call of allreduce takes longer than one of many.
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
# OSU accumulates single bytes, and ours doubles.
ONE_SIDED = {'put': 'osu_put_latency', 'get': 'osu_get_latency'}


ALL = (
    Twins('collectives', 'collectives', (), WITHOUT_ROOT, 'IMB-MPI1', ('-sync', 'off')),
    Twins('collectives', 'collectives', (), WITH_ROOT, 'IMB-MPI1'),
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
    ),
    *(
        Twins(
            f'one-sided, {sync}',
            'onesided',
            ('--sync', sync),
            ONE_SIDED,
            'one-sided',
            ('-w', 'create', '-s', sync),
        )
        for sync in ('fence', 'pscw', 'lock', 'flush')
    ),
)


def ours(twins: Twins, mpi: Mpi, fabric: str, ranks: int, folder: Path, libraries: Path) -> Times:
    result = folder / 'result.json'
    command = [str(folder / 'build' / twins.program), '--op', ','.join(twins.tables), *twins.ours]
    command += ['--max', str(SIZES[-1]), '--focus', ','.join(map(str, SIZES))]
    command += ['--budget', '0.005', '--json', str(result)]
    run(mpi, fabric, command, libraries, ranks)
    times: Times = {}
    for entry in json.loads(result.read_text())['results']:
        times.setdefault(entry['op'], {})[entry['size']] = entry['time']['best']
    return times


def of_imb(twins: Twins, mpi: Mpi, fabric: str, ranks: int, folder: Path, libraries: Path) -> Times:
    """The slowest rank's times, as ours are; by the rates, which have more digits, where it has."""
    sizes = folder / 'sizes'
    sizes.write_text(''.join(f'{size}\n' for size in SIZES))
    program = find_imb(mpi).program.with_name(twins.upstream)
    command = [str(program), '-npmin', str(ranks), '-iter', '100,4', '-msglen', str(sizes)]
    command += [*twins.options, *twins.tables.values()]
    output, _ = run(mpi, fabric, command, libraries, ranks)
    output = AGGREGATE.sub('', output).replace('t_avg', 't_mean').replace('t_max', 't_avg')
    tables = parse(output)
    return {
        op: {row.size: row.size / row.bandwidth if row.bandwidth else row.time for row in rows}
        for op, table in twins.tables.items()
        for _, rows in [tables[table]]
    }


def of_osu(twins: Twins, mpi: Mpi, fabric: str, ranks: int, osu: Path, libraries: Path) -> Times:
    """The first decile of a run's calls, as ours is of its batches."""
    times: Times = {}
    for op, program in twins.tables.items():
        path = osu / 'c' / 'mpi' / twins.upstream / program
        command = [str(path), *twins.options, '-z10', '-i', '300', '-x', '30']
        command += ['-m', f'{SIZES[0]}:{SIZES[-1]}']
        output, _ = run(mpi, fabric, command, libraries, ranks)
        rows = re.findall(r'^(\d+) +([\d. ]+)$', output, re.MULTILINE)
        times[op] = {
            int(size): 1e-6 * float(row.split()[-1]) for size, row in rows if int(size) in SIZES
        }
    return times


def table(kept: dict[str, list[list[float]]]) -> Iterator[str]:
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


def measure(kept: dict[str, list[list[float]]], arguments: argparse.Namespace) -> None:
    """Add rounds to what is kept, until the time is over."""
    mpi, ranks, fabric = mpich(), arguments.ranks, arguments.fabric
    libraries = find_imb(mpi).libraries
    end = time.monotonic() + arguments.seconds
    chosen = [one for one in ALL if one.is_imb or arguments.osu]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for program in {one.program for one in chosen}:
            build(mpi, arguments.build or folder / 'build', target=program)
        if arguments.build:
            (folder / 'build').symlink_to(arguments.build.absolute())
        while True:
            for twins in chosen:
                if time.monotonic() > end:
                    return
                if twins.is_imb:
                    theirs = of_imb(twins, mpi, fabric, ranks, folder, libraries)
                else:
                    theirs = of_osu(twins, mpi, fabric, ranks, arguments.osu, libraries)
                mine = ours(twins, mpi, fabric, ranks, folder, libraries)
                for op, times in theirs.items():
                    upstream = f'{"IMB" if twins.is_imb else "OSU"} {twins.tables[op]}'
                    for size in sorted({*times} & {*mine[op]}):
                        pair = [mine[op][size], times[size]]
                        kept.setdefault(f'{twins.name}|{op}|{upstream}|{size}', []).append(pair)
                arguments.keep.write_text(json.dumps(kept))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--keep', type=Path, required=True, help='JSON file of all rounds')
    parser.add_argument('--seconds', type=float, default=900, help='for more rounds')
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--fabric', default='shm')
    parser.add_argument('--osu', type=Path, help='built tree of the OSU Micro-Benchmarks')
    parser.add_argument('--build', type=Path, help='folder of our programs, to build them once')
    arguments = parser.parse_args()
    kept = json.loads(arguments.keep.read_text()) if arguments.keep.exists() else {}
    if arguments.seconds:
        measure(kept, arguments)
    rounds = max((len(pairs) for pairs in kept.values()), default=0)
    print(f'{rounds} rounds, {arguments.ranks} ranks, {arguments.fabric}\n', file=sys.stderr)
    print('\n'.join(table(kept)))


if __name__ == '__main__':
    main()
