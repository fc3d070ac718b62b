"""Network ports of real machines, as small trees of /proc and /sys.

The values are facts that public reports state, each named beside its machine; what they leave out
(addresses, counters) is made up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Nic:
    """A port with what its files say.

    :param kind: infiniband, cxi, or net.
    :param numa: None where the device has no such file.
    :param rate: the text of the file ``rate``, or ``speed`` of an interface.
    :param pcie: lanes and GT/s, and the most of both ends: of the card and of its slot.
    """

    name: str
    kind: str = 'infiniband'
    port: int = 1
    pci: str = '0000:41:00.0'
    numa: int | None = 0
    rate: str = ''
    state: str = '4: ACTIVE'
    layer: str = 'InfiniBand'
    interface: str = ''
    pcie: tuple[int, float] = (16, 16.0)
    card: tuple[int, float] = (16, 16.0)
    slot: tuple[int, float] = (16, 16.0)
    driver: str = 'mlx5_core'
    counters: str = 'counters'
    bridge: str = '0000:40:01.1'


HDR = Nic('mlx5_0', rate='200 Gb/sec (4X HDR)', interface='ib0')
SLINGSHOT = Nic('cxi0', 'cxi', rate='200000', layer='', driver='cxi_ss1')
EFA = Nic('rdmap16s27', rate='100 Gb/sec (4X EDR)', layer='Unknown', driver='efa', slot=(0, 0.0))

MACHINES: dict[str, list[Nic]] = {
    # NVIDIA's documents; stackhpc/ansible-slurm-appliance #988 has the same files of EDR.
    'infiniband-hdr': [
        HDR,
        replace(HDR, name='mlx5_1', pci='0000:a1:00.0', numa=1, interface='ib1'),
    ],
    # openucx/ucx #5970: one port without a cable, one without a subnet manager, in half of a slot.
    # Linux up to 4.x says no SDR.
    'infiniband-init': [
        replace(
            HDR,
            **{'name': f'mlx5_{n}', 'rate': rate, 'state': state, 'interface': f'ib{n}'},
            **{'numa': 2, 'pci': f'000a:11:00.{n}', 'pcie': (8, 8.0), 'card': (16, 8.0)},
        )
        for n, rate, state in (
            (0, '10 Gb/sec (4X)', '1: DOWN'),
            (1, '100 Gb/sec (4X EDR)', '2: INIT'),
        )
    ],
    # NVIDIA/nccl #1866 (rates by the words of InfiniBand), deepseek-ai/DeepEP #671 (a bond has the
    # rate of one of its ports).
    'roce-bond': [
        Nic('mlx5_bond_0', rate='100 Gb/sec (4X EDR)', layer='Ethernet', interface='ens1f0np0')
    ],
    # open-mpi/hwloc #764: a Cray EX255a.
    'slingshot': [
        replace(SLINGSHOT, name=f'cxi{n}', interface=f'hsn{n}', numa=n, pci=f'000{n}:01:00.0')
        for n in range(4)
    ],
    # amzn/amzn-drivers #114 and prometheus/node_exporter #3670: no InfiniBand counters, layer
    # unknown; virtual machines show no slot.
    'efa': [replace(EFA, counters='hw_counters', pcie=(0, 0.0), card=(0, 0.0))],
    # prometheus/node_exporter #2023 and the fixtures of prometheus/procfs.
    'omni-path': [
        Nic(
            'hfi1_0',
            rate='100 Gb/sec (4X EDR)',
            driver='hfi1',
            interface='ib0',
            pcie=(16, 8.0),
            card=(16, 8.0),
            slot=(16, 8.0),
        )
    ],
    # A 25 Gbit/s card that was negotiated down.
    'ethernet-slow': [
        Nic('lo', 'net', rate='2500', layer='', pcie=(8, 8.0), card=(8, 8.0), slot=(16, 8.0))
    ],
}


def write(folder: Path, nics: list[Nic], sent: int, received: int) -> Path:
    """The tree of some ports whose counters stand at these numbers of bytes; also its folder."""
    (folder / 'proc/self/net').mkdir(parents=True)
    interfaces = ''
    for nic in nics:
        device = folder / f'sys/devices/pci{nic.bridge[:7]}/{nic.bridge}/{nic.pci}'
        _put(device / 'uevent', f'DRIVER={nic.driver}')
        if nic.numa is not None:
            _put(device / 'numa_node', nic.numa)
            system = folder / 'sys/devices/system'
            _put(system / f'node/node{nic.numa}/cpulist', f'{8 * nic.numa}-{8 * nic.numa + 7}')
            _put(system / f'cpu/cpu{8 * nic.numa}/topology/physical_package_id', nic.numa // 2)
        for place, names, values in (
            (device, ('current_link_width', 'current_link_speed'), nic.pcie),
            (device, ('max_link_width', 'max_link_speed'), nic.card),
            (device.parent, ('max_link_width', 'max_link_speed'), nic.slot),
        ):
            if any(values):
                _put(place / names[0], values[0])
                _put(place / names[1], f'{values[1]} GT/s PCIe')
        own = folder / 'sys/class' / nic.kind / nic.name
        own.mkdir(parents=True)
        (own / 'device').symlink_to(device)
        if nic.interface:
            _put(device / 'net' / nic.interface / 'dev_port', 0)
        if nic.kind == 'infiniband':
            _put_port(own / f'ports/{nic.port}', nic, sent, received)
        elif nic.kind == 'cxi':
            for way, count in (('tx', sent), ('rx', received)):
                _put(device / f'telemetry/hni_sts_{way}_ok_octets', f'{count}@1700000000.1')
            _put(folder / f'sys/class/net/{nic.interface}/speed', nic.rate)
        else:
            _put(own / 'speed', nic.rate)
            _put(own / 'operstate', 'up')
            interfaces += f'    {nic.name}: {received} 0 0 0 0 0 0 0 {sent} 0 0 0 0 0 0 0\n'
    _put(folder / 'proc/self/net/dev', f'Inter-|\n face |bytes\n{interfaces}')
    return folder


def _put_port(port: Path, nic: Nic, sent: int, received: int) -> None:
    unit = {'hfi1': 8}.get(nic.driver, 4)
    _put(port / 'rate', nic.rate)
    _put(port / 'state', nic.state)
    _put(port / 'link_layer', nic.layer)
    if nic.counters == 'counters':
        _put(port / 'counters/port_xmit_data', sent // unit)
        _put(port / 'counters/port_rcv_data', received // unit)
        return
    for name, count in (('tx_bytes', sent), ('rx_bytes', received), ('send_bytes', sent)):
        _put(port / 'hw_counters' / name, count)


def _put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{value}\n')
