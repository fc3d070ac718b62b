"""A node: a process 1 of its own, and all that it started, in namespaces of their own."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from assay import AssayError, paths
from assay.vcluster.cgroup import Group

INIT = Path(__file__).with_name('node_init')
HEAD = 'head'
NAMESPACES = ('--net', '--uts', '--ipc', '--pid', '--mount')

# Of the block for benchmarks of network devices (RFC 2544): in use nowhere.
SUBNET = '198.18.0'
BRIDGE = 'br0'

#: A user's PATH may lack the folders of daemons.
SEARCH = f'{os.environ.get("PATH", os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin'

# Open MPI's daemons talk to slurmd's PMIx server, which knows no MUNGE.
ENVIRONMENT = {'PMIX_MCA_psec': 'native'}


@dataclass(frozen=True)
class Node:
    """A node of the cluster whose files are in the folder ``state``.

    :param number: 0 is the head, on which slurmctld runs and jobs are submitted.
    :param cpus: CPUs of the machine that it has; all where there are none.
    """

    state: Path
    number: int
    cpus: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return f'n{self.number}' if self.number else HEAD

    @property
    def address(self) -> str:
        return f'{SUBNET}.{10 + self.number}'

    @property
    def group(self) -> Group | None:
        """Its cgroup; None for the head."""
        name = f'{group_prefix(self.state)}{self.name}'
        return Group(name, self.cpus) if self.cpus else None

    @property
    def log(self) -> Path:
        return self.state / 'logs' / f'{self.name}.log'

    @property
    def pid(self) -> int | None:
        """Of its process 1, as seen from outside; None if the node is down."""
        return next((pid for pid, _ in processes(self._init)), None)

    @property
    def _init(self) -> list[str]:
        groups = [str(folder) for folder in self.group.folders] if self.group else []
        return ['bash', str(INIT), self.name, str(self.state), str(paths.ROOT), *groups]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead Slurm's commands to this cluster."""
        search = f'{self.state / "bin"}:{SEARCH}'
        return {'SLURM_CONF': str(self.state / 'slurm.conf'), 'PATH': search, **ENVIRONMENT}

    def command(self, argv: list[str], folder: Path | None = None) -> list[str]:
        """The command that runs ``argv`` on this node, in ``folder``.

        :raises AssayError: if the node is down.
        """
        if (pid := self.pid) is None:
            raise AssayError(
                f'node {self.name} is down. Start it: ./assay cluster heal {self.name}'
            )
        enter = ['nsenter', f'--target={pid}', *NAMESPACES, '--']
        variables = [f'{name}={value}' for name, value in self.environment.items()]
        return [*enter, 'env', f'--chdir={folder or self.state}', *variables, *argv]

    def run(self, command: str) -> str:
        """Run a command on this node that is expected to work; return what it printed.

        :raises AssayError: with its error message, if it fails.
        """
        enter = self.command(shlex.split(command))
        done = subprocess.run(enter, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr or done.stdout).strip() or f'exit code {done.returncode}'
            raise AssayError(f'{command} on {self.name}: {reason}')
        return done.stdout

    def start(self, argv: list[str], log: Path, stdout: int) -> subprocess.Popen[str]:
        """Start a command on this node that outlives ours; its errors go to ``log``.

        :param stdout: as for :class:`subprocess.Popen`.
        :raises AssayError: if the node is down.
        """
        with log.open('a') as errors:
            return subprocess.Popen(
                self.command(argv),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def boot(self, head: Node | None) -> None:
        """Start it, and connect it with the bridge, which the head has.

        :param head: None for the head itself.
        :raises AssayError: if it does not come up.
        """
        if self.group:
            self.group.create()
        with self.log.open('w') as log:
            process = subprocess.Popen(
                ['unshare', *NAMESPACES, '--fork', '--kill-child', '--mount-proc', *self._init],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )
        with process.stdin, process.stdout:
            if process.stdout.readline() != 'ready\n':
                raise AssayError(f'node {self.name} does not start: {self.log.read_text().strip()}')
            if head:
                self._connect(head)
            else:
                self.run(f'ip link add {BRIDGE} type bridge')
                self._set_up(BRIDGE)
            process.stdin.write('go\n')

    def _connect(self, head: Node) -> None:
        # The veth's one end is in this node from the start: eth0 is a name in every node.
        peer = f'type veth peer name eth0 netns {self.pid}'
        enter = ['nsenter', f'--target={head.pid}', '--net', '--']
        subprocess.run([*enter, *f'ip link add {self.name} {peer}'.split()], check=True)
        head.run(f'ip link set {self.name} master {BRIDGE} up')
        self._set_up('eth0')

    def _set_up(self, interface: str) -> None:
        self.run(f'ip address add {self.address}/24 dev {interface}')
        self.run(f'ip link set {interface} up')

    def kill(self) -> None:
        """As when the power fails."""
        if (pid := self.pid) is not None:
            kill([pid])


def group_prefix(state: Path) -> str:
    """What the names of the cgroups of a cluster's nodes begin with."""
    return f'assay-{hashlib.sha1(bytes(state)).hexdigest()[:8]}-'


def processes(argv: list[str]) -> list[tuple[int, list[str]]]:
    """Ids and command lines of the processes whose command line begins like this.

    The record of what runs is what runs: nothing that died by surprise leaves a wrong one.
    """
    found = []
    for folder in Path('/proc').glob('[0-9]*'):
        try:
            line = (folder / 'cmdline').read_bytes().decode(errors='replace').split('\0')
        except OSError:  # it ended meanwhile
            continue
        if line[: len(argv)] == argv:
            found.append((int(folder.name), line[:-1]))
    return found


def _inits(state: Path) -> list[int]:
    """The processes 1 of a cluster's nodes."""
    return [pid for pid, line in processes(['bash', str(INIT)]) if line[3:4] == [str(state)]]


def are_up(state: Path) -> bool:
    """Whether a node of the cluster runs."""
    return bool(_inits(state))


def kill_all(state: Path) -> None:
    """Kill all nodes of a cluster, and with them all that runs on them."""
    kill(_inits(state))


def kill(pids: list[int]) -> None:
    """Kill processes, and wait until they are gone.

    :raises AssayError: if they stay.
    """
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    deadline = time.monotonic() + 10
    while any(Path(f'/proc/{pid}').exists() for pid in pids):
        if time.monotonic() > deadline:
            raise AssayError(f'processes {pids} were killed and do not end')
        time.sleep(0.01)
