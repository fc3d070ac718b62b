"""What the kernel says of each process of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Seconds in which the kernel counts CPU time.
TICK = 1 / os.sysconf('SC_CLK_TCK')


@dataclass(frozen=True)
class Process:
    """A process as proc_pid_stat(5) has it.

    :param has_ended: whether it is there only until its parent asks for it.
    :param started: in ticks after the boot; with its number it names a process for good.
    :param ran: CPU seconds of its own.
    :param reaped: CPU seconds of its children that have ended.
    """

    name: str
    has_ended: bool
    parent: int
    session: int
    started: int
    ran: float
    reaped: float


def pids() -> Iterator[int]:
    """The number of each."""
    for folder in Path('/proc').glob('[0-9]*'):
        yield int(folder.name)


def look_at(pid: int) -> Process:
    """:raises OSError: if it has gone, or is hidden."""
    stat = Path(f'/proc/{pid}/stat').read_text(errors='replace')
    name, _, rest = stat.rpartition(')')
    fields = rest.split()  # from the third on
    user, system, of_children, in_children = (int(one) * TICK for one in fields[11:15])
    return Process(
        name=name.partition('(')[2],
        has_ended=fields[0] in 'XZ',
        parent=int(fields[1]),
        session=int(fields[3]),
        started=int(fields[19]),
        ran=user + system,
        reaped=of_children + in_children,
    )
