"""A layout: where ranks and threads are put, and whether they sat there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from assay.cpus import as_list
from assay.layout.binding import Binding
from assay.layout.launchers import WORDS
from assay.layout.order import Order
from assay.layout.placement import Node, Placement
from assay.spelling import many
from assay.witness.placement import (
    Host,
    cores_in_words,
    crowded,
    hosts_of,
    ranks_in_words,
    shared,
    strayed,
)
from assay.witness.report import Report


@dataclass(frozen=True)
class Layout:
    """Where ranks and threads sit.

    :param name: as launchers' words, checks and sentences have it.
    :param share: how many ranks of how many threads a node gets: a placement without a launcher's
        words, from the node, the ranks asked for on it, and the cores asked for each of these.
    :param binding: what a rank is bound to.
    :param order: in which order ranks go into NUMA domains.
    """

    name: str
    share: Callable[[Node, int | None, int], Placement]
    binding: Binding
    order: Order

    def place(
        self, launcher: str, node: Node, ranks: int | None = None, cores_per_rank: int = 1
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
        options, own_env = WORDS[launcher](self.name, placement.ranks, placement.threads)
        return replace(placement, options=options, env=env | own_env)

    def verify(self, report: Report, placement: Placement) -> str | None:
        """Hold where ranks and threads sat against where they were put.

        :param placement: what :meth:`place` gave.
        :returns: None if they sat there, otherwise one sentence on the fault that explains the
            others.
        """
        hosts = hosts_of(report, placement.cores)
        if fault := _wrong_counts(hosts, placement):
            return fault
        # Those that explain others come first.
        for find in (
            partial(self._small_cpuset, placement),
            partial(self._cpu_limit, placement),
            partial(self._unbound, placement),
            partial(self._wrong_cores, placement),
            shared,
            partial(self._wrong_domain, placement),
            strayed,
            crowded,
        ):
            found = [sentence for host in hosts if (sentence := find(host))]
            if found:
                more = f' (and so it is on {len(found) - 1} more hosts)' if len(found) > 1 else ''
                return found[0] + more
        return None

    def _small_cpuset(self, placement: Placement, host: Host) -> str | None:
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

    def _cpu_limit(self, placement: Placement, host: Host) -> str | None:
        limits = [r.process.cpu_limit for r in host.ranks if r.process.cpu_limit is not None]
        needed = sum(placement.cores)
        if not limits or min(limits) >= needed:
            return None
        return (
            f'the cgroup of the job on {host.name} limits {ranks_in_words(host.ranks)} to '
            f'{min(limits):g} {"CPU" if min(limits) == 1 else "CPUs"}, '
            f'and layout {self.name} needs {needed}'
        )

    def _unbound(self, placement: Placement, host: Host) -> str | None:
        most = self.binding.most(host, placement)
        ranks = [rank for rank in host.ranks if rank.cores >= host.cores and len(rank.cores) > most]
        if not ranks:
            return None
        verb, they = ('is', 'it') if len(ranks) == 1 else ('are', 'they')
        return (
            f'{ranks_in_words(ranks)} on {host.name} {verb} not bound: {they} may use all '
            f'{len(host.cores)} cores, layout {self.name} {self.binding.rule(host, placement)}'
        )

    def _wrong_cores(self, placement: Placement, host: Host) -> str | None:
        wrong = [
            rank
            for number, rank in enumerate(host.ranks)
            if not self.binding.is_kept(host, number, rank, placement)
        ]
        if not wrong:
            return None
        alike = [rank for rank in wrong if rank.cores == wrong[0].cores]
        others = f' (and {len(wrong) - len(alike)} more wrongly)' if len(wrong) > len(alike) else ''
        return (
            f'{ranks_in_words(alike)} on {host.name} {"is" if len(alike) == 1 else "are"} bound to '
            f'{cores_in_words(wrong[0].cores)}{others}, layout {self.name} '
            f'{self.binding.rule(host, placement)}'
        )

    def _wrong_domain(self, placement: Placement, host: Host) -> str | None:
        if len(host.domains) < 2 or self.order.is_kept(host, placement.threads):
            return None
        return f'layout {self.name} {self.order.rule}, but on {host.name} sit {host.seats()}'


def _wrong_counts(hosts: list[Host], placement: Placement) -> str | None:
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
