"""Slurm's partitions and types of nodes, and what sbatch needs to take a job there."""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from assay import AssayError
from assay.config.scales import SCALES
from assay.discovery import policies
from assay.machine.slurm import (
    ConstraintError,
    Record,
    RefusedError,
    nodes_with,
    query,
    query_patiently,
    records,
)
from assay.running.allocation import nodes_in, value_in
from assay.text import expand_nodes, fold_nodes, many

#: Nodes that differ by no more of their memory are of one type.
ALIKE = 1.05

#: What stands in Slurm where nobody has entered a node's memory.
NO_MEMORY = 1

#: Options of sbatch that choose among the nodes of a partition, beside constraints and exclusions.
_UNREAD = ('--nodelist', '-w', '--gres', '--gpus')


@dataclass(frozen=True, order=True)
class NodeType:
    """Nodes that are the same, by Slurm's configuration.

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
        """Its memory and generic resources, in words."""
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
    :param minutes: that a job may take at most, and whose limit that is; None for no limit.
    :param memory: MiB of a node that a job may have by these options; None for all.
    :param away: nodes that no job can have now, with what Slurm says of each.
    """

    name: str
    slurm: str
    type: NodeType
    nodes: tuple[str, ...]
    access: tuple[tuple[str, str], ...]
    scales: tuple[str, ...]
    minutes: int | None
    whose: str
    memory: int | None
    away: tuple[tuple[str, str], ...]

    @property
    def options(self) -> list[str]:
        """The options of sbatch alone."""
        return [option for option, _ in self.access]

    @property
    def scales_now(self) -> list[str]:
        """The scales for which there are enough nodes now."""
        count = len(self.nodes) - len(self.away)
        return [scale for scale in self.scales if SCALES[scale] <= count]

    def job(self, nodes: int, ranks: int, minutes: int) -> list[str]:
        """All options of a job.

        :param ranks: on each node.
        :param minutes: that it takes, where the partition allows them.
        """
        return [
            *self.options,
            *policies.size_options(nodes, ranks, min(minutes, self.minutes or minutes)),
        ]


@dataclass(frozen=True)
class Seen:
    """The partitions and facts of a cluster, as Slurm reports them on a login node.

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
    asked = policies.parse_access(access)
    nodes = {one['NodeName']: one for one in records('node')}
    cluster = _configuration()
    known = {
        one['PartitionName']: policies.with_memory_of(cluster, one) for one in records('partition')
    }
    if unknown := [name for name in wanted if name not in known]:
        raise AssayError(
            f'Slurm has no partition {", ".join(unknown)}. Its partitions: {", ".join(known)}.'
        )
    is_memory_given = 'MEMORY' in cluster.get('SelectTypeParameters', '').upper()
    found: list[Partition] = []
    left_out: dict[str, str] = {}
    seen: set[str] = set()
    for name, record in sorted(known.items(), key=lambda one: _rank(one[1])):
        members = [node for node in names_of_nodes(record.get('Nodes', '')) if node in nodes]
        chosen, _ = select_nodes(asked.options, [nodes[node] for node in members])
        if wanted and name not in wanted:
            left_out[name] = 'not asked for'
        elif record.get('State') != 'UP':
            left_out[name] = f'it is {record.get("State", "in no state").lower()}'
        elif not wanted and record.get('Hidden') == 'YES':
            left_out[name] = f'it is hidden: --partition={name} takes it'
        elif not members:
            left_out[name] = 'it has no nodes'
        elif not chosen:
            left_out[name] = f'{" ".join(asked.options)} leaves none of its nodes'
        elif not wanted and seen.issuperset(members):
            left_out[name] = 'its nodes are in those above as well: --partition takes it'
        elif why := _closed(record, asked):
            left_out[name] = why
        else:
            own = {node['NodeName']: node for node in chosen}
            has_memory = is_memory_given or 'MEMORY' in record.get('SelectTypeParameters', '')
            try:
                types = _split(record, own, asked, has_memory, left_out)
            except RefusedError as error:
                left_out[name] = str(error)
            else:
                found += types
                seen.update(node for one in types for node in one.nodes)
    used = {node for one in found for node in one.nodes}
    return Seen(
        tuple(_with_names_of_their_own(found)),
        'slurm' if _has_accounting() else 'squeue',
        _addresses(nodes[name] for name in used),
        # A plugin's versions are left to srun.
        tuple(word for word in ways_of_srun()[0] if word not in ('none', 'openmpi')),
        left_out,
    )


def free_name(name: str, names: Iterable[str]) -> str:
    """A free name: this one, with underscores behind it if it is taken."""
    return free_name(f'{name}_', names) if name in names else name


def _with_names_of_their_own(partitions: Iterable[Partition]) -> Iterator[Partition]:
    names: set[str] = set()
    for one in partitions:
        name = free_name(one.name, names)
        names.add(name)
        yield replace(one, name=name)


def _configuration() -> dict[str, str]:
    lines = query_patiently('scontrol', 'show', 'config').splitlines()
    pairs = (line.partition('=') for line in lines)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _rank(record: Record) -> tuple[Any, ...]:
    """The default partition first, then those with most nodes."""
    count = int(record.get('TotalNodes', 0))
    return record.get('Default') != 'YES', -count, record['PartitionName']


def _closed(record: Record, asked: policies.Named) -> str | None:
    """Why nobody who asks like this can have a job in a partition, whatever the job is."""
    if record.get('ReqResv') == 'YES' and not asked.has('--reservation'):
        return 'its jobs need a reservation: --access=--reservation=NAME'
    if record.get('RootOnly') == 'YES' and os.geteuid():
        return 'only root submits jobs there (RootOnly=YES)'
    if record.get('DisableRootJobs') == 'YES' and not os.geteuid():
        return 'root submits no jobs there (DisableRootJobs=YES): run it as another user'
    return None


def _split(
    record: Record,
    nodes: Mapping[str, Record],
    asked: policies.Named,
    is_memory_given: bool,
    left_out: dict[str, str],
) -> list[Partition]:
    """A partition's nodes by their types, the most frequent first.

    :param is_memory_given: whether memory is given out like CPUs.
    :param left_out: types and sizes of jobs that sbatch refuses are added, and other limits.
    :raises RefusedError: if none is left where all nodes are of one type.
    """
    types = _types(nodes)
    slurm, limits = record['PartitionName'], policies.limits(record, asked)
    found = []
    if record.get('OverSubscribe', '').startswith('FORCE'):
        left_out[f'{slurm}, nodes of its own'] = (
            'Slurm gives them to several jobs, whatever a job asks for (OverSubscribe=FORCE)'
        )
    for kind, names in types.items():
        access = [(f'--partition={slurm}', '')]
        name, options = slurm, asked.options
        if len(types) > 1:
            others = [one for one in nodes if one not in names]
            feature = _feature(names, others, nodes)
            size = '-'.join(filter(None, [f'{kind.cores}c{kind.memory >> 10}g', kind.gres]))
            name += f'-{feature or size}'
            choice, options = _choice(feature, others, asked)
            access.append((choice, f'the partition has {len(types)} types of nodes'))
        access += [(option, 'named by --access') for option in options]
        own = [nodes[one] for one in names]
        away = {node['NodeName']: why for node in own if (why := _away(node, asked))}
        try:
            if len(away) == len(own):
                raise RefusedError(f'no job can have a node of it now: {away_in_words(away)}')
            there = policies.NodesOfType(
                records=own,
                options=[option for option, _ in access],
                threads=kind.threads_per_core,
                cpus=int(own[0].get('CPUTot', 0)) or kind.cores * kind.threads_per_core,
                all_memory=kind.memory if kind.knows_memory else 0,
                is_memory_given=is_memory_given,
                limits=limits,
                asked=asked,
            )
            agreed, scales = _agreed(name, there, left_out)
        except RefusedError as error:
            if len(types) == 1:
                raise
            left_out[name] = str(error)
            continue
        name = re.sub('[^a-zA-Z0-9_-]', '_', name)
        found.append(
            Partition(
                name=name,
                slurm=slurm,
                type=kind,
                nodes=tuple(names),
                access=(*access, *agreed.options),
                scales=tuple(scales),
                minutes=agreed.minutes,
                whose=agreed.whose,
                memory=agreed.memory,
                away=tuple(away.items()),
            )
        )
    return found


def _agreed(
    name: str, nodes: policies.NodesOfType, left_out: dict[str, str]
) -> tuple[policies.Terms, list[str]]:
    """How sbatch takes jobs, and the scales that it takes them at.

    :param name: of the partition.
    :param left_out: scales at which it does not are added.
    :raises RefusedError: if it takes none, with its words.
    """
    try:
        agreed, refusals = policies.agree(nodes)
    except policies.UntriedError as error:
        left_out[f'{name}, in advance'] = f'sbatch does not tell what it takes: {error}'
        return policies.terms_without_asking(nodes), nodes.scales
    for scale, why in refusals.items():
        left_out[f'{name} on {many(SCALES[scale], "node")}'] = f'sbatch refuses a job: {why}'
    return agreed, [scale for scale in nodes.scales if scale not in refusals]


def _choice(
    feature: str | None, others: Sequence[str], asked: policies.Named
) -> tuple[str, tuple[str, ...]]:
    """The option for nodes of a type, and the user's that are left beside it: it may be one."""
    names = ('--constraint', '-C') if feature else ('--exclude', '-x')
    theirs = asked.value(*names)
    left = tuple(one for one in asked.options if not one.startswith(names))
    if feature:
        simple = theirs is None or re.fullmatch(r'[\w.-]+', theirs)
        both = feature if theirs is None else f'{theirs if simple else f"({theirs})"}&{feature}'
        return f'--constraint={both}', left
    return f'--exclude={fold_nodes([*others, *names_of_nodes(theirs or "")])}', left


#: States in which a node has no new jobs until somebody or something brings it back.
_AWAY = re.compile(
    r'DOWN|DRAIN|FAIL|NO_RESPOND|NOT_RESPONDING|MAINT|RESERVED|REBOOT|UNKNOWN|INVAL|FUTURE|\*'
)


def _away(node: Record, asked: policies.Named) -> str | None:
    """Why no job can have a node now, in Slurm's words; None if one can, perhaps after others."""
    state = node.get('State', 'UNKNOWN')
    # What is switched off is switched on for a job, and does not respond meanwhile.
    words = [one for one in state.split('+') if not one.startswith('POWER')]
    if 'POWERING_UP' in state:
        words = [one for one in words if one != 'NOT_RESPONDING']
    if asked.has('--reservation'):
        words = [one for one in words if not one.startswith(('MAINT', 'RESERVED'))]
    return state if _AWAY.search('+'.join(words)) else None


def away_in_words(away: Mapping[str, str]) -> str:
    """Nodes that are away, by their states."""
    states: dict[str, list[str]] = {}
    for name, state in away.items():
        states.setdefault(state, []).append(name)
    return ', '.join(f'{fold_nodes(names)} {state}' for state, names in states.items())


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
    """The type of a node, by Slurm's configuration.

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


def select_nodes(
    options: Sequence[str], nodes: Iterable[Record]
) -> tuple[list[Record], str | None]:
    """The nodes that options of sbatch select, and an option that only Slurm can read.

    :param options: each with its value.
    """
    nodes = [*nodes]
    try:
        words = shlex.split(' '.join(options))
    except ValueError:  # which sbatch says as well
        return nodes, None
    out = nodes_in(words, '-x', '--exclude')
    left = [one for one in nodes if one['NodeName'] not in out]
    unread = next((word for word in words if word.startswith(_UNREAD)), None)
    if constraint := value_in(words, '-C', '--constraint'):
        features = {one['NodeName']: one.get('AvailableFeatures', '').split(',') for one in left}
        try:
            able = nodes_with(constraint, features)
        except ConstraintError:
            return left, f'--constraint={constraint}'
        left = [one for one in left if one['NodeName'] in able]
    return left, unread


def names_of_nodes(nodes: str) -> list[str]:
    """The names that Slurm's expression for nodes stands for.

    :raises AssayError: if it is none.
    """
    try:
        return expand_nodes(nodes)
    except ValueError as error:
        raise AssayError(f'Slurm names nodes in a way that is not known: {error}') from None


def _has_accounting() -> bool:
    try:
        query('sacct', '--parsable2', '--jobs=1', '--format=jobid,state')
    except AssayError:  # it is refused, or there is no sacct
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


def ways_of_srun() -> tuple[list[str], list[str]]:
    """The ways of srun to start an MPI program, and the versions of its plugins."""
    said = query('srun', '--mpi=list')
    words = re.findall(r'^(?:srun: )?\s*([a-z]\w*)$', said, re.MULTILINE)
    versions = re.findall(r'versions available: *(.*)$', said, re.MULTILINE)
    return words, re.findall(r'\w+', ' '.join(versions))
