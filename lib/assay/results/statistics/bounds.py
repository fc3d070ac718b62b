"""Bounds for one future run of a figure, from its history: what a baseline is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay import AssayError
from assay.results.statistics.changes import Change, find_changes
from assay.results.statistics.comparison import Better, single_variance
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.statistics.series import Floats, Series, ratio, trimmed_mean
from assay.results.statistics.spread import (
    FLOOR,
    UNSEEN_TAIL,
    FigureKind,
    learn,
    quantile,
    session_inflation,
)

#: The fewest sessions that a baseline is made of.
FEWEST = 10
#: How often a history in which nothing changed may be refused for having changed. Measured with
#: mixed noise: 0.0011 of those with 10 to 20 sessions, 0.003 where all are autocorrelated.
REFUSAL_RATE = 0.001


@dataclass(frozen=True)
class Bounds:
    """The range that a future run of one figure is expected to be in.

    :param value: location of the history, in the unit of the figure.
    :param lower: bound that a run of an unchanged figure is below at half of its rate.
    :param upper: likewise above.
    :param sessions: how many sessions it comes from.
    :param spread: standard deviation between sessions, as a fraction.
    :param refused: why no bounds are to be had, in words; empty if they are.
    """

    value: float
    lower: float
    upper: float
    sessions: int
    spread: float
    refused: str = ''


def bounds(
    histories: Sequence[Series],
    directions: Sequence[Better],
    kind: FigureKind | None = None,
    figures: int | None = None,
    rate: float = SUITE_RATE,
) -> list[Bounds]:
    """Prediction bounds for one future session of each figure of a kind.

    value * exp(+-t s sqrt(1 + 1/n)), with the same spread and tails that comparisons have (Hahn and
    Meeker, Statistical Intervals, 1991, chapter 4, for the normal case). Of suites of ``figures``
    figures in which nothing changed, at most ``rate`` have any beyond its bounds.

    :param histories: one for each figure, with no change in it.
    :param directions: in which each gets better.
    :param kind: what such histories have in common; learned from these if it is not given.
    :param figures: how many figures the suite holds to bounds; these, if it is not given.
    :raises AssayError: if the lengths differ, or the rate is none.
    """
    many = len(histories) if figures is None else figures
    if len(histories) != len(directions) or not 0 < rate < 1:
        raise AssayError('bounds need a direction each, and a rate within 0 and 1')
    if many < len(histories):
        raise AssayError(f'{len(histories)} figures are more than the {many} of the suite')
    kind = kind or learn(histories)
    # Each history is a test of its own: one that is refused harms no other.
    searched = sum(one.has_logarithms and one.size >= FEWEST for one in histories)
    changes = find_changes(histories, min(0.5, REFUSAL_RATE * (searched or 1)), FEWEST)
    alone = rate / max(1, many)
    return [
        _bounds(history, better, found, kind, alone)
        for history, better, found in zip(histories, directions, changes, strict=True)
    ]


def _bounds(
    history: Series,
    better: Better,
    changes: Sequence[Change],
    kind: FigureKind,
    alone: float,
) -> Bounds:
    middle = float(np.median(history.values))
    n = history.size
    if better == 'exact':
        reason = '' if np.ptp(history.values) == 0 else 'it must be exact, and had several values'
        return Bounds(middle, middle, middle, n, 0.0, reason)
    if not history.has_logarithms:
        return _refused(middle, n, 'a value is 0, of which there is no ratio')
    if n < FEWEST:
        return _refused(middle, n, f'{n} sessions are too few: {FEWEST - n} more are needed')
    if not history.has_order:
        return _refused(middle, n, 'its sessions have one time: whether it changed is not known')
    if changes:
        what = 'drifts' if changes[-1].form == 'drift' else 'has a step'
        return _refused(middle, n, f'it {what}: {changes[-1].ratio - 1:+.1%} within the history')
    logs = history.locations
    # A bound is never nearer to the value than twice the step that its values are rounded to.
    resolved = history.step * middle
    if has_two_modes(logs) and np.ptp(history.values) > 2 * resolved:
        reason = 'it has two modes: find out what chooses between them, or since when it changed'
        return _refused(middle, n, reason)
    single, _ = single_variance([], history, kind)
    tails = kind.windows(1)
    centre = float(trimmed_mean(logs))
    error = math.sqrt(single.value * (1 + session_inflation(n, logs, kind).value / n))
    reach = quantile(alone / 2, single.freedom, tails.tail if tails else UNSEEN_TAIL)
    value = math.exp(centre)
    step = 2 * max(resolved, FLOOR * value)
    lower = min(value * ratio(-reach * error), value - step)
    upper = max(value * ratio(reach * error), value + step)
    if math.isinf(upper):
        return _refused(middle, n, 'it is not steady enough: its bounds are beyond all numbers')
    return Bounds(value, max(lower, 0.0), upper, n, math.sqrt(single.value))


def _refused(value: float, sessions: int, reason: str) -> Bounds:
    return Bounds(value, math.nan, math.nan, sessions, math.nan, reason)


def has_two_modes(logs: Floats) -> bool:
    """Whether values lie in two clusters; the smaller has at least three, and a tenth.

    The best split into two (Fisher, Journal of the American Statistical Association 53, 1958)
    leaves 0.36 of the variance of many normal values within its parts, and little of two modes'.
    Of n normal, more heavily tailed or autocorrelated values less than 0.36 - 1.03 / sqrt(n) is
    left in one history of 1000 (simulated, n from 10 to 100). Half of the histories of 60 with
    modes 5 standard deviations apart are found, and 99% of those 8 apart; of histories of 12 with
    as many in each mode 13% and 75%, and 96% of those 10 apart. In so few a step shows as modes
    rather than by :func:`find_changes`, which cannot tell it from autocorrelation there.

    :param logs: shape (n,).
    """
    ordered = np.sort(logs)
    n = len(ordered)
    least = max(3, math.ceil(n / 10))
    if n < FEWEST or ordered[0] == ordered[-1]:
        return False
    centred = ordered - ordered.mean()
    sums = centred.cumsum()
    sizes = np.arange(least, n - least + 1)
    between = sums[sizes - 1] ** 2 * n / (sizes * (n - sizes))
    within = 1 - between.max() / (centred**2).sum()
    return bool(within < 0.36 - 1.03 / math.sqrt(n))
