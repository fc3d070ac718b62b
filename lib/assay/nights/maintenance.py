"""Whether a machine is in maintenance, as its scheduler knows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

#: Nights are put off for so long; then somebody has to know that nothing is measured.
LONGEST = timedelta(hours=48)

#: Seconds that Slurm has for an answer.
PATIENCE = 30

_PARTITION = re.compile(r'(?:--partition[= ]|-p[= ]?)(\S+)')
_RESERVATION = re.compile(r'(?:^|[ =])(?:--)?reservation[= ]')

#: Slurm's words, by their names, of a partition or a reservation.
Record = dict[str, str]


def in_maintenance(site: _SiteConfig, options: Sequence[str]) -> str | None:
    """Why no job could start on a system, in words; None if one could.

    Each of its partitions is down, drained or inactive, or all nodes of it are in an active
    reservation of the kind MAINT. A run that names a reservation is meant for one.

    :param site: the configuration, with the system chosen.
    :param options: of ReFrame.
    """
    partitions = site['systems'][0]['partitions']
    if any(one['scheduler'] not in ('slurm', 'squeue') for one in partitions):
        return None
    known = [*_shown('partition')]
    named = bool(_RESERVATION.search(' '.join(options)))
    reserved = [] if named else [*_reservations()]
    found = [_why(one, known, reserved) for one in partitions]
    return '; '.join(dict.fromkeys(map(str, found))) if found and all(found) else None


def _why(partition: Mapping[str, Any], known: list[Record], reserved: list[Record]) -> str | None:
    from ClusterShell.NodeSet import NodeSet

    access = ' '.join(partition.get('access', []))
    chosen = _PARTITION.search(access)
    for one in known:
        name = one['PartitionName']
        if name != chosen[1] if chosen else one.get('Default') != 'YES':
            continue
        if one.get('State', 'UP') != 'UP':
            return f'the partition {name} is {one["State"].lower()}'
        nodes = NodeSet(one.get('Nodes', '').replace('(null)', ''))
        if _RESERVATION.search(access):
            continue
        for other in reserved:
            if nodes and nodes.issubset(NodeSet(other.get('Nodes', '').replace('(null)', ''))):
                return (
                    f'the reservation {other["ReservationName"]}, of the kind MAINT, has all nodes '
                    f'of the partition {name} until {other.get("EndTime", "its end")}'
                )
    return None


def _reservations() -> Iterator[Record]:
    for one in _shown('reservation'):
        if one.get('State') == 'ACTIVE' and 'MAINT' in one.get('Flags', '').split(','):
            yield one


def _shown(what: str) -> Iterator[Record]:
    """What Slurm tells; nothing if it does not: then the run will find out why."""
    command = ['scontrol', '--oneliner', 'show', what]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return
    key = f'{what.title()}Name'
    for line in told.stdout.splitlines():
        record = dict(word.partition('=')[::2] for word in line.split())
        if key in record:
            yield record
