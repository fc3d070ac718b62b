"""What the readers compute of a problem, against what the programs printed of it."""

import math

import pytest

from assay.programs import minighost, minimd
from assay.programs.application import (
    WrongAnswerError,
    check_times,
    check_windows,
    steady_windows,
)
from assay.programs.benchmarks import check_dgemm, check_pt2pt


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
    times = {'min': 1.0, 'best': 1.0, 'median': 2.0, 'p95': 3.0}
    result = {'time': times, 'rate_best': 2e6, 'rate': 1e6}
    check_dgemm({'ranks': 1, 'results': [result]}, 100)
    with pytest.raises(WrongAnswerError, match='rate_best'):
        check_dgemm({'ranks': 1, 'results': [{**result, 'rate_best': 2.001e6}]}, 100)
    clocks = {'seconds': 0.9, 'least': 0.99, 'most': 1.0}
    with pytest.raises(WrongAnswerError, match=r'0\.9 s, but by a second clock 0\.99 to 1\.0'):
        check_dgemm({'ranks': 1, 'results': [{**result, 'clocks': clocks}]}, 100)


def ping_pong(**changes):
    """A report of one size: 10 samples of 100 round trips, 2 us one way."""
    times = {'min': 1e-6, 'best': 1e-6, 'median': 2e-6, 'p95': 3e-6, 'mean': 2e-6}
    result = {
        **{'pattern': 'ping-pong', 'size': 8, 'bandwidth': 8e6, 'time': times, 'kept': 2e-3},
        **{'samples': 10, 'iterations_per_sample': 100},
        'clocks': {'own': 2.4e-3, 'slowest': 2.4e-3, 'least': 4.79e-3, 'most': 4.81e-3},
    }
    return {'results': [result | changes]}


@pytest.mark.parametrize(
    ('changes', 'sentence'),
    [
        ({'bandwidth': 16e6}, 'the bandwidth of ping-pong of 8 bytes is 16000000, but 8000000'),
        ({'kept': 4e-3}, 'the mean of the samples'),
        ({'clocks': {'own': 4.8e-3, 'slowest': 5e-3, 'least': 4.79e-3, 'most': 4.81e-3}}, 'took'),
        ({'clocks': {'own': 2.4e-3, 'slowest': 2e-3, 'least': 4.7e-3, 'most': 4.9e-3}}, 'slowest'),
    ],
)
def test_messages_of_another_time(changes, sentence):
    check_pt2pt(ping_pong())
    with pytest.raises(WrongAnswerError, match=sentence):
        check_pt2pt(ping_pong(**changes))


WINDOWS = 'Windows of stencil: {}; best {} GB/s of {} s; whole of best 0.8; all {} s\n'


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


def test_windows_that_begin_no_bout():
    assert steady_windows(200, range(200)) == 190
    assert steady_windows(200, [19, 39, 40]) == 2
    assert steady_windows(200, [0, 20]) == 2
