"""pt2pt's ping-pong against IMB-MPI1 PingPong: same MPI library, fabric and cores, interleaved.

    ./assay run --with mpich --with intelmpi -l   # once: IMB-MPI1 comes with Intel MPI
    .venv/bin/python measurements/pt2pt_accuracy.py

For every size it prints the median over the runs of both, the ratio of the medians, and IMB's own
spread from run to run (interquartile range over median). Where that is more than 5%, IMB does not
agree with itself well enough for a claim about 5%, and none is made.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from against_imb import mpich, run, spread, verdict
from common import build

from assay.machine.mpi import Mpi, find_imb
from assay.programs.imb import read_imb_tables


def compare(mpi: Mpi, fabric: str, runs: int, budget: float, pt2pt: Path, folder: Path) -> bool:
    """Measure and print a table; returns whether every ratio of which a claim is made is within."""
    imb = find_imb(mpi)
    result = folder / 'result.json'
    ours: dict[int, list[float]] = {}
    theirs: dict[int, list[float]] = {}
    seconds: dict[str, list[float]] = {'pt2pt': [], 'IMB-MPI1': []}
    for number in range(runs):
        print(f'{fabric}: run {number + 1} of {runs}', file=sys.stderr)
        command = [str(pt2pt), '--pattern', 'ping-pong', '--budget', str(budget)]
        _, took = run(mpi, fabric, [*command, '--json', str(result)], imb.libraries)
        seconds['pt2pt'].append(took)
        for entry in json.loads(result.read_text())['results']:
            ours.setdefault(entry['size'], []).append(entry['time']['median'])
        output, took = run(mpi, fabric, [str(imb.program), 'PingPong'], imb.libraries)
        seconds['IMB-MPI1'].append(took)
        for row in read_imb_tables(output)['PingPong'][1]:
            # IMB prints times to 0.01 us; its rate, for messages of some size, says them finer.
            exact = row.size / row.bandwidth if row.bandwidth else row.time
            theirs.setdefault(row.size, []).append(exact)

    print(f'\n### {mpi.name} {mpi.version}, {fabric}, {runs} interleaved runs\n')
    within = True
    print('| bytes | IMB us | IMB spread | pt2pt us | pt2pt spread | ratio | within 5% |')
    print('|---:|---:|---:|---:|---:|---:|---|')
    for size in sorted(set(ours) & set(theirs)):
        ratio, word = verdict(ours[size], theirs[size])
        within &= word != 'NO'
        print(
            f'| {size} | {statistics.median(theirs[size]) * 1e6:.2f} | {spread(theirs[size]):.1%} '
            f'| {statistics.median(ours[size]) * 1e6:.2f} | {spread(ours[size]):.1%} '
            f'| {ratio:.3f} | {word} |'
        )
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ratio = medians['pt2pt'] / medians['IMB-MPI1']
    print(f'\nWall time of a run, launch included: pt2pt {medians["pt2pt"]:.2f} s, ', end='')
    print(f'IMB-MPI1 {medians["IMB-MPI1"]:.2f} s, ratio {ratio:.2f}.')
    return within


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--runs', type=int, default=11)
    parser.add_argument('--budget', type=float, default=0.05, help='seconds per size for pt2pt')
    parser.add_argument('--fabric', nargs='+', default=['shm', 'ofi-tcp'])
    arguments = parser.parse_args()
    mpi = mpich()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pt2pt = build(mpi, folder / 'build') / 'pt2pt'
        within = [
            compare(mpi, fabric, arguments.runs, arguments.budget, pt2pt, folder)
            for fabric in arguments.fabric
        ]
    sys.exit(not all(within))


if __name__ == '__main__':
    main()
