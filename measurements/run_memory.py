"""What a run of many cases and ranks keeps in memory, with made-up reports and outputs of jobs.

    .venv/bin/python measurements/run_memory.py

Each job is held against what was asked as a check does it: its end, its report, placement and
traffic, and the statement of Open MPI 4, which has a line for each pair of ranks that exchange
messages. Every measurement is a process of its own; its memory is the greatest that it had.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from assay.job.launch import ERROR, OUTPUT, WITNESS, Launch
from assay.job.output import Output
from assay.layout.layouts import Placement
from assay.witness.report import SCHEMA

CORES = 128  # of a node, and ranks

#: Cases, ranks of each, and the bytes that its MPI says.
CASES = [
    *[(1, 128, 0), (10, 128, 0), (1000, 128, 0)],
    *[(1, 2048, 0), (10, 2048, 0), (1, 10_240, 0)],
    (1, 128, 100 << 20),
]

PAIR = '[n0001:12345] mca: bml: Using tcp btl for send to [[12345,1],1234] on node n0001\n'


def rank(number: int, ranks: int) -> dict:
    """A rank that sends to its neighbours in three dimensions."""
    core = str(number % CORES)
    place = {'cpus': core, 'cores': core}
    threads = [
        {'tid': number + i, 'name': 'halo', 'last_cpu': number % CORES, 'busy': 1.0 - i, **place}
        for i in range(2)
    ]
    ends = [(number + step) % ranks for step in (-CORES, -12, -1, 1, 12, CORES)]
    calls = ('Isend', 'Irecv', 'Waitall', 'Allreduce', 'Bcast', 'Barrier', 'Init', 'Finalize')
    call = {'count': 1000, 'timed': 1000, 'time': 0.5, 'bytes': 0}
    wait = {'analysed': 0.1, 'late_sender': 0.1, 'late_receiver': 0.0, 'imbalance': 0.1}
    return {
        **{'rank': number, 'host': f'n{number // CORES:04}', 'pid': number, **place},
        **{'numa': '0', 'packages': '0', 'last_cpu': number % CORES, 'cpu_limit': None},
        'memory': {'policy': 'default', 'nodes': ''},
        'threads': [
            {**one, 'origin': origin} for one, origin in zip(threads, ('main', 'mpi'), strict=True)
        ],
        'sockets': [
            {
                **{'local': f'{number}:{end}', 'remote': f'{end}:{number}'},
                **{'device': 'eth0', 'sent': 1 << 20, 'received': 1 << 20, 'segments': 700},
            }
            for end in ends
        ],
        **{'wall': 10.0, 'mpi_time': 2.0, 'calls': {f'MPI_{name}': call for name in calls}},
        'waits': {'MPI_Waitall': wait, 'MPI_Allreduce': wait},
        'partners': [
            {'rank': end, 'messages': 1000, 'bytes': 1 << 20, 'sizes': {'1024': 500, '2048': 500}}
            for end in ends
        ],
    }


def make(folder: Path, ranks: int, loud: int) -> None:
    """The report and the output of a job."""
    cpus = f'0-{CORES - 1}'
    host = {'cpus': cpus, 'allowed': cpus, 'cores': cpus, 'numa': [{'id': 0, 'cpus': cpus}]}
    nodes = max(1, -(-ranks // CORES))
    report = {
        **{'schema': SCHEMA, 'witness': '0.1.0', 'complete': True, 'command': ['halo']},
        'sections': ['placement', 'fabric', 'profile', 'matrix'],
        **{'started': '2026-11-22T00:00:00Z', 'ranks': ranks, 'libraries': [], 'environment': {}},
        'mpi': {'library': 'Open MPI v4', 'standard': '3.1', 'thread_level': 'single', 'path': '/'},
        'hosts': [{'name': f'n{node:04}', **host} for node in range(nodes)],
        'processes': [rank(number, ranks) for number in range(ranks)],
    }
    (folder / WITNESS).write_text(json.dumps(report))
    (folder / OUTPUT).write_text('rate 1.0\n')
    with (folder / ERROR).open('w') as file:
        block = PAIR * 10_000
        for _ in range(max(1, loud // len(block))):
            file.write(block)


def look_at(folder: Path, cases: int, ranks: int) -> None:
    """Hold the job against what was asked as often as there are cases, and keep them all."""
    placement = Placement(min(ranks, CORES), 1, [])
    kept = []
    for _ in range(cases):
        launch = Launch(
            **{'program': 'halo', 'command': 'halo', 'launcher': 'srun', 'family': 'openmpi'},
            **{'fabric': 'tcp', 'layout': 'packed', 'placement': placement, 'ranks': ranks},
            **{'folder': folder, 'output': Output((folder / OUTPUT, folder / ERROR))},
            exit_code=0,
        )
        launch.assert_ended_well()
        assert launch.text == 'rate 1.0\n\n'
        launch.assert_as_asked()
        kept.append((launch, launch.witness_figures()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--one', nargs=3, metavar=('FOLDER', 'CASES', 'RANKS'))
    if one := parser.parse_args().one:
        start = time.monotonic()
        look_at(Path(one[0]), int(one[1]), int(one[2]))
        # Not getrusage's, which counts the process that this one was forked from.
        status = Path('/proc/self/status').read_text()
        most = re.search(r'^VmHWM:\s+(\d+) kB$', status, re.MULTILINE)
        print(f'{time.monotonic() - start:.1f} | {int(most[1]) / 1000:.0f}')
        return
    print('| cases | ranks | report, MB | output, MB | s | memory, MB |')
    print('|---:|---:|---:|---:|---:|---:|')
    for cases, ranks, loud in CASES:
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder), ranks, loud)
            sizes = [f'{(Path(folder) / n).stat().st_size / 1e6:.1f}' for n in (WITNESS, ERROR)]
            command = [sys.executable, __file__, '--one', folder, str(cases), str(ranks)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
        print(f'| {cases} | {ranks} | {" | ".join(sizes)} | {done.stdout.strip()} |', flush=True)


if __name__ == '__main__':
    main()
