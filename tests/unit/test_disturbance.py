"""What disturbed a job: from the witness's report to a sentence."""

from itertools import combinations

import pytest

from assay.job.launch import reports_in
from assay.witness.disturbance import (
    disturbance_figures,
    disturbances,
    foreign_seconds,
    interference,
    share_sent_once,
    taken_by_others,
)
from witnessed import disturbance, host, process, report, socket


def shared(**by_host):
    """The report of a job with a rank on each of these hosts, disturbed so."""
    hosts = [host(name) | {'disturbance': disturbance(**its)} for name, its in by_host.items()]
    return report([process(rank, on=name) for rank, name in enumerate(by_host)], hosts)


def test_the_worst_host_counts():
    found = disturbance_figures(shared(n1={'foreign': 0.3}, n2={'foreign': 0.1, 'steal': 0.2}))
    shares = {name: figure.value for name, figure in found.items()}
    assert shares == {
        'foreign_share': 0.3,
        'steal_share': 0.2,
        'core_share': 0.0,
        'throttled_share': 0.0,
        'waited_share': 0.0,
    }


@pytest.mark.parametrize(
    ('least', 'most', 'share'),
    [
        (3.92, 3.98, None),
        (3.9, 4.6, None),
        (2.0, 4.0, '50%'),
        # All cores are shared: three adders are there at least.
        (2.1, 2.2, '30%'),
        # So many adders have newer ones, beside another guest.
        (3.0, 3.0, None),
        (0.0, 0.0, None),
    ],
)
def test_a_core_that_another_guest_uses(least, most, share):
    one = shared(n1={'least_additions': least, 'most_additions': most, 'seconds': 0.5})
    said = [f'the node was disturbed: another guest took {share} of a core'] if share else []
    assert disturbances([one]) == said
    # Two moments are no reason to leave a value out, or to excuse it.
    assert taken_by_others([one]) == interference([one]) == []
    additions = {'least_additions': least, 'most_additions': most}
    assert disturbances([shared(n1=additions | {'seconds': 40.0})]) == []


def test_cores_that_a_hypervisor_moved():
    latencies = {'least_core_latency': 40e-9, 'most_core_latency': 160e-9}
    found = disturbance_figures(shared(n1=latencies, n2={}))
    assert found['core_latency'].value == pytest.approx(160)
    assert found['core_move'].value == pytest.approx(4)
    assert 'core_move' not in disturbance_figures(shared(n1={}))


def test_a_report_that_does_not_say():
    assert disturbance_figures(report([process()], [host()])) == {}
    assert disturbances([report([process()], [host()])]) == []


@pytest.mark.parametrize(
    ('shares', 'words'),
    [
        ({}, None),
        ({'foreign': 0.01, 'seconds': 100.0}, None),
        # What starts a job takes as much.
        ({'foreign': 0.1, 'waited': 0.15, 'seconds': 0.5}, None),
        ({'foreign': 0.48}, "other processes took 48% of the time of the job's CPUs"),
        (
            {'steal': 0.1, 'throttled': 0.05},
            'the hypervisor took 10% of the CPUs, quotas withheld 5% of the CPUs',
        ),
        # One process on one of many CPUs.
        ({'foreign': 0.004, 'waited': 0.5}, 'a rank waited for a CPU in 50% of its time'),
    ],
)
def test_words(shares, words):
    said = disturbances([shared(n1=shares)])
    assert said == ([f'the node was disturbed: {words}'] if words else [])


def test_a_disturbed_host_among_others_is_named():
    assert disturbances([shared(n1={}, n2={'throttled': 0.48})]) == [
        'n2 was disturbed: quotas withheld 48% of the CPUs'
    ]


def test_the_odd_host_comes_first():
    crowded = {'waited': 0.5}
    odd = crowded | {'throttled': 0.4}
    waiting = 'a rank waited for a CPU in'
    assert disturbances([shared(n1=crowded, n2=odd, n3={'waited': 0.6}, n4=crowded)]) == [
        f'n2 was disturbed: quotas withheld 40% of the CPUs, {waiting} 50% of its time',
        f'n1, n3 and n4 were disturbed: {waiting} up to 60% of its time',
    ]


def test_many_hosts_are_counted():
    (said,) = disturbances([shared(**{f'n{number}': {'steal': 0.1} for number in range(1, 10)})])
    assert said.startswith('n1, n2, n3, n4 and 5 more were disturbed: ')


def test_a_report_that_is_none_says_nothing(tmp_path):
    (tmp_path / 'witness.json').write_text('{')
    assert disturbances(reports_in(tmp_path)) == []


def test_the_worst_run_of_a_job_counts():
    runs = [shared(n1={'steal': share}) for share in (0.01, 0.2, 0.1)]
    assert disturbances(runs) == ['the node was disturbed: the hypervisor took 20% of the CPUs']


OTHERS = "the node was disturbed: other processes took 48% of the time of the job's CPUs"
STOLEN = 'the node was disturbed: the hypervisor took 10% of the CPUs'


@pytest.mark.parametrize(
    ('shares', 'foreign', 'words'),
    [
        ({}, True, None),
        ({'foreign': 0.48, 'waited': 0.4}, True, OTHERS),
        # They were of the same run.
        ({'foreign': 0.48}, False, None),
        ({'foreign': 0.48, 'steal': 0.1}, False, STOLEN),
        ({'foreign': 0.48, 'seconds': 0.2}, True, None),
        # Too many threads of the job's own; what is wrong with the node.
        ({'waited': 0.4}, True, None),
        ({'throttled': 0.4}, True, None),
        ({'foreign': 0.48, 'steal': 0.1, 'throttled': 0.4}, True, None),
    ],
)
def test_what_others_did(shares, foreign, words):
    assert interference([shared(n1=shares)], foreign) == ([words] if words else [])


def test_seconds_that_others_took():
    """Of the two CPUs of a host, in 2 s; of all hosts and runs together."""
    n1, n2 = {'foreign': 0.5}, {'foreign': 0.25}
    hosts = [
        host(name) | {'disturbance': disturbance(**its)} for name, its in (('n1', n1), ('n2', n2))
    ]
    run = report([process(0, (0,), 'n1'), process(1, (1,), 'n1'), process(2, on='n2')], hosts)
    assert foreign_seconds([run]) == 2.0 + 0.5
    assert foreign_seconds([run, run]) == 5.0
    assert foreign_seconds([report([process()], [host()])]) == 0


# The network -------------------------------------------------------------------------------------

HEALTHY = {'segments': 100_000, 'resent': 0, 'round_trip': 30e-6}


def connected(ways, on=('n1', 'n2', 'n3', 'n4')):
    """The report of a job with a rank on each host, and a connection for each of these ways.

    A way is two hosts, by number; its connection is what differs from a healthy one.
    """
    sockets = [[] for _ in on]
    for number, ((a, b), its) in enumerate(ways.items()):
        ends = f'10.0.0.{a}:{number}', f'10.0.0.{b}:{number}'
        for this, (local, remote) in ((a, ends), (b, ends[::-1])):
            sockets[this - 1].append(socket(local, remote, 10**6) | HEALTHY | its)
    processes = [process(n, on=name, sockets=sockets[n]) for n, name in enumerate(on)]
    return report(processes, [host(name) for name in dict.fromkeys(on)])


LOSSY, SLOW, FAST = {'resent': 1300}, {'round_trip': 4.1e-3}, {'rate': 1e9}


@pytest.mark.parametrize(
    ('ways', 'words'),
    [
        ({(1, 2): {}, (2, 3): {}}, None),
        # Congestion, and a network across a site.
        ({(1, 2): {'resent': 50, 'round_trip': 0.4e-3}}, None),
        ({(1, 2): {'segments': 0}}, None),
        ({(1, 2): {'segments': 1000, 'resent': 4}}, None),
        ({(1, 2): LOSSY}, '1.3% of the segments between n1 and n2 were sent again'),
        ({(1, 2): SLOW}, 'a round trip between n1 and n2 took at least 4.1 ms'),
        (
            {(1, 2): LOSSY | SLOW, (2, 3): SLOW, (3, 4): {}, (1, 4): {}},
            '1.3% of the segments between n1 and n2 were sent again, '
            'a round trip to and from n2 took at least 4.1 ms',
        ),
        (
            {(1, 2): LOSSY, (2, 3): LOSSY, (3, 4): LOSSY, (1, 4): {}},
            '1.3% of the segments between n1, n2, n3 and n4 were sent again',
        ),
        ({(1, 2): {'rate': 12e6}}, 'no more than 12 MB/s went to or from n1 and n2'),
        (
            {(1, 2): {'rate': 10e6}, (2, 3): {'rate': 8e6}, (3, 4): FAST, (1, 4): FAST},
            'no more than 18 MB/s went to or from n2',
        ),
        # Hosts that share their links among many.
        ({pair: {'rate': 40e6} for pair in combinations((1, 2, 3, 4), 2)}, None),
    ],
)
def test_words_of_the_network(ways, words):
    said = disturbances([connected(ways)])
    assert said == ([f'the network was disturbed: {words}'] if words else [])


def test_connections_of_two_hosts_are_one_way():
    """The shortest round trip of any is the way's; what was sent again is added up."""
    slow_and_fast = connected({(1, 3): SLOW, (2, 4): {}}, on=('n1', 'n1', 'n2', 'n2'))
    assert disturbances([slow_and_fast]) == []
    once, often = connected({(1, 2): {}}), connected({(1, 2): {'resent': 400}})
    assert disturbances([once, often]) == [
        'the network was disturbed: 0.2% of the segments between n1 and n2 were sent again'
    ]


@pytest.mark.parametrize(
    ('ways', 'share'),
    [
        ({}, None),
        ({(1, 2): {}}, 1),
        ({(1, 2): {'segments': 1000, 'resent': 4}}, 1),
        ({(1, 2): {'resent': 50}}, 0.9995),
        ({(1, 2): {'resent': 50}, (2, 3): LOSSY, (3, 4): {}}, 0.987),
    ],
)
def test_the_worst_way_tells_what_a_network_delivers(ways, share):
    assert share_sent_once([connected(ways)]) == (share and pytest.approx(share))


def test_what_is_lost_in_one_direction_is_not_halved():
    ends = ('10.0.0.1:1', '10.0.0.2:1')
    lossy, sound = socket(*ends, 10**6) | HEALTHY | LOSSY, socket(*ends[::-1], 10**6) | HEALTHY
    processes = [process(n, on=f'n{n + 1}', sockets=[one]) for n, one in enumerate((lossy, sound))]
    assert share_sent_once([report(processes, [host('n1'), host('n2')])]) == pytest.approx(0.987)


def test_a_bad_network_is_nothing_that_others_did():
    hosts = {name: {'foreign': 0.3} for name in ('n1', 'n2')}
    lossy = connected({(1, 2): LOSSY}, on=('n1', 'n2'))
    assert interference([shared(**hosts)]) and interference([shared(**hosts), lossy]) == []
    assert taken_by_others([lossy]) == [] and disturbances([lossy])
    assert taken_by_others([shared(**hosts), lossy]) == disturbances([shared(**hosts)])
    assert taken_by_others([shared(**hosts)], foreign=False) == []


def test_a_single_host_has_no_network():
    assert disturbances([connected({(1, 2): LOSSY | SLOW}, on=('n1', 'n1'))]) == []
