"""Statistics of figures that nobody should have measured: an answer or a sentence, no warning."""

import math

import numpy as np
import pytest

from assay import AssayError
from assay.results.statistics.bounds import bounds, has_two_modes
from assay.results.statistics.changes import beginning, find_changes, since_last_change, slope
from assay.results.statistics.comparison import compare, judge_comparisons
from assay.results.statistics.controls import doubt_if_machine_moved, moved_controls
from assay.results.statistics.retest import decide_by_pairs, spread_of_foursomes
from assay.results.statistics.series import DAY, GREATEST, LATEST, series
from assay.results.statistics.spread import OCCASIONS, inflation, learn, unseen_session_inflation

pytestmark = pytest.mark.filterwarnings('error')

VALUES = [0, 5e-324, 1e-310, 1e-300, 1e-5, 1, 1 + 1e-15, 1.01, 2, 1e100, GREATEST]
LENGTHS = [1, 2, 3, 4, 5, 10, 12, 19, 20, 21, 40, 50, 100]


def some_values(random, n):
    positive = VALUES[1:]
    noise = np.exp(0.01 * random.standard_normal(n))
    return [
        lambda: np.full(n, random.choice(VALUES)),
        lambda: random.choice(VALUES, n),
        lambda: random.choice(positive, n),
        lambda: random.choice(random.choice(positive, 2), n),
        lambda: np.where(np.arange(n) < n // 2, 1e-300, 1e300),
        lambda: np.exp(random.uniform(-690, 690, n)),
        lambda: noise * random.choice([1e-300, 1e-5, 1, 0.9e300]),
        lambda: np.where(np.arange(n) == random.integers(n), random.choice(VALUES), noise),
    ][random.integers(8)]()


def some_times(random, n):
    return [
        lambda: None,
        lambda: np.zeros(n),
        lambda: random.permutation(n) * DAY,
        lambda: random.choice([0, 1, 2], n),
        lambda: random.choice([-LATEST, 0, 1, LATEST], n),
        lambda: 1.7e9 + random.choice([0, 1e-6], n),
    ][random.integers(6)]()


def some_series(random):
    n = int(random.choice(LENGTHS))
    sessions = None if random.random() < 0.6 else random.integers(0, n // 3 + 1, n)
    return series(some_values(random, n), some_times(random, n), sessions)


@pytest.mark.parametrize('seed', range(60))
def test_no_series_makes_an_error_or_a_nan(seed):
    random = np.random.default_rng(seed)
    histories = [some_series(random) for _ in range(4)]
    kind = learn(histories)
    for history, changes in zip(histories, find_changes(histories, fewest=10), strict=True):
        for one in changes:
            assert one.ratio >= 0
            assert 0 <= one.p_value <= 1
            assert 0 <= one.earliest <= one.first <= one.latest < history.size
        since_last_change(history, changes)
        if not history.has_logarithms:
            continue
        logs = history.locations
        assert np.isfinite(logs).all()
        assert has_two_modes(logs) in (True, False)
        assert inflation(logs, 2) is None or inflation(logs, 2).value > 0
        spread_of_foursomes(logs)
        if history.size > 5:
            first, best, last = sorted(beginning(logs, history.session_times))
            assert 0 <= first <= best <= last < history.size
        if history.has_order:
            assert math.isfinite(slope(logs, history.session_times))
    for one in bounds(histories, ['higher', 'lower', 'exact', 'higher']):
        assert one.refused or one.lower <= one.value <= one.upper < math.inf
    found = [
        compare(before, after, better, history, kind)
        for before, after, better, history in zip(
            histories,
            histories[::-1],
            ['higher', 'lower', 'exact', 'higher'],
            histories[1:] * 2,
            strict=False,
        )
    ]
    for one in judge_comparisons(found):
        assert 0 <= one.p_value <= 1
        for other in ('higher', 'lower'):
            assert doubt_if_machine_moved(one, moved_controls(found), 0.001, other == 'higher').word
    pairs = [np.maximum(some_values(random, 12), 5e-324) for _ in range(2)]
    assert decide_by_pairs(*pairs, 'higher').ratio >= 0


# ----- greater and less than a ratio can be


def test_a_step_from_next_to_nothing_to_the_greatest():
    values = np.exp(0.01 * np.random.default_rng(1).standard_normal(60))
    (change,) = find_changes([series(values * np.repeat([1e-300, 0.9e300], 30))])[0]
    assert (change.form, change.first, change.ratio) == ('step', 30, math.inf)
    (change,) = find_changes([series(values * np.repeat([0.9e300, 1e-300], 30))])[0]
    assert (change.form, change.first, change.ratio) == ('step', 30, 0)


def test_a_comparison_from_next_to_nothing_to_the_greatest():
    small, great = (series(np.array([1, 1.01, 0.99]) * by) for by in (1e-300, 0.9e300))
    history = [series(np.exp(0.01 * one)) for one in np.random.default_rng(2).normal(size=(9, 60))]
    kind = learn(history)
    up, down = (
        compare(small, great, 'higher', None, kind),
        compare(great, small, 'higher', None, kind),
    )
    assert [one.word for one in judge_comparisons([up, down])] == ['better', 'worse']
    assert (up.ratio, down.ratio) == (math.inf, 0)
    exact = compare(small, great, 'exact')
    assert exact.change == pytest.approx(math.log(0.9e300) - math.log(1e-300))


def test_pairs_from_next_to_nothing_to_the_greatest():
    small = np.full(12, 1e-300)
    assert decide_by_pairs(small, small * 1e300 * 1e300, 'higher').word == 'better'
    assert decide_by_pairs(small * 1e300 * 1e300, small, 'higher').word == 'worse'


def test_bounds_that_are_no_numbers_are_none():
    wild = series(np.exp(np.random.default_rng(3).uniform(-600, 600, 60)))
    (found,) = bounds([wild], ['higher'])
    assert 'not steady enough' in found.refused


@pytest.mark.parametrize('times', [[1e12], [-1e12]])
def test_a_time_that_is_no_date_is_none(times):
    with pytest.raises(AssayError, match='1 of 1 times are beyond'):
        series([1], times)


def test_a_value_of_which_there_is_no_mean_is_none():
    with pytest.raises(AssayError, match='2 of 3 values are beyond'):
        series([1, 1.7e308, 1.1e300])


# ----- times


def test_without_an_order_nothing_is_known_to_have_changed():
    values = np.exp(0.01 * np.random.default_rng(4).standard_normal(60))
    for changed in (np.repeat([1, 0.9], 30), np.exp(np.linspace(0, 0.1, 60))):
        assert find_changes([series(values * changed)])[0]
        at_once = series(values * changed, np.full(60, 5.0))
        assert find_changes([at_once]) == [()]
        assert 'have one time' in bounds([at_once], ['higher'])[0].refused


def test_a_drift_after_a_step_within_one_time_has_no_rate():
    """Of its part of the history nobody knows the order."""
    logs = np.concatenate([np.zeros(40), 1 + np.linspace(0, 0.1, 40)])
    values = np.exp(logs + 0.001 * np.random.default_rng(5).standard_normal(80))
    times = np.where(np.arange(80) < 40, np.arange(80), 40) * DAY
    assert [one.form for one in find_changes([series(values, times)])[0]] == ['step']


def test_the_order_of_runs_given_is_none():
    values = np.exp(0.01 * np.random.default_rng(6).standard_normal(60)) * np.repeat([1, 0.9], 30)
    mixed = np.random.default_rng(7).permutation(60)
    assert find_changes([series(values[mixed], mixed * DAY)]) == find_changes([series(values)])


# ----- many and few


def test_a_hundred_thousand_sessions():
    logs = 0.01 * np.random.default_rng(8).standard_normal(100_000)
    drifting = series(np.exp(logs + np.maximum(0, np.linspace(-0.05, 0.05, 100_000))))
    (change,) = find_changes([drifting])[0]
    assert change.form == 'drift'
    first, earliest, latest = beginning(drifting.locations, drifting.session_times)
    assert earliest <= first <= latest
    assert first == pytest.approx(50_000, abs=1500)
    assert learn([drifting]).windows(12_500).inflation.value > 100


def test_where_a_drift_begins_is_that_of_the_best_line():
    """Against a least-squares fit of each line by itself, at times that are not even."""
    random = np.random.default_rng(9)
    times = np.sort(random.uniform(0, 100, 60)).round() * DAY
    logs = 0.01 * random.standard_normal(60) + np.maximum(0, times / DAY - 60) * 0.002
    left = []
    for first in range(57):
        line = np.column_stack([np.ones(60), np.maximum(0, times - times[first])])
        left.append(((logs - line @ np.linalg.lstsq(line, logs)[0]) ** 2).sum())
    assert beginning(logs, times)[0] == np.argmin(left)


def test_one_figure_alone_shows_nothing_of_how_alike_runs_of_another_are():
    random = np.random.default_rng(10)
    known, new = np.exp(0.01 * random.standard_normal((2, 100)))
    found = compare(series(new[:5]), series(new[5:10]), 'higher', None, learn([series(known)]))
    assumed = unseen_session_inflation(5, OCCASIONS).value
    assert found.error**2 == pytest.approx(2 * found.single * assumed / 5)
    assert math.isfinite(found.error)


@pytest.mark.parametrize(('n', 'm'), [(1, 1), (1, 2), (2, 2)])
def test_one_or_two_equal_values_say_nothing(n, m):
    same = compare(series([3.0] * n), series([3.0] * m), 'higher')
    assert judge_comparisons([same])[0].word == 'cannot tell'
    assert find_changes([series([3.0] * n)]) == [()]
