"""The layouts.

========== ================================================================================
layout     ranks of a node
========== ================================================================================
packed     fill the cores of one NUMA domain after the other, each bound to a core
spread     are dealt round the NUMA domains, each bound to a core
one-per-numa  one for each NUMA domain, bound to it
one-per-node  one, free to use the whole node
hybrid     one for each NUMA domain, with a thread for each of its cores, bound to them
mixed      one with a thread for each of half of the cores, and one for each other core; each binds
           itself (:mod:`assay.layout.launchers`), as launchers have no words for ranks that differ
threads    one for each hardware thread, bound to it
cyclic     are dealt round the nodes, and fill the cores of each as packed, each bound to a core
near       are dealt round the network ports, on cores of their NUMA domains; each binds itself
far        likewise on cores of other NUMA domains, of another socket if there is one
default    are bound as the launcher does it when nobody says how, or not at all
========== ================================================================================

To add one, add it here: that places it and verifies it. Each launcher then needs its words for it:
srun in :mod:`assay.layout.launchers`, and each MPI's own launcher in the MPI's file in
:mod:`assay.mpis`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from assay.layout.launchers import WORDS
from assay.layout.sides import SIDES, Side, Sides
from assay.text import as_list, many
from assay.witness.placement import (
    PlacedHost,
    Rank,
    cores_in_words,
    crowded_cores,
    hosts_of,
    ranks_in_words,
    shared_cores,
    stray_thread,
)
from assay.witness.rails import Rails
from assay.witness.report import Report

#: Looks for something on a host, and gives a sentence of it.
Find = Callable[[PlacedHost], str | None]


class DoesNotFitError(ValueError):
    """A node has too few cores for the ranks."""


@dataclass(frozen=True)
class NodeShape:
    """The cores and NUMA domains of a node, as far as a layout needs them.

    :param cores: physical cores.
    :param numa_domains: NUMA domains.
    :param threads_per_core: hardware threads of each core.
    """

    cores: int
    numa_domains: int
    threads_per_core: int = 1


@dataclass(frozen=True)
class Placement:
    """Ranks and threads of a node, and the options of the launcher.

    :param ranks: ranks on each node.
    :param threads: threads (and cores) of each rank.
    :param options: options for the launcher.
    :param env: environment variables for the job.
    :param widths: threads (and cores) of each rank of a node in turn, where they differ;
        ``threads`` is the least of them.
    :param cpus: CPUs that the scheduler must give each rank, which may use more than it has threads
        for; None where they differ.
    :param declared: to what the launcher binds ranks when nobody says how, by the system's file: a
        name of :data:`BINDINGS`; empty if it does not say.
    """

    ranks: int
    threads: int
    options: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    widths: tuple[int, ...] = ()
    cpus: int | None = None
    declared: str = ''

    @property
    def cores(self) -> tuple[int, ...]:
        """Cores of each rank of a node in turn."""
        return self.widths or (self.threads,) * self.ranks


#: The layout of a rank on each hardware thread.
THREADS = 'threads'

#: The layout of ranks that the launcher binds as it does by itself.
GIVEN = 'default'

#: The extra of a partition that declares the binding, and its values in words.
DECLARED = 'default_binding'
BINDINGS = {
    'core': 'a core',
    'numa': 'a NUMA domain',
    'socket': 'a socket',
    'none': 'nothing',
}


# What a rank is bound to --------------------------------------------------------------------------


class Binding(ABC):
    """Which cores a rank must have. ``number`` is a rank's place on its host, from 0."""

    @abstractmethod
    def is_kept(self, host: PlacedHost, number: int, rank: Rank, placement: Placement) -> bool:
        """Whether a rank has the cores that it is bound to."""

    @abstractmethod
    def most(self, host: PlacedHost, placement: Placement) -> float:
        """The most cores of a bound rank; with more, and all of the host's, it is not bound."""

    @abstractmethod
    def rule(self, host: PlacedHost, placement: Placement) -> str:
        """The rule of the layout for a rank, to go on from ``layout packed`` in a sentence."""


class ToCores(Binding):
    """To as many cores as it has threads."""

    def is_kept(self, host: PlacedHost, number: int, rank: Rank, placement: Placement) -> bool:
        return len(rank.cores) == placement.cores[number]

    def most(self, host: PlacedHost, placement: Placement) -> float:
        return max(placement.widths, default=placement.threads)

    def rule(self, host: PlacedHost, placement: Placement) -> str:
        if placement.widths:
            return f'gives the ranks {", ".join(map(str, placement.widths))}'
        return f'gives each rank {placement.threads}'


class ToDomain(Binding):
    """To the cores of one NUMA domain."""

    def is_kept(self, host: PlacedHost, number: int, rank: Rank, placement: Placement) -> bool:
        return rank.cores in host.domains.values()

    def most(self, host: PlacedHost, placement: Placement) -> float:
        return max(map(len, host.domains.values()))

    def rule(self, host: PlacedHost, placement: Placement) -> str:
        domains = '; '.join(
            f'domain {id}: {cores_in_words(cores)}' for id, cores in host.domains.items()
        )
        return f'gives each rank one NUMA domain ({domains})'


class ToNothing(Binding):
    """It may use all cores of the host."""

    def is_kept(self, host: PlacedHost, number: int, rank: Rank, placement: Placement) -> bool:
        return rank.cores == host.cores

    def most(self, host: PlacedHost, placement: Placement) -> float:
        return math.inf

    def rule(self, host: PlacedHost, placement: Placement) -> str:
        return f'leaves it all {len(host.cores)}'


# The order of ranks in NUMA domains ---------------------------------------------------------------


class Order(ABC):
    """An order.

    :cvar rule: what the layout does with ranks, to go on from ``layout packed``.
    """

    rule: str

    def domains_needed(self, placement: Placement) -> int:
        """NUMA domains that a node must have."""
        return 0

    @abstractmethod
    def is_kept(self, host: PlacedHost, threads: int) -> bool:
        """Whether ranks of so many threads sit in this order on a host of several domains."""


class Filled(Order):
    """One domain is full before a rank goes to the next."""

    rule = 'fills one NUMA domain after the other'

    def is_kept(self, host: PlacedHost, threads: int) -> bool:
        domains = [host.domain(rank) for rank in host.ranks]
        in_turn = [d for i, d in enumerate(domains) if i == 0 or d != domains[i - 1]]
        touched = {id for id, cores in host.domains.items() if cores & host.used}
        return len(in_turn) == len(set(in_turn)) and len(touched & _roomy(host, threads)) <= 1


class Dealt(Order):
    """Each domain gets a rank before one gets another."""

    rule = 'deals the ranks round the NUMA domains'

    def is_kept(self, host: PlacedHost, threads: int) -> bool:
        counts = _counts(host)
        least = min((counts[id] for id in _roomy(host, threads)), default=max(counts.values()))
        is_even = max(counts.values()) - least <= 1
        return is_even and not (_fits_everywhere(host, threads) and _spanning(host))


class OneEach(Order):
    """Each domain has one rank."""

    rule = 'gives each NUMA domain one rank'

    def domains_needed(self, placement: Placement) -> int:
        return placement.ranks

    def is_kept(self, host: PlacedHost, threads: int) -> bool:
        if not _fits_everywhere(host, threads):
            return True
        return not _spanning(host) and all(count == 1 for count in _counts(host).values())


class AnyOrder(Order):
    """Ranks may sit in any."""

    def is_kept(self, host: PlacedHost, threads: int) -> bool:
        return True


def _counts(host: PlacedHost) -> dict[int, int]:
    """Ranks in each domain."""
    domains = [host.domain(rank) for rank in host.ranks]
    return {id: domains.count(id) for id in host.domains}


def _roomy(host: PlacedHost, threads: int) -> set[int]:
    """The domains that another rank fits into."""
    return {id for id, cores in host.domains.items() if len(cores - host.used) >= threads}


def _fits_everywhere(host: PlacedHost, threads: int) -> bool:
    """Whether a rank fits into each domain."""
    return min(map(len, host.domains.values())) >= threads


def _spanning(host: PlacedHost) -> list[Rank]:
    """The ranks with cores of several domains."""
    return [r for r in host.ranks if not r.cores <= host.domains.get(host.domain(r), frozenset())]


# A layout -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """Where ranks and threads sit.

    :param name: as launchers' words, checks and sentences have it.
    :param share: how many ranks of how many threads a node gets: a placement without a launcher's
        words, from the node, the ranks asked for on it, and the cores asked for each of these.
    :param binding: what a rank is bound to.
    :param order: in which order ranks go into NUMA domains.
    :param words: the layout whose words launchers are given; empty for its own.
    :param side: of the network ports, where the ranks go by that.
    :param is_between_nodes: whether one node shows nothing of it.
    """

    name: str
    share: Callable[[NodeShape, int | None, int], Placement]
    binding: Binding
    order: Order
    words: str = ''
    side: Side | None = None
    is_between_nodes: bool = False

    def place(
        self, launcher: str, node: NodeShape, ranks: int | None = None, cores_per_rank: int = 1
    ) -> Placement:
        """Translate it for a launcher.

        :param launcher: ``srun``, or the MPI family whose own launcher starts the job.
        :param node: the topology of the nodes.
        :param ranks: ranks on each node for ``packed`` and ``spread``; one for each core if None.
            The other layouts set their number themselves.
        :param cores_per_rank: cores that ``packed`` and ``spread`` bind a rank to.
        :raises DoesNotFitError: if the node has too few cores.
        :raises ValueError: if the launcher is unknown.
        """
        if launcher not in WORDS:
            raise ValueError(f'no layouts for launcher {launcher!r}: only {", ".join(WORDS)}')
        placement = self.share(node, ranks, cores_per_rank)
        env = {'OMP_NUM_THREADS': str(placement.threads)}
        if placement.threads > 1:
            env |= {'OMP_PLACES': 'cores', 'OMP_PROC_BIND': 'close'}
        options, own_env = WORDS[launcher](
            self.words or self.name, placement.ranks, placement.threads
        )
        return replace(placement, options=options, env=env | own_env)

    def verify(self, report: Report, placement: Placement) -> str | None:
        """Hold where ranks and threads sat against where they were put.

        :param placement: what :meth:`place` gave.
        :returns: None if they sat there, otherwise one sentence on the fault that explains the
            others.
        """
        hosts = hosts_of(report, placement.cores)
        if fault := _wrong_counts(hosts, placement) or self._wrong_nodes(hosts):
            return fault
        # Those that explain others come first.
        for find in self._faults(placement):
            if found := _of_hosts(find, hosts):
                return found
        return None

    def verify_ports(
        self, report: Report, placement: Placement, rails: Sequence[Rails]
    ) -> tuple[str | None, str | None]:
        """Hold where ranks sat against the network ports that carried their messages.

        :param rails: the ports of each host.
        :returns: why the hosts have no such layout, as only a job on them shows; if they have it,
            as :meth:`verify`.
        """
        return None, None

    def _faults(self, placement: Placement) -> Iterator[Find]:
        """Functions that each look for one fault of a host, in the order of their calls."""
        yield partial(self._small_cpuset, placement)
        yield partial(self._cpu_limit, placement)
        yield partial(self._unbound, placement)
        yield partial(self._wrong_cores, placement)
        yield shared_cores
        yield partial(self._wrong_domain, placement)
        yield stray_thread
        yield crowded_cores

    def is_packed(self, node: NodeShape, placement: Placement) -> bool:
        """Whether on such nodes it is what layout ``packed`` is as well."""
        return False

    def _wrong_nodes(self, hosts: list[PlacedHost]) -> str | None:
        return None

    def _small_cpuset(self, placement: Placement, host: PlacedHost) -> str | None:
        what = f'the cpuset of the job on {host.name}' if host.is_limited else host.name
        cores, needed = len(host.cores), sum(placement.cores)
        if cores < needed:
            return (
                f'{what} has {many(cores, "core")} ({as_list(host.cores)}), '
                f'and layout {self.name} needs {needed}'
            )
        domains, needed = len(host.domains), self.order.domains_needed(placement)
        if domains < needed:
            return (
                f'{what} has cores of {many(domains, "NUMA domain")} '
                f'({as_list(set(host.domains))}), and layout {self.name} needs {needed}'
            )
        return None

    def _cpu_limit(self, placement: Placement, host: PlacedHost) -> str | None:
        limits = [r.process.cpu_limit for r in host.ranks if r.process.cpu_limit is not None]
        needed = sum(placement.cores)
        if not limits or min(limits) >= needed:
            return None
        return (
            f'the cgroup of the job on {host.name} limits {ranks_in_words(host.ranks)} to '
            f'{min(limits):g} {"CPU" if min(limits) == 1 else "CPUs"}, '
            f'and layout {self.name} needs {needed}'
        )

    def _unbound(self, placement: Placement, host: PlacedHost) -> str | None:
        most = self.binding.most(host, placement)
        ranks = [rank for rank in host.ranks if rank.cores >= host.cores and len(rank.cores) > most]
        if not ranks:
            return None
        verb, they = ('is', 'it') if len(ranks) == 1 else ('are', 'they')
        return (
            f'{ranks_in_words(ranks)} on {host.name} {verb} not bound: {they} may use all '
            f'{len(host.cores)} cores, layout {self.name} {self.binding.rule(host, placement)}'
        )

    def _wrong_cores(self, placement: Placement, host: PlacedHost) -> str | None:
        wrong = [
            rank
            for number, rank in enumerate(host.ranks)
            if not self.binding.is_kept(host, number, rank, placement)
        ]
        if not wrong:
            return None
        alike, others = _alike(wrong)
        return (
            f'{ranks_in_words(alike)} on {host.name} {"is" if len(alike) == 1 else "are"} bound to '
            f'{cores_in_words(wrong[0].cores)}{others}, layout {self.name} '
            f'{self.binding.rule(host, placement)}'
        )

    def _wrong_domain(self, placement: Placement, host: PlacedHost) -> str | None:
        if len(host.domains) < 2 or self.order.is_kept(host, placement.threads):
            return None
        return f'layout {self.name} {self.order.rule}, but on {host.name} sit {host.seats()}'


class RoundRobin(Layout):
    """The next rank is on the next node."""

    def is_packed(self, node: NodeShape, placement: Placement) -> bool:
        return placement.ranks == 1

    def _wrong_nodes(self, hosts: list[PlacedHost]) -> str | None:
        for host in hosts:
            numbers = [rank.number for rank in host.ranks]
            if any(later - one != len(hosts) for one, later in pairwise(numbers)):
                return (
                    f'layout {self.name} deals the ranks round the {len(hosts)} nodes, '
                    f'but on {host.name} are {ranks_in_words(host.ranks)}'
                )
        return None


class BesidePorts(Layout):
    """Near to the network ports or far from them: where hosts have no such cores all may be used.

    So nothing is proved of a host by itself, and everything with its ports.
    """

    def _faults(self, placement: Placement) -> Iterator[Find]:
        return iter(())

    def verify_ports(
        self, report: Report, placement: Placement, rails: Sequence[Rails]
    ) -> tuple[str | None, str | None]:
        side = self.side
        assert side
        hosts = hosts_of(report, placement.cores)
        sides = {host.name: Sides.of(host, its) for host, its in zip(hosts, rails, strict=True)}
        for one in sides.values():
            if lacks := one.lacks(side):
                return lacks, None

        def wrong_side(host: PlacedHost) -> str | None:
            fault = sides[host.name].misplaced_rank(side)
            return fault and f'layout {self.name}: {fault}{_TO_NAME_PORTS}'

        finds: list[Find] = [
            lambda host: sides[host.name].too_few(side, sum(placement.cores)),
            *super()._faults(placement),
            wrong_side,
        ]
        return None, next(filter(None, (_of_hosts(find, hosts) for find in finds)), None)


#: What helps where ranks went by other ports than messages.
_TO_NAME_PORTS = (
    " (if messages ought to go over other ports, name those in the partition's extras: ports)"
)


class OnThreads(Layout):
    """Each rank has a hardware thread of its own."""

    def is_packed(self, node: NodeShape, placement: Placement) -> bool:
        return node.threads_per_core == 1

    def _faults(self, placement: Placement) -> Iterator[Find]:
        yield partial(self._cpu_limit, placement)
        yield self._wrong_threads
        yield self._shared_threads

    def _wrong_threads(self, host: PlacedHost) -> str | None:
        wrong = [rank for rank in host.ranks if len(rank.process.cpus) != 1]
        if not wrong:
            return None
        return (
            f'{ranks_in_words(wrong)} on {host.name} may use {len(wrong[0].process.cpus)} hardware '
            f'threads ({as_list(wrong[0].process.cpus)}), layout {self.name} gives each rank 1'
        )

    def _shared_threads(self, host: PlacedHost) -> str | None:
        users: dict[int, list[Rank]] = {}
        for rank in host.ranks:
            for cpu in rank.process.cpus:
                users.setdefault(cpu, []).append(rank)
        shared = {cpu: ranks for cpu, ranks in users.items() if len(ranks) > 1}
        if not shared:
            return None
        cpu, ranks = min(shared.items())
        more = f' (and {len(shared) - 1} more threads)' if len(shared) > 1 else ''
        return f'{ranks_in_words(ranks)} share hardware thread {cpu}{more} of node {host.name}'


class AsGiven(Layout):
    """The launcher's own layout, held to what the system's file declares of it."""

    def _faults(self, placement: Placement) -> Iterator[Find]:
        yield partial(self._small_cpuset, placement)
        yield partial(self._cpu_limit, placement)
        yield _too_many_on_cores
        yield partial(_not_as_declared, placement.declared)


def unusual_binding(report: Report) -> str | None:
    """A sentence on an unusual binding by a launcher that is no fault; None if there is none."""
    hosts = hosts_of(report, ())
    found = (_of_hosts(find, hosts) for find in (_not_bound, _all_in_one_part))
    return '; '.join(filter(None, found)) or None


def _of_hosts(find: Find, hosts: list[PlacedHost]) -> str | None:
    """The fault of the first host that has one, and how many others have one; None if none has."""
    found = [sentence for host in hosts if (sentence := find(host))]
    more = f' (and so it is on {len(found) - 1} more hosts)' if len(found) > 1 else ''
    return found[0] + more if found else None


def _too_many_on_cores(host: PlacedHost) -> str | None:
    """More ranks than cores where these may run."""
    for cores in {rank.cores: None for rank in host.ranks}:
        inside = [rank for rank in host.ranks if rank.cores <= cores]
        if len(inside) > len(cores):
            return f'{ranks_in_words(inside)} on {host.name} are bound to {cores_in_words(cores)}'
    return None


def _alike(wrong: list[Rank]) -> tuple[list[Rank], str]:
    """The ranks on the cores of the first, and words for how many others there are."""
    alike = [rank for rank in wrong if rank.cores == wrong[0].cores]
    return alike, f' (and {len(wrong) - len(alike)} more wrongly)' * (len(wrong) > len(alike))


def _not_as_declared(declared: str, host: PlacedHost) -> str | None:
    if not declared:
        return None
    wrong = [rank for rank in host.ranks if not _is_bound_to(declared, rank, host)]
    if not wrong:
        return None
    alike, others = _alike(wrong)
    return (
        f'{ranks_in_words(alike)} on {host.name} may use {cores_in_words(wrong[0].cores)}{others}, '
        f'and the system declares that its launcher binds each rank to {BINDINGS[declared]}'
    )


def _is_bound_to(declared: str, rank: Rank, host: PlacedHost) -> bool:
    match declared:
        case 'core':
            return len(rank.cores) == 1
        case 'numa':
            return rank.cores in host.domains.values()
        case 'socket':
            return rank.cores in host.packages.values()
    return rank.cores == host.cores


def _not_bound(host: PlacedHost) -> str | None:
    free = [rank for rank in host.ranks if rank.cores == host.cores]
    if not free or len(host.cores) == 1:
        return None
    are = 'is' if len(free) == 1 else 'are'
    return f'{ranks_in_words(free)} on {host.name} {are} not bound to any of its cores'


def _all_in_one_part(host: PlacedHost) -> str | None:
    """A sentence if all ranks are in one NUMA domain or socket, of several."""
    for kind, parts in (('NUMA domain', host.domains), ('socket', host.packages)):
        seats = {id for id, cores in parts.items() if cores & host.used}
        if len(parts) > 1 and len(host.ranks) > 1 and len(seats) == 1:
            where = f'{kind} {min(seats)} of {len(parts)}'
            return f'{ranks_in_words(host.ranks)} on {host.name} are all in {where}'
    return None


def _wrong_counts(hosts: list[PlacedHost], placement: Placement) -> str | None:
    wrong = [host for host in hosts if len(host.ranks) != placement.ranks]
    if not wrong:
        return None
    nodes = sum(len(host.ranks) for host in hosts) // placement.ranks
    seen = [
        f'{host.name} has {many(len(host.ranks), "rank")} ({ranks_in_words(host.ranks)})'
        for host in wrong[:4]
    ]
    more = f' (and {len(wrong) - 4} more hosts wrongly)' if len(wrong) > 4 else ''
    where = f'on each of {nodes} nodes ' if nodes > 1 else ''
    were = 'was' if placement.ranks == 1 else 'were'
    return f'{", ".join(seen)}{more}, {placement.ranks} {where}{were} asked for'


# All of them --------------------------------------------------------------------------------------


def _as_asked(node: NodeShape, ranks: int | None, cores_per_rank: int) -> Placement:
    ranks = max(1, node.cores // cores_per_rank) if ranks is None else ranks
    if ranks * cores_per_rank > node.cores:
        raise DoesNotFitError(
            f'{ranks} ranks of {cores_per_rank} core(s) do not fit on the {node.cores} core(s) of '
            f'a node'
        )
    return Placement(ranks, threads=cores_per_rank, cpus=cores_per_rank)


def _one_per_numa(node: NodeShape, ranks: int | None, cores_per_rank: int) -> Placement:
    return Placement(node.numa_domains, threads=1, cpus=node.cores // node.numa_domains)


def _one_per_node(node: NodeShape, ranks: int | None, cores_per_rank: int) -> Placement:
    return Placement(ranks=1, threads=1, cpus=node.cores)


def _hybrid(node: NodeShape, ranks: int | None, cores_per_rank: int) -> Placement:
    cores = node.cores // node.numa_domains
    return Placement(node.numa_domains, threads=cores, cpus=cores)


def _mixed(node: NodeShape, ranks: int | None, cores_per_rank: int) -> Placement:
    if node.cores < 2:
        raise DoesNotFitError('ranks that differ do not fit on the 1 core of a node')
    wide = node.cores // 2
    widths = (wide, *[1] * (node.cores - wide))
    return Placement(len(widths), threads=1, widths=widths)


def _beside_ports(node: NodeShape, ranks: int | None, cores_per_rank: int) -> Placement:
    if node.numa_domains < 2:
        raise DoesNotFitError(
            'a node has one NUMA domain, so that no core is nearer to a port than others'
        )
    # Of which domains they are only the job sees: each has about as many.
    cores = node.cores // node.numa_domains
    ranks = cores // cores_per_rank if ranks is None else ranks
    if not 0 < ranks * cores_per_rank <= cores:
        raise DoesNotFitError(
            f'{ranks} ranks of {cores_per_rank} core(s) do not fit on the {cores} core(s) of a '
            f'NUMA domain'
        )
    # A scheduler must leave them all cores to choose from.
    return Placement(ranks, threads=cores_per_rank, cpus=node.cores // ranks)


def _threads(node: NodeShape, ranks: int | None, cores_per_rank: int) -> Placement:
    return Placement(node.cores * node.threads_per_core, threads=1, cpus=1)


#: By name.
LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout('packed', _as_asked, ToCores(), Filled()),
        Layout('spread', _as_asked, ToCores(), Dealt()),
        Layout('one-per-numa', _one_per_numa, ToDomain(), OneEach()),
        Layout('one-per-node', _one_per_node, ToNothing(), AnyOrder()),
        Layout('hybrid', _hybrid, ToCores(), OneEach()),
        Layout('mixed', _mixed, ToCores(), AnyOrder()),
        OnThreads(THREADS, _threads, ToCores(), Filled()),
        RoundRobin('cyclic', _as_asked, ToCores(), Filled(), is_between_nodes=True),
        *(
            BesidePorts(
                side,
                _beside_ports,
                ToCores(),
                AnyOrder(),
                words='mixed',
                side=side,
                is_between_nodes=True,
            )
            for side in SIDES
        ),
        AsGiven(GIVEN, _as_asked, ToNothing(), AnyOrder()),
    )
}


def layout_of(name: str) -> Layout:
    """A layout by its name.

    :raises ValueError: if there is none.
    """
    if name not in LAYOUTS:
        raise ValueError(f'unknown layout {name!r}: choose from {", ".join(LAYOUTS)}')
    return LAYOUTS[name]
