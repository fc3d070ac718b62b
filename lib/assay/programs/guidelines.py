"""Guidelines that collective operations keep on any machine: none takes longer than its parts.

The same result can be had by other operations of the same MPI, by a larger message, by two halves,
or by messages. Where that is faster, the MPI chose a bad algorithm. No reference is needed. (Träff,
Gropp and Thakur, Self-consistent MPI performance guidelines, IEEE TPDS 21, 2010.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: A violation takes at least this factor in each round (docs/measurements.md has the rates).
FACTOR = 2.0
#: The same against OF_OTHER_SIZES, for whose messages an MPI may have other protocols: two of them
#: below its eager limit take a third of the time of one above it (Open MPI 4.1.4, shared memory).
FACTOR_OF_SIZES = 4.0
OF_OTHER_SIZES = frozenset(
    {
        *('itself with twice the bytes', 'itself twice with half the bytes'),
        *('scatter and allgather', 'reduce_scatter and gather', 'reduce_scatter and allgather'),
    }
)
#: These go to all at once, in a single step where a good algorithm takes log2(ranks): against them
#: the factor is as many times FACTOR, up to FACTOR_OF_SIZES. Between four nodes Open MPI 5.0.9 as
#: it is came to 2.6.
IN_ONE_STEP = frozenset(
    {
        ('allgather', 'messages that do the same'),
        ('allgather', 'alltoall'),
        ('reduce_scatter', 'messages that do the same'),
    }
)

#: Rounds of the program's four that were measured at all: others may have had the cores in one.
FEWEST_ROUNDS = 3


@dataclass(frozen=True)
class Guideline:
    """An operation that should not take longer than what does the same, and how long it takes.

    :param operation: which.
    :param other: what does the same, in words.
    :param size: bytes.
    :param factor: how many times as long it takes, at least, in each round.
    :param ranks: of the job.
    """

    operation: str
    other: str
    size: int
    factor: float
    ranks: int

    @property
    def excess(self) -> float:
        """The factor in parts of its bound: 1 and more is a violation."""
        return self.factor / self.bound

    @property
    def bound(self) -> float:
        """From which factor on it is violated."""
        if self.other in OF_OTHER_SIZES:
            return FACTOR_OF_SIZES
        if (self.operation, self.other) in IN_ONE_STEP:
            return min(FACTOR_OF_SIZES, FACTOR * max(1.0, math.log2(self.ranks)))
        return FACTOR


def guidelines(entries: Iterable[Mapping[str, Any]], ranks: int) -> list[Guideline]:
    """All guidelines that were measured, that which is violated most first.

    :param entries: ``guidelines`` of the report of ``collectives``. Each round's factor is the
        least of its turns, 0 where it had none.
    """
    found = []
    for one in entries:
        known = [factor for factor in one['factors'] if factor]
        if len(known) >= FEWEST_ROUNDS:
            found.append(Guideline(one['op'], one['other'], one['size'], min(known), ranks))
    return sorted(found, key=lambda guideline: -guideline.excess)


def violations(held: Iterable[Guideline]) -> list[str]:
    """A sentence for each operation that violates one, by that which it violates most.

    :param held: that which is violated most first.
    """
    bad = [one for one in held if one.excess >= 1]
    found: dict[str, str] = {}
    for worst in bad:
        operation, other = worst.operation, worst.other
        sizes = sorted(one.size for one in bad if (one.operation, one.other) == (operation, other))
        where = f', at {", ".join(map(str, sizes))} bytes' if any(sizes) else ''
        factor = f'{worst.factor:.1f} times as long as {other}'
        found.setdefault(operation, f'{operation} takes {factor}{where}')
    return [*found.values()]
