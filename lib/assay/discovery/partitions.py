"""Slurm's partitions and types of nodes, and what sbatch needs to take a job there."""

from __future__ import annotations

import re
import shlex
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from assay import AssayError
from assay.config.scales import SCALES
from assay.machine.slurm import Record, RefusedError, records, told
from assay.spelling import many

#: Nodes that differ by no more of their memory are of one type.
ALIKE = 1.05

#: What stands in Slurm where nobody has entered a node's memory.
NO_MEMORY = 1

#: What `sbatch --test-only` says where nodes are drained or down, for which a job would wait, and
#: where no node is like that.
_UNAVAILABLE = re.compile(
    'Requested node configuration is not available|Required node not available'
)
#: What it says beside a reason.
_NO_REASON = 'Unspecified error'

#: States of a node that jobs can have, now or when others have ended.
_UP = re.compile(r'(IDLE|MIXED|ALLOCATED)(\+(CLOUD|COMPLETING|PLANNED|RESERVED))*')

#: Options of sbatch that say where a job runs, or how large it is: they are set for each job.
_OURS = re.compile(
    r'-[pCxwNntaM]|--(partition|constraint|exclude|nodelist|nodes|ntasks\S*|time|array|clusters?'
    r'|output|chdir)(=|$)'
)

#: Options of sbatch that choose among the nodes of a partition.
_CHOICE = re.compile(
    r'(?:(?P<feature>--constraint|-C)|(?P<others>--exclude|-x)|--nodelist|-w|--gres\S*|--gpus\S*)'
    r'[=\s]*(?P<value>.*)'
)


@dataclass(frozen=True, order=True)
class NodeType:
    """Nodes that are the same, as Slurm is told.

    :param gres: such as ``gpu:4``; empty for none.
    :param memory: of a node, in MiB; the least of them.
    """

    sockets: int
    cores_per_socket: int
    threads_per_core: int
    gres: str
    memory: int

    @property
    def cores(self) -> int:
        return self.sockets * self.cores_per_socket

    @property
    def knows_memory(self) -> bool:
        return self.memory != NO_MEMORY

    @property
    def words(self) -> str:
        """As a sentence has it."""
        return ', '.join(
            [f'{many(self.sockets, "socket")} of {many(self.cores_per_socket, "core")}', *self.rest]
        )

    @property
    def rest(self) -> list[str]:
        """What it has besides processors, in words."""
        memory = [f'{self.memory / 1024:.0f} GiB'] if self.knows_memory else []
        return [*memory, *filter(None, [self.gres])]


@dataclass(frozen=True)
class Partition:
    """The nodes of one type in a partition of Slurm: a partition for ReFrame.

    :param name: for ReFrame.
    :param slurm: the partition's name for Slurm.
    :param nodes: their names.
    :param access: what sbatch needs for a job on these nodes, and the reason for each option.
    :param scales: names of :data:`assay.config.scales.SCALES` that it can have jobs of.
    :param minutes: that a job may take at most; None for no limit.
    """

    name: str
    slurm: str
    type: NodeType
    nodes: tuple[str, ...]
    access: tuple[tuple[str, str], ...]
    scales: tuple[str, ...]
    minutes: int | None

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
    :param left_out: why a partition, or jobs of some size in it, are not for ReFrame.
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
    :raises AssayError: if it does not answer, a wanted partition is not there, or an option is not
        for the user to name.
    """
    for option in access:
        if not re.fullmatch(r'-\S+', option) or _OURS.match(option):
            raise AssayError(
                f'--access={option}: name an option that sbatch needs, such as --account=NAME; '
                f'where jobs run is chosen by --partition'
            )
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
        members = [node for node in names_of_nodes(record.get('Nodes', '')) if node in nodes]
        if wanted and name not in wanted:
            left_out[name] = 'not asked for'
        elif record.get('State') != 'UP':
            left_out[name] = f'it is {record.get("State", "in no state").lower()}'
        elif not members:
            left_out[name] = 'it has no nodes'
        elif not wanted and seen.issuperset(members):
            left_out[name] = 'its nodes are in those above as well: --partition takes it'
        else:
            try:
                types = _split(record, {node: nodes[node] for node in members}, common, left_out)
            except RefusedError as error:
                left_out[name] = f'sbatch refuses a job: {error}'
            else:
                found += types
                seen.update(node for one in types for node in one.nodes)
    chosen = {node for one in found for node in one.nodes}
    return Seen(
        tuple(_with_names_of_their_own(found)),
        'slurm' if _has_accounting() else 'squeue',
        _addresses(nodes[name] for name in chosen),
        pmis(),
        left_out,
    )


def unlike(name: str, names: Iterable[str]) -> str:
    """A name that none of the others is."""
    return unlike(f'{name}_', names) if name in names else name


def _with_names_of_their_own(partitions: Iterable[Partition]) -> Iterator[Partition]:
    names: set[str] = set()
    for one in partitions:
        name = unlike(one.name, names)
        names.add(name)
        yield replace(one, name=name)


def _configuration() -> dict[str, str]:
    pairs = (line.partition('=') for line in told('scontrol', 'show', 'config').splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _rank(record: Record) -> tuple[Any, ...]:
    """The default partition first, then those with most nodes."""
    count = int(record.get('TotalNodes', 0))
    return record.get('Default') != 'YES', -count, record['PartitionName']


def _common(configuration: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What sbatch needs for a job that has its nodes alone, whatever the partition."""
    yield '--exclusive', 'jobs of others would be measured as well'
    if 'MEMORY' in configuration.get('SelectTypeParameters', ''):
        yield '--mem=0', 'memory is given out like CPUs: this is all of it'


def _split(
    record: Record,
    nodes: Mapping[str, Record],
    common: Iterable[tuple[str, str]],
    left_out: dict[str, str],
) -> list[Partition]:
    """A partition's nodes by their types, the most frequent first.

    :param left_out: types and sizes of jobs that sbatch refuses are added, and other limits.
    :raises RefusedError: if it refuses any where all nodes are of one type.
    """
    types = _types(nodes)
    slurm, limit = record['PartitionName'], _minutes(record.get('MaxTime', ''))
    found = []
    if record.get('OverSubscribe', '').startswith('FORCE'):
        left_out[f'{slurm}, nodes of its own'] = (
            'Slurm gives them to several jobs, whatever a job asks for (OverSubscribe=FORCE)'
        )
    for kind, names in types.items():
        access = [(f'--partition={slurm}', ''), *common]
        name = slurm
        if len(types) > 1:
            others = [one for one in nodes if one not in names]
            feature = _feature(names, others, nodes)
            size = '-'.join(filter(None, [f'{kind.cores}c{kind.memory >> 10}g', kind.gres]))
            name += f'-{feature or size}'
            choice = f'--constraint={feature}' if feature else f'--exclude={_folded(others)}'
            access.insert(1, (choice, f'the partition has {len(types)} types of nodes'))
        if kind.threads_per_core > 1:
            access.append(('--threads-per-core=1', 'ranks get cores, not hardware threads'))
        options, own = [option for option, _ in access], [nodes[one] for one in names]
        if why := refused(options, own):
            if len(types) == 1:
                raise RefusedError(why)
            left_out[name] = f'sbatch refuses a job: {why}'
            continue
        scales = []
        for scale in _scales(record, len(names)):
            if why := refused(options, own, SCALES[scale]):
                left_out[f'{name} on {SCALES[scale]} nodes'] = f'sbatch refuses a job: {why}'
            else:
                scales.append(scale)
        name = re.sub('[^a-zA-Z0-9_-]', '_', name)
        found.append(
            Partition(name, slurm, kind, tuple(names), tuple(access), tuple(scales), limit)
        )
    return found


def _types(nodes: Mapping[str, Record]) -> dict[NodeType, list[str]]:
    """The nodes of each type, the most frequent first.

    :raises RefusedError: if Slurm does not tell what one has.
    """
    groups: list[tuple[NodeType, list[str]]] = []
    for kind, name in sorted((node_type(node), name) for name, node in nodes.items()):
        if groups:
            last, names = groups[-1]
            if replace(kind, memory=last.memory) == last and kind.memory <= ALIKE * last.memory:
                names.append(name)
                continue
        groups.append((kind, [name]))
    return dict(sorted(groups, key=lambda one: (-len(one[1]), one[1])))


def node_type(node: Record) -> NodeType:
    """What a node is, as Slurm is told.

    :raises RefusedError: if it does not tell.
    """
    keys = ('Sockets', 'CoresPerSocket', 'ThreadsPerCore', 'RealMemory')
    try:
        sockets, cores, threads, memory = (int(node.get(key, '')) for key in keys)
        if memory != NO_MEMORY:
            memory -= int(node.get('MemSpecLimit', 0))  # which Slurm keeps for itself
    except ValueError:
        raise RefusedError(f'Slurm does not tell what its node {node["NodeName"]} has') from None
    # What a node's devices are bound to stands in brackets, and (null) for none.
    gres = re.sub(r'\(.*?\)', '', node.get('Gres', ''))
    return NodeType(sockets, cores, threads, gres, memory)


def _feature(names: list[str], others: list[str], nodes: Mapping[str, Record]) -> str | None:
    """A feature that tells these nodes of a partition from its others.

    Some plugins start a node anew to give it a feature that is available and not active.
    """

    def features(node: str, kind: str) -> set[str]:
        words = re.split(r'[,\s]', nodes[node].get(f'{kind}Features', ''))
        return {word for word in words if re.fullmatch(r'[\w.-]+', word)}

    own = set.intersection(*(features(name, 'Active') for name in names))
    foreign = {one for node in others for one in features(node, 'Available')}
    return min(own - foreign, default=None)


def _scales(record: Record, count: int) -> list[str]:
    """Those between the least and the most nodes of a job."""
    least, most = (record.get(key, '') for key in ('MinNodes', 'MaxNodes'))
    low, high = int(least) if least.isdigit() else 0, int(most) if most.isdigit() else count
    return [name for name, nodes in SCALES.items() if low <= nodes <= min(high, count)]


def _minutes(limit: str) -> int | None:
    """A limit of Slurm's, ``1-00:00:00``, in minutes; None if it is no time."""
    if match := re.fullmatch(r'(?:(\d+)-)?(\d+):(\d+):(\d+)', limit):
        days, hours, minutes, _ = (int(number or 0) for number in match.groups())
        return (24 * days + hours) * 60 + minutes
    return None


def refused(
    options: Sequence[str], nodes: Iterable[Record], count: int | None = None
) -> str | None:
    """Why sbatch would not take a job with these options; None if it would, once nodes are up.

    :param nodes: that it could have; of none nothing is concluded.
    :param count: of nodes that it asks for; None where that is left to Slurm.
    """
    why, _ = answer_of_sbatch(options, nodes, count)
    return why


def answer_of_sbatch(
    options: Sequence[str], nodes: Iterable[Record], count: int | None = None
) -> tuple[str | None, bool]:
    """The same, and whether sbatch said so: it cannot while too few of the nodes are up."""
    try:
        # An option and its value may be two words, as in the lines of a job script.
        words = [word for option in options for word in shlex.split(option)]
        words += [f'--nodes={count}'] if count else []
        told('sbatch', '--test-only', *words, '--wrap=true')
    except ValueError as error:
        return f'{" ".join(options)}: {error}', True
    except RefusedError as error:
        lines = [
            re.sub('^(sbatch: )?(error: |allocation failure: )?', '', one)
            for one in str(error).split('; ')
        ]
        reasons = [one for one in lines if _NO_REASON not in one and not _UNAVAILABLE.search(one)]
        if not reasons and sum(map(_is_up, nodes)) >= (count or 1):
            reasons = [one for one in lines if _UNAVAILABLE.search(one)]
        return '; '.join(reasons) or None, bool(reasons)
    return None, True


def _is_up(node: Record) -> bool:
    return _UP.fullmatch(node.get('State', '')) is not None


def chosen_by(options: Sequence[str], nodes: Iterable[Record]) -> tuple[list[Record], str | None]:
    """The nodes that options of sbatch leave of some, and an option that only Slurm can read.

    :param options: each with its value.
    """
    left, unread = [*nodes], None
    for option in options:
        match = _CHOICE.fullmatch(option.strip())
        if not match:
            continue
        value = match['value'].strip('\'"')
        if match['feature']:
            if not re.fullmatch(r'[\w.-]+', value):
                unread = option
                continue
            left = [one for one in left if value in one.get('AvailableFeatures', '').split(',')]
        elif match['others']:
            others = {*names_of_nodes(value)}
            left = [one for one in left if one['NodeName'] not in others]
        else:
            unread = option
    return left, unread


def names_of_nodes(nodes: str) -> list[str]:
    """The names that Slurm's expression for nodes stands for.

    :raises AssayError: if it is none.
    """
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
    except RefusedError:
        return False
    return True


def _addresses(nodes: Iterable[Record]) -> dict[str, str]:
    """Addresses that lead to nodes, by their names."""

    def resolved(node: Record) -> str:
        try:
            return socket.gethostbyname(node.get('NodeAddr', node['NodeName']))
        except OSError:
            return ''

    listed = list(nodes)
    with ThreadPoolExecutor(16) as pool:
        pairs = zip(listed, pool.map(resolved, listed), strict=True)
        return {one['NodeName']: ip for one, ip in pairs if ip and not ip.startswith('127.')}


def pmis() -> tuple[str, ...]:
    """Those by which srun could start an MPI program; a plugin's versions are left to itself."""
    words, _ = _ways_of_srun()
    return tuple(word for word in words if word not in ('none', 'openmpi'))


def ways_of_srun() -> list[str]:
    """All that srun can be told to start an MPI program by, with the versions of plugins."""
    words, versions = _ways_of_srun()
    return [*words, *versions]


def _ways_of_srun() -> tuple[list[str], list[str]]:
    said = told('srun', '--mpi=list')
    words = re.findall(r'^(?:srun: )?\s*([a-z]\w*)$', said, re.MULTILINE)
    versions = re.findall(r'versions available: *(.*)$', said, re.MULTILINE)
    return words, re.findall(r'\w+', ' '.join(versions))
