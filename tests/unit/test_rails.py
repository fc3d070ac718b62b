"""Which ports of a host carried what, and which are below their rate."""

import pytest

from assay.witness.rails import faults_of_ports, verify_rails
from witnessed import entries, host, partner, process, validated

GB = 10**9
FAST = {'speed': 25 * GB, 'up': True, 'layer': 'InfiniBand', 'link': '4X HDR'}
SLOT = {'width': 16, 'widest': 16, 'speed': 16.0, 'fastest': 16.0}


def port(name, carried, numa=0, **more):
    half = int(carried) // 2
    return {
        'name': name,
        'kind': 'infiniband',
        'sent': half,
        'received': half,
        'numa': numa,
        'package': None if numa is None else numa // 2,
        'pcie': SLOT,
        **FAST,
        **more,
    }


def hsn(number, carried, **more):
    return port(
        f'cxi{number}',
        carried,
        number,
        kind='cxi',
        interface=f'hsn{number}',
        layer='',
        link='',
        **more,
    )


def job(of_n1, of_n2=None, ranks=2, domains=2, each=4 * GB, size=1 << 20, sockets=None):
    """A job on two hosts, whose ranks send to their counterpart and receive as much.

    :param ranks: of each host; they sit in its NUMA domains in turn, as many in each.
    :param each: bytes that each sends; ``size`` is that of a message.
    """
    cores = [[domain * 4 + core for core in range(4)] for domain in range(domains)]
    hosts = [host(name, cores) for name in ('n1', 'n2')]
    hosts[0]['devices'] = of_n1
    hosts[1]['devices'] = of_n1 if of_n2 is None else of_n2
    processes = []
    for rank in range(2 * ranks):
        domain = rank % ranks * domains // ranks
        processes.append(
            process(
                rank,
                (4 * domain,),
                f'n{rank // ranks + 1}',
                partners=[
                    partner((rank + ranks) % (2 * ranks), each // size, each, {size: each // size})
                ],
                numa=str(domain),
                packages=str(domain // 2),
                sockets=(sockets or {}).get(rank, []),
            )
        )
    return validated(entries(processes, hosts))


def test_the_sentence_of_ports_that_carried_nothing():
    some = [hsn(0, 16 * GB), hsn(1, 16 * GB), hsn(2, 0), hsn(3, 0)]
    all_ = [hsn(number, 8 * GB) for number in range(4)]
    said = verify_rails(job(all_, some, 8, 4, GB), 'cxi', {})
    assert said == (
        'n2: hsn2 and hsn3 carried 0 B of 16.0 GB; ranks 12-15 sit beside them (if not all of its '
        "ports are for messages, name those that are in the partition's extras: ports)"
    )
    named = verify_rails(job(all_, some, 8, 4, GB), 'cxi', {f'cxi{n}': 200 for n in range(4)})
    assert named == 'n2: cxi2 and cxi3 carried 0 B of 16.0 GB; ranks 12-15 sit beside them'


def test_what_is_wrong_with_ports_by_host():
    some = [hsn(0, 16 * GB), hsn(1, 16 * GB), hsn(2, 0, speed=12 * GB), hsn(3, 0)]
    all_ = [hsn(number, 8 * GB) for number in range(4)]
    report, named = job(all_, some, 8, 4, GB), {f'cxi{n}': 200 for n in range(4)}
    words = 'cxi2 runs at 96 of 200 Gbit/s; cxi3 carried 0 B of 16.0 GB; ranks 12-15 sit beside'
    assert faults_of_ports(report, 'cxi', named) == {'n2': f'{words} it'}
    (words,) = faults_of_ports(report, 'cxi', {}).values()
    assert words.endswith("name those that are in the partition's extras: ports)")
    assert faults_of_ports(job(all_, all_, 8, 4, GB), 'cxi', named) == {}
    assert faults_of_ports(report, 'memory', named) == {}


def test_a_port_of_slingshot_has_a_link_if_its_interface_has():
    hosts = []
    for up in (True, False):
        interfaces = [
            {'name': f'hsn{n}', 'kind': 'ethernet', 'sent': 0, 'received': 0, 'up': up or n == 0}
            for n in range(2)
        ]
        second = hsn(1, 16 * GB if up else 0)
        hosts.append([hsn(0, 16 * GB), {**second, 'up': None}, *interfaces])
    said = verify_rails(job(*hosts, domains=2), 'cxi', {})
    assert said.startswith('n2: the link of hsn1 is down (if not all of its ports')
    assert verify_rails(job(*hosts, domains=2), 'cxi', {'cxi1': 200}) == (
        'n2: the link of cxi1 is down'
    )


def two(first, second, **more):
    """Two ports of different NUMA domains."""
    return [port('mlx5_0:1', first), port('mlx5_1:1', second, 1, **more)]


EVEN = two(8 * GB, 8 * GB)


def of_a_card(first, second, speed, nic='', of='ab', bus='3b'):
    """Two ports of 200 Gbit/s, by default of one card, in slots of 16 lanes.

    :param speed: transfers per second of each lane, in 10^9.
    """
    slot = {'pcie': SLOT | {'speed': speed, 'fastest': speed}}
    return [
        port(f'{of[0]}:1', first, nic=f'0000:{bus}:00.0', **slot),
        port(f'{of[1]}:1', second, nic=nic or f'0000:{bus}:00.1', **slot),
    ]


@pytest.mark.parametrize(
    ('ports', 'ranks', 'words'),
    [
        (EVEN, 2, None),
        # One rank near each: all went over the first, as if there were no other.
        (two(16 * GB, 0), 2, 'mlx5_1:1 carried 0 B of 16.0 GB; rank 1 sits beside it'),
        # Others' file system is no part of it.
        (two(16 * GB, GB), 2, 'mlx5_1:1 carried 1.0 GB of 16.0 GB; rank 1 sits beside it'),
        # Messages in parts over both.
        (two(4 * GB, 4 * GB), 1, None),
        ([port(f'{name}:1', 2 * GB, n) for n, name in enumerate('abcd')], 1, None),
        # One rank needs no other port than that beside it, and took the one beside nobody.
        (two(8 * GB, 0), 1, None),
        (
            two(0, 8 * GB),
            1,
            'mlx5_0:1 carried 0 B of 8.0 GB; rank 0 sits beside it, but mlx5_1:1 in NUMA domain 1 '
            'carried 8.0 GB',
        ),
        # Two ports of one card, beside both ranks: openucx/ucx #8401.
        (
            [port('a:1', 16 * GB), port('a:2', 0)],
            2,
            'a:2 carried 0 B of 16.0 GB; ranks 0 and 1 sit beside it',
        ),
        ([port('a:1', 8 * GB), port('a:2', 0)], 1, None),
        # A slot with room for one of them; for both; and two cards with as little room each.
        (of_a_card(16 * GB, 0, 16.0), 2, None),
        (of_a_card(16 * GB, 0, 32.0), 2, 'b:1 carried 0 B of 16.0 GB; ranks 0 and 1 sit beside it'),
        (
            of_a_card(16 * GB, 0, 16.0, '0000:5e:00.0'),
            2,
            'b:1 carried 0 B of 16.0 GB; ranks 0 and 1 sit beside it',
        ),
        # Two such cards, of which all ports of one carried nothing.
        (
            [*of_a_card(16 * GB, 0, 16.0), *of_a_card(0, 0, 16.0, of='cd', bus='5e')],
            2,
            'c:1+d:1 carried 0 B of 16.0 GB; ranks 0 and 1 sit beside it',
        ),
        # Nobody knows where they sit.
        (
            [port('a:1', 16 * GB, None), port('b:1', 0, None)],
            2,
            'b:1 carried 0 B of 16.0 GB; ranks 0 and 1 sit beside it',
        ),
        # Not for messages: without link, slower, Ethernet beside InfiniBand, others' guests.
        (two(16 * GB, 0, up=False), 2, None),
        (two(16 * GB, 0, speed=3 * GB, link='1X EDR', layer='Ethernet'), 2, None),
        (two(16 * GB, 0, layer='Ethernet'), 2, None),
        (two(16 * GB, 0, virtual=True), 2, None),
        # A container that has virtual functions alone.
        (
            [{**one, 'virtual': True} for one in two(16 * GB, 0)],
            2,
            'mlx5_1:1 carried 0 B of 16.0 GB; rank 1 sits beside it',
        ),
        # A management interface, and IP over InfiniBand.
        ([*EVEN, {**port('eno1', 0), 'kind': 'ethernet'}], 2, None),
        ([*EVEN, {**port('ib0', 0), 'kind': 'ip-over-infiniband'}], 2, None),
    ],
)
def test_ports_that_carried_their_part(ports, ranks, words):
    said = verify_rails(job(ports, ranks=ranks, domains=2), 'infiniband', {})
    assert (said and said.partition(' (if')[0].partition('; n2: ')[0]) == (words and f'n1: {words}')


@pytest.mark.parametrize('less', [{'each': 4 << 20}, {'size': 4096}, {'each': 0}])
def test_few_bytes_and_small_messages_tell_nothing(less):
    assert verify_rails(job(two(16 * GB, 0), **less), 'infiniband', {}) is None


@pytest.mark.parametrize(('carried', 'good'), [((16, 0), True), ((0, 16), False), ((8, 8), True)])
def test_ranks_of_a_domain_without_a_port_have_those_of_their_package(carried, good):
    """AMD's NPS4: some domains of each package, one of which has the card; all ranks on one."""
    ports = [port('a', carried[0] * GB, 1), port('b', carried[1] * GB, 3)]
    said = verify_rails(job(ports, ranks=2, domains=1), 'infiniband', {})
    assert said is None if good else said.startswith('n1: a carried 0 B of 16.0 GB; ranks 0 and 1')


def test_hosts_that_number_their_devices_otherwise():
    """A device is InfiniBand on one and Ethernet without a cable on the other, and the reverse."""
    ethernet = {'layer': 'Ethernet', 'link': '1X EDR', 'speed': 25 * GB // 8}
    of_n1 = [port('mlx5_0:1', 16 * GB), port('mlx5_1:1', 0, **ethernet)]
    of_n2 = [port('mlx5_0:1', 0, up=False, **{**ethernet, 'speed': 0}), port('mlx5_1:1', 16 * GB)]
    assert verify_rails(job(of_n1, of_n2), 'infiniband', {}) is None


def test_a_slow_port_for_management_may_be_down():
    slow = {'speed': 25 * GB // 8, 'layer': 'Ethernet', 'link': '1X EDR'}
    fast = port('mlx5_0:1', 16 * GB, layer='Ethernet')
    of_n1 = [fast, port('bnxt_re0:1', GB, **slow)]
    of_n2 = [fast, port('bnxt_re0:1', 0, **{**slow, 'up': False, 'speed': 0})]
    assert verify_rails(job(of_n1, of_n2), 'infiniband', {}) is None


def test_interfaces_of_hosts_that_have_other_names():
    of_n1 = [interface('eth0', 8 * GB), interface('ens1', 0, 125_000_000)]
    of_n2 = [interface('ens1', 8 * GB), interface('eth0', 0, up=False)]
    sockets = over('eth0')
    sockets[2][0]['device'] = 'ens1'
    assert verify_rails(job(of_n1, of_n2, sockets=sockets), 'sockets', {}) is None


def test_one_host_and_other_fabrics_say_nothing():
    found = job(two(16 * GB, 0))
    assert verify_rails(found, 'memory', {}) is None
    assert verify_rails(found, 'sockets', {}) is None
    assert verify_rails(found, 'sockets', {'mlx5_0': 200, 'mlx5_1': 200}) is None
    assert verify_rails(found, 'cxi', {}) is None


@pytest.mark.parametrize(
    ('of_n2', 'words'),
    [
        (
            {'speed': 5 * GB // 4, 'link': '4X SDR'},
            'n2: mlx5_1:1 runs at 10 of 200 Gbit/s (4X SDR) that it has on others; if ',
        ),
        (
            {'speed': 12.5 * GB, 'link': '2X HDR'},
            'n2: mlx5_1:1 runs at 100 of 200 Gbit/s (2X HDR) that it',
        ),
        ({'up': False, 'link': '4X SDR'}, 'n2: the link of mlx5_1:1 is down'),
        # openucx/ucx #5970: it has a link, and no address.
        (
            {'up': False, 'state': 'INIT'},
            'n2: mlx5_1:1 is in state INIT: its subnet manager has not set it up',
        ),
        ({'pcie': SLOT | {'width': 8}}, 'n2: mlx5_1:1 has 8 of 16 PCIe lanes'),
        ({'pcie': SLOT | {'width': 1}}, 'n2: mlx5_1:1 has 1 of 16 PCIe lanes'),
        (
            {'pcie': SLOT | {'speed': 8.0}},
            'n2: the PCIe lanes of mlx5_1:1 run at 8 of 16 GT/s',
        ),
        ({'pcie': None}, None),
        # Drivers round: 56 and 56.25.
        ({'speed': 24.9 * GB}, None),
    ],
)
def test_a_port_that_is_not_what_it_is_elsewhere(of_n2, words):
    of_n2 = {key: int(value) if key == 'speed' else value for key, value in of_n2.items()}
    said = verify_rails(job(EVEN, two(8 * GB, 8 * GB, **of_n2)), 'infiniband', {})
    assert said.startswith(words) if words else said is None


@pytest.mark.parametrize(
    ('everywhere', 'words'),
    [
        ({'link': '4X SDR', 'speed': 5 * GB // 4}, 'runs at 10 Gbit/s (4X SDR), to which links'),
        ({'link': '1X EDR', 'speed': 25 * GB // 8}, 'runs at 25 Gbit/s (1X EDR), to which links'),
        # HDR100 by a cable to two ports; NDR by one to four.
        ({'link': '2X HDR', 'speed': 25 * GB // 2}, None),
        ({'link': '1X NDR', 'speed': 25 * GB // 2}, None),
        # 10 and 25 Gbit/s of RoCE go by these words.
        ({'link': '4X SDR', 'speed': 5 * GB // 4, 'layer': 'Ethernet'}, None),
        ({'link': '1X EDR', 'speed': 25 * GB // 8, 'layer': 'Ethernet'}, None),
    ],
)
def test_a_port_that_is_so_on_all_hosts(everywhere, words):
    ports = [port('mlx5_0:1', 16 * GB, **everywhere)]
    said = verify_rails(job(ports), 'infiniband', {})
    assert said.startswith(f'n1: mlx5_0:1 {words}') if words else said is None


@pytest.mark.parametrize(
    ('named', 'words'),
    [
        ({'mlx5_0': 200, 'mlx5_1:1': 200}, None),
        ({'mlx5_0': 100}, None),
        ({'mlx5_0': 400}, 'n1: mlx5_0 runs at 200 of 400 Gbit/s (4X HDR)'),
        (
            {'mlx5_0': 200, 'mlx5_7': 200},
            'n1: no port mlx5_7 with counters, which its partition has',
        ),
        ({'eno1': 1}, None),  # over which other fabrics go
    ],
)
def test_ports_that_the_partition_names(named, words):
    ports = [*EVEN, {**port('eno1', 0), 'kind': 'ethernet'}]
    said = verify_rails(job(ports), 'infiniband', named)
    assert said.startswith(words) if words else said is None


def test_a_port_that_is_for_storage_is_not_named():
    assert verify_rails(job(two(16 * GB, 0)), 'infiniband', {'mlx5_0': 200}) is None


# Interfaces ------------------------------------------------------------------------------------


def interface(name, carried, speed=3_125_000_000, **more):
    return port(name, carried, kind='ethernet', speed=speed, layer='', link='', nic='x', **more)


def over(name, rate=None):
    """By rank the sockets of a connection between ranks 0 and 2 over an interface."""
    ends = ('10.0.0.1:1', '10.0.0.2:1')
    one = {'device': name, 'sent': 2 * GB, 'received': 2 * GB, 'rate': rate}
    return {
        rank: [{'local': local, 'remote': remote, **one}]
        for rank, (local, remote) in {0: ends, 2: ends[::-1]}.items()
    }


@pytest.mark.parametrize(
    ('of_n2', 'ports', 'words'),
    [
        ([interface('eth0', 8 * GB)], {}, None),
        (
            [interface('eth0', 8 * GB, 312_500_000)],
            {},
            'n2: eth0 runs at 2.5 of 25 Gbit/s that it has on others',
        ),
        # Nobody has a connection over it.
        ([interface('eth0', 8 * GB), interface('eno1', 0, 125_000_000)], {}, None),
        (
            [interface('eth0', 16 * GB), interface('eth1', 0)],
            {'eth0': 25, 'eth1': 25},
            'n2: eth1 carried 0 B of 16.0 GB; ranks 2 and 3 sit beside it',
        ),
        ([interface('eth0', 16 * GB), interface('eth1', 0)], {}, None),
        (
            [interface('eth0', 16 * GB, up=False)],
            {'eth0': 25},
            'n2: the link of eth0 is down',
        ),
        # One of a bond's two is down; as a part of it another is slow.
        (
            [
                {**interface('eth0', 16 * GB, 0), 'nic': ''},
                interface('a', 8 * GB, master='eth0'),
                interface('b', 8 * GB, master='eth0', up=False),
            ],
            {'eth0': 50},
            'n2: eth0 runs at 25 of 50 Gbit/s',
        ),
        # A gigabit port needs no more lanes than it has.
        (
            [interface('eth0', 8 * GB, 125_000_000, pcie=SLOT | {'width': 1, 'speed': 5.0})],
            None,
            None,
        ),
    ],
)
def test_interfaces(of_n2, ports, words):
    of_n1 = of_n2 if ports is None else None
    good = [
        interface('eth0', 8 * GB, 6_250_000_000 if 'eth0' in (ports or {}) else 3_125_000_000),
        interface('eth1', 8 * GB),
    ]
    said = verify_rails(job(of_n1 or good, of_n2, sockets=over('eth0')), 'sockets', ports or {})
    assert said.startswith(words) if words else said is None


@pytest.mark.parametrize(
    ('rate', 'words'),
    [(1e9, None), (12e6, 'n1: connections over eth0 sent 12.0 MB in a second, of 25')],
)
def test_connections_far_below_the_rate_of_their_port(rate, words):
    ports = [interface('eth0', 8 * GB)]
    said = verify_rails(job(ports, sockets=over('eth0', rate=rate)), 'sockets', {'eth0': 25})
    assert said.startswith(words) if words else said is None


@pytest.mark.parametrize(
    ('paces', 'ports', 'words'),
    [
        ((1.1e9, 1.2e9), {'eth0': 10, 'eth1': 10}, None),
        (
            (0.13e9, 0.9e9),
            {'eth0': 10, 'eth1': 10},
            'n1: connections over eth0 sent 130.0 MB in a second, and those over eth1 900.0 MB; ',
        ),
        ((0.3e9, 2.9e9), {'eth0': 25, 'eth1': 25}, 'n1: connections over eth0 sent 300.0 MB in a'),
        # Nobody names them; a burst of the other is above what any port of theirs gives.
        ((0.13e9, 0.9e9), {}, 'n1: connections over eth0 sent 130.0 MB in a second, and those'),
        ((3e9, 14e9), {'eth0': 25, 'eth1': 25}, None),
        # Of different rates, or without the other.
        ((0.13e9, 0.9e9), {'eth0': 2.5, 'eth1': 25}, None),
        ((0.13e9, None), {'eth0': 10, 'eth1': 10}, None),
    ],
)
def test_a_port_far_behind_its_sister(paces, ports, words):
    sockets = {}
    for name, pace in zip(('eth0', 'eth1'), paces, strict=True):
        for rank, (one,) in over(name).items():
            number = name[-1]  # another end
            ends = {key: f'{one[key]}{number}' for key in ('local', 'remote')}
            looks = {'pace': pace, 'looks': 0 if pace is None else 9}
            sockets.setdefault(rank, []).append(one | ends | looks)
    both = [interface('eth0', 8 * GB), interface('eth1', 8 * GB)]
    for one in both:
        if ports:
            one['speed'] = int(ports[one['name']] * GB / 8)
    said = verify_rails(job(both, sockets=sockets), 'sockets', ports)
    assert said.startswith(words) if words else said is None
