"""Where ranks and threads sat, and what is wrong with that whatever was asked for.

A core is bound to by being allowed one or both of its hardware threads: they share what computes,
so two busy threads need two cores. The wish is a layout (:mod:`assay.layout`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from assay.text import as_list, many
from assay.witness.report import Domain, Host, Process, Report, Thread

# A thread that used less CPU time than this took nothing from the others: of the rank's wall time,
# and in seconds.
IDLE_SHARE, IDLE_TIME = 0.01, 0.02

#: Distances of two ranks, the nearest first; each but the last is also what both are in.
DISTANCES = (
    'within a NUMA domain',
    'between NUMA domains of a socket',
    'between sockets of a node',
    'between nodes of a switch',
    'between switches',
)


@dataclass(frozen=True)
class Rank:
    """A rank with all that it and its threads may use.

    OpenMP binds the main thread to the cores of one thread: the rank has those of all its threads.
    ``omp_threads`` are those that its environment asks for, 0 if nothing asks for a number.
    """

    process: Process
    cores: frozenset[int]
    omp_threads: int

    @property
    def number(self) -> int:
        return self.process.rank


@dataclass(frozen=True)
class PlacedHost:
    """A host with its ranks, the cores that the job may use, and those of domains and packages."""

    name: str
    ranks: list[Rank]
    cores: frozenset[int]
    domains: dict[int, frozenset[int]]
    packages: dict[int, frozenset[int]]
    is_limited: bool

    @cached_property
    def used(self) -> frozenset[int]:
        """The cores of all ranks."""
        return frozenset().union(*(rank.cores for rank in self.ranks))

    def domain(self, rank: Rank) -> int:
        """The domain of the rank's first core."""
        first = min(rank.cores, default=-1)
        return next((id for id, cores in self.domains.items() if first in cores), -1)

    def seats(self) -> str:
        """Who sits where: ``domain 0: ranks 0 and 2 on cores 0-1; domain 1: rank 1 on core 4``."""
        by_domain: dict[int, list[Rank]] = {id: [] for id in self.domains}
        for rank in self.ranks:
            by_domain.setdefault(self.domain(rank), []).append(rank)
        seats = []
        for id, ranks in by_domain.items():
            if ranks:
                cores = frozenset().union(*(rank.cores for rank in ranks))
                seats.append(f'domain {id}: {ranks_in_words(ranks)} on {cores_in_words(cores)}')
        return '; '.join(seats)


def hosts_of(report: Report, cores: Sequence[int]) -> list[PlacedHost]:
    """The hosts, with their ranks.

    :param cores: how many each rank of a host in turn was given. With one, it has those of its main
        thread.
    """
    by_host = report.by_host()
    hosts = []
    for host in report.hosts:
        ranks = []
        for place, process in enumerate(by_host[host.name]):
            parts: list[Process | Thread] = [process]
            if place < len(cores) and cores[place] > 1:
                # An idle thread that may go anywhere, as some libraries start them, harms nobody.
                parts += [
                    thread
                    for thread in process.threads
                    if thread.origin == 'program'
                    and (is_busy(process, thread) or thread.cores < host.cores)
                ]
            own = frozenset().union(*(part.cores for part in parts))
            ranks.append(Rank(process, own, _omp_threads(report.environment_of(process))))
        usable = _usable(host, host.numa)
        packages = _usable(host, host.packages)
        is_limited = host.allowed < host.cpus
        hosts.append(PlacedHost(host.name, ranks, host.cores, usable, packages, is_limited))
    return hosts


def _usable(host: Host, parts: Iterable[Domain]) -> dict[int, frozenset[int]]:
    """The cores of each part that the job may use; all are of one part if it is unknown."""
    cores = {part.id: part.cpus & host.cores for part in parts}
    return {id: its for id, its in cores.items() if its} or {0: host.cores}


def is_busy(process: Process, thread: Thread) -> bool:
    """Whether a thread of the program computed."""
    return thread.origin != 'mpi' and _took_time(process, thread)


def _took_time(process: Process, thread: Thread) -> bool:
    return thread.busy >= max(IDLE_TIME, IDLE_SHARE * process.wall)


# Faults ---------------------------------------------------------------------------------------


def shared_cores(host: PlacedHost) -> str | None:
    """Cores of several ranks."""
    users: dict[int, list[Rank]] = {}
    for rank in host.ranks:
        for core in rank.cores:
            users.setdefault(core, []).append(rank)
    groups: dict[tuple[int, ...], set[int]] = {}
    for core, ranks in sorted(users.items()):
        if len(ranks) > 1:
            groups.setdefault(tuple(rank.number for rank in ranks), set()).add(core)
    if not groups:
        return None
    (numbers, cores), *others = groups.items()
    if len(numbers) == len(host.ranks) > 2 and len(users) == len(cores):
        return f'all {len(numbers)} ranks of {host.name} share {cores_in_words(cores)}'
    more = ''.join(f', {rank_numbers_in_words(n)} {cores_in_words(c)}' for n, c in others[:3])
    more += f' (and {len(others) - 3} more such groups)' if len(others) > 3 else ''
    sharing = f'{rank_numbers_in_words(numbers)} share {cores_in_words(cores)}{more}'
    return f'{sharing} of node {host.name}'


def stray_thread(host: PlacedHost) -> str | None:
    """A busy thread outside the cores of its rank: most likely on another rank's."""
    found = []
    for rank in host.ranks:
        for thread in rank.process.threads:
            beyond = thread.cores - rank.cores
            if not beyond or not _took_time(rank.process, thread):
                continue
            owners = [other for other in host.ranks if other is not rank and other.cores & beyond]
            # The MPI's own may be free to go anywhere; bound to another's core it is in the way.
            if thread.origin == 'mpi' and (thread.cores & rank.cores or not owners):
                continue
            where = cores_in_words(beyond)
            if owners:
                theirs = frozenset().union(*(other.cores & beyond for other in owners))
                where = f'{cores_in_words(theirs)} of {ranks_in_words(owners)}'
            found.append(
                f'thread {thread.name} ({thread.tid}) of rank {rank.number} on {host.name} was '
                f'busy and may use {where}: the rank itself has {cores_in_words(rank.cores)}'
            )
    return _first_of(found)


def crowded_cores(host: PlacedHost) -> str | None:
    """More threads than cores, or threads on one core though they are bound."""
    found = []
    for rank in host.ranks:
        process = rank.process
        who = f'rank {rank.number} on {host.name}'
        cores = f'{many(len(rank.cores), "core")} ({as_list(rank.cores)})'
        busy = [thread for thread in process.threads if is_busy(process, thread)]
        if len(busy) > len(rank.cores):
            found.append(f'{who} runs {len(busy)} threads on {cores}')
        elif rank.omp_threads > len(rank.cores):
            found.append(f'{who} has OMP_NUM_THREADS={rank.omp_threads} and {cores}')
        else:
            bound = [thread for thread in busy if thread.cores < rank.cores]
            for number, one in enumerate(bound):
                for other in bound[number + 1 :]:
                    if both := one.cores & other.cores:
                        found.append(
                            f'threads {one.name} ({one.tid}) and {other.name} ({other.tid}) of '
                            f'{who} share {cores_in_words(both)}'
                        )
    return _first_of(found)


def misplaced_progress_thread(report: Report, name: str) -> str | None:
    """A rank without the progress thread, or whose thread does not have a core to itself.

    No other rank of its host computes on that core, or has its thread there.

    :param name: of the threads.
    """
    found = []
    by_host = report.by_host()
    for process in report.processes:
        who = f'rank {process.rank} on {process.host}'
        others = [other for other in by_host[process.host] if other is not process]
        threads = [thread for thread in process.threads if thread.name == name]
        if len(threads) != 1:
            found.append(f'{who} has {many(len(threads), "progress thread")}, not 1')
        for thread in threads:
            cores = cores_in_words(thread.cores)
            place = f'the progress thread ({thread.tid}) of {who} may use {cores}'
            if len(thread.cores) != 1 or thread.cores & process.cores:
                found.append(
                    f'{place}, and has to have one that its rank does not compute on: that has '
                    f'{cores_in_words(process.cores)}'
                )
            elif user := _user_of(thread.cores, others, name):
                found.append(f'{place}, as may {user}')
    return _first_of(found)


def _user_of(cores: frozenset[int], ranks: list[Process], name: str) -> str | None:
    """The first rank that may use one of the cores, or whose thread of a name may."""
    for rank in ranks:
        if rank.cores & cores:
            return f'rank {rank.rank}'
        if any(thread.cores & cores for thread in rank.threads if thread.name == name):
            return f'the progress thread of rank {rank.rank}'
    return None


def _first_of(found: list[str]) -> str | None:
    more = f' (and {len(found) - 1} more like it)' if len(found) > 1 else ''
    return found[0] + more if found else None


def _omp_threads(environment: dict[str, str]) -> int:
    """Threads of the outermost parallel region, 0 if nothing asks for a number."""
    first = environment.get('OMP_NUM_THREADS', '').partition(',')[0].strip()
    return int(first) if first.isdigit() else 0


# Words ------------------------------------------------------------------------------------------


def ranks_in_words(ranks: Iterable[Rank]) -> str:
    """``rank 2``, ``ranks 0 and 1``, ``ranks 0-7``."""
    return rank_numbers_in_words(rank.number for rank in ranks)


def cores_in_words(cores: Iterable[int]) -> str:
    """``core 2``, ``cores 0-1,4``."""
    cores = set(cores)
    return f'core{"s" * (len(cores) != 1)} {as_list(cores)}'


def rank_numbers_in_words(numbers: Iterable[int]) -> str:
    """``rank 2``, ``ranks 0 and 1``, ``ranks 0-7``; a long list is cut."""
    numbers = sorted(numbers)
    if len(numbers) <= 2:
        return f'rank{"s" * (len(numbers) != 1)} {" and ".join(map(str, numbers))}'
    parts = as_list(numbers).split(',')
    cut = f',... ({len(numbers)} in all)' if len(parts) > 8 else ''
    return f'ranks {",".join(parts[:8])}{cut}'
