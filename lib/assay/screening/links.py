"""Nodes, pairs and groups by how fast they reach each other.

A node's part is the median over its pairs, so one bad path makes no node bad, and a bad node none
of its partners; of few pairs the one that stands apart is left out. Where pairs are looked at,
those of bad nodes are left out. Nodes that are slow to all others and not to each other have
something in common. Of few nodes the fewest causes are looked for first, and where they explain a
figure, medians are not asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.results.statistics.outliers import FEWEST, good_side, outliers, tails
from assay.results.statistics.series import Floats
from assay.results.statistics.spread import Variance
from assay.screening.few import change_in_words, comparison_in_words, slow_links
from assay.screening.findings import FALSE_RATE, WAYS, Evidence, ScreeningFinding
from assay.screening.measured import Screening, behind_one_switch, pair_times

#: The spread that is supposed before any is seen, and what that is worth: of nodes, and of pairs.
SUPPOSED = Variance(0.1**2, 6.0)
#: What is nearer to the others than this is as good as they are.
LEAST = 0.10
#: Latency and bandwidth.
FIGURES = 2
#: A pair this many times as far off as any other of both its nodes is no sign of either.
APART = 2.0

Found = defaultdict[str, list[Evidence]]
Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class Reached:
    """The findings on links.

    :param nodes: by name, what shows that a node is slow to all others.
    :param others: pairs, groups, and what may be one or the other.
    """

    nodes: Found
    others: tuple[ScreeningFinding, ...]


@dataclass(frozen=True, eq=False)
class _Figure:
    """One figure of all pairs.

    :param far: shape (P,), by how much each pair is worse than usual, on average over tournaments.
    :param of_nodes: shape (n,), the median of that over each node's pairs; 0 without any.
    :param is_confirmed: shapes (P,) and (n,), whether it was at least half of that each time.
    :param alone: shape (P,), the same while nobody else sent; NaN where that was not measured.
    """

    name: str
    far: Floats
    of_nodes: Floats
    is_confirmed: tuple[Truths, Truths]
    alone: Floats


def find_links(now: Screening, earlier: Sequence[Screening]) -> Reached:
    """The nodes, pairs and groups that are slow to reach.

    :param earlier: older screenings of the same system, newest last.
    """
    nodes: Found = defaultdict(list)
    others: list[ScreeningFinding] = []
    explained = [*slow_links(now, earlier)]
    for one in explained:
        if one.kind == 'node':
            nodes[one.members[0]] += one.evidence
        else:
            others.append(one)
    if len(now.nodes) >= FEWEST and len(now.links.ends):
        known = {evidence.figure for one in explained for evidence in one.evidence}
        figures = [one for one in _figures(now) if one.name not in known]
        slow = _slow(now, figures)
        groups = [*_groups(now, figures, slow)]
        others += groups
        others += _pairs(now, figures, {*slow, *nodes})
        for name in {*slow}.difference(*(one.members for one in groups)):
            nodes[name] += slow[name]
    return Reached(nodes, tuple(_merged(others)))


def _merged(findings: Iterable[ScreeningFinding]) -> Iterator[ScreeningFinding]:
    """Findings of several figures as one."""
    by_culprit: defaultdict[tuple[Any, ...], tuple[Evidence, ...]] = defaultdict(tuple)
    for one in findings:
        by_culprit[one.kind, one.members, one.name] += one.evidence
    for (kind, members, name), evidence in by_culprit.items():
        yield ScreeningFinding(kind, members, evidence, name)


def _slow(now: Screening, figures: list[_Figure]) -> Found:
    """The nodes that are slow to most others, by name."""
    tests = WAYS * FIGURES * len(now.nodes)
    slow: Found = defaultdict(list)
    for figure in figures:
        tail = tails(good_side(figure.of_nodes))
        found = outliers(figure.of_nodes, SUPPOSED, tests, LEAST, tail)
        for i in np.flatnonzero((found.chance < FALSE_RATE) & figure.is_confirmed[1]):
            by = change_in_words(figure.name, found.far[i])
            text = f'{by} to the others, whose spread is {found.spread:.0%}'
            evidence = Evidence.by_distance(figure.name, text, found.far[i], found.chance[i])
            slow[now.nodes[i]].append(evidence)
    return slow


def of_usual(now: Screening) -> dict[str, Floats]:
    """Latency and bandwidth of each pair as multiples of the usual: shape (P,); none without pairs.

    Usual is the median, of pairs behind one switch and of others, where the scheduler knows.
    """
    if not len(now.links.ends):
        return {}
    return {
        one.name: np.exp(one.far if one.name == 'latency' else -one.far) for one in _figures(now)
    }


def _figures(now: Screening) -> Iterator[_Figure]:
    """Latency and bandwidth."""
    links = now.links
    classes = behind_one_switch(now)
    for column, (name, times) in enumerate(pair_times(now).items()):
        usual = np.empty_like(times)
        for one in np.unique(classes):
            which = classes == one
            # Of each node's own, then of the nodes: a few bad nodes are in many pairs.
            of_nodes = _medians(links.ends[which], times[which], len(now.nodes))
            usual[which] = np.nanmedian(of_nodes, axis=0)
        each = times - usual
        far = each.mean(axis=1)
        alone = np.log(links.alone[:, column]) * (1 if name == 'latency' else -1)
        own = ~_stand_apart(links.ends, far, len(now.nodes))
        of_nodes, of_nodes_each = (
            np.nan_to_num(_medians(links.ends[own], one[own], len(now.nodes)))
            for one in (far[:, None], each)
        )
        each_time = _each_time(far, each), _each_time(of_nodes[:, 0], of_nodes_each)
        yield _Figure(name, far, of_nodes[:, 0], each_time, alone - usual.mean(axis=1))


def _each_time(mean: Floats, each: Floats) -> Truths:
    """Whether no tournament shows less than half of their mean: of shapes (N,) and (N, T)."""
    return np.asarray((each >= mean[:, None] / 2).all(axis=1))


def _stand_apart(ends: NDArray[np.int64], far: Floats, nodes: int) -> Truths:
    """Pairs that are far slower than the others of both their nodes: shape (P,)."""
    flat, both = ends.ravel(), np.repeat(far, 2)
    worst_first = np.lexsort((-both, flat))
    which, starts, counts = np.unique(flat[worst_first], return_index=True, return_counts=True)
    has_others = counts > 1
    first, second = np.full((2, nodes), np.inf)
    first[which] = both[worst_first][starts]
    second[which[has_others]] = both[worst_first][starts[has_others] + 1]
    is_worst = (first[ends] == far[:, None]).all(axis=1)
    return np.asarray(is_worst & (far > LEAST) & (far > APART * second[ends].max(axis=1)))


def _medians(ends: NDArray[np.int64], values: Floats, nodes: int) -> Floats:
    """The median of the values of each node's pairs, from shape (P, T) to (nodes, T)."""
    found = np.full((nodes, values.shape[1]), np.nan)
    flat = ends.T.ravel()
    order = np.argsort(flat, kind='stable')
    both = np.concatenate([values, values])[order]
    which, starts = np.unique(flat[order], return_index=True)
    for number, rows in zip(which, np.split(both, starts[1:]), strict=True):
        found[number] = np.median(rows, axis=0)
    return found


def _groups(now: Screening, figures: list[_Figure], slow: Found) -> Iterator[ScreeningFinding]:
    """The switches whose nodes are all slow, then others that are fast to each other."""
    left = {*slow}
    for name, members in sorted(now.switches.items()):
        if len(members) > 1 and left.issuperset(members) and len(members) < len(now.nodes):
            left -= {*members}
            yield ScreeningFinding('group', tuple(sorted(members)), _of_group(slow, members), name)
    for members in _fast_to_each_other(now, figures, left):
        yield ScreeningFinding('group', members, _of_group(slow, members))


def _of_group(slow: Found, members: Iterable[str]) -> tuple[Evidence, ...]:
    """For each figure the evidence of the member that it is least for."""
    by_figure: dict[str, Evidence] = {}
    for one in (one for name in sorted(members) for one in slow[name]):
        known = by_figure.get(one.figure)
        if known is None or (one.change or 0) < (known.change or 0):
            by_figure[one.figure] = one
    return tuple(by_figure.values())


def _fast_to_each_other(
    now: Screening, figures: list[_Figure], among: set[str]
) -> Iterator[tuple[str, ...]]:
    """Sets of slow nodes, joined by pairs that are not slow."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = now.links.ends
    joined = [
        (a, b)
        for (a, b), *far in zip(ends, *(one.far for one in figures), strict=True)
        if {now.nodes[a], now.nodes[b]} <= among and _is_fast(figures, a, b, far)
    ]
    n = len(now.nodes)
    rows, columns = np.array(joined, dtype=np.int64).reshape(-1, 2).T
    _, part = connected_components(coo_array((np.ones(len(rows)), (rows, columns)), (n, n)), False)
    for one in np.unique(part[rows]):
        yield tuple(sorted(now.nodes[i] for i in np.flatnonzero(part == one)))


def _is_fast(figures: list[_Figure], a: int, b: int, far: Sequence[float]) -> bool:
    """Whether two slow nodes are not so to each other, in what both are slow in."""
    both = [min(figure.of_nodes[a], figure.of_nodes[b]) for figure in figures]
    told = [pair < node / 2 for pair, node in zip(far, both, strict=True) if node > LEAST]
    return bool(told) and all(told)


def _pairs(now: Screening, figures: list[_Figure], slow: set[str]) -> Iterator[ScreeningFinding]:
    """Pairs that are slow of themselves, not because of one of their nodes."""
    ends = now.links.ends
    bad = np.array([name in slow for name in now.nodes])
    sound = np.flatnonzero(~bad[ends].any(axis=1))
    tests = WAYS * FIGURES * len(sound)
    for figure in figures:
        own = figure.far[sound]
        if len(own) < FEWEST:
            continue
        outside = outliers(own, SUPPOSED, tests, LEAST, tails(good_side(own)))
        for i in np.flatnonzero(outside.chance < FALSE_RATE):
            pair, far = sound[i], outside.far[i]
            # As fast as others when nobody else sends: a path that pairs share, and no bad one.
            # What was not measured so is not confirmed.
            if not (figure.is_confirmed[0][pair] and figure.alone[pair] > far / 2):
                continue
            a, b = sorted(now.nodes[end] for end in ends[pair])
            what = f'between others, whose spread is {outside.spread:.0%}, also alone'
            text = comparison_in_words(figure.name, far, what)
            evidence = Evidence.by_distance(figure.name, text, far, outside.chance[i])
            yield ScreeningFinding('pair', (a, b), (evidence,))
