"""Where a screening runs: on which partition, in which environment, over which fabric."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay import AssayError, paths, say
from assay.config.fabrics import load_catalogue
from assay.machine.slurm import SCHEDULERS, node_states, partitions_in
from assay.text import expand_nodes, plain

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


@dataclass(frozen=True)
class Where:
    """Where a screening runs.

    :param partition: ``system:partition``.
    :param scheduler: ReFrame's name of it.
    :param on_this_machine: whether the nodes share this machine's CPUs, as in a virtual cluster.
    :param access: options of the scheduler with which its jobs are submitted.
    :param ports: of the network of each node with their rates in Gbit/s, those that the partition
        names; None if nobody looks at any.
    """

    partition: str
    scheduler: str
    on_this_machine: bool
    environment: str
    fabric: str
    access: tuple[str, ...] = ()
    ports: Mapping[str, float] | None = None

    @property
    def options(self) -> list[str]:
        """ReFrame's options that choose the check's one case."""
        return [
            f'--checkpath={paths.CHECKS / "mpi" / "screen.py"}',
            *('-n', f'^Screen%fabric={self.fabric}%'),
            *('-p', f'^{re.escape(self.environment)}$'),
        ]


def choose_where(
    site: _SiteConfig, system: str, environment: str | None = None, fabric: str | None = None
) -> Where:
    """The one partition, the first environment, and the network's own fabric if there is one.

    :param environment: a name, if the user chose one; likewise the fabric.
    :raises AssayError: if none is fit, or which is meant is not known.
    """
    name = system.partition(':')[0]
    partitions = [
        one
        for one in site['systems'][0]['partitions']
        if one['scheduler'] != 'local' and [*_fabrics(one)]
    ]
    if not partitions:
        raise AssayError(
            f'{system} has no partition with a scheduler and a fabric between nodes: a screening '
            f'holds nodes against each other'
        )
    if len(partitions) > 1:
        ways = ' or '.join(f'--system {name}:{one["name"]}' for one in partitions)
        raise AssayError(f'{system} has several partitions: choose one by {ways}')
    (partition,) = partitions
    full_name = f'{name}:{partition["name"]}'
    fit = [
        (one, way)
        for way in _fabrics(partition)
        for one in _environments(site, partition, way)
        if environment in (None, one) and fabric in (None, way)
    ]
    if not fit:
        asked = ' and '.join(filter(None, [environment, fabric])) or 'an MPI'
        known = ', '.join(partition.get('environs', []))
        ways = ', '.join(_fabrics(partition))
        raise AssayError(
            f'{full_name} does not offer {asked} between nodes: it has the environments {known}, '
            f'and the fabrics {ways}'
        )
    extras, access = partition.get('extras', {}), tuple(partition.get('access', []))
    is_here, ports = bool(extras.get('on_this_machine')), extras.get('ports', {})
    return Where(full_name, partition['scheduler'], is_here, *fit[0], access, ports)


def _fabrics(partition: Mapping[str, Any]) -> Iterator[str]:
    """The fabrics between its nodes, those with a device of their own first."""
    known = load_catalogue().fabrics
    offered = [
        name
        for name, one in known.items()
        if one.crosses_nodes and name in partition.get('features', [])
    ]
    yield from sorted(offered, key=lambda name: not known[name].needs_device)


def _environments(site: _SiteConfig, partition: Mapping[str, Any], fabric: str) -> Iterator[str]:
    """The environments of a partition whose MPI has the fabric, in its order."""
    for name in partition.get('environs', []):
        for one in site['environments']:
            if one['name'] == name and {'mpi', fabric} <= {*one.get('features', [])}:
                yield name
                break


def why_left_out(where: Where, nodes: Collection[str]) -> dict[str, str]:
    """The nodes of a partition that are not among these, and why not, as Slurm says.

    Where it does not say, a sentence says so.
    """
    if where.scheduler not in SCHEDULERS:
        return {}
    try:
        states = node_states(partitions_in(' '.join(where.access)))
    except AssayError as error:
        say(f'which nodes of {where.partition} were left out is not known: {error}')
        return {}
    return {name: plain(why, 200) for name, why in states.items() if name not in nodes}


def nodes_to_screen(text: str) -> list[str]:
    """The names that a set of nodes has: ``n[1-4,7]``.

    :raises AssayError: if it is none.
    """
    try:
        names = expand_nodes(text)
    except ValueError as error:
        raise AssayError(f'--nodes {error}') from None
    if len(names) < 2:
        raise AssayError(f'--nodes {text}: a screening holds nodes against each other: name two')
    return names
