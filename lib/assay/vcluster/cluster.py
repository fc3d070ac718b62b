"""The whole cluster: up, down, and what it is made of."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from assay import AssayError, paths
from assay.locks import LockedError, lock
from assay.text import plain
from assay.vcluster import cgroup, namespaces, slurm
from assay.vcluster.locks import check_private
from assay.vcluster.node import (
    BRIDGE,
    MOST_NODES,
    SEARCH,
    Node,
    Switch,
    are_up,
    kill_all,
    locks,
    unique_name,
)

STATE = paths.STATE / 'vcluster'
RECORD = 'cluster.json'
TURNS = Path(__file__).with_name('turns.py')

TOOLS = {
    'slurmctld': 'slurmctld',
    'slurmd': 'slurmd',
    'srun': 'slurm-client',
    'sacct': 'slurm-client',
    'munged': 'munge',
    'ip': 'iproute2',
    'tc': 'iproute2',
}
#: Slurm's PMIx and MUNGE plugins, which nothing but their package tells of.
PLUGINS = 'slurm-wlm-basic-plugins'

#: Seconds that the nodes may take to be idle. Where a link was down, connections are tried again
#: only after 16 s and 32 s.
PATIENCE = 120

_STOPS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def what_is_missing() -> list[str]:
    """The requirements of a cluster that this machine lacks, a sentence each."""
    if platform.system() != 'Linux':
        return ['it is not Linux']
    lacking = []
    if os.geteuid() != 0:
        lacking.append('you are not root, and slurmd, MUNGE and cgroups want it')
    if tools := [tool for tool in TOOLS if not shutil.which(tool, path=SEARCH)]:
        packages = ' '.join(sorted({TOOLS[tool] for tool in tools} | {PLUGINS}))
        lacking.append(f'there is no {", ".join(tools)} (Debian: apt install {packages})')
    elif os.geteuid() == 0:
        lacking += filter(None, [namespaces.why_no_namespaces(), cgroup.why_no_cgroups()])
    return lacking


class Cluster:
    """A head and its compute nodes.

    :param nodes: the number of compute nodes.
    :param cpus: CPUs of each; nodes share them where the machine has too few.
    :param switches: that the nodes are behind, as many behind each; with 1, all are joined at once.
    :raises AssayError: if there can be no such number of nodes.
    """

    def __init__(self, nodes: int = 4, cpus: int = 1, switches: int = 1) -> None:
        if not 1 <= nodes <= MOST_NODES:
            raise AssayError(f'--size {nodes}: there can be 1 to {MOST_NODES} nodes')
        own = sorted(os.sched_getaffinity(0))
        self.cpus = cpus
        self.head = Node(STATE, 0)
        self.switches = [Switch(self.head, k + 1) for k in range(switches)] if switches > 1 else []
        self.nodes = [
            Node(
                STATE,
                i + 1,
                tuple(sorted(own[(i * cpus + k) % len(own)] for k in range(cpus))),
                self.switches[i * switches // nodes].bridge if self.switches else BRIDGE,
            )
            for i in range(nodes)
        ]

    @staticmethod
    def current() -> Cluster:
        """The one that is up.

        :raises AssayError: if none is, or its files are not what it was started with.
        """
        if not are_up(STATE):
            raise AssayError('no virtual cluster is up. Start one: ./assay cluster up')
        try:
            _check_state()
            return _recorded()
        except FileNotFoundError:
            raise AssayError(
                f'the virtual cluster has lost its files, which were in {STATE}. '
                f'Take it down: ./assay cluster down'
            ) from None

    def node(self, name: str) -> Node:
        """The node of that name.

        :raises AssayError: if there is none.
        """
        for node in [self.head, *self.nodes]:
            if node.name == name:
                return node
        raise AssayError(
            f'unknown node {name!r}. Nodes: {", ".join(n.name for n in [self.head, *self.nodes])}.'
        )

    @property
    def parts(self) -> list[Node | Switch]:
        """All that can be broken."""
        return [*self.nodes, *self.switches]

    def part(self, name: str) -> Node | Switch:
        """The node or switch of that name.

        :raises AssayError: if there is none.
        """
        return next((one for one in self.switches if one.name == name), None) or self.node(name)

    def up(self) -> None:
        """Start it, and wait until Slurm calls all its nodes idle.

        :raises AssayError: if one is up already, if something is missing, or if it does not start;
            then nothing is left of it.
        """
        self._refuse()
        with _alone(), _stopped_once():
            if are_up(STATE):
                raise AssayError('a virtual cluster is up. Take it down: ./assay cluster down')
            _clear()
            STATE.parent.mkdir(exist_ok=True)
            try:
                STATE.mkdir(mode=0o700)
                _check_state()
                about = {'nodes': len(self.nodes), 'cpus': self.cpus}
                (STATE / RECORD).write_text(
                    json.dumps({**about, 'switches': len(self.switches) or 1})
                )
                sacct = shutil.which('sacct', path=SEARCH)
                assert sacct, 'it is one of the commands without which there is no cluster'
                slurm.write_slurm_files(STATE, self.head, self.nodes, self.switches, sacct)
                self.head.boot(None)
                for switch in self.switches:
                    switch.start()
                for node in self.nodes:
                    node.boot(self.head)
                self._take_turns()
                self.wait_until_idle(starts=True)
            except BaseException as error:
                fatal = fatal_line(STATE)
                with _unstoppable():
                    _end()
                if fatal and isinstance(error, AssayError):
                    raise AssayError(f'Slurm does not start: {fatal}') from None
                raise

    def _take_turns(self) -> None:
        """Let nodes that share a CPU have it in turn; it ends with the head."""
        for cpu in sorted({cpu for node in self.nodes for cpu in node.cpus}):
            groups = [node.group for node in self.nodes if node.group and cpu in node.cpus]
            if len(groups) > 1:
                used = [str(group.used) for group in groups]
                command = [sys.executable, '-I', str(TURNS), str(cpu), str(self.cpus), *used]
                self.head.start(command, stdout=subprocess.DEVNULL)

    def _refuse(self) -> None:
        if lacking := what_is_missing():
            raise AssayError(
                f'this machine can have no virtual cluster: {"; ".join(lacking)}. '
                f'See docs/vcluster.md.'
            )
        own = len(os.sched_getaffinity(0))
        if not 1 <= self.cpus <= own:
            raise AssayError(f'--cpus {self.cpus}: a node can have 1 to {own} CPUs here')
        if len(self.switches) > len(self.nodes):
            raise AssayError(f'--switches {len(self.switches)}: each needs a node, of --size')

    def wait_until_idle(self, starts: bool = False) -> None:
        """Wait until Slurm would start a job on every node.

        :param starts: whether the cluster does: a daemon that ends keeps it from that.
        :raises AssayError: if one is not ready within :data:`PATIENCE`, with Slurm's reason.
        """
        deadline = time.monotonic() + PATIENCE
        while set(states := self.states().values()) != {'idle'}:
            if starts and fatal_line(STATE):
                raise AssayError('a daemon of Slurm has ended')
            if time.monotonic() > deadline:
                reasons = self.head.run('sinfo --list-reasons').strip() if states else ''
                raise AssayError(
                    f'after {PATIENCE} s not every node is idle: {self.states()}. {reasons}'
                )
            time.sleep(0.05)

    def states(self) -> dict[str, str]:
        """Slurm's state of each node: idle, allocated, down, ...; empty while Slurm starts."""
        try:
            told = self.head.run("sinfo --noheader --Node --format='%N %T'")
        except AssayError:
            return {}
        return dict(line.split() for line in told.splitlines())


def fatal_line(state: Path) -> str | None:
    """The fatal error of a Slurm daemon; None if there is none."""
    for log in sorted((state / 'logs').glob('*.log')):
        for line in log.read_text(errors='replace').splitlines():
            # `slurmctld: fatal: ...` on standard error, a time before it in a log
            if found := re.search(r'\bfatal: (.*)', line):
                return plain(f'{log.stem}: {found[1]}')
    return None


def _recorded() -> Cluster:
    return Cluster(**json.loads((STATE / RECORD).read_text()))


def _check_state() -> None:
    """Make sure that nobody but root decides what root reads and runs in the state folder.

    :raises AssayError: if another user could have put something there.
    """
    if STATE.parent.stat().st_mode & stat.S_IWOTH:
        raise AssayError(
            f'every user may write to {STATE.parent}, and so decide what root runs on the nodes: '
            f'chmod o-w {STATE.parent}'
        )
    check_private(STATE)


def size() -> tuple[int, int]:
    """Compute nodes, and CPUs of each: of the cluster that is up, or that would be."""
    try:
        cluster = _recorded()
    except (FileNotFoundError, PermissionError):  # root's: others see what would be
        cluster = Cluster()
    return len(cluster.nodes), cluster.cpus


def take_down() -> bool:
    """Take the cluster down, or what is left of one that was killed.

    :returns: whether there was anything.
    :raises AssayError: if something of it stays.
    """
    with _alone():
        was_there = are_up(STATE) or STATE.exists()
        _end()
    return was_there


def _end() -> None:
    kill_all(STATE)
    _clear()
    _remove(locks(STATE).folder)


def _clear() -> None:
    """Remove what a cluster leaves, whose nodes have ended."""
    for group in cgroup.groups_named(f'{unique_name(STATE)}-'):
        group.remove()
    _remove(STATE)


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise AssayError(f'{folder} cannot be removed: {error.strerror or error}') from None


@contextmanager
def _alone() -> Iterator[None]:
    """Keeps another command from changing the cluster at the same time."""
    held = locks(STATE)
    held.create()
    with ExitStack() as opened:
        try:
            file = os.open(held.folder, os.O_RDONLY)
            opened.callback(os.close, file)
            lock(file, held.folder, wait=False)
            # One that has just ended the cluster has removed the folder, too.
            alone = os.path.samestat(os.fstat(file), held.folder.stat())
        except (LockedError, FileNotFoundError):
            alone = False
        if not alone:
            raise AssayError('another command is starting or stopping the virtual cluster')
        yield


@contextmanager
def _stopped_once() -> Iterator[None]:
    """Has only the first signal stop this process: another may follow before it is handled."""
    handlers = {number: signal.getsignal(number) for number in _STOPS}
    told = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal told
        handler = handlers[signal.Signals(number)]
        if not told and callable(handler):
            told = True
            handler(number, frame)

    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)


@contextmanager
def _unstoppable() -> Iterator[None]:
    """Has signals wait: a second Ctrl-C does not end what the first one began."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
