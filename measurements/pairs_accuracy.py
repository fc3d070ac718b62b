"""pairs against IMB-MPI1 (Multi-PingPong, Uniband, Biband): same MPI, fabric, cores; interleaved.

    ./assay run --with mpich --with intelmpi -l   # once: IMB-MPI1 comes with Intel MPI
    .venv/bin/python measurements/pairs_accuracy.py

Two ranks, a pair. Latency is held against Multi-PingPong, the message rate against Uniband, and the
bandwidth both ways against Biband, whose windows have 64 messages as well. Medians over the runs,
their ratio, and the spreads from run to run (interquartile range over median). Where IMB's own is
more than 5%, no claim is made about 5%. The OSU Micro-Benchmarks are not measured: they come by
Spack only.
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

from assay.machine.mpi import Imb, Mpi, find_imb

SIZES = (8, 1024, 65536)

#: What is compared, its unit, and IMB's benchmark: its arguments, and the column of its last table.
KINDS = {
    'latency': ('us', ('-multi', '0', 'PingPong'), 4),
    'message rate': ('/s', ('Uniband',), 3),
    'bandwidth both ways': ('MB/s', ('Biband',), 2),
}


def ours(mpi: Mpi, fabric: str, size: int, program: Path, imb: Imb, folder: Path) -> list[float]:
    """What pairs says of a size, in the order and units of ``KINDS``."""
    result = folder / 'result.json'
    command = [str(program), '--group', '1', '--small', str(size), '--large', str(size)]
    run(mpi, fabric, [*command, '--json', str(result)], imb.libraries)
    found = {entry['measure']: entry for entry in json.loads(result.read_text())['results']}
    return [
        found['latency']['median'] * 1e6,
        found['message_rate']['rate'],
        found['bandwidth']['median'] / 1e6,
    ]


def theirs(mpi: Mpi, fabric: str, size: int, imb: Imb, folder: Path) -> list[float]:
    """What IMB says of it."""
    lengths = folder / 'lengths'
    lengths.write_text(f'{size}\n')
    values = []
    for _, arguments, column in KINDS.values():
        command = [str(imb.program), '-npmin', '2', '-msglen', str(lengths), *arguments]
        output, _ = run(mpi, fabric, command, imb.libraries)
        row = re.search(rf'^ +{size} +\d.*$', output, re.MULTILINE)
        if row is None:
            sys.exit(f'{" ".join(command)} has no row of {size} bytes')
        values.append(float(row[0].split()[column]))
    return values


def compare(mpi: Mpi, fabric: str, runs: int, program: Path, folder: Path) -> bool:
    """Measure and print a table; returns whether every ratio of which a claim is made is within."""
    imb = find_imb(mpi)
    print(f'\n### {mpi.name} {mpi.version}, {fabric}, {runs} interleaved runs\n')
    print('| figure | bytes | IMB | IMB spread | pairs | pairs spread | ratio | within 5% |')
    print('|---|---:|---:|---:|---:|---:|---:|---|')
    within = True
    for size in SIZES:
        both = [
            (ours(mpi, fabric, size, program, imb, folder), theirs(mpi, fabric, size, imb, folder))
            for _ in range(runs)
        ]
        for number, (name, (unit, _, _)) in enumerate(KINDS.items()):
            of_us, of_them = (
                [values[number] for values in side] for side in zip(*both, strict=True)
            )
            median, reference = statistics.median(of_us), statistics.median(of_them)
            ratio, word = verdict(of_us, of_them)
            within &= word != 'NO'
            print(
                f'| {name}, {unit} | {size} | {reference:.4g} | {spread(of_them):.1%} '
                f'| {median:.4g} | {spread(of_us):.1%} | {ratio:.3f} | {word} |',
                flush=True,
            )
    return within


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--runs', type=int, default=11)
    parser.add_argument('--fabric', nargs='+', default=['shm', 'ofi-tcp'])
    arguments = parser.parse_args()
    mpi = mpich()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(mpi, folder / 'build') / 'pairs'
        within = [
            compare(mpi, fabric, arguments.runs, program, folder) for fabric in arguments.fabric
        ]
    sys.exit(not all(within))


if __name__ == '__main__':
    main()
