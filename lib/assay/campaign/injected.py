"""A fault that is in the cluster, and gone again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from assay import AssayError, paths
from assay.campaign.catalogue import Fault, Severity
from assay.machine.mpi import Mpi
from assay.vcluster import faults
from assay.vcluster.cluster import STATE, Cluster
from assay.vcluster.node import Node

PROGRAMS = paths.ROOT / 'tests' / 'programs' / 'faults'

#: Seconds until Slurm must have noticed that a node does not answer.
PATIENCE = 120


@contextmanager
def injected(cluster: Cluster, fault: Fault, severity: Severity) -> Iterator[None]:
    """Bring a fault into the nodes; afterwards they are as before, and Slurm uses them.

    :raises AssayError: if it cannot be brought in, or healed.
    """
    with ExitStack() as undone:
        undone.callback(faults.heal, cluster, cluster.parts)
        for on_node in fault.on_nodes:
            node = cluster.node(on_node.node)
            command = fault.filled(on_node.run, severity)
            if on_node.undo:
                undone.callback(_finish, node, on_node.undo)
                _finish(node, command)
            else:
                undone.callback(_end, _begin(node, command))
        for line in fault.cluster:
            _inject(cluster, *fault.filled(line, severity).split())
        if fault.moment == 'long before':
            _await_slurm(cluster)
        yield


def _inject(
    cluster: Cluster,
    kind: str,
    name: str,
    value: str | None = None,
    jitter: str = '0',
    peer: str | None = None,
) -> None:
    other = cluster.node(peer) if peer else None
    faults.inject(cluster, cluster.part(name), kind, value, float(jitter), other)


def variables(fault: Fault, severity: Severity, mpi: Mpi) -> dict[str, str]:
    """The variables of every job that the fault is in.

    :param mpi: that the jobs use; its compiler builds what is preloaded.
    :raises AssayError: if that cannot be built.
    """
    found = {name: fault.filled(value, severity) for name, value in fault.variables.items()}
    if fault.preload:
        found['LD_PRELOAD'] = _built(fault.preload, mpi)
    return found


def _built(name: str, mpi: Mpi) -> str:
    # Beside the cluster's own files, which its nodes see: each has a /tmp of its own.
    library = STATE / f'{name}.so'
    command = [mpi.cc, '-shared', '-fPIC', str(PROGRAMS / f'{name}.c'), '-o', str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise AssayError(f'{name}.c does not compile: {done.stderr.strip()}')
    return str(library)


def _finish(node: Node, command: str) -> None:
    pipe = subprocess.PIPE
    with node.spawn(['bash', '-c', command], stdout=pipe, stderr=subprocess.STDOUT) as process:
        said = process.communicate()[0].strip()
    if process.returncode:
        raise AssayError(f'{command} on {node.name}: {said or f"exit code {process.returncode}"}')


def _begin(node: Node, command: str) -> subprocess.Popen[str]:
    """Start a command on a node that goes on; standard output is the matrix's alone."""
    bash = ['bash', '-c', command]
    return node.spawn(bash, stdout=subprocess.DEVNULL, start_new_session=True)


def _end(process: subprocess.Popen[str]) -> None:
    """End a command on a node, and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _await_slurm(cluster: Cluster) -> None:
    """Wait until Slurm knows that a node does not answer."""
    deadline = time.monotonic() + PATIENCE
    while not any(state.startswith('down') for state in cluster.states().values()):
        if time.monotonic() > deadline:
            raise AssayError(f'after {PATIENCE} s Slurm calls no node down')
        time.sleep(0.1)
