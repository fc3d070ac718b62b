"""When did a figure change: steps, spells and slow drift, with a p-value for having searched.

A spell is a step and its repair, which together look like no step. Where a step or a spell is said
to be is chosen by the same data that it is tested on, which a t-test there knows nothing of. So the
greatest statistic over all splits is held against the distribution of the greatest (Miller and
Siegmund, Biometrics 38, 1982), and that over all spells against as many tests as were made. Values
are clipped near their median, and held against what is left beside the change: no outlier makes a
step. Runs that follow each other are alike, which looks like steps: the statistics are made smaller
by the autocorrelation that is left beside the change, which figures of one call lend each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from assay import AssayError
from assay.results.statistics import special
from assay.results.statistics.multiplicity import SUITE_RATE, holm
from assay.results.statistics.series import Floats, Series, ratio, trimmed_mean
from assay.results.statistics.spread import FLOOR

#: What is looked for; places in arrays.
STEP, SPELL, DRIFT = range(3)
#: Of each so many parameters are fitted.
FITTED = (2, 3, 2)
#: Of each the bias of the autocorrelation beside it, in 1 / n: what it is too small by, and by what
#: share. Measured on autoregressive series of 30 to 200 values.
BIAS = ((4.4, 9), (4.4, 9), (2.0, 7))
#: The fewest sessions on each side of a step.
EDGE = 3
#: The fewest sessions in which changes are looked for.
FEWEST = 20
#: Autocorrelation of neighbours is not taken to be more: beyond, no history is long enough.
MOST_ALIKE = 0.9
#: Deviations from the median at which values are clipped. With 4, outliers of 3% of runs made ten
#: times as many spells of three runs as the p-values say.
FURTHEST = 3.0
#: No p-value is said to be less.
LEAST = 1e-290
#: A change is as plausible elsewhere (95%) if its statistic, squared, is less by no more than this:
#: (1 - exp(-x / 2))^2 = 0.95 (Hansen, Econometrica 68, 2000).
AS_PLAUSIBLE = -2 * math.log(1 - math.sqrt(0.95))
#: Of so many values all pairs are gone through: their number grows with the square.
MOST_IN_PAIRS = 1000


@dataclass(frozen=True)
class Change:
    """One change in a history.

    :param form: a step, or a slow drift over ``first`` to ``last``.
    :param first: position of the first session that is not as before: the first bad one.
    :param earliest: the first position that is as plausible (95%).
    :param latest: the last position that is as plausible.
    :param ratio: after over before; of a drift, its end over its beginning; infinite beyond all
        numbers.
    :param p_value: adjusted for the search, and for all series of the call (Holm).
    """

    form: Literal['step', 'drift']
    first: int
    earliest: int
    latest: int
    ratio: float
    p_value: float


def find_changes(
    histories: Sequence[Series], rate: float = SUITE_RATE, fewest: int = FEWEST
) -> list[tuple[Change, ...]]:
    """The changes in each history, in order of time; of a spell both of its steps.

    Of histories in which nothing changed, at most ``rate`` of calls find anything at all. A series
    with a step is searched again on both of its sides, at the same rate, and so on.

    :param histories: one a figure; those with too few sessions, with zeros, or with sessions of one
        time show no change.
    :param fewest: the fewest sessions in which changes are looked for; 10 or more.
    :raises AssayError: if the rate is not between 0 and 1.
    """
    if not 0 < rate < 1:
        raise AssayError('a rate is between 0 and 1')
    parts = [
        (number, 0, one.locations)
        for number, one in enumerate(histories)
        if one.has_logarithms and one.size >= fewest and one.has_order
    ]
    found: list[list[Change]] = [[] for _ in histories]
    while parts:
        scans = _scan([logs for _, _, logs in parts])
        adjusted = holm([scan.p_value for scan in scans])
        again = []
        for (number, start, logs), scan, p in zip(parts, scans, adjusted, strict=True):
            if p > rate:
                continue
            times = histories[number].session_times[start : start + len(logs)]
            found[number] += _changes(scan, logs, times, start, float(p))
            bounds = [0, *(edge.first for edge in scan.edges), len(logs)]
            if scan.edges:
                again += [
                    (number, start + begin, logs[begin:end])
                    for begin, end in pairwise(bounds)
                    if end - begin >= fewest and np.ptp(times[begin:end]) > 0
                ]
        parts = again
    return [tuple(sorted(changes, key=lambda one: one.first)) for changes in found]


@dataclass(frozen=True)
class _Edge:
    """A step: the first position after it, and those between which it is as plausible."""

    first: int
    earliest: int
    latest: int


@dataclass(frozen=True)
class _Scan:
    """The result of the search in one series.

    :param edges: of a step one, of a spell two, of a drift none; positions count from its start.
    """

    p_value: float
    edges: tuple[_Edge, ...]


def _scan(all_logs: Sequence[Floats]) -> list[_Scan]:
    """The most likely step, spell or drift of each series, of all of one length at once."""
    lengths = np.array([len(logs) for logs in all_logs])
    groups = {int(n): np.flatnonzero(lengths == n) for n in np.unique(lengths)}
    looks = {n: _look(np.array([all_logs[int(i)] for i in which])) for n, which in groups.items()}
    alike = np.empty((len(BIAS), len(all_logs)))
    for n, which in groups.items():
        alike[:, which] = looks[n].alike
    alike = np.array([_leaning(of_form, lengths) for of_form in alike])
    scans: list[_Scan | None] = [None] * len(all_logs)
    for n, which in groups.items():
        look = looks[n]
        p_values, sizes = look.p_values(alike[:, which])
        # Of great changes all p-values are the least.
        forms = np.lexsort((-sizes, p_values), axis=0)[0]
        for row, (number, form) in enumerate(zip(which.tolist(), forms.tolist(), strict=True)):
            p_value = min(1.0, len(BIAS) * float(p_values[form, row]))
            scans[number] = _Scan(p_value, look.edges(row, form, float(alike[form, number])))
    return [scan for scan in scans if scan is not None]


@dataclass(frozen=True)
class _Look:
    """The best step, the best spell and the slope of each series of one length n.

    :param sums: shape (F, n + 1); of the first values, clipped.
    :param begins: shape (2, F); where the part that differs begins: after a step, and of a spell.
    :param ends: shape (2, F); where it ends.
    :param greatest: shape (3, F); Student's t of step, spell and slope, as if all were independent.
    :param deviations: shape (3, F); standard deviation beside them.
    :param alike: shape (3, F); autocorrelation beside them.
    """

    sums: Floats
    begins: _Places
    ends: _Places
    greatest: Floats
    deviations: Floats
    alike: Floats

    def p_values(self, alike: Floats) -> tuple[Floats, Floats]:
        """The probability of a change as great, and its size, for each form; shape (3, F).

        :param alike: the autocorrelation that is assumed.
        """
        n = self.sums.shape[1] - 1
        sizes = np.abs(self.greatest) / _inflation(alike)
        # Of a variance of such values (Bayley and Hammersley, Journal of the Royal Statistical
        # Society, supplement, 8, 1946).
        freedom = np.maximum(n * (1 - alike**2) / (1 + alike**2) - 2, 1)
        alone = np.maximum(2 * special.stdtr(freedom, -sizes), LEAST)
        step = _p_of_greatest(-special.ndtri(alone[STEP] / 2), n)
        spell = np.minimum(1, alone[SPELL] * len(_spells(n)[0]))
        return np.maximum([step, spell, alone[DRIFT]], LEAST), sizes

    def edges(self, row: int, form: int, alike: float) -> tuple[_Edge, ...]:
        """The edges of the best step or spell of a series; none of a drift."""
        if form == DRIFT:
            return ()
        n = self.sums.shape[1] - 1
        sums = self.sums[row] / (self.deviations[form, row] * float(_inflation(np.array(alike))))
        end = int(self.ends[form, row])

        def edge(among: _Places, other: int) -> _Edge:
            length = np.abs(among - other)
            squares = (sums[among] - sums[other]) ** 2 / (length * (n - length) / n)
            as_good = among[squares >= squares.max() - AS_PLAUSIBLE]
            return _Edge(int(among[squares.argmax()]), int(as_good[0]), int(as_good[-1]))

        first = edge(np.arange(EDGE, end - EDGE + 1), end)
        if form == STEP:
            return (first,)
        return first, edge(np.arange(first.first + EDGE, n - EDGE + 1), first.first)


def _look(logs: Floats) -> _Look:
    """The best of each form in all series of one length; ``logs`` has shape (F, n)."""
    n = logs.shape[1]
    scale = _scale(logs)
    values = _clipped(logs, scale)
    sums = np.concatenate([np.zeros((len(values), 1)), values.cumsum(axis=1)], axis=1)
    begins, ends = np.transpose([_best(sums, *_steps(n)), _best(sums, *_spells(n))], (1, 0, 2))
    line = np.arange(n) - (n - 1) / 2
    line /= np.sqrt((line**2).sum())
    slope = values @ line
    sizes = [*(_contrast(sums, *part) for part in zip(begins, ends, strict=True)), slope]
    beside = [
        *(_beside(values, sums, *part) for part in zip(begins, ends, strict=True)),
        values - slope[:, None] * line,
    ]
    left = [
        np.sqrt((rest**2).sum(axis=1) / (n - fitted))
        for rest, fitted in zip(beside, FITTED, strict=True)
    ]
    # Equal values show no change.
    deviations: Floats = np.maximum(left, FLOOR / scale)
    alike = [
        (_neighbours(rest) + bias / n) / max(0.2, 1 - share / n)
        for rest, (bias, share) in zip(beside, BIAS, strict=True)
    ]
    return _Look(sums, begins, ends, np.array(sizes) / deviations, deviations, np.array(alike))


def _scale(logs: Floats) -> Floats:
    """A deviation of each series that no few values make large: from that from the median."""
    middle = np.median(logs, axis=1, keepdims=True)
    return np.maximum(1.4826 * np.median(np.abs(logs - middle), axis=1), FLOOR)


def _clipped(logs: Floats, scale: Floats) -> Floats:
    """Values of deviation about 1, 0 on average, and none far off."""
    middle = np.median(logs, axis=1, keepdims=True)
    values = np.clip((logs - middle) / scale[:, None], -FURTHEST, FURTHEST)
    centred: Floats = values - values.mean(axis=1, keepdims=True)
    return centred


_Places = NDArray[np.int64]


@lru_cache(maxsize=64)
def _steps(n: int) -> tuple[_Places, _Places]:
    """Begins and ends of the parts after a step: all of n sessions."""
    begins = np.arange(EDGE, n - EDGE + 1)
    return begins, np.full_like(begins, n)


@lru_cache(maxsize=64)
def _spells(n: int) -> tuple[_Places, _Places]:
    """Begins and ends of spells: not of all, which are many, but of one near each.

    Kovacs, Buehlmann, Li and Munk, Biometrika 110 (2023), for intervals to search in.
    """
    begins, ends = [], []
    length = EDGE
    while length <= n - 2 * EDGE:
        begin = np.arange(EDGE, n - EDGE - length + 1, max(1, length // 4))
        begins.append(begin)
        ends.append(begin + length)
        length = max(length + 1, int(length * 1.4))
    return np.concatenate(begins), np.concatenate(ends)


def _best(sums: Floats, begins: _Places, ends: _Places) -> tuple[_Places, _Places]:
    """The part of each series that differs most from the rest of it."""
    length, n = ends - begins, sums.shape[1] - 1
    sizes = np.abs(sums[:, ends] - sums[:, begins]) / np.sqrt(length * (n - length) / n)
    best = sizes.argmax(axis=1)
    return begins[best], ends[best]


def _contrast(sums: Floats, begins: _Places, ends: _Places) -> Floats:
    """By how much a part of each series differs from the rest, if values are of deviation 1."""
    rows, n = np.arange(len(sums)), sums.shape[1] - 1
    length = ends - begins
    contrast: Floats = (sums[rows, ends] - sums[rows, begins]) / np.sqrt(length * (n - length) / n)
    return contrast


def _beside(values: Floats, sums: Floats, begins: _Places, ends: _Places) -> Floats:
    """Subtract from values the means before a part, of it, and after it."""
    n = values.shape[1]
    edges = np.array([np.zeros_like(begins), begins, ends, np.full_like(ends, n)])
    totals = np.diff(sums[np.arange(len(values)), edges], axis=0)
    means = totals / np.maximum(np.diff(edges, axis=0), 1)
    where = np.arange(n)
    part = (where >= begins[:, None]).astype(np.int64) + (where >= ends[:, None])
    left: Floats = values - np.take_along_axis(means.T, part, axis=1)
    return left


def _neighbours(residuals: Floats) -> Floats:
    """Autocorrelation of each series with itself one session later."""
    squares = np.maximum((residuals**2).sum(axis=1), 1e-12)
    alike: Floats = (residuals[:, 1:] * residuals[:, :-1]).sum(axis=1) / squares
    return alike


def _leaning(alike: Floats, lengths: NDArray[np.int64]) -> Floats:
    """Autocorrelations as they are assumed.

    Each leans on those of the other series by empirical Bayes (Efron and Morris, Journal of the
    American Statistical Association 70, 1975), and is taken 1.5 standard deviations too large, and
    more in short series: with 1.5 alone, 1.3% to 1.5% of suites of 20 to 45 sessions of mixed noise
    had a change that were to have none in 99%.

    :param alike: shape (F,), estimates.
    :param lengths: shape (F,), sessions that they are of.
    """
    sampling = 0.9 / lengths  # their variance
    between = max(0.0, float(np.var(alike) - sampling.mean())) if len(alike) > 1 else 1.0
    weight = between / (between + sampling)
    leaning = weight * alike + (1 - weight) * alike.mean()
    larger = (1.5 + 12 / lengths) * np.sqrt(weight * sampling)
    assumed: Floats = np.clip(leaning + larger, 0, MOST_ALIKE)
    return assumed


def _inflation(alike: Floats) -> Floats:
    """By how much sums of autocorrelated values are further off."""
    factor: Floats = np.sqrt((1 + alike) / (1 - alike))
    return factor


def _p_of_greatest(best: Floats, n: int) -> Floats:
    """The probability that the greatest statistic over all splits of n values is this large.

    phi(b) ((b - 1/b) log((1 - e)^2 / e^2) + 4 / b), with e the least part on a side: Miller and
    Siegmund, equation 8.
    """
    b = np.maximum(best, 1.0)
    share = EDGE / n
    density = np.exp(-(b**2) / 2) / math.sqrt(2 * math.pi)
    p = density * ((b - 1 / b) * 2 * math.log((1 - share) / share) + 4 / b)
    bounded: Floats = np.where(best <= 1, 1.0, np.minimum(p, 1.0))
    return bounded


def _changes(
    scan: _Scan, logs: Floats, times: NDArray[np.float64], start: int, p_value: float
) -> list[Change]:
    """The changes that a scan found, with positions counted from the start of the history."""
    bounds = [0, *(edge.first for edge in scan.edges), len(logs)]
    places = [float(trimmed_mean(logs[begin:end])) for begin, end in pairwise(bounds)]
    if scan.edges:
        return [
            Change(
                'step',
                start + edge.first,
                start + edge.earliest,
                start + edge.latest,
                ratio(after - before),
                p_value,
            )
            for edge, (before, after) in zip(scan.edges, pairwise(places), strict=True)
        ]
    whole = ratio(slope(logs, times) * float(times[-1] - times[0]))
    return [Change('drift', start, start, start + len(logs) - 1, whole, p_value)]


def beginning(logs: Floats, times: NDArray[np.float64]) -> tuple[int, int, int]:
    """The position at which a drift begins in values that may be level before it.

    The most likely one, the first, and the last that are as plausible (95%), of a level line that
    goes on as a sloping one, by least squares (Hudson, Journal of the American Statistical
    Association 61, 1966).
    """
    n = len(logs)
    values, gaps = logs - logs.mean(), np.diff(times)
    later = np.arange(n - 1, 0, -1)
    # Of the times since each session, of all later ones: sum, sum of squares, product with values.
    total = _from_end(gaps * later)
    squared = _from_end(gaps * (gaps * later + 2 * np.append(total[1:], 0)))
    product = _from_end(gaps * _from_end(values[1:]))
    norms, product = (squared - total**2 / n)[: n - EDGE], product[: n - EDGE]
    # 0 where all later sessions have one time: nothing slopes from there on.
    explained = np.divide(product**2, norms, out=np.zeros(len(norms)), where=norms > 0)
    squares = (values**2).sum() - explained
    squares = np.maximum(squares, n * 1e-18)
    best = int(squares.argmin())
    plausible = np.flatnonzero(n * np.log(squares / squares[best]) <= special.chdtri(1, 0.05))
    return best, int(plausible[0]), int(plausible[-1])


def _from_end(terms: Floats) -> Floats:
    """The sum of all terms from each place on."""
    sums: Floats = terms[::-1].cumsum()[::-1]
    return sums


def slope(logs: Floats, times: NDArray[np.float64]) -> float:
    """The median slope of all pairs of values: of means of neighbours where they are many.

    Source: Sen, Journal of the American Statistical Association 63 (1968).

    :param times: shape (n,), not all equal.
    """
    parts = min(len(logs), MOST_IN_PAIRS)
    edges = np.arange(parts) * len(logs) // parts
    counts = np.diff([*edges, len(logs)])
    neighbours = [np.add.reduceat(one, edges) / counts for one in (logs, times)]
    rise, run = (np.subtract.outer(one, one) for one in neighbours)
    return float(np.median(rise[run > 0] / run[run > 0]))


def since_last_change(history: Series, changes: Sequence[Change]) -> Series:
    """The part of a history after its last step: what later runs are to be compared with.

    An old step in a history would be taken for spread, until nothing is found any more.
    """
    steps = [one.first for one in changes if one.form == 'step']
    if not steps:
        return history
    return history.newest(history.size - max(steps))
