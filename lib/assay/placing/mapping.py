"""Which rank should sit where, so that messages take the least time.

Up to :data:`FEW` ranks all ways are searched. More are divided among the groups of the machine, and
then swapped. The ranks as they sit now are swapped too, and the better of the two is taken. Nothing
depends on chance or on a clock: the same report gives the same plan.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from assay.placing.division import divided
from assay.placing.exact import search
from assay.placing.problem import ROUNDING, Problem
from assay.placing.seats import Numbers
from assay.placing.swaps import ANY, improved

#: Ranks up to which all ways are searched.
FEW = 10


def best_seats(whole: Problem) -> Numbers:
    """The seat of each rank in the best plan that is found: shape (n,).

    A rank that gains nothing by it stays within its group.
    """
    now = np.arange(whole.ranks)
    problem = whole.reduced()
    if not len(problem.groups) or not problem.messages.nnz:
        return now
    if problem.ranks <= FEW:
        return _seated(problem, search(problem))
    least = problem.cost(now) * (1 - ROUNDING)
    best, found = now, least
    for start in _starts(problem):
        seat = _seated(problem, improved(problem, start))
        if (cost := problem.cost(seat)) < found:
            best, found = seat, cost
    return best


def _starts(problem: Problem) -> Iterator[Numbers]:
    """The leaf group of each rank, to begin with: as they sit now, and divided anew.

    Of many ranks only the better of the two.
    """
    now = problem.groups[0]
    anew = divided(problem) if len({*problem.kinds.tolist()}) == 1 else now
    if problem.ranks <= ANY:
        yield from (now, anew)
    else:
        yield min(now, anew, key=lambda start: problem.cost(_seated(problem, start)))


def _seated(problem: Problem, group: Numbers) -> Numbers:
    """A seat in its group for each rank: its own if that is there."""
    leaf, seat = problem.groups[0], np.full(problem.ranks, -1)
    stays = leaf == group
    seat[stays] = np.flatnonzero(stays)
    rank = np.flatnonzero(~stays)
    free = np.flatnonzero(~stays)
    by_group = rank[np.lexsort((rank, problem.kinds[rank], group[rank]))]
    by_leaf = free[np.lexsort((free, problem.kinds[free], leaf[free]))]
    seat[by_group] = by_leaf
    return seat
