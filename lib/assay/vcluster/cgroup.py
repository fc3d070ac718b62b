"""The CPUs of a node, and how much of their time it gets: cgroups, version 1 or 2."""

from __future__ import annotations

import time
from pathlib import Path

from assay import AssayError
from assay.files import explain_errors

MOUNT = Path('/sys/fs/cgroup')
PERIOD = 20_000  # us; the kernel's 100 ms would show as pauses within one message

#: Version 1 has a tree of groups for each.
_V1 = ('cpuset', 'cpu', 'cpuacct')


def _is_v1() -> bool:
    return (MOUNT / 'cpuset' / 'cpuset.cpus').exists()


def why_no_cgroups() -> str | None:
    """Why this machine cannot have such groups, as a sentence; None if it can."""
    needed = [MOUNT / one for one in _V1] if _is_v1() else [MOUNT]
    if not _is_v1() and 'cpuset' not in _words(MOUNT / 'cgroup.controllers'):
        return f'there are no cgroups with the controllers cpu and cpuset in {MOUNT}'
    for folder in needed:
        probe = folder / 'assay-probe'
        try:
            probe.mkdir()
            probe.rmdir()
        except OSError as error:
            return f'no cgroup can be made in {folder}: {error.strerror}'
    return None


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


class ControlGroup:
    """A named cgroup.

    :param name: unique on the machine.
    :param cpus: the CPUs that its processes may use.
    """

    def __init__(self, name: str, cpus: tuple[int, ...]) -> None:
        self.cpus = cpus
        if _is_v1():
            self.cpuset, self.cpu, self.account = (MOUNT / one / name for one in _V1)
        else:
            self.cpuset = self.cpu = self.account = MOUNT / name

    @property
    def folders(self) -> list[Path]:
        """The folders that a process has to be written to, to be in the group."""
        return list(dict.fromkeys([self.cpuset, self.cpu, self.account]))

    @property
    def used(self) -> Path:
        """The file that tells how much time of its CPUs it had: ``turns.py`` knows both forms."""
        return self.account / ('cpuacct.usage' if _is_v1() else 'cpu.stat')

    def create(self) -> None:
        """Make the group.

        :raises AssayError: if the kernel refuses.
        """
        with explain_errors(MOUNT, 'written'):
            if not _is_v1():
                (MOUNT / 'cgroup.subtree_control').write_text('+cpuset +cpu')
            for folder in self.folders:
                folder.mkdir(exist_ok=True)
            (self.cpuset / 'cpuset.cpus').write_text(','.join(map(str, self.cpus)))
            if _is_v1():
                memory = (self.cpuset.parent / 'cpuset.mems').read_text()
                (self.cpuset / 'cpuset.mems').write_text(memory)

    def join(self) -> None:
        """Put this process into the group."""
        for folder in self.folders:
            (folder / 'cgroup.procs').write_text('0')

    def limit(self, percent: float | None) -> None:
        """Give the group this much of the time of each of its CPUs; all of it if None."""
        quota = None if percent is None else int(PERIOD * len(self.cpus) * percent / 100)
        if _is_v1():
            (self.cpu / 'cpu.cfs_period_us').write_text(str(PERIOD))
            (self.cpu / 'cpu.cfs_quota_us').write_text(str(-1 if quota is None else quota))
        else:
            (self.cpu / 'cpu.max').write_text(f'{"max" if quota is None else quota} {PERIOD}')

    def read_limit(self) -> float | None:
        """Percent, as :meth:`limit` takes it."""
        if _is_v1():
            quota = (self.cpu / 'cpu.cfs_quota_us').read_text().strip()
            period = (self.cpu / 'cpu.cfs_period_us').read_text()
        else:
            quota, period = (self.cpu / 'cpu.max').read_text().split()
        if quota in ('-1', 'max'):
            return None
        return 100 * int(quota) / int(period) / len(self.cpus)

    def remove(self) -> None:
        """Remove the group, whose processes have been killed.

        :raises AssayError: if it still has some after 5 s.
        """
        for folder in self.folders:
            for _ in range(500):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)
                else:
                    break
            else:
                raise AssayError(f'{folder} cannot be removed: it still has processes')


def groups_named(prefix: str) -> list[ControlGroup]:
    """The groups whose names begin like this."""
    folders = (MOUNT / 'cpuset' if _is_v1() else MOUNT).glob(f'{prefix}*')
    return [ControlGroup(folder.name, ()) for folder in folders]
