"""``pairs``: who meets whom, its report, and that a slow pair and wrong data are named."""

import ctypes
import math
import re
import statistics
import subprocess
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from building import SOURCES
from families import dealt, on_one_mpi
from measured import check_head

SHORT = ('--group', '1', '--large', '64K', '--budget', '0.005')


class Schedule(ctypes.Structure):
    _fields_ = [('nodes', ctypes.c_int), ('rounds', ctypes.c_int), ('sums', ctypes.c_int * 64)]


@pytest.fixture(scope='module')
def rounds(tmp_path_factory):
    """The rounds of so many nodes, each a list of every node's partner. It needs no MPI."""
    library = tmp_path_factory.mktemp('schedule') / 'schedule.so'
    source = SOURCES / 'mpi' / 'pairs' / 'schedule.c'
    command = ['cc', '-std=c11', '-Wall', '-Wextra', '-Werror', '-fsanitize=undefined']
    command += ['-fno-sanitize-recover=undefined', '-shared', '-fPIC', source, '-o', library]
    subprocess.run(command, check=True)
    functions = ctypes.CDLL(library)
    functions.schedule_make.restype = Schedule

    def rounds(nodes):
        schedule = functions.schedule_make(nodes)
        assert schedule.nodes == nodes
        return [
            [functions.schedule_partner(ctypes.byref(schedule), r, node) for node in range(nodes)]
            for r in range(schedule.rounds)
        ]

    return rounds


def pairs_of(partners):
    """The pairs of a round, in which each node has its partner and at most one has none."""
    alone = [node for node, partner in enumerate(partners) if partner < 0]
    assert len(alone) == len(partners) % 2
    assert all(partners[partner] == node for node, partner in enumerate(partners) if partner >= 0)
    return {(node, partner) for node, partner in enumerate(partners) if node < partner}


def test_up_to_64_nodes_each_meets_each_once(rounds):
    for nodes in range(2, 65):
        played = [pair for partners in rounds(nodes) for pair in pairs_of(partners)]
        assert sorted(played) == [*combinations(range(nodes), 2)]


@pytest.mark.parametrize('nodes', [65, 66, 127, 128, 1000, 1025])
def test_more_nodes_hang_together_by_few_meetings(rounds, nodes):
    powers = math.ceil(math.log2(nodes))
    played = [pairs_of(partners) for partners in rounds(nodes)]
    assert len(played) == 2 * powers
    meetings = set().union(*played)
    assert len(meetings) == sum(map(len, played)), 'two met twice'
    ends = np.array(sorted(meetings)).T
    graph = coo_array((np.ones(len(meetings)), ends), shape=(nodes, nodes))
    steps = dijkstra(graph, directed=False, unweighted=True, indices=nodes // 3)
    assert steps.max() <= powers
    # The first of each two rounds spread a node's partners over the whole of the others.
    for node in (0, nodes // 3, nodes - 2):
        away = sorted((partners[node] - node) % nodes for partners in rounds(nodes)[::2])
        gaps = [b - a for a, b in zip([0, *away], [*away, nodes], strict=True)]
        assert max(gaps) <= 2 * nodes / powers + 2


@dealt(('ranks', 'group', 'nodes', 'least'), [(9, 2, 5, 1), (4, 2, 2, 2)])
def test_report(run, ranks, group, nodes, least):
    done = run('pairs', *SHORT, '--group', str(group), ranks=ranks)
    assert done.code == 0, done.err
    report = done.report
    check_head(report, 'pairs', ranks)
    assert (report['nodes'], report['ranks_per_node']) == (nodes, least)
    buffers = (64 + 1) * 65536
    assert 0 < report['bytes_per_rank'] - buffers < 16384, 'whatever the number of ranks'
    meetings = math.comb(nodes, 2)
    planned = nodes - 1 + nodes % 2
    assert report['rounds'] == {'planned': planned, 'measured': planned, 'pairs': meetings}
    host = report['hosts'][0]
    names = [f'{host}:{group * node}' for node in range(nodes)]
    assert [pair['nodes'] for pair in report['pairs']] == [[*two] for two in combinations(names, 2)]
    assert len(re.findall(rf'^{host}:\d+ +{host}:\d+ ', done.out, re.MULTILINE)) == meetings
    for pair in report['pairs']:
        figures = pair['together']
        assert 0 < figures['best_latency'] <= figures['latency']
        assert figures['best_bandwidth'] >= figures['bandwidth'] > 0

    latency, bandwidth, *rates, bisection = report['results']
    check_usual(latency, [pair['together']['latency'] for pair in report['pairs']])
    times = {**bandwidth, **{key: 1 / bandwidth[key] for key in ('median', 'bound', 'worst')}}
    check_usual(times, [1 / pair['together']['bandwidth'] for pair in report['pairs']])
    assert (bandwidth['size'], bandwidth['window']) == (65536, 64)
    suspects = [
        pair
        for pair in report['pairs']
        if pair['together']['latency'] > latency['bound'] * (1 + 1e-6)
        or pair['together']['bandwidth'] < bandwidth['bound'] * (1 - 1e-6)
    ]
    assert [pair for pair in report['pairs'] if pair['suspicious']] == suspects
    assert report['suspicious'] == len(suspects)
    assert all(('alone' in pair) == pair['suspicious'] for pair in report['pairs'])
    assert [rate['senders'] for rate in rates] == [*range(1, least + 1)]
    assert all(rate['measure'] == 'message_rate' and rate['rate'] > 0 for rate in rates)
    assert (bisection['measure'], bisection['pairs']) == ('bisection', nodes // 2 * least)
    assert bisection['bandwidth'] > 0


def check_usual(found, values):
    """The bound, as it is defined, of all values."""
    median = statistics.median_low(values)
    deviation = 1.4826 * statistics.median_low(abs(value - median) for value in values)
    assert found['median'] == pytest.approx(median, rel=1e-6)
    assert found['bound'] == pytest.approx(median + max(median / 4, 6 * deviation), rel=1e-5)
    assert found['worst'] == pytest.approx(max(values), rel=1e-6)


def test_a_slow_pair_is_named_and_measured_alone(run, fault):
    slow = {'SLOW_FROM': '1', 'SLOW_TO': '2'}
    done = run('pairs', *SHORT, ranks=4, preload=fault('slow_pair'), env=slow)
    assert done.code == 0, done.err
    host = done.report['hosts'][0]
    worst = max(done.report['pairs'], key=lambda pair: pair['together']['latency'])
    assert worst['nodes'] == [f'{host}:1', f'{host}:2']
    assert worst['suspicious'] and worst['alone']['latency'] > 0.05
    assert done.report['results'][0]['worst'] == worst['together']['latency']


@on_one_mpi
def test_a_slow_node_is_in_each_slow_pair(run, fault):
    slow = {'SLOW_FROM': '3', 'SLOW_TO': '-1'}
    done = run('pairs', *SHORT, ranks=5, preload=fault('slow_pair'), env=slow)
    assert done.code == 0, done.err
    pairs = sorted(done.report['pairs'], key=lambda pair: pair['together']['latency'])
    assert all(pair['suspicious'] for pair in pairs[-4:])
    host = done.report['hosts'][0]
    assert all(f'{host}:3' in pair['nodes'] for pair in pairs[-4:])


# The first message of a rank tells it which payload to expect.
@dealt(('size', 'offset'), [(8, 7), (65536, 1234)])
def test_a_flipped_byte_is_found(run, fault, size, offset):
    where = {'FLIP_RANK': '2', 'FLIP_MESSAGE': '1', 'FLIP_OFFSET': str(offset)}
    done = run('pairs', *SHORT, ranks=3, preload=fault('flip_byte'), env=where)
    assert done.code != 0
    said = f'pairs: rank 2: message from rank 1 of {size} bytes arrived wrong at offset {offset}'
    assert said in done.err
    assert re.search(r'found 0x\w\w; from host (\S+) to host \1$', done.err, re.MULTILINE)
    assert not list(done.files.glob('report.json'))


def test_a_killed_rank_leaves_no_report(run, fault):
    done = run('pairs', *SHORT, preload=fault('kill_rank'), env={'KILL_SEND': '20'})
    assert done.code != 0
    assert not list(done.files.glob('report.json'))


@dealt(
    ('arguments', 'sentence'),
    [
        ((), 'all 2 ranks are on one node, and pairs need two: with --group 1'),
        (('--small', '8K', '--large', '4K'), '--small 8192 is greater than --large 4096'),
    ],
)
def test_what_cannot_be_measured_is_refused(run, arguments, sentence):
    done = run('pairs', *arguments)
    assert done.code == 2
    assert f'pairs: {sentence}' in done.err
    assert not list(done.files.iterdir())


@on_one_mpi
def test_a_tournament_ends_with_its_pairs(run):
    done = run('pairs', *SHORT, '--tournament', ranks=4)
    assert done.code == 0, done.err
    assert len(done.report['pairs']) == 6
    assert [one['measure'] for one in done.report['results']] == ['latency', 'bandwidth']
