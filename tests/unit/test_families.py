"""Families of figures: what is tested together, what is said of it, and what stays undecided."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from assay.results.statistics.comparison import compare
from assay.results.statistics.families import (
    FALSE_SHARE,
    FamilyMember,
    _any_of,
    _changed,
    benjamini_hochberg,
    judge_suite,
    pool_by_family,
)
from assay.results.statistics.families import (
    Tested as Group,  # pytest would take the name for tests'
)
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.statistics.series import series

RUNS = 3
FAMILIES, KINDS, FIGURES = 12, 3, 4


class Suite:
    """Figures of families, with a spread of their own each and one of the family."""

    def __init__(self, seed, runs=2 * RUNS, spread=0.03, families=FAMILIES):
        self.random = np.random.default_rng(seed)
        self.family = np.repeat(np.arange(families), KINDS * FIGURES)
        self.kind = np.repeat(np.arange(families * KINDS), FIGURES)
        own = self.random.standard_t(5, (len(self.family), runs))
        shared = self.random.standard_normal((families, runs))[self.family]
        self.logs = spread * (own + 0.5 * shared)

    def slower(self, which, times):
        """Make figures slower after."""
        self.logs[which, RUNS:] += np.log(times)
        return self

    def judged(self, better='lower', unmeasured=()):
        sign = 1 if better == 'lower' else -1
        members = []
        for number, logs in enumerate(self.logs):
            kept = [run for run in range(2 * RUNS) if (number, run) not in unmeasured]
            sides = [
                series(np.exp(sign * logs[runs]), [float(run) for run in runs])
                for runs in (
                    [run for run in kept if run < RUNS],
                    [run for run in kept if run >= RUNS],
                )
            ]
            names = f'family {self.family[number]}', f'kind {self.kind[number]}'
            members.append(FamilyMember(*names, *sides, better))
        return judge_suite(members)


def changed(judged):
    return [one.tested.name for one in judged.families if one.p_value <= SUITE_RATE]


def sides_of(*spreads):
    """Figures whose three sessions before and three after have just these standard deviations."""
    both = [series(np.exp([-one, 0, one])) for one in spreads]
    return [(one, one) for one in both]


def test_figures_that_are_alike_by_chance_weigh_no_more_than_others_are_alike():
    """Two equal variances say nothing of a third where no others are alike."""
    equal = sides_of(0.02, 0.02)
    others = {f'{n}': sides_of(0.001, 0.1, 0.01, 0.3) for n in range(5)}
    alone = pool_by_family({'a': equal})['a']
    beside = pool_by_family({'a': equal, **others})['a']
    assert alone.freedom == 8  # all of its own
    assert 0 < beside.freedom < 1
    assert alone.value == beside.value == pytest.approx(0.02**2 / (stats.chi2.median(4) / 4))


def test_few_figures_have_the_mean_of_their_variances():
    """The mean of logarithms would be far below it; one figure alone leans on nothing."""
    pooled = pool_by_family({'a': sides_of(0.001, 0.001, 0.1), 'b': sides_of(0.1)})
    assert pooled['a'].value == pytest.approx((0.1**2 + 2 * 0.001**2) / 3)
    assert pooled['b'].freedom == 0


def test_a_figure_that_never_varies_says_nothing_of_others():
    """Logarithms of three equal values may differ by rounding, and their variance be 1e-31."""
    never = [(series([7.3] * 3), series([7.3] * 3))]
    families = {'a': sides_of(0.01, 0.02, 0.03), 'b': sides_of(0.01, 0.015)}
    beside = pool_by_family({**families, 'c': [*sides_of(0.01, 0.02), *never]})
    assert beside == pool_by_family({**families, 'c': sides_of(0.01, 0.02)})


@pytest.mark.parametrize('wide', [0.01, 1.0])
def test_half_of_a_family_varies_by_its_prior_or_less(wide):
    """Whatever a few that hardly vary, or vary widely, do to the mean of logarithms."""
    pooled = pool_by_family({'a': sides_of(*[0.0001] * 4, *[0.01] * 5, wide)})
    assert pooled['a'].value >= 0.01**2 / (stats.chi2.median(4) / 4) * 0.999


@pytest.mark.parametrize('members', [4, 8])
def test_families_of_figures_with_two_modes_are_silent(members):
    """All sessions of a side meet one mode now and then, and those after may meet the other."""
    found = []
    for seed in range(8):
        random = np.random.default_rng(seed)
        suite = Suite(seed, families=30)
        suite.family = np.repeat(np.arange(30), members)
        suite.kind = np.arange(30 * members)
        shape = len(suite.kind), 2 * RUNS
        suite.logs = 0.005 * random.standard_normal(shape) + 0.1 * (random.random(shape) < 0.5)
        found += changed(suite.judged())
    assert not found


@pytest.mark.parametrize('better', ['lower', 'higher'])
def test_what_no_figure_tells_alone_a_family_does(better):
    """Each figure varies by 5%: a loss of 35% of a single one cannot be told."""
    suite = Suite(1, spread=0.04)
    suite.slower(suite.family == 4, 1.35)
    judged = suite.judged(better)
    assert changed(judged) == ['family 4']
    of_it = suite.family == 4
    alone = [one.p_value for one in judged.comparisons]
    assert min(alone) > SUITE_RATE / len(alone)
    found = np.array(judged.p_values) <= SUITE_RATE
    assert found[of_it].any() and not found[~of_it].any()
    assert judged.families[0].tested.index.change == pytest.approx(np.log(1.35), rel=0.3)


def test_one_kind_of_a_family_is_told_from_the_others():
    suite = Suite(2)
    suite.slower(suite.kind == 7, 1.4)
    judged = suite.judged()
    assert changed(judged) == ['family 2']
    found = np.flatnonzero(np.array(judged.p_values) <= SUITE_RATE)
    assert {*suite.kind[found]} == {7}
    assert len(found) >= 3


def test_what_moves_in_two_directions_is_found_by_its_kinds():
    suite = Suite(3)
    suite.slower(suite.kind == 0, 1.5).slower(suite.kind == 1, 1 / 1.5)
    judged = suite.judged()
    assert changed(judged) == ['family 0']
    changes = np.array([one.change for one in judged.comparisons])
    found = np.array(judged.p_values) <= SUITE_RATE
    assert (changes[found & (suite.kind == 0)] > 0).all()
    assert (changes[found & (suite.kind == 1)] < 0).all()


def test_most_families_may_change_at_once():
    suite = Suite(4)
    suite.slower(suite.family < 5, 1.5)
    assert {*changed(suite.judged())} == {f'family {number}' for number in range(5)}


def test_where_no_figure_is_sure_by_itself_the_surest_alone_is_told():
    """Adjusted p-values are equal of many figures, whatever each of them did."""
    for seed in range(20):
        suite = Suite(seed, spread=0.05)
        judged = suite.slower(suite.family == 0, 1.15).judged()
        (of_it,) = (one for one in judged.families if one.tested.name == 'family 0')
        if of_it.p_value > SUITE_RATE:
            continue
        for kind in of_it.tested.kinds:
            alone = [judged.comparisons[number].p_value for number in kind.members]
            told = [p for p, n in zip(alone, kind.members, strict=True) if of_it.changed[n] <= 0.05]
            assert told in ([], [min(alone)]) or max(told) <= FALSE_SHARE


def test_a_family_that_is_slower_is_never_called_better_alone():
    """One figure is better beyond doubt, the others look a little worse, and the index is sure."""

    def compared(times):
        return compare(
            series([0.99, 1, 1.01]), series([times * 0.98, times, times * 1.02]), 'lower'
        )

    figures = [compared(times) for times in (0.5, 1.03, 1.04, 1.03)]
    members, index = tuple(range(len(figures))), compared(2)
    of_kind = Group('a', members, index, 2 * index.p_value, True)
    changed = _changed(replace(of_kind, kinds=(of_kind,)), figures)
    assert [number for number in members if changed[number] <= FALSE_SHARE] == [0, 2]


def test_what_is_said_once_is_not_paid_for_twice():
    """A kind of one figure says what the figure does, a family of one kind what the kind does."""
    assert _any_of(0.01, [0.02]) == (0.005, True)
    # Half of 2 / (1 / 0.01 + (1 / 0.001 + 1 / 0.5) / 2)
    assert _any_of(0.01, [0.001, 0.5]) == (pytest.approx(1 / 601), False)
    # Half of 3 / (1 / 0.001 + (1 / 0.01 + 1 / 0.5) / 2 + (1 / 0.002 + 1 / 0.1 + 1 / 0.2) / 3)
    assert _any_of(0.001, [0.01, 0.5], [0.002, 0.1, 0.2]) == (
        pytest.approx(1.5 / (1000 + 51 + 515 / 3)),
        True,
    )
    assert _any_of(0.9, [0.9, 0.8])[0] < 0.5
    assert 0 < _any_of(0.0, [0.0, 1.0])[0] < 1e-299


def test_what_several_show_counts_for_more_than_what_one_does():
    """And never less than the least of them after the correction of Bonferroni."""
    alone, both = _any_of(0.01, [0.01, 0.9])[0], _any_of(0.01, [0.01, 0.01])[0]
    assert both < alone < min(2 * 0.01, 4 * 0.01) / 2


@pytest.mark.parametrize('families', [FAMILIES, 27])
def test_all_families_may_change_at_once(families):
    """However many they are: then their bulk is no spread of what did not change."""
    suite = Suite(4, families=families).slower(slice(None), 1.3)
    assert len(changed(suite.judged())) == families


def test_unchanged_suites_are_silent_without_a_history():
    assert not any(changed(Suite(100 + seed).judged()) for seed in range(30))


def test_outliers_of_figures_are_not_taken_to_cancel_out():
    """What makes them touches many figures at once: 4% of unchanged suites were called changed."""
    judged = Suite(6).judged()
    tails = {one.tested.index.tail for one in judged.families}
    assert tails == {one.tail for one in judged.comparisons}


def test_what_was_not_measured_in_each_session_counts_all_the_same():
    suite = Suite(5)
    suite.slower(suite.family == 1, 1.4)
    missing = {(number, number % 6) for number in range(len(suite.logs))}
    assert changed(suite.judged(unmeasured=missing)) == ['family 1']


def test_counts_and_figures_with_zeros_are_in_no_family():
    plain = FamilyMember('a', 'a', series([1.0, 1.01]), series([1.0, 1.01]), 'lower')
    count = FamilyMember('a', 'a', series([5.0] * 2), series([6.0] * 2), 'exact')
    empty = FamilyMember('a', 'a', series([0.0, 1]), series([0.0, 1]), 'lower')
    judged = judge_suite([count, plain, empty])
    assert judged.families[0].tested.members == (1,)
    assert judged.p_values == [0, 0.5, 1]  # one-sided


@pytest.mark.parametrize('values', [(5e-324, 1e300), (1e300, 5e-324)])
def test_a_change_beyond_all_numbers_is_one(values):
    before, after = (series([value] * RUNS) for value in values)
    (family,) = judge_suite([FamilyMember('a', 'a', before, after, 'lower')]).families
    assert (family.tested.index.change > 0) == (values[1] > values[0])


def test_a_family_is_no_surer_than_clocks_and_rounding_are():
    """All changed by 0.02%, and by a hundredth of that from session to session."""
    random = np.random.default_rng(7)
    members = []
    for number in range(10):
        before, after = (
            series(middle * (1 + 2e-6 * random.standard_normal(RUNS))) for middle in (100, 100.02)
        )
        members.append(FamilyMember(f'{number % 2}', 'a', before, after, 'lower'))
    assert not changed(judge_suite(members))


@pytest.mark.filterwarnings('error')
def test_a_history_with_a_zero_is_none():
    sides = series([1.0, 1.01, 1.02]), series([1.01, 1.02, 1.0])
    with_zero = FamilyMember('a', 'a', *sides, 'lower', series([0.0, 1, 1]))
    without = FamilyMember('a', 'a', *sides, 'lower')
    found = [judge_suite([one]).families[0] for one in (with_zero, without)]
    assert found[0].p_value == found[1].p_value


def test_one_run_each_tells_nothing_without_a_history():
    members = [
        FamilyMember('a', str(one), series([1.0]), series([9.0]), 'lower') for one in range(9)
    ]
    assert not changed(judge_suite(members))
    assert judge_suite([]).families == []


def test_a_family_is_no_surer_of_occasions_than_its_worst_member_is():
    rng = np.random.default_rng(12)
    sides = [[series(np.exp(0.01 * rng.standard_normal(3))) for _ in 'ab'] for _ in range(4)]

    def error(*shares):
        members = [
            FamilyMember('a', str(number), *both, 'lower', occasions=share)
            for number, (both, share) in enumerate(zip(sides, shares, strict=True))
        ]
        return judge_suite(members).families[0].tested.index.error

    low, mixed, high = error(*[0.25] * 4), error(0.25, 0.25, 0.5, 0.25), error(*[0.5] * 4)
    assert low < 0.9 * mixed and mixed == pytest.approx(high, rel=0.1)


def test_shares_of_false_findings_as_elsewhere():
    p_values = np.random.default_rng(6).uniform(0, 0.2, 40)
    mine = benjamini_hochberg(p_values)
    assert mine == pytest.approx(stats.false_discovery_control(p_values))
    assert 0 < FALSE_SHARE < 1
