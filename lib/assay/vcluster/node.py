"""A node: a process 1 of its own, and all that it started, in namespaces of their own.

And a switch that some nodes are behind.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import AssayError, paths
from assay.vcluster import namespaces
from assay.vcluster.cgroup import ControlGroup
from assay.vcluster.locks import Locks

INIT = Path(__file__).with_name('node_init.sh')
HEAD = 'head'

#: Addresses of the network, less those of the head and of broadcasts.
MOST_NODES = 200

#: Where the system keeps locks: only root writes there, and nobody cleans up there but who locks.
RUN = Path('/run')

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
    :param bridge: of the head, that its link ends in.
    """

    state: Path
    number: int
    cpus: tuple[int, ...] = ()
    bridge: str = BRIDGE

    @property
    def name(self) -> str:
        return f'n{self.number}' if self.number else HEAD

    @property
    def address(self) -> str:
        return f'{SUBNET}.{10 + self.number}'

    @property
    def group(self) -> ControlGroup | None:
        """Its cgroup; None for the head."""
        name = f'{unique_name(self.state)}-{self.name}'
        return ControlGroup(name, self.cpus) if self.cpus else None

    @property
    def log(self) -> Path:
        return self.state / 'logs' / f'{self.name}.log'

    @property
    def pid(self) -> int | None:
        """The id of its process 1, as seen from outside; None if the node is down."""
        return locks(self.state).holder(self.number)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead Slurm's commands to this cluster."""
        search = f'{self.state / "bin"}:{SEARCH}'
        return {'SLURM_CONF': str(self.state / 'slurm.conf'), 'PATH': search, **ENVIRONMENT}

    def spawn(
        self,
        argv: list[str],
        folder: Path | None = None,
        prepare: Callable[[], None] = lambda: None,
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start a command on this node and its CPUs, in ``folder``.

        :param prepare: called in the process that becomes the command.
        :param options: for :class:`subprocess.Popen`.
        :raises AssayError: if the node is down.
        """
        init = locks(self.state).process(self.number)
        if init is None:
            raise AssayError(
                f'node {self.name} is down. Start it: ./assay cluster heal {self.name}'
            )

        def join_and_prepare() -> None:
            if self.group:
                self.group.join()
            prepare()

        variables = [f'{name}={value}' for name, value in self.environment.items()]
        command = ['env', f'--chdir={folder or self.state}', *variables, *argv]
        try:
            return namespaces.spawn(command, init, join_and_prepare, **options)
        except (OSError, subprocess.SubprocessError) as error:
            raise AssayError(f'node {self.name} cannot be entered: {error}') from None
        finally:
            os.close(init)

    def run(self, command: str, **options: Any) -> str:
        """Run a command on this node that is expected to work; return what it printed.

        :param options: for :class:`subprocess.Popen`.
        :raises AssayError: with its error message, if it fails.
        """
        pipe = subprocess.PIPE
        with self.spawn(shlex.split(command), stdout=pipe, stderr=pipe, **options) as process:
            said, errors = process.communicate()
        if process.returncode:
            reason = (errors or said).strip() or f'exit code {process.returncode}'
            raise AssayError(f'{command} on {self.name}: {reason}')
        return said

    def start(self, argv: list[str], stdout: int, lock: int | None = None) -> subprocess.Popen[str]:
        """Start a command on this node that outlives ours; its errors go to the node's log.

        :param stdout: as for :class:`subprocess.Popen`.
        :param lock: the number of the lock that it shall hold.
        :raises AssayError: if the node is down.
        """
        file = locks(self.state).open()

        def prepare() -> None:
            namespaces.detach()
            if lock is not None:
                Locks.take(file, lock)

        try:
            with self.log.open('a') as errors:
                process = self.spawn(
                    argv,
                    prepare=prepare,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=errors,
                    start_new_session=True,
                    pass_fds=[file] if lock is not None else [],
                )
        finally:
            os.close(file)
        process.wait()  # for what it was until it was detached
        return process

    def boot(self, head: Node | None) -> None:
        """Start it, and connect it with the bridge, which the head has.

        :param head: None for the head itself.
        :raises AssayError: if it does not come up.
        """
        if self.group:
            self.group.create()
        groups = [str(folder) for folder in self.group.folders] if self.group else []
        file = locks(self.state).open()
        try:
            with self.log.open('w') as log:
                process = namespaces.spawn(
                    ['bash', str(INIT), self.name, str(self.state), str(paths.ROOT), *groups],
                    None,
                    lambda: Locks.take(file, self.number),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env={**os.environ, **self.environment},
                    start_new_session=True,
                    pass_fds=[file],
                )
        except (OSError, subprocess.SubprocessError) as error:
            raise AssayError(f'node {self.name} cannot be started: {error}') from None
        finally:
            os.close(file)
        assert process.stdin and process.stdout, 'both are pipes'
        with process.stdin, process.stdout:
            if process.stdout.readline() != 'ready\n':
                raise AssayError(f'node {self.name} does not start: {self.log.read_text().strip()}')
            if head:
                self._connect(head, process)
            else:
                self.run(f'ip link add {BRIDGE} type bridge')
                self._set_up(BRIDGE)
            process.stdin.write('go\n')

    def _connect(self, head: Node, init: subprocess.Popen[str]) -> None:
        # The veth's one end is in this node from the start: eth0 is a name in every node.
        with open(f'/proc/{init.pid}/ns/net') as network:
            peer = f'type veth peer name eth0 netns /proc/self/fd/{network.fileno()}'
            head.run(f'ip link add {self.name} {peer}', pass_fds=[network.fileno()])
        head.run(f'ip link set {self.name} master {self.bridge} up')
        self._set_up('eth0')

    def _set_up(self, interface: str) -> None:
        self.run(f'ip address add {self.address}/24 dev {interface}')
        self.run(f'ip link set {interface} up')

    def kill(self) -> None:
        """As when the power fails.

        :raises AssayError: if it does not end.
        """
        locks(self.state).kill([self.number])


def unique_name(state: Path) -> str:
    """The prefix of all names that a cluster has outside its folder ``state``."""
    return f'assay-{hashlib.sha1(bytes(state)).hexdigest()[:8]}'


def locks(state: Path) -> Locks:
    """The locks of a cluster's processes: process 1 of a node holds that of the node's number."""
    return Locks(RUN / unique_name(state))


def are_up(state: Path) -> bool:
    """Whether a node of the cluster runs."""
    held = locks(state)
    return any(held.holder(number) is not None for number in range(MOST_NODES + 1))


def kill_all(state: Path) -> None:
    """Kill all nodes of a cluster, and with them all that runs on them.

    :raises AssayError: if one does not end.
    """
    locks(state).kill(range(MOST_NODES + 1))


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
        """The bridge that its nodes are in."""
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
