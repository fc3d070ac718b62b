"""What the readers compute of a problem, against what the programs printed of it."""

import json
import math
import re

import pytest

from assay.programs import minighost, minimd
from assay.programs.application import (
    WorkInCaches,
    WrongAnswerError,
    check_in_caches,
    check_limit,
    check_times,
    check_windows,
    limit_figures,
    steady_windows,
    window_figures,
)
from assay.programs.benchmarks import (
    check_clock,
    check_congestion,
    check_datatypes,
    check_dgemm,
    check_matching,
    check_nodes,
    check_onesided,
    check_overlap,
    check_pairs,
    check_partitioned,
    check_pt2pt,
    check_stream,
    check_threads,
)
from assay.programs.figure import Figure
from golden_jobs import JOBS


def test_start_of_minimd():
    # Of ``minimd -s 10``, on one rank.
    printed = [4000, 17275.67999999997, 0, 0, 13.45893268566053, -17.43046145867044]
    assert minimd._start((10, 10, 10))[:6] == pytest.approx(printed, abs=1e-9)


def test_crystal_of_minimd():
    """As upstream prints it: energy and pressure of 131072 atoms that do not move yet."""
    energy, virial = minimd._crystal()
    start = minimd._state(131072, 1.44 * (3 - 3 / 131072), energy, virial)
    assert start == pytest.approx((1.44, -6.773368, -5.019671), rel=2e-5)


def test_heats_of_minighost():
    """Half of the points at most are put in beside what each variable has."""
    first, second, *_ = minighost._heats(5, 1000)
    assert first == 1000
    assert 1000 <= second < 2000


def test_heat_of_a_line_stays_until_it_meets_the_end():
    assert math.fsum(minighost._spread(9, 4)) == pytest.approx(1, rel=1e-15)
    assert math.fsum(minighost._spread(9, 5)) < 1
    assert minighost._spread(3, 1) == pytest.approx([1 / 3] * 3)


TIME = "Time of the total: {} s; by the system's clock 0.499990 to 0.500010\n"


def test_times_by_two_clocks():
    check_times(TIME.format('0.500000'), {'total': 0.5})
    for wrong in (0.4995, 0.5005, math.nan):
        with pytest.raises(WrongAnswerError, match="by the system's clock"):
            check_times(TIME.format(wrong), {'total': wrong})
    with pytest.raises(WrongAnswerError, match=r'0\.49999 s, and 0\.5 s as well'):
        check_times(TIME.format('0.500000'), {'total': 0.49999})
    with pytest.raises(WrongAnswerError, match='no time of the force'):
        check_times(TIME.format(0.5), {'force': 0.5})


def test_rate_of_another_matrix():
    report = json.loads((JOBS / 'Dgemm/openmpi-shm/result.json').read_text())
    order, (result,) = report['arguments']['n'], report['results']
    check_dgemm(report, order)
    clocks = result['clocks'] | {'seconds': 2 * result['clocks']['seconds']}
    for change, sentence in (
        ({'rate_best': 1.0005 * result['rate_best']}, 'rate_best'),
        ({'clocks': clocks}, 'but by a second clock'),
    ):
        with pytest.raises(WrongAnswerError, match=sentence):
            check_dgemm({**report, 'results': [{**result, **change}]}, order)


def test_arrays_of_another_size():
    """A host's ranks share what was asked for; how many there are is known of a single host."""
    report = json.loads((JOBS / 'Stream/openmpi-shm/result.json').read_text())
    check_stream(report)
    arguments = report['arguments']
    for hosts, factor, is_right in ((1, 2, False), (2, 2, False), (2, 0.5, True), (2, 16, False)):
        asked = {**arguments, 'size': int(factor * arguments['size'])}
        changed = {**report, 'arguments': asked, 'hosts': report['hosts'] * hosts}
        if is_right:
            check_stream(changed)
            continue
        with pytest.raises(WrongAnswerError, match='elements on a rank'):
            check_stream(changed)


def sampled(seconds, parts=1):
    """What 10 samples tell that all took as long, of a time that is a part of what was timed."""
    time = dict.fromkeys(('min', 'best', 'median', 'p95', 'mean'), seconds)
    whole = 100 * parts * seconds
    return {
        'time': time | {'best_place': [0, 10], 'median_place': [0, 10]},
        **{'samples': 10, 'set_aside': 2, 'iterations_per_sample': 10, 'kept': 100 * seconds},
        'clocks': {'own': 100 * seconds, 'slowest': 100 * seconds, 'least': whole, 'most': whole},
    }


def ping_pong(**changes):
    """A report of one size: 10 samples of 100 round trips, 2 us one way."""
    times = {'min': 1e-6, 'best': 1e-6, 'median': 2e-6, 'p95': 3e-6, 'mean': 2e-6}
    times |= {'best_place': [0, 1], 'median_place': [5, 5]}
    result = {
        **{'pattern': 'ping-pong', 'size': 8, 'bandwidth': 8e6, 'time': times, 'kept': 2e-3},
        **{'samples': 10, 'iterations_per_sample': 100},
        'clocks': {'own': 2.4e-3, 'slowest': 2.4e-3, 'least': 4.79e-3, 'most': 4.81e-3},
    }
    return {'arguments': {'limits': False}, 'results': [result | changes]}


@pytest.mark.parametrize(
    'wrong', ['memcpy_bandwidth', 'cacheline_latency', 'socket_latency', 'socket_bandwidth']
)
def test_limits_follow_from_their_shortest_repeats(wrong):
    shortest = {
        **{'memcpy_bandwidth': 2**-10, 'cacheline_latency': 4e-6},
        **{'socket_latency': 2e-5, 'socket_bandwidth': 2**-8},
    }
    measured = {
        **{'memcpy_bandwidth': 2.0**32, 'cacheline_latency': 1e-7},
        **{'socket_latency': 1e-5, 'socket_bandwidth': 2.0**31},
    }

    def check(measured):
        limits = {'measured': [{**measured, 'shortest': shortest}]}
        for key, value in measured.items():
            name, _, figure = key.partition('_')
            limits.setdefault(name, {})[figure] = value
        check_pt2pt(
            {'arguments': {'limits': True}, 'hosts': ['a'], 'limits': limits, 'results': []}
        )

    check(measured)
    with pytest.raises(WrongAnswerError, match=f'the {wrong} of a measurement is'):
        check(measured | {wrong: 2 * measured[wrong]})


WINDOWS = (
    'Windows of stencil: {}; best {} GB/s of {} s; whole of best 0.8; all {} s; '
    '1 shorter, 1 equal\n'
)


@pytest.mark.parametrize(
    ('printed', 'sentence'),
    [
        ((19, 4.0, 0.5, 12.0), '19 windows of stencil were timed, not 18'),
        ((18, 6.0, 0.5, 12.0), 'a window of stencil does 3, which is 2'),
        ((18, 4.0, 0.5, 9.9), 'took 9.9 s, but the kernel 10 to 20 s'),
        ((18, 4.0, 0.5, 20.1), 'took 20.1 s, but the kernel 10 to 20 s'),
        ((18, 4.0, 'nan', 12.0), 'no number above zero'),
    ],
)
def test_windows_of_another_length(printed, sentence):
    check_windows(WINDOWS.format(18, 4.0, 0.5, 12.0), 'stencil', 18, 2.0, 10.0, 20.0)
    with pytest.raises(WrongAnswerError, match=sentence):
        check_windows(WINDOWS.format(*printed), 'stencil', 18, 2.0, 10.0, 20.0)


DOT = {'DOT in caches': WorkInCaches(2e-5, 1e-5)}
IN_CACHES = (
    'Windows of DOT in caches: 120 of {} calls, 15360 in all; best {} Gflop/s of 0.0005 s; '
    'whole of best {}; all {} s; 3 shorter, 9 equal\n'
    "Time of the DOT in caches: {} s; by the system's clock 0.0749 to 0.0751\n"
)


@pytest.mark.parametrize(
    ('printed', 'sentence'),
    [
        ((64, 4.0, 0.8, 0.075, 0.075), 'does 0.002, which is 0.00128'),
        (
            (256, 10.24, 0.8, 0.075, 0.075),
            'ran 15360 times, 256 times a window, and has 120 windows',
        ),
        ((128, 5.12, 0.88, 0.0681818, 0.0681818), "0.0749 to 0.0751 s by the system's clock"),
        ((128, 5.12, 0.8, 0.075, 0.0751), '0.075 s, and 0.0751 s as well'),
    ],
)
def test_kernels_in_caches_of_another_work_or_time(printed, sentence):
    check_in_caches(IN_CACHES.format(128, 5.12, 0.8, 0.075, 0.075), DOT)
    with pytest.raises(WrongAnswerError, match=sentence):
        check_in_caches(IN_CACHES.format(*printed), DOT)


# Ten bouts of twelve windows, the first of which is fresh. In six the data lie badly.
BESIDE_CONTROL = (
    'Windows of DOT in caches: {} of 128 calls, 15360 in all; best 5.12 Gflop/s of 0.0005 s; '
    'whole of best 0.8; all 0.075 s, fresh 0.00625 s; 3 shorter, 9 equal\n'
    "Time of the DOT in caches: 0.075 s; by the system's clock 0.0749 to 0.0751\n"
    f'Bouts of DOT in caches: {", ".join(["1.28 in 11"] * 6 + ["2.56 in 11"] * 4)}; '
    f'between{" 4" * 11}; no less than{" 3.99" * 11}\n'
)
CONTROL = 'Limit of DOT in caches: control {} Gflop/s; achieved {} Gflop/s; fraction {}\n'


def test_kernels_in_caches_are_held_against_a_control_beside_them():
    output = BESIDE_CONTROL.format(110) + CONTROL.format(4, 2.56, 0.32)
    check_in_caches(output, DOT)
    assert limit_figures(output) == {'dot_in_caches_of_control': Figure(0.64, '1', 'higher')}
    for wrong, sentence in {
        BESIDE_CONTROL.format(110): 'no control was measured beside DOT in caches',
        output.replace(': 110 of', ': 120 of'): '128 times a window, and has 120 windows',
        output.replace('3.99', '4.5'): 'a limit of DOT in caches is less than what was done',
        BESIDE_CONTROL.format(110) + CONTROL.format(4, 5.12, 0.32): 'the achieved is 2.56',
        BESIDE_CONTROL.format(110) + CONTROL.format(4, 2.56, 0.7): 'the fraction is 0.32',
    }.items():
        with pytest.raises(WrongAnswerError, match=sentence):
            check_in_caches(wrong, DOT)


def test_a_neighbour_that_stops_for_a_slice_of_the_control_is_no_loss():
    output = BESIDE_CONTROL.format(110) + CONTROL.format(4, 2.56, 0.32)
    stopped = output.replace('between 4 4', 'between 4 5')
    assert limit_figures(stopped) == limit_figures(output)


# At a load of 6, of a kernel that had 0.83 of the control in the runs before and after.
INTERRUPTED_CONTROL = (
    'Limit of MATVEC in caches: control 4.62588 Gflop/s; achieved 3.83555 Gflop/s; '
    'fraction 0.834309\n'
    'Bouts of MATVEC in caches: 3.60598 in 11, 3.82641 in 11, 1.03909 in 11, 3.85903 in 11, '
    '3.83889 in 11, 3.83555 in 11, 1.60582 in 11, 3.87433 in 11, 2.92461 in 11, 1.44679 in 11; '
    'between 1.89432 2.24883 2.1832 4.62385 4.62542 4.61859 4.62588 1.66031 1.51234 0.916365 '
    '1.96949; no less than 1.89415 2.24849 2.18228 4.6235 4.62498 4.61823 4.62554 1.66021 1.51223 '
    '0.916322 1.96938\n'
)


def test_slices_of_the_control_that_others_interrupted_make_no_kernel_look_faster():
    (figure,) = limit_figures(INTERRUPTED_CONTROL).values()
    assert figure.value == pytest.approx(0.830, abs=0.001)


@pytest.mark.parametrize(('share', 'fresh'), [(0.9, 1), (0.8, 0.5)])
def test_windows_whose_mean_is_of_others(share, fresh):
    line = (
        'Windows of stencil: 18; best 4 GB/s of 0.5 s; whole of best {}; all 12.25 s, fresh {} s; '
        '1 shorter, 1 equal\n'
    )
    assert window_figures(line.format(0.8, 1), 'stencil')
    with pytest.raises(WrongAnswerError, match=r'by their mean, and 12\.25 s in all'):
        window_figures(line.format(share, fresh), 'stencil')


BOUTS = (
    'Windows of stencil: 8; best 4 GB/s of 0.5 s; whole of best 0.8; all 5 s, fresh 0 s; '
    '0 shorter, 1 equal\n'
    'Limit of stencil: triad 10 GB/s; achieved {} GB/s; fraction {}\n'
    'Bouts of stencil: 5 in {}, 4.8 in 4, 0 in 0; between {} 8 8 9; no less than 9.9 7.9 7.9 8.9\n'
)


@pytest.mark.parametrize(
    ('printed', 'sentence'),
    [
        ((5, 0.6, 4, 10), 'but the achieved is 4 by the rest'),
        ((4, 0.7, 4, 10), r'but the fraction is 0\.6 by the rest'),
        ((4, 0.6, 4, 9.95), r'but the limit is 9\.95 by the rest'),
        ((4, 0.6, 5, 10), 'the bouts of stencil do not have its 8 windows'),
        ((4, 0.6, 4, 5), 'a limit of stencil is less than what was done'),
        ((4, 0.6, 4, 'ten'), 'the line of bouts is not whole'),
        ((4, 0.6, 4, '10 8'), 'the line of bouts is not whole'),
        ((4, 0.6, 4, 0), 'the line of bouts is not whole'),
    ],
)
def test_limits_and_fractions_of_others(printed, sentence):
    check_limit(BOUTS.format(4, 0.6, 4, 10), 'stencil', 2.0)
    with pytest.raises(WrongAnswerError, match=sentence):
        check_limit(BOUTS.format(*printed), 'stencil', 2.0)


@pytest.mark.parametrize(('word', 'instead'), [('0 in 0', 'zz in 0'), ('than 9.9', 'than zz')])
def test_a_word_that_is_no_number_in_a_line_of_bouts(word, instead):
    line = BOUTS.format(4, 0.6, 4, 10).replace(word, instead)
    with pytest.raises(WrongAnswerError, match='the line of bouts is not whole'):
        check_limit(line, 'stencil', 2.0)


def test_bouts_or_fresh_windows_that_are_left_out():
    told = BOUTS.format(4, 0.6, 4, 10)
    with pytest.raises(WrongAnswerError, match='no bouts of stencil were printed'):
        check_limit(re.sub('Bouts of .*', '', told), 'stencil', 2.0)
    with pytest.raises(WrongAnswerError, match='how long fresh windows of stencil took'):
        window_figures(told.replace(', fresh 0 s', ''), 'stencil')


def test_windows_that_begin_no_bout():
    assert steady_windows(200, range(200)) == 190
    assert steady_windows(200, [19, 39, 40]) == 2
    assert steady_windows(200, [0, 20]) == 2


@pytest.mark.parametrize(
    'places', ['0 shorter, 1 equal', '2 shorter, 1 equal', '1 shorter, 0 equal']
)
def test_windows_of_which_another_one_is_the_best(places):
    line = WINDOWS.format(18, 4.0, 0.5, 12.0)
    assert window_figures(line, 'stencil')
    assert window_figures(line.replace('1 shorter, 1 equal', '0 shorter, 18 equal'), 'stencil')
    with pytest.raises(WrongAnswerError, match='which is not number 2'):
        window_figures(line.replace('1 shorter, 1 equal', places), 'stencil')


def test_windows_that_are_not_told_whole():
    line, calls = WINDOWS.format(18, 4.0, 0.5, 12.0), IN_CACHES.format(128, 5.12, 0.8, 0.075, 0.075)
    for part in ('; 1 shorter, 1 equal', '; all 12.0 s', ' of 0.5 s'):
        with pytest.raises(WrongAnswerError, match='a line of windows is not whole'):
            window_figures(line.replace(part, ''), 'stencil')
    with pytest.raises(WrongAnswerError, match='no windows of stencil'):
        window_figures(calls, 'stencil')
    for without in ('', calls.replace(' of 128 calls, 15360 in all', '')):
        with pytest.raises(WrongAnswerError, match='no windows of calls of DOT in caches'):
            check_in_caches(without, DOT)
    with pytest.raises(WrongAnswerError, match='a line of windows is not whole'):
        check_in_caches(calls.replace(', 15360 in all', ''), DOT)


def pairs_report(**changes):
    """Of two nodes of one rank each, in windows of 2 messages of 1000 bytes both ways."""
    time = {'best': 1e-3, 'median': 2e-3}
    rates = {'bandwidth': 2e6, 'best_bandwidth': 4e6, 'time': time}
    clocks = {'own': 0.1, 'slowest': 0.1, 'least': 0.0999, 'most': 0.1001}
    patterns = {'ping-pong': {**clocks, 'least': 0.1999, 'most': 0.2001}, 'exchange': clocks}
    report = {
        **{'nodes': 2, 'ranks_per_node': 1},
        'rounds': {'pairs': 1, 'planned': 1, 'measured': 1},
        'pairs': [{'together': {'latency': 1e-6, **rates}}],
        'results': [
            {'measure': 'latency', 'median': 1e-6, 'worst': 1e-6},
            {'measure': 'bandwidth', 'size': 1000, 'window': 2, 'median': 2e6, 'worst': 2e6},
            {
                **{'measure': 'message_rate', 'window': 64, 'senders': 1, 'time': time},
                **{'rate': 32e3, 'best_rate': 64e3},
            },
            {'measure': 'bisection', 'size': 1000, 'window': 2, **rates},
        ],
        'clocks': {**patterns, 'one way': clocks},
    }
    for place, value in changes.items():
        *path, last = place.split('_')
        found = report
        for key in path:
            found = found[int(key) if key.isdigit() else key]
        found[last] = value
    return report


CHAIN = {'made': 3e9, 'by_slices': 3e9, 'seconds': 1.0}
RANK = {
    **{'rank': 0, 'threads': 1, 'frequency': 3.1e9, 'flops': 9.3e10},
    **{'slowest_slice': 2e9, 'fastest_slice': 4e9, 'lost_share': 0.25},
    **{'chain': CHAIN, 'fma': CHAIN, 'counted': 3e9, 'rest': 0.5},
    'clocks': {'seconds': 2.5, 'least': 2.499, 'most': 2.501},
    'quantum': {'shortest': 19e-6, 'longest': 4e-3},
    **{'slices': 9, 'frequency_place': [0, 1], 'flops_place': [0, 1]},
}


def congested(**changes):
    """A report of two pairs of victims, which measured 1 us alone and 2 us beside, 100 times."""

    def state(place, seconds):
        # The upper half and 99 of 100 parts of a bin.
        time = {
            'median': 1e-9 * 2 ** ((place + 0.5) / 32),
            'p99': 1e-9 * 2 ** ((place + 0.99) / 32),
        }
        clocks = {'own': 200 * seconds, 'slowest': 200 * seconds, 'batches': 20, 'operations': 200}
        clocks |= {'least': 400 * seconds, 'most': 400 * seconds}
        histogram = [[place, 200]]
        return {'time': time, 'seconds': 200 * seconds, 'clocks': clocks, 'histogram': histogram}

    one = {
        **{'victim': 'latency', 'aggressor': 'incast'},
        **{'alone': state(318, 1e-6), 'beside': state(350, 2e-6)},
        'impact': {'median': 2.0, 'p99': 2.0},
        'load': {
            **{
                'size': 1000,
                'messages': 8,
                'all_rounds': 18,
                'bandwidth': 10 * 8 * 2 * 1000 / 1e-3,
            },
            'clocks': {
                **dict.fromkeys(('own', 'slowest', 'least', 'most'), 1e-3),
                **{'batches': 4, 'operations': 10},
            },
        },
    }
    for path, value in changes.items():
        *inside, name = path.split('_of_')[::-1]
        place = one
        for key in inside:
            place = place[key]
        place[name] = value
    return {'ranks': 7, 'hosts': ['a', 'b'], 'victims': [0, 1, 2, 3], 'results': [one]}


RATES = ('triad', 'dgemm', 'frequency')


def pt2pt(changes):
    check_pt2pt(ping_pong(**changes))


def pairs(changes):
    check_pairs(pairs_report(**changes))


def cycles(changes):
    frequency = dict.fromkeys(('min', 'median', 'max'), 3.1e9)
    result = {'load': 'vector', 'ranks': [RANK | changes], 'frequency': frequency}
    result |= {'flops': 9.3e10, 'flops_per_cycle': 30}
    check_clock({'vector': {'bits': 512, 'flops': 320}, 'results': [result]})


def nodes(doubled):
    of = {name: {'work': 2e6, 'by_rates': 2e6, 'passes': 1, 'rates': 5e6} for name in RATES}
    of['frequency']['passes'] = 2e6
    for measure, key in doubled.items():
        of[measure][key] *= 2
    account = {**of, 'clocks': {'seconds': 1.0, 'least': 0.999, 'most': 1.001}}
    rates = {name: [1e6, 1.5e6] for name in RATES}
    node = {'node': 'n1', 'alone': rates, 'together': rates, 'account': account}
    check_nodes({'arguments': {'n': 100}, 'results': [node]})


def overlap(changes):
    times = {'communication': 2e-3, 'computation': 4e-3, 'total': 5e-3}
    point = {series: sampled(seconds) for series, seconds in times.items()}
    point |= {'ratio': 1, 'overlap': 0.5, 'slowdown': 1.25, 'excess': 5 / 6}
    of_all = changes.get('of all ratios', 0.5)
    points = [point | changes]
    alone = {'clocks': sampled(2e-3)['clocks']}
    check_overlap({'results': [{'size': 64, 'points': points, 'overlap': of_all, **alone}]})


def onesided(changes):
    put = {'op': 'put', 'sync': 'flush', 'size': 8, 'bandwidth': 8e6, **sampled(1e-6)}
    check_onesided({'results': [put | changes]})


def datatypes(changes):
    face = {'layout': 'face', 'method': 'pack', 'size': 64, 'bandwidth': 64e6}
    check_datatypes({'results': [face | sampled(1e-6, 2) | changes]})


def congestion(changes):
    check_congestion(congested(**changes))


def partitioned(changes):
    parts = {'way': 'partitioned', 'partitions': 4, 'size': 64, 'bandwidth': 64e6}
    check_partitioned({'results': [parts | sampled(1e-6, 2) | changes]})


def threads(changes):
    shared = {'measure': 'shared', 'threads': 3, 'rate': 2 * 3 * 64e6, **sampled(1e-6)}
    report = {'ranks': 4, 'arguments': {'window': 64}, 'results': [shared | changes]}
    check_threads(report, threads=3)


def matching(changes):
    messages = changes.get('messages', 63)
    incast = {'measure': 'incast', 'size': 8, 'messages': messages, **sampled(1e-6, messages)}
    check_matching({'ranks': 4, 'results': [incast]})


CLOCKS = {'own': 2.4e-3, 'slowest': 2.4e-3, 'least': 4.79e-3, 'most': 4.81e-3}

#: By benchmark what of a report does not follow from the rest of it.
WRONG = {
    pt2pt: [
        ({'bandwidth': 16e6}, 'the bandwidth of ping-pong of 8 bytes is 16000000, but 8000000'),
        ({'kept': 4e-3}, 'the mean of the samples'),
        ({'clocks': CLOCKS | {'own': 4.8e-3, 'slowest': 5e-3}}, 'took'),
        ({'clocks': CLOCKS | {'slowest': 2e-3, 'least': 4.7e-3, 'most': 4.9e-3}}, 'slowest'),
    ],
    pairs: [
        ({'clocks_exchange_own': 0.11}, 'exchange took 0.11 s, but by a second clock'),
        ({'clocks_ping-pong_own': 0.2}, 'ping-pong took 0.4 s, but by a second clock'),
        ({'clocks_exchange_slowest': 0.09}, 'but the slowest 0.09 s'),
        ({'results_2_rate': 64e3}, 'the rate is 64000, but 32000 follows'),
        ({'results_3_bandwidth': 4e6}, 'the bandwidth is 4000000, but 2000000 follows'),
        ({'results_0_median': 2e-6}, 'the median latency is 2e-06'),
        ({'results_1_worst': 3e6}, 'the worst bandwidth is 3000000'),
        ({'rounds_measured': 0}, 'only 0 of 1 rounds were measured'),
    ],
    cycles: [
        ({'quantum': {'shortest': 21e-6, 'longest': 4e-3}}, 'calls of the chain took 2.1e-05 to'),
        ({'quantum': {'shortest': 10e-6, 'longest': 19e-6}}, 'calls of the chain took 1e-05 to'),
        ({'counted': 2e9}, 'the number of additions, vector load of rank 0'),
        ({'chain': CHAIN | {'by_slices': 2e9}}, 'the additions of the slices'),
        ({'fma': CHAIN | {'by_slices': 2e9}}, 'the multiply-adds of the slices'),
        ({'lost_share': 0.1}, 'the mean of the slices'),
        ({'rest': 0}, 'the time of the slices'),
        ({'clocks': {'seconds': 2.5, 'least': 2.6, 'most': 2.7}}, 'by a second clock 2.6 to 2.7 s'),
        ({'slowest_slice': 3.5e9}, 'slowest, best and fastest slice'),
        ({'flops': 8e10}, 'the rate of multiply-adds'),
    ],
    nodes: [
        ({'triad': 'by_rates'}, 'work of triad on n1'),
        ({'dgemm': 'rates'}, 'sum of the rates of dgemm'),
        ({'dgemm': 'passes'}, 'work of dgemm'),
        ({'frequency': 'passes'}, 'number of additions'),
    ],
    overlap: [
        ({'overlap': 0.9}, 'the overlap of 64 bytes with computation of 1 is 0.9, but'),
        ({'slowdown': 1.0}, 'the slowdown of 64 bytes'),
        ({'excess': 1.0}, 'the excess of 64 bytes'),
        ({'of all ratios': 0.6}, 'the overlap of 64 bytes is 0.6, but 0.5 follows'),
    ],
    onesided: [
        ({'bandwidth': 9e6}, 'the bandwidth of put by flush of 8 bytes is 9000000'),
        ({'size': 16}, 'the bandwidth of put by flush of 16 bytes'),
        (
            {'clocks': {'own': 2.0, 'slowest': 2.0, 'least': 0.9, 'most': 1.1}},
            'put by flush of 8 b',
        ),
    ],
    datatypes: [
        ({'bandwidth': 128e6}, 'the bandwidth of face of 64 bytes by pack is 128000000'),
        ({'kept': 1.0}, 'the mean of the samples'),
        ({'set_aside': 1}, 'of 11 batches 10 are samples, and 1 were set aside'),
    ],
    congestion: [
        ({'p99_of_impact': 1.9}, 'the impact at the p99 of latency beside incast is 1.9'),
        ({'median_of_time_of_alone': 9e-7}, 'the median of latency beside incast, alone is 9e-07'),
        ({'p99_of_time_of_beside': 2e-6}, 'the p99 of latency beside incast, beside is'),
        ({'histogram_of_alone': []}, 'latency beside incast, alone has no times'),
        ({'histogram_of_alone': [[318, 199]]}, 'the number of times of latency beside incast, al'),
        ({'histogram_of_alone': [[319, 200]]}, 's by its histogram'),
        ({'histogram_of_beside': [[1279, 200]]}, 's by its histogram'),
        ({'seconds_of_beside': 5e-4}, 'the sum of times of latency beside incast, beside is'),
        ({'most_of_clocks_of_alone': 3e-4, 'least_of_clocks_of_alone': 3e-4}, 'by a second clock'),
        ({'bandwidth_of_load': 1e8}, 'the bandwidth of the load of latency beside incast is 1000'),
        (
            {'own_of_clocks_of_load': 9e-4},
            'the load of latency beside incast took 0.0009 s, but by',
        ),
        ({'batches_of_clocks_of_load': 1}, 'the number of times of the load of latency beside'),
        ({'all_rounds_of_load': 12}, 'the number of all rounds of the load of latency beside inca'),
        (
            {'operations_of_clocks_of_load': 0, 'all_rounds_of_load': 8, 'bandwidth_of_load': 0},
            'went on for 0 rounds',
        ),
        (
            {f'{name}_of_clocks_of_load': 2e-4 for name in ('own', 'slowest', 'least', 'most')}
            | {'bandwidth_of_load': 8e8},
            'went on for 10 rounds and 0.0002 s, while 0.000',
        ),
    ],
    partitioned: [
        ({'bandwidth': 16e6}, 'the bandwidth of 64 bytes by partitioned in 4 partitions is'),
        ({'set_aside': 1}, 'of 11 batches 10 are samples, and 1 were set aside'),
    ],
    threads: [
        ({'rate': 256e6}, 'the rate of shared is'),
        ({'threads': 2}, 'the number of threads of shared'),
        ({'measure': 'one'}, 'the number of threads of one'),
    ],
    # A burst has as many messages of each sender.
    matching: [({'messages': 64}, '64 messages of an incast are not as many of each')],
}


@pytest.mark.parametrize(
    ('check', 'changes', 'sentence'),
    [(check, *row) for check, rows in WRONG.items() for row in rows],
)
def test_what_does_not_follow_from_the_rest_of_a_report(check, changes, sentence):
    check({})
    with pytest.raises(WrongAnswerError, match=sentence):
        check(changes)


@pytest.mark.parametrize(('layout', 'span'), [('vector', 15), ('indexed', 22), ('face', 128)])
def test_arrays_that_span_another_number_of_elements(layout, span):
    """As the program told of eight elements."""
    datatypes({'layout': layout, 'span': span})
    with pytest.raises(WrongAnswerError, match=f'the span of {layout} of 64 bytes by pack is 8,'):
        datatypes({'layout': layout, 'span': 8})


@pytest.mark.parametrize('victims', [[0], [0, 0, 1], [0, 1, 2, 3, 4, 5], [0, 9]])
def test_victims_that_are_none(victims):
    with pytest.raises(WrongAnswerError, match='of 7 ranks'):
        check_congestion({**congested(), 'victims': victims})


def test_more_victims_than_a_fifth():
    with pytest.raises(WrongAnswerError, match=r'are \[0, 1, 2, 3\], not \[0, 5\]'):
        check_congestion({**congested(), 'hosts': ['a']})


@pytest.mark.parametrize('place', [{'best_place': [2, 3]}, {'median_place': [11, 12]}])
def test_samples_of_which_another_one_is_named(place):
    places = {'best_place': [1, 2], 'median_place': [10, 10]}
    times = ping_pong()['results'][0]['time']
    more = {'samples': 20, 'iterations_per_sample': 50}
    check_pt2pt(ping_pong(**more, time=times | places))
    with pytest.raises(WrongAnswerError, match='of 20 samples'):
        check_pt2pt(ping_pong(**more, time=times | places | place))
