"""What `assay place` promises: the best of all ways, 10,000 ranks, and gains that come true.

    .venv/bin/python measurements/placing.py optimum
    .venv/bin/python measurements/placing.py large
    .venv/bin/python measurements/placing.py command
    ./assay cluster up --size 4 --cpus 2 --switches 2
    ./assay cluster fault delay s1 10000
    ./assay cluster exec head salloc -N 4 --ntasks-per-node=2 --overcommit \\
        .venv/bin/python measurements/placing.py cluster --programs 0-99

`optimum` holds plans of 10 ranks against all ways to seat them, on machines whose nodes are evenly
and unevenly filled. `large` times plans of 10,000 ranks, and `command` all that the command does
for one. `cluster` runs random programs (placing_load.c) on the virtual cluster, whose two switches
are far apart: what messages cost is measured by pt2pt first, each program is run A B B A as it is
and as planned, under the witness, and its gain is held against the plan of its first report.
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
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from common import build
from scipy.sparse import coo_array

from assay import paths
from assay.machine.mpi import Mpi, find_mpis
from assay.placing import costs, files, mapping
from assay.placing.plan import plan_seats
from assay.placing.problem import PlacingProblem
from assay.text import parse_cpus
from assay.witness.reading import read_witness
from assay.witness.report import Report

sys.path.append(str(paths.ROOT / 'tests' / 'support'))
import witnessed

Edges = list[tuple[int, int, float]]

#: Bytes of the largest message of a random program.
LARGEST = 32768


# Graphs -------------------------------------------------------------------------------------------


def grid(*shape: int) -> Edges:
    """The stencil of a grid."""
    numbers = np.arange(np.prod(shape)).reshape(shape)
    found = []
    for axis, extent in enumerate(shape):
        near, far = (np.take(numbers, range(k, extent - 1 + k), axis).ravel() for k in (0, 1))
        found += [(int(a), int(b), 1.0) for a, b in zip(near, far, strict=True)]
    return found


def graphs(n: int, random: np.random.Generator) -> dict[str, Edges]:
    """Who talks to whom, of so many ranks, with weights."""
    everyone = [*combinations(range(n), 2)]
    half = n // 2
    chance = min(1.0, 4 / n)
    sparse = [(a, b, random.integers(1, 100)) for a, b in everyone if random.random() < chance]
    cluster = random.integers(0, max(2, n // 3), n)
    rows = max(k for k in range(1, int(n**0.5) + 1) if n % k == 0)
    return {
        'stencil 2D': grid(rows, n // rows),
        'stencil 3D': grid(*((2, rows, half // rows) if half % rows == 0 else (rows, n // rows))),
        'ring': [(k, (k + 1) % n, 1.0) for k in range(n)],
        'random sparse': sparse or [(0, n - 1, 1.0)],
        # As CG and MG of NAS: partners at powers of two, the nearer the more.
        'NAS-like': [(a, b, n / (b - a)) for a, b in everyone if (b - a).bit_count() == 1],
        'hub': [(0, k, float(random.integers(1, 10))) for k in range(1, n)],
        'two cliques': [(a, b, 10.0) for a, b in everyone if a % 2 == b % 2] + [(0, 1, 1.0)],
        'clustered': [
            (a, b, float(random.integers(5, 50)) if cluster[a] == cluster[b] else 1.0)
            for a, b in everyone
            if cluster[a] == cluster[b] or random.random() < 0.2
        ],
    }


def problem(edges: Edges, groups: np.ndarray) -> PlacingProblem:
    n = groups.shape[1]
    one, other, weight = np.array(edges, dtype=float).T
    ends = np.array([[*one, *other], [*other, *one]], dtype=np.int64)
    both = coo_array((np.tile(weight, 2), tuple(ends)), (n, n)).tocsr()
    distances = np.arange(len(groups) + 1.0)
    nobody = np.zeros(n, dtype=np.int64)
    prices = 0.3e-6 * 3**distances, 1e-10 * (1 + distances)
    return PlacingProblem(both, both * 1000, groups, *prices, nobody, nobody > 0)


# Ten ranks ----------------------------------------------------------------------------------------


MACHINES = {
    '2 nodes of 5': [[k % 2 for k in range(10)]],
    '5 nodes of 2': [[k % 5 for k in range(10)]],
    'nodes of 2, 3, 5': [[0] * 2 + [1] * 3 + [2] * 5],
    'nodes of 1, 2, 3, 4': [[0] + [1] * 2 + [2] * 3 + [3] * 4],
    '2 switches, 4 nodes': [[0, 0, 0, 1, 1, 2, 2, 2, 3, 3], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]],
    '2 nodes of 2 sockets': [[0, 0, 0, 1, 1, 2, 2, 2, 3, 3], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]],
}


def ways(sizes: list[int]) -> Iterator[list[int]]:
    """All ways to deal ranks to groups of these sizes."""

    def deal(left: list[int]) -> Iterator[list[int]]:
        if not any(left):
            yield []
            return
        for group, count in enumerate(left):
            if count:
                for rest in deal([*left[:group], count - 1, *left[group + 1 :]]):
                    yield [group, *rest]

    return deal(sizes)


def optimum() -> None:
    random = np.random.default_rng(39)
    print('| graph | machine | ways | plan over optimum | local search over optimum | seconds |')
    print('|---|---|---:|---:|---:|---:|')
    for machine, rows in MACHINES.items():
        groups = np.array(rows)
        sizes = np.bincount(groups[0])
        every = np.array([*ways(sizes.tolist())])
        _, first = np.unique(groups[0], return_index=True)
        above = groups[:, first]
        far = (above[:, :, None] != above[:, None, :]).sum(axis=0)
        for name, edges in graphs(10, random).items():
            one = problem(edges, groups)
            a, b, messages, size = one.pairs
            least = min(
                float((messages * one.latency[d] + size * one.per_byte[d]).sum(axis=1).min())
                for part in np.array_split(every, max(1, len(every) // 20_000))
                for d in [far[part[:, a], part[:, b]]]
            )
            began = time.monotonic()
            cost = one.cost(mapping.best_seats(one))
            took = time.monotonic() - began
            mapping.FEW = 0
            local = one.cost(mapping.best_seats(one))
            mapping.FEW = 10
            ratios = f'{cost / least:.4f} | {local / least:.4f}'
            print(f'| {name} | {machine} | {len(every)} | {ratios} | {took:.2f} |', flush=True)


# Ten thousand -------------------------------------------------------------------------------------


def large() -> None:
    n = 10_000
    random = np.random.default_rng(39)
    dealt = random.permutation(n)
    node = dealt // 100
    even = np.array([dealt // 25, dealt // 50, node, node // 20])
    uneven = np.searchsorted(np.cumsum(random.integers(40, 129, 200)), dealt, side='right')
    sparse = random.integers(0, n, (3 * n, 2))
    cliques = [(a, b, 1.0) for k in range(0, n, 20) for a, b in combinations(range(k, k + 20), 2)]
    cases = {
        'stencil 2D': grid(100, 100),
        'stencil 3D': grid(20, 20, 25),
        'random sparse': [(int(a), int(b), 1.0) for a, b in sparse if a != b],
        'cliques of 20': cliques,
    }
    machines = {'100 nodes, 5 switches': even, 'uneven nodes': uneven[None]}
    print('| graph | machine | cost over now | CPU seconds |')
    print('|---|---|---:|---:|')
    for name, edges in cases.items():
        for machine, groups in machines.items():
            one = problem(edges, groups)
            began = time.process_time()
            seat = mapping.best_seats(one)
            took = time.process_time() - began
            ratio = one.cost(seat) / one.cost(np.arange(n))
            print(f'| {name} | {machine} | {ratio:.3f} | {took:.1f} |', flush=True)


def command() -> None:
    """All of `assay place`, with reading the report: a grid of 100 x 100 ranks on 100 nodes."""
    n, on_a_node = 10_000, 100
    ranks = np.arange(n)
    grid = ranks.reshape(100, 100)
    partners = np.stack([np.roll(grid, k, axis).ravel() for axis in (0, 1) for k in (1, -1)], 1)
    seat = np.random.default_rng(39).permutation(n)
    nodes = [
        witnessed.host(f'n{k:03}', [[*range(50)], [*range(50, 100)]]) for k in range(n // on_a_node)
    ]
    processes = [
        witnessed.process(
            rank,
            cores=(int(seat[rank]) % on_a_node,),
            on=f'n{seat[rank] // on_a_node:03}',
            wall=10.0,
            mpi_time=4.0,
            calls={'MPI_Sendrecv': witnessed.call(4000, 4.0, 32_000_000)},
            waits={'MPI_Sendrecv': witnessed.wait(4.0, late_sender=1.0)},
            partners=[witnessed.partner(int(one), 1000, 8_000_000) for one in partners[rank]],
        )
        for rank in ranks.tolist()
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'witness.json'
        witnessed.write(file, witnessed.entries(processes, nodes))
        began, before = time.monotonic(), os.times()
        subprocess.run([paths.ROOT / 'assay', 'place', file], check=True)
        after = os.times()
    used = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    print(f'{time.monotonic() - began:.1f} s, {used:.1f} s of CPU time')


# The virtual cluster ------------------------------------------------------------------------------


class Job:
    """Runs programs on the nodes of the allocation around this process."""

    def __init__(self, mpi: Mpi, folder: Path) -> None:
        self.mpi, self.folder = mpi, folder
        for target in ('pt2pt', 'assay_witness'):
            self.programs = build(mpi, folder / 'build', target=target)
        load = folder / 'placing_load'
        source = paths.ROOT / 'measurements' / 'placing_load.c'
        subprocess.run([mpi.cc, '-O2', source, '-o', load], check=True)
        self.load = str(load)
        self.witness = next(self.programs.rglob('libassay_witness.so'))
        self.report = folder / 'witness.json'
        self.environment = {
            **os.environ,
            **{'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'},
            **{'OMPI_MCA_btl': 'self,sm,tcp', 'OMPI_MCA_pml': 'ob1'},
            **{'OMPI_MCA_btl_tcp_if_include': 'eth0', 'OMPI_MCA_mpi_yield_when_idle': '1'},
        }

    def run(self, options: list[str], *words: str, witness: bool = True) -> None:
        preload = [f'LD_PRELOAD={self.witness}', f'ASSAY_WITNESS_REPORT={self.report}']
        before = ['env', *preload] if witness else []
        command = [self.mpi.launcher, *options, *before, *words]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            sys.exit(f'{" ".join(map(str, command))}: {done.stdout}{done.stderr}')

    def costs(self, switches: dict[str, list[str]]) -> costs.Costs:
        """What pt2pt measures within a node, behind a switch and between switches.

        The sizes are those of the programs: a message from 64 KiB on goes to and fro three times.
        """
        near, far = switches.values()
        found = []
        for hosts in ((near[0], near[0]), (near[0], near[1]), (near[0], far[0])):
            ranks = self.folder / 'ranks'
            ranks.write_text(''.join(f'rank {k}={host} slot={k}\n' for k, host in enumerate(hosts)))
            result = self.folder / 'result.json'
            pt2pt = next(self.programs.rglob('pt2pt'))
            words = ['--pattern', 'ping-pong', '--max', str(LARGEST), '--budget', '0.1']
            self.run(
                ['-n', '2', '--map-by', f'rankfile:file={ranks}'],
                *(str(pt2pt), *words, '--json', str(result)),
                witness=False,
            )
            times = {
                one['size']: one['time']['median']
                for one in json.loads(result.read_text())['results']
            }
            per_byte = max(times[LARGEST] - times[8], 0.0) / (LARGEST - 8) or 1e-12
            found.append(costs.Cost(times[8], 1 / per_byte, 'pt2pt'))
        within, node, switch = found
        return costs.Costs((within, within, within, node, switch), switches)


def coloured(edges: Edges) -> Edges:
    """Edges in an order in which few ranks wait for another's earlier ones."""
    busy: dict[int, set[int]] = {}
    colour = {}
    for a, b, weight in edges:
        own = busy.setdefault(a, set()), busy.setdefault(b, set())
        free = next(k for k in range(len(edges)) if k not in own[0] | own[1])
        own[0].add(free), own[1].add(free)
        colour[a, b, weight] = free
    return sorted(edges, key=lambda one: colour[one])


@dataclass(frozen=True)
class Program:
    """A random program.

    :param bytes: of its largest message.
    :param compute: microseconds of each rank between steps.
    :param start: how its ranks are dealt to nodes at first: in blocks, or round the nodes.
    """

    number: int
    graph: str
    mode: str
    bytes: int
    compute: int
    start: str
    edges: Edges


def program(number: int, ranks: int) -> Program:
    """The random program of a number."""
    random = np.random.default_rng(number)
    kinds = graphs(ranks, random)
    name = [*kinds][number % len(kinds)]
    label = random.permutation(ranks) if random.random() < 0.5 else np.arange(ranks)
    size = int(2 ** random.uniform(3, 15))
    compute = int(random.choice([0, 100, 1000]))
    mode = str(random.choice(['sendrecv', 'at-once']))
    most = max(weight for *_, weight in kinds[name])
    edges = [
        (int(label[a]), int(label[b]), max(1, int(size * weight / most)))
        for a, b, weight in kinds[name]
    ]
    start = str(random.choice(['node', 'slot']))
    return Program(number, name, mode, size, compute, start, coloured(edges))


def measured(job: Job, one: Program, known: costs.Costs, ranks: int) -> dict[str, object]:
    """Run a program as it is and as planned."""
    pattern = job.folder / 'pattern'
    pattern.write_text(''.join(f'{a} {b} {size}\n' for a, b, size in one.edges))
    start = ['--map-by', one.start]
    words = [job.load, str(pattern), '20', str(one.compute), one.mode]
    options = ['-n', str(ranks), '--bind-to', 'core']

    def walls(how: list[str]) -> float:
        job.run([*options, *how], *words)
        return max(one.wall for one in read_witness(job.report).processes)

    wall = walls(start)
    # Some seconds, of which the first messages of each pair, which connect, are a small part.
    words[2] = str(max(20, int(20 * 3 / wall)))
    before = [walls(start)]
    report = without_disturbance(read_witness(job.report))
    kept = paths.STATE / 'placing' / f'{one.number}.json'
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(job.report.read_bytes())
    made = plan_seats(report, known)
    ranksfile = job.folder / 'ranks'
    ranksfile.write_text(files.rankfile(made))
    planned = ['--map-by', f'rankfile:file={ranksfile}']
    after = [walls(planned), walls(planned)]
    before.append(walls(start))
    ratio = statistics.mean(after) / statistics.mean(before)
    return {
        **asdict(one),
        **{'word': made.word, 'why': made.why, 'measured': 1 - ratio},
        **asdict(made.gain),
        **{'before': before, 'after': after, 'moved': made.moved},
    }


def without_disturbance(report: Report) -> Report:
    """The nodes share CPUs: what others took of them are the program's own ranks."""
    hosts = [host.model_copy(update={'disturbance': None}) for host in report.hosts]
    return report.model_copy(update={'hosts': hosts})


def cluster(numbers: list[int], output: Path) -> None:
    from assay.machine import slurm

    mpi = next(one for one in find_mpis() if one.name == 'openmpi')
    switches = {name: [*nodes] for name, nodes in slurm.switches().items()}
    with tempfile.TemporaryDirectory(dir=paths.STATE) as folder:
        job = Job(mpi, Path(folder))
        known = job.costs(switches)
        for one in (known.by_distance[0], *known.by_distance[3:]):
            print(f'{one.latency * 1e6:.1f} us, {one.bandwidth / 1e6:.0f} MB/s', flush=True)
        with output.open('a') as out:
            for number in numbers:
                found = measured(job, program(number, 8), known, 8)
                print(json.dumps(found), file=out, flush=True)
                shown = ' '.join(
                    f'{found[name]:6.1%}'
                    for name in ('measured', 'expected', 'low', 'high', 'most')
                )
                print(f'{number:3} {found["graph"]:13} {found["word"]:11} {shown}', flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('what', choices=('optimum', 'large', 'command', 'cluster'))
    parser.add_argument('--programs', metavar='NUMBERS', default='0-99')
    parser.add_argument('--output', type=Path, default=paths.STATE / 'placing.jsonl')
    arguments = parser.parse_args()
    if arguments.what == 'cluster':
        cluster(sorted(parse_cpus(arguments.programs)), arguments.output)
    else:
        {'optimum': optimum, 'large': large, 'command': command}[arguments.what]()


if __name__ == '__main__':
    main()
