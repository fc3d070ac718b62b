"""Disturbances of a job: other users of its nodes' CPUs, and its network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.programs.figure import Figure
from assay.witness.profile import STARTUP
from assay.witness.report import Disturbance, Report
from assay.witness.traffic import Way, between_hosts, rates, ways

#: A smaller share, or fewer seconds, explain no missed reference. The launcher and ReFrame take up
#: to 0.09 s of a job themselves, which of a job of half a second is much.
NOTICEABLE, LOST = 0.02, 0.1

#: Beside another guest a core carries out 30 to 50% less, as measured on an EPYC; a core of its own
#: 2% less than its four adders could at most, and now and then another thing seems to be 15% more.
SHARED = 0.2

#: Seconds: guests come and go every few of them. The first and the last moment of a longer job tell
#: too little.
SHORT = 30.0

#: Of the segments, sent again: a network that loses so many is broken. Microsoft raises an alarm at
#: this share, and its data centres lose a tenth to a hundredth of it (Guo et al., Pingmesh, SIGCOMM
#: 2015).
RESENT = 1e-3

#: Fewer segments may have been sent again because a busy host answered late.
FEW = 10

#: Seconds of the shortest round trip: light in a fibre goes 100 km there and back.
ROUND_TRIP = 1e-3

#: Bytes per second of a host: gigabit Ethernet carries 118 MB/s of payload.
SLOW = 100e6

#: Hosts that a sentence names.
MOST = 4

_WORDS = {
    'foreign_share': "other processes took {} of the time of the job's CPUs",
    'steal_share': 'the hypervisor took {} of the CPUs',
    'core_share': 'another guest took {} of a core',
    'throttled_share': 'quotas withheld {} of the CPUs',
    'waited_share': 'a rank waited for a CPU in {} of its time',
}

#: Nanoseconds that a cache line takes from core to core, and how many times as long at the end as
#: at the start, or the reverse: on a virtual machine the hypervisor may move cores apart.
CORE_LATENCY, CORE_MOVE = 'core_latency', 'core_move'

#: Cores are as far apart if a cache line takes less than so many times as long: on one chip it
#: takes 28 to 46 ns, between two 140 to 170, as measured on an EPYC.
AS_FAR = 1.5

#: What is said of a job whose cores were moved while it ran, or were farther apart than in others.
MOVED = 'the hypervisor moved the cores of the node apart or together'
FARTHER_APART = 'the cores of the node were farther apart than in other jobs'

#: Names of the figures that tell of a disturbance.
DISTURBANCES = (*_WORDS, CORE_LATENCY, CORE_MOVE)

#: The kinds that other users cause. Ranks that wait for a CPU may have too many threads themselves;
#: a quota, or a lossy network, is a fault to be found. Another guest on a core is seen at two
#: moments only, which neither excuse a value nor leave it out.
TAKEN = ('foreign_share', 'steal_share')


def disturbance_figures(report: Report) -> dict[str, Figure]:
    """The greatest share of each kind over the hosts of a job; empty if nobody looked."""
    seen = [host.disturbance for host in report.hosts if host.disturbance]
    found = {
        name: Figure(max(getattr(one, name) for one in seen), '1', 'lower')
        for name in _WORDS
        if seen
    }
    if latency := max((one.most_core_latency for one in seen), default=0.0):
        found[CORE_LATENCY] = Figure(1e9 * latency, 'ns', 'lower')
        found[CORE_MOVE] = Figure(max(one.core_move for one in seen), '1', 'lower')
    return found


def greatest_figures(runs: Sequence[Mapping[str, Figure]]) -> dict[str, Figure]:
    """The greatest figure of several runs, of each kind and of start and end."""
    return {
        name: max((run[name] for run in runs if name in run), key=lambda figure: figure.value)
        for name in (*DISTURBANCES, *STARTUP)
        if any(name in run for run in runs)
    }


def disturbances(reports: Iterable[Report]) -> list[str]:
    """The disturbances of a job's runs, a sentence for each kind; none if there was none."""
    reports = list(reports)
    return [*_nodes(reports), *_network(reports)]


def taken_by_others(reports: Iterable[Report], foreign: bool = True) -> list[str]:
    """The CPU time that others took of the nodes of a job, a sentence for each kind.

    A quota or a bad network is none: it belongs to the machine as it is.

    :param foreign: whether time that went to other processes than ranks went to others' processes.
    """
    return [*_nodes([*reports], TAKEN if foreign else ['steal_share'])]


def interference(reports: Iterable[Report], foreign: bool = True) -> list[str]:
    """The CPU time that others took of a job's nodes, if nothing else can have been the cause.

    :param foreign: whether time that went to other processes than ranks went to others' processes.
    :returns: sentences; none where the witness saw a quota or a bad network as well.
    """
    reports = list(reports)
    if [*_nodes(reports, ['throttled_share']), *_network(reports)]:
        return []
    return [*_nodes(reports, TAKEN if foreign else ['steal_share'])]


def share_sent_once(reports: Iterable[Report]) -> float | None:
    """The share of segments from host to host that was sent only once, the smallest of all.

    1 where fewer than :data:`FEW` were; None where no TCP went between hosts.
    """
    segments: Counter[tuple[str, str]] = Counter()
    resent: Counter[tuple[str, str]] = Counter()
    for report in reports:
        for sender, receiver, socket in between_hosts(report):
            segments[sender, receiver] += socket.segments
            resent[sender, receiver] += socket.resent
    lost = [again / segments[way] for way, again in resent.items() if again >= FEW]
    return 1 - max(lost, default=0.0) if segments else None


def foreign_seconds(reports: Iterable[Report]) -> float:
    """CPU seconds that went to other processes than ranks, on the CPUs of a job's ranks."""
    seconds = 0.0
    for report in reports:
        for host in report.hosts:
            cpus = {cpu for one in report.processes if one.host == host.name for cpu in one.cpus}
            if seen := host.disturbance:
                seconds += seen.foreign_share * seen.seconds * len(cpus)
    return seconds


def _nodes(reports: list[Report], wanted: Sequence[str] = tuple(_WORDS)) -> Iterator[str]:
    """The fewer hosts have something in common, the more it tells: those come first."""
    worst: dict[str, dict[str, float]] = {}
    for host in (host for report in reports for host in report.hosts):
        if not (seen := host.disturbance):
            continue
        shares = worst.setdefault(host.name, dict.fromkeys(wanted, 0.0))
        for name in shares:
            if _is_much(name, seen):
                shares[name] = max(shares[name], getattr(seen, name))
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, shares in worst.items():
        if kinds := tuple(kind for kind, share in shares.items() if share):
            alike.setdefault(kinds, []).append(name)
    for kinds, hosts in sorted(alike.items(), key=lambda one: len(one[1])):
        who = 'the node' if len(worst) == 1 else _listed(hosts)
        were, up_to = ('was', '') if len(hosts) == 1 else ('were', 'up to ')
        parts = []
        for kind in kinds:
            most = max(worst[host][kind] for host in hosts)
            parts.append(_WORDS[kind].format(f'{up_to}{most:.0%}'))
        yield f'{who} {were} disturbed: {", ".join(parts)}'


def _is_much(name: str, seen: Disturbance) -> bool:
    """Whether a share of one kind may explain a missed reference."""
    share: float = getattr(seen, name)
    if name == 'core_share':
        return share >= SHARED and seen.seconds <= SHORT
    return share >= NOTICEABLE and share * seen.seconds >= LOST


def _network(reports: list[Report]) -> Iterator[str]:
    parts = []
    found = ways(reports)
    if lossy := [way for way in found if way.resent >= FEW and way.resent_share >= RESENT]:
        share = sum(way.resent for way in lossy) / sum(way.segments for way in lossy)
        parts.append(f'{share:.1%} of the segments {_where(lossy)} were sent again')
    if far := [way for way in found if way.round_trip and way.round_trip >= ROUND_TRIP]:
        shortest = 1e3 * min(way.round_trip for way in far if way.round_trip)
        parts.append(f'a round trip {_where(far)} took at least {shortest:.1f} ms')
    if slow := {host: rate for host, rate in rates(reports).items() if rate < SLOW}:
        most = f'{1e-6 * max(slow.values()):.0f} MB/s'
        parts.append(f'no more than {most} went to or from {_listed([*slow])}')
    if parts:
        yield f'the network was disturbed: {", ".join(parts)}'


def _where(found: list[Way]) -> str:
    """The one host that several ways have in common is to blame; otherwise all of them."""
    common = set.intersection(*(set(way.hosts) for way in found))
    if len(found) > 1 and common:
        return f'to and from {common.pop()}'
    hosts = dict.fromkeys(host for way in found for host in way.hosts)
    return f'between {_listed(list(hosts))}'


def _listed(names: list[str]) -> str:
    """``n1``, ``n1 and n2``, ``n1, n2 and n3``; a long list is cut."""
    if len(names) > MOST:
        names = [*names[:MOST], f'{len(names) - MOST} more']
    *first, last = names
    return f'{", ".join(first)} and {last}' if first else last
