"""Slurm's partitions and node types, and what sbatch needs to take a job there."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay import AssayError
from assay.config.scales import SCALES
from assay.machine.slurm import Record, records, told
from assay.spelling import many

#: Slurm's words of a node that make its type.
_OF_TYPE = ('Sockets', 'CoresPerSocket', 'ThreadsPerCore', 'RealMemory', 'Gres')

#: What `sbatch --test-only` says beside a reason, or where nodes are drained: a job would wait.
_NO_REFUSAL = (
    'allocation failure: Unspecified error',
    'allocation failure: Requested node configuration is not available',
)


@dataclass(frozen=True)
class NodeType:
    """Nodes that are the same, as Slurm is told.

    :param cpus: hardware threads of a node.
    :param memory: of a node, in MiB.
    :param gres: such as ``gpu:4``; empty for none.
    """

    sockets: int
    cores_per_socket: int
    threads_per_core: int
    memory: int
    gres: str

    @property
    def cores(self) -> int:
        return self.sockets * self.cores_per_socket

    @property
    def words(self) -> str:
        """As a sentence has it."""
        cores = many(self.cores_per_socket, 'core')
        gres = f', {self.gres}' if self.gres else ''
        return f'{many(self.sockets, "socket")} of {cores}, {self.memory / 1024:.0f} GiB{gres}'


@dataclass(frozen=True)
class Partition:
    """The nodes of one type in a partition of Slurm: a partition for ReFrame.

    :param name: for ReFrame.
    :param slurm: the partition's name for Slurm.
    :param nodes: their names.
    :param access: what sbatch needs for a job on these nodes, and the reason for each option.
    :param scales: names of :data:`assay.config.scales.SCALES` that it can have jobs of.
    """

    name: str
    slurm: str
    type: NodeType
    nodes: tuple[str, ...]
    access: tuple[tuple[str, str], ...]
    scales: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        """Those of sbatch alone."""
        return [option for option, _ in self.access]


@dataclass(frozen=True)
class Seen:
    """What Slurm tells on a login node.

    :param scheduler: ReFrame's, by what tells it that a job has ended: ``slurm`` by sacct, which
        needs Slurm's accounting, or else ``squeue``.
    :param addresses: IPv4 addresses of nodes by their names, of those that have one.
    :param pmis: the PMIs that srun knows.
    :param left_out: why a partition is none for ReFrame, by its name for Slurm.
    """

    partitions: tuple[Partition, ...]
    scheduler: str
    addresses: dict[str, str]
    pmis: tuple[str, ...]
    left_out: dict[str, str]


def cluster_name() -> str:
    """Slurm's name of the cluster.

    :raises AssayError: if it does not answer.
    """
    return _configuration().get('ClusterName', 'cluster')


def see(wanted: Sequence[str], access: Sequence[str]) -> Seen:
    """Ask Slurm.

    :param wanted: names of its partitions; empty for all that add nodes to those before.
    :param access: options of sbatch that the user names.
    :raises AssayError: if it does not answer, or a wanted partition is not there.
    """
    nodes = {one['NodeName']: one for one in records('node')}
    known = {one['PartitionName']: one for one in records('partition')}
    if unknown := [name for name in wanted if name not in known]:
        raise AssayError(
            f'Slurm has no partition {", ".join(unknown)}. Its partitions: {", ".join(known)}.'
        )
    common = [*_common(_configuration()), *((option, 'named by --access') for option in access)]
    found: list[Partition] = []
    left_out: dict[str, str] = {}
    seen: set[str] = set()
    for name, record in sorted(known.items(), key=lambda one: _rank(one[1])):
        members = [node for node in _names(record.get('Nodes', '')) if node in nodes]
        if wanted and name not in wanted:
            left_out[name] = 'not asked for'
        elif record.get('State') != 'UP':
            left_out[name] = f'it is {record.get("State", "in no state").lower()}'
        elif not members:
            left_out[name] = 'it has no nodes'
        elif not wanted and seen.issuperset(members):
            left_out[name] = 'its nodes are in those above as well: --partition takes it'
        else:
            parts = [*_split(record, {node: nodes[node] for node in members}, common)]
            if refused := _refused(parts[0].options):
                left_out[name] = f'sbatch refuses a job: {refused}'
                continue
            found += parts
            seen.update(members)
    return Seen(
        tuple(found),
        'slurm' if _has_accounting() else 'squeue',
        dict(_addresses(nodes.values())),
        _pmis(),
        left_out,
    )


def _configuration() -> dict[str, str]:
    pairs = (line.partition('=') for line in told('scontrol', 'show', 'config').splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _rank(record: Record) -> tuple[Any, ...]:
    """The default partition first, then those with most nodes."""
    count = int(record.get('TotalNodes', 0))
    return record.get('Default') != 'YES', -count, record['PartitionName']


def _common(configuration: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What sbatch needs for a job that has its nodes alone, whatever the partition."""
    yield '--exclusive', 'jobs of others would be measured as well'
    if 'MEMORY' in configuration.get('SelectTypeParameters', ''):
        yield '--mem=0', 'memory is given out like CPUs: this is all of it'


def _split(
    record: Record, nodes: dict[str, Record], common: Iterable[tuple[str, str]]
) -> Iterator[Partition]:
    """A partition's nodes by their types, the most frequent first."""
    types: dict[NodeType, list[str]] = {}
    for name, node in nodes.items():
        types.setdefault(_type(node), []).append(name)
    ordered = sorted(types.items(), key=lambda one: (-len(one[1]), one[1]))
    slurm = record['PartitionName']
    for number, (kind, names) in enumerate(ordered, 1):
        access = [(f'--partition={slurm}', ''), *common]
        name = re.sub('[^a-zA-Z0-9_-]', '_', slurm)
        if len(ordered) > 1:
            others = [one for one in nodes if one not in names]
            feature = _feature(names, others, nodes)
            name += f'-{re.sub("[^a-zA-Z0-9_-]", "_", feature) if feature else number}'
            choice = f'--constraint={feature}' if feature else f'--exclude={_folded(others)}'
            access.insert(1, (choice, f'the partition has {len(ordered)} types of nodes'))
        if kind.threads_per_core > 1:
            access.append(('--threads-per-core=1', 'ranks get cores, not hardware threads'))
        scales = _scales(record, len(names), [option for option, _ in access])
        yield Partition(name, slurm, kind, tuple(names), tuple(access), tuple(scales))


def _type(node: Record) -> NodeType:
    sockets, cores, threads, memory, gres = (node.get(key, '') for key in _OF_TYPE)
    # What a node's devices are bound to stands in brackets.
    gres = re.sub(r'\(.*?\)', '', gres)  # (null) as well
    try:
        return NodeType(int(sockets), int(cores), int(threads), int(memory), gres)
    except ValueError:
        raise AssayError(f'Slurm does not tell what its node {node["NodeName"]} has') from None


def _feature(names: list[str], others: list[str], nodes: dict[str, Record]) -> str | None:
    """A feature that tells these nodes of a partition from its others."""

    def features(node: str) -> set[str]:
        words = re.split(r'[,\s]', nodes[node].get('AvailableFeatures', ''))
        return {word for word in words if re.fullmatch(r'[\w.-]+', word)}

    own = set.intersection(*map(features, names))
    return min(own - {one for node in others for one in features(node)}, default=None)


def _scales(record: Record, count: int, options: list[str]) -> Iterator[str]:
    most = record.get('MaxNodes', '')
    for name, nodes in SCALES.items():
        if nodes > min(count, int(most) if most.isdigit() else count):
            return
        if nodes > 1 and _refused([*options, f'--nodes={nodes}']):
            return
        yield name


def _refused(options: Iterable[str]) -> str | None:
    """Why sbatch would not take a job with these options; None if it would."""
    try:
        told('sbatch', '--test-only', *options, '--wrap=true')
    except AssayError as error:
        said = str(error).partition('--wrap=true: ')[2] or str(error)
        lines = [re.sub('^(sbatch: )?(error: )?', '', one) for one in said.split('; ')]
        return '; '.join(one for one in lines if one not in _NO_REFUSAL) or None
    return None


def _names(nodes: str) -> list[str]:
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    try:
        return [*NodeSet(nodes.replace('(null)', ''))]
    except NodeSetException as error:
        raise AssayError(f'Slurm names nodes in a way that is not known: {error}') from None


def _folded(names: Iterable[str]) -> str:
    from ClusterShell.NodeSet import NodeSet

    return str(NodeSet.fromlist(list(names)))


def _has_accounting() -> bool:
    try:
        told('sacct', '--parsable2', '--jobs=1', '--format=jobid,state')
    except AssayError:
        return False
    return True


def _addresses(nodes: Iterable[Record]) -> Iterator[tuple[str, str]]:
    for one in nodes:
        try:
            address = socket.gethostbyname(one.get('NodeAddr', one['NodeName']))
        except OSError:
            continue
        if not address.startswith('127.'):
            yield one['NodeName'], address


def _pmis() -> tuple[str, ...]:
    """Those by which srun could start an MPI program; a plugin's versions are left to itself."""
    words = re.findall(r'^(?:srun: )?\s*([a-z]\w*)$', told('srun', '--mpi=list'), re.MULTILINE)
    return tuple(word for word in words if word not in ('none', 'openmpi'))
