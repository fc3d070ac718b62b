"""What a compute node says of itself; it runs there, once on each node of a job.

    python -m assay.discovery.node ADDRESSES FOLDER

ADDRESSES is a JSON file: the address of each node by its name. The facts go into
FOLDER/node-<rank>.json, and the interface with the node's address into FOLDER/interface.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import socket
import struct
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reframe.utility.cpuinfo import cpuinfo

from assay.config.fabrics import load_catalogue
from assay.files import write_whole

#: ioctl of an interface that asks for its IPv4 address (linux/sockios.h).
SIOCGIFADDR = 0x8915


@dataclass(frozen=True)
class Facts:
    """What a node says of itself.

    :param boot: the kernel's id of its start: nodes with the same one share a machine.
    :param processor: as ReFrame describes one.
    :param allowed: the CPUs that the job may use.
    :param memory: of the node, in MiB.
    :param interface: the network interface that has the node's address; None if none has.
    :param interfaces: all with an address, but the loopback.
    :param devices: fabrics of the catalogue that need a device, and have it.
    """

    name: str
    boot: str
    processor: dict[str, Any]
    allowed: list[int]
    memory: int
    interface: str | None
    interfaces: list[str]
    devices: list[str]


def look(address: str | None) -> Facts:
    """The facts of this node.

    :param address: its IPv4 address, by which the scheduler reaches it.
    """
    found = _interfaces()
    fabrics = load_catalogue().fabrics.items()
    return Facts(
        name=os.environ.get('SLURMD_NODENAME', socket.gethostname()),
        boot=Path('/proc/sys/kernel/random/boot_id').read_text().strip(),
        processor=cpuinfo(),
        allowed=sorted(os.sched_getaffinity(0)),
        memory=os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 20,
        interface=next((name for name, own in found.items() if own == address), None),
        interfaces=sorted(name for name, own in found.items() if not own.startswith('127.')),
        devices=[name for name, one in fabrics if one.device and glob.glob(one.device)],
    )


def read(path: Path) -> Facts:
    """What a node wrote."""
    return Facts(**json.loads(path.read_text()))


def _interfaces() -> dict[str, str]:
    """The IPv4 addresses of the interfaces that have one, each its first."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            request = struct.pack('256s', name.encode()[:15])
            try:
                answer = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, request)
            except OSError:  # it has none
                continue
            found[name] = socket.inet_ntoa(answer[20:24])
    return found


def main() -> None:
    addresses, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    facts = look(addresses.get(os.environ.get('SLURMD_NODENAME')))
    rank = os.environ.get('SLURM_PROCID', '0')
    write_whole(folder / f'node-{rank}.json', json.dumps(asdict(facts)))
    if facts.interface and rank == '0':
        (folder / 'interface').write_text(facts.interface)


if __name__ == '__main__':
    main()
