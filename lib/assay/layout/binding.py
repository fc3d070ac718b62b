"""What a layout binds a rank to."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from assay.layout.placement import Placement
from assay.witness.placement import Host, Rank, cores_in_words


class Binding(ABC):
    """Which cores a rank must have. ``number`` is a rank's place on its host, from 0."""

    @abstractmethod
    def is_kept(self, host: Host, number: int, rank: Rank, placement: Placement) -> bool:
        """Whether a rank has the cores that it is bound to."""

    @abstractmethod
    def most(self, host: Host, placement: Placement) -> float:
        """The most cores of a bound rank; with more, and all of the host's, it is not bound."""

    @abstractmethod
    def rule(self, host: Host, placement: Placement) -> str:
        """What the layout does with a rank, to go on from ``layout packed``."""


class ToCores(Binding):
    """To as many cores as it has threads."""

    def is_kept(self, host: Host, number: int, rank: Rank, placement: Placement) -> bool:
        return len(rank.cores) == placement.cores[number]

    def most(self, host: Host, placement: Placement) -> float:
        return max(placement.widths, default=placement.threads)

    def rule(self, host: Host, placement: Placement) -> str:
        if placement.widths:
            return f'gives the ranks {", ".join(map(str, placement.widths))}'
        return f'gives each rank {placement.threads}'


class ToDomain(Binding):
    """To the cores of one NUMA domain."""

    def is_kept(self, host: Host, number: int, rank: Rank, placement: Placement) -> bool:
        return rank.cores in host.domains.values()

    def most(self, host: Host, placement: Placement) -> float:
        return max(map(len, host.domains.values()))

    def rule(self, host: Host, placement: Placement) -> str:
        domains = '; '.join(
            f'domain {id}: {cores_in_words(cores)}' for id, cores in host.domains.items()
        )
        return f'gives each rank one NUMA domain ({domains})'


class ToNothing(Binding):
    """It may use all cores of the host."""

    def is_kept(self, host: Host, number: int, rank: Rank, placement: Placement) -> bool:
        return rank.cores == host.cores

    def most(self, host: Host, placement: Placement) -> float:
        return math.inf

    def rule(self, host: Host, placement: Placement) -> str:
        return f'leaves it all {len(host.cores)}'
