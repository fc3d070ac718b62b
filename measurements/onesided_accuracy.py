"""onesided's put and get by flush against IMB-RMA: same MPI library, fabric, cores, interleaved.

    ./assay run --with mpich --with intelmpi -l   # once: IMB-RMA comes with Intel MPI
    .venv/bin/python measurements/onesided_accuracy.py

The table is that of pt2pt_accuracy.py. IMB-RMA completes each put and get by a flush, but for its
tables of the mode AGGREGATE, which are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from pathlib import Path

from against_imb import mpich, run, spread, verdict
from common import build

from assay.machine.mpi import Mpi, find_imb
from assay.programs.imb import parse

PROGRAM = 'IMB-RMA'

#: By operation of ours the benchmark of IMB-RMA.
TABLES = {'put': 'Unidir_put', 'get': 'Unidir_get'}

#: A table of operations that are completed together.
AGGREGATE = re.compile(
    r'# Benchmarking (?:(?!# Benchmarking|# All processes).)*MODE: AGGREGATE'
    r'(?:(?!# Benchmarking|# All processes).)*',
    re.DOTALL,
)


def compare(mpi: Mpi, fabric: str, runs: int, budget: float, onesided: Path, folder: Path) -> bool:
    """Measure and print a table; returns whether every ratio of which a claim is made is within."""
    imb = find_imb(mpi)
    result = folder / 'result.json'
    ours: dict[tuple[str, int], list[float]] = {}
    theirs: dict[tuple[str, int], list[float]] = {}
    for number in range(runs):
        print(f'{fabric}: run {number + 1} of {runs}', file=sys.stderr)
        command = [str(onesided), '--op', 'put,get', '--sync', 'flush', '--budget', str(budget)]
        run(mpi, fabric, [*command, '--json', str(result)], imb.libraries)
        for entry in json.loads(result.read_text())['results']:
            ours.setdefault((entry['op'], entry['size']), []).append(entry['time']['median'])
        command = [str(imb.program.with_name(PROGRAM)), *TABLES.values()]
        output, _ = run(mpi, fabric, command, imb.libraries)
        tables = parse(AGGREGATE.sub('', output))
        for op, table in TABLES.items():
            for row in tables[table][1]:
                exact = row.size / row.bandwidth if row.bandwidth else row.time
                theirs.setdefault((op, row.size), []).append(exact)

    print(f'\n### {mpi.name} {mpi.version}, {fabric}, {runs} interleaved runs\n')
    within = True
    print('| operation | bytes | IMB us | IMB spread | onesided us | its spread | ratio | within 5% |')
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
    parser.add_argument('--budget', type=float, default=0.05, help='seconds per size for onesided')
    parser.add_argument('--fabric', nargs='+', default=['shm', 'ofi-tcp'])
    arguments = parser.parse_args()
    mpi = mpich()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        onesided = build(mpi, folder / 'build', target='onesided') / 'onesided'
        within = [
            compare(mpi, fabric, arguments.runs, arguments.budget, onesided, folder)
            for fabric in arguments.fabric
        ]
    sys.exit(not all(within))


if __name__ == '__main__':
    main()
