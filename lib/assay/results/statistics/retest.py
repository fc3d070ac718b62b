"""The second stage: a suspect is measured again, in pairs, until decided or the budget is spent.

Pairs are measured A B B A, so that both states meet the same spells of the machine and drift
cancels. Such a foursome is one observation: its two pairs share their neighbours, and of runs that
are alike their differences are so too.

How far foursomes are apart by chance shows within them, too: the two runs of a side differ by
nothing else. On average they differ by no less than the sides do, as long as runs two apart are at
least as alike as runs three apart.

Looking after each foursome would make more false alarms, so the rate is divided over a few looks,
most of it left for the last one; the sum of the shares holds however alike the looks are (spending
of alpha, after Lan and DeMets, Biometrika 70, 1983, by Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assay import AssayError
from assay.results.statistics import special
from assay.results.statistics.comparison import MARGIN, Better, Comparison, Word
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.statistics.series import Floats, ratio
from assay.results.statistics.spread import FLOOR, Variance, moderate

#: The sides of two pairs in order of time: a drift, and a spell of the machine, touch both alike.
FOURSOME = (0, 1, 1, 0)
#: Pairs after which somebody looks, and the shares of the rate that are spent then. A tenth is kept
#: back, for neighbouring foursomes are a little alike too.
LOOKS = {4: 0.05, 6: 0.1, 8: 0.2, 12: 0.55}
BUDGET = max(LOOKS)
#: What a history says of the spread of foursomes has no more degrees of freedom than this: they may
#: be quieter or noisier than runs that follow each other.
MOST_PRIOR = 20.0
#: The rate at which a figure by itself is called a suspect: it costs time if it is too high, and
#: power if it is too low, but no false alarm, which the pairs alone decide about.
SUSPICION = 0.05
#: How sure "same" is, at any look.
SAME_RATE = 0.05
#: The variance of the middle four of six normal values over that of their mean.
OF_TRIMMED = 1.1
#: Of so many figures no history tells that they have two modes. All runs of one side may be of one
#: mode and all of the other side of the other, at most as often as heads and tails fall so.
TWO_MODES = 0.05


@dataclass(frozen=True)
class Decision:
    """The result of the pairs so far.

    :param word: None while more pairs are to be measured.
    :param more_pairs: how many until the next look; 0 if decided or if the budget is spent.
    :param ratio: after over before.
    :param interval: of the ratio, at the rate of this look.
    :param pairs: how many were measured.
    :param error: standard error of the ratio's logarithm; infinite before the first look.
    :param freedom: its degrees of freedom.
    :param p_value: two-sided, of no change: times the suspects, and over the share of this look, so
        that it is held against the rate of the suite. 1 before the first look.
    """

    word: Word | None
    more_pairs: int
    ratio: float
    interval: tuple[float, float]
    pairs: int
    error: float = math.inf
    freedom: float = 1.0
    p_value: float = 1.0


def figures_that_look_changed(comparisons: Sequence[Comparison]) -> list[int]:
    """The figures that look changed, each by itself: those to measure again.

    :returns: positions, the most suspect first.
    """
    found = [i for i, one in enumerate(comparisons) if one.p_value <= SUSPICION]
    return sorted(found, key=lambda i: comparisons[i].p_value)


def decide_by_pairs(
    before: ArrayLike,
    after: ArrayLike,
    better: Better,
    suspects: int = 1,
    rate: float = SUITE_RATE,
    margin: float = MARGIN,
    spread: Variance | None = None,
    suspected: Word | None = None,
) -> Decision:
    """Whether a suspect is worse, better or the same, or how many more pairs to measure.

    The pairs are new data, so their rate is shared by the suspects alone, not by all figures of the
    suite. The location of the log ratios of six foursomes is a trimmed mean, with the winsorised
    variance that belongs to it (Tukey and McLaughlin, Sankhya A 25, 1963).

    :param before: shape (n,); values of the old state, in order of time, two successive pairs being
        A B B A; those beyond the budget of 12 pairs do not count.
    :param after: shape (n,).
    :param suspects: how many figures of the suite are measured again.
    :param rate: of the whole suite.
    :param suspected: worse or better, as the figure looked before. A suspect is not accused of the
        opposite: pairs that say it leave the figure undecided.
    :param spread: what foursomes do in the history: ``spread_of_foursomes``.
    :raises AssayError: if there is no pair, values are not above 0, or the direction is not one
        that pairs can decide.
    """
    old, new = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if better not in ('higher', 'lower'):
        raise AssayError(f'pairs decide about figures that get higher or lower, not {better!r}')
    if old.ndim != 1 or old.shape != new.shape or not old.size:
        raise AssayError(f'pairs need one value of each state: {old.size} before, {new.size} after')
    if not (np.isfinite(old) & np.isfinite(new) & (old > 0) & (new > 0)).all():
        raise AssayError('a value of a pair is no finite number above 0')
    if suspects < 1 or not 0 < rate < 1 or not margin > 0:
        raise AssayError('there is at least one suspect, a rate within 0 and 1, a margin above 0')
    sides = np.log([old, new])[:, :BUDGET]
    logs = sides[1] - sides[0]
    pairs = len(logs)
    change = float(logs.mean())
    look = max((n for n in LOOKS if n <= pairs), default=None)
    waiting = next((n - pairs for n in LOOKS if n > pairs), 0)
    # Only what was there at a look counts: who looks in between spends nothing and learns nothing.
    if look is None or (look != pairs and waiting):
        return Decision(None, waiting, ratio(change), (0.0, math.inf), pairs)
    change, variance = _location(sides, spread)
    error = math.sqrt(variance.value)
    share = LOOKS[look] * rate / suspects
    alone = 2 * float(special.stdtr(variance.freedom, -abs(change) / error))
    if spread is None:
        alone = max(alone, TWO_MODES * 2 * 0.5 ** (2 * pairs))
    p_value = min(1.0, alone * rate / share)

    def decided(word: Word | None, more: int = 0) -> Decision:
        return Decision(word, more, ratio(change), ends, pairs, error, variance.freedom, p_value)

    reach = -float(special.stdtrit(variance.freedom, share / 2)) * error
    ends = (ratio(change - reach), ratio(change + reach))
    if p_value <= rate:
        word: Word = 'better' if (change > 0) == (better == 'higher') else 'worse'
        if suspected not in (None, word):
            word = 'cannot tell'
        return decided(word)
    near = -float(special.stdtrit(variance.freedom, SAME_RATE / len(LOOKS))) * error
    # It may be the same within the margin and still be changed: that is what the last look is for.
    if not waiting and abs(change) + near < math.log1p(margin):
        return decided('same')
    return decided(None if waiting else 'cannot tell', waiting)


def spread_of_foursomes(logs: Floats) -> Variance | None:
    """The variance of log ratios of A B B A where A and B are the same, from a history.

    Each four successive runs are one, as successive differences are elsewhere (von Neumann, Annals
    of Mathematical Statistics 12, 1941). Heavy tails take degrees of freedom, as they do from any
    variance: 2 / (kurtosis - 1) of them are left. None of fewer than 12 runs.

    :param logs: shape (n,), locations of sessions in order of time.
    """
    if len(logs) < 12:
        return None
    ratios = (logs[1:-2] + logs[2:-1] - logs[:-3] - logs[3:]) / 2
    value = max(float(np.mean(ratios**2)), FLOOR**2)
    kurtosis = max(float(np.mean(ratios**4)) / value**2, 3.0)
    return Variance(value, min(MOST_PRIOR, len(ratios) / 2 * 2 / (kurtosis - 1)))


def _location(sides: Floats, spread: Variance | None) -> tuple[float, Variance]:
    """The trimmed mean of foursomes' log ratios, and its variance, leaning on the history's.

    :param sides: shape (2, pairs), logarithms before and after.
    """
    logs = (sides[1] - sides[0]).reshape(-1, 2).mean(axis=1)
    n = len(logs)
    cut = n // 6
    left = n - 2 * cut
    ordered = np.sort(logs)
    winsorised = np.clip(ordered, ordered[cut], ordered[n - cut - 1])
    own = float(np.var(winsorised, ddof=1)) * (n - 1) * n / (left * (left - 1))
    # Of independent runs that of a foursome is that of a run.
    within = float(np.mean(np.diff(sides.reshape(2, n, 2)) ** 2)) / 2
    known = Variance(max(within, FLOOR**2), 2 * n)
    if spread:
        known = moderate(known, spread)
    trimmed = OF_TRIMMED if cut else 1.0
    both = moderate(
        Variance(max(own, FLOOR**2), left - 1), Variance(known.value * trimmed, known.freedom)
    )
    return float(ordered[cut : n - cut].mean()), Variance(both.value / n, both.freedom)
