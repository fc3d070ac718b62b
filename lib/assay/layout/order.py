"""In which order a layout puts ranks into NUMA domains."""

from __future__ import annotations

from abc import ABC, abstractmethod

from assay.layout.placement import Placement
from assay.witness.placement import Host, Rank


class Order(ABC):
    """An order.

    :cvar rule: what the layout does with ranks, to go on from ``layout packed``.
    """

    rule: str

    def domains_needed(self, placement: Placement) -> int:
        """NUMA domains that a node must have."""
        return 0

    @abstractmethod
    def is_kept(self, host: Host, threads: int) -> bool:
        """Whether ranks of so many threads sit in this order on a host of several domains."""


class Filled(Order):
    """One domain is full before a rank goes to the next."""

    rule = 'fills one NUMA domain after the other'

    def is_kept(self, host: Host, threads: int) -> bool:
        domains = [host.domain(rank) for rank in host.ranks]
        in_turn = [d for i, d in enumerate(domains) if i == 0 or d != domains[i - 1]]
        touched = {id for id, cores in host.domains.items() if cores & host.used}
        return len(in_turn) == len(set(in_turn)) and len(touched & _roomy(host, threads)) <= 1


class Dealt(Order):
    """Each domain gets a rank before one gets another."""

    rule = 'deals the ranks round the NUMA domains'

    def is_kept(self, host: Host, threads: int) -> bool:
        counts = _counts(host)
        least = min((counts[id] for id in _roomy(host, threads)), default=max(counts.values()))
        is_even = max(counts.values()) - least <= 1
        return is_even and not (_fits_everywhere(host, threads) and _spanning(host))


class OneEach(Order):
    """Each domain has one rank."""

    rule = 'gives each NUMA domain one rank'

    def domains_needed(self, placement: Placement) -> int:
        return placement.ranks

    def is_kept(self, host: Host, threads: int) -> bool:
        if not _fits_everywhere(host, threads):
            return True
        return not _spanning(host) and all(count == 1 for count in _counts(host).values())


class AnyOrder(Order):
    """Ranks may sit in any."""

    def is_kept(self, host: Host, threads: int) -> bool:
        return True


def _counts(host: Host) -> dict[int, int]:
    """Ranks in each domain."""
    domains = [host.domain(rank) for rank in host.ranks]
    return {id: domains.count(id) for id in host.domains}


def _roomy(host: Host, threads: int) -> set[int]:
    """The domains that another rank fits into."""
    return {id for id, cores in host.domains.items() if len(cores - host.used) >= threads}


def _fits_everywhere(host: Host, threads: int) -> bool:
    """Whether a rank fits into each domain."""
    return min(map(len, host.domains.values())) >= threads


def _spanning(host: Host) -> list[Rank]:
    """The ranks with cores of several domains."""
    return [r for r in host.ranks if not r.cores <= host.domains.get(host.domain(r), frozenset())]
