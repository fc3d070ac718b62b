"""Facts that a compute node reports about itself; this runs once on each node of a job.

    python -m assay.discovery.node ADDRESSES FOLDER

ADDRESSES is a JSON file: the address of each node by its name. The facts go into
FOLDER/node-<rank>.json, and the interface with the node's address into FOLDER/interface-<rank>.
"""

from __future__ import annotations

import array
import fcntl
import glob
import json
import os
import socket
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.config.fabrics import load_catalogue
from assay.files import json_text, write_whole
from assay.machine import topology
from assay.machine.topology import usable_memory

#: ioctl that asks for the IPv4 addresses of all interfaces (linux/sockios.h).
SIOCGIFCONF = 0x8912
#: Of its answers (struct ifreq), and how many there is room for.
ANSWER, ANSWERS = struct.calcsize('16sHHI16x'), 1024


@dataclass(frozen=True)
class NodeFacts:
    """The facts that a node reports about itself.

    :param boot: the kernel's id of its start: nodes with the same one share a machine.
    :param processor: as ReFrame describes one, with all CPUs that are online.
    :param allowed: the CPUs that the job may use.
    :param memory: of the node, in MiB, or what the job's control group may have of it.
    :param interface: the network interface that has the node's address; None if none has.
    :param interfaces: all with an address, but the loopback.
    :param devices: fabrics of the catalogue that need a device, and have it.
    :param core_kinds: the number of cores of each kind that the job may use, the fastest first.
    """

    name: str
    boot: str
    processor: dict[str, Any]
    allowed: list[int]
    memory: int
    interface: str | None
    interfaces: list[str]
    devices: list[str]
    core_kinds: list[int] = field(default_factory=list)


def look(address: str | None) -> NodeFacts:
    """The facts of this node.

    :param address: its IPv4 address, by which the scheduler reaches it.
    """
    interfaces, found = _interfaces(), topology.this_machine()
    fabrics = load_catalogue().fabrics.items()
    return NodeFacts(
        name=os.environ.get('SLURMD_NODENAME', socket.gethostname()),
        boot=Path('/proc/sys/kernel/random/boot_id').read_text().strip(),
        processor=topology.names() | found.describe(),
        allowed=sorted(os.sched_getaffinity(0)),
        memory=usable_memory() >> 20,
        interface=interfaces.get(address or ''),
        interfaces=sorted({name for own, name in interfaces.items() if not own.startswith('127.')}),
        devices=[name for name, one in fabrics if one.device and glob.glob(one.device)],
        core_kinds=topology.usable_topology().core_kinds,
    )


def read_facts(path: Path) -> NodeFacts:
    """Read the facts that a node wrote."""
    return NodeFacts(**json.loads(path.read_text()))


def _interfaces() -> dict[str, str]:
    """The interface of each IPv4 address; one may have several."""
    answers = array.array('B', bytes(ANSWER * ANSWERS))
    room = array.array('B', struct.pack('iP', len(answers), answers.buffer_info()[0]))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        fcntl.ioctl(asked.fileno(), SIOCGIFCONF, room)
    length, _ = struct.unpack('iP', room)
    found: dict[str, str] = {}
    for start in range(0, length, ANSWER):
        answer = answers[start : start + ANSWER].tobytes()
        # An address of its own may have a label behind a colon.
        name = answer[:16].split(b'\0')[0].decode().partition(':')[0]
        found.setdefault(socket.inet_ntoa(answer[20:24]), name)
    return found


def report_facts() -> None:
    addresses, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    facts = look(addresses.get(os.environ.get('SLURMD_NODENAME')))
    rank = os.environ.get('SLURM_PROCID', '0')
    write_whole(folder / f'node-{rank}.json', json_text(facts))
    (folder / f'interface-{rank}').write_text(f'{facts.interface or ""}\n')


if __name__ == '__main__':
    report_facts()
