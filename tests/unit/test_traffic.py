"""What carried the bytes: the verdict by accounting alone."""

import pytest

from assay.config.fabrics import load_catalogue
from assay.witness.traffic import WIRE_UP, account, decimal_size, verify_traffic
from witnessed import call, device, host, partner, process, report, socket

MB = 10**6


def on_one_host(sent, by_sockets, ranks=2, **more):
    """Ranks that send as much to their neighbour, with sockets between rank 0 and rank 1."""
    processes = [
        process(
            rank,
            (rank,),
            partners=[partner((rank + 1) % ranks, 1, sent // ranks)],
            sockets=[]
            if rank > 1
            else [
                socket(f'127.0.0.1:400{rank}', f'127.0.0.1:400{1 - rank}', by_sockets // 2),
                socket('127.0.0.1:5000', '127.0.0.1:6000', 50 * MB),  # to the launcher
            ],
            **more,
        )
        for rank in range(ranks)
    ]
    return report(processes)


def on_two_hosts(sent, by_sockets, by_device, kind='infiniband'):
    """Rank 0 on n1 and rank 1 on n2, which both send."""
    hosts = [host('n1'), host('n2')]
    processes = []
    for rank in (0, 1):
        hosts[rank]['devices'] = [
            device('lo', 'loopback', 90 * MB),
            device('d0', kind, int(by_device)),
        ]
        processes.append(
            process(
                rank,
                (0,),
                f'n{rank + 1}',
                partners=[partner(1 - rank, 1, sent), partner(rank, 1, 70 * MB)],
                sockets=[socket(f'10.0.0.{rank}:1', f'10.0.0.{1 - rank}:1', by_sockets)],
                calls={'MPI_Allreduce': call(1, 0.0, 80 * MB)},
            )
        )
    return report(processes, hosts)


def test_every_fabric_has_a_carrier():
    carriers = {name: fabric.carrier for name, fabric in load_catalogue().fabrics.items()}
    assert set(carriers.values()) <= {'memory', 'sockets', 'infiniband', 'cxi'}
    for name, fabric in load_catalogue().fabrics.items():
        if 'shm' in name:
            assert carriers[name] == 'memory'
        if 'tcp' in name:
            assert carriers[name] == 'sockets'
        # What is bound by memory or sockets is carried by them; devices carry the others.
        by_limit = {'memory': 'memory', 'socket': 'sockets'}.get(fabric.limit)
        assert by_limit in (carriers[name], None)
        assert fabric.needs_device == (carriers[name] not in ('memory', 'sockets'))


@pytest.mark.parametrize(
    ('sent', 'by_sockets', 'memory', 'sockets'),
    [
        (12_100_000, 12_300_000, False, True),
        (12_100_000, 1200, True, False),
        (12_100_000, 0, True, False),
        # Between a tenth and nine tenths it is neither.
        (12_100_000, 6_000_000, False, False),
        (12_100_000, 10_900_000, False, True),
        (12_100_000, 10_880_000, False, False),
        (12_100_000, 1_200_000, True, False),
        (12_100_000, 1_220_000, False, False),
        # Wire-up is allowed: 64 KiB of each rank.
        (2 * WIRE_UP, 2 * WIRE_UP, True, True),
        (2 * WIRE_UP, 2 * WIRE_UP + 2, False, True),
        # Too little to tell anything.
        (2 * WIRE_UP - 2, 0, True, True),
        (0, 50_000_000, True, True),
    ],
)
def test_one_host(sent, by_sockets, memory, sockets):
    found = on_one_host(sent, by_sockets)
    assert (verify_traffic(found, 'memory', 'shm') is None) == memory
    assert (verify_traffic(found, 'sockets', 'tcp') is None) == sockets
    assert verify_traffic(found, 'infiniband', 'ucx-ib') is None


def test_wire_up_is_64_kib_of_each_rank():
    assert WIRE_UP == 65536


def test_sentences():
    assert verify_traffic(on_one_host(12_100_000, 12_300_000), 'memory', 'shm') == (
        'fabric shm was asked for, but TCP sockets between the ranks carried 12.3 MB of the '
        '12.1 MB sent'
    )
    assert verify_traffic(on_one_host(12_100_000, 1200), 'sockets', 'tcp') == (
        'fabric tcp was asked for, but of 12.1 MB sent TCP sockets between the ranks carried 1.2 kB'
    )
    assert verify_traffic(on_two_hosts(12_100_000, 1200, 0), 'infiniband', 'ucx-ib') == (
        'fabric ucx-ib was asked for, but of 12.1 MB that n1 sent to others its infiniband '
        'devices carried 0 B'
    )
    assert verify_traffic(on_two_hosts(12_100_000, 12_300_000, 0), 'cxi', 'ofi-cxi') == (
        'fabric ofi-cxi was asked for, but TCP sockets between the hosts carried 12.3 MB of the '
        '12.1 MB that n1 sent to others'
    )


@pytest.mark.parametrize(
    ('by_sockets', 'by_device', 'kind', 'carrier', 'good'),
    [
        (0, 13 * MB, 'infiniband', 'infiniband', True),
        (0, 13 * MB, 'infiniband', 'cxi', False),
        (0, 10.9 * MB, 'infiniband', 'infiniband', True),
        (0, 10.7 * MB, 'infiniband', 'infiniband', False),
        (0, 13 * MB, 'cxi', 'cxi', True),
        (0, 13 * MB, 'ethernet', 'infiniband', False),
        (0, 0, 'infiniband', 'cxi', False),
        (13 * MB, 13 * MB, 'infiniband', 'infiniband', False),
        (13 * MB, 13 * MB, 'ethernet', 'sockets', True),
        (0, 13 * MB, 'ethernet', 'sockets', False),
        (0, 13 * MB, 'ethernet', 'memory', False),
    ],
)
def test_two_hosts(by_sockets, by_device, kind, carrier, good):
    found = on_two_hosts(12 * MB, by_sockets, by_device, kind)
    assert (verify_traffic(found, carrier, 'it') is None) == good


@pytest.mark.parametrize(
    ('by_sockets', 'by_ethernet', 'good'),
    [(0, MB, True), (0, 2 * MB, False), (13 * MB, 13 * MB, False)],
)
def test_ports_whose_counters_nobody_can_read(by_sockets, by_ethernet, good):
    """As in containers with a network of their own: nebius/soperator #403."""
    found = on_two_hosts(12 * MB, by_sockets, by_ethernet, 'ethernet')
    assert (verify_traffic(found, 'infiniband', 'ucx-ib') is None) == good


def test_a_single_host_of_many_that_fell_back_is_found():
    hosts, processes = [], []
    for rank in range(16):
        hosts.append(host(f'n{rank}'))
        hosts[-1]['devices'] = [device('mlx5_0', 'infiniband', 0 if rank == 9 else 13 * MB)]
        to = partner((rank + 1) % 16, 1, 12 * MB)
        processes.append(process(rank, (0,), f'n{rank}', partners=[to]))
    found = verify_traffic(report(processes, hosts), 'infiniband', 'ucx-ib')
    assert 'that n9 sent to others its infiniband devices carried 0 B' in found


def test_a_single_host_of_many_whose_ports_count_nothing_is_found():
    hosts = [host('n1'), host('n2')]
    hosts[0]['devices'] = [device('mlx5_0', 'infiniband', 13 * MB)]
    ranks = [
        process(rank, (0,), f'n{rank + 1}', partners=[partner(1 - rank, 1, 12 * MB)])
        for rank in (0, 1)
    ]
    found = verify_traffic(report(ranks, hosts), 'infiniband', 'ucx-ib')
    assert found.endswith('that n2 sent to others its infiniband devices carried 0 B')


def test_what_had_to_travel_on_one_host():
    calls = {
        'MPI_Allreduce': call(1, 0.0, 1000),
        'MPI_Ibcast': call(1, 0.0, 200),
        'MPI_Reduce_scatter_block': call(1, 0.0, 30),
        'MPI_Send': call(1, 0.0, 7 * MB),  # in the matrix already
        'MPI_Ineighbor_alltoallv': call(1, 0.0, 7 * MB),  # likewise
        'MPI_Recv': call(1, 0.0, 7 * MB),
    }
    partners = [partner(0, 1, 5 * MB), partner(1, 1, 4), partner(-1, 1, 6 * MB)]
    found = report([process(0, calls=calls, partners=partners), process(1, (1,))])
    assert account(found)[0].had_to_travel == 1234


def test_what_had_to_travel_between_hosts():
    one, two = account(on_two_hosts(12 * MB, 3, 4))
    assert (one.host, one.had_to_travel, one.sockets) == ('n1', 12 * MB, 3)
    assert (two.host, two.ranks, two.devices['infiniband']) == ('n2', 1, 4)


@pytest.mark.parametrize(
    ('by_sockets', 'said'),
    [
        (11 * MB, None),
        (0, 'of 12.0 MB sent within n2 TCP sockets between its ranks carried 0 B'),
    ],
)
def test_shared_memory_within_one_of_several_hosts(by_sockets, said):
    ends = [('127.0.0.1:1', '127.0.0.1:2'), ('127.0.0.1:2', '127.0.0.1:1')]
    processes = [
        process(0, (0,), 'n1'),
        process(1, (0,), 'n2', partners=[partner(2, 1, 12 * MB)]),
        process(2, (1,), 'n2', sockets=[socket(*ends[1], 0)]),
    ]
    processes[1]['sockets'] = [socket(*ends[0], by_sockets)]
    found = report(processes, [host('n1'), host('n2')])
    asked = said and f'fabric tcp was asked for, but {said}'
    assert verify_traffic(found, 'sockets', 'tcp') == asked
    assert verify_traffic(found, 'infiniband', 'ucx-ib') is None


def test_sockets_between_ranks_of_one_host_are_not_those_between_hosts():
    """Loopback addresses are each host's own, though they are written alike."""
    ends = [('127.0.0.1:1', '127.0.0.1:2'), ('127.0.0.1:2', '127.0.0.1:1')]
    processes = [
        process(0, (0,), 'n1', sockets=[socket(*ends[0], 5), socket('[::1]:1', '[::1]:2', 5)]),
        process(1, (0,), 'n2', sockets=[socket(*ends[1], 5), socket('[::1]:2', '[::1]:1', 5)]),
        process(2, (1,), 'n2', sockets=[socket(*ends[0], 5)]),
    ]
    assert [one.sockets for one in account(report(processes, [host('n1'), host('n2')]))] == [0, 0]


def test_an_incomplete_report_shows_no_fabric():
    found = report([process()], complete=False)
    assert 'is incomplete' in verify_traffic(found, 'memory', 'shm')


@pytest.mark.parametrize(
    ('count', 'text'),
    [
        (0, '0 B'),
        (999, '999 B'),
        (1000, '1.0 kB'),
        (12_345, '12.3 kB'),
        (999_949, '999.9 kB'),
        (999_950, '1.0 MB'),
        (12_100_000, '12.1 MB'),
        (5 * 10**9, '5.0 GB'),
        (2 * 10**15, '2000.0 TB'),
    ],
)
def test_sizes(count, text):
    assert decimal_size(count) == text
