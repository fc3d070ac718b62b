"""The spread between runs: of one figure, of its kind, and of locations of several runs.

Runs near in time are alike: a machine has spells, and figures have modes. So the location of n
runs is further off than independent runs would let it be, and how much further is measured on
windows of n successive sessions in the history, where nothing changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from scipy import special

from assay.results.statistics.series import Floats, Series, location

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
#: Degrees of freedom of tails that are tried.
TAILS = (2.1, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 30.0, MANY)


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


@dataclass(frozen=True)
class Kind:
    """Figures that are alike: their histories teach what one of them has too few runs to show.

    :param logs: the locations of sessions in each history, natural logarithms.
    :param variance: the variance that figures of this kind have, as a prior; None if no history has
        two sessions.
    """

    logs: tuple[Floats, ...]
    variance: Variance | None
    _windows: dict[int, Windows | None] = field(default_factory=dict, repr=False, compare=False)

    def windows(self, n: int) -> Windows | None:
        """What locations of n successive sessions do; None if the histories are too short."""
        if n not in self._windows:
            self._windows[n] = _windows(self.logs, n)
        return self._windows[n]


def learn(histories: Iterable[Series]) -> Kind:
    """What figures of one kind have in common, from runs in which nothing changed.

    :param histories: one for each figure; those with zeros or a single session teach nothing.
    """
    logs = tuple(one.locations for one in histories if one.has_logarithms and one.size > 1)
    kind = Kind(logs, None)
    variances = [history_variance(one, kind) for one in logs]
    return Kind(logs, prior(variances) if variances else None, kind._windows)


def history_variance(logs: Floats, kind: Kind) -> Variance:
    """The variance of single sessions in a history.

    Of sessions that are alike, fewer count: the degrees of freedom are those of independent ones
    that would tell as much.
    """
    n = len(logs)
    longest = kind.windows(max(1, n // 8))
    alike = max(1.0, longest.inflation.value) if longest else 1.0
    return Variance(max(float(np.var(logs, ddof=1)), FLOOR**2), max(1.0, (n - 1) / alike))


def moderated(own: Variance, before: Variance) -> Variance:
    """A variance that leans on a prior, each by its degrees of freedom.

    s~^2 = (d0 s0^2 + d s^2) / (d0 + d) with d0 + d degrees of freedom: Smyth, Statistical
    Applications in Genetics and Molecular Biology 3 (2004), article 3, equation for the posterior
    variance in section 3.
    """
    freedom = own.freedom + before.freedom
    value = (own.value * own.freedom + before.value * before.freedom) / freedom
    return Variance(value, min(freedom, MANY))


def prior(variances: list[Variance]) -> Variance:
    """The common variance s0^2 of figures, and how alike they are, d0: the same source, section 6.2.

    The moments of log s^2 are matched to those of a scaled F distribution. One figure alone is its
    own prior and weighs nothing.

    :param variances: one for each figure, above 0.
    """
    value = np.array([one.value for one in variances])
    half = np.array([one.freedom for one in variances]) / 2
    logs = np.log(value) - special.digamma(half) + np.log(half)
    mean = logs.mean()
    if len(logs) < 2:
        return Variance(float(value[0]), 0.0)
    excess = logs.var(ddof=1) - special.polygamma(1, half).mean()
    if excess <= 0:
        return Variance(float(np.exp(mean)), MANY)
    half0 = _inverse_trigamma(float(excess))
    if half0 > MANY / 2:
        return Variance(float(np.exp(mean)), MANY)
    return Variance(float(np.exp(mean + special.digamma(half0) - np.log(half0))), 2 * half0)


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
    shorter than ``ENOUGH_HISTORY``.

    :param logs: shape (N,), locations of sessions in order of time.
    """
    if len(logs) < max(4 * n, ENOUGH_HISTORY) or np.ptp(logs) == 0:
        return None
    found = _locations(logs, n)
    # Windows are held against the location of all, of which each is a part: that hides n / N.
    of_windows = np.mean((found - found.mean()) ** 2) / (1 - n / len(logs))
    return Variance(float(n * of_windows / np.var(logs, ddof=1)), 1.5 * (len(logs) / n - 1))


def _locations(logs: Floats, n: int) -> Floats:
    return location(sliding_window_view(logs, n))


def _windows(histories: tuple[Floats, ...], n: int) -> Windows | None:
    found = [(logs, inflation(logs, n)) for logs in histories]
    known = [(logs, one) for logs, one in found if one is not None and one.value > 0]
    if sum(one.freedom for _, one in known) < ENOUGH_WINDOWS:
        return None
    weights = [one.freedom for _, one in known]
    mean = float(np.average([one.value for _, one in known], weights=weights))
    alike = prior([one for _, one in known]).freedom
    standard = []
    for logs, _ in known:
        places = _locations(logs, n)
        standard.append((places - np.median(places)) / max(places.std(), FLOOR))
    return Windows(Variance(mean, alike), tail(np.concatenate(standard)))


def tail(standard: ArrayLike) -> float:
    """Degrees of freedom of Student's t of variance 1 that standardised values are likeliest by.

    :param standard: values of standard deviation 1 around 0.
    """
    z = np.asarray(standard, dtype=np.float64)
    squares = z * z
    likelihoods = []
    for freedom in TAILS:
        half = (freedom + 1) / 2
        constant = special.gammaln(half) - special.gammaln(freedom / 2)
        constant -= 0.5 * math.log(math.pi * (freedom - 2))
        likelihoods.append(constant - half * float(np.log1p(squares / (freedom - 2)).mean()))
    return TAILS[int(np.argmax(likelihoods))]
