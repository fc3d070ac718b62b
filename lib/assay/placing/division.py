"""Ranks divided among the groups of a machine, from the top down.

Each time they are halved along the low eigenvectors of what they send (Pothen, Simon and Liou, SIAM
J. Matrix Anal. Appl. 11, 1990), and the halves are improved by swaps as Kernighan and Lin do it
(Bell Syst. Tech. J. 49, 1970).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from assay.placing.problem import ROUNDING, Floats, Problem, Truths, row
from assay.placing.seats import Numbers

#: Ranks up to which eigenvectors are those of a dense matrix.
DENSE = 400
#: Of the ways to halve ranks so many, those that part least, are improved by swaps.
TRIED = 2
#: In which directions of three eigenvectors ranks are halved: round the first two, and beyond.
_DIRECTIONS = np.array(
    [(np.cos(angle), np.sin(angle), 0.0) for angle in np.arange(8) * np.pi / 8]
    + [(x, y, z) for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0) for z in (0.5, 1.0)]
)


def divided(problem: Problem) -> Numbers:
    """A leaf group for each rank, by bisection from the top of the machine down."""
    groups = problem.groups
    _, first, sizes = np.unique(groups[0], return_index=True, return_counts=True)
    above = groups[:, first]
    found = np.empty(problem.ranks, dtype=np.int64)
    work = [(np.arange(problem.ranks), np.lexsort(above))]
    while work:
        ranks, leaves = work.pop()
        if len(leaves) == 1:
            found[ranks] = leaves[0]
            continue
        level = int(np.flatnonzero((above[:, leaves] != above[:, leaves[:1]]).any(axis=1))[-1])
        cut = _middle(above[level, leaves], sizes[leaves])
        left = leaves[:cut]
        half = _halved(_extra(problem, level, ranks), int(sizes[left].sum()))
        work += [(ranks[half], left), (ranks[~half], leaves[cut:])]
    # Ranks that stay take their places from the ranks that were given them.
    own = groups[0]
    for rank in np.flatnonzero(problem.fixed):
        if found[rank] != own[rank]:
            stays = problem.fixed & (own == own[rank])
            other = np.flatnonzero((found == own[rank]) & ~stays)[0]
            found[[rank, other]] = found[[other, rank]]
    return found


def _middle(level: Numbers, sizes: Numbers) -> int:
    """Where to cut a list of leaves so that no group of a level is cut, nearest to the middle."""
    ends = np.flatnonzero(level[1:] != level[:-1]) + 1
    before = np.cumsum(sizes)[ends - 1]
    return int(ends[np.abs(before - sizes.sum() / 2).argmin()])


def _extra(problem: Problem, level: int, ranks: Numbers) -> Any:
    """What it costs more, of each two of some ranks, to be in two groups of a level."""
    latency = problem.latency[level + 1] - problem.latency[level]
    per_byte = problem.per_byte[level + 1] - problem.per_byte[level]
    messages, size = (one[ranks][:, ranks] for one in (problem.messages, problem.bytes))
    if latency == per_byte == 0:  # both ways cost the same: then ranks that talk
        return messages
    return (messages * latency + size * per_byte).tocsr()


def _halved(weights: Any, count: int) -> Truths:
    """So many ranks that cost little to part from the others: shape (m,).

    Those that do not talk to each other are parted first; at most one group of others is cut.
    """
    from scipy.sparse.csgraph import connected_components

    _, part = connected_components(weights, directed=False)
    sizes = np.bincount(part)
    taken, left, last = np.zeros(len(sizes), dtype=np.bool_), count, 0
    for one in np.argsort(-sizes, kind='stable').tolist():
        if sizes[one] <= left:
            taken[one] = True
            left -= int(sizes[one])
        else:
            last = one
    half = np.asarray(taken[part])
    if left:
        members = np.flatnonzero(part == last)
        half[members[_cut(weights[members][:, members], left)]] = True
    return half


def _cut(weights: Any, count: int) -> Truths:
    """So many of ranks that all talk to each other by some way: shape (m,).

    Where a graph is as long as it is wide, its eigenvectors are of no certain direction: several
    are tried, and the order of the ranks, which often follows their problem.
    """
    m = weights.shape[0]
    vectors = _low_eigenvectors(weights)
    ways = [
        np.arange(m),
        *(vectors @ direction for direction in _DIRECTIONS[:, : vectors.shape[1]]),
    ]
    halves = []
    for way in ways:
        half = np.zeros(m, dtype=np.bool_)
        half[np.argsort(way, kind='stable')[:count]] = True
        halves.append((float(half @ (weights @ ~half)), half))
    halves.sort(key=lambda one: one[0])
    swapped = [_swapped(weights, half) for _, half in halves[:TRIED]]
    return min(swapped, key=lambda half: float(half @ (weights @ ~half)))


def _swapped(weights: Any, half: Truths) -> Truths:
    """A half after all swaps with the other one that save."""
    half = half.copy()
    sign = np.where(half, 1.0, -1.0)
    pull = weights @ sign
    least = ROUNDING * float(weights.sum())
    amounts = np.zeros(len(half))
    for _ in range(len(half)):
        gain = -sign * pull
        one = int(np.where(half, gain, -np.inf).argmax())
        talks, amount = row(weights, one)
        amounts[talks] = amount
        both = np.where(half, -np.inf, gain - 2 * amounts)
        amounts[talks] = 0
        other = int(both.argmax())
        if gain[one] + both[other] <= least:
            break
        for rank in (one, other):
            talks, amount = row(weights, rank)
            pull[talks] -= 2 * sign[rank] * amount
            sign[rank] = -sign[rank]
        half[[one, other]] = False, True
    return half


def _low_eigenvectors(weights: Any) -> Floats:
    """The eigenvectors of the Laplacian's smallest eigenvalues but the first, or near to them.

    :returns: shape (m, 3), or fewer columns of few ranks.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import lobpcg

    degree = np.asarray(weights.sum(axis=1)).ravel()
    m = len(degree)
    if m <= DENSE:
        laplacian = np.diag(degree) - weights.toarray()
        return np.asarray(np.linalg.eigh(laplacian)[1][:, 1:4])
    scale = float(degree.mean()) or 1.0
    laplacian = (diags_array(degree) - weights) / scale
    precondition = diags_array(1 / np.maximum(degree / scale, 1e-3))
    start = np.cos(np.pi * np.outer(np.arange(m) + 0.5, [1, 2, 3]) / m)
    with warnings.catch_warnings():  # near enough is good enough
        warnings.simplefilter('ignore')
        _, found = lobpcg(
            *(laplacian, start, None, precondition, np.ones((m, 1))),
            largest=False,
            maxiter=60,
            tol=1e-4,
        )
    return np.asarray(found if np.isfinite(found).all() else start)
