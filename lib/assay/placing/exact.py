"""The best of all ways to seat a few ranks, by branch and bound.

Groups that are alike and still empty are tried once: of ten ranks on ten nodes there is one way.
"""

from __future__ import annotations

import numpy as np

from assay.placing.problem import ROUNDING, Floats, Problem
from assay.placing.seats import Numbers

#: What a subtree of the machine looks like: seats of each kind, or what its parts look like.
Shape = tuple[object, ...]


def search(problem: Problem) -> Numbers:
    """The leaf group of each rank that costs least: shape (n,).

    :param problem: reduced.
    """
    return _Search(problem).run()


class _Search:
    def __init__(self, problem: Problem) -> None:
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
        self.used = [[0] * (int(row.max()) + 1) for row in self.above]
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
        """What each group of each level looks like, from the smallest up."""
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
        """Where a rank may sit, the cheapest first."""
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
