"""Statistics of figures over runs: against values computed elsewhere, properties, edges."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from assay import AssayError
from assay.results.statistics.bounds import bounds, has_two_modes
from assay.results.statistics.changes import beginning, find_changes, since_last_change
from assay.results.statistics.comparison import (
    OCCASIONS_ASSUMED,
    THESE_RUNS,
    compare,
    judge_comparisons,
)
from assay.results.statistics.controls import doubt_if_machine_moved, moved_controls
from assay.results.statistics.families import pool_variance
from assay.results.statistics.multiplicity import holm, rate_of_a_look
from assay.results.statistics.retest import (
    LOOKS,
    decide_by_pairs,
    figures_that_look_changed,
    spread_of_foursomes,
)
from assay.results.statistics.series import DAY, series, trimmed_mean
from assay.results.statistics.spread import (
    MANY,
    OCCASIONS,
    OCCASIONS_BESIDE_CONTROL,
    FigureKind,
    Variance,
    history_variance,
    inflation,
    learn,
    moderate,
    prior,
    probability_beyond,
    quantile,
    tail,
)


def noise(seed, *shape, spread=0.01):
    return np.exp(spread * np.random.default_rng(seed).standard_normal(shape))


@pytest.fixture(scope='module')
def histories():
    """Twenty unchanged figures over 60 runs, all with a spread of 1%."""
    return [series(100 * one) for one in noise(1, 20, 60)]


@pytest.fixture(scope='module')
def kind(histories):
    return learn(histories)


# ----- one figure over runs


@pytest.mark.parametrize(
    ('values', 'times', 'sessions', 'words'),
    [
        ([], None, None, 'without any value'),
        ([1, math.nan], None, None, '1 of 2 values are not finite'),
        ([1, math.inf], None, None, '1 of 2 values are not finite'),
        ([1, -2], None, None, '1 of 2 values are negative'),
        ([1, 'fast'], None, None, 'must be numbers'),
        ([1, 2], [1], None, '2 values, 1 times'),
        ([1, 2], None, ['a'], '2 values, 2 times, 1 sessions'),
        ([[1, 2]], None, None, 'one time and one session'),
        ([1, 2], [0, math.nan], None, '1 of 2 times are not finite'),
    ],
)
def test_what_is_no_series(values, times, sessions, words):
    with pytest.raises(AssayError, match=words):
        series(values, times, sessions)


def test_repeats_of_a_session_are_one_observation():
    one = series([1, 2, 4, 8, 16], [5, 6, 7, 1, 2], ['b', 'b', 'b', 'a', 'a'])
    assert one.size == 2
    # In order of time: session a first; of three repeats the median, of two the mean.
    assert np.exp(one.locations) == pytest.approx([math.sqrt(8 * 16), 2])
    assert one.session_times.tolist() == [1, 5]
    assert one.repeats == pytest.approx(2 / (1 / 2 + 1 / 3))
    squares = np.var(np.log([1, 2, 4])) * 3 + np.var(np.log([8, 16])) * 2
    assert one.within == (pytest.approx(squares / 3), 3)


@pytest.mark.parametrize('n', [5, 6, 12, 30])
def test_location_is_the_trimmed_mean(n):
    values = noise(n, n)
    assert trimmed_mean(values) == pytest.approx(stats.trim_mean(values, 0.2))


def test_location_of_few():
    assert trimmed_mean(np.array([3.0])) == 3
    assert trimmed_mean(np.array([1.0, 2.0])) == 1.5
    assert trimmed_mean(np.array([1.0, 2.0, 99.0])) == 2


# ----- rates of families


def test_holm_as_elsewhere():
    # R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), 'holm')
    assert holm([0.05, 0.01, 0.04, 0.02, 0.03]) == pytest.approx([0.09, 0.05, 0.09, 0.08, 0.09])
    assert holm([0.5, 0.9]).tolist() == [1, 1]
    assert holm([]).size == 0


@pytest.mark.parametrize('p', [-0.1, 1.1, math.nan])
def test_holm_refuses_what_is_no_probability(p):
    with pytest.raises(AssayError, match='within 0 and 1'):
        holm([0.5, p])


def test_a_year_of_looks():
    rate = rate_of_a_look(365)
    assert stats.poisson.sf(1, 365 * rate) < 0.05  # more than one false alarm
    assert rate_of_a_look(1) == 0.01
    with pytest.raises(AssayError, match='at least one look'):
        rate_of_a_look(0)


# ----- the spread between runs


def test_moderated_variance():
    # Smyth (2004): (4 * 0.5 + 8 * 2) / 12
    assert moderate(Variance(2, 8), Variance(0.5, 4)) == Variance(1.5, 12)


def test_prior_is_found_again():
    """Variances drawn as the model says: s0^2 = 4, d0 = 10, each from 9 values."""
    random = np.random.default_rng(3)
    true = 4 * 10 / random.chisquare(10, 20000)
    found = prior([Variance(one, 8) for one in true * random.chisquare(8, 20000) / 8])
    assert found.value == pytest.approx(4, rel=0.03)
    assert found.freedom == pytest.approx(10, rel=0.1)


def test_prior_of_figures_that_are_all_alike_weighs_all():
    random = np.random.default_rng(4)
    found = prior([Variance(one, 8) for one in random.chisquare(8, 400) / 8 * 0.9])
    assert found.value == pytest.approx(0.9, rel=0.1)
    assert found.freedom > 30
    assert prior([Variance(2, 8)]).freedom == 0


def test_neighbours_that_are_alike_inflate_locations():
    random = np.random.default_rng(5)
    shocks = random.standard_normal(4000)
    alike = shocks.copy()
    for i in range(1, len(alike)):
        alike[i] = 0.5 * alike[i - 1] + math.sqrt(0.75) * shocks[i]
    # Means of five would be at 2.23, (5 + 2 sum_k (5 - k) 0.5^k) / 5, trimmed ones near it.
    assert inflation(alike, 5).value == pytest.approx(2.23, rel=0.15)
    assert inflation(shocks, 5).value == pytest.approx(1.13, rel=0.1)  # the price of trimming
    assert inflation(shocks, 1).value == pytest.approx(1, rel=0.01)
    # Of short histories too, though windows are large parts of them.
    short = learn([series(one) for one in noise(52, 400, 40)])
    assert short.windows(5).inflation.value == pytest.approx(1.13, rel=0.06)
    assert inflation(shocks[:30], 5) is None
    assert inflation(np.ones(100), 5) is None


def test_fewer_sessions_count_where_neighbours_are_alike(histories):
    alone = history_variance(histories[0].locations, FigureKind((), None))
    assert alone.freedom == 59
    stuck = [series(np.repeat(one, 6)) for one in noise(6, 20, 10)]
    assert history_variance(stuck[0].locations, learn(stuck)).freedom < 20


def test_tails():
    random = np.random.default_rng(7)
    assert tail(random.standard_normal(6000)) >= 15
    assert tail(random.standard_t(3, 6000) / math.sqrt(3)) <= 5
    assert probability_beyond(4, 20, MANY) == pytest.approx(stats.t.sf(4, 20))
    assert probability_beyond(4, 20, 3.0) > 5 * probability_beyond(4, 20, MANY)
    for far, freedom, heavy in itertools.product((2.5, 6), (5, 50), (3.0, 10.0, MANY)):
        assert quantile(probability_beyond(far, freedom, heavy), freedom, heavy) == pytest.approx(
            far
        )


@pytest.mark.parametrize(('freedom', 'heavy'), [(3, 10.0), (8, 5.0), (40, 3.0), (1.2, 10.0)])
def test_tails_over_an_estimated_error_are_those_of_such_locations(freedom, heavy):
    random = np.random.default_rng(9)
    size = 400_000
    locations = random.standard_t(heavy, size) * math.sqrt((heavy - 2) / heavy)
    found = locations / np.sqrt(random.chisquare(freedom, size) / freedom)
    for far in (2.0, 5.0, 9.0):
        share = (found > far).mean()
        plain = stats.t.sf(far, freedom)
        assert probability_beyond(far, freedom, heavy) == pytest.approx(
            max(share, plain), rel=0.1, abs=5e-5
        )


def test_quantiles_far_out_are_those_of_their_probabilities():
    for freedom, heavy in itertools.product((1, 2.5, 9, 300), (3.0, 10.0)):
        far = quantile(1e-9, freedom, heavy)
        assert probability_beyond(far, freedom, heavy) == pytest.approx(1e-9, rel=1e-6)


# ----- comparisons


@pytest.mark.parametrize('share', [OCCASIONS, OCCASIONS_BESIDE_CONTROL])
def test_without_history_the_runs_show_their_own_spread(share):
    """By hand: their variance within the sides, and the share of what one occasion misses."""
    before, after = noise(8, 5), 0.9 * noise(9, 5)
    kind = FigureKind((), None, occasions=share)
    found = compare(series(before), series(after), 'higher', kind=kind)
    logs = [np.log(before), np.log(after)]
    pooled = (np.var(logs[0], ddof=1) + np.var(logs[1], ddof=1)) / 2
    assert found.change == pytest.approx(trimmed_mean(logs[1]) - trimmed_mean(logs[0]))
    of_a_side = share + (1 - share) * 1.13 / 5
    assert found.error == pytest.approx(math.sqrt(2 * pooled / (1 - share) * of_a_side))
    # Only of that part it is assumed how large it is.
    assert found.freedom == pytest.approx(1 / (1 / 8 + (share / of_a_side) ** 2 / 30))
    assert found.term == THESE_RUNS + OCCASIONS_ASSUMED
    assert [one.word for one in judge_comparisons([found] * 2)] == ['worse'] * 2


@pytest.mark.parametrize(
    ('values', 'step'),
    [
        ([0.02, 0.02, 0.03], 0.5),
        ([36.27, 36.3], 0.01 / 36.285),
        ([100.0, 130.0], 1 / 115),
        ([2e-7, 3e-7], 0),
        ([0.12345], 0),
        ([0.0], 0),
    ],
)
def test_the_step_of_values_that_were_printed_with_few_digits(values, step):
    assert series(values).step == pytest.approx(step)


def test_values_that_were_rounded_are_no_surer_than_half_a_step():
    """Times of 0.02 s, printed with two digits, that are 0.03 s after: as equal as can be."""
    steady = FigureKind((), None, Variance(1e-4, 20))

    def sure(before, after):
        return compare(series([before] * 3), series([after] * 3), 'lower', kind=steady).p_value

    assert sure(0.02, 0.03) > 0.05 and sure(0.021234, 0.031851) < 1e-6


@pytest.mark.parametrize(
    ('before', 'lost', 'step'), [(5.2, 3.9, 0.1), (3.9, 2.9, 0.1), (52, 38, 1)]
)
def test_equal_values_are_as_sure_as_they_were_rounded(before, lost, step):
    """The variance of three equal logarithms is 0, or next to it: it was known of 5.2 alone."""

    def judged(after):
        found = compare(series([before] * 3), series([after] * 3), 'higher')
        return judge_comparisons([found])[0].word

    assert (judged(lost), judged(before - step)) == ('worse', 'cannot tell')


def test_figures_of_a_family_lend_each_other_the_spread_of_these_runs():
    sides = [(series(noise(seed, 3)), series(noise(seed + 50, 3))) for seed in range(50)]
    within = pool_variance(sides)
    assert within.value == pytest.approx(1e-4, rel=0.2)
    alone, leaning = (
        compare(*sides[0], 'higher', kind=FigureKind((), None, one)) for one in (None, within)
    )
    assert leaning.freedom > 2 * alone.freedom
    assert leaning.single == pytest.approx(1e-4 / (1 - OCCASIONS), rel=0.3)


def test_equal_or_single_values_teach_no_spread_of_these_runs():
    equal, single = series([100.0] * 3), series([100.0])
    assert pool_variance([(equal, equal), (single, single)]) is None
    assert pool_variance([(series([0.0, 1]), equal)]) is None


def test_a_history_takes_over_without_a_step(histories):
    """Its sessions are 1% apart; the runs that are compared by chance hardly at all."""
    near = [series(100 * noise(seed, 3, spread=0.001)) for seed in (1, 2)]
    errors = [
        compare(
            *near, 'higher', histories[0].newest(size), learn([histories[0].newest(size)])
        ).error
        for size in (4, 8, 16, 39)
    ]
    assert errors[0] < 0.9 * errors[-1]
    assert all(0.8 < later / earlier < 2 for earlier, later in itertools.pairwise(errors))


def test_one_session_each_and_nothing_else():
    """The spread within sessions is taken five times, and nothing is ever called the same."""
    day = noise(10, 10)
    both = [series(day[:5], sessions=[0] * 5), series(day[5:], sessions=[0] * 5)]
    found = compare(*both, 'higher')
    within = (both[0].within[0] + both[1].within[0]) / 2
    assert found.error == pytest.approx(5 * math.sqrt(2 * within))
    assert not found.is_seen
    assert judge_comparisons([found], margin=10)[0].word == 'cannot tell'
    slow = compare(both[0], series(day[5:] / 20, sessions=[0] * 5), 'higher')
    assert judge_comparisons([slow])[0].word == 'worse'


def test_one_run_each_and_nothing_else():
    verdict = judge_comparisons([compare(series([1.0]), series([1.0]), 'higher')], margin=0.5)[0]
    assert verdict.word == 'cannot tell'
    assert 'unknown' in verdict.reason or 'too wide' in verdict.reason


def test_history_of_the_kind_alone_is_a_spread(kind):
    found = compare(series([100.0]), series([80.0]), 'higher', kind=kind)
    assert found.term == 'figures of its kind'
    assert found.error == pytest.approx(0.01 * math.sqrt(2), rel=0.1)
    assert judge_comparisons([found])[0].word == 'worse'


def test_equal_values_are_no_proof(histories):
    """Five equal values say nothing of the spread between sessions: the floor and history do."""
    same = series([100.0] * 5)
    alone = judge_comparisons([compare(same, same, 'higher')])[0]
    assert alone.comparison.error >= 0.001
    steady = judge_comparisons([compare(same, same, 'higher', histories[0], learn(histories))])[0]
    assert (steady.word, steady.p_value) == ('same', 1)


@pytest.mark.parametrize('better', ['higher', 'lower'])
def test_verdicts(histories, kind, better):
    values = 100 * noise(11, 10)
    words = [
        judge_comparisons(
            [compare(series(values[:5]), series(by * values[5:]), better, histories[0], kind)]
        )[0]
        for by in (0.9, 1, 1.1)
    ]
    expected = ['worse', 'same', 'better'] if better == 'higher' else ['better', 'same', 'worse']
    assert [one.word for one in words] == expected
    low, high = words[0].interval
    assert low < words[0].comparison.ratio < high < 0.95
    assert words[0].comparison.term == 'the history of the figure and figures of its kind'


def test_undecided_names_the_runs(histories, kind):
    values = 100 * noise(12, 4, spread=0.04)
    wide = [series(100 * one) for one in noise(13, 20, 60, spread=0.04)]
    found = compare(series(values[:2]), series(values[2:]), 'higher', wide[0], learn(wide))
    verdict = judge_comparisons([found])[0]
    assert verdict.word == 'cannot tell'
    assert f'{verdict.more_runs} more runs' in verdict.reason
    rate = 0.01
    assert found.smallest(rate) > 0.05
    assert not found.floor
    for more, is_found in ((verdict.more_runs, True), (verdict.more_runs - 1, False)):
        error = found.error * math.sqrt(2 / (2 + more))
        assert (replace(found, error=error).smallest(rate) <= 0.05) == is_found


def test_more_rounds_leave_what_occasions_differ_by():
    """However many there are: so much of the variance is assumed where no history shows it."""
    found = compare(series([99.0, 100, 101]), series([89.0, 90, 91]), 'higher')
    spread = found.error**2 - found.floor
    assert 0 < spread < found.error**2
    assert found.more_runs(0.001, 1e-4, rounds=True) is None
    # 2% of the spread, and all of what is left: to find it needs ten standard errors or fewer.
    least = math.expm1(10 * math.sqrt(found.floor + spread / 50))
    assert found.more_runs(least, 1e-4, rounds=True) > 0
    assert found.more_runs(least / 4, 1e-4, rounds=True) is None
    assert found.more_runs(least / 4, 1e-4) > 0


def test_smallest_change_is_found_as_often_as_said(histories, kind):
    """By simulation: of changes of that size, 90% are found."""
    rate, before = 1e-4, series(100 * noise(14, 5))
    size = compare(before, before, 'higher', histories[0], kind).smallest(rate)
    days = noise(15, 400, 10)
    p = [
        compare(series(a), series(b / (1 + size)), 'higher', histories[0], kind).p_value
        for a, b in zip(days[:, :5], days[:, 5:], strict=True)
    ]
    assert 0.85 <= np.mean(np.array(p) <= rate) <= 0.97


def test_comparison_is_symmetric_and_has_no_unit(histories, kind):
    old, new = 100 * noise(16, 5), 97 * noise(17, 5)
    there = compare(series(old), series(new), 'higher', histories[0], kind)
    back = compare(series(new), series(old), 'higher', histories[0], kind)
    scaled = compare(
        series(1e6 * old), series(1e6 * new), 'higher', series(1e6 * histories[0].values), kind
    )
    assert (back.change, back.error) == pytest.approx((-there.change, there.error))
    assert back.p_value == pytest.approx(there.p_value)
    assert scaled.p_value == pytest.approx(there.p_value)


def test_larger_changes_are_surer(histories, kind):
    old, new = 100 * noise(18, 5), 100 * noise(19, 5)
    p = [
        compare(series(old), series(by * new), 'higher', histories[0], kind).p_value
        for by in (0.98, 0.95, 0.9, 0.5)
    ]
    assert p == sorted(p, reverse=True)


def test_a_history_in_which_neighbours_are_alike_makes_less_sure(histories, kind):
    stuck = [series(100 * np.repeat(one, 6)) for one in noise(20, 20, 10)]
    values = 100 * noise(21, 10)
    both = series(values[:5]), series(0.95 * values[5:])
    assert (
        compare(*both, 'higher', stuck[0], learn(stuck)).error
        > 1.5 * compare(*both, 'higher', histories[0], kind).error
    )


def test_more_repeats_make_only_the_part_within_sessions_smaller(histories, kind):
    values = 100 * noise(22, 10)
    once = compare(series(values[:1]), series(values[5:6]), 'higher', histories[0], kind)
    many = compare(
        series(values[:5], sessions=[0] * 5),
        series(values[5:], sessions=[0] * 5),
        'higher',
        histories[0],
        kind,
    )
    assert once.error / math.sqrt(5) < many.error < once.error


def test_exact_figures():
    assert judge_comparisons([compare(series([4, 4]), series([4]), 'exact')])[0].word == 'same'
    assert judge_comparisons([compare(series([4, 4]), series([4, 5]), 'exact')])[0].word == 'worse'
    assert judge_comparisons([compare(series([0]), series([0]), 'exact')])[0].word == 'same'


def test_zeros_have_no_ratio():
    for pair in (([0.0], [0.0]), ([1.0, 0.0], [1.0, 1.0]), ([1.0], [0.0])):
        verdict = judge_comparisons([compare(series(pair[0]), series(pair[1]), 'lower')])[0]
        assert (verdict.word, verdict.reason) == (
            'cannot tell',
            'a value is 0, of which there is no ratio',
        )


def test_history_with_zeros_teaches_nothing(kind):
    found = compare(series([1.0] * 5), series([1.0] * 5), 'higher', series([0.0, 1.0]), kind)
    assert 'history' not in found.term


def test_wrong_questions():
    with pytest.raises(AssayError, match="not 'faster'"):
        compare(series([1]), series([1]), 'faster')
    for rate, margin in ((0, 0.05), (1, 0.05), (0.01, 0), (math.nan, 0.05), (0.01, math.nan)):
        with pytest.raises(AssayError, match='a rate is between'):
            judge_comparisons([], rate, margin)
    assert judge_comparisons([]) == []


def test_unchanged_suites_are_silent():
    """20 suites of 40 figures, autocorrelated and with tails: p-values are not too small."""
    random = np.random.default_rng(23)
    alarmed, small, count = 0, 0, 0
    for _ in range(20):
        values = random.standard_t(4, (40, 70))
        for i in range(1, 70):
            values[:, i] += 0.4 * values[:, i - 1]
        values = np.exp(0.01 * values)
        past = [series(one[:60]) for one in values]
        kind = learn(past)
        found = [
            compare(series(one[60:65]), series(one[65:]), 'higher', old, kind)
            for one, old in zip(values, past, strict=True)
        ]
        alarmed += any(one.word in ('worse', 'better') for one in judge_comparisons(found))
        small += sum(one.p_value < 0.01 for one in found)
        count += len(found)
    assert alarmed == 0
    assert small / count < 0.01


# ----- the second stage


def test_suspects_most_suspect_first(histories, kind):
    values = 100 * noise(24, 10)
    found = [
        compare(series(values[:5]), series(by * values[5:]), 'higher', histories[0], kind)
        for by in (1, 0.97, 0.9)
    ]
    assert figures_that_look_changed(found) == [2, 1]


def test_pairs_decide():
    old = 100 * noise(25, 12)
    new = 100 * noise(26, 12)
    known = Variance(1e-4, 20)
    assert decide_by_pairs(old[:4], 0.8 * new[:4], 'higher', spread=known).word == 'worse'
    assert decide_by_pairs(old[:4], 0.8 * new[:4], 'lower', spread=known).word == 'better'
    # How far the runs of a side are apart says how far foursomes are, without a history too.
    assert decide_by_pairs(old[:4], 0.8 * new[:4], 'higher').word == 'worse'
    assert decide_by_pairs(old[:8], 0.95 * new[:8], 'higher', suspects=100).word == 'worse'
    assert decide_by_pairs(old, new, 'higher').word == 'same'
    undecided = decide_by_pairs(old, 0.8 * new * noise(27, 12, spread=0.5), 'higher')
    assert (undecided.word, undecided.more_pairs) == ('cannot tell', 0)


def test_no_decision_between_looks():
    old = 100 * noise(28, 12)
    known = Variance(1e-4, 20)
    waits = [
        decide_by_pairs(old[:n], 0.5 * old[:n], 'higher', spread=known).more_pairs
        for n in range(1, 13)
    ]
    assert waits == [3, 2, 1, 0, 1, 0, 1, 0, 3, 2, 1, 0]
    beyond_budget = np.append(old, [1.0] * 5)
    assert decide_by_pairs(beyond_budget, beyond_budget / 2, 'higher').pairs == 12


def test_a_suspect_is_not_accused_of_the_opposite():
    old = 100 * noise(29, 6)
    assert decide_by_pairs(old, 1.2 * old, 'higher', suspected='worse').word == 'cannot tell'
    assert decide_by_pairs(old, 1.2 * old, 'higher', suspected='better').word == 'better'


def test_an_interval_beyond_all_numbers():
    found = decide_by_pairs([1e-150, 1e150, 1, 1], [1e150, 1, 1e-150, 1], 'higher', suspects=100)
    assert (found.word, found.interval) == (None, (0.0, math.inf))


def test_what_is_behind_a_decision():
    old, new = 100 * noise(25, 12), 98 * noise(26, 12)
    found = decide_by_pairs(old, new, 'higher')
    assert (found.word, found.p_value <= 0.01) == ('worse', True)
    reach = math.log(found.interval[1] / found.interval[0]) / 2
    share = LOOKS[12] * 0.01 / 2
    assert found.error * -special.stdtrit(found.freedom, share) == pytest.approx(reach)
    # The bounds of the interval are where the p-value would be the rate.
    alone = 2 * special.stdtr(found.freedom, math.log(found.ratio) / found.error)
    assert found.p_value == pytest.approx(alone / LOOKS[12])
    assert decide_by_pairs(old[:3], new[:3], 'higher').p_value == 1


def test_more_suspects_need_more_evidence():
    old, new = 100 * noise(30, 12), 98 * noise(31, 12)
    ends = [decide_by_pairs(old, new, 'higher', many).interval for many in (1, 10, 100)]
    assert ends[0][1] < ends[1][1] < ends[2][1]


def test_rate_of_all_looks_together():
    """600 suspects in which nothing changed, each looked at until it is decided."""
    values = noise(32, 600, 60 + 24)
    wrong = 0
    for one in values:
        spread = spread_of_foursomes(np.log(one[:60]))
        for n in LOOKS:
            found = decide_by_pairs(
                one[60 : 60 + n], one[72 : 72 + n], 'higher', rate=0.05, spread=spread
            )
            if found.word in ('worse', 'better'):
                wrong += 1
                break
    assert wrong / 600 < 0.05
    assert sum(LOOKS.values()) < 1


def test_two_modes_are_no_change_though_sides_may_be_of_one_each():
    """2,000 suspects, a hundred of a suite, whose runs have one of two values by lot."""
    drawn = np.random.default_rng(34).random((2000, 2, max(LOOKS))) < 0.25
    wrong = 0
    for old, new in np.where(drawn, 80.0, 100.0) * noise(35, 2000, 2, max(LOOKS)):
        words = [decide_by_pairs(old[:n], new[:n], 'higher', suspects=100).word for n in LOOKS]
        wrong += any(word in ('worse', 'better') for word in words)
    assert wrong == 0


def test_spread_of_foursomes():
    logs = np.log(noise(33, 5000))
    found = spread_of_foursomes(logs)
    assert found.value == pytest.approx(1e-4, rel=0.1)  # (1 + 1 + 1 + 1) / 4 of a run's
    drifting = spread_of_foursomes(logs + np.linspace(0, 50, 5000))
    assert drifting.value == pytest.approx(found.value, rel=0.01)
    assert spread_of_foursomes(logs[:11]) is None


@pytest.mark.parametrize(
    ('before', 'after', 'better', 'words'),
    [
        ([], [], 'higher', 'one value of each'),
        ([1, 2], [1], 'higher', '2 before, 1 after'),
        ([1, 0], [1, 1], 'higher', 'no finite number above 0'),
        ([1, math.nan], [1, 1], 'higher', 'no finite number above 0'),
        ([1], [1], 'exact', "not 'exact'"),
    ],
)
def test_what_pairs_cannot_be(before, after, better, words):
    with pytest.raises(AssayError, match=words):
        decide_by_pairs(before, after, better)


# ----- negative controls


def test_a_machine_that_moved_is_blamed(histories, kind):
    def changed(by, seed):
        values = 100 * noise(seed, 10)
        return compare(series(values[:5]), series(by * values[5:]), 'higher', histories[0], kind)

    clock, still = changed(0.9, 34), changed(1, 35)
    found = judge_comparisons([changed(0.9, 36), changed(0.6, 37), changed(1, 38)])
    assert [one.word for one in found] == ['worse', 'worse', 'same']
    assert moved_controls([still, clock]) == [clock]
    after = [doubt_if_machine_moved(one, [clock], 0.01 / 3, is_fraction=False) for one in found]
    # What fell with the clock is not accused; what fell much further is.
    assert [one.word for one in after] == ['cannot tell', 'worse', 'same']
    assert 'the machine moved' in after[0].reason
    zero = compare(series([0.0]), series([0.0]), 'higher')
    assert moved_controls([zero]) == []


def test_what_got_worse_on_a_better_machine_did_not_follow_it(histories, kind):
    def changed(by, seed, better):
        values = 100 * noise(seed, 10)
        return compare(series(values[:5]), series(by * values[5:]), better, histories[0], kind)

    slower = judge_comparisons([changed(1.1, 36, 'lower')])[0]
    up, down = changed(1.2, 34, 'higher'), changed(0.8, 34, 'higher')
    for controls, is_fraction, word in (
        ([up], False, 'worse'),
        ([down], False, 'cannot tell'),
        ([up, down], False, 'cannot tell'),
        # A latency over that of the socket is greater because the socket is faster.
        ([up], True, 'cannot tell'),
    ):
        assert doubt_if_machine_moved(slower, controls, 0.01, is_fraction).word == word
    faster = judge_comparisons([changed(0.9, 36, 'lower')])[0]
    assert doubt_if_machine_moved(faster, [down], 0.01, is_fraction=False).word == 'better'
    assert doubt_if_machine_moved(faster, [up], 0.01, is_fraction=False).word == 'cannot tell'


# ----- bounds


def test_bounds_are_those_of_a_prediction(histories):
    """With tails that are those of normal runs: t s sqrt(1 + 1/n) around the location."""
    found = bounds(histories, ['higher'] * 20, figures=100)
    assert not any(one.refused for one in found)
    for one, history in zip(found, histories, strict=True):
        normal = stats.norm.isf(0.01 / 100 / 2) * 0.01
        assert one.lower < one.value < one.upper
        assert 0.9 * normal < math.log(one.upper / one.value) < 2.5 * normal
        assert one.sessions == 60
        assert one.spread == pytest.approx(0.01, rel=0.2)
        assert math.log(one.upper / one.value) == pytest.approx(math.log(one.value / one.lower))
        assert one.lower < history.values.min()


def test_bounds_widen_with_the_suite(histories):
    one, many = (bounds(histories, ['higher'] * 20, figures=m)[0] for m in (20, 2000))
    assert many.lower < one.lower
    assert many.upper > one.upper


def test_bounds_are_not_tighter_than_values_are_rounded():
    rounded = series([100.0] * 15 + [101.0] * 5 + [100.0] * 20)
    found = bounds([series([5.0] * 40), rounded], ['higher'] * 2)
    assert found[0].upper == pytest.approx(5.0 * math.exp(math.log(found[0].upper / 5.0)))
    assert found[0].upper >= 5.01
    assert found[1].upper >= found[1].value + 2


@pytest.mark.parametrize(
    ('values', 'better', 'words'),
    [
        (noise(40, 9), 'higher', '9 sessions are too few: 1 more'),
        ([0.0] * 30, 'higher', 'a value is 0'),
        ([1.0] * 29 + [2.0], 'exact', 'several values'),
        (noise(41, 60) * np.where(np.arange(60) < 30, 1, 0.9), 'higher', 'has a step: -'),
        (noise(42, 60) * np.exp(-0.002 * np.arange(60)), 'higher', 'drifts: -'),
        (noise(43, 60) * np.where(np.arange(60) % 3, 1, 0.85), 'higher', 'two modes'),
    ],
)
def test_bounds_refused(values, better, words):
    found = bounds([series(values)], [better])[0]
    assert words in found.refused
    assert better == 'exact' or math.isnan(found.lower)


def test_only_histories_that_are_searched_share_in_the_rate_of_refusals(histories, monkeypatch):
    rates = []
    module = 'assay.results.statistics.bounds'
    monkeypatch.setattr(f'{module}.find_changes', lambda some, rate, _: rates.append(rate) or some)
    monkeypatch.setattr(f'{module}._bounds', lambda *about: None)
    short = [series([1.0, 1.1, 1.2])] * 50
    bounds([*histories, *short], ['higher'] * (len(histories) + 50))
    assert rates == [pytest.approx(0.001 * len(histories))]


def test_bounds_of_wrong_questions(histories):
    for arguments in (
        {'directions': ['higher']},
        {'directions': ['higher'] * 20, 'figures': 5},
        {'directions': ['higher'] * 20, 'rate': 0},
    ):
        with pytest.raises(AssayError):
            bounds(histories, **arguments)
    assert bounds([], []) == []


def test_modes():
    random = np.random.default_rng(44)
    assert not any(has_two_modes(one) for one in random.standard_normal((300, 60)))
    assert has_two_modes(random.standard_normal(60) + 8 * (np.arange(60) % 4 == 0))
    assert not has_two_modes(np.ones(60))
    assert not has_two_modes(np.array([0.0, 1.0] * 4))  # too few


# ----- changes


@pytest.mark.parametrize('first', [10, 35, 60])
def test_a_step_is_found_where_it_is(histories, first):
    slow = noise(45, 70) * np.where(np.arange(70) < first, 1, 0.93)
    (change,) = find_changes([series(slow), *histories])[0]
    assert change.form == 'step'
    assert abs(change.first - first) <= 1
    assert change.earliest <= first <= change.latest
    assert change.ratio == pytest.approx(0.93, rel=0.01)
    assert change.p_value < 0.01


def test_drift_is_found(histories):
    slow = noise(46, 70, spread=0.005) * (1 - 0.002) ** (np.arange(70) / 7)
    (change,) = find_changes([series(slow), *histories])[0]
    assert change.form == 'drift'
    assert change.ratio == pytest.approx(0.98, rel=0.01)


def test_a_drift_of_a_long_history_is_one_drift():
    """Both p-values are 0 there."""
    slow = noise(48, 10_000) * np.exp(np.linspace(0, 0.05, 10_000))
    (change,) = find_changes([series(slow)])[0]
    assert change.form == 'drift'
    assert change.ratio == pytest.approx(math.exp(0.05), rel=0.0015)


def test_two_steps_and_what_came_after_the_last():
    levels = np.repeat([1.0, 0.9, 1.1], 30)
    slow = series(noise(47, 90) * levels)
    found = find_changes([slow])[0]
    assert [change.first for change in found] == pytest.approx([30, 60], abs=1)
    after = since_last_change(slow, found)
    assert after.size == 90 - found[-1].first
    assert since_last_change(slow, ()) == slow


def test_the_newest_sessions_are_so_many_also_where_their_repeats_meet():
    sessions = np.repeat(np.arange(20), 3)
    times = sessions + np.tile([0, 2, 4], 20)
    part = series(100 + sessions, times, sessions).newest(5)
    assert part.size == 5
    assert {*part.values} == {115, 116, 117, 118, 119}


def test_a_step_and_its_repair_are_two_steps():
    slow = series(
        noise(49, 120) * np.where((np.arange(120) >= 60) & (np.arange(120) < 80), 0.95, 1)
    )
    found = find_changes([slow])[0]
    assert [change.first for change in found] == pytest.approx([60, 80], abs=1)
    assert [change.ratio for change in found] == pytest.approx([0.95, 1 / 0.95], abs=0.01)
    assert all(one.earliest <= one.first <= one.latest for one in found)
    # What was learned before the repair is of another state.
    assert since_last_change(slow, found).size == 120 - found[1].first


def test_a_great_step_in_the_last_sessions_is_found_and_outliers_are_none():
    values = noise(50, 94)
    late = series(values * np.where(np.arange(94) < 89, 1, 0.8))
    clean = [series(one) for one in noise(55, 99, 94)]
    assert [one.first for one in find_changes([late, *clean], 0.001)[0]] == [89]
    for wild in ([91, 93], [40, 41]):
        assert find_changes([series(values * np.where(np.isin(np.arange(94), wild), 0.5, 1))]) == [
            ()
        ]


def test_few_of_unchanged_histories_have_a_change():
    clean = [series(one) for one in noise(51, 3000, 50)]
    assert sum(map(bool, find_changes(clean, 0.99))) <= 3
    short = [series(one) for one in noise(52, 1000, 12)]
    assert sum(bool(one.refused) for one in bounds(short, ['higher'] * 1000)) <= 3


@pytest.mark.parametrize(('sessions', 'at'), [(12, 6), (16, 8), (16, 12)])
def test_bounds_refuse_a_great_step_in_a_short_history(sessions, at):
    stepped = np.where(np.arange(sessions) < at, 1, 0.85)
    values = noise(53, 200, sessions)
    values[:100] *= stepped
    refused = [bool(one.refused) for one in bounds([*map(series, values)], ['higher'] * 200)]
    assert sum(refused[:100]) >= 98
    assert sum(refused[100:]) <= 1


def test_changes_do_not_hang_on_unit_or_order_of_series(histories):
    slow = series(noise(48, 70) * np.where(np.arange(70) < 40, 1, 0.9))
    scaled = series(1e9 * slow.values)
    first, last = find_changes([slow, *histories])[0], find_changes([*histories, scaled])[-1]
    assert first[0].first == last[0].first
    assert first[0].p_value == pytest.approx(last[0].p_value)
    assert find_changes(histories[::-1]) == [()] * 20


def test_outliers_and_equal_values_are_no_steps():
    spiky = noise(49, 60)
    spiky[[20, 40]] = 0.1
    assert find_changes([series(spiky)]) == [()]
    assert find_changes([series([3.0] * 60)]) == [()]
    assert find_changes([series([3.0] * 5), series([0.0] * 60)]) == [(), ()]
    assert find_changes([]) == []
    with pytest.raises(AssayError, match='a rate'):
        find_changes([], 0)


@pytest.mark.parametrize('alike', [0, 0.5])
def test_unchanged_histories_show_no_change(alike):
    """1,500 histories of 70 runs: the greatest of all splits is held against the greatest."""
    values = np.random.default_rng(50).standard_normal((1500, 70))
    for i in range(1, 70):
        values[:, i] = alike * values[:, i - 1] + math.sqrt(1 - alike**2) * values[:, i]
    found = find_changes([series(one) for one in np.exp(0.01 * values)])
    assert sum(map(bool, found)) == 0


def test_where_a_drift_begins_is_no_error_with_sessions_of_one_time():
    times = np.minimum(np.arange(40.0), 34) * DAY
    logs = 0.01 * np.maximum(0, np.arange(40) - 20)
    first, earliest, latest = beginning(logs, times)
    assert 15 <= earliest <= first <= latest <= 25


def test_the_greatest_statistic_has_the_distribution_that_is_claimed():
    from assay.results.statistics.changes import _scan

    values = np.random.default_rng(51).standard_normal((6000, 50))
    p = np.array([scan.p_value for scan in _scan(list(values))])
    assert 0.02 < np.mean(p < 0.1) < 0.1
    assert np.mean(p < 0.01) < 0.01
