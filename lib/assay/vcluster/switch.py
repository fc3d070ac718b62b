"""A switch: a bridge of its own in the head, which an uplink joins with the others."""

from __future__ import annotations

from dataclasses import dataclass

from assay.vcluster.node import BRIDGE, Node


@dataclass(frozen=True)
class Switch:
    """A switch that some of the nodes are behind.

    :param head: the node in whose network it is.
    :param number: from 1 on.
    """

    head: Node
    number: int

    @property
    def name(self) -> str:
        """Also of the uplink's end that is in the bridge of all switches."""
        return f's{self.number}'

    @property
    def bridge(self) -> str:
        """That its nodes are in."""
        return f'{self.name}-bridge'

    @property
    def uplink(self) -> str:
        """The uplink's end that is in its own bridge."""
        return f'{self.name}-up'

    def start(self) -> None:
        """Make it, in a head that is up."""
        self.head.run(f'ip link add {self.bridge} type bridge')
        self.head.run(f'ip link set {self.bridge} up')
        self.head.run(f'ip link add {self.name} type veth peer name {self.uplink}')
        self.head.run(f'ip link set {self.uplink} master {self.bridge} up')
        self.head.run(f'ip link set {self.name} master {BRIDGE} up')
