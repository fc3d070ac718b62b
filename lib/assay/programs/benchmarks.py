"""Whether the report of a benchmark can be right: its figures follow from what was asked."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from assay.programs.application import CLOCK_RATE, WrongAnswerError, is_of_both_clocks

# Bytes of an element, as STREAM counts them.
STREAM_BYTES = {'copy': 16, 'scale': 16, 'add': 24, 'triad': 24}

# Of a, b and c in terms of a, see sources/node/arrays.h.
_SCALE = math.sqrt(2) - 1
_FACTORS = (1, _SCALE, 1 + _SCALE)

# Reports have nine digits.
_DIGITS = 2e-8

# Seconds between two readings.
_BETWEEN = 1e-6

# Of sources/mpi/halo.c: half waves along x, y and z.
_WAVES = (2, 3, 1)
# Batches of a program that are thrown away at first.
_WARM_UPS = 2
# Of products of matrices: SCALE_OF_A and SCALE_OF_B in sources/common/dgemm_limit.c.
_SCALE_OF_PRODUCT = 9001 * 1021


def check_halo(report: Mapping[str, Any], mesh: tuple[int, int, int], steps: int) -> None:
    """Rates, both clocks, and the answer of the difference equation with a diffusion of 1/8.

    :raises WrongAnswerError: if one of them is wrong.
    """
    alone = {result['method']: result for result in report['results']}['compute_only']
    for result in report['results']:
        method, time = result['method'], _times(result)
        _equal(
            f'rate of {method}', result['points_per_second'], steps * math.prod(mesh) / time['best']
        )
        _equal(f'median of {method}', result['iterations_per_second'], steps / time['median'])
        if method != 'compute_only':
            expected = alone['time']['median'] / time['median']
            _equal(f'efficiency of {method}', result['efficiency'], expected)
        _of_both_clocks(method, result['clocks'])
    angles = [math.pi * waves / (edge + 1) for waves, edge in zip(_WAVES, mesh, strict=True)]
    decay = (1 - 0.5 * sum(math.sin(angle / 2) ** 2 for angle in angles)) ** steps
    _equal('decay of the mode', report['checks']['decay'], decay)


# Messages in which a rank's bytes are counted for each time of pt2pt, by the pattern.
_MESSAGES = {'ping-pong': 1, 'ping-ping': 1, 'sendrecv': 2, 'exchange': 4, 'bidirectional': 2}


def check_pt2pt(report: Mapping[str, Any]) -> None:
    """Bandwidths, and times against MPI's clock.

    :raises WrongAnswerError: if one of them is wrong.
    """
    for result in report['results']:
        pattern, size = result['pattern'], result['size']
        what = f'{pattern} of {size} bytes'
        # Of a round trip half is the time, of a window the part of a message.
        parts = 2 if pattern == 'ping-pong' else 1
        if pattern == 'bidirectional':
            parts = result['window']
        _check_sampled(what, result, parts)
        expected = _MESSAGES[pattern] * size / result['time']['best']
        _equal(f'bandwidth of {what}', result['bandwidth'], expected)
    if report['arguments']['limits']:
        _check_limits(report)


# Of sources/mpi/common/machine_limits.c: bytes of a copy and of a message there and back, and
# one-way trips of a batch of turns and of a round trip.
_COPIED, _THERE_AND_BACK, _TRIPS = 4 << 20, 8 << 20, {'cacheline_latency': 40, 'socket_latency': 2}


def _check_limits(report: Mapping[str, Any]) -> None:
    """The machine's limits are the medians of what was measured before and after each round.

    And these are of the shortest of their repeats, by its seconds.
    """
    limits = report['limits']
    for measured in limits['measured']:
        for name, seconds in measured.get('shortest', {}).items():  # none before 2026-11-30
            if name in _TRIPS:
                expected = seconds / _TRIPS[name]
            else:
                expected = (_COPIED if name == 'memcpy_bandwidth' else _THERE_AND_BACK) / seconds
            _equal(f'{name} of a measurement', measured[name], expected)
    figures = [('memcpy', 'bandwidth'), ('socket', 'latency'), ('socket', 'bandwidth')]
    if len(report['hosts']) == 1 or 'cacheline' in limits:
        figures.append(('cacheline', 'latency'))
    for name, figure in figures:
        median = statistics.median(measured[f'{name}_{figure}'] for measured in limits['measured'])
        _equal(f'{figure} of {name}', limits[name][figure], median)


def check_ring(report: Mapping[str, Any]) -> None:
    """Bandwidths of a hop, and times against MPI's clock.

    :raises WrongAnswerError: if one of them is wrong.
    """
    for result in report['results']:
        what = f'lap of {result["size"]} bytes'
        _check_sampled(what, result, report['ranks'])
        expected = result['size'] / result['time']['best']
        _equal(f'bandwidth of a {what}', result['bandwidth'], expected)
    if report['arguments']['limits']:
        _check_limits(report)


_SERIES = ('communication', 'computation', 'total')


def check_overlap(report: Mapping[str, Any]) -> None:
    """Check the values that follow from the times of each point, and the times against MPI's clock.

    :raises WrongAnswerError: if one of them is wrong.
    """
    for result in report['results']:
        size = f'{result["size"]} bytes'
        _check_sampled_clocks(f'{size} alone', result['clocks'], 1)
        times = []
        for point in result['points']:
            what = f'{size} with computation of {point["ratio"]}'
            message, alone, both = (_times(point[series])['median'] for series in _SERIES)
            _equal(f'slowdown of {what}', point['slowdown'], both / max(message, alone))
            _equal(f'excess of {what}', point['excess'], both / (message + alone))
            times.append((message, alone, both))
            _check_overlap_of(what, point['overlap'], times[-1:])
            _check_sampled_clocks(what, point['communication']['clocks'], 1)
        _check_overlap_of(size, result['overlap'], times)


def _check_overlap_of(
    what: str, overlap: float, times: Sequence[tuple[float, float, float]]
) -> None:
    """Check an overlap: the time that was hidden over the time that could be.

    :param times: of the message, of the computation, and of both at once.
    """
    hidden = sum(message + alone - both for message, alone, both in times)
    possible = sum(min(message, alone) for message, alone, _ in times)
    # A difference, which has the digits of its terms.
    if not abs(overlap * possible - hidden) <= _DIGITS * sum(map(sum, times)):
        raise WrongAnswerError(
            f'the overlap of {what} is {overlap}, but {hidden / possible} follows'
        )


def check_collectives(report: Mapping[str, Any]) -> None:
    """Times against MPI's clock, of operations that are not timed one by one.

    :raises WrongAnswerError: if one of them is wrong.
    """
    for result in report['results']:
        _check_sampled(f'{result["op"]} of {result["size"]} bytes', result, 1)
    if report['arguments']['limits']:
        limit = report['limits']['ping_pong']
        small, largest = limit['small'], limit['largest']
        for what, sampled in (('8', small), (str(limit['size']), largest)):
            _check_sampled(f'ping-pong of {what} bytes', sampled, 2)
        _equal('latency of a ping-pong', limit['latency'], small['time']['best'])
        expected = limit['size'] / largest['time']['best']
        _equal('bandwidth of a ping-pong', limit['bandwidth'], expected)
    if report['arguments']['guidelines']:
        for one in report['guidelines']:
            what = f'{one["op"]} of {one["size"]} bytes and others that do the same'
            _check_sampled_clocks(what, one['clocks'], 1)
            for factor, (own, other) in zip(one['factors'], one['seconds'], strict=True):
                if factor:
                    _equal(f'factor of {what}', factor, own / other)


def check_matching(report: Mapping[str, Any]) -> None:
    """Times against MPI's clock, and that a burst has as many messages of each sender.

    :raises WrongAnswerError: if one of them is wrong.
    """
    for result in report['results']:
        measure, size = result['measure'], result['size']
        # Of a round trip half is the time, of a burst the part of a message.
        parts = result['messages'] if measure == 'incast' else 2
        _check_sampled(f'{measure} of {size} bytes', result, parts)
        if measure == 'incast' and parts % (report['ranks'] - 1):
            raise WrongAnswerError(
                f'{parts} messages of an incast are not as many of each of {report["ranks"] - 1}'
            )


def check_onesided(report: Mapping[str, Any]) -> None:
    """Bandwidths, and times against MPI's clock.

    :raises WrongAnswerError: if one of them is wrong.
    """
    for result in report['results']:
        what = f'{result["op"]} by {result["sync"]} of {result["size"]} bytes'
        _check_sampled(what, result, 2 if result['op'] == 'ping_pong' else 1)
        _equal(f'bandwidth of {what}', result['bandwidth'], result['size'] / result['time']['best'])


def check_datatypes(report: Mapping[str, Any]) -> None:
    """Bandwidths of the data without its gaps, and times against MPI's clock.

    :raises WrongAnswerError: if one of them is wrong.
    """
    for result in report['results']:
        what = f'{result["layout"]} of {result["size"]} bytes by {result["method"]}'
        _check_round_trips(what, result)
        if 'span' in result:  # not before 2026-11-30
            count = int(result['size']) // 8
            _equal(f'span of {what}', result['span'], _SPANS[result['layout']](count))


@cache
def _span_of_indexed(count: int) -> int:
    random, place = 1, 0
    for _ in range(1, count):
        random = (random * 1664525 + 1013904223) % 2**32
        place += 2 + (random >> 16) % 4
    return place + 1


def _span_of_face(count: int) -> int:
    cells = count // 2
    planes = max(i for i in range(1, math.isqrt(cells) + 1) if cells % i == 0)
    return (planes + 2) * (cells // planes + 2) * 8


#: Elements that an array of sources/mpi/datatypes.c has with its gaps, by those that are sent.
_SPANS: dict[str, Callable[[int], int]] = {
    'vector': lambda count: 2 * count - 1,
    'indexed': _span_of_indexed,
    'face': _span_of_face,
}


def check_partitioned(report: Mapping[str, Any]) -> None:
    """Bandwidths, and times against MPI's clock.

    :raises WrongAnswerError: if one of them is wrong.
    """
    for result in report['results']:
        what = f'{result["size"]} bytes by {result["way"]} in {result["partitions"]} partitions'
        _check_round_trips(what, result)


def _check_round_trips(what: str, result: Mapping[str, Any]) -> None:
    """As of a program whose reports have always had what was set aside."""
    _times(result)
    _check_batches(result)
    _check_sampled_clocks(what, result['clocks'], 2)  # of a round trip half is the time
    _equal(f'bandwidth of {what}', result['bandwidth'], result['size'] / result['time']['best'])


def check_threads(report: Mapping[str, Any], threads: int) -> None:
    """Rates, by the messages of all ranks and threads, and times against MPI's clock.

    :param threads: of each rank.
    :raises WrongAnswerError: if one of them is wrong.
    """
    senders, window = report['ranks'] // 2, report['arguments']['window']
    for result in report['results']:
        measure = result['measure']
        _check_sampled(measure, result, 1)
        count = 1 if measure == 'one' else threads
        _equal(f'number of threads of {measure}', result['threads'], count)
        expected = senders * count * window / result['time']['best']
        _equal(f'rate of {measure}', result['rate'], expected)


# Of the histograms of sources/mpi/congestion.c: seconds of the first bin, and how many double them.
_SHORTEST, _BINS_PER_OCTAVE = 1e-9, 32
_LAST_BIN = 40 * _BINS_PER_OCTAVE - 1
_PERCENTILES = {'median': 0.5, 'p99': 0.99}
ROUNDS_OF_CONGESTION = 4


def check_congestion(report: Mapping[str, Any]) -> None:
    """Percentiles by their histograms, these by both clocks; the load, and that it lasted.

    :raises WrongAnswerError: if one of them is wrong.
    """
    ranks, victims = report['ranks'], report['victims']
    if not (victims == sorted({*victims} & {*range(ranks)}) and 2 <= len(victims) <= ranks - 2):
        raise WrongAnswerError(f'the victims are {victims} of {ranks} ranks')
    if len(report['hosts']) in (1, ranks) and victims != _victims_of(ranks):
        raise WrongAnswerError(f'the victims are {victims}, not {_victims_of(ranks)}')
    for result in report['results']:
        what = f'{result["victim"]} beside {result["aggressor"]}'
        # Of each pair one is timed, and of its round trips half is the time.
        parts, timed = (
            (2, len(victims) // 2) if result['victim'] == 'latency' else (1, len(victims))
        )
        for state in ('alone', 'beside'):
            _check_histogram(f'{what}, {state}', result[state])
            _check_sampled_clocks(f'{what}, {state}', result[state]['clocks'], parts)
        for name, impact in result['impact'].items():
            expected = result['beside']['time'][name] / result['alone']['time'][name]
            _equal(f'impact at the {name} of {what}', impact, expected)
        measured = result['beside']['clocks']['own'] * parts / timed
        _check_load(f'the load of {what}', result, ranks - len(victims), measured)


def _victims_of(ranks: int) -> list[int]:
    """Every fifth rank of a host, or more of them where those would be less than two."""
    every = next((every for every in (5, 4, 3) if ranks > every), 2)
    return [*range(0, ranks, every)]


def _check_load(what: str, result: Mapping[str, Any], aggressors: int, measured: float) -> None:
    """Its bandwidth, and that it went on while so many seconds were measured."""
    load, clocks = result['load'], result['load']['clocks']
    rounds, seconds = clocks['operations'], clocks['own']
    _check_sampled_clocks(what, clocks, 1)
    _equal(f'number of times of {what}', clocks['batches'], ROUNDS_OF_CONGESTION)
    # One before its time and one behind it.
    _equal(f'number of all rounds of {what}', load['all_rounds'], rounds + 2 * clocks['batches'])
    flows = {
        'incast': aggressors - 1,
        'alltoall': aggressors * (aggressors - 1),
        'shift': aggressors,
    }[result['aggressor']]
    sent = rounds * flows * load['messages'] * load['size']
    _equal(f'bandwidth of {what}', load['bandwidth'], sent / seconds)
    if not (rounds > 0 and seconds >= measured * (1 - CLOCK_RATE)):
        raise WrongAnswerError(
            f'{what} went on for {rounds} rounds and {seconds} s, while {measured} s were measured'
        )


def _check_histogram(what: str, one: Mapping[str, Any]) -> None:
    """Check that a histogram has all operations, up to the longest; and its percentiles."""
    _equal(f'sum of times of {what}', one['seconds'], one['clocks']['own'])
    histogram = sorted(one['histogram'])
    if not histogram:
        raise WrongAnswerError(f'{what} has no times')
    operations = sum(count for _, count in histogram)
    _equal(f'number of times of {what}', operations, one['clocks']['operations'])
    # The first bin has all times that are shorter, the last one all that are longer.
    least = sum(count * _time_of(place) for place, count in histogram if place)
    most = sum(count * _time_of(place + 1) for place, count in histogram)
    if histogram[-1][0] == _LAST_BIN:
        most = math.inf
    if not least * (1 - _DIGITS) <= one['seconds'] <= most * (1 + _DIGITS):
        raise WrongAnswerError(
            f'{what} took {one["seconds"]} s, and {least:g} to {most:g} s by its histogram'
        )
    for name, share in _PERCENTILES.items():
        below, wanted = 0, share * operations
        for place, count in histogram:
            if below + count >= wanted:
                expected = _time_of(place + (wanted - below) / count)
                _equal(f'{name} of {what}', one['time'][name], expected)
                break
            below += count


def _time_of(place: float) -> float:
    return float(_SHORTEST * 2 ** (place / _BINS_PER_OCTAVE))


def check_files(report: Mapping[str, Any]) -> None:
    """Bandwidths of the whole file, and times against MPI's clock.

    :raises WrongAnswerError: if one of them is wrong.
    """
    arguments = report['arguments']
    size = report['ranks'] * arguments['blocks'] * arguments['block']
    for result in report['results']:
        what = f'{result["way"]} {result["direction"]}'
        _check_sampled(what, result, 1)
        _equal(f'size of the file, {what}', result['size'], size)
        _equal(f'bandwidth of {what}', result['bandwidth'], size / result['time']['best'])


# Rates of pairs, by what they count.
_RATES_OF_PAIRS = {'message_rate': 'rate', 'bisection': 'bandwidth'}


def check_pairs(report: Mapping[str, Any]) -> None:
    """Rates, by the messages and their times; times against MPI's clock; the middle of the pairs.

    :raises WrongAnswerError: if one of them is wrong, or not all rounds were measured.
    """
    rounds = report['rounds']
    if rounds['measured'] < rounds['planned']:
        raise WrongAnswerError(
            f'only {rounds["measured"]} of {rounds["planned"]} rounds were measured: they took '
            f'more than ten times as long as planned'
        )
    results = {result['measure']: result for result in report['results']}
    for pattern in ('ping-pong', 'exchange', *(['one way'] if 'message_rate' in results else [])):
        clocks = report['clocks'][pattern]
        _check_sampled_clocks(pattern, clocks, 2 if pattern == 'ping-pong' else 1)
    partners = report['nodes'] // 2
    for result in report['results']:
        name = _RATES_OF_PAIRS.get(result['measure'])
        if name == 'rate':
            _check_rate_of_pairs(result, name, partners * result['senders'] * result['window'])
        elif name:
            senders = partners * report['ranks_per_node']
            _check_rate_of_pairs(result, name, senders * _bytes_both_ways(result))
    for pair in report['pairs']:
        for how in ('together', 'alone'):
            if how in pair:
                _check_rate_of_pairs(pair[how], 'bandwidth', _bytes_both_ways(results['bandwidth']))
    if len(report['pairs']) == report['rounds']['pairs']:
        for name, by_time in (('latency', 1), ('bandwidth', -1)):
            values = [pair['together'][name] for pair in report['pairs']]
            values.sort(reverse=by_time < 0)
            # By their times, the lower of two pairs in the middle.
            _equal(f'median {name}', results[name]['median'], values[(len(values) - 1) // 2])
            _equal(f'worst {name}', results[name]['worst'], values[-1])


def _bytes_both_ways(result: Mapping[str, Any]) -> float:
    return float(2 * result['window'] * result['size'])


def _check_rate_of_pairs(result: Mapping[str, Any], name: str, work: float) -> None:
    for prefix, time in (('best_', 'best'), ('', 'median')):
        _equal(f'{prefix}{name}', result[prefix + name], work / result['time'][time])


# Of a call, in sources/node/chain.h.
_CHAIN_ADDITIONS = 80000

# Of multiply-adds in sources/node/vector_kernels.c.
_CHAINS = (12, 20)


def check_clock(report: Mapping[str, Any]) -> None:
    """Frequencies, by the additions that were counted, and times against the system's clock.

    :raises WrongAnswerError: if one of them is wrong.
    """
    vector = report['vector']
    if vector['flops'] / (2 * vector['bits'] / 64) not in _CHAINS:
        raise WrongAnswerError(f'an iteration in {vector["name"]} has {vector["flops"]} operations')
    for result in report['results']:
        load, ranks = result['load'], result['ranks']
        frequencies = sorted(rank['frequency'] for rank in ranks)
        middle = (frequencies[(len(ranks) - 1) // 2] + frequencies[len(ranks) // 2]) / 2
        of = result['frequency']
        _equal(f'least frequency, {load}', of['min'], frequencies[0])
        _equal(f'median frequency, {load}', of['median'], middle)
        _equal(f'greatest frequency, {load}', of['max'], frequencies[-1])
        for rank in ranks:
            _check_clock_of_rank(load, rank)
        if load == 'vector':
            flops = sum(rank['flops'] for rank in ranks)
            cycles = sum(rank['threads'] * rank['frequency'] for rank in ranks)
            _equal('rate of multiply-adds', result['flops'], flops)
            _equal('multiply-adds of a cycle', result['flops_per_cycle'], flops / cycles)


def _check_clock_of_rank(load: str, rank: Mapping[str, Any]) -> None:
    what = f'{load} load of rank {rank["rank"]}'
    chain, fma = rank['chain'], rank['fma']
    _equal(f'number of additions, {what}', chain['made'], rank['counted'])
    for name, work in (('additions', chain), ('multiply-adds', fma)):
        _equal(f'{name} of the slices, {what}', work['by_slices'], work['made'])
    rates = [rank[name] for name in ('slowest_slice', 'frequency', 'fastest_slice')]
    if not (rates[0] > 0 and rates == sorted(rates)):
        raise WrongAnswerError(f'slowest, best and fastest slice of the {what} are {rates}')
    for place in ('frequency_place', 'flops_place'):
        # The first decile from above.
        slices, (faster, fast) = rank['slices'], rank[place]
        if not faster < (slices + 9) // 10 <= fast:
            raise WrongAnswerError(
                f'of {slices} slices {faster} are faster than the best {place.partition("_")[0]}, '
                f'{what}, and {fast} as fast'
            )
    shortest, longest = rank['quantum']['shortest'], rank['quantum']['longest']
    fastest = _CHAIN_ADDITIONS / rates[2]
    if not shortest <= fastest * (1 + _DIGITS) <= longest * (1 + 2 * _DIGITS):
        raise WrongAnswerError(
            f'calls of the chain took {shortest} to {longest} s, but one of the fastest slice '
            f'of the {what} {fastest} s'
        )
    mean = (1 - rank['lost_share']) * rates[2]
    _equal(f'mean of the slices, {what}', mean, chain['made'] / chain['seconds'])
    seconds = chain['seconds'] + fma['seconds'] + rank['rest']
    _equal(f'time of the slices, {what}', rank['clocks']['seconds'], seconds)
    _of_both_clocks(what, rank['clocks'])


def check_nodes(report: Mapping[str, Any]) -> None:
    """Rates of each node, by what its ranks say that they did; times against the system's clock.

    :raises WrongAnswerError: if one of them is wrong.
    """
    for node in report['results']:
        name, account = node['node'], node['account']
        _of_both_clocks(f'work of {name}', account['clocks'])
        for measure in ('triad', 'dgemm', 'frequency'):
            of = account[measure]
            _equal(f'work of {measure} on {name}', of['by_rates'], of['work'])
        for measure in ('triad', 'dgemm'):
            rates = sum(node['alone'][measure]) + sum(node['together'][measure])
            _equal(f'sum of the rates of {measure} on {name}', rates, account[measure]['rates'])
        dgemm, chain = account['dgemm'], account['frequency']
        order = report['arguments']['n']
        _equal(f'work of dgemm on {name}', dgemm['work'], dgemm['passes'] * 2 * order**3)
        _equal(f'number of additions on {name}', chain['work'], chain['passes'])


def _check_sampled(what: str, result: Mapping[str, Any], parts: int) -> None:
    """:param parts: that a time by the clocks is divided into."""
    _times(result)
    if 'set_aside' in result:  # not in reports of before 2026-11-29
        _check_batches(result)
    _check_sampled_clocks(what, result['clocks'], parts)


def _check_sampled_clocks(what: str, clocks: Mapping[str, float], parts: int) -> None:
    _of_both_clocks(what, {**clocks, 'seconds': clocks['own'] * parts})
    if not clocks['slowest'] >= clocks['own'] * (1 - _DIGITS):
        raise WrongAnswerError(
            f'{what} took a rank {clocks["own"]} s, but the slowest {clocks["slowest"]} s'
        )


def check_stream(report: Mapping[str, Any]) -> None:
    """Bandwidths, by the elements of the arrays.

    :raises WrongAnswerError: if one of them is wrong.
    """
    own, ranks, size = report['elements_per_rank'], report['ranks'], report['arguments']['size']
    elements = own * ranks
    # Ranks of a host share what was asked for: of several hosts that of rank 0 has any number.
    on_a_host = [ranks] if len(report['hosts']) == 1 else range(1, ranks + 1)
    if own not in {size // 8 // number for number in on_a_host}:
        raise WrongAnswerError(
            f'stream had arrays of {own} elements on a rank, and {size} bytes on each host were '
            'asked for'
        )
    together = {one['operation']: one for one in report['results'] if one['ranks'] == 'together'}
    if together.keys() != STREAM_BYTES.keys():
        raise WrongAnswerError(f'stream measured {", ".join(together) or "nothing"}')
    for operation, size in STREAM_BYTES.items():
        time = _times(together[operation])
        for name in ('best', 'median'):
            found = together[operation]['bandwidth'][name]
            _equal(f'{name} of {operation}', found, size * elements / time[name])
        _of_both_clocks(operation, together[operation]['clocks'])
    for one in report['results']:
        what = f'rank in {one["operation"]}, {one["ranks"]}'
        for name, value in (('slowest', min(one['per_rank'])), ('fastest', max(one['per_rank']))):
            _equal(f'{name} {what}', one[name]['bandwidth'], value)
            _equal(f'rate of the {name} {what}', one['per_rank'][one[name]['rank']], value)
    start = 1 + (report['elements_per_rank'] - 1) % 4093 / 4096
    for array, found, factor in zip('abc', report['last'], _FACTORS, strict=True):
        _equal(f'last element of {array}', found, factor * start)


#: Of the pages of a block of memory, those that have to be in the domain that it is said to be of.
_IN_DOMAIN = 0.99

_LINE = 64
"""Bytes of a line of ``distances``, whatever the machine's are."""


def check_distances(report: Mapping[str, Any]) -> None:
    """Latencies and bandwidths, and that the memory was of the domains that it is said to be of.

    :raises WrongAnswerError: if one of them is wrong, or that of a pair of domains is missing.
    """
    size, lines = report['arguments']['size'], report['bytes'] // _LINE
    if lines.bit_count() != 1 or not lines * _LINE <= size < 2 * lines * _LINE:
        raise WrongAnswerError(f'a block has {report["bytes"]} bytes, and --size is {size}')
    found, walked = set(), 0
    for result in report['results']:
        measure, start, end = (result[name] for name in ('measure', 'from', 'memory_of'))
        what = f'{measure} from domain {start} to {end}'
        _check_sampled(what, result, 1)
        best, cores = result['time']['best'], result['cores']
        operations = result['clocks']['operations']
        if cores < 1 or (measure == 'latency' and cores > 1):
            raise WrongAnswerError(f'{what} was measured by {cores} cores')
        if measure == 'latency':
            walked += report['steps'] * operations
            expected = best / report['steps']
        else:
            expected = report['bytes'] / best
        _equal(what, result['value'], expected)
        share = result.get('in_domain', 1)
        if share < _IN_DOMAIN:
            raise WrongAnswerError(f'{what}: {share:.1%} of the memory is in domain {end}')
        found.add((measure, start, end))
    starts, ends = ({one[place] for one in found} for place in (1, 2))
    for measure in ('latency', 'bandwidth'):
        if missing := {(measure, start, end) for start in starts for end in ends} - found:
            measure, start, end = min(missing)
            raise WrongAnswerError(f'{measure} from domain {start} to {end} is missing')
    if not starts & ends:
        raise WrongAnswerError('no domain has both cores and memory')
    # Walks that begin where others began find their lines in the caches.
    if (last := _line_after(walked, lines)) != report['last_line']:
        raise WrongAnswerError(
            f'walks of {walked} steps one behind the other end at line {last}, '
            f'and these ended at {report["last_line"]}'
        )


def _line_after(steps: int, lines: int) -> int:
    """The line that a walk of ``distances`` from line 0 reaches after so many steps."""
    factor, term, line = 6364136223846793005, 1442695040888963407, 0
    for digit in reversed(f'{steps:b}'):
        if digit == '1':
            line = (line * factor + term) % lines
        factor, term = factor * factor % lines, term * (factor + 1) % lines
    return line


def check_dgemm(report: Mapping[str, Any], order: int) -> None:
    """Rates, by the order of the matrices.

    :raises WrongAnswerError: if one of them is wrong.
    """
    (result,) = report['results']
    operations = 2 * order**3 * report['ranks']
    time = _times(result)
    for name, seconds in (('rate_best', 'best'), ('rate', 'median')):
        _equal(name, result[name], operations / time[seconds])
    _of_both_clocks('dgemm', result['clocks'])
    ranks, of = result['per_rank'], result['rank_rates']
    _equal('rate of the slowest rank', of['min'], min(ranks))
    _equal('rate of the slowest rank', result['slowest']['rate'], min(ranks))
    _equal(
        'rate of the rank that is said to be slowest', ranks[result['slowest']['rank']], min(ranks)
    )
    _equal('median rate of the ranks', of['median'], statistics.median(ranks))
    _equal('rate of the fastest rank', of['max'], max(ranks))
    _equal('limit of dgemm', result['limit'], statistics.median(result['limits']))
    if len(result['least_limits']) != len(result['limits']):
        raise WrongAnswerError('of limits of dgemm it is not told what was done')
    for limit, least in zip(result['limits'], result['least_limits'], strict=True):
        if not limit >= least * (1 - CLOCK_RATE):
            raise WrongAnswerError(f'a limit of dgemm is {limit:g}, but {least:g} was done')
    # Elements were so small before that single precision was enough for them.
    if (scale := result.get('scale', 1)) not in (1, _SCALE_OF_PRODUCT):
        raise WrongAnswerError(f'elements of dgemm are scaled by {scale}')
    last = 1 - scale * result['products'] * _last_of_product(order)
    _equal('last element of the product', result['last'], last)


def _last_of_product(order: int) -> int:
    """By the elements of A and B in sources/common/dgemm_limit.c, which run down the columns."""
    return sum(
        ((k * order + order - 1) % 7 - 3) * (((order - 1) * order + k) % 5 - 2)
        for k in range(order)
    )


def _of_both_clocks(what: str, clocks: Mapping[str, float]) -> None:
    """One clock is read just before and just after the other: it holds on the busiest machine."""
    if not is_of_both_clocks(clocks['seconds'], clocks['least'], clocks['most'], _BETWEEN):
        raise WrongAnswerError(
            f'{what} took {clocks["seconds"]} s, but by a second clock {clocks["least"]} to '
            f'{clocks["most"]} s'
        )


def _times(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The times of a result: of as many operations as took the seconds of its samples."""
    time: Mapping[str, Any] = result['time']
    values = [time[name] for name in ('min', 'best', 'median', 'p95')]
    if not (values[0] > 0 and values == sorted(values)):
        raise WrongAnswerError(f'least, best, median and 95th time are {values}')
    operations = result['samples'] * result['iterations_per_sample']
    _equal('mean of the samples', time['mean'], result['kept'] / operations)
    _check_places(time, result['samples'])
    return time


def _check_batches(result: Mapping[str, Any]) -> None:
    """Check that each batch is a sample or was set aside, as the first ones always are."""
    samples, set_aside = result['samples'], result['set_aside']
    batches = result.get('clocks', {}).get('batches', samples + set_aside)
    if set_aside < _WARM_UPS or samples + set_aside != batches:
        raise WrongAnswerError(
            f'of {batches} batches {samples} are samples, and {set_aside} were set aside'
        )


def _check_places(time: Mapping[str, Any], samples: int) -> None:
    """How many samples are shorter, and within it: of the first decile and of the middle."""
    shorter, within = time['best_place']
    if not shorter < (samples + 9) // 10 <= within:
        raise WrongAnswerError(
            f'of {samples} samples {shorter} are shorter than the best, and {within} within it'
        )
    shorter, within = time['median_place']
    if not 2 * shorter <= samples <= 2 * within:
        raise WrongAnswerError(
            f'of {samples} samples {shorter} are shorter than the median, and {within} within it'
        )


def _equal(what: str, found: float, expected: float) -> None:
    if not abs(found - expected) <= _DIGITS * abs(expected):
        raise WrongAnswerError(
            f'the {what} is {found:.12g}, but {expected:.12g} follows from the rest'
        )


#: What holds the report of a program; those of others are held against what was asked as well.
REPORT_CHECKS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    'clock': check_clock,
    'collectives': check_collectives,
    'congestion': check_congestion,
    'datatypes': check_datatypes,
    'distances': check_distances,
    'files': check_files,
    'matching': check_matching,
    'nodes': check_nodes,
    'onesided': check_onesided,
    'overlap': check_overlap,
    'pairs': check_pairs,
    'partitioned': check_partitioned,
    'pt2pt': check_pt2pt,
    'ring': check_ring,
    'stream': check_stream,
}
