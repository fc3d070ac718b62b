"""Outliers among many that are alike, on the side that is worse.

The measure of how far off one is: how many sound ones would be as far off, on average, among all
that are tested at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.results.statistics.series import Floats
from assay.results.statistics.spread import FLOOR, Variance, moderate, probability_beyond, tail

#: What is asked of a robust scale at least: fewer than these have no others.
FEWEST = 4
#: Efficiency of the median absolute deviation for normal values: n of them tell as much of the
#: spread as 0.37 n by the standard deviation (Rousseeuw and Croux, "Alternatives to the median
#: absolute deviation", 1993, section 1).
EFFICIENCY = 0.37
#: Variance of a median over that of a mean, of normal values.
OF_A_MEDIAN = np.pi / 2
#: Values that show tails, by the thirty furthest out: where those are 3%, they are no
#: tail. Of 600 sound nodes with tails as heavy as Student's t of 5, whose good side has 1800 values
#: in all, 22 in 100 screenings were accused while 2000 were asked for, and none since.
ENOUGH = 1100
OUTERMOST = 3
#: Degrees of freedom of tails where too few values show them: of medians of several measurements.
UNSEEN_TAIL = 10.0


@dataclass(frozen=True, eq=False)
class Outliers:
    """How far values are from the others.

    :param far: shape (n,), by how much each is worse than the median.
    :param spread: standard deviation between those that are not outliers.
    :param chance: shape (n,), how many sound ones as far off there are on average, in all that is
        tested; infinite where nobody looked.
    """

    far: Floats
    spread: float
    chance: Floats


def robust_variance(values: Floats) -> Variance:
    """The variance of most values, whatever up to half of them are: shape (n,)."""
    return robust_rows(values[None])[0]


def robust_rows(values: Floats) -> list[Variance]:
    """The robust variance of each row: shape (N, n)."""
    deviations = np.abs(values - np.median(values, axis=1, keepdims=True))
    freedom = EFFICIENCY * (values.shape[1] - 1)
    scales = 1.4826 * np.median(deviations, axis=1)
    return [Variance(scale**2, freedom) for scale in scales.tolist()]


def tails(standard: Floats) -> float:
    """Degrees of freedom of the tails of sound ones.

    :param standard: values over their spread, of those that no fault has moved.
    """
    return tail(standard, OUTERMOST) if len(standard) >= ENOUGH else UNSEEN_TAIL


def good_side(values: Floats) -> Floats:
    """The distances from the median of better values, in units of the robust spread.

    No fault brings anybody there, so they show how far off sound ones are.
    """
    standard = (values - np.median(values)) / max(robust_variance(values).value ** 0.5, FLOOR)
    return np.asarray(-standard[standard < 0])


def outliers(
    values: Floats,
    prior: Variance,
    tests: float,
    least: float,
    tail: float = UNSEEN_TAIL,
    errors: Floats | None = None,
) -> Outliers:
    """Hold each value against the median of all.

    :param values: shape (n,), natural logarithms, larger where worse.
    :param prior: what is known of their spread beforehand; a few values lean on it.
    :param tests: of all values and figures that are tested at once.
    :param least: nearer than this to the median nothing is an outlier.
    :param tail: degrees of freedom of the sound ones' tails.
    :param errors: shape (n,), standard errors of the values: none is surer than its own, however
        alike the others happen to be.
    """
    n = len(values)
    far = values - np.median(values)
    chance = np.full(n, np.inf)
    spread = moderate(robust_variance(values), prior)
    scale = max(spread.value, FLOOR**2) ** 0.5
    if n >= FEWEST:
        own = np.zeros(n) if errors is None else errors
        error = np.maximum(scale, own) * (1 + OF_A_MEDIAN / n) ** 0.5
        for i in np.flatnonzero(far > least):
            chance[i] = tests * probability_beyond(float(far[i] / error[i]), spread.freedom, tail)
    return Outliers(far, scale, chance)
