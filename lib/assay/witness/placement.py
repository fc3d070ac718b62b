"""The verdict on a layout: whether ranks and threads sat where it puts them (:mod:`assay.layout`).

A core is bound to by being allowed one or both of its hardware threads: they share what computes,
so two busy threads need two cores.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.witness.report import Process, Report, Thread, as_list

# A thread that used less CPU time than this took nothing from the others: of the rank's wall time,
# and in seconds.
IDLE_SHARE, IDLE_TIME = 0.01, 0.02


@dataclass(frozen=True)
class _Asked:
    layout: str
    threads: int
    ranks: int
    widths: tuple[int, ...] = ()

    def cores_of(self, place: int) -> int:
        """Cores of the rank at a place on its host."""
        return self.widths[place] if self.widths else self.threads

    @property
    def cores(self) -> int:
        """Cores of all ranks of a host."""
        return sum(map(self.cores_of, range(self.ranks)))


@dataclass(frozen=True)
class _Rank:
    """A rank with all that it and its threads may use.

    OpenMP binds the main thread to the cores of one thread: the rank has those of all its threads.
    """

    process: Process
    cores: frozenset[int]

    @property
    def number(self) -> int:
        return self.process.rank


@dataclass(frozen=True)
class _Host:
    """A host with its ranks, the cores that the job may use, and those of each NUMA domain."""

    name: str
    ranks: list[_Rank]
    cores: frozenset[int]
    domains: dict[int, frozenset[int]]
    is_limited: bool

    def domain(self, rank: _Rank) -> int:
        """The domain of the rank's first core."""
        first = min(rank.cores, default=-1)
        return next((id for id, cores in self.domains.items() if first in cores), -1)

    def seats(self) -> str:
        """Who sits where: ``domain 0: ranks 0 and 2 on cores 0-1; domain 1: rank 1 on core 4``."""
        by_domain: dict[int, list[_Rank]] = {id: [] for id in self.domains}
        for rank in self.ranks:
            by_domain.setdefault(self.domain(rank), []).append(rank)
        seats = []
        for id, ranks in by_domain.items():
            if ranks:
                cores = frozenset().union(*(rank.cores for rank in ranks))
                seats.append(f'domain {id}: {_ranks(ranks)} on {_cores(cores)}')
        return '; '.join(seats)


def verify_placement(
    report: Report, layout: str, threads: int, ranks_per_node: int, widths: tuple[int, ...] = ()
) -> str | None:
    """Hold where ranks and threads sat against the layout asked for.

    :param layout: one of :data:`assay.layout.layouts.LAYOUTS`.
    :param threads: threads (and cores) of each rank, as its placement gave them.
    :param ranks_per_node: ranks on each host, likewise.
    :param widths: threads (and cores) of each rank of a host in turn, where they differ.
    :returns: None if they sat there, otherwise one sentence on the fault that explains the others.
    """
    asked = _Asked(layout, threads, ranks_per_node, widths)
    hosts = _hosts(report, asked)
    if found := _wrong_counts(report, hosts, asked):
        return found
    for check in (
        _small_cpuset,
        _cpu_limit,
        _unbound,
        _wrong_cores,
        _shared,
        _wrong_domain,
        _strayed,
        _crowded,
    ):
        found = [sentence for host in hosts if (sentence := check(report, host, asked))]
        if found:
            more = f' (and so it is on {len(found) - 1} more hosts)' if len(found) > 1 else ''
            return found[0] + more
    return None


def _hosts(report: Report, asked: _Asked) -> list[_Host]:
    by_host = report.by_host()
    hosts = []
    for host in report.hosts:
        domains = {domain.id: domain.cpus & host.cores for domain in host.numa}
        ranks = []
        for place, process in enumerate(by_host[host.name]):
            parts: list[Process | Thread] = [process]
            if place < asked.ranks and asked.cores_of(place) > 1:
                # An idle thread that may go anywhere, as some libraries start them, harms nobody.
                parts += [
                    thread
                    for thread in process.threads
                    if thread.origin == 'program'
                    and (is_busy(process, thread) or thread.cores < host.cores)
                ]
            cores = frozenset().union(*(part.cores for part in parts))
            ranks.append(_Rank(process, cores))
        usable = {id: cores for id, cores in domains.items() if cores} or {0: host.cores}
        is_limited = host.allowed < host.cpus
        hosts.append(_Host(host.name, ranks, host.cores, usable, is_limited))
    return hosts


def is_busy(process: Process, thread: Thread) -> bool:
    """Whether a thread of the program computed."""
    return thread.origin != 'mpi' and _took_time(process, thread)


def _took_time(process: Process, thread: Thread) -> bool:
    return thread.busy >= max(IDLE_TIME, IDLE_SHARE * process.wall)


# The faults, those that explain others first ----------------------------------------------------


def _wrong_counts(report: Report, hosts: list[_Host], asked: _Asked) -> str | None:
    wrong = [host for host in hosts if len(host.ranks) != asked.ranks]
    if not wrong:
        return None
    nodes = report.ranks // asked.ranks
    seen = [
        f'{host.name} has {_many(len(host.ranks), "rank")} ({_ranks(host.ranks)})'
        for host in wrong[:4]
    ]
    more = f' (and {len(wrong) - 4} more hosts wrongly)' if len(wrong) > 4 else ''
    where = f'on each of {nodes} nodes ' if nodes > 1 else ''
    were = 'was' if asked.ranks == 1 else 'were'
    return f'{", ".join(seen)}{more}, {asked.ranks} {where}{were} asked for'


def _small_cpuset(report: Report, host: _Host, asked: _Asked) -> str | None:
    what = f'the cpuset of the job on {host.name}' if host.is_limited else host.name
    cores, needed = len(host.cores), asked.cores
    if cores < needed:
        return (
            f'{what} has {_many(cores, "core")} ({as_list(host.cores)}), '
            f'and layout {asked.layout} needs {needed}'
        )
    if asked.layout in ('one-per-numa', 'hybrid') and len(host.domains) < asked.ranks:
        return (
            f'{what} has cores of {_many(len(host.domains), "NUMA domain")} '
            f'({as_list(set(host.domains))}), and layout {asked.layout} needs {asked.ranks}'
        )
    return None


def _cpu_limit(report: Report, host: _Host, asked: _Asked) -> str | None:
    limits = [r.process.cpu_limit for r in host.ranks if r.process.cpu_limit is not None]
    needed = asked.cores
    if not limits or min(limits) >= needed:
        return None
    return (
        f'the cgroup of the job on {host.name} limits {_ranks(host.ranks)} to '
        f'{min(limits):g} {"CPU" if min(limits) == 1 else "CPUs"}, '
        f'and layout {asked.layout} needs {needed}'
    )


def _unbound(report: Report, host: _Host, asked: _Asked) -> str | None:
    if asked.layout == 'one-per-node':
        return None
    if asked.layout == 'one-per-numa':
        fair, share = max(map(len, host.domains.values())), 'one NUMA domain'
    else:
        fair = max(asked.widths, default=asked.threads)
        share = ', '.join(map(str, asked.widths)) if asked.widths else str(asked.threads)
    ranks = [rank for rank in host.ranks if rank.cores >= host.cores and len(rank.cores) > fair]
    if not ranks:
        return None
    verb, they = ('is', 'it') if len(ranks) == 1 else ('are', 'they')
    return (
        f'{_ranks(ranks)} on {host.name} {verb} not bound: {they} may use all '
        f'{len(host.cores)} cores, layout {asked.layout} gives each rank {share}'
    )


def _wrong_cores(report: Report, host: _Host, asked: _Asked) -> str | None:
    if asked.layout == 'one-per-node':
        wrong = [rank for rank in host.ranks if rank.cores != host.cores]
        share = f'leaves it all {len(host.cores)}'
    elif asked.layout == 'one-per-numa':
        wrong = [rank for rank in host.ranks if rank.cores not in host.domains.values()]
        domains = '; '.join(f'domain {i}: {_cores(cores)}' for i, cores in host.domains.items())
        share = f'gives each rank one NUMA domain ({domains})'
    else:
        wrong = [
            rank
            for place, rank in enumerate(host.ranks)
            if len(rank.cores) != asked.cores_of(place)
        ]
        if asked.widths:
            share = f'gives the ranks {", ".join(map(str, asked.widths))}'
        else:
            share = f'gives each rank {asked.threads}'
    if not wrong:
        return None
    alike = [rank for rank in wrong if rank.cores == wrong[0].cores]
    others = f' (and {len(wrong) - len(alike)} more wrongly)' if len(wrong) > len(alike) else ''
    return (
        f'{_ranks(alike)} on {host.name} {"is" if len(alike) == 1 else "are"} bound to '
        f'{_cores(wrong[0].cores)}{others}, layout {asked.layout} {share}'
    )


def _shared(report: Report, host: _Host, asked: _Asked) -> str | None:
    users: dict[int, list[_Rank]] = {}
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
        return f'all {len(numbers)} ranks of {host.name} are bound to {_cores(cores)}'
    more = ''.join(f', {_numbered("rank", n)} {_cores(c)}' for n, c in others[:3])
    more += f' (and {len(others) - 3} more such groups)' if len(others) > 3 else ''
    return f'{_numbered("rank", numbers)} share {_cores(cores)}{more} of node {host.name}'


def _wrong_domain(report: Report, host: _Host, asked: _Asked) -> str | None:
    if len(host.domains) < 2:
        return None
    layout, threads = asked.layout, asked.threads
    used = frozenset().union(*(rank.cores for rank in host.ranks))
    # A domain that another rank fits into.
    roomy = {id for id, cores in host.domains.items() if len(cores - used) >= threads}
    domains = [host.domain(rank) for rank in host.ranks]
    counts = {id: domains.count(id) for id in host.domains}
    spanning = [r for r in host.ranks if not r.cores <= host.domains.get(host.domain(r), set())]
    fits_everywhere = min(map(len, host.domains.values())) >= threads
    if layout == 'packed':
        in_turn = [d for i, d in enumerate(domains) if i == 0 or d != domains[i - 1]]
        touched = {id for id, cores in host.domains.items() if cores & used}
        wrong = len(in_turn) > len(set(in_turn)) or len(touched & roomy) > 1
        rule = 'fills one NUMA domain after the other'
    elif layout == 'spread':
        least = min((counts[id] for id in roomy), default=max(counts.values()))
        wrong = max(counts.values()) - least > 1 or (fits_everywhere and bool(spanning))
        rule = 'deals the ranks round the NUMA domains'
    elif layout in ('one-per-numa', 'hybrid'):
        whole = layout == 'one-per-numa' or fits_everywhere
        wrong = whole and (bool(spanning) or any(count != 1 for count in counts.values()))
        rule = 'gives each NUMA domain one rank'
    else:
        return None
    return f'layout {layout} {rule}, but on {host.name} sit {host.seats()}' if wrong else None


def _strayed(report: Report, host: _Host, asked: _Asked) -> str | None:
    """A busy thread where its rank has no core: most likely on another rank's."""
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
            where = _cores(beyond)
            if owners:
                where = f'{_cores(frozenset().union(*(o.cores & beyond for o in owners)))} of '
                where += _ranks(owners)
            found.append(
                f'thread {thread.name} ({thread.tid}) of rank {rank.number} on {host.name} was '
                f'busy and may use {where}: the rank itself has {_cores(rank.cores)}'
            )
    return _first_of(found)


def _crowded(report: Report, host: _Host, asked: _Asked) -> str | None:
    """More threads than cores, or threads on one core though they are bound."""
    found = []
    for rank in host.ranks:
        process = rank.process
        who = f'rank {rank.number} on {host.name}'
        cores = f'{_many(len(rank.cores), "core")} ({as_list(rank.cores)})'
        busy = [thread for thread in process.threads if is_busy(process, thread)]
        asked_for = _omp_threads(report.environment_of(process))
        if len(busy) > len(rank.cores):
            found.append(f'{who} runs {len(busy)} threads on {cores}')
        elif asked_for > len(rank.cores):
            found.append(f'{who} has OMP_NUM_THREADS={asked_for} and {cores}')
        else:
            bound = [thread for thread in busy if thread.cores < rank.cores]
            for number, one in enumerate(bound):
                for other in bound[number + 1 :]:
                    if both := one.cores & other.cores:
                        found.append(
                            f'threads {one.name} ({one.tid}) and {other.name} ({other.tid}) of '
                            f'{who} share {_cores(both)}'
                        )
    return _first_of(found)


def _first_of(found: list[str]) -> str | None:
    more = f' (and {len(found) - 1} more like it)' if len(found) > 1 else ''
    return found[0] + more if found else None


def _omp_threads(environment: dict[str, str]) -> int:
    """Threads of the outermost parallel region, 0 if nothing asks for a number."""
    first = environment.get('OMP_NUM_THREADS', '').partition(',')[0].strip()
    return int(first) if first.isdigit() else 0


# Words ------------------------------------------------------------------------------------------


def _ranks(ranks: Iterable[_Rank]) -> str:
    return _numbered('rank', [rank.number for rank in ranks])


def _cores(cores: Iterable[int]) -> str:
    cores = set(cores)
    return f'core{"s" * (len(cores) != 1)} {as_list(cores)}'


def _numbered(what: str, numbers: Iterable[int]) -> str:
    """``rank 2``, ``ranks 0 and 1``, ``ranks 0-7``; a long list is cut."""
    numbers = sorted(numbers)
    if len(numbers) <= 2:
        return f'{what}{"s" * (len(numbers) != 1)} {" and ".join(map(str, numbers))}'
    parts = as_list(numbers).split(',')
    cut = f',... ({len(numbers)} in all)' if len(parts) > 8 else ''
    return f'{what}s {",".join(parts[:8])}{cut}'


def _many(count: int, what: str) -> str:
    return f'{count} {what}{"s" * (count != 1)}'
