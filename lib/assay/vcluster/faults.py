"""The faults of a node, and healing them.

Delayed packets do not overtake each other; packets are lost as the kernel hands them over.
Active faults are not recorded: they are looked up where they act.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from assay import AssayError
from assay.vcluster.cgroup import Group
from assay.vcluster.cluster import Cluster
from assay.vcluster.kinds import KINDS
from assay.vcluster.node import BRIDGE, MOST_NODES, Node, locks

SOURCE = Path(__file__).with_name('forward.c')
COMPILE = ('cc', '-std=c11', '-O2', '-Wall', '-Wextra')

#: TCP's segments arrive in bursts of 64 KiB.
BURST = '64kb'


def inject(cluster: Cluster, node: Node, kind: str, value: str | None, jitter: float = 0) -> None:
    """Inject a fault.

    :param kind: one of :data:`assay.vcluster.kinds.KINDS`.
    :param value: as it says there.
    :param jitter: with ``delay``: up to so many us more, evenly distributed.
    :raises AssayError: if the value makes no sense.
    """
    if node is cluster.head:
        raise AssayError('jobs do not run on the head node: choose a compute node')
    if kind == 'crash' or kind == 'boot':
        if value is not None:
            raise AssayError(f'{kind} takes no value')
        if kind == 'crash':
            _crash(cluster, node)
        elif node.pid is None:
            _boot(cluster, node)
    elif kind == 'link':
        if value not in ('down', 'up'):
            raise AssayError('link needs down or up')
        cluster.head.run(f'ip link set {node.name} {value}')
    elif kind == 'delay':
        _carry(cluster, node, _number(kind, value), jitter, _carried(node)[2])
    elif kind == 'loss':
        _carry(cluster, node, *_carried(node)[:2], _number(kind, value, most=100))
    elif kind == 'rate':
        shape = f'root tbf rate {_number(kind, value, least=0.1):g}mbit burst {BURST} latency 50ms'
        cluster.head.run(f'tc qdisc replace dev {node.name} {shape}')
        node.run(f'tc qdisc replace dev eth0 {shape}')
    elif kind == 'cpu':
        _group(node).limit(_number(kind, value, least=1, most=100))
    else:
        raise AssayError(f'unknown fault {kind!r}. Faults: {", ".join(KINDS)}.')


def heal(cluster: Cluster, nodes: list[Node]) -> None:
    """Undo all faults of the nodes, and wait until Slurm would start jobs on them.

    :raises AssayError: if Slurm does not take them back.
    """
    for node in nodes:
        if node.pid is None:
            _boot(cluster, node)
        elif node is not cluster.head:
            _carry(cluster, node, 0, 0, 0)
            if _rate(cluster, node):
                cluster.head.run(f'tc qdisc delete dev {node.name} root')
                node.run('tc qdisc delete dev eth0 root')
            _group(node).limit(None)
            cluster.head.run(f'ip link set {node.name} up')
    cluster.wait_until_idle()


def active(cluster: Cluster, node: Node) -> list[str]:
    """The faults of a node, in words."""
    if node.pid is None:
        return ['crashed']
    delay, jitter, loss = _carried(node)
    limit = _group(node).limited_to()
    link = _link(cluster, node)
    found = [
        (delay or jitter) and f'delay {delay:g} us' + (f' + 0 to {jitter:g} us' * bool(jitter)),
        loss and f'loss {loss:g}%',
        (rate := _rate(cluster, node)) and f'rate {rate:g} Mbit/s',
        limit is not None and f'cpu {limit:g}%',
        'UP' not in link['flags'] and 'link down',
        not (delay or jitter or loss or 'master' in link) and 'not connected',
    ]
    return [fault for fault in found if fault]


def _group(node: Node) -> Group:
    assert node.group, 'every node has one but the head, which is left alone'
    return node.group


def _number(kind: str, value: str | None, least: float = 0, most: float = 1e9) -> float:
    try:
        number = float(value or '')
    except ValueError:
        number = -1
    if not least <= number <= most:
        raise AssayError(f'{kind} needs a number from {least:g} to {most:g}')
    return number


def _crash(cluster: Cluster, node: Node) -> None:
    """End it, and its link first: the kernel says farewell for the processes that it kills."""
    if node.pid is not None:
        _carry(cluster, node, 0, 0, 0)
        cluster.head.run(f'ip link delete {node.name}')
        node.kill()


def _boot(cluster: Cluster, node: Node) -> None:
    """Start it. Slurm hears that it was down, or would wait for the end of jobs it had there."""
    cluster.head.run(f'scontrol update nodename={node.name} state=down reason=crashed')
    node.boot(cluster.head)


# The network ------------------------------------------------------------------------------------


def _program(node: Node) -> list[str]:
    return [str(node.state / SOURCE.stem), node.name]


def _lock(node: Node) -> int:
    """The lock of the process that carries the node's packets."""
    return MOST_NODES + 1 + node.number


def _carried(node: Node) -> tuple[float, float, float]:
    """Delay and jitter in us, and loss in percent, with which its packets are carried now."""
    line = locks(node.state).command_line(_lock(node)) or []
    if line[:2] != _program(node):
        return 0, 0, 0
    delay, jitter, loss = map(float, line[3:])
    return delay, jitter, loss


def _carry(cluster: Cluster, node: Node, delay: float, jitter: float, loss: float) -> None:
    """Let a process carry the packets between the node's link and the bridge, or none."""
    head, near, far = cluster.head, f'{node.name}-near', f'{node.name}-far'
    locks(node.state).kill([_lock(node)])
    # Also where a carrier died by surprise, or one was started only half.
    if any(link['ifname'] == near for link in json.loads(head.run('ip -json link show'))):
        head.run(f'ip link delete {near}')
    head.run(f'ip link set {node.name} master {BRIDGE}')
    if not delay and not jitter and not loss:
        return
    _compile(node)
    head.run(f'ip link set {node.name} nomaster')
    head.run(f'ip link add {near} type veth peer name {far}')
    head.run(f'ip link set {near} up')
    head.run(f'ip link set {far} master {BRIDGE} up')
    arguments = [near, *(f'{value:g}' for value in (delay, jitter, loss))]
    carrier = head.start([*_program(node), *arguments], subprocess.PIPE, _lock(node))
    assert carrier.stdout, 'it is a pipe'
    with carrier.stdout:
        if carrier.stdout.readline() != 'ready\n':
            raise AssayError(f'packets cannot be carried: {head.log.read_text().strip()}')


def _compile(node: Node) -> None:
    program = _program(node)[0]
    if Path(program).exists():
        return
    command = [*COMPILE, '-o', program, str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise AssayError(f'{SOURCE} does not compile: {done.stderr.strip()}')


def _link(cluster: Cluster, node: Node) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(
        cluster.head.run(f'ip -json link show dev {node.name}')
    )
    return found[0]


def _rate(cluster: Cluster, node: Node) -> float | None:
    """Mbit/s that its link is limited to."""
    told = json.loads(cluster.head.run(f'tc -json qdisc show dev {node.name}'))
    rates = [queue['options']['rate'] for queue in told if queue['kind'] == 'tbf']
    return 8e-6 * rates[0] if rates else None
