"""Guidelines that collective operations keep on any machine: none takes longer than its parts.

The same result can be had by other operations of the same MPI, by a larger message, or by two
halves. Where that is faster, the MPI chose a bad algorithm. No reference is needed. (Träff, Gropp
and Thakur, Self-consistent MPI performance guidelines, IEEE TPDS 21, 2010.)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

#: The time of an operation at a size in bytes, in seconds: of the next size that was
#: measured, for a message can be padded.
Time = Callable[[str, float], float]

#: What an operation must not take longer than: in words, and the time of that at a size n with p
#: ranks. Sizes are those of sources/mpi/collectives.c: of the whole for bcast, reduce and
#: allreduce, otherwise of the block of a rank.
PARTS: tuple[tuple[str, str, Callable[[Time, int, int], float]], ...] = (
    ('allreduce', 'reduce and bcast', lambda t, n, p: t('reduce', n) + t('bcast', n)),
    (
        'allreduce',
        'reduce_scatter and allgather',
        lambda t, n, p: t('reduce_scatter', n / p) + t('allgather', n / p),
    ),
    # Each call with a root is timed behind a barrier, which ranks leave one after the other.
    ('reduce', 'allreduce', lambda t, n, p: t('allreduce', n) + t('barrier', 0)),
    ('bcast', 'scatter and allgather', lambda t, n, p: t('scatter', n / p) + t('allgather', n / p)),
    ('allgather', 'gather and bcast', lambda t, n, p: t('gather', n) + t('bcast', p * n)),
    ('allgather', 'alltoall', lambda t, n, p: t('alltoall', n)),
    ('alltoall', 'a scatter from each rank', lambda t, n, p: p * t('scatter', n)),
    ('gather', 'allgather', lambda t, n, p: t('allgather', n) + t('barrier', 0)),
    ('scatter', 'bcast', lambda t, n, p: t('bcast', p * n)),
    (
        'reduce_scatter',
        'reduce and scatter',
        lambda t, n, p: t('reduce', p * n) + t('scatter', n),
    ),
)

OPERATIONS = (
    *('allgather', 'allreduce', 'alltoall', 'bcast'),
    *('gather', 'reduce', 'reduce_scatter', 'scatter'),
)

#: A violation is at least this factor at each of two or more neighbouring sizes, one of which was
#: measured in all rounds of the program. All others are measured within one or two, and a spell of
#: the machine that slows them slows neighbouring sizes alike. Where messages are slow between the
#: two cores, good algorithms have factors of up to 3.7 (docs/measurements.md).
FACTOR = 4.0


@dataclass(frozen=True)
class Guideline:
    """What an operation must not take longer than, and how long it takes.

    :param operation: which.
    :param parts: what does the same, in words.
    :param factors: by size in bytes, ascending, how many times as long the operation takes, by its
        best sample and the median of its parts: others who slow down some samples make it less.
        Where one of them was not measured, it is left out.
    :param in_bouts: the sizes at which the operation was measured in the most bouts.
    """

    operation: str
    parts: str
    factors: tuple[tuple[int, float], ...]
    in_bouts: frozenset[int]

    @property
    def worst(self) -> float:
        """The greatest factor that two neighbouring sizes have, both; 0 if there are none.

        One of the two was measured in the most bouts.
        """
        pairs = pairwise(self.factors)
        counted = (min(a, b) for (m, a), (n, b) in pairs if {m, n} & self.in_bouts)
        return max(counted, default=0.0)

    def violations(self) -> Iterator[str]:
        """Where it is violated, a sentence for each range of sizes."""
        for is_bad, run in groupby(self.factors, key=lambda one: one[1] >= FACTOR):
            bad = [*run]
            sizes, factors = zip(*bad, strict=True)
            if is_bad and len(bad) > 1 and {*sizes} & self.in_bouts:
                yield (
                    f'{self.operation} takes {min(factors):.1f} times as long as {self.parts}, '
                    f'or longer, from {sizes[0]} to {sizes[-1]} bytes'
                )


def guidelines(results: Iterable[Mapping[str, Any]], ranks: int) -> list[Guideline]:
    """All guidelines, that which is violated most first.

    :param results: of the report of ``collectives``.
    """
    results = [*results]
    times = {(one['op'], one['size']): one['time'] for one in results}
    bouts = {(one['op'], one['size']): len(one.get('bouts', ())) for one in results}
    most = max((2, *bouts.values()))
    in_bouts = {point for point, count in bouts.items() if count == most}
    sizes = sorted({size for operation, size in times if operation in OPERATIONS})

    def median(operation: str, size: float) -> float:
        padded = size if size == 0 else (sizes[bisect_left(sizes, size) :] or [math.inf])[0]
        return float(times[operation, padded]['median'])

    def held(operation: str, parts: str, seconds: Callable[[Time, int, int], float]) -> Guideline:
        factors = []
        for size in sizes:
            try:
                least = seconds(median, size, ranks)
                factors.append((size, times[operation, size]['best'] / least))
            except KeyError:  # not measured
                continue
        sure = frozenset(size for size in sizes if (operation, size) in in_bouts)
        return Guideline(operation, parts, tuple(factors), sure)

    def larger(operation: str) -> Guideline:
        return held(operation, 'itself with twice the bytes', lambda t, n, p: t(operation, 2 * n))

    def halves(operation: str) -> Guideline:
        words = 'itself twice with half the bytes'
        return held(operation, words, lambda t, n, p: 2 * t(operation, n / 2))

    found = [held(*one) for one in PARTS]
    found += [of(operation) for operation in OPERATIONS for of in (larger, halves)]
    return sorted(found, key=lambda guideline: -guideline.worst)
