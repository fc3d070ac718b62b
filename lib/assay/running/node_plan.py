"""Which case has which nodes of an allocation: the largest first, and holes are filled."""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Case = TypeVar('Case', bound=Hashable)


@dataclass(frozen=True)
class Want:
    """The nodes that a case needs.

    :param count: how many.
    :param among: the only ones that it may have; None for any.
    :param is_last: whether it has its turn only when no others wait.
    """

    count: int
    among: frozenset[str] | None = None
    is_last: bool = False


class NodePlan(Generic[Case]):
    """The nodes of an allocation, and the cases that wait for some of them.

    A node has one case at a time. Of those whose nodes are free the one that needs most of them is
    next, of equals the one that came first. A large one waits while smaller ones keep its nodes
    busy, at most until all of these have run.

    :param nodes: their names; neighbours in this order are used together.
    :param at_once: the most cases at a time.
    :param choose: chooses so many of free nodes, or none where they do not suffice; by default they
        are used in their order.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        at_once: float = math.inf,
        choose: Callable[[Collection[str], int], list[str]] | None = None,
    ) -> None:
        self._choose = choose
        self._places = {node: place for place, node in enumerate(nodes)}
        self._names = [*nodes]
        self._at_once = at_once
        self._running = 0
        self._free = {*nodes}
        # The places of free nodes, and maybe of some that are no longer free.
        self._heap = [*range(len(nodes))]
        # In the order in which they came.
        self._waiting: dict[Want, OrderedDict[Case, None]] = {}
        self._largest_first: list[Want] = []

    @property
    def nodes(self) -> set[str]:
        """The nodes that are not lost."""
        return {*self._places}

    def add(self, case: Case, want: Want) -> None:
        """Let a case wait for nodes."""
        if want not in self._waiting:
            self._waiting[want] = OrderedDict()
            self._largest_first = sorted(self._waiting, key=lambda one: (one.is_last, -one.count))
        self._waiting[want][case] = None

    def next(self) -> tuple[Case, list[str]] | None:
        """The next case and its nodes, which are no longer free; None if none can start."""
        if self._running >= self._at_once:
            return None
        others_wait = False
        for want in self._largest_first:
            if want.is_last and others_wait:
                break
            if self._waiting[want] and (nodes := self._take(want)):
                self._running += 1
                return self._waiting[want].popitem(last=False)[0], nodes
            others_wait |= bool(self._waiting[want]) and not want.is_last
        return None

    def has_ended(self, nodes: Iterable[str]) -> None:
        """A case has ended: those of its nodes that are not lost are free."""
        self._running -= 1
        self.give_back(nodes)

    def give_back(self, nodes: Iterable[str]) -> None:
        """Nodes of a case that has ended are free: those that are not lost."""
        for node in nodes:
            if node in self._places:
                self._free.add(node)
                heapq.heappush(self._heap, self._places[node])

    def lose(self, nodes: Iterable[str]) -> None:
        """Give no more cases to nodes."""
        for node in nodes:
            self._places.pop(node, None)
            self._free.discard(node)

    def too_large(self) -> list[Case]:
        """Take out the cases for which there are too few nodes, even if all were free."""
        found: list[Case] = []
        for want, cases in self._waiting.items():
            among = self._places.keys() if want.among is None else self._places.keys() & want.among
            if cases and len(among) < want.count:
                found += cases
                cases.clear()
        return found

    def waiting(self) -> list[Case]:
        """Take out all cases that wait."""
        found = [case for cases in self._waiting.values() for case in cases]
        self._waiting.clear()
        self._largest_first.clear()
        return found

    def _take(self, want: Want) -> list[str]:
        """Free nodes for a case, those chosen or the first; none if they do not suffice."""
        if len(self._free) < want.count:
            return []
        if self._choose:
            free = self._free if want.among is None else want.among & self._free
            found = self._choose(free, want.count)
            self._free.difference_update(found)
            return found
        if want.among is not None:
            able = sorted(want.among & self._free, key=self._places.__getitem__)
            found = able[: want.count] if len(able) >= want.count else []
            self._free.difference_update(found)
            return found
        found = []
        while len(found) < want.count:
            node = self._names[heapq.heappop(self._heap)]
            if node in self._free:
                self._free.remove(node)
                found.append(node)
        return found
