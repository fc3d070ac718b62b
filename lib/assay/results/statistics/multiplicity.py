"""Error rates that are promised for a whole suite, and for a year of looks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from assay import AssayError
from assay.results.statistics.series import Floats

#: The share of unchanged suites in which anything at all may be called worse; likewise better.
SUITE_RATE = 0.01


def holm(p_values: ArrayLike) -> Floats:
    """p-values of a family, adjusted so that each may be held against the family's rate.

    Holm's step-down method holds under every dependence between the figures (Holm, Scandinavian
    Journal of Statistics 6, 1979).

    :param p_values: shape (m,), each within 0 and 1.
    :returns: shape (m,).
    :raises AssayError: if one is no probability.
    """
    given = np.asarray(p_values, dtype=np.float64)
    if not ((given >= 0) & (given <= 1)).all():  # also of NaN
        raise AssayError('a p-value is within 0 and 1')
    order = np.argsort(given)
    stepped = given[order] * np.arange(given.size, 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted


#: How many may be expected in the time that a promise is for.
_FALSE_ALARMS = 0.35


def rate_of_a_look(looks: int) -> float:
    """The suite's rate at each of many looks: equal shares of the false alarms of all of them.

    The expectation of a sum is the sum of expectations, however alike looks of successive days are.
    0.35 expected alarms make more than one in fewer than 5% of years (Poisson: 4.9%).

    :param looks: how often somebody looks in the time that the promise is for.
    :raises AssayError: if there is no look.
    """
    if looks < 1:
        raise AssayError('a rate needs at least one look')
    return min(_FALSE_ALARMS / looks, SUITE_RATE)
