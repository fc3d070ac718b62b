"""The spread between runs: of one figure, of its kind, and of locations of several runs.

Runs near in time are alike: a machine has spells, and figures have modes. So the location of n
runs is further off than independent runs would let it be, and how much further is measured on
windows of n successive sessions in the history, where nothing changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from assay.results.statistics import special
from assay.results.statistics.series import Floats, Series, trimmed_mean

#: A session's location is never taken to be surer than this, in logarithms: clocks, turbo and
#: rounding in reports move figures by as much, whatever a few equal values say.
FLOOR = 0.001
#: Sessions that a history must have to show how alike neighbours are. Spells of hours and modes are
#: not all in a shorter one: with 20 or 30, more than 1% of unchanged suites were called changed.
ENOUGH_HISTORY = 40
#: Windows that do not overlap, over all figures of a kind, that measure how alike neighbours are.
ENOUGH_WINDOWS = 10
#: More degrees of freedom than this are as good as all.
MANY = 1000.0
#: Degrees of freedom of tails where no history shows them: figures of programs have outliers.
UNSEEN_TAIL = 5.0
#: Where no history shows it, so much of the variance of sessions is that between occasions, which
#: all sessions of a side have in common: runs of ten minutes meet one spell of the machine. Of 66
#: sessions of an unchanged shared machine the differences between adjacent threes show 0.2; where
#: the load changed every few minutes, less calls more pairs changed that are not
#: (docs/measurements.md).
OCCASIONS = 0.5
#: The same share of ratios to a control that is measured in between: what else an occasion does, it
#: does to both. Of 33 occasions on two machines 0 to 0.3 was seen, where rates show 0.3 to 0.8.
OCCASIONS_BESIDE_CONTROL = 0.25
#: Degrees of freedom of these shares: machines differ.
OCCASIONS_FREEDOM = 30.0
#: Degrees of freedom of tails that are tried.
TAILS = (3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 30.0, MANY)


@dataclass(frozen=True)
class Variance:
    """A variance and its degrees of freedom."""

    value: float
    freedom: float


@dataclass(frozen=True)
class Windows:
    """Locations of n successive sessions of a history.

    :param inflation: n times their variance over that of single sessions: 1 for means of
        independent runs, n for runs that are all alike.
    :param tail: degrees of freedom of Student's t that they are distributed by.
    """

    inflation: Variance
    tail: float


@dataclass(frozen=True, eq=False)
class FigureKind:
    """Figures that are alike: their histories teach what one of them has too few runs to show.

    :param logs: the locations of sessions in each history, natural logarithms.
    :param variance: the variance that figures of this kind have, as a prior; None if no history has
        two sessions.
    :param within: the variance of sessions that follow each other, within the sides of what is
        compared, of figures that are alike; None if no side has two sessions.
    :param occasions: the share of variance that is taken to be between occasions where no history
        shows it.
    """

    logs: tuple[Floats, ...]
    variance: Variance | None
    within: Variance | None = None
    occasions: float = OCCASIONS
    _windows: dict[int, Windows | None] = field(default_factory=dict, repr=False)

    def windows(self, n: int) -> Windows | None:
        """How locations of n successive sessions vary; None if the histories are too short."""
        if n not in self._windows:
            self._windows[n] = _windows(self.logs, n)
        return self._windows[n]


#: The kind of figures without any history.
NO_KIND = FigureKind((), None)


def learn(histories: Iterable[Series], within: Variance | None = None) -> FigureKind:
    """Learn what figures of one kind have in common, from runs in which nothing changed.

    :param histories: one for each figure; those with zeros or a single session teach nothing.
    :param within: as of :class:`FigureKind`.
    """
    logs = tuple(one.locations for one in histories if one.has_logarithms and one.size > 1)
    kind = FigureKind(logs, None, within)
    variances = [history_variance(one, kind) for one in logs]
    return replace(kind, variance=prior(variances) if variances else None)


def history_variance(logs: Floats, kind: FigureKind) -> Variance:
    """The variance of single sessions in a history.

    Of sessions that are alike, fewer count: the degrees of freedom are those of independent ones
    that would tell as much.
    """
    n = len(logs)
    longest = kind.windows(max(1, n // 8))
    alike = max(1.0, longest.inflation.value) if longest else 1.0
    return Variance(max(float(np.var(logs, ddof=1)), FLOOR**2), max(1.0, (n - 1) / alike))


def moderate(own: Variance, before: Variance) -> Variance:
    """A variance that leans on a prior, each by its degrees of freedom.

    s~^2 = (d0 s0^2 + d s^2) / (d0 + d) with d0 + d degrees of freedom: Smyth, Statistical
    Applications in Genetics and Molecular Biology 3 (2004), article 3, equation for the posterior
    variance in section 3.
    """
    freedom = own.freedom + before.freedom
    value = (own.value * own.freedom + before.value * before.freedom) / freedom
    return Variance(value, min(freedom, MANY))


def prior(variances: Sequence[Variance], alike: float | None = None) -> Variance:
    """The common variance s0^2 of figures, and how alike they are, d0: Smyth, section 6.2.

    The moments of log s^2 are matched to those of a scaled F distribution. One figure alone is its
    own prior and weighs nothing, and no prior weighs more than all that it was learned from.

    :param variances: one for each figure, above 0.
    :param alike: d0, where more figures than these show it.
    """
    if len(variances) < 2:
        return Variance(variances[0].value, 0.0)
    if alike is None:
        alike = prior_freedom([variances])
    most = min(MANY, sum(one.freedom for one in variances))
    mean = float(_unbiased_logs(variances).mean())
    if alike > MANY:
        return Variance(math.exp(mean), most)
    half = alike / 2
    common = math.exp(mean + float(special.digamma(half)) - math.log(half))
    return Variance(common, min(alike, most))


def prior_freedom(groups: Iterable[Sequence[Variance]]) -> float:
    """How alike the variances of figures of a group are, d0, as all groups together show it.

    The same moments, of each group about its own mean. Infinite if they differ by no more than
    chance lets them.

    :param groups: at least one has two figures.
    """
    excess, degrees = 0.0, 0
    for variances in groups:
        logs, more = _unbiased_logs(variances), len(variances) - 1
        halves = [one.freedom / 2 for one in variances]
        by_chance = float(special.polygamma(1, halves).mean())
        excess += float(((logs - logs.mean()) ** 2).sum()) - more * by_chance
        degrees += more
    return 2 * _inverse_trigamma(excess / degrees) if excess > 0 else math.inf


def _unbiased_logs(variances: Iterable[Variance]) -> Floats:
    """Logarithms of variances without the bias of those of few degrees of freedom."""
    value, freedom = np.array([(one.value, one.freedom) for one in variances]).T
    found: Floats = np.log(value) - special.digamma(freedom / 2) + np.log(freedom / 2)
    return found


def _inverse_trigamma(value: float) -> float:
    """Newton's iteration of the same source's appendix."""
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
        x += step
        if abs(step) < 1e-8 * x:
            break
    return x


def inflation(logs: Floats, n: int) -> Variance | None:
    """n times the variance of locations of n successive sessions, over that of single ones.

    Windows overlap, which makes them worth half as many again as those that do not (Meketon and
    Schmeiser, Winter Simulation Conference 1984). None if fewer than four fit, or the history is
    shorter than ``ENOUGH_HISTORY``, or all values are equal.

    :param logs: shape (N,), locations of sessions in order of time.
    """
    if len(logs) < max(4 * n, ENOUGH_HISTORY) or np.ptp(logs) == 0:
        return None
    value = float(_inflations(logs[None], _locations(logs[None], n), n)[0])
    return Variance(max(value, 0.01), _freedom(len(logs), n))


def _locations(logs: Floats, n: int) -> Floats:
    """Locations of windows of n successive sessions, from shape (F, N) to (F, N - n + 1).

    Of long windows not all: neighbours that have 99% of their sessions in common tell the same.
    """
    return (
        logs if n == 1 else trimmed_mean(sliding_window_view(logs, n, axis=1)[:, :: 1 + n // 100])
    )


def _inflations(logs: Floats, places: Floats, n: int) -> Floats:
    """``inflation`` of several series of one length, of the locations of windows of n sessions."""
    size = logs.shape[1]
    # Each window is a part of all that it is held against: that hides n / size.
    found: Floats = places.var(axis=1) / (1 - n / size) / logs.var(axis=1, ddof=1) * n
    return found


def _freedom(size: int, n: int) -> float:
    return 1.5 * (size / n - 1)


def unseen_session_inflation(n: int, occasions: float) -> Variance:
    """``session_inflation`` where no history is long enough: with an assumed share of occasions."""
    value = occasions * n + (1 - occasions) * _OF_LOCATION.get(n, 1.13)
    return Variance(value, OCCASIONS_FREEDOM)


#: n times the variance of the location of n normal values, over that of one: the middle ones of
#: three and four are less efficient than their mean (order statistics; of more it is within 2%).
_OF_LOCATION = {1: 1.0, 2: 1.0, 3: 1.346, 4: 1.192}


def session_inflation(
    n: int, own: Floats | None, kind: FigureKind, unseen: Variance | None = None
) -> Variance:
    """How much more the location of n successive sessions varies than that of independent ones.

    The larger of what its kind shows and what the figure's own history shows, which leans on its
    kind. Where histories are too short for n, what is known of fewer sessions is the least.

    :param unseen: what it is where nothing is known; None if all sessions count as one then.
    """
    unseen = unseen or Variance(float(n), MANY)
    if n == 1:
        return Variance(1.0, MANY)
    size = n
    while not (windows := kind.windows(size)):
        size //= 2
        if size < 2:
            return unseen
    mine = inflation(own, size) if own is not None else None
    if mine is None:
        # One figure alone shows nothing of others.
        return windows.inflation if windows.inflation.freedom else unseen
    both = moderate(mine, windows.inflation)
    return Variance(max(windows.inflation.value, both.value), both.freedom)


def _windows(histories: tuple[Floats, ...], n: int) -> Windows | None:
    groups: dict[int, list[Floats]] = {}
    for logs in histories:
        if len(logs) >= max(4 * n, ENOUGH_HISTORY) and np.ptp(logs) > 0:
            groups.setdefault(len(logs), []).append(logs)
    if sum(_freedom(size, n) * len(group) for size, group in groups.items()) < ENOUGH_WINDOWS:
        return None
    stacks = [np.array(group) for group in groups.values()]
    places = [_locations(stack, n) for stack in stacks]
    own = [np.maximum(_inflations(*pair, n), 0.01) for pair in zip(stacks, places, strict=True)]
    freedom = [np.full(len(stack), _freedom(stack.shape[1], n)) for stack in stacks]
    values, weights = np.concatenate(own), np.concatenate(freedom)
    mean = float(np.average(values, weights=weights))
    alike = prior([Variance(*pair) for pair in zip(values.tolist(), weights.tolist(), strict=True)])
    common = Variance(mean, alike.freedom)
    standard = []
    for stack, place, mine, weight in zip(stacks, places, own, freedom, strict=True):
        # As a comparison would standardise them.
        leaning = (mine * weight + mean * common.freedom) / (weight + common.freedom)
        scale = np.sqrt(stack.var(axis=1, ddof=1) * np.maximum(mean, leaning) / n)
        z = (place - np.median(stack, axis=1, keepdims=True)) / scale[:, None]
        # By the spread of the others: an outlier is not to be made smaller by itself.
        size = stack.shape[1]
        standard.append((z * np.sqrt((size - 2) / np.maximum(size - 1 - z**2, 0.5))).ravel())
    return Windows(common, tail(np.concatenate(standard), n))


def tail(standard: ArrayLike, alike: int = 1) -> float:
    """Degrees of freedom of Student's t of variance 1 whose tails reach as far as values do.

    Held against the values that the outermost ten go beyond, and thrice as many, up to 3% of all:
    the body says nothing of tails. The heaviest counts. Where figures of a suite differ, these are
    the tails of their mixture, which is what a rate for the whole suite is about.

    :param standard: values of standard deviation 1 around 0.
    :param alike: how many neighbours are worth one value.
    """
    sizes = np.sort(np.abs(np.asarray(standard, dtype=np.float64)))
    heaviest = MANY
    share = 10 * alike / len(sizes)
    while share < 0.03:
        reach = float(np.quantile(sizes, 1 - share))
        enough = [
            freedom
            for freedom in TAILS
            if -special.stdtrit(freedom, share / 2) * math.sqrt((freedom - 2) / freedom) >= reach
        ]
        heaviest = min(heaviest, max(enough, default=TAILS[0]))
        share *= 3
    return heaviest


def probability_beyond(far: float, freedom: float, tail: float) -> float:
    """The probability of a location further off than this, to one side.

    A location with tails of Student's t, over an error that is estimated as a mean of squares: the
    probability of a location so far off for every error, by how likely this one is. It is never
    less than that of Student's t for normal locations.

    :param far: in standard errors, above 0.
    :param freedom: degrees of freedom of the error.
    :param tail: degrees of freedom of the locations, as ``Windows.tail``.
    """
    plain = float(special.stdtr(freedom, -far))
    if tail >= MANY:
        return plain
    errors, weights = _errors(freedom)
    scale = math.sqrt((tail - 2) / tail)
    return max(plain, float(weights @ special.stdtr(tail, -far / scale * errors)))


@lru_cache(maxsize=4096)
def quantile(probability: float, freedom: float, tail: float) -> float:
    """How many standard errors off a location has this probability of being, to one side."""
    if probability >= 0.5:
        return 0.0
    high = -float(special.stdtrit(freedom, probability))
    if tail >= MANY:
        return high
    # Nearly straight in logarithms. (scipy.optimize would take longer to load than all of this.)
    places = [math.log(high), math.log(high) + 0.1]

    def excess(place: float) -> float:
        return math.log(probability_beyond(math.exp(place), freedom, tail) / probability)

    found = [excess(place) for place in places]
    if found[0] <= 0:
        return high
    for _ in range(50):
        slope = (found[-1] - found[-2]) / (places[-1] - places[-2])
        places.append(places[-1] - found[-1] / slope)
        found.append(excess(places[-1]))
        if abs(found[-1]) < 1e-9:
            break
    return math.exp(places[-1])


@lru_cache(maxsize=4096)
def _errors(freedom: float) -> tuple[Floats, Floats]:
    """Estimated standard errors of a true one of 1, and how likely each is.

    The square of the ratio is chi-squared over its degrees of freedom. The trapezoidal rule in its
    logarithm converges faster than any power of the step, from where next to nothing is left.
    """
    logs, step = np.linspace(-34 / freedom - 1, 2.0, 400, retstep=True)
    half = freedom / 2
    density = math.log(2) + half * math.log(half) - special.gammaln(half)
    weights = np.exp(density + freedom * logs - half * np.exp(2 * logs)) * step
    return np.exp(logs), weights
