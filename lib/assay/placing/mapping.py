"""Which rank should sit where, so that messages take the least time.

Up to :data:`FEW` ranks all ways are searched. More are divided among the groups of the machine, and
then swapped. The ranks as they sit now are swapped too, and the better of the two is taken. Nothing
depends on chance or on a clock: the same report gives the same plan.

All ways are searched by branch and bound: groups that are alike and still empty are tried once, of
ten ranks on ten nodes there is one way. Ranks are divided from the top of the machine down: each
time they are halved along the low eigenvectors of what they send (Pothen, Simon and Liou, SIAM J.
Matrix Anal. Appl. 11, 1990), and the halves are improved by swaps as Kernighan and Lin do it (Bell
Syst. Tech. J. 49, 1970).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from assay.placing.problem import ROUNDING, Floats, Numbers, PlacingProblem, Truths, partners_of

# Divided among groups -----------------------------------------------------------------------------

#: Ranks up to which eigenvectors are those of a dense matrix.
DENSE = 400
#: Of the ways to halve ranks so many, those that part least, are improved by swaps.
TRIED = 2
#: In which directions of three eigenvectors ranks are halved: round the first two, and beyond.
_DIRECTIONS = np.array(
    [(np.cos(angle), np.sin(angle), 0.0) for angle in np.arange(8) * np.pi / 8]
    + [(x, y, z) for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0) for z in (0.5, 1.0)]
)


def divide(problem: PlacingProblem) -> Numbers:
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


def _extra(problem: PlacingProblem, level: int, ranks: Numbers) -> Any:
    """The extra cost, for each two of these ranks, of being in two groups of a level."""
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
        talks, amount = partners_of(weights, one)
        amounts[talks] = amount
        both = np.where(half, -np.inf, gain - 2 * amounts)
        amounts[talks] = 0
        other = int(both.argmax())
        if gain[one] + both[other] <= least:
            break
        for rank in (one, other):
            talks, amount = partners_of(weights, rank)
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


# All ways searched -------------------------------------------------------------------------------

#: What a subtree of the machine looks like: seats of each kind, or what its parts look like.
Shape = tuple[object, ...]


class _Search:
    """The search for the leaf group of each rank that costs least, in a reduced problem."""

    def __init__(self, problem: PlacingProblem) -> None:
        n, levels = problem.ranks, len(problem.groups)
        leaf = problem.groups[0]
        self.kinds = problem.kinds.tolist()
        _, first = np.unique(leaf, return_index=True)
        #: Shape (levels, G): the groups that each leaf is in.
        self.above = problem.groups[:, first]
        far = (self.above[:, :, None] != self.above[:, None, :]).sum(axis=0)
        messages, size = problem.messages.toarray(), problem.bytes.toarray()
        #: Shape (n, n, distances): seconds of each two ranks by how far apart they are.
        self.price = messages[..., None] * problem.latency + size[..., None] * problem.per_byte
        self.far = far
        # Ranks that stay come first, then those that talk most to the ranks before them.
        self.order = np.flatnonzero(problem.fixed).tolist()
        weight = self.price[..., -1]
        while len(self.order) < n:
            left = [rank for rank in range(n) if rank not in self.order]
            talk = weight[:, self.order].sum(axis=1) if self.order else weight.sum(axis=1)
            self.order.append(max(left, key=lambda rank: (talk[rank], -rank)))
        self.own = {rank: int(leaf[rank]) for rank in self.order[: int(problem.fixed.sum())]}
        self.free = [
            {kind: self.kinds_in(leaf, group).count(kind) for kind in {*self.kinds}}
            for group in range(len(first))
        ]
        self.used = [[0] * (int(level.max()) + 1) for level in self.above]
        self.shapes = self._shapes(levels)
        # What two ranks cost at least, summed over those that are not both seated: by depth.
        nearest = self.price[..., 0]
        self.rest = [
            float(nearest[np.ix_(left, left)].sum() / 2)
            for left in (self.order[depth:] for depth in range(n + 1))
        ]
        self.group = np.full(n, -1)
        self.best: Numbers = leaf.copy()
        self.least = problem.cost(np.arange(n))

    def kinds_in(self, leaf: Numbers, group: int) -> list[int]:
        return [self.kinds[seat] for seat in np.flatnonzero(leaf == group)]

    def _shapes(self, levels: int) -> list[list[Shape]]:
        """The shape of each group of each level, from the smallest level up."""
        found: list[list[Shape]] = [[tuple(sorted(free.items())) for free in self.free]]
        for level in range(1, levels):
            below = self.above[level - 1]
            parts: dict[int, dict[int, Shape]] = {}
            for leaf, group in enumerate(self.above[level].tolist()):
                parts.setdefault(group, {})[int(below[leaf])] = found[-1][int(below[leaf])]
            found.append(
                [tuple(sorted(parts[group].values(), key=repr)) for group in sorted(parts)]
            )
        return found

    def run(self) -> Numbers:
        """Shape (n,)."""
        self._seat(0, 0.0, np.zeros((len(self.group), len(self.free))))
        return self.best

    def _seat(self, depth: int, cost: float, of_groups: Floats) -> None:
        """Seat the ranks from here on.

        :param of_groups: shape (n, G): what each rank would cost there, with those seated so far.
        """
        if depth == len(self.order):
            if cost < self.least * (1 - ROUNDING):
                self.least, self.best = cost, self.group.copy()
            return
        rank = self.order[depth]
        tried = set()
        for leaf in self._leaves(rank, of_groups[rank]):
            alike = self._alike(leaf)
            if alike in tried:
                continue
            tried.add(alike)
            self._put(rank, leaf, 1)
            more = of_groups + self.price[rank][:, self.far[leaf]]
            new = cost + float(of_groups[rank, leaf])
            left = self.order[depth + 1 :]
            bound = new + self.rest[depth + 1] + float(more[left].min(axis=1).sum())
            if bound < self.least * (1 - ROUNDING):
                self._seat(depth + 1, new, more)
            self._put(rank, leaf, -1)

    def _leaves(self, rank: int, cost: Floats) -> list[int]:
        """The leaves that a rank may sit in, the cheapest first."""
        if rank in self.own:
            return [self.own[rank]]
        kind = self.kinds[rank]
        free = [leaf for leaf in range(len(self.free)) if self.free[leaf][kind]]
        return sorted(free, key=lambda leaf: cost[leaf])

    def _alike(self, leaf: int) -> Shape:
        """The same for leaves between which nothing decides: their empty groups look alike."""
        found: list[object] = []
        for level in reversed(range(len(self.above))):
            group = int(self.above[level, leaf])
            if self.used[level][group]:
                found.append(group)
            else:
                found.append(self.shapes[level][group])
        return tuple(found)

    def _put(self, rank: int, leaf: int, count: int) -> None:
        """Seat a rank, or take it away again, by a count of 1 or -1."""
        self.group[rank] = leaf if count > 0 else -1
        self.free[leaf][self.kinds[rank]] -= count
        for level, used in enumerate(self.used):
            used[int(self.above[level, leaf])] += count


# Swapped ------------------------------------------------------------------------------------------

#: Ranks up to which each may be swapped with any other; more try their best groups only.
ANY, BEST_GROUPS = 300, 3
#: Rounds over all ranks at most.
ROUNDS = 6
#: Divided by ranks and by groups: how often the result is shaken, and tried again.
SHAKES = 2000
#: Numbers of a table of ranks and groups at most: no pairs are swapped beyond it.
LARGEST_TABLE = 10_000_000


class _Swaps:
    """Ranks in leaf groups, and what each would cost in every other one.

    :param group: shape (n,), the leaf group of each rank.
    """

    def __init__(self, problem: PlacingProblem, group: Numbers) -> None:
        self.problem, self.group = problem, group.copy()
        _, first = np.unique(problem.groups[0], return_index=True)
        above = problem.groups[:, first]
        far = (above[:, :, None] != above[:, None, :]).sum(axis=0)
        #: Shape (G, G): seconds of a message and of a byte between two groups.
        self.latency, self.per_byte = problem.latency[far], problem.per_byte[far]
        self.messages, self.bytes = problem.messages.tocsr(), problem.bytes.tocsr()
        #: Shape (n, G): seconds of each rank's messages if it sat there.
        self.cost = np.asarray(
            self.messages @ self.latency[group] + self.bytes @ self.per_byte[group]
        )
        self.members = [{*np.flatnonzero(group == one).tolist()} for one in range(len(first))]
        self.amounts = np.zeros(problem.ranks)

    def run(self) -> None:
        """Swap for as long as that saves time."""
        least = ROUNDING * float(self.cost[np.arange(len(self.group)), self.group].sum())
        for _ in range(ROUNDS):
            own = self.cost[np.arange(len(self.group)), self.group]
            saved = own - self.cost.min(axis=1)
            # Of two that save time together one saves it for itself.
            ranks = [rank for rank in np.argsort(-saved, kind='stable') if saved[rank] > least]
            if not sum(self._improve(int(rank), least) for rank in ranks):
                return

    def _improve(self, rank: int, least: float) -> bool:
        """Swap a rank with the one that saves most, if any does."""
        if self.problem.fixed[rank]:
            return False
        own = self.group[rank]
        groups = np.flatnonzero(self.cost[rank] < self.cost[rank, own])
        if self.problem.ranks > ANY and len(groups) > BEST_GROUPS:
            groups = groups[np.argpartition(self.cost[rank, groups], BEST_GROUPS)[:BEST_GROUPS]]
        others = np.array([i for one in groups for i in sorted(self.members[one])], dtype=np.int64)
        if not others.size:
            return False
        its = self.group[others]
        saved = self.cost[rank, own] - self.cost[rank, its]
        saved += self.cost[others, its] - self.cost[others, own]
        # Two that talk to each other are as far apart as before.
        for values, price in ((self.messages, self.latency), (self.bytes, self.per_byte)):
            talks, amount = partners_of(values, rank)
            self.amounts[talks] = amount
            saved -= 2 * self.amounts[others] * (price[own, its] - price[own, own])
            self.amounts[talks] = 0
        problem = self.problem
        saved[problem.fixed[others] | (problem.kinds[others] != problem.kinds[rank])] = -np.inf
        at = int(saved.argmax())
        if saved[at] <= least:
            return False
        self.swap(rank, int(others[at]))
        return True

    def swap(self, one: int, other: int) -> None:
        """Let two ranks change their groups."""
        here, there = int(self.group[one]), int(self.group[other])
        for rank, old, new in ((one, here, there), (other, there, here)):
            for values, price in ((self.messages, self.latency), (self.bytes, self.per_byte)):
                talks, amount = partners_of(values, rank)
                self.cost[talks] += amount[:, None] * (price[new] - price[old])
            self.members[old].remove(rank)
            self.members[new].add(rank)
            self.group[rank] = new


def improve(problem: PlacingProblem, start: Numbers) -> Numbers:
    """Leaf groups after all swaps that save; of few ranks shaken, and tried again."""
    if problem.ranks * (int(start.max()) + 1) > LARGEST_TABLE:
        return start
    swaps = _Swaps(problem, start)
    swaps.run()
    best: Numbers = swaps.group
    free = np.flatnonzero(~problem.fixed)
    random = np.random.default_rng(problem.ranks)
    for _ in range(SHAKES // problem.ranks // len(swaps.members) if len(free) > 1 else 0):
        shaken = _Swaps(problem, best)
        for _ in range(max(2, len(free) // 10)):
            one, other = random.choice(free, 2, replace=False).tolist()
            if problem.kinds[one] == problem.kinds[other]:
                shaken.swap(one, other)
        shaken.run()
        if _sum(shaken) < _sum(swaps):
            swaps, best = shaken, shaken.group
    return best


def _sum(swaps: _Swaps) -> float:
    return float(swaps.cost[np.arange(len(swaps.group)), swaps.group].sum())


# The best of them ---------------------------------------------------------------------------------

#: Ranks up to which all ways are searched.
FEW = 10


def best_seats(whole: PlacingProblem) -> Numbers:
    """The seat of each rank in the best plan that is found: shape (n,).

    A rank that gains nothing by it stays within its group.
    """
    now = np.arange(whole.ranks)
    problem = whole.reduce()
    if not len(problem.groups) or not problem.messages.nnz:
        return now
    if problem.ranks <= FEW:
        return _seated(problem, _Search(problem).run())
    least = problem.cost(now) * (1 - ROUNDING)
    best, found = now, least
    for start in _starts(problem):
        seat = _seated(problem, improve(problem, start))
        if (cost := problem.cost(seat)) < found:
            best, found = seat, cost
    return best


def _starts(problem: PlacingProblem) -> Iterator[Numbers]:
    """The leaf group of each rank, to begin with: as they sit now, and divided anew.

    Of many ranks only the better of the two.
    """
    now = problem.groups[0]
    anew = divide(problem) if len({*problem.kinds.tolist()}) == 1 else now
    if problem.ranks <= ANY:
        yield from (now, anew)
    else:
        yield min(now, anew, key=lambda start: problem.cost(_seated(problem, start)))


def _seated(problem: PlacingProblem, group: Numbers) -> Numbers:
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
