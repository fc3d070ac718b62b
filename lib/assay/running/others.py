"""Who else uses this machine: processes that are not of this run, and the CPU time they take."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from assay.running import runs
from assay.text import plain

#: Processes that a sentence names: the busiest, and those that used this share of all others' time.
MOST, WORTH_NAMING = 3, 0.2

_TICK = 1 / os.sysconf('SC_CLK_TCK')

#: The kernel's own processes are children of this one. What they do may be for the job.
_KTHREADD = 2


@dataclass(frozen=True)
class _Process:
    """CPU seconds: ``ran`` of its own, ``reaped`` of its children that have ended."""

    name: str
    parent: int
    ran: float
    reaped: float


@dataclass(frozen=True)
class Use:
    """What others used in a time.

    :param seconds: that have passed.
    :param cpu: CPU seconds that others used.
    :param busiest: words about the processes that used most of it.
    """

    seconds: float
    cpu: float
    busiest: tuple[str, ...]

    @property
    def share(self) -> float:
        """Of the CPUs that this process may run on."""
        return self.cpu / (self.seconds * len(os.sched_getaffinity(0)))


class Others:
    """Looks at the processes of this machine, and later at what they have used since.

    A process is of this run if its environment says so, as each that a job starts inherits it. What
    cannot be seen, as in another container, is nobody's: it is not said to be others'.
    """

    def __init__(self) -> None:
        self._began, self._before = time.monotonic(), dict(_processes())

    def use(self) -> Use:
        """What others used since."""
        now = dict(_processes())
        used = {}
        for key, process in now.items():
            before = self._before.get(key)
            used[key] = process.ran + process.reaped
            used[key] -= before.ran + before.reaped if before else 0
        # Of one that has ended its parent now has all that it ever used.
        parents = {pid: (pid, started) for pid, started in now}
        for key in self._before.keys() - now.keys():
            ended = self._before[key]
            if (parent := parents.get(ended.parent)) is not None:
                used[parent] -= ended.ran + ended.reaped
        used = {key: max(seconds, 0.0) for key, seconds in used.items()}
        cpu = sum(used.values())
        worth = max(WORTH_NAMING * cpu, _TICK)
        first = sorted(used, key=lambda key: -used[key])[:MOST]
        busiest = tuple(
            f'{plain(now[key].name)} (process {key[0]}) for {used[key]:.1f} s'
            for key in first
            if used[key] >= (_TICK if key is first[0] else worth)
        )
        return Use(time.monotonic() - self._began, cpu, busiest)


def _processes() -> Iterator[tuple[tuple[int, int], _Process]]:
    """Number and start of each process that is not of this run, and what it is."""
    own = f'{runs.VARIABLE}={os.environ.get(runs.VARIABLE, "")}'.encode()
    above = {1, *_ancestors()}
    for folder in Path('/proc').glob('[0-9]*'):
        pid = int(folder.name)
        try:
            name, _, rest = (folder / 'stat').read_text(errors='replace').rpartition(')')
        except OSError:  # it has ended
            continue
        # From the third on, which is the state: proc_pid_stat(5).
        fields = rest.split()
        parent, started = int(fields[1]), int(fields[19])
        # One that has ended, and that nobody has asked for yet, does not say whose it was.
        if pid == os.getpid() or _KTHREADD in (pid, parent) or fields[0] == 'Z':
            continue
        with suppress(OSError):  # somebody else's
            if own in (folder / 'environ').read_bytes().split(b'\0'):
                continue
        user, system, of_children, in_children = (int(one) * _TICK for one in fields[11:15])
        # Those are given what our jobs leave when they end.
        reaped = 0.0 if pid in above else of_children + in_children
        yield (
            (pid, started),
            _Process(name.partition('(')[2], parent, user + system, reaped),
        )


def _ancestors() -> Iterator[int]:
    """The processes that this one is a descendant of."""
    pid = os.getppid()
    while pid:
        yield pid
        try:
            stat = Path(f'/proc/{pid}/stat').read_text(errors='replace')
        except OSError:  # it is hidden
            return
        pid = int(stat.rpartition(')')[2].split()[1])
