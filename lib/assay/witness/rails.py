"""The network ports of each host: whether each carried its part, and whether one is below its rate.

Pure functions over reports of the witness. ``docs/ports.md`` explains the method.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.witness.placement import rank_numbers_in_words
from assay.witness.report import Device, Host, Pcie, Process, Report
from assay.witness.traffic import PORTS, between_hosts, decimal_size

#: Messages from so many bytes on are sent in parts, where an MPI takes several ports for one.
LARGE = 64 << 10

#: So many bytes of a rank to and from other hosts, in large messages, tell which ports it used: far
#: more than connections and others' monitoring send meanwhile.
ENOUGH = 16 << 20

#: So many bytes over a connection make the rate at which it went more than that of a burst.
STREAM = 1 << 20

#: A port did its part that carried at least this share of it.
LEAST_PART = 0.5

#: Below this share of the rate that it ought to have a port is slow; drivers round theirs.
LEAST_RATE = 0.95

#: A connection that nothing but the way held back goes at least at this share of the port's rate,
#: and of :data:`ONE_SOCKET` where the port is faster.
LEAST_OF_SOCKETS = 0.1

#: Bytes per second of a link that any core can fill by one socket: 10 Gbit/s.
ONE_SOCKET = 1.25e9

#: Looks at a connection that make its pace more than that of a pause or a burst.
LEAST_LOOKS = 4

#: A port goes at least at this share of its rate, or of the pace of a sister, which has the same
#: rate, whichever is less. Over two veth pairs of 25 Gbit/s, on two CPUs with four times as much to
#: do, good ones were at 0.56 or more in 30 runs, and those at a tenth at 0.23 or less in 16.
LEAST_OF_SISTER = 0.3

#: A slot is too narrow for a port only if it carries less than so many times the port's rate.
ROOMY_SLOT = 2.0

#: Sentences of a job before the rest is only counted.
MOST_FAULTS = 4

#: One lane of an InfiniBand port whose cable has two at least.
_NARROW = {'1X SDR', '1X DDR', '1X QDR', '1X FDR10', '1X FDR', '1X EDR', '1X HDR'}


#: The name of a host, and what is wrong with a port of it.
_Fault = tuple[str, str]


@dataclass(frozen=True)
class Rails:
    """The ports of a host that messages of a fabric go over.

    :param by_name: each by what sentences call it.
    """

    host: Host
    by_name: dict[str, Device]


def verify_rails(report: Report, carrier: str, ports: Mapping[str, float]) -> str | None:
    """Hold what each port carried, its rate and its slot against what they ought to be.

    :param carrier: of the fabric.
    :param ports: those of the partition with their rates in Gbit/s, by names as the witness has
        them; empty where its file names none.
    :returns: a sentence with the faults; None if there are none, or nothing can be known.
    """
    slow, idle = _faults(report, carrier, ports)
    faults = [f'{host}: {words}' for host, words in slow + idle]
    if not faults:
        return None
    more = f' (and {len(faults) - MOST_FAULTS} more like it)' if len(faults) > MOST_FAULTS else ''
    is_named = bool(_of_carrier(report, carrier, ports))
    return '; '.join(faults[:MOST_FAULTS]) + more + (_REMEDY if idle and not is_named else '')


def faults_of_ports(report: Report, carrier: str, ports: Mapping[str, float]) -> dict[str, str]:
    """The same by host, of those where something is found."""
    slow, idle = _faults(report, carrier, ports)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for host, words in slow + idle:
        found[host].append(words)
    unnamed = set() if _of_carrier(report, carrier, ports) else {host for host, _ in idle}
    return {
        host: '; '.join(words[:MOST_FAULTS]) + (_REMEDY if host in unnamed else '')
        for host, words in found.items()
    }


def _faults(
    report: Report, carrier: str, ports: Mapping[str, float]
) -> tuple[list[_Fault], list[_Fault]]:
    """The ports that are below their rate, and those that carried too little."""
    if len(report.hosts) == 1 or carrier == 'memory':
        return [], []
    named = _of_carrier(report, carrier, ports)
    rails = rails_of(report, carrier, ports)
    idle = [*_down(rails, named)]
    # Interfaces that nobody named may be for all else, and virtual ones state any rate.
    if named or carrier != 'sockets':
        idle += _idle(report, rails)
    slow = [*_below_rate(rails, named), *_narrow_slots(rails)]
    if carrier == 'sockets':
        slow += _slow_sockets(report, rails, named)
    return slow, idle


_REMEDY = (
    " (if not all of its ports are for messages, name those that are in the partition's extras: "
    'ports)'
)


# Which ports ------------------------------------------------------------------------------------


def rails_of(report: Report, carrier: str, ports: Mapping[str, float]) -> list[Rails]:
    """The ports of each host, for a fabric with this carrier: those that the partition names.

    If it names none, those that messages ought to go over.
    """
    named = _of_carrier(report, carrier, ports)
    return _named(report, carrier, named) if named else _made_for_messages(report, carrier)


def _is_for(device: Device, carrier: str) -> bool:
    if carrier == 'sockets':
        return device.kind not in (*PORTS, 'loopback')
    return device.kind == carrier


def _candidates(host: Host, carrier: str) -> list[Device]:
    """The devices that a fabric can go over; a port of Slingshot with the link of its interface."""
    up = {one.name: one.up for one in host.devices if carrier == 'cxi'}
    return [
        one.model_copy(update={'up': up[one.interface]}) if one.interface in up else one
        for one in host.devices
        if _is_for(one, carrier)
    ]


def _is_called(device: Device, name: str) -> bool:
    return name in (device.name, device.name.removesuffix(':1'), _label(device))


def _of_carrier(report: Report, carrier: str, ports: Mapping[str, float]) -> dict[str, float]:
    """The partition's ports that a fabric can use, and those that no host has."""
    devices = [device for host in report.hosts for device in host.devices]
    here = {
        name for one in devices for name in ports if _is_for(one, carrier) and _is_called(one, name)
    }
    others = {name for one in devices for name in ports if _is_called(one, name)} - here
    if carrier == 'sockets':
        # The interface of a Slingshot port is that port; and of RDMA devices a host may show none.
        here -= {one.interface for one in devices if one.kind == 'cxi'}
        return {name: rate for name, rate in ports.items() if name in here}
    return {name: rate for name, rate in ports.items() if name not in others}


def _named(report: Report, carrier: str, ports: Iterable[str]) -> list[Rails]:
    rails = []
    for host in report.hosts:
        found = {
            name: _with_parts(device, host)
            for name in ports
            for device in _candidates(host, carrier)
            if _is_called(device, name)
        }
        rails.append(Rails(host, found))
    return rails


def _with_parts(device: Device, host: Host) -> Device:
    """A bond has the rate of those of its parts whose link is up; its own is not known."""
    parts = [one.speed for one in host.devices if one.master == device.name and one.up is not False]
    return device.model_copy(update={'speed': sum(parts)}) if sum(parts) else device


def _made_for_messages(report: Report, carrier: str) -> list[Rails]:
    """The ports of each host that messages ought to go over, and those that do so on others."""
    if carrier == 'sockets':  # their names are of each host alone
        used: defaultdict[str, set[str | None]] = defaultdict(set)
        for sender, _, socket in between_hosts(report):
            used[sender].add(socket.device)
        return [Rails(host, _in_use(host, used[host.name])) for host in report.hosts]
    kinds = {
        (name, one.layer)
        for host in report.hosts
        for name, one in _chosen(dict(_real(host, carrier))).items()
    }
    return [
        Rails(host, {name: one for name, one in _real(host, carrier) if (name, one.layer) in kinds})
        for host in report.hosts
    ]


def _real(host: Host, carrier: str) -> list[tuple[str, Device]]:
    """The candidates by what people call them, without virtual functions beside their card.

    A container may have these alone.
    """
    found = _candidates(host, carrier)
    whole = [one for one in found if not one.virtual]
    return [(_label(one), one) for one in whole or found]


def _in_use(host: Host, used: Container[str | None]) -> dict[str, Device]:
    """Interfaces that ranks have connections over, and those that a bond of them is made of."""
    return {
        name: one
        for name, one in _real(host, 'sockets')
        if name in used or (one.nic and one.master in used)
    }


def _chosen(ports: dict[str, Device]) -> dict[str, Device]:
    """The ports that are up and as fast as others on the host.

    Where there is InfiniBand, Ethernet ports of RDMA devices are for storage or management.
    """
    up = {name: one for name, one in ports.items() if one.up is not False}
    if any(one.layer == 'InfiniBand' for one in up.values()):
        up = {name: one for name, one in up.items() if one.layer == 'InfiniBand'}
    return _of_one_rate(up) | {name: one for name, one in up.items() if _is_degraded(one)}


def _label(device: Device) -> str:
    """The usual name of a port: for Slingshot that of its interface."""
    return device.interface if device.kind == 'cxi' and device.interface else device.name


def _of_one_rate(ports: dict[str, Device]) -> dict[str, Device]:
    """Without those that have less than half of the rate of another: they are not for messages."""
    most = max((one.speed for one in ports.values()), default=0)
    return {name: one for name, one in ports.items() if not 0 < one.speed < most / 2}


# What is wrong with a port ----------------------------------------------------------------------


def _down(rails: Sequence[Rails], named: Iterable[str]) -> Iterator[_Fault]:
    """Ports that are not there or have no link, of those that are named or have it on others."""
    up = {name for one in rails for name, port in one.by_name.items() if port.up is not False}
    # Hosts may be cabled at different ports.
    counts = [sum(port.up is not False for port in one.by_name.values()) for one in rails]
    for one, count in zip(rails, counts, strict=True):
        for name in named:
            if name not in one.by_name:
                yield one.host.name, f'no port {name} with counters, which its partition has'
        for name, port in one.by_name.items():
            if port.up is False and (name in named or (name in up and count < max(counts))):
                yield one.host.name, _without_link(name, port)


def _without_link(name: str, port: Device) -> str:
    if port.state in ('INIT', 'ARMED'):
        return f'{name} is in state {port.state}: its subnet manager has not set it up'
    return f'the link of {name} is down'


def _below_rate(rails: Sequence[Rails], named: Mapping[str, float]) -> Iterator[_Fault]:
    """Ports slower than the partition says, or than the same port of other hosts."""
    fastest: defaultdict[tuple[str, str], float] = defaultdict(float)
    for one in rails:
        for name, port in one.by_name.items():
            fastest[name, port.layer] = max(fastest[name, port.layer], port.speed)
    for one in rails:
        for name, port in one.by_name.items():
            ought = named[name] * 1e9 / 8 if name in named else fastest[name, port.layer]
            if port.up is False or not port.speed:
                continue
            where = f'{name} runs at'
            link = f' ({port.link})' if port.link else ''
            if port.speed < LEAST_RATE * ought:
                of = f'{where} {_gigabits(port.speed)} of {_gigabits(ought)} Gbit/s'
                on = ''
                if name not in named:
                    on = (
                        ' that it has on others; if that is right, give the lower rate in the '
                        "partition's extras: ports"
                    )
                yield one.host.name, f'{of}{link}{on}'
            elif name not in named and _is_degraded(port):
                words = 'to which links fall back when they fail to train'
                yield one.host.name, f'{where} {_gigabits(port.speed)} Gbit/s{link}, {words}'


def _gigabits(rate: float) -> str:
    return f'{rate * 8e-9:g}'


def _is_degraded(device: Device) -> bool:
    """Whether a link of InfiniBand is trained to less than any port of today is made for.

    Two lanes are what a cable to two ports gives, and one lane of NDR too; Ethernet's rates go by
    the same words.
    """
    return device.layer == 'InfiniBand' and (device.link in _NARROW or device.link.endswith(' SDR'))


def _bandwidth(slot: Pcie) -> float:
    """Bytes per second, without what the encoding takes."""
    return slot.width * slot.speed * 1e9 / 8


def _narrow_slots(rails: Iterable[Rails]) -> Iterator[_Fault]:
    for one in rails:
        for name, device in one.by_name.items():
            slot = device.pcie
            if not slot or _bandwidth(slot) >= ROOMY_SLOT * (device.speed or 1e99):
                continue
            if slot.width < slot.widest:
                yield one.host.name, f'{name} has {slot.width} of {slot.widest} PCIe lanes'
            elif slot.speed < LEAST_RATE * slot.fastest:
                rates = f'{slot.speed:g} of {slot.fastest:g} GT/s'
                yield one.host.name, f'the PCIe lanes of {name} run at {rates}'


def _slow_sockets(
    report: Report, rails: Iterable[Rails], named: Mapping[str, float]
) -> Iterator[_Fault]:
    """Ports over which connections went far slower than their rate, though nothing else held.

    Of the connections over a port some may have no rate: those count with the mean of the others.
    """
    found: defaultdict[tuple[str, str], list[float | None]] = defaultdict(list)
    paces: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for sender, receiver, socket in between_hosts(report):
        if socket.device and socket.sent >= STREAM:
            pace = socket.pace if socket.looks >= LEAST_LOOKS else None
            own = paces[sender, socket.device]
            found[sender, socket.device].append(pace or socket.rate)
            own[receiver] = max(own.get(receiver, 0.0), pace or 0.0)
    for one in rails:
        host = one.host.name
        of_host = {name: paces[host, name] for name in one.by_name if (host, name) in paces}
        behind = dict(_behind_sisters(of_host, one, named))
        for name, words in behind.items():
            yield one.host.name, f'connections over {name} {words}'
        for name, ought in named.items():
            rates = found[one.host.name, name]
            known = [rate for rate in rates if rate is not None]
            rate = len(rates) * sum(known) / len(known) if known else ONE_SOCKET
            if name not in behind and rate < LEAST_OF_SOCKETS * min(ought * 1e9 / 8, ONE_SOCKET):
                words = f'sent {decimal_size(rate)} in a second, of {ought:g} Gbit/s'
                yield one.host.name, f'connections over {name} {words}'


def _behind_sisters(
    paces: Mapping[str, Mapping[str, float]], rails: Rails, named: Mapping[str, float]
) -> Iterator[tuple[str, str]]:
    """The ports of a host that sent far slower than others of their rate to the same host.

    Of the connections over a port the fastest counts, since programs hold some back. An MPI that
    sends messages in parts over several ports waits for the slowest.

    :param paces: of each port of the host, by receivers.
    """
    for name, own in sorted(paces.items()):
        rate = _stated(rails, name, named)
        sisters = [one for one in paces if one != name and _stated(rails, one, named) == rate]
        ways = []
        for receiver, pace in own.items():
            those = [(paces[one].get(receiver, 0.0), one) for one in sisters]
            other, sister = max(those, default=(0.0, ''))
            if pace and other:
                ways.append((pace / min(other, rate or ONE_SOCKET), pace, other, sister))
        share, pace, other, sister = max(ways, default=(1.0, 0.0, 0.0, ''))
        if share < LEAST_OF_SISTER:
            words = f'sent {decimal_size(pace)} in a second, and those over {sister} '
            yield name, words + decimal_size(other)


def _stated(rails: Rails, name: str, named: Mapping[str, float]) -> float:
    """Bytes per second that a port ought to give; 0 of those that state nothing, all alike."""
    return named[name] * 1e9 / 8 if name in named else rails.by_name[name].speed


# What each carried ------------------------------------------------------------------------------


def _large_bytes(report: Report) -> dict[int, float]:
    """By rank the bytes of large messages to and from other hosts, where they are enough.

    Where nobody counted messages by size it is all bytes: small ones are few of them in what
    measures a network.
    """
    found: defaultdict[int, float] = defaultdict(float)
    for process in report.processes:
        for partner in process.partners:
            if partner.rank < 0 or report.processes[partner.rank].host == process.host:
                continue
            large = partner.bytes
            if partner.sizes:
                large = sum(
                    number * size for size, number in partner.sizes.items() if size >= LARGE
                )
            for rank in (process.rank, partner.rank):
                found[rank] += large
    return {rank: size for rank, size in found.items() if size >= ENOUGH}


def _idle(report: Report, rails: Iterable[Rails]) -> Iterator[_Fault]:
    """For each host, the ports that carried too little of the bytes of the ranks beside them."""
    moved, by_host = _large_bytes(report), report.by_host()
    for one in rails:
        movers = [rank for rank in by_host[one.host.name] if rank.rank in moved]
        ports = {
            name: port for name, port in _of_one_rate(one.by_name).items() if port.up is not False
        }
        ports = _by_slot(ports)
        if len(ports) > 1 and movers and (words := _idle_of(ports, movers, moved)):
            yield one.host.name, words


def _by_slot(ports: Mapping[str, Device]) -> dict[str, Device]:
    """The ports, those of a card as one if its slot is too narrow for all of them at once.

    An MPI that leaves some of them out loses nothing then.
    """
    cards: defaultdict[str, dict[str, Device]] = defaultdict(dict)
    for name, port in ports.items():
        cards[port.nic.rpartition('.')[0] or name][name] = port  # 0000:3b:00.0 and 0000:3b:00.1
    found: dict[str, Device] = {}
    for card in cards.values():
        first = next(iter(card.values()))
        if len(card) == 1 or not first.pcie or _bandwidth(first.pcie) >= _sum_of(card, 'speed'):
            found |= card
            continue
        both = {name: _sum_of(card, name) for name in ('sent', 'received', 'speed')}
        found['+'.join(sorted(card))] = first.model_copy(update=both)
    return found


def _sum_of(card: Mapping[str, Device], name: str) -> int:
    return sum(getattr(one, name) for one in card.values())


def _idle_of(
    ports: Mapping[str, Device], movers: Sequence[Process], moved: Mapping[int, float]
) -> str | None:
    """The ports of a host that carried too little, in words; None if there are none.

    A rank needs no more than one port: of those beside some ranks, only as many are asked for as
    there are ranks. A part is the lesser of two: what those ranks sent over the ports beside them
    alone, and what all sent over all ports of the host.
    """
    carried = {name: one.sent + one.received for name, one in ports.items()}
    all_of_host = sum(moved[one.rank] for one in movers)
    groups: defaultdict[tuple[str, ...], list[Process]] = defaultdict(list)
    for one in movers:
        groups[_beside(one, ports)].append(one)
    beside = {name for group in groups for name in group}
    idle: set[str] = set()
    waiting: list[int] = []
    far: set[str] = set()
    for group, ranks in groups.items():
        most = max(moved[one.rank] for one in ranks)
        even = [one for one in ranks if moved[one.rank] >= LEAST_PART * most]
        least = min(moved[one.rank] for one in even) * max(1, len(even) // len(group))
        part = LEAST_PART * min(least, all_of_host / len(ports))
        less = [name for name in group if carried[name] < part]
        if min(len(even), len(group)) > len(group) - len(less):
            idle.update(less)
            waiting += [one.rank for one in ranks]
            far |= {name for name in ports if name not in beside and carried[name] >= part}
    if not idle:
        return None
    return (
        f'{names_in_words(idle)} carried {_sum(carried, idle)} of {decimal_size(all_of_host)}; '
        f'{rank_numbers_in_words(waiting)} {"sits" if len(waiting) == 1 else "sit"} beside '
        f'{"it" if len(idle) == 1 else "them"}' + _elsewhere(ports, far, carried)
    )


def _elsewhere(ports: Mapping[str, Device], far: set[str], carried: Mapping[str, int]) -> str:
    """A sentence: ports beside no rank carried it; empty if none did."""
    domains = sorted({str(ports[name].numa) for name in far if ports[name].numa is not None})
    if not domains:
        return ''
    where = (
        f'{names_in_words(far)} in NUMA domain{"s" * (len(domains) > 1)} {" and ".join(domains)}'
    )
    return f', but {where} carried {_sum(carried, far)}'


def _sum(carried: Mapping[str, int], names: Iterable[str]) -> str:
    return decimal_size(sum(carried[name] for name in names))


def _beside(process: Process, ports: Mapping[str, Device]) -> tuple[str, ...]:
    """The nearest ports of a rank: of its NUMA domains, or else its packages, or all of them."""
    of_domain = [name for name, one in ports.items() if one.numa in process.numa]
    of_package = [name for name, one in ports.items() if one.package in process.packages]
    return tuple(of_domain or of_package or ports)


def names_in_words(unsorted: Iterable[str]) -> str:
    """Names for a sentence, in order."""
    names = sorted(unsorted)
    return names[0] if len(names) == 1 else f'{", ".join(names[:-1])} and {names[-1]}'
