"""A link of the network, and how it is disturbed.

Delayed packets do not overtake each other; packets are lost as the kernel hands them over.
Disturbances are not recorded: they are looked up where they act.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from assay import AssayError
from assay.tools import ask
from assay.vcluster.node import BRIDGE, MOST_NODES, Node, Switch, locks

SOURCE = Path(__file__).with_name('forward.c')
COMPILE = ('cc', '-std=c11', '-O2', '-Wall', '-Wextra')

#: TCP's segments arrive in bursts of 64 KiB.
BURST = '64kb'


class Carried(NamedTuple):
    """How packets are carried.

    :param delay: of each, in us.
    :param jitter: up to so many us more.
    :param loss: percent of them that are dropped.
    :param peer: address of the node to and from which alone this happens; `any` for all.
    """

    delay: float = 0
    jitter: float = 0
    loss: float = 0
    peer: str = 'any'


@dataclass(frozen=True)
class Link:
    """An interface of the head that is in a bridge, and the interface at its other end.

    :param bridge: that it is in.
    :param owner: the node that has the other end.
    :param end: the name of that.
    :param lock: number of the lock that the process holds which carries its packets.
    """

    head: Node
    name: str
    bridge: str
    owner: Node
    end: str
    lock: int

    @staticmethod
    def of(head: Node, what: Node | Switch) -> Link:
        """The one of a node, or the uplink of a switch."""
        if isinstance(what, Node):
            return Link(head, what.name, what.bridge, what, 'eth0', MOST_NODES + 1 + what.number)
        return Link(head, what.name, BRIDGE, head, what.uplink, 2 * MOST_NODES + 1 + what.number)

    def set(self, state: str) -> None:
        """Take it ``down``, or bring it ``up``."""
        self.head.run(f'ip link set {self.name} {state}')

    def delete(self) -> None:
        """As when somebody cuts it."""
        self.carry(Carried())
        self.head.run(f'ip link delete {self.name}')

    def limit(self, rate: float | None) -> None:
        """Let it carry so many Mbit/s each way, or all that it can."""
        if rate is not None:
            shape = f'root tbf rate {rate:g}mbit burst {BURST} latency 50ms'
            self.head.run(f'tc qdisc replace dev {self.name} {shape}')
            self.owner.run(f'tc qdisc replace dev {self.end} {shape}')
        elif self.read_limit():
            self.head.run(f'tc qdisc delete dev {self.name} root')
            self.owner.run(f'tc qdisc delete dev {self.end} root')

    def read_limit(self) -> float | None:
        """Mbit/s that it carries at most, where that is limited."""
        told = json.loads(self.head.run(f'tc -json qdisc show dev {self.name}'))
        rates = [queue['options']['rate'] for queue in told if queue['kind'] == 'tbf']
        return 8e-6 * rates[0] if rates else None

    def show(self) -> dict[str, Any]:
        """The description of the link by `ip`."""
        told: list[dict[str, Any]] = json.loads(
            self.head.run(f'ip -json link show dev {self.name}')
        )
        return told[0]

    def read_carried(self) -> Carried:
        """How its packets are carried now."""
        line = locks(self.head.state).command_line(self.lock) or []
        if line[:2] != self._program():
            return Carried()
        delay, jitter, loss, peer = line[3:]
        return Carried(float(delay), float(jitter), float(loss), peer)

    def carry(self, how: Carried) -> None:
        """Let a process carry the packets between it and its bridge, or none.

        :raises AssayError: if that process does not start.
        """
        head, near, far = self.head, f'{self.name}-near', f'{self.name}-far'
        locks(head.state).kill([self.lock])
        # Also where a carrier died by surprise, or one was started only half.
        if any(link['ifname'] == near for link in json.loads(head.run('ip -json link show'))):
            head.run(f'ip link delete {near}')
        head.run(f'ip link set {self.name} master {self.bridge}')
        if not any(how[:3]):
            return
        self._compile()
        head.run(f'ip link set {self.name} nomaster')
        head.run(f'ip link add {near} type veth peer name {far}')
        head.run(f'ip link set {near} up')
        head.run(f'ip link set {far} master {self.bridge} up')
        arguments = [near, *(f'{value:g}' for value in how[:3]), how.peer]
        carrier = head.start([*self._program(), *arguments], subprocess.PIPE, self.lock)
        assert carrier.stdout, 'it is a pipe'
        with carrier.stdout:
            if carrier.stdout.readline() != 'ready\n':
                raise AssayError(f'packets cannot be carried: {head.log.read_text().strip()}')

    def _program(self) -> list[str]:
        return [str(self.head.state / SOURCE.stem), self.name]

    def _compile(self) -> None:
        program = self._program()[0]
        if Path(program).exists():
            return
        command = [*COMPILE, '-o', program, str(SOURCE)]
        done = ask(command)
        if done.returncode:
            raise AssayError(f'{SOURCE} does not compile: {done.stderr.strip()}')
