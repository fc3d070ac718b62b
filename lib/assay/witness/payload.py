"""The rate that ports which carried a job's messages have for payload: without any framing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from assay.witness.rails import LEAST_PART
from assay.witness.report import Device, Host, Report

# Bytes around each packet on the line. Ethernet (IEEE 802.3, clauses 3 and 4): preamble 8,
# addresses and type 14, checksum 4, gap 12.
_ETHERNET = 38
# RoCE version 2 (InfiniBand specification, volume 1, annex A17): IPv4 20 (RFC 791), UDP 8
# (RFC 768), transport header 12, checksum 4.
_ROCE = _ETHERNET + 44
# InfiniBand (volume 1, chapters 7 and 9): local header 8, transport header 12, checksums 4 and 2.
_INFINIBAND = 26

# Bytes of payload in a packet. The kernel tells no MTU of an RDMA port: an InfiniBand port has 2048
# at least, which is 0.7% from the largest. RoCE has the largest power of two that fits into the MTU
# of its interface (so Linux' iboe_get_mtu), 4096 at most, with the headers of version 2.
_PAYLOAD_INFINIBAND = 2048
_PAYLOADS_ROCE = (4096, 2048, 1024, 512, 256)
# What a frame of Slingshot carries nobody publishes; RoCE with 2048 stands for it.
_PAYLOAD_SLINGSHOT = 2048

# The kernel states the rates of generations up to FDR before the coding of the line, which sends 10
# bits for 8, or 66 for 64 (rate_show in Linux' drivers/infiniband/core/sysfs.c; InfiniBand
# specification, volume 2, chapter 5). Later ones, Omni-Path and Ethernet it states after it.
_CODING = {'SDR': 8 / 10, 'DDR': 8 / 10, 'QDR': 8 / 10, 'FDR': 64 / 66}

# Of PCI Express 1 and 2 (2.5 and 5 GT/s) and of 3 to 5 (PCI Express base specification, chapter 4).
_PCIE_CODING = {2.5: 8 / 10, 5.0: 8 / 10}
_PCIE_CODING_SINCE_3 = 128 / 130


def payload_rate(reports: Iterable[Report], carrier: str) -> float | None:
    """Bytes per second of messages that the ports can carry that those of a job went over.

    Of the start that sent most over them, and of its host that has least: a message goes through
    both ends.

    :param carrier: of the fabric, a kind of device.
    :returns: None if no start ran on several hosts, or the rate of a port is not known.
    """
    # One after the other: of a large machine each is large.
    found = (
        (_carried(report, carrier), min(_of_host(host, carrier) for host in report.hosts))
        for report in reports
        if len(report.hosts) > 1
    )
    _, rate = max(found, default=(0, 0.0))
    return rate or None


def _carried(report: Report, carrier: str) -> int:
    return sum(
        device.sent + device.received
        for host in report.hosts
        for device in host.devices
        if device.kind == carrier
    )


def _of_host(host: Host, carrier: str) -> float:
    """The sum of the rates of its ports that carried a part; 0 if one rate is not known."""
    ports = [one for one in host.devices if one.kind == carrier]
    even = sum(one.sent + one.received for one in ports) / max(1, len(ports))
    cards: defaultdict[str, list[Device]] = defaultdict(list)
    for port in ports:
        if port.sent + port.received >= LEAST_PART * even:
            card = port.nic.rpartition('.')[0] or port.name
            cards[card].append(port)
    if not all(port.speed for card in cards.values() for port in card):
        return 0
    return sum(
        min(sum(_payload_of_port(port, host) for port in card), _of_slot(card[0]))
        for card in cards.values()
    )


def _payload_of_port(port: Device, host: Host) -> float:
    generation = port.link.rpartition(' ')[2]
    if port.kind == 'cxi':
        return port.speed * _share(_PAYLOAD_SLINGSHOT, _ROCE)
    if port.layer == 'InfiniBand':
        return port.speed * _CODING.get(generation, 1.0) * _share(_PAYLOAD_INFINIBAND, _INFINIBAND)
    mtu = next((one.mtu for one in host.devices if one.name == port.interface), 0)
    fitting = [size for size in _PAYLOADS_ROCE if size + _ROCE - _ETHERNET <= (mtu or 1500)]
    return port.speed * _share(max(fitting, default=_PAYLOADS_ROCE[-1]), _ROCE)


def _share(payload: int, around: int) -> float:
    return payload / (payload + around)


def _of_slot(port: Device) -> float:
    """Bytes per second of the slot, which all ports of a card share."""
    if not port.pcie:
        return float('inf')
    coding = _PCIE_CODING.get(port.pcie.speed, _PCIE_CODING_SINCE_3)
    return port.pcie.width * port.pcie.speed * 1e9 / 8 * coding
