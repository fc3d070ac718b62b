"""Whether a machine is in maintenance, as its scheduler knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from assay import AssayError
from assay.machine.slurm import SCHEDULERS, Record, partitions_in, records
from assay.text import expand_nodes

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

#: Nights are put off for so long; then somebody has to know that nothing is measured.
LONGEST = timedelta(hours=48)

_RESERVATION = re.compile(r'(?:^|\s)--reservation[= ]')
_OPTION = re.compile(r'-{0,2}(\w+)[= ]?(\S*)')


def in_maintenance(site: _SiteConfig, jobs: Sequence[str]) -> str | None:
    """Why no job could start on a system, in words; None if one could.

    Each of its partitions is down, drained or inactive, or has all of its nodes in an active
    reservation of the kind MAINT. Reservations do not count for a run that names one.

    :param site: the configuration, with the system chosen.
    :param jobs: options of all of the run's jobs, as ReFrame's ``-J`` has them.
    """
    partitions = site['systems'][0]['partitions']
    if any(one['scheduler'] not in SCHEDULERS for one in partitions):
        return None
    known = {one['PartitionName']: one for one in _shown('partition')}
    asked = {match[1]: match[2] for one in jobs if (match := _OPTION.match(one))}
    # That of jobs that name none.
    default = [name for name, one in known.items() if one.get('Default') == 'YES']
    reserved = [
        one
        for one in _shown('reservation')
        if one.get('State') == 'ACTIVE' and 'MAINT' in one.get('Flags', '').split(',')
    ]
    found: list[str | None] = []
    for partition in partitions:
        access = ' '.join(partition.get('access', []))
        in_one = 'reservation' in asked or bool(_RESERVATION.search(access))
        chosen = asked.get('partition') or asked.get('p')
        names = chosen.split(',') if chosen else partitions_in(access) or default
        found += [_why(known.get(name), [] if in_one else reserved) for name in names]
    return '; '.join(dict.fromkeys(map(str, found))) if found and all(found) else None


def _why(partition: Record | None, reserved: list[Record]) -> str | None:
    """Why no job could start in a partition, in words."""
    if partition is None:
        return None
    name, state = partition['PartitionName'], partition.get('State', 'UP')
    if state != 'UP':
        return f'the partition {name} is {state.lower()}'
    nodes = _nodes(partition)
    for one in reserved:
        if nodes and nodes <= _nodes(one):
            return (
                f'the reservation {one["ReservationName"]}, of the kind MAINT, has all nodes of '
                f'the partition {name} until {one.get("EndTime", "its end")}'
            )
    return None


def _nodes(record: Record) -> frozenset[str]:
    """Empty where Slurm names none, or in a way that is not known."""
    try:
        return frozenset(expand_nodes(record.get('Nodes', '').replace('(null)', '')))
    except ValueError:
        return frozenset()


def _shown(what: str) -> list[Record]:
    """What Slurm tells; nothing if it does not: then the run will find out why."""
    try:
        return records(what)
    except AssayError:
        return []
