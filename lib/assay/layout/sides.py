"""Which cores of a host are near to the network ports that messages went over, and which are far.

Near to a port are the cores of its NUMA domain or, where the job has none of these, of its package.
All others are far. ``part.sh`` finds both in a job, from what it sees in ``/sys``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.text import many
from assay.witness.placement import PlacedHost, cores_in_words, ranks_in_words
from assay.witness.rails import LEAST_PART, Rails, names_in_words
from assay.witness.report import Device
from assay.witness.traffic import decimal_size

Side = Literal['near', 'far']

#: With the words for it.
SIDES: dict[Side, str] = {'near': 'near to', 'far': 'far from'}


@dataclass(frozen=True)
class Sides:
    """The cores of a job on a host, by its ports.

    :param rails: the ports that messages of a fabric go over.
    :param near: the cores near to each port that tells where it is; it may be near to none.
    """

    host: PlacedHost
    rails: Rails
    near: dict[str, frozenset[int]]

    @classmethod
    def of(cls, host: PlacedHost, rails: Rails) -> Sides:
        """The cores of a host."""
        near = {}
        for name, port in rails.by_name.items():
            # A bond itself is nowhere.
            parts = [one for one in rails.host.devices if one.master == port.name] or [port]
            placed = [one for one in parts if one.numa is not None]
            if placed:
                near[name] = frozenset().union(*(_near_to(one, host) for one in placed))
        return cls(host, rails, near)

    def cores(self, side: Side) -> frozenset[int]:
        """The cores of a side, which ranks may be bound to."""
        near = frozenset[int]().union(*self.near.values())
        return near if side == 'near' else self.host.cores - near

    def lacks(self, side: Side) -> str | None:
        """Why there is no such side, in a sentence; None if there is one."""
        name, carriers = self.host.name, self._carriers()
        if len(self.rails.host.numa) < 2:
            return f'{name} has one NUMA domain, so that no core is nearer to a port than others'
        if not carriers:
            return f'no port is known that messages of {name} went over'
        if not self.near.keys() & carriers:
            return f'{name} does not tell in which NUMA domain {names_in_words(carriers)} is'
        if not self.cores(side):
            return f'no core of the job on {name} is {SIDES[side]} {names_in_words(self.near)}'
        return None

    def too_few(self, side: Side, needed: int) -> str | None:
        """A sentence if the side has too few cores; None if ranks fit."""
        cores = self.cores(side)
        if len(cores) >= needed:
            return None
        return (
            f'the job on {self.host.name} has {many(len(cores), "core")} {SIDES[side]} '
            f'{names_in_words(self.near)}, and layout {side} needs {needed}'
        )

    def misplaced_rank(self, side: Side) -> str | None:
        """Ranks on the other side of the ports that carried the bytes, in a sentence."""
        near = {name: cores for name, cores in self.near.items() if name in self._carriers()}
        for rank in self.host.ranks:
            beside = {name for name, cores in near.items() if rank.cores & cores}
            is_near = any(rank.cores <= cores for cores in near.values())
            if is_near if side == 'near' else not beside:
                continue
            other: Side = 'far' if side == 'near' else 'near'
            ports = near.keys() if side == 'near' else beside
            carried = decimal_size(sum(_bytes(self.rails.by_name[port]) for port in ports))
            return (
                f'{ranks_in_words([rank])} on {self.host.name} has {cores_in_words(rank.cores)}, '
                f'{SIDES[other]} {names_in_words(ports)}, which carried {carried}'
            )
        return None

    def _carriers(self) -> set[str]:
        """The ports that carried a part of the bytes."""
        carried = {name: _bytes(port) for name, port in self.rails.by_name.items()}
        part = LEAST_PART * sum(carried.values()) / max(1, len(carried))
        return {name for name, count in carried.items() if count and count >= part}


def _near_to(port: Device, host: PlacedHost) -> frozenset[int]:
    here = host.domains.get(-1 if port.numa is None else port.numa)
    return here or host.packages.get(-1 if port.package is None else port.package, frozenset())


def _bytes(port: Device) -> int:
    return port.sent + port.received
