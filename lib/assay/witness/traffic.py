"""What carried the bytes of a job: the system's counters against the bytes that ranks sent.

Pure functions over the witness's report. ``docs/witness.md`` explains the method.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from assay.witness.report import Process, Report, Socket

# Up to so many bytes of each rank say nothing: ranks that connect exchange addresses over sockets.
WIRE_UP = 64 * 1024

# Collectives whose bytes are in no pair of the matrix; a neighbourhood collective's are.
_COLLECTIVE = re.compile(
    r'MPI_I?(bcast|(all)?gatherv?|scatterv?|alltoall[vw]?|(all)?reduce|reduce_scatter(_block)?'
    r'|(ex)?scan)',
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Traffic:
    """Bytes that the ranks of one host sent: to each other, or to other hosts.

    :param had_to_travel: what the program sent, by the matrix (and collectives, on a single host:
        between hosts their way is the MPI's choice).
    :param sockets: what TCP sockets between those ranks carried.
    :param devices: what the host's devices sent, by kind.
    """

    host: str
    ranks: int
    had_to_travel: int
    sockets: int
    devices: dict[str, int]


def account(report: Report, within: bool | None = None) -> list[Traffic]:
    """What the ranks of each host sent, by the program and by the system's counters.

    :param within: to each other, and not to other hosts; that only on a single host if None.
    """
    alone = len(report.hosts) == 1
    within = alone if within is None else within
    on_sockets = _socket_bytes(report, within)
    by_host = report.by_host()
    found = []
    for host in report.hosts:
        ranks = by_host[host.name]
        had_to_travel = sum(
            partner.bytes
            for process in ranks
            for partner in process.partners
            if partner.rank not in (-1, process.rank)
            and (report.processes[partner.rank].host == host.name) == within
        )
        if alone:
            had_to_travel += sum(
                call.bytes
                for process in ranks
                for name, call in process.calls.items()
                if _COLLECTIVE.fullmatch(name)
            )
        devices: Counter[str] = Counter()
        for device in host.devices:
            devices[device.kind] += device.sent
        sockets = on_sockets[host.name]
        found.append(Traffic(host.name, len(ranks), had_to_travel, sockets, dict(devices)))
    return found


def _socket_bytes(report: Report, within: bool) -> Counter[str]:
    """Bytes sent by each host's ranks over sockets to each other, or to ranks of other hosts."""
    found: Counter[str] = Counter()
    for process, socket, other in sockets_between_ranks(report):
        if (other.host == process.host) == within:
            found[process.host] += socket.sent
    return found


def sockets_between_ranks(report: Report) -> Iterator[tuple[Process, Socket, Process]]:
    """Each rank's sockets whose other end is a rank, too, and that rank."""
    ends = {
        _end(process, socket.local, socket.remote): process
        for process in report.processes
        for socket in process.sockets
    }
    for process in report.processes:
        for socket in process.sockets:
            other = ends.get(_end(process, socket.remote, socket.local))
            if other is not None and other is not process:
                yield process, socket, other


def _end(process: Process, local: str, remote: str) -> tuple[str, str, str]:
    """What identifies one end of a connection: every host has a 127.0.0.1 of its own."""
    own = re.match(r'127\.|\[?(::1\]|::ffff:127\.)', local)
    return process.host if own else '', local, remote


def verify_traffic(report: Report, carrier: str, fabric: str) -> str | None:
    """Hold what really carried the bytes against the fabric asked for.

    :param carrier: ``memory``, ``sockets``, or a kind of device: the fabric's, in the catalogue.
    :param fabric: its name.
    :returns: None if the counters agree, or too little was sent to tell; otherwise one sentence
        with both figures.
    """
    asked = f'fabric {fabric} was asked for, but '
    alone = len(report.hosts) == 1
    if not report.complete:
        return f'{asked}the report of the witness is incomplete: what carried the bytes is unknown'
    if carrier == 'memory' and not alone:
        return f'{asked}the ranks are on {len(report.hosts)} hosts'
    if carrier not in ('memory', 'sockets') and alone:
        return None  # ranks of one host need no network
    # Sockets that were forced carry what ranks of a host send to each other, too.
    if carrier == 'sockets' and not alone:
        for one in account(report, within=True):
            if one.had_to_travel >= WIRE_UP * one.ranks and one.sockets < 0.9 * one.had_to_travel:
                return (
                    f'{asked}of {size(one.had_to_travel)} sent within {one.host} TCP sockets '
                    f'between its ranks carried {size(one.sockets)}'
                )
    for one in account(report):
        few = WIRE_UP * one.ranks
        if one.had_to_travel < few:
            continue
        sent = f'{size(one.had_to_travel)} {"sent" if alone else f"that {one.host} sent to others"}'
        by_sockets = f'TCP sockets between the {"ranks" if alone else "hosts"} carried '
        if carrier == 'sockets':
            if one.sockets < 0.9 * one.had_to_travel:
                return f'{asked}of {sent} {by_sockets}{size(one.sockets)}'
            continue
        if one.sockets > max(few, 0.1 * one.had_to_travel):
            return f'{asked}{by_sockets}{size(one.sockets)} of the {sent}'
        by_device = one.devices.get(carrier, 0)
        if carrier != 'memory' and by_device < 0.9 * one.had_to_travel:
            return f'{asked}of {sent} its {carrier} devices carried {size(by_device)}'
    return None


def size(count: float) -> str:
    """Bytes as people read them: ``12.1 MB``."""
    for unit in ('B', 'kB', 'MB', 'GB'):
        if round(count, 1) < 1000:
            return f'{count:.0f} B' if unit == 'B' else f'{count:.1f} {unit}'
        count /= 1000
    return f'{count:.1f} TB'
