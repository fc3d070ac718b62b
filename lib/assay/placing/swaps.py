"""Ranks that change their seats with each other for as long as that saves time."""

from __future__ import annotations

import numpy as np

from assay.placing.problem import ROUNDING, Problem, row
from assay.placing.seats import Numbers

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

    def __init__(self, problem: Problem, group: Numbers) -> None:
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
            talks, amount = row(values, rank)
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
                talks, amount = row(values, rank)
                self.cost[talks] += amount[:, None] * (price[new] - price[old])
            self.members[old].remove(rank)
            self.members[new].add(rank)
            self.group[rank] = new


def improved(problem: Problem, start: Numbers) -> Numbers:
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
