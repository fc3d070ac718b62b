"""Few nodes: the fewest of them, or of their links, that explain all that is slow.

Against each other, and if that tells nothing, against their past.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.results.statistics.outliers import EFFICIENCY, OF_A_MEDIAN, robust_variance
from assay.results.statistics.series import Floats
from assay.results.statistics.spread import FLOOR, Variance, moderate
from assay.screening.fewest import (
    MOST_NODES,
    Culprit,
    SuspectCause,
    causes_of_nodes,
    causes_of_pairs,
    find_causes,
)
from assay.screening.findings import (
    FEWEST_EARLIER,
    MOST_EARLIER,
    WAYS,
    Evidence,
    ScreeningFinding,
    less_in_words,
)
from assay.screening.measured import Screening, behind_one_switch, log_slowness, pair_times

#: The spread of sound pairs that is supposed, of sound nodes, and of what one node changes by.
OF_PAIRS, OF_NODES, OF_ONE = Variance(0.1**2, 6.0), Variance(0.02**2, 4.0), Variance(0.01**2, 2.0)
#: The spread of what all have in common between screenings that is supposed before any is seen.
OF_ALL = Variance(0.05**2, 6.0)
#: Of nodes that share a machine's CPUs. Their turns on a CPU differ each time, and the host of a
#: virtual machine moves its CPUs: 17% were seen between 14 screenings; the first six of them had
#: differed by 6%.
OF_ALL_SHARED = Variance(0.25**2, 6.0)
#: What is slow by less may be meant to be so: the network of few nodes is unknown, and one may be
#: a switch further away; against the past half more is reported.
LEAST_OF_LINKS, LEAST_CHANGE_OF_LINKS = float(np.log(2)), float(np.log(1.5))
#: The same of what a node gives: a third less, and a tenth against its own past. Two sound nodes
#: of a virtual cluster differed by 27%.
LEAST_OF_NODES, LEAST_CHANGE_OF_NODES = float(-np.log(2 / 3)), float(-np.log(0.9))
#: In this part of its sweeps a node is slow that is so for good, however much they differ.
FOR_GOOD = 0.75

Numbers = NDArray[np.int64]


def spread_of_all(now: Screening, past: Floats) -> Variance:
    """The variance of the middle of all between screenings, from that of ``past``: shape (m,)."""
    return moderate(robust_variance(past), OF_ALL_SHARED if now.shares_cpus else OF_ALL)


@dataclass(frozen=True, eq=False)
class _Change:
    """The changes since earlier screenings.

    :param known: numbers of those that were there often enough.
    :param each: of them, shape (n, T).
    :param single: what the change of one varies by, as those screenings tell.
    :param common: the same of all.
    """

    known: Numbers
    each: Floats
    single: Variance
    common: Variance
    screenings: int


def _change(now: Screening, each: Floats, before: Floats, prior: Variance) -> _Change | None:
    """None where nothing was there often enough.

    :param each: shape (n, T).
    :param before: of earlier screenings, shape (n, m), NaN if not there.
    """
    known = np.flatnonzero((~np.isnan(before)).sum(axis=1) >= FEWEST_EARLIER)
    if not len(known):
        return None
    rows = before[known]
    rows = rows[:, ~np.isnan(rows).all(axis=0)]
    middles = np.nanmedian(rows, axis=0)
    steps = np.diff(rows - middles, axis=1).ravel()
    steps = steps[~np.isnan(steps)]
    value = robust_variance(steps).value / 2 * (1 + OF_A_MEDIAN / rows.shape[1])
    single = moderate(Variance(max(value, FLOOR**2), EFFICIENCY * len(steps) / 2), prior)
    change = each[known] - np.nanmedian(rows, axis=1)[:, None]
    return _Change(known, change, single, spread_of_all(now, middles), rows.shape[1])


# Nodes --------------------------------------------------------------------------------------------


def slow_nodes(
    now: Screening, earlier: Sequence[Screening], kinds: Sequence[Numbers]
) -> Iterator[tuple[int, Evidence, bool]]:
    """Numbers of the nodes that explain what is slow, and whether they are sure to be bad.

    :param kinds: numbers of the nodes that are peers.
    """
    tests = WAYS * len(now.values)
    for numbers in kinds:
        if not 2 <= len(numbers) <= MOST_NODES:
            continue
        for figure, values in now.values.items():
            slow = log_slowness(values[numbers])
            yield from _changed_nodes(now, earlier, figure, numbers, tests)
            spread = Variance(OF_NODES.value + _error(slow), OF_NODES.freedom)
            places = np.median(slow, axis=1)[:, None]
            found = find_causes(
                places, [*causes_of_nodes(len(numbers))], spread, LEAST_OF_NODES, tests
            )
            bad = [i for i, _ in _single(found)]
            for i, one, often in _often(slow, found):
                text = (
                    f'{less_in_words(one.far)} than {_others(now, numbers, bad)}, '
                    f'in {often} of {now.sweeps} sweeps'
                )
                # Of two halves nobody can say which is as it should be.
                is_sure = 2 * len(bad) < len(numbers) and often >= FOR_GOOD * now.sweeps
                evidence = Evidence.by_distance(figure, text, one.far, one.chance)
                yield int(numbers[i]), evidence, is_sure


def _changed_nodes(
    now: Screening, earlier: Sequence[Screening], figure: str, numbers: Numbers, tests: float
) -> Iterator[tuple[int, Evidence, bool]]:
    """The nodes that changed while others did not."""
    slow = log_slowness(now.values[figure][numbers])
    before = medians_before(now, earlier, figure, numbers)
    past = _change(now, np.median(slow, axis=1)[:, None], before, OF_ONE)
    if past is None or len(past.known) < 2:
        return
    least = LEAST_OF_NODES if now.shares_cpus else LEAST_CHANGE_OF_NODES
    causes = [*causes_of_nodes(len(past.known))]
    found = find_causes(past.each, causes, past.single, least, tests, past.common)
    changes = (slow - np.nanmedian(before, axis=1)[:, None])[past.known]
    for i, one, often in _often(changes, found):
        less = less_in_words(one.far)
        text = f'{less} than in {past.screenings} earlier screenings, unlike its peers'
        evidence = Evidence.by_distance(figure, text, one.far, one.chance)
        yield int(numbers[past.known[i]]), evidence, often >= FOR_GOOD * now.sweeps


def _often(slow: Floats, found: Sequence[Culprit]) -> Iterator[tuple[int, Culprit, int]]:
    """Nodes that are culprits in more than half of the sweeps, and in how many they are.

    :param slow: shape (n, T).
    """
    bad = [i for i, _ in _single(found)]
    sound = np.median(np.delete(slow, bad, axis=0), axis=0)
    for i, one in _single(found):
        often = int((slow[i] > sound + one.far / 2).sum())
        if often > slow.shape[1] / 2:
            yield i, one, often


def _single(found: Sequence[Culprit]) -> Iterator[tuple[int, Culprit]]:
    """Nodes that are culprits, and nothing else may be instead of them."""
    for one in found:
        if [cause.kind for cause in one.causes] == ['node']:
            yield one.own[0], one


def _error(slow: Floats) -> float:
    """The variance of medians over sweeps, as those vary: of shape (n, k)."""
    off = slow - np.median(slow, axis=1, keepdims=True)
    each = robust_variance((off - np.median(off, axis=0)).ravel())
    return float(each.value * OF_A_MEDIAN / slow.shape[1])


def _others(now: Screening, numbers: Numbers, bad: Sequence[int]) -> str:
    names = [now.nodes[number] for i, number in enumerate(numbers) if i not in bad]
    return names[0] if len(names) == 1 else f'its {len(names)} other peers'


def medians_before(
    now: Screening, earlier: Sequence[Screening], figure: str, numbers: Numbers
) -> Floats:
    """Nodes' logarithms in earlier screenings: shape (nodes, screenings), NaN if not there."""
    names = [now.nodes[number] for number in numbers]
    columns = [np.empty((len(names), 0))]
    for one in earlier[-MOST_EARLIER:]:
        rows = np.array([one.number.get(name, -1) for name in names])
        column = np.full(len(names), np.nan)
        if figure in one.values:
            is_there = rows >= 0
            column[is_there] = np.median(log_slowness(one.values[figure][rows[is_there]]), axis=1)
        columns.append(column[:, None])
    return np.hstack(columns)


# Links --------------------------------------------------------------------------------------------


def slow_links(now: Screening, earlier: Sequence[Screening]) -> Iterator[ScreeningFinding]:
    """The fewest nodes, pairs and groups that explain the links that are slow.

    One finding for each figure that one is found by.
    """
    ends, n = now.links.ends, len(now.nodes)
    if not len(ends) or n > MOST_NODES:
        return
    switches = {
        tuple(sorted(now.number[one] for one in names if one in now.number)): switch
        for switch, names in now.switches.items()
    }
    groups = [*switches]
    for figure, times in pair_times(now).items():
        tests = WAYS * len(pair_times(now))
        past = _change(now, times, _pairs_before(now, earlier, figure), OF_PAIRS)
        changed = []
        if past:
            causes = [*causes_of_pairs(ends[past.known], n, groups)]
            least = LEAST_CHANGE_OF_LINKS
            changed = find_causes(past.each, causes, past.single, least, tests, past.common)
            if len(changed) > 1 and not changed[0].others:
                changed = []  # all are slow, in one way or another: that is everything
            for one in changed:
                what = f'in {past.screenings} earlier screenings'
                yield from _of_culprit(now, figure, one, what, switches, past)
        kinds = behind_one_switch(now).astype(np.int64)
        causes = [*causes_of_pairs(ends, n, groups)]
        found = find_causes(times, causes, OF_PAIRS, LEAST_OF_LINKS, tests, kinds=kinds)
        for one in found:
            several = f'between the {one.others} other pairs'
            what = several if one.others > 1 else f'between {_names_of_sound(now, found)}'
            for finding in _of_culprit(now, figure, one, what, switches, None):
                # What the past has told more of.
                if not (changed and finding.kind == 'either'):
                    yield finding


def _names_of_sound(now: Screening, found: Sequence[Culprit]) -> str:
    bad = np.zeros(len(now.links.ends), bool)
    for one in found:
        bad |= one.causes[0].hits
    (pair,) = now.links.ends[~bad]
    return ' and '.join(now.nodes[end] for end in pair)


def _pairs_before(now: Screening, earlier: Sequence[Screening], figure: str) -> Floats:
    """The times of the pairs in earlier screenings: shape (P, screenings), NaN if missing."""
    pairs = [frozenset(now.nodes[end] for end in ends) for ends in now.links.ends]
    columns = [np.empty((len(pairs), 0))]
    for one in earlier[-MOST_EARLIER:]:
        times = pair_times(one)[figure].mean(axis=1)
        known = {
            frozenset(one.nodes[end] for end in ends): value
            for ends, value in zip(one.links.ends, times.tolist(), strict=True)
        }
        columns.append(np.array([[known.get(pair, np.nan)] for pair in pairs]))
    return np.hstack(columns)


def _of_culprit(
    now: Screening,
    figure: str,
    one: Culprit,
    what: str,
    switches: dict[tuple[int, ...], str],
    past: _Change | None,
) -> Iterator[ScreeningFinding]:
    causes = [cause for cause in one.causes if cause.kind != 'all']
    text = comparison_in_words(figure, one.far, what)
    evidence = (Evidence.by_distance(figure, text, one.far, one.chance),)
    pairs = [cause for cause in causes if cause.kind == 'pair']
    nodes = [cause for cause in causes if cause.kind == 'node']
    groups = [cause for cause in causes if cause.kind == 'group']
    if nodes and not pairs:
        name = now.nodes[nodes[0].members[0]]
        if len(causes) == len(one.causes):
            yield ScreeningFinding('node', (name,), evidence)
        else:  # it is one of the two of every pair
            yield ScreeningFinding('either', (name,), evidence, f'{name}, or what joins all nodes,')
    elif groups and not pairs:
        members = min((one.members for one in groups), key=len)
        # Of two halves nobody can say which.
        if 2 * len(members) < len(now.nodes):
            names = tuple(sorted(now.nodes[one] for one in members))
            yield ScreeningFinding('group', names, evidence, switches.get(members, ''))
    elif pairs:
        ends = pairs[0].members
        names = tuple(sorted(now.nodes[end] for end in ends))
        # Where it is the one link that is slow of three, both its nodes may be.
        both = len(now.nodes) == 3 and not nodes and past is None
        if nodes or both:
            yield ScreeningFinding('either', names, evidence, _either(now, nodes, names, both))
        elif _is_slow_alone(now, figure, one, past):
            yield ScreeningFinding('pair', names, evidence)


def _either(
    now: Screening, nodes: Sequence[SuspectCause], ends: tuple[str, ...], both: bool
) -> str:
    if both:
        return f'the link between {" and ".join(ends)}, or both of them,'
    names = [now.nodes[one.members[0]] for one in nodes]
    link = 'them' if len(names) == 2 else ' and '.join(ends)
    return f'{", ".join(names)}, or the link between {link},'


def _is_slow_alone(now: Screening, figure: str, one: Culprit, past: _Change | None) -> bool:
    """Whether a pair is slow while nobody else sends; of three nodes nobody else ever does."""
    (row,) = one.own
    pair = row if past is None else int(past.known[row])
    alone = now.links.alone[pair][[*pair_times(now)].index(figure)]
    if len(now.nodes) <= 3:
        return True
    time = np.log(alone) if figure == 'latency' else -np.log(alone)
    return bool(time > pair_times(now)[figure][pair].mean() - one.far / 2)


def change_in_words(figure: str, far: float) -> str:
    """A latency as a multiple, a bandwidth as the missing part."""
    if figure == 'bandwidth':
        return f'{1 - np.exp(-far):.0%} less'
    return f'{np.exp(far):.3g} times as long'


def comparison_in_words(figure: str, far: float, what: str) -> str:
    """The same, with what it is compared with."""
    return f'{change_in_words(figure, far)} {"than" if figure == "bandwidth" else "as"} {what}'
