"""Links that went down while a job used them: the kernel counts it, and so do InfiniBand's ports.

Pure functions over reports of the witness. ``docs/witness.md`` says which links count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.witness.report import Report
from assay.witness.traffic import sockets_between_ranks

#: Links that a sentence names.
MOST = 4

#: The part of what all ports of a host carried that one has to have carried to be used: where a job
#: goes over several each has far more, and what others or the fabric itself send is far less.
USED = 0.05


def links_down(reports: Iterable[Report], carrier: str) -> dict[str, dict[str, int]]:
    """How often links went down that carried messages of the ranks, by host and device.

    :param reports: of the programs of one job, which ran one after the other.
    :param carrier: of the fabric that was proved, in the catalogue.
    """
    found: dict[str, dict[str, int]] = {}
    for report in reports:
        if len(report.hosts) == 1:
            continue  # its ranks need no network
        used = set(_used(report, carrier))
        for host in report.hosts:
            for device in host.devices:
                if device.downs and (host.name, device.name) in used:
                    of_host = found.setdefault(host.name, {})
                    of_host[device.name] = of_host.get(device.name, 0) + device.downs
    return found


def verify_links(report: Report, carrier: str) -> str | None:
    """That links went down during a job, in a sentence; None if none did.

    :param carrier: of its fabric.
    """
    found = [
        f'the link of {host} ({device}) went down {times(count)}'
        for host, devices in links_down([report], carrier).items()
        for device, count in devices.items()
    ]
    if not found:
        return None
    more = f' (and {len(found) - MOST} more like it)' if len(found) > MOST else ''
    return f'{", ".join(found[:MOST])} during the job{more}'


def times(count: int) -> str:
    """``once``, ``2 times``."""
    return 'once' if count == 1 else f'{count} times'


def _used(report: Report, carrier: str) -> Iterator[tuple[str, str]]:
    """Hosts and those of their devices that messages between hosts went over.

    A port of InfiniBand counts what goes through it; of interfaces, where others may send as well,
    those are used that ranks have connections over. Others than the fabric's are not used.
    """
    if carrier == 'sockets':
        yield from _used_interfaces(report)
    elif carrier == 'infiniband':
        for host in report.hosts:
            ports = [device for device in host.devices if device.kind == 'infiniband']
            carried = [port.sent + port.received for port in ports]
            for port, count in zip(ports, carried, strict=True):
                if count and count >= USED * sum(carried):
                    yield host.name, port.name


def _used_interfaces(report: Report) -> Iterator[tuple[str, str]]:
    """Hosts and the interfaces over which their ranks had connections to ranks of other hosts."""
    for process, socket, other in sockets_between_ranks(report):
        if process.host != other.host and socket.device:
            yield process.host, socket.device
