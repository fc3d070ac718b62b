"""What messages are held against: the machine's own limits, on one host and between hosts."""

import re
from types import SimpleNamespace

import pytest
import yaml
from reframe.core.exceptions import SanityError

from assay import paths
from assay.checks.benchmark import over_limit, whole_of_best, worst_step
from assay.config.fabrics import load_catalogue
from assay.job.ending import EndedJob
from assay.programs.figure import Figure
from assay.witness.report import Disturbance
from checks import check_on
from witnessed import device, entries, host, process, socket, write

EXAMPLE = paths.SYSTEMS / 'example-slurm.py'
FABRICS = load_catalogue().fabrics
#: What the names of their figures begin with.
CHECKS = {'PointToPoint': '', 'IntelMpiBenchmarks': '', 'OsuMicroBenchmarks': '', 'Ring': 'hop_'}
LIMITS = {
    'memcpy': {'bandwidth': 10e9},
    'cacheline': {'latency': 1e-7},
    'socket': {
        'latency': 20e-6,
        'bandwidth': 1e9,
        'kernel_sized': 0.8,
        'ends': [
            {'interface': 'eth0', 'link_speed': 2.5e9, 'received': 1e9},
            {'interface': 'eth0', 'received': 4e9},
        ],
    },
}
SMALL, LARGE = {'bouts': [30e-6]}, {'size': 4e6, 'bouts': [8e-3]}


@pytest.fixture
def check(tmp_path, monkeypatch):
    """A check whose job's report has limits, between some hosts; which one does not matter."""
    where = (EXAMPLE, 'example-slurm:compute', tmp_path, 'mpi/pt2pt', 'PointToPoint', 'openmpi')
    with check_on(*where) as (check, _, _):
        monkeypatch.setattr(type(check), 'stagedir', str(tmp_path))
        check.report = {'limits': LIMITS, 'hosts': ['n1', 'n2']}
        check.ended_job = EndedJob(tmp_path, 'job.out', 'job.err', 0, 'COMPLETED', ('n1', 'n2'))
        yield check


def see_a_connection(folder, resent):
    """Let the witness have seen one between two hosts, of a million segments each way."""
    ends, seen = ('10.0.0.1:1', '10.0.0.2:2'), {'segments': 10**6, 'resent': resent}
    sockets = [socket(*ends, 10**9) | seen, socket(*ends[::-1], 10**9) | seen]
    processes = [process(rank, on=f'n{rank + 1}', sockets=[sockets[rank]]) for rank in (0, 1)]
    write(folder / 'witness.json', entries(processes, [host('n1'), host('n2')]))


def values(check, fabric, **socket):
    check.fabric = fabric
    check.report['limits'] = LIMITS | {'socket': LIMITS['socket'] | socket}
    figures = check.limit_figures('', SMALL, LARGE)
    assert all(figure.must_be_held for figure in figures.values())
    return {name: pytest.approx(figure.value) for name, figure in figures.items()}


@pytest.mark.parametrize('fabric', ['tcp', 'ucx-tcp', 'ofi-tcp'])
def test_sockets_between_hosts_are_held_to_one_of_the_same_job(check, fabric):
    held = {
        'latency_over_limit': 1.5,
        'bandwidth_of_limit': 0.5,
        'socket_latency': 20,
        'socket_bandwidth': 1000,
        'kernel_buffers_of_largest': 0.8,
        'slower_direction_of_faster': 0.25,
    }
    assert values(check, fabric) == held
    held['slower_direction_of_faster'] = 1
    fast, slow = ({'link_speed': speed, 'received': 1e9} for speed in (25e9 / 8, 2.5e9 / 8))
    assert values(check, fabric, ends=[fast, fast]) == held | {'socket_bandwidth_of_link': 0.8}
    assert values(check, fabric, ends=[fast, slow]) == held | {'socket_bandwidth_of_link': 3.2}


def test_directions_that_could_not_be_told_apart_are_no_figure(check):
    ends = [{'received': 0}, {'received': 1e9}]
    with pytest.raises(SanityError, match='the ranks waited for CPUs'):
        values(check, 'tcp', ends=ends)


def test_what_was_sent_again_between_hosts_is_held(check, tmp_path):
    see_a_connection(tmp_path, resent=5000)
    assert values(check, 'tcp')['segments_sent_once'] == 0.995


def test_within_a_host_the_network_is_not_held(check):
    check.report['hosts'] = ['n1']
    assert set(values(check, 'tcp')) == {'latency_over_limit', 'bandwidth_of_limit'}
    assert values(check, 'shm')['latency_over_limit'] == 300


@pytest.mark.parametrize('fabric', ['ucx-ib', 'ofi-cxi', 'ofi-psm'])
def test_a_device_has_no_limit_but_is_to_be_better_than_a_socket(check, fabric):
    assert values(check, fabric) == {'latency_over_socket': 1.5, 'bandwidth_of_socket': 0.5}


#: A port of each kind, and its bytes per second of payload.
PORTS = [
    ({'layer': 'InfiniBand', 'link': '4X HDR', 'speed': 25e9}, 25e9 * 2048 / 2074),
    ({'layer': 'InfiniBand', 'link': '4X QDR', 'speed': 5e9}, 4e9 * 2048 / 2074),
    ({'layer': 'InfiniBand', 'link': '4X FDR', 'speed': 7e9}, 7e9 * 64 / 66 * 2048 / 2074),
    # RoCE, with and without large frames, and where the interface is in another namespace.
    ({'layer': 'Ethernet', 'interface': 'eth0', 'speed': 12.5e9}, 12.5e9 * 4096 / 4178),
    ({'layer': 'Ethernet', 'interface': 'eth1', 'speed': 12.5e9}, 12.5e9 * 1024 / 1106),
    ({'layer': 'Ethernet', 'interface': 'gone', 'speed': 12.5e9}, 12.5e9 * 1024 / 1106),
    # A slot with fewer lanes than the port needs: PCI Express 3, eight lanes.
    (
        {'layer': 'InfiniBand', 'link': '4X EDR', 'speed': 12.5e9}
        | {'pcie': {'width': 8, 'widest': 8, 'speed': 8.0, 'fastest': 8.0}},
        8e9 * 128 / 130,
    ),
    ({'kind': 'cxi', 'speed': 25e9}, 25e9 * 2048 / 2130),
    ({'layer': 'InfiniBand', 'link': '4X HDR'}, None),
]


def see_ports(folder, *ports):
    """Let the witness have seen these ports on two hosts, by name and bytes."""
    hosts = [host('n1'), host('n2')]
    for one in hosts:
        one['devices'] = [
            device('eth0', 'ethernet', 0) | {'mtu': 9000},
            device('eth1', 'ethernet', 0) | {'mtu': 1500},
        ]
        one['devices'] += [
            device(name, 'infiniband', sent) | {**more, 'speed': int(more.get('speed', 0))}
            for name, sent, more in ports
        ]
    processes = [process(rank, on=f'n{rank + 1}') for rank in (0, 1)]
    write(folder / 'witness.json', entries(processes, hosts))


@pytest.mark.parametrize(('port', 'payload'), PORTS)
def test_a_large_message_fills_a_part_of_its_port(check, tmp_path, port, payload):
    see_ports(tmp_path, ('p:1', 10**9, port))
    found = values(check, 'ofi-cxi' if 'kind' in port else 'ucx-ib')
    assert found.get('bandwidth_of_port') == (payload and pytest.approx(4e6 / 8e-3 / payload))


def test_ports_that_carried_a_part_add_up_and_those_of_a_card_share_its_slot(check, tmp_path):
    port = {'layer': 'InfiniBand', 'link': '4X HDR', 'speed': 25e9}
    slot = {'pcie': {'width': 16, 'widest': 16, 'speed': 16.0, 'fastest': 16.0}}
    payload = 25e9 * 2048 / 2074
    for cards, used, rate in (
        (('0000:41:00.0', '0000:a1:00.0'), 10**9, 2 * payload),
        (('0000:41:00.0', '0000:41:00.1'), 10**9, 32e9 * 128 / 130),
        (('0000:41:00.0', '0000:a1:00.0'), 10**7, payload),
    ):
        ports = [port | slot | {'nic': card} for card in cards]
        see_ports(tmp_path, ('a:1', 10**9, ports[0]), ('b:1', used, ports[1]))
        found = values(check, 'ucx-ib')['bandwidth_of_port']
        assert found == pytest.approx(5e8 / rate)


def bounded(name, fabric, scale):
    """The figures that generic.yaml bounds."""
    entry = yaml.safe_load((paths.REFERENCES / 'generic.yaml').read_text())[name]
    assert entry.pop('$index') == ['fabric', 'scale']
    for value in (fabric, scale):
        entry = next((v for k, v in entry.items() if re.fullmatch(k, value)), {})
    return set(entry)


@pytest.mark.parametrize('fabric', FABRICS)
def test_every_figure_that_must_be_held_is(check, tmp_path, fabric):
    see_a_connection(tmp_path, resent=0)
    reaches, within = FABRICS[fabric].crosses_nodes, not FABRICS[fabric].needs_device
    kind = FABRICS[fabric].carrier
    for hosts, scale in (['n1'] * within, '1_node'), (['n1', 'n2'] * reaches, '2_nodes'):
        if not hosts:
            continue
        check.report['hosts'] = hosts
        values(check, fabric, ends=[{'link_speed': 1e9, 'received': 1e9}] * 2)
        if kind in ('infiniband', 'cxi'):
            see_ports(tmp_path, ('p:1', 10**9, {'kind': kind, 'speed': 25e9}))
        for name, prefix in CHECKS.items():
            figures = check.limit_figures(prefix, SMALL, LARGE)
            has_port = f'{prefix}bandwidth_of_port' in figures
            assert has_port == (kind in ('infiniband', 'cxi'))
            assert set(figures) <= bounded(name, fabric, scale), name


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('socket_latency', 1060),
        ('socket_bandwidth', 6.06),
        ('kernel_buffers_of_largest', 0.14),
        ('slower_direction_of_faster', 0.06),
        ('segments_sent_once', 0.995),
    ],
)
def test_a_network_that_is_slow_for_everybody_is_beyond_a_bound(name, value):
    """As on the virtual cluster: `delay 1000`, `rate 50`, small buffers, one way, `loss 0.5`."""
    entry = yaml.safe_load((paths.REFERENCES / 'generic.yaml').read_text())['PointToPoint']
    reference, lower, upper, _ = entry['ucx-tcp']['.*'][name]
    assert value > reference * (1 + upper) if upper else value < reference * (1 + lower)


@pytest.fixture
def ended(check, tmp_path, monkeypatch):
    """The check as it is after its job, of which the witness saw that others were on the node."""
    monkeypatch.setattr(type(check), 'current_partition', SimpleNamespace(extras={}))
    disturbance = dict.fromkeys(Disturbance.model_fields, 0.0)
    disturbance |= {'seconds': 2.0, 'foreign_share': 0.48, 'thermal_events': 0}
    content = entries([process()], [host() | {'disturbance': disturbance}])
    write(tmp_path / 'witness.json', content)
    check.figures = lambda: {
        'latency': Figure(1.0, 'us', 'lower', headline=True),
        'bytes': Figure(1.0, 'B', 'exact'),
    }
    check.witness_figures = dict
    check.is_proved = True
    check.collect_figures()
    return check


def stored(check):
    """What ReFrame stores of a check, beside its own."""
    return {name for name, _ in type(check).loggable_attrs()}


def test_headlines_are_for_the_table(ended):
    assert ended.headlines == ['latency']
    assert 'headlines' in stored(ended)


def test_what_a_user_sets_of_them_is_not_stored(tmp_path):
    """Also of a case that ends before it has figures."""
    given = {'headlines': 'a', 'directions': 'a:exact', 'disturbances': 'a', 'taken_by_others': 'a'}
    where = (EXAMPLE, 'example-slurm:compute', tmp_path, 'mpi/pt2pt', 'PointToPoint', 'openmpi')
    with check_on(*where, given) as (check, _, _):
        assert (check.headlines, check.directions) == ([], {})
        assert (check.disturbances, check.taken_by_others) == ([], [])


def test_directions_and_disturbances_are_for_the_history(ended):
    assert ended.directions == {'latency': 'lower', 'bytes': 'exact'}
    assert ended.disturbances == [
        "the node was disturbed: other processes took 48% of the time of the job's CPUs"
    ]
    assert ended.taken_by_others == ended.disturbances
    assert {'directions', 'disturbances', 'taken_by_others'} <= stored(ended)


def test_nodes_that_share_this_machine_are_no_others_in_the_history(ended):
    ended.current_partition.extras['on_this_machine'] = True
    ended.collect_figures()
    assert ended.disturbances and ended.taken_by_others == []


def test_a_bout_is_held_against_the_limits_beside_it(check):
    """Those of two bouts of four rounds were in the first and in the third."""
    measured = [
        {'cacheline_latency': latency, 'memcpy_bandwidth': bandwidth}
        for latency, bandwidth in [(2e-7, 8e9), (6e-7, 4e9), (6e-7, 4e9), (5e-7, 8e9), (5e-7, 8e9)]
    ]
    check.fabric = 'shm'
    check.report = {'limits': LIMITS | {'measured': measured}, 'hosts': ['n1']}
    small = {'bouts': [9e-7, 6e-7, 8e-7, 5.5e-7]}
    large = {'size': 4e6, 'bouts': [2e-3, 1e-3]}
    figures = check.limit_figures('', small, large)
    # The CPUs were together at the start alone, and before any message.
    assert figures['latency_over_limit'].value == pytest.approx(5.5 / 5)
    assert figures['bandwidth_of_limit'].value == pytest.approx(4e9 / 8e9)


def test_limits_that_were_disturbed_do_not_count():
    """Else a message would seem to take next to nothing."""
    assert over_limit([2e-7, 3e-7], [1e-7, 1.1e-7, 1.2e-7]) == pytest.approx(2)
    assert over_limit([3e-7, 2e-7], [1e-7, 1.1e-7, 9e-4, 9e-4, 1e-7]) == pytest.approx(2)


@pytest.mark.parametrize(
    ('times', 'worst'),
    [
        ([1, 1, 1, 1], 1),  # a constant
        ([1, 2, 4, 8], 1),  # a part for each byte
        ([1, 1.5, 2.5, 4.5], 0.9),  # both
        ([1, 1, 3, 3], 1.5),  # from here on a protocol of three times the latency
        ([1, 3, 1, 1], 3),  # a size that is too slow
        ([1, 2, 4, 20], 2.5),  # a longer message gets less of the bandwidth
    ],
)
def test_the_worst_step_of_a_curve(times, worst):
    curve = [*zip([8, 16, 32, 64], times, strict=True)]
    assert worst_step(curve) == pytest.approx(worst)


def test_how_much_of_the_best_the_whole_got():
    assert whole_of_best({'best': 2e-6, 'median': 2.5e-6}) == pytest.approx(0.8)
