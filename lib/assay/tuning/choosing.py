"""Which algorithms look better than the default, and what pairs of starts say of them.

The rounds that choose them decide nothing: where all algorithms are alike, the best of many looks
better by chance. New starts decide, at the error rate of a comparison.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

import numpy as np

from assay.mpis.algorithms import Algorithm, Rule
from assay.results.statistics.comparison import MARGIN, Word
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.statistics.retest import Decision, decide_by_pairs, spread_of_foursomes
from assay.tuning.starts import Outcome

#: An operation and a size in bytes.
Point = tuple[str, int]
#: Of each point and algorithm the logarithms of its time over the default's, one a round.
Ratios = Mapping[Point, Mapping[str, Sequence[float]]]

#: Rounds before candidates are chosen.
FEWEST_ROUNDS = 3
#: An operation without sizes has a single point; of others a candidate has two or more neighbours.
FEWEST_SIZES = 2


@dataclass(frozen=True)
class Trial:
    """The algorithms that a start measures, one for some operations each; the default if none.

    :param is_rules: whether it has the rules in force instead.
    :param is_of_order: whether it measures nothing, and sees that the order of ranks is kept where
        an operation is not commutative.
    """

    algorithms: tuple[Algorithm, ...] = ()
    is_rules: bool = False
    is_of_order: bool = False

    @property
    def is_default(self) -> bool:
        return not self.algorithms and not self.is_rules


@dataclass(frozen=True)
class RuleCandidate:
    """A rule that may be worth it.

    :param rule: None for those sizes of an operation that no rule is for: they are to stay as fast.
    :param sizes: bytes, those that were measured.
    :param looked: its time over the default's in the rounds that chose it; 1 without a rule.
    """

    operation: str
    rule: Rule | None
    sizes: tuple[int, ...]
    looked: float = 1.0


def ratios(rounds: Iterable[Sequence[tuple[Trial, Outcome]]]) -> Ratios:
    """The ratios of all rounds; each algorithm is compared with the default before and after it.

    :param rounds: of each the starts, in order of time.
    """
    found: dict[Point, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for starts in rounds:
        defaults = [
            (place, outcome.by_point)
            for place, (trial, outcome) in enumerate(starts)
            if trial.is_default and outcome.word == 'good'
        ]
        for place, (trial, outcome) in enumerate(starts):
            near = [*_around(place, defaults)]
            if not near or outcome.word != 'good':
                continue
            names = {one.operation: one.name for one in trial.algorithms}
            for (operation, size), seconds in outcome.by_point.items():
                if operation in names:
                    logs = [math.log(one[operation, size]) for one in near]
                    ratio = math.log(seconds) - fmean(logs)
                    found[operation, size][names[operation]].append(ratio)
    return found


def _around(
    place: int, defaults: Sequence[tuple[int, Mapping[Point, float]]]
) -> Iterable[Mapping[Point, float]]:
    """The nearest default before a place, and the nearest after it."""
    before = [times for at, times in defaults if at < place]
    after = [times for at, times in defaults if at > place]
    return [*before[-1:], *after[:1]]


def candidates(
    found: Ratios, algorithms: Iterable[Algorithm], replaces: bool = False
) -> list[RuleCandidate]:
    """Rules that look better by more than the margin in the mean, and better in each round.

    The algorithm that gains most over neighbouring sizes of an operation is taken first. The next
    one takes sizes that are left.

    :param replaces: whether rules replace others that are in force: then operations without a rule
        of ours are to stay as fast, too.
    """
    known = {one.key: one for one in algorithms}
    chosen: list[RuleCandidate] = []
    for operation in sorted({operation for operation, _ in found}):
        sizes = sorted(size for of, size in found if of == operation)
        fewest = min(FEWEST_SIZES, len(sizes))
        left, taken = {*sizes}, []
        while best := _best_stretch(found, operation, sizes, left, fewest):
            name, stretch, gain = best
            left -= {*stretch}
            rule = Rule(known[operation, name], *_ends(stretch, sizes))
            taken.append(RuleCandidate(operation, rule, tuple(stretch), math.exp(gain)))
        chosen += sorted(taken, key=lambda one: one.sizes)
        if left and (taken or replaces):
            chosen.append(RuleCandidate(operation, None, tuple(sorted(left))))
    return chosen if any(one.rule for one in chosen) else []


def _best_stretch(
    found: Ratios,
    operation: str,
    sizes: Sequence[int],
    left: set[int],
    fewest: int,
) -> tuple[str, list[int], float] | None:
    """The algorithm and the neighbouring sizes that gain most, and the mean log ratio there."""
    stretches = []
    for name in sorted({name for size in sizes for name in found[operation, size]}):

        def is_better(size: int, name: str = name) -> bool:
            logs = found[operation, size].get(name, ())
            return (
                size in left
                and len(logs) >= FEWEST_ROUNDS
                and max(logs) < 0
                and fmean(logs) < -math.log1p(MARGIN)
            )

        for good, stretch in groupby(sizes, is_better):
            if good and len(those := [*stretch]) >= fewest:
                gains = [fmean(found[operation, size][name]) for size in those]
                stretches.append((sum(gains), name, those, fmean(gains)))
    if not stretches:
        return None
    _, name, those, gain = min(stretches)
    return name, those, gain


def _ends(stretch: Sequence[int], sizes: Sequence[int]) -> tuple[int, int | None]:
    """From its first size, or 0, to the next size behind it, or a byte above the largest.

    Of larger messages than were measured nothing is known.
    """
    place = sizes.index(stretch[-1])
    least = 0 if stretch[0] == sizes[0] else stretch[0]
    if sizes == [0]:
        return 0, None
    return least, sizes[place + 1] if place + 1 < len(sizes) else stretch[-1] + 1


def seconds_of_candidate(outcome: Outcome, one: RuleCandidate) -> float:
    """Seconds of a candidate's sizes, as their geometric mean.

    :raises KeyError: if one was not measured.
    """
    times = outcome.by_point
    return math.exp(fmean([math.log(times[one.operation, size]) for size in one.sizes]))


def judge_candidates(
    wanted: Sequence[RuleCandidate],
    foursomes: Sequence[Sequence[Outcome]],
    defaults: Sequence[Outcome],
) -> list[Decision | None]:
    """Decide on each candidate by the pairs so far; None before there are any.

    A candidate may be better, or is not: it is never accused of the opposite, and sizes without a
    rule may be worse.

    :param foursomes: of each the outcomes, all good: default, rules, rules, default.
    :param defaults: good starts of the default in the rounds before, in order of time: they say how
        far foursomes are apart where nothing changes.
    """
    said: list[Decision | None] = []
    for one in wanted:
        before, after = [], []
        for four in foursomes:
            seconds = [seconds_of_candidate(outcome, one) for outcome in four]
            before += [seconds[0], seconds[3]]
            after += [seconds[1], seconds[2]]
        looked: Word = 'better' if one.rule else 'worse'
        spread = spread_of_foursomes(
            np.log([seconds_of_candidate(outcome, one) for outcome in defaults])
        )
        count = len(wanted)
        said.append(
            decide_by_pairs(before, after, 'lower', count, SUITE_RATE, MARGIN, spread, looked)
            if before
            else None
        )
    return said


def proved_rules(
    wanted: Sequence[RuleCandidate], said: Sequence[Decision | None]
) -> list[tuple[RuleCandidate, Decision]]:
    """The candidates with a proved rule, of operations that lose nowhere by rules.

    None if an operation loses that no rule of ours is for: what was in force is better for it.
    """
    pairs = [(one, told) for one, told in zip(wanted, said, strict=True) if told]
    lose = {one.operation for one, told in pairs if not one.rule and told.word == 'worse'}
    if lose - {one.operation for one in wanted if one.rule}:
        return []
    return [
        (one, told)
        for one, told in pairs
        if one.rule and told.word == 'better' and one.operation not in lose
    ]
