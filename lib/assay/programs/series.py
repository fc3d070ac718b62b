"""A series of runs of one problem: its points, speed-up and efficiency, knee, best and worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from assay.programs.figure import Figure
from assay.programs.sizes import SIZES

#: A step to more ranks is worth it if it wins at least this part of what it could.
WORTHWHILE = 0.5


@dataclass(frozen=True)
class Point:
    """One run of a series.

    :param ranks: of all nodes.
    :param threads: of each rank.
    :param nodes: that the ranks were on.
    :param size: of the problem (:mod:`assay.programs.sizes`).
    :param worth: how many nodes' problem of that size it computed.
    """

    ranks: int
    threads: int
    nodes: int
    size: str
    worth: float

    @property
    def name(self) -> str:
        """Its folder in the job's."""
        return f'{self.ranks}x{self.threads}-{self.size}'


def scaling_points(cores: int, nodes: int, size: str, weak: bool) -> list[Point]:
    """One rank, two, four … all cores of a node, then two, four … all nodes.

    :param cores: of a node.
    :param nodes: most of them.
    :param weak: the problem grows with the ranks; otherwise it is always that of one node.
    """
    steps = [(ranks, 1) for ranks in _doubled(cores)]
    steps += [(cores * count, count) for count in _doubled(nodes)[1:]]
    return [Point(ranks, 1, count, size, ranks / cores if weak else 1.0) for ranks, count in steps]


def factorisations(cores: int, nodes: int, size: str) -> list[Point]:
    """Every way to fill the nodes with ranks of equally many threads, from one thread each."""
    return [
        Point(cores // threads * nodes, threads, nodes, size, float(nodes))
        for threads in range(1, cores + 1)
        if cores % threads == 0
    ]


def sizes_up_to(cores: int, nodes: int, size: str) -> list[Point]:
    """One rank on each core, with problems from the smallest size to this one."""
    return [
        Point(cores * nodes, 1, nodes, one, float(nodes)) for one in SIZES[: SIZES.index(size) + 1]
    ]


def _doubled(most: int) -> list[int]:
    counts = [1]
    while 2 * counts[-1] <= most:
        counts.append(2 * counts[-1])
    return counts if counts[-1] == most else [*counts, most]


def scaling_figures(ranks: Sequence[int], rates: Sequence[float]) -> dict[str, Figure]:
    """Speed-up and parallel efficiency at each number of ranks, and the knee.

    Both are against the first point: ``speedup = rate / rate_1``, ``efficiency = speedup / (ranks /
    ranks_1)``. For a weak series the rate grows with the problem, so the same formulae hold. The
    knee is the last number of ranks up to which each step won at least :data:`WORTHWHILE` of the
    ranks that it added.
    """
    figures, knee = {}, ranks[0]
    for count, rate in zip(ranks[1:], rates[1:], strict=True):
        speedup = rate / rates[0]
        figures[f'speedup_{count}'] = Figure(speedup, '1', 'higher')
        figures[f'efficiency_{count}'] = Figure(speedup * ranks[0] / count, '1', 'higher')
    for (fewer, slower), (more, faster) in pairwise(zip(ranks, rates, strict=True)):
        if faster / slower - 1 < WORTHWHILE * (more / fewer - 1):
            break
        knee = more
    # The last point once more under a name that no number of cores is in, for default references.
    last = replace(figures[f'efficiency_{ranks[-1]}'], headline=True)
    return figures | {'efficiency': last, 'knee': Figure(float(knee), 'ranks', 'higher')}


def balance_figures(rates: Sequence[float], unit: str) -> dict[str, Figure]:
    """The best and the worst rate, and their ratio."""
    return {
        'best': Figure(max(rates), unit, 'higher'),
        'worst': Figure(min(rates), unit, 'higher'),
        'worst_over_best': Figure(min(rates) / max(rates), '1', 'higher', headline=True),
    }
