"""What the network between the hosts of a job was like, by what their kernels know of connections.

Pure functions over reports of the witness.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from assay.witness.report import Report, Socket
from assay.witness.traffic import sockets_between_ranks


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
