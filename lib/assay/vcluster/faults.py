"""The faults of a node or a switch, and healing them.

Active faults are not recorded: they are looked up where they act.
"""

from __future__ import annotations

from assay import AssayError
from assay.vcluster import KINDS
from assay.vcluster.cgroup import ControlGroup
from assay.vcluster.cluster import Cluster
from assay.vcluster.link import Carried, Link
from assay.vcluster.node import Node, Switch


def inject(
    cluster: Cluster,
    where: Node | Switch,
    kind: str,
    value: str | None,
    jitter: float = 0,
    peer: Node | None = None,
) -> None:
    """Inject a fault.

    :param where: a switch's faults are those of its uplink.
    :param kind: one of :data:`assay.vcluster.KINDS`.
    :param value: as it says there.
    :param jitter: with ``delay``: up to so many us more, evenly distributed.
    :param peer: with ``delay`` and ``loss``: only packets to and from this node.
    :raises AssayError: if the value makes no sense, or another peer is disturbed already.
    """
    if where is cluster.head:
        raise AssayError('jobs do not run on the head node: choose a compute node')
    if kind not in KINDS:
        raise AssayError(f'unknown fault {kind!r}. Faults: {", ".join(KINDS)}.')
    if peer is not None and kind not in ('delay', 'loss'):
        raise AssayError(f'{kind} knows no pair of nodes: delay and loss do')
    if peer is not None and peer is where:
        raise AssayError(f'a pair is two nodes, and not {peer.name} twice')
    if not KINDS[kind].value and value is not None:
        raise AssayError(f'{kind} takes no value')
    link = Link.of(cluster.head, where)
    if kind == 'link':
        if value not in ('down', 'up'):
            raise AssayError('link needs down or up')
        link.set(value)
    elif kind == 'delay':
        how = Carried(_number(kind, value), jitter, _same(link, peer).loss, _address(peer))
        link.carry(how)
    elif kind == 'loss':
        lost = _number(kind, value, most=100)
        link.carry(_same(link, peer)._replace(loss=lost, peer=_address(peer)))
    elif kind == 'rate':
        link.limit(_number(kind, value, least=0.1))
    elif isinstance(where, Switch):
        raise AssayError(f'{where.name} is a switch: {kind} is for nodes')
    elif kind == 'cpu':
        _group(where).limit(_number(kind, value, least=1, most=100))
    elif kind == 'crash':
        if where.pid is not None:
            link.delete()  # first: the kernel says farewell for the processes that it kills
            where.kill()
    elif where.pid is None:
        _boot(cluster, where)


def heal_parts(cluster: Cluster, parts: list[Node | Switch]) -> None:
    """Undo all faults of nodes and switches, and wait until Slurm would start jobs.

    :raises AssayError: if Slurm does not take the nodes back.
    """
    for part in parts:
        if isinstance(part, Node) and part.pid is None:
            _boot(cluster, part)
        elif part is not cluster.head:
            link = Link.of(cluster.head, part)
            link.carry(Carried())
            link.limit(None)
            link.set('up')
            if isinstance(part, Node):
                _group(part).limit(None)
    cluster.wait_until_idle()


def active_faults(cluster: Cluster, where: Node | Switch) -> list[str]:
    """The faults of a node or a switch, in words."""
    limit = None
    if isinstance(where, Node):
        if where.pid is None:
            return ['crashed']
        limit = _group(where).read_limit()
    link = Link.of(cluster.head, where)
    delay, jitter, loss, peer = link.read_carried()
    only = next((f' to and from {one.name}' for one in cluster.nodes if one.address == peer), '')
    shown = link.show()
    found = [
        (delay or jitter)
        and f'delay {delay:g} us' + (f' + 0 to {jitter:g} us' * bool(jitter)) + only,
        loss and f'loss {loss:g}%{only}',
        (rate := link.read_limit()) and f'rate {rate:g} Mbit/s',
        limit is not None and f'cpu {limit:g}%',
        'UP' not in shown['flags'] and 'link down',
        not (delay or jitter or loss or 'master' in shown) and 'not connected',
    ]
    return [fault for fault in found if fault]


def _same(link: Link, peer: Node | None) -> Carried:
    """How packets are carried now, where that concerns the same peer."""
    now = link.read_carried()
    if any(now[:3]) and now.peer != _address(peer):
        raise AssayError(f'packets of {link.name} are disturbed for others: heal it first')
    return now


def _address(peer: Node | None) -> str:
    return peer.address if peer else Carried().peer


def _group(node: Node) -> ControlGroup:
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


def _boot(cluster: Cluster, node: Node) -> None:
    """Start it. Slurm hears that it was down, or would wait for the end of jobs it had there."""
    cluster.head.run(f'scontrol update nodename={node.name} state=down reason=crashed')
    node.boot(cluster.head)
