"""Ranks, seats, and what messages between them cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.placing.seats import Numbers

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]

#: What saves less than this share of the whole is noise of rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Problem:
    """n ranks, n seats, and what messages between them cost. Seat i is that of rank i now.

    :param messages: shape (n, n), sparse and symmetric: messages of each two ranks, both ways.
    :param bytes: likewise.
    :param groups: shape (K, n): the group of each seat on each level, the smallest first; each
        divides those of the next level. Seats are as far apart as the number of levels on which
        they are in two groups.
    :param latency: shape (K + 1,), seconds of a message, by distance; not falling.
    :param per_byte: shape (K + 1,), seconds of a byte, likewise.
    :param kinds: shape (n,): ranks and seats of one kind fit each other.
    :param fixed: shape (n,): ranks that stay.
    """

    messages: Any
    bytes: Any
    groups: Numbers
    latency: Floats
    per_byte: Floats
    kinds: Numbers
    fixed: Truths

    @property
    def ranks(self) -> int:
        return len(self.kinds)

    @cached_property
    def pairs(self) -> tuple[Numbers, Numbers, Floats, Floats]:
        """Each two ranks that talk once, with their messages and bytes: four of shape (P,)."""
        from scipy.sparse import coo_array, triu

        both = triu(coo_array(self.messages), 1) * (1 + 0j) + triu(coo_array(self.bytes), 1) * 1j
        found = coo_array(both)
        one, other = found.coords
        return one, other, found.data.real, found.data.imag

    def distances(self, seat: Numbers) -> Numbers:
        """How far apart each two ranks that talk sit: shape (P,).

        :param seat: shape (n,), the seat of each rank.
        """
        one, other, *_ = self.pairs
        return np.asarray((self.groups[:, seat[one]] != self.groups[:, seat[other]]).sum(axis=0))

    def of_pairs(self, seat: Numbers) -> Floats:
        """Seconds of the messages of each two ranks that talk: shape (P,)."""
        _, _, messages, size = self.pairs
        far = self.distances(seat)
        return np.asarray(messages * self.latency[far] + size * self.per_byte[far])

    def cost(self, seat: Numbers) -> float:
        """Seconds of all messages, one after the other."""
        return float(self.of_pairs(seat).sum())

    def reduced(self) -> Problem:
        """Without levels that divide nothing, and distances that no two seats have.

        A level goes if it has one group, a group for each seat, or the groups of the next one.
        """
        groups = [*self.groups]
        latency, per_byte = [*self.latency], [*self.per_byte]
        counts = [len(np.unique(one)) for one in groups]
        for level in reversed(range(len(groups))):
            above = counts[level + 1] if level + 1 < len(groups) else 1
            if counts[level] == above:
                del groups[level], latency[level + 1], per_byte[level + 1], counts[level]
        if groups and counts[0] == self.ranks:
            del groups[0], latency[0], per_byte[0]
        numbers = [np.unique(one, return_inverse=True)[1] for one in groups]
        left = np.array(numbers, dtype=np.int64).reshape(-1, self.ranks)
        return replace(self, groups=left, latency=np.array(latency), per_byte=np.array(per_byte))


def row(values: Any, rank: int) -> tuple[Numbers, Floats]:
    """The ranks that a rank talks to, and how much."""
    part = slice(values.indptr[rank], values.indptr[rank + 1])
    return values.indices[part], values.data[part]
