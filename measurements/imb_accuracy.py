"""Collectives and one-sided operations against IMB: same MPI library, fabric, cores, interleaved.

    ./assay run --with mpich --with intelmpi -l   # once: IMB comes with Intel MPI
    .venv/bin/python measurements/imb_accuracy.py

The table is that of pt2pt_accuracy.py. All ranks take part in a collective (-npmin). Operations
with a root are left out: IMB's root changes from call to call. IMB-RMA completes each put and get
by a flush, but for its tables of the mode AGGREGATE, which are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from against_imb import mpich, run, spread, verdict
from common import build

from assay.machine.mpi import Mpi, find_imb
from assay.programs.imb import parse


@dataclass(frozen=True)
class Kind:
    """A program of ours and one of IMB.

    :param program: of ours, with its options.
    :param imb: the program of IMB.
    :param tables: by operation of ours the benchmark of IMB.
    """

    program: str
    options: Sequence[str]
    imb: str
    tables: dict[str, str]


KINDS = {
    'collectives': Kind(
        'collectives',
        (),
        'IMB-MPI1',
        {'allreduce': 'Allreduce', 'allgather': 'Allgather', 'alltoall': 'Alltoall'},
    ),
    'nonblocking': Kind(
        'collectives',
        ('--call', 'nonblocking'),
        'IMB-NBC',
        {'allreduce': 'Iallreduce_pure', 'alltoall': 'Ialltoall_pure'},
    ),
    'onesided': Kind(
        'onesided',
        ('--sync', 'flush'),
        'IMB-RMA',
        {'put': 'Unidir_put', 'get': 'Unidir_get'},
    ),
}

#: A table of operations that are completed together.
AGGREGATE = re.compile(
    r'# Benchmarking (?:(?!# Benchmarking|# All processes).)*MODE: AGGREGATE'
    r'(?:(?!# Benchmarking|# All processes).)*',
    re.DOTALL,
)


def compare(kind: Kind, mpi: Mpi, fabric: str, arguments: argparse.Namespace, folder: Path) -> bool:
    """Measure and print a table; returns whether every ratio of which a claim is made is within.

    :param arguments: the script's: ``runs``, ``ranks`` and ``budget``.
    """
    ranks, runs = arguments.ranks, arguments.runs
    imb = find_imb(mpi)
    result = folder / 'result.json'
    ours: dict[tuple[str, int], list[float]] = {}
    theirs: dict[tuple[str, int], list[float]] = {}
    for number in range(runs):
        print(f'{kind.imb}, {fabric}: run {number + 1} of {runs}', file=sys.stderr)
        command = [str(folder / 'build' / kind.program), '--op', ','.join(kind.tables)]
        command += [*kind.options, '--budget', str(arguments.budget), '--json', str(result)]
        run(mpi, fabric, command, imb.libraries, ranks)
        for entry in json.loads(result.read_text())['results']:
            ours.setdefault((entry['op'], entry['size']), []).append(entry['time']['median'])
        command = [str(imb.program.with_name(kind.imb)), '-npmin', str(ranks)]
        output, _ = run(mpi, fabric, [*command, *kind.tables.values()], imb.libraries, ranks)
        tables = parse(AGGREGATE.sub('', output))
        for op, table in kind.tables.items():
            for row in tables[table][1]:
                exact = row.size / row.bandwidth if row.bandwidth else row.time
                theirs.setdefault((op, row.size), []).append(exact)

    print(f'\n### {kind.imb}: {mpi.name} {mpi.version}, {fabric}, {ranks} ranks, ', end='')
    print(f'{runs} interleaved runs\n')
    within = True
    print('| operation | bytes | IMB us | IMB spread | ours us | our spread | ratio | within 5% |')
    print('|---|---:|---:|---:|---:|---:|---:|---|')
    for op, size in sorted(set(ours) & set(theirs)):
        mine, other = ours[op, size], theirs[op, size]
        ratio, word = verdict(mine, other)
        within &= word != 'NO'
        print(
            f'| {op} | {size} | {statistics.median(other) * 1e6:.2f} | {spread(other):.1%} '
            f'| {statistics.median(mine) * 1e6:.2f} | {spread(mine):.1%} | {ratio:.3f} | {word} |'
        )
    return within


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--runs', type=int, default=11)
    parser.add_argument('--budget', type=float, default=0.05, help='seconds per size for ours')
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--fabric', nargs='+', default=['shm', 'ofi-tcp'])
    parser.add_argument('--kind', nargs='+', choices=KINDS, default=list(KINDS))
    arguments = parser.parse_args()
    mpi = mpich()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for program in {KINDS[kind].program for kind in arguments.kind}:
            build(mpi, folder / 'build', target=program)
        within = [
            compare(KINDS[kind], mpi, fabric, arguments, folder)
            for kind in arguments.kind
            for fabric in arguments.fabric
        ]
    sys.exit(not all(within))


if __name__ == '__main__':
    main()
