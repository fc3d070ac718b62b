"""Links that went down while a job used them: the kernel counts it, and so do InfiniBand's ports.

Pure functions over reports of the witness. ``docs/witness.md`` says which links count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.witness.report import Device, Host, Report
from assay.witness.traffic import sockets_between_ranks

#: Links that a sentence names.
MOST = 4


def links_down(reports: Iterable[Report]) -> dict[str, dict[str, int]]:
    """How often links went down that carried messages of the ranks, by host and device.

    :param reports: of the programs of one job, which ran one after the other.
    """
    found: dict[str, dict[str, int]] = {}
    for report in reports:
        if len(report.hosts) == 1:
            continue  # its ranks need no network
        used = set(_used_interfaces(report))
        for host in report.hosts:
            for device in host.devices:
                if device.downs and _counts(host, device, used):
                    of_host = found.setdefault(host.name, {})
                    of_host[device.name] = of_host.get(device.name, 0) + device.downs
    return found


def verify_links(report: Report) -> str | None:
    """That links went down during a job, in a sentence; None if none did."""
    found = [
        f'the link of {host} ({device}) went down {times(count)}'
        for host, devices in links_down([report]).items()
        for device, count in devices.items()
    ]
    if not found:
        return None
    more = f' (and {len(found) - MOST} more like it)' if len(found) > MOST else ''
    return f'{", ".join(found[:MOST])} during the job{more}'


def times(count: int) -> str:
    """``once``, ``2 times``."""
    return 'once' if count == 1 else f'{count} times'


def _used_interfaces(report: Report) -> Iterator[tuple[str, str]]:
    """Hosts and the interfaces over which their ranks had connections to ranks of other hosts."""
    for process, socket, other in sockets_between_ranks(report):
        if process.host != other.host and socket.device:
            yield process.host, socket.device


def _counts(host: Host, device: Device, used: set[tuple[str, str]]) -> bool:
    """Whether messages can have gone over a device.

    A port of InfiniBand counts what goes through it; of interfaces, where others may send as well,
    those that ranks have connections over.
    """
    if device.kind == 'infiniband':
        return device.sent > 0
    return (host.name, device.name) in used
