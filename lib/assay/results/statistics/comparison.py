"""Is a figure worse than before: by how much, how sure, and what could have been found?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from assay import AssayError
from assay.results.statistics import special
from assay.results.statistics.multiplicity import SUITE_RATE, holm
from assay.results.statistics.series import Series, ratio, trimmed_mean
from assay.results.statistics.spread import (
    ENOUGH_HISTORY,
    FLOOR,
    NO_KIND,
    OCCASIONS_FREEDOM,
    UNSEEN_TAIL,
    FigureKind,
    Variance,
    history_variance,
    learn,
    moderate,
    probability_beyond,
    quantile,
    session_inflation,
    unseen_session_inflation,
)

Better = Literal['higher', 'lower', 'exact']
Word = Literal['worse', 'better', 'same', 'cannot tell']

#: What is within this, to either side, is called the same, unless another margin is asked for.
MARGIN = 0.05
#: How often the smallest change that is stated would be found.
POWER = 0.9
#: How far sessions may be apart, in standard deviations of the repeats within one, where nothing
#: else shows it. Elsewhere 2.8% within and 14.8% between jobs were measured.
UNSEEN = 5.0
#: What the compared runs show of their own spread weighs no more than this beside a history.
MOST_UNSEEN = 6.0
#: Of single sessions this share is anywhere: it met a spell, or is of another mode. Where no
#: history shows how many are, a side of one session proves no more than that.
OUTLYING = 0.05
#: Sessions of a history that may be of one spell: what the compared runs show by themselves,
#: without it, is enough for doubt.
SHORT_HISTORY = 4
#: Nobody is told to run more often than this.
MOST_RUNS = 1000


@dataclass(frozen=True)
class Comparison:
    """One figure in runs before and after.

    :param better: the direction in which the figure improves.
    :param sizes: sessions before and after.
    :param change: natural logarithm of after over before; NaN if there is no ratio.
    :param error: its standard error.
    :param freedom: degrees of freedom of the error.
    :param tail: degrees of freedom of the tails of single locations.
    :param p_value: two-sided, of no change, for this figure alone.
    :param term: where the error comes from.
    :param single: variance of the location of one session.
    :param alike: by how much locations vary more than those of independent sessions.
    :param floor: the part of the error's square that more sessions of the same occasion leave.
    :param least_p: what it proves at most, as a p-value: a side of one session may be an outlier.
    :param short_sighted_p: the p-value without a short history, by the spread that the compared
        runs show: it proves nothing, and is enough for doubt; otherwise 1.
    :param reason: why it cannot be decided whatever the numbers are; empty if it can.
    """

    better: Better
    sizes: tuple[int, int]
    change: float
    error: float
    freedom: float
    tail: float
    p_value: float
    term: str
    single: float = 0.0
    alike: float = 1.0
    floor: float = 0.0
    least_p: float = 0.0
    short_sighted_p: float = 1.0
    reason: str = ''

    @property
    def ratio(self) -> float:
        """After over before; infinite beyond all numbers."""
        return ratio(self.change)

    @property
    def slowdown(self) -> float:
        """By how much the figure got worse, as a logarithm."""
        return -self.change if self.better == 'higher' else self.change

    @property
    def proven_p(self) -> float:
        """The p-value, or what may be by chance however small that is."""
        return max(self.p_value, self.least_p)

    @property
    def is_seen(self) -> bool:
        """Whether a spread between sessions was ever measured for it."""
        return not self.term.startswith(UNKNOWN)

    def quantile(self, probability: float) -> float:
        """How many standard errors lie above this (small) probability."""
        return quantile(probability, self.freedom, self.tail)

    def interval(self) -> tuple[float, float]:
        """After over before, from and to (95%)."""
        reach = self.quantile(0.025) * self.error
        return ratio(self.change - reach), ratio(self.change + reach)

    def smallest(self, rate: float) -> float:
        """The smallest change, as a fraction, that this much data finds (:data:`POWER`).

        Infinite where it is beyond all numbers: of two runs that no history stands beside.

        :param rate: two-sided error rate of this figure alone.
        """
        reach = self.quantile(rate / 2) + float(special.stdtrit(self.freedom, POWER))
        return ratio(reach * self.error) - 1

    def more_runs(self, change: float, rate: float, rounds: bool = False) -> int | None:
        """How many more sessions, before and after, would find a change; None if too many.

        :param change: as a fraction, such as 0.03.
        :param rate: two-sided error rate of this figure alone.
        :param rounds: whether they are after alone, and follow these: then they are of the same
            occasion, and what occasions may differ by stays.
        """
        floor, of_sessions = 0.0, self.single * self.alike
        if rounds:
            floor = self.floor
            of_sessions = max(0.0, self.error**2 - floor) / sum(1 / n for n in self.sizes)

        def is_found(more: int) -> bool:
            its = [self.sizes[0] + (0 if rounds else more), self.sizes[1] + more]
            freedom = self.freedom
            variance = floor + of_sessions * sum(1 / n for n in its)
            if floor:  # they show the spread of sessions, too
                seen = 1 / max(1e-9, 1 / freedom - _unsure_of_occasions(floor, self.error**2))
                freedom = 1 / (1 / (seen + more) + _unsure_of_occasions(floor, variance))
            reach = quantile(rate / 2, freedom, self.tail)
            reach += float(special.stdtrit(freedom, POWER))
            return reach * math.sqrt(variance) <= math.log1p(change)

        if self.smallest(rate) <= change:
            return 0
        if not of_sessions or not is_found(MOST_RUNS):
            return None
        low, high = 0, MOST_RUNS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_found(middle) else (middle, high)
        return high


@dataclass(frozen=True)
class FigureVerdict:
    """The verdict on one figure, and the numbers behind it.

    :param p_value: adjusted for all figures of the suite.
    :param interval: 95%, of after over before, for this figure alone.
    :param smallest: the smallest change, as a fraction, found with a power of 90% at the suite's
        rate, by this figure alone.
    :param more_runs: sessions more, before and after, that would find ``margin``; None if no
        number of them would.
    :param reason: why it is not decided, in words; empty otherwise.
    """

    word: Word
    comparison: Comparison
    p_value: float
    interval: tuple[float, float]
    smallest: float
    more_runs: int | None
    reason: str = ''


#: What is said of the error beside where it comes from.
OCCASIONS_ASSUMED = '; how far occasions are apart is not known here, and assumed'
THESE_RUNS = 'these runs, and figures of their family in them'
UNKNOWN = 'one occasion: no history and no other run says how far sessions are apart'


def compare(
    before: Series,
    after: Series,
    better: Better,
    history: Series | None = None,
    kind: FigureKind | None = None,
) -> Comparison:
    """The change of one figure, and its error: the spread between sessions, never within one.

    :param history: other runs of the same figure, in which nothing changed.
    :param kind: what histories of figures of its kind have in common.
    :raises AssayError: if the direction is none.
    """
    if better not in ('higher', 'lower', 'exact'):
        raise AssayError(f'a figure gets better higher, lower or exact, not {better!r}')
    sizes = (before.size, after.size)
    if better == 'exact':
        return _exact(before, after)
    if not (before.has_logarithms and after.has_logarithms):
        reason = 'a value is 0, of which there is no ratio'
        return Comparison(better, sizes, math.nan, math.nan, 1, 1, 1, 'none', reason=reason)
    usable = history is not None and history.has_logarithms and history.size > 1
    past = history if usable else None
    kind = kind or learn([past] if past else [])
    old, new = before.locations, after.locations
    single, term = single_variance([before, after], past, kind)
    windows = kind.windows(min(sizes))
    tail = windows.tail if windows else _unseen_tail(min(sizes))
    own = past.locations if past else None
    factor_of = {
        n: session_inflation(n, own, kind, unseen_session_inflation(n, kind.occasions))
        for n in set(sizes)
    }
    factors = [factor_of[n] for n in sizes]
    variances = [
        single.value * factor.value * _repeats(side, past, single) / n
        for factor, side, n in zip(factors, (before, after), sizes, strict=True)
    ]
    floor = 0.0
    if not kind.windows(2) and not term.startswith(UNKNOWN):
        term += OCCASIONS_ASSUMED
        if not term.startswith(THESE_RUNS):
            # A short history met few occasions.
            met = max((len(one) for one in kind.logs), default=past.size if past else 0)
            unmet = kind.occasions * max(0.0, 1 - met / ENOUGH_HISTORY)
            variances = [one / (1 - unmet) for one in variances]
        floor = kind.occasions * sum(
            one / factor.value * n for one, factor, n in zip(variances, factors, sizes, strict=True)
        )
    change = float(trimmed_mean(new) - trimmed_mean(old))
    # The relative variances of factors add up, and each is 2 over its degrees of freedom.
    unsure = 1 / min(one.freedom for one in factors)
    if floor:
        unsure = _unsure_of_occasions(floor, sum(variances))
    found = Comparison(
        better,
        sizes,
        change,
        math.sqrt(sum(variances)),
        1 / (1 / single.freedom + unsure),
        tail,
        1.0,
        term,
        single.value,
        max(one.value for one in factors),
        floor,
        OUTLYING if min(sizes) == 1 and term.startswith(THESE_RUNS) else 0.0,
    )
    sessions = max([len(one) for one in kind.logs] + [past.size if past else 0])
    if 0 < sessions < SHORT_HISTORY:
        unseen = replace(NO_KIND, within=kind.within, occasions=kind.occasions)
        without = compare(before, after, better, None, unseen)
        found = replace(found, short_sighted_p=without.p_value if without.is_seen else 1.0)
    return replace(found, p_value=_p_value(found))


def _unsure_of_occasions(floor: float, variance: float) -> float:
    """1 over the degrees of freedom of an error's square with an assumed part, that of occasions.

    Of that part alone it is not known how large it is.
    """
    return (floor / variance) ** 2 / OCCASIONS_FREEDOM


def with_error(one: Comparison, error: float) -> Comparison:
    """A comparison with another standard error."""
    found = replace(one, error=error)
    return replace(found, p_value=_p_value(found))


def judge_comparisons(
    comparisons: Iterable[Comparison],
    rate: float = SUITE_RATE,
    margin: float = MARGIN,
    adjusted: Sequence[float] | None = None,
) -> list[FigureVerdict]:
    """A verdict on each figure of a suite; the rate is that of the suite as a whole.

    Of suites in which nothing changed, at most ``rate`` have any figure that is called changed.
    *Same* is said if the 95% interval lies inside the margin (two one-sided tests at 2.5%:
    Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).

    :param margin: as a fraction: 0.05 is from 1/1.05 to 1.05.
    :param adjusted: the p-value of each, adjusted for the suite; by Holm's method without them.
    :raises AssayError: if rate or margin are not above 0, or the rate is not below 1.
    """
    if not 0 < rate < 1 or not margin > 0:
        raise AssayError('a rate is between 0 and 1, and a margin is above 0')
    found = list(comparisons)
    if adjusted is None:
        adjusted = holm([one.proven_p for one in found]).tolist()
    alone = rate / max(1, len(found))
    return [
        _verdict(one, float(p), rate, alone, margin) for one, p in zip(found, adjusted, strict=True)
    ]


def _verdict(one: Comparison, p: float, rate: float, alone: float, margin: float) -> FigureVerdict:
    if one.better == 'exact':
        word: Word = 'worse' if one.p_value == 0 else 'same'
        ends = (one.ratio, one.ratio)
        return FigureVerdict(word, one, p, ends, 0.0, 0)
    if one.reason:
        nothing = (math.nan, math.nan)
        return FigureVerdict('cannot tell', one, p, nothing, math.inf, None, one.reason)
    ends = one.interval()
    smallest, more = one.smallest(alone), one.more_runs(margin, alone)
    if one.least_p > rate:
        smallest, more = math.inf, max(1, more) if more is not None else None
    if p <= rate:
        is_better = (one.change > 0) == (one.better == 'higher')
        return FigureVerdict('better' if is_better else 'worse', one, p, ends, smallest, more)
    if one.is_seen and 1 / (1 + margin) < ends[0] and ends[1] < 1 + margin:
        return FigureVerdict('same', one, p, ends, smallest, more)
    if not one.is_seen:
        reason = 'the spread between sessions is unknown: measure on several occasions'
    elif one.least_p > rate:
        reason = 'a side of one run may be an outlier: run again'
    elif more is None:
        reason = f'no number of runs would tell {margin:.0%}: the spread is too wide'
    elif more:
        reason = f'{more} more runs before and after would tell {margin:.0%}'
    else:
        reason = f'the interval reaches over the margin of {margin:.0%}'
    return FigureVerdict('cannot tell', one, p, ends, smallest, more, reason)


def _exact(before: Series, after: Series) -> Comparison:
    """A figure that must not change at all: each value of all runs is the same, or it is worse."""
    values = np.unique(np.concatenate([before.values, after.values]))
    sizes = (before.size, after.size)
    if len(values) == 1:
        return Comparison('exact', sizes, 0.0, 0.0, 1, 1, 1.0, 'none: it is exact')
    old, new = float(np.median(before.values)), float(np.median(after.values))
    change = math.log(new) - math.log(old) if old > 0 and new > 0 else math.nan
    return Comparison('exact', sizes, change, 0.0, 1, 1, 0.0, 'none: it is exact')


def single_variance(
    samples: Iterable[Series], past: Series | None, kind: FigureKind
) -> tuple[Variance, str]:
    """The variance of one session's location, and where it comes from, in words.

    :param samples: what is compared: each is taken to be unchanged in itself.
    :param past: the history of the figure.
    """
    sides = list(samples)
    known = kind.variance if kind.variance and kind.variance.freedom else None
    here = _of_these_runs(sides, kind)
    if not past and not known:
        if here is None:
            return _of_repeats(sides), UNKNOWN
        return here, THESE_RUNS
    own = []
    if here:
        # It gives way as the history grows.
        own.append(replace(here, freedom=min(here.freedom, MOST_UNSEEN)))
    term = 'these runs'
    if past:
        own.append(history_variance(past.locations, kind))
        term = 'the history of the figure'
    if not past and known and not own:
        return known, 'figures of its kind'
    freedom = sum(one.freedom for one in own)
    value = sum(one.value * one.freedom for one in own) / freedom
    found = Variance(max(value, FLOOR**2), max(1.0, freedom))
    if known and len(kind.logs) > 1:
        return moderate(found, known), f'{term} and figures of its kind'
    return found, term


def _of_these_runs(sides: Sequence[Series], kind: FigureKind) -> Variance | None:
    """The variance of a session that the runs which are compared show; None of one run a side.

    Sessions in a row are alike: how far occasions are apart comes on top. Values that were
    rounded are no surer than half a step; that they are equal proves no more.
    """
    squares = freedom = 0.0
    floor = max([FLOOR, *(side.step / 2 for side in sides)])
    for side in sides:
        if side.size > 1:
            squares += float(np.var(side.locations, ddof=1)) * (side.size - 1)
            freedom += side.size - 1
    prior = kind.within if kind.within and kind.within.freedom else None
    if freedom:
        own = Variance(max(squares / freedom, FLOOR**2), freedom)
        found = moderate(own, prior) if prior else own
    elif prior:
        found = prior
    else:
        return None
    return Variance(max(found.value, floor**2) / (1 - kind.occasions), found.freedom)


def _of_repeats(sides: Iterable[Series]) -> Variance:
    """The variance that repeats within one session on each side show, or an assumed one."""
    squares = freedom = 0.0
    for side in sides:
        value, more = side.within
        squares, freedom = squares + value * more, freedom + more
    if not freedom:
        return Variance(1.0, 1.0)
    return Variance(max(UNSEEN**2 * squares / freedom, FLOOR**2), freedom)


def _unseen_tail(size: int) -> float:
    """Degrees of freedom of the tails of a location where no history shows them.

    The middle of three needs two outliers to be one, which doubles the exponent of its tails. A
    mean of figures has no lighter ones: what makes outliers touches many at once.
    """
    return UNSEEN_TAIL * (2 if size > 2 else 1)


def _repeats(side: Series, past: Series | None, single: Variance) -> float:
    """The factor on the variance of a session's location for another number of repeats a session.

    Repeats make only that part smaller that lies within sessions. That part is taken to be as small
    as it may be (90%) where there are more repeats than in the history.
    """
    if past is None:
        return 1.0
    fewer = past.repeats / side.repeats
    within, freedom = side.within
    if not freedom or math.isclose(fewer, 1):
        return 1.0
    share = within / past.repeats / single.value
    if fewer < 1:
        share /= float(special.fdtri(freedom, single.freedom, 0.9))
    return 1 + min(1.0, share) * (fewer - 1)


def _p_value(one: Comparison) -> float:
    if one.change == 0:
        return 1.0
    return min(1.0, 2 * probability_beyond(abs(one.change) / one.error, one.freedom, one.tail))
