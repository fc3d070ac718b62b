"""When did a figure change: steps and slow drift in a history, with a p-value for having searched.

The split of a step is chosen by the same data that it is tested on, which a t-test at the split
knows nothing of. So the greatest statistic over all splits is held against the distribution of the
greatest (Miller and Siegmund, Biometrics 38, 1982). Values enter by their ranks, as normal scores:
no outlier makes a step. Runs that follow each other are alike, which looks like steps: the
statistics are made smaller by the autocorrelation that is left beside the step, which figures of
one call lend each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from assay import AssayError
from assay.results.statistics.multiplicity import SUITE_RATE, holm
from assay.results.statistics.series import DAY, Floats, Series, location

#: The fewest sessions on each side of a step.
EDGE = 3
#: The fewest sessions in which changes are looked for.
FEWEST = 20
WEEK = 7 * DAY
#: Autocorrelation of neighbours is not taken to be more: beyond, no history is long enough.
MOST_ALIKE = 0.9
#: Of so many values all pairs are gone through: their number grows with the square.
MOST_IN_PAIRS = 1000


@dataclass(frozen=True)
class Change:
    """One change in a history.

    :param form: a step, or a slow drift over ``first`` to ``last``.
    :param first: position of the first session that is not as before: the first bad one.
    :param earliest: the first position that is as plausible (95%).
    :param latest: the last position that is as plausible.
    :param time: when session ``first`` began, seconds.
    :param ratio: after over before; of a drift, its end over its beginning.
    :param per_week: of a drift, the change in a week as a fraction; 0 of a step.
    :param p_value: adjusted for the search, and for all series of the call (Holm).
    """

    form: Literal['step', 'drift']
    first: int
    earliest: int
    latest: int
    time: float
    ratio: float
    per_week: float
    p_value: float


def find_changes(histories: Sequence[Series], rate: float = SUITE_RATE) -> list[tuple[Change, ...]]:
    """The changes in each history, in order of time.

    Of histories in which nothing changed, at most ``rate`` of calls find anything at all. A series
    with a step is searched again on both of its sides, at the same rate.

    :param histories: one a figure; those with fewer than 20 sessions or with zeros show no change.
    :raises AssayError: if the rate is not between 0 and 1.
    """
    if not 0 < rate < 1:
        raise AssayError('a rate is between 0 and 1')
    parts = [
        (number, 0, one.locations)
        for number, one in enumerate(histories)
        if one.has_logarithms and one.size >= FEWEST
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
            change = _change(scan, logs, times, start, float(p))
            found[number].append(change)
            if change.form == 'step':
                split = change.first - start
                again += [
                    (number, offset, side)
                    for offset, side in ((start, logs[:split]), (start + split, logs[split:]))
                    if len(side) >= FEWEST
                ]
        parts = again
    return [tuple(sorted(changes, key=lambda one: one.first)) for changes in found]


@dataclass(frozen=True)
class _Scan:
    """What the search in one series found; positions count from its start."""

    p_value: float
    form: Literal['step', 'drift']
    split: int
    earliest: int
    latest: int


def _scan(all_logs: Sequence[Floats]) -> list[_Scan]:
    """The most likely step and the drift of each series, of all of one length at once."""
    lengths = np.array([len(logs) for logs in all_logs])
    groups = {int(n): np.flatnonzero(lengths == n) for n in np.unique(lengths)}
    looks = {n: _look(np.array([all_logs[int(i)] for i in which])) for n, which in groups.items()}
    sampling = np.empty(len(all_logs))
    stepped, drifted = np.empty(len(all_logs)), np.empty(len(all_logs))
    for n, which in groups.items():
        stepped[which], drifted[which] = looks[n].step_alike, looks[n].drift_alike
        sampling[which] = 0.9 / n
    step_factor, drift_factor = _inflation(stepped, sampling), _inflation(drifted, sampling)
    scans: list[_Scan | None] = [None] * len(all_logs)
    for n, which in groups.items():
        look = looks[n]
        steps = np.abs(look.steps) / step_factor[which, None]
        best = steps.max(axis=1)
        drift = np.abs(look.drift) / drift_factor[which]
        by_step, by_drift = _p_of_greatest(best, n), 2 * special.stdtr(n - 2, -drift)
        p_values = np.minimum(1, 2 * np.minimum(by_step, by_drift))
        # Of long histories both are 0.
        is_drift = (by_drift < by_step) | ((by_drift == by_step) & (drift > best))
        near = steps**2 >= (best**2 - stats.chi2.isf(0.05, 1))[:, None]
        for row, number in enumerate(which):
            plausible = np.flatnonzero(near[row]) + EDGE
            scans[number] = _Scan(
                float(p_values[row]),
                'drift' if is_drift[row] else 'step',
                int(steps[row].argmax()) + EDGE,
                int(plausible[0]),
                int(plausible[-1]),
            )
    return [scan for scan in scans if scan is not None]


@dataclass(frozen=True)
class _Look:
    """Statistics of series of one length n.

    :param steps: shape (F, n - 2 EDGE + 1); difference of the sides in standard errors, by split.
    :param drift: shape (F,); slope in standard errors.
    :param step_alike: shape (F,); autocorrelation beside the step.
    :param drift_alike: shape (F,); autocorrelation beside the slope.
    """

    steps: Floats
    drift: Floats
    step_alike: Floats
    drift_alike: Floats


def _look(logs: Floats) -> _Look:
    """Statistics of all series of one length; ``logs`` has shape (F, n)."""
    n = logs.shape[1]
    z = special.ndtri((stats.rankdata(logs, axis=1) - 0.5) / n)
    z -= z.mean(axis=1, keepdims=True)
    splits = np.arange(EDGE, n - EDGE + 1)
    sums = z.cumsum(axis=1)[:, EDGE - 1 : n - EDGE]
    steps = -sums / np.sqrt(splits * (n - splits) / n)
    rows = np.arange(len(z))
    best = np.abs(steps).argmax(axis=1)
    at = splits[best][:, None]
    left, right = (
        (sums[rows, best] / at[:, 0])[:, None],
        (-sums[rows, best] / (n - at[:, 0]))[:, None],
    )
    beside_step = z - np.where(np.arange(n) < at, left, right)
    line = np.arange(n) - (n - 1) / 2
    line /= np.sqrt((line**2).sum())
    slope = z @ line
    beside_slope = z - slope[:, None] * line
    return _Look(
        steps / _deviation(beside_step)[:, None],
        slope / _deviation(beside_slope),
        # The bias of the estimates was measured on autoregressive series of 30 to 200 values.
        (_neighbours(beside_step) + 4.4 / n) / max(0.2, 1 - 9 / n),
        (_neighbours(beside_slope) + 2.0 / n) / max(0.2, 1 - 7 / n),
    )


def _deviation(residuals: Floats) -> Floats:
    """Standard deviation beside a fit of two parameters; never 0: equal values show no change."""
    squares: Floats = (residuals**2).sum(axis=1) / (residuals.shape[1] - 2)
    return np.maximum(np.sqrt(squares), 0.05)


def _neighbours(residuals: Floats) -> Floats:
    """Autocorrelation of each series with itself one session later."""
    squares = np.maximum((residuals**2).sum(axis=1), 1e-12)
    alike: Floats = (residuals[:, 1:] * residuals[:, :-1]).sum(axis=1) / squares
    return alike


def _inflation(alike: Floats, sampling: Floats) -> Floats:
    """By how much sums of autocorrelated values are further off: sqrt((1 + a) / (1 - a)).

    Each a leans on those of the other series by empirical Bayes (Efron and Morris, Journal of the
    American Statistical Association 70, 1975), and is taken one standard deviation too large.

    :param alike: shape (F,), estimates.
    :param sampling: shape (F,), their variance.
    """
    between = max(0.0, float(np.var(alike) - sampling.mean())) if len(alike) > 1 else 1.0
    weight = between / (between + sampling)
    leaning = weight * alike + (1 - weight) * alike.mean()
    a = np.clip(leaning + np.sqrt(weight * sampling), 0, MOST_ALIKE)
    factor: Floats = np.sqrt((1 + a) / (1 - a))
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


def _change(
    scan: _Scan, logs: Floats, times: NDArray[np.float64], start: int, p_value: float
) -> Change:
    if scan.form == 'step':
        ratio = math.exp(float(location(logs[scan.split :]) - location(logs[: scan.split])))
        return Change(
            'step',
            start + scan.split,
            start + scan.earliest,
            start + scan.latest,
            float(times[scan.split]),
            ratio,
            0.0,
            p_value,
        )
    slope = _slope(logs, times)
    return Change(
        'drift',
        start,
        start,
        start + len(logs) - 1,
        float(times[0]),
        math.exp(slope * float(times[-1] - times[0])),
        math.expm1(slope * WEEK),
        p_value,
    )


def _slope(logs: Floats, times: NDArray[np.float64]) -> float:
    """The median slope of all pairs of values: of means of neighbours where they are many.

    Source: Sen, Journal of the American Statistical Association 63 (1968).
    """
    parts = min(len(logs), MOST_IN_PAIRS)
    edges = np.arange(parts) * len(logs) // parts
    counts = np.diff([*edges, len(logs)])
    neighbours = [np.add.reduceat(one, edges) / counts for one in (logs, times)]
    return float(stats.theilslopes(*neighbours).slope)


def since_last_change(history: Series, changes: Sequence[Change]) -> Series:
    """The part of a history after its last step: what later runs are to be compared with.

    An old step in a history would be taken for spread, until nothing is found any more.
    """
    steps = [one.first for one in changes if one.form == 'step']
    if not steps:
        return history
    return history.newest(history.size - max(steps))
