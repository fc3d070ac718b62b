"""What the suite says when a cluster breaks: each fault of the virtual cluster in turn.

    .venv/bin/python measurements/vcluster_faults.py

Brings a cluster of two nodes up, runs a check between them with each fault and again after it was
healed, takes the cluster down, and prints a table. The exit code is 1 if a fault turned nothing
red, if no sentence named what was broken, or if anything was red where nothing was broken.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Literal

from assay import AssayError, paths
from assay.results.cases import read_report
from assay.results.failures import Failure, failures
from assay.running import runs
from assay.vcluster import faults
from assay.vcluster.cluster import Cluster, down

PARTITION = 'vcluster:srun'
CHECK = '^PointToPoint%fabric=tcp%layout=packed%scale=2_nodes'

#: Seconds until a job must have come through MPI_Init, with the build before it.
PATIENCE = 120


@dataclass(frozen=True)
class Fault:
    """Something to break.

    :param command: what follows ``assay cluster fault``.
    :param named: what the sentence has to say.
    :param moment: when it breaks; long before the run is when Slurm knows of it by then.
    """

    command: str
    named: str
    moment: Literal['before', 'under a running job', 'long before'] = 'before'


LATE = 'under a running job'
FAULTS = [
    Fault('delay n2 1000', 'the network was disturbed: a round trip between n1 and n2'),
    Fault('loss n2 3', 'of the segments between n1 and n2 were sent again'),
    Fault('rate n2 100', 'MB/s went to or from n1 and n2'),
    Fault('cpu n2 50', 'the cgroup of the job on n2 limits rank 1'),
    Fault('crash n1', 'a node of its job died (n1)', LATE),
    Fault('crash n2', 'a node of its job died (n2)', LATE),
    Fault('link n2 down', 'a node of its job died (n2)', LATE),
    Fault('crash n2', 'the scheduler did not start its job', 'long before'),
]


def start() -> subprocess.Popen:
    """A run of the check, with Open MPI."""
    command = [paths.ROOT / 'assay', 'run', '--system', PARTITION, '-p', '^openmpi$', '-n', CHECK]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def failures_of(run: subprocess.Popen) -> list[Failure]:
    """What failed, once the run has ended."""
    said = run.communicate()[0]
    found = failures(read_report(runs.newest_report()))
    if bool(run.returncode) != bool(found):
        raise AssayError(f'the run ended with exit code {run.returncode}:\n{said[-4000:]}')
    return found


def await_ranks(since: float) -> None:
    """Wait until the ranks of a job are past MPI_Init: then the witness writes where they are."""
    stage = paths.RUNS / 'last' / 'stage'
    deadline = time.monotonic() + PATIENCE
    while not any(p.stat().st_mtime > since for p in stage.glob('vcluster/*/*/*/witness.json')):
        if time.monotonic() > deadline:
            raise AssayError(f'after {PATIENCE} s no job has come through MPI_Init')
        time.sleep(0.1)


def await_slurm(cluster: Cluster) -> None:
    """Wait until Slurm knows that a node does not answer."""
    deadline = time.monotonic() + PATIENCE
    while not any(state.startswith('down') for state in cluster.states().values()):
        if time.monotonic() > deadline:
            raise AssayError(f'after {PATIENCE} s Slurm calls no node down')
        time.sleep(0.1)


def meet(cluster: Cluster, fault: Fault) -> list[Failure]:
    """What fails in a run that the fault meets."""
    since = time.time()
    run = start() if fault.moment == LATE else None
    if run:
        await_ranks(since)
    kind, node, *value = fault.command.split()
    faults.inject(cluster, cluster.node(node), kind, *(value or [None]))
    if fault.moment == 'long before':
        await_slurm(cluster)
    return failures_of(run or start())


def row(*cells: str) -> None:
    print('|', ' | '.join(cell.replace('|', '\\|') for cell in cells), '|', flush=True)


def measure(cluster: Cluster) -> bool:
    """Print the table; whether each fault was named, and all was green once it was healed."""
    row('fault', 'turned red', 'and said', 'after `heal`')
    row(*['---'] * 4)
    good = True
    for fault in FAULTS:
        found = meet(cluster, fault)
        faults.heal(cluster, cluster.nodes)
        red = failures_of(start())
        good = good and not red and any(fault.named in one.reason for one in found)
        row(
            f'`{fault.command}`, {fault.moment}',
            '<br>'.join(one.case for one in found) or 'nothing',
            '<br>'.join(one.reason for one in found) or '-',
            '<br>'.join(one.reason for one in red) or 'green',
        )
    return good


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    cluster = Cluster(nodes=2)
    try:
        cluster.up()
        try:
            if red := failures_of(start()):
                raise AssayError(f'{red[0].case} fails where nothing is broken: {red[0].reason}')
            good = measure(cluster)
        finally:
            down()
    except AssayError as error:
        sys.exit(str(error))
    sys.exit(not good)


if __name__ == '__main__':
    main()
