"""The processes of this machine, and the CPU time of those that are not of this run."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from assay.running import runs
from assay.text import plain

#: Seconds in which the kernel counts CPU time.
TICK = 1 / os.sysconf('SC_CLK_TCK')


@dataclass(frozen=True)
class ProcessStat:
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


def read_process(pid: int) -> ProcessStat:
    """:raises OSError: if it has gone, or is hidden."""
    stat = Path(f'/proc/{pid}/stat').read_text(errors='replace')
    name, _, rest = stat.rpartition(')')
    fields = rest.split()  # from the third on
    user, system, of_children, in_children = (int(one) * TICK for one in fields[11:15])
    return ProcessStat(
        name=name.partition('(')[2],
        has_ended=fields[0] in 'XZ',
        parent=int(fields[1]),
        session=int(fields[3]),
        started=int(fields[19]),
        ran=user + system,
        reaped=of_children + in_children,
    )


def run_of(pid: int) -> str | None:
    """The folder of the run that a process was started for, by its environment; None of others."""
    try:
        variables = Path(f'/proc/{pid}/environ').read_bytes()
    except OSError:  # it has ended, or is somebody else's
        return None
    name = f'{runs.VARIABLE}='.encode()
    values = [one.removeprefix(name) for one in variables.split(b'\0') if one.startswith(name)]
    return os.fsdecode(values[0]) if values else None


#: Processes that a sentence names: the busiest, and those that used this share of all others' time.
MOST, WORTH_NAMING = 3, 0.2

#: The kernel's own processes are children of this one. What they do may be for the job.
_KTHREADD = 2


@dataclass(frozen=True)
class Use:
    """The CPU time that others used in an interval.

    :param seconds: that have passed.
    :param cpu: CPU seconds that others used.
    :param busiest: words about the processes that used most of it.
    """

    seconds: float
    cpu: float
    busiest: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share that others used of the CPUs that this process may run on."""
        return self.cpu / (self.seconds * len(os.sched_getaffinity(0)))


class Others:
    """Looks at the processes of this machine, and later at what they have used since.

    A process is of this run if its environment says so, as each that a job starts inherits it. Not
    all keep it: descendants of this process, members of a job's session, and the `assay` that
    started this process are of the run too.
    Processes that cannot be seen, as in another container, do not count as others'.

    :param sessions: of the jobs that this process has started; more may follow.
    """

    def __init__(self, sessions: Collection[int] = ()) -> None:
        self._sessions = sessions
        self._began, self._before = time.monotonic(), self._look()

    def _look(self) -> dict[tuple[int, int], ProcessStat]:
        return {
            key: process
            for key, process in _processes().items()
            if process.session not in self._sessions
        }

    def use(self, cpus: Collection[int] | None = None) -> Use:
        """The CPU time that others used since the start.

        :param cpus: only by processes that may run on one of these; None for all.
        """
        now = self._look()
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
        used = {
            key: seconds
            for key, seconds in used.items()
            if seconds > 0 and (cpus is None or not _may_run_on(key[0]).isdisjoint(cpus))
        }
        cpu = sum(used.values())
        worth = max(WORTH_NAMING * cpu, TICK)
        first = sorted(used, key=lambda key: -used[key])[:MOST]
        busiest = tuple(
            f'{plain(now[key].name)} (process {key[0]}) for {used[key]:.1f} s'
            for key in first
            if used[key] >= (TICK if key is first[0] else worth)
        )
        return Use(time.monotonic() - self._began, cpu, busiest)


def _processes() -> dict[tuple[int, int], ProcessStat]:
    """Number and start of each process that is not of this run, and what it is."""
    own = os.environ.get(runs.VARIABLE, '')
    above = {1, *_ancestors()}
    found, parents, ours = {}, {}, {os.getpid()}
    if run_of(os.getpid()) == own:
        ours.add(os.getppid())
    for pid in pids():
        try:
            one = read_process(pid)
        except OSError:  # it has gone
            continue
        parents[pid] = one.parent
        # One that has ended, and that nobody has asked for yet, does not say whose it was.
        if _KTHREADD in (pid, one.parent) or one.has_ended:
            continue
        if run_of(pid) == own:
            ours.add(pid)
        # Those above are given what our jobs leave when they end.
        found[pid, one.started] = replace(one, reaped=0.0) if pid in above else one
    return {key: one for key, one in found.items() if not _descends(key[0], ours, parents)}


def _descends(pid: int, ours: set[int], parents: dict[int, int]) -> bool:
    """Whether a process or one above it is of this run."""
    seen = set()  # numbers may be given anew while one looks
    while pid in parents and pid not in seen:
        if pid in ours:
            return True
        seen.add(pid)
        pid = parents[pid]
    return False


def _may_run_on(pid: int) -> set[int]:
    """The CPUs of a process's threads; none if it has ended."""
    found: set[int] = set()
    with suppress(OSError):
        for folder in Path(f'/proc/{pid}/task').iterdir():
            with suppress(OSError):  # this one has ended
                found |= os.sched_getaffinity(int(folder.name))
    return found


def _ancestors() -> Iterator[int]:
    """The processes that this one is a descendant of."""
    pid = os.getppid()
    while pid:
        yield pid
        try:
            pid = read_process(pid).parent
        except OSError:  # it is hidden
            return
