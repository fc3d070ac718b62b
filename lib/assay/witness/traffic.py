"""How the bytes of a job travelled, the quality of its network, and links that went down.

Pure functions over reports of the witness. ``docs/witness.md`` explains the method, and which links
count.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from assay.witness.report import Process, Report, Socket

# Up to so many bytes of each rank say nothing: ranks that connect exchange addresses over sockets.
WIRE_UP = 64 * 1024

#: Kinds of devices that count the bytes of a port, beside interfaces.
PORTS = ('infiniband', 'cxi')

# Collectives, but those of neighbours, whose messages have partners.
COLLECTIVE = re.compile(
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
    """The bytes that the ranks of each host sent, by the program and by the system's counters.

    :param within: to each other, and not to other hosts; that only on a single host if None.
    """
    alone = len(report.hosts) == 1
    within = alone if within is None else within
    on_sockets: Counter[str] = Counter()
    for process, socket, other in sockets_between_ranks(report):
        if (other.host == process.host) == within:
            on_sockets[process.host] += socket.sent
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
                if COLLECTIVE.fullmatch(name)
            )
        devices: Counter[str] = Counter()
        for device in host.devices:
            devices[device.kind] += device.sent
        sockets = on_sockets[host.name]
        found.append(Traffic(host.name, len(ranks), had_to_travel, sockets, dict(devices)))
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
    """The key of one end of a connection: every host has a 127.0.0.1 of its own."""
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
    counts = any(device.kind in PORTS for host in report.hosts for device in host.devices)
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
                    f'{asked}of {decimal_size(one.had_to_travel)} sent within {one.host} TCP '
                    f'sockets between its ranks carried {decimal_size(one.sockets)}'
                )
    for one in account(report):
        few = WIRE_UP * one.ranks
        if one.had_to_travel < few:
            continue
        where = 'sent' if alone else f'that {one.host} sent to others'
        sent = f'{decimal_size(one.had_to_travel)} {where}'
        by_sockets = f'TCP sockets between the {"ranks" if alone else "hosts"} carried '
        if carrier == 'sockets':
            if one.sockets < 0.9 * one.had_to_travel:
                return f'{asked}of {sent} {by_sockets}{decimal_size(one.sockets)}'
            continue
        if one.sockets > max(few, 0.1 * one.had_to_travel):
            return f'{asked}{by_sockets}{decimal_size(one.sockets)} of the {sent}'
        by_device = one.devices.get(carrier, 0)
        # Containers hide the counters of ports, and some drivers have none. Then the way is known
        # by what was not taken: neither sockets nor another device.
        others = max((sent for kind, sent in one.devices.items() if kind != 'loopback'), default=0)
        if carrier == 'memory' or (not counts and others <= 0.1 * one.had_to_travel):
            continue
        if by_device < 0.9 * one.had_to_travel:
            return f'{asked}of {sent} its {carrier} devices carried {decimal_size(by_device)}'
    return None


def decimal_size(count: float) -> str:
    """Bytes as people read them: ``12.1 MB``."""
    for unit in ('B', 'kB', 'MB', 'GB'):
        if round(count, 1) < 1000:
            return f'{count:.0f} B' if unit == 'B' else f'{count:.1f} {unit}'
        count /= 1000
    return f'{count:.1f} TB'


# The network between hosts ------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """The TCP connections between the ranks of two hosts, both directions together.

    :param segments: that were sent with payload, ``resent`` of them again.
    :param round_trip: seconds of the shortest; None if none was measured.
    """

    hosts: tuple[str, str]
    segments: int
    resent: int
    round_trip: float | None

    @property
    def resent_share(self) -> float:
        return self.resent / self.segments if self.segments else 0.0


def ways(reports: Iterable[Report]) -> list[Way]:
    """The ways between the hosts of the runs of a job; none where no TCP went between hosts."""
    found: dict[tuple[str, str], Way] = {}
    for report in reports:
        order = {host.name: number for number, host in enumerate(report.hosts)}
        for sender, receiver, socket in between_hosts(report):
            first, second = sorted((sender, receiver), key=order.__getitem__)
            way = found.get((first, second), Way((first, second), 0, 0, None))
            trips = [way.round_trip, socket.round_trip]
            found[way.hosts] = Way(
                way.hosts,
                way.segments + socket.segments,
                way.resent + socket.resent,
                min((trip for trip in trips if trip is not None), default=None),
            )
    return list(found.values())


def rates(reports: Iterable[Report]) -> dict[str, float]:
    """Bytes per second that each host sent or received, whichever is more, where that is known.

    The sum over its connections, each at the rate at which it went last: no less than what the host
    carried at any one time. The greatest of any run counts.
    """
    found: dict[str, float] = {}
    for report in reports:
        sums: defaultdict[tuple[str, str], float] = defaultdict(float)
        for sender, receiver, socket in between_hosts(report):
            if socket.rate is not None:
                sums[sender, 'sent'] += socket.rate
                sums[receiver, 'received'] += socket.rate
        for (host, _), rate in sums.items():
            found[host] = max(found.get(host, 0.0), rate)
    return found


def between_hosts(report: Report) -> Iterator[tuple[str, str, Socket]]:
    """Sender, receiver, and the sender's socket."""
    for process, socket, other in sockets_between_ranks(report):
        if process.host != other.host:
            yield process.host, other.host, socket


# Links that went down -----------------------------------------------------------------------------


#: Links that a sentence names.
MOST_LINKS = 4

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
    """A sentence: links went down during a job; None if none did.

    :param carrier: of its fabric.
    """
    found = [
        f'the link of {host} ({device}) went down {times(count)}'
        for host, devices in links_down([report], carrier).items()
        for device, count in devices.items()
    ]
    if not found:
        return None
    more = f' (and {len(found) - MOST_LINKS} more like it)' if len(found) > MOST_LINKS else ''
    return f'{", ".join(found[:MOST_LINKS])} during the job{more}'


def times(count: int) -> str:
    """``once``, ``2 times``."""
    return 'once' if count == 1 else f'{count} times'


def _used(report: Report, carrier: str) -> Iterator[tuple[str, str]]:
    """Hosts and those of their devices that messages between hosts went over.

    A port of InfiniBand counts what goes through it; of interfaces, where others may send as well,
    those are used that ranks have connections over. Others than the fabric's are not used.
    """
    if carrier == 'sockets':
        connections = between_hosts(report)
        yield from ((host, socket.device) for host, _, socket in connections if socket.device)
    elif carrier == 'infiniband':
        for host in report.hosts:
            ports = [device for device in host.devices if device.kind == 'infiniband']
            carried = [port.sent + port.received for port in ports]
            for port, count in zip(ports, carried, strict=True):
                if count and count >= USED * sum(carried):
                    yield host.name, port.name
