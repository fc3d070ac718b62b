"""Figures that can change together, tested together: a cause has a verdict before its figures.

Ten kernels that lose 40% each are one finding beyond doubt, and not ten that are undecided. So
each family of figures has an index: how much slower a session was over all of its members. So has
each kind of figure within it. The spread of an index between sessions has in it how its members go
together: nothing is assumed of that.

Of suites in which nothing changed, at most 1% have any family that is called worse, and at most 1%
one that is called better: Holm's method over the families. Within a family that changed, figures
are decided by the method of Benjamini and Hochberg (Journal of the Royal Statistical Society B 57,
1995): testing families first, and figures in those alone that are selected, keeps the promise of
both (Benjamini and Bogomolov, same journal 76, 2014, whose correction for the share of selected
families is within what Holm takes).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

import numpy as np

from assay.results.statistics import special
from assay.results.statistics.comparison import Better, Comparison, compare, with_error
from assay.results.statistics.multiplicity import SUITE_RATE, holm
from assay.results.statistics.series import Floats, Series, series, trimmed_mean
from assay.results.statistics.spread import (
    ENOUGH_HISTORY,
    FLOOR,
    NO_KIND,
    OCCASIONS,
    FigureKind,
    Variance,
    learn,
    prior,
    prior_freedom,
)

Key = TypeVar('Key', bound=Hashable)

#: Of the figures of a family that changed, so many of those that are called so may not have.
FALSE_SHARE = 0.05
#: No member counts for more than so many of the median member.
HEAVIEST = 4.0
#: No session is further off than so many units, for the sake of numbers.
MOST_UNITS = 300.0
#: A session counts for an index if so much of the weight was measured in it.
ENOUGH_WEIGHT = 0.5
#: p-values below are all the same.
LEAST_P = 1e-300
#: Variances of logarithms, and less, that equal values have by rounding.
ROUNDING = 1e-20
#: Of fewer figures the variances show no common one but their mean.
FEW = 8
#: Comparisons without which their bulk tells nothing, and those of them on either side.
ENOUGH_BULK, ENOUGH_OF_SIDE = 16, 4


@dataclass(frozen=True, eq=False)
class FamilyMember:
    """A figure as part of a family.

    :param family: its name.
    :param kind: of figures that measure the same thing in different cases.
    :param history: other runs of it, in which nothing changed.
    :param past: what histories of figures like it have in common.
    :param occasions: as of :class:`~assay.results.statistics.spread.FigureKind`.
    """

    family: str
    kind: str
    before: Series
    after: Series
    better: Better
    history: Series | None = None
    past: FigureKind = NO_KIND
    occasions: float = OCCASIONS

    @property
    def can_be_part(self) -> bool:
        """Whether it has a ratio that may be any number."""
        return self.better != 'exact' and all(
            one.has_logarithms for one in (self.before, self.after)
        )


@dataclass(frozen=True, eq=False)
class Judged:
    """The results for all figures of a suite.

    :param comparisons: of each.
    :param p_values: of each, adjusted for the suite: what is above the rate did not change.
    :param families: the surest first; their members are positions of figures.
    """

    comparisons: list[Comparison]
    p_values: list[float]
    families: list[FigureFamily]


@dataclass(frozen=True, eq=False)
class Tested:
    """A family, or a kind within it, as a whole.

    :param members: positions of its figures.
    :param index: comparison of how slow sessions were over all members: above 0 is worse.
    :param p_value: one-sided, of no change in any member: of the index and of parts of it.
    :param is_by_index: whether the index is the surest of these.
    """

    name: str
    members: tuple[int, ...]
    index: Comparison
    p_value: float
    is_by_index: bool
    kinds: tuple[Tested, ...] = ()

    def at(self, positions: Sequence[int]) -> Tested:
        """This with other positions for the members."""
        members = tuple(positions[number] for number in self.members)
        return replace(self, members=members, kinds=tuple(one.at(positions) for one in self.kinds))


@dataclass(frozen=True, eq=False)
class FigureFamily:
    """The result for a family.

    :param p_value: adjusted for all families of the suite.
    :param changed: p-value of each member within the family, by its position, adjusted; empty
        unless the family as a whole changed.
    """

    tested: Tested
    p_value: float
    changed: dict[int, float]

    def at(self, positions: Sequence[int]) -> FigureFamily:
        """This with other positions for the members."""
        changed = {positions[number]: p for number, p in self.changed.items()}
        return replace(self, tested=self.tested.at(positions), changed=changed)


def pool_variance(sides: Iterable[tuple[Series, Series]]) -> Variance | None:
    """The variance of sessions that follow each other, of figures that are alike: a prior.

    :param sides: of each figure the runs before and those after.
    :returns: None if no side has two sessions, or none could be compared.
    """
    found = _variances(sides)
    return prior(found) if found else None


def pool_by_family(
    families: Mapping[Key, Iterable[tuple[Series, Series]]],
) -> dict[Key, Variance]:
    """The pooled variance of each family, safe where figures have modes.

    All sessions of a side may be in one mode. The mean of logarithms, which a prior goes by, falls
    far below their variance then. So a prior is at least such that half of the family's variances
    are below their own median, and of few figures it is their mean. How alike the variances of a
    family are is learned from all families together: two or three that are equally small by chance
    say little.

    :param families: of each figure the runs before and those after.
    """
    known = {key: found for key, sides in families.items() if (found := _variances(sides))}
    several = [one for one in known.values() if len(one) > 1]
    alike = prior_freedom(several) if several else 0.0
    pooled = {}
    for key, variances in known.items():
        values, freedoms = np.array([(one.value, one.freedom) for one in variances]).T
        learned = prior(variances, alike)
        middle = float(np.median(values * freedoms / special.chdtri(freedoms, 0.5)))
        value = float(values.mean()) if len(values) < FEW else learned.value
        pooled[key] = Variance(max(value, middle), learned.freedom)
    return pooled


def _variances(sides: Iterable[tuple[Series, Series]]) -> list[Variance]:
    """The variance of sessions of each figure within its sides, where they show any."""
    found = []
    for both in sides:
        if not all(one.has_logarithms for one in both):
            continue
        squares = sum(float(((one.locations - one.locations.mean()) ** 2).sum()) for one in both)
        freedom = sum(one.size - 1 for one in both)
        if freedom and squares / freedom > ROUNDING:
            found.append(Variance(squares / freedom, freedom))
    return found


def judge_suite(members: Sequence[FamilyMember], rate: float = SUITE_RATE) -> Judged:
    """Say which families changed, and which figures in them.

    :param rate: of suites in which nothing changed, at most so many have a family that is called
        worse, and so many one that is called better.
    """
    comparisons = _alone(members)
    families = _tested(members, comparisons, rate)
    p_values = [float(one.better != 'exact' or one.p_value > 0) for one in comparisons]
    for family in families:
        for number in family.tested.members:
            # Divided first: a share that is just met is the rate itself.
            within = rate * (family.changed.get(number, 1.0) / FALSE_SHARE)
            p_values[number] = min(1.0, max(family.p_value, within))
    return Judged(comparisons, p_values, families)


def _alone(members: Sequence[FamilyMember]) -> list[Comparison]:
    """The comparison of each figure, which leans on those of its family."""
    sides: dict[str, list[tuple[Series, Series]]] = {}
    for one in members:
        if one.can_be_part:
            sides.setdefault(one.family, []).append((one.before, one.after))
    within = pool_by_family(sides)
    compared = []
    for one in members:
        kind = replace(one.past, within=within.get(one.family), occasions=one.occasions)
        compared.append(compare(one.before, one.after, one.better, one.history, kind))
    return compared


def _tested(
    members: Sequence[FamilyMember], comparisons: Sequence[Comparison], rate: float
) -> list[FigureFamily]:
    by_family: dict[str, dict[str, list[int]]] = {}
    for number, one in enumerate(members):
        if one.can_be_part:
            by_family.setdefault(one.family, {}).setdefault(one.kind, []).append(number)
    wholes = {family: [*chain(*kinds.values())] for family, kinds in by_family.items()}
    parts = {
        (family, kind): numbers
        for family, kinds in by_family.items()
        for kind, numbers in kinds.items()
    }
    of_families = _indices(members, comparisons, wholes)
    of_kinds = _indices(members, comparisons, parts)
    sizes = [one.history.size if one.history else 0 for one in members]
    alone = [one.proven_p for one in empirical(comparisons, sizes)]
    tested = []
    for family, kinds in by_family.items():
        inner = []
        for kind, numbers in kinds.items():
            index = of_kinds[family, kind]
            p = _any_of(index.proven_p, [alone[number] for number in numbers])
            inner.append(Tested(kind, tuple(numbers), index, *p))
        index = of_families[family]
        figures = [alone[n] for one in inner if len(one.members) > 1 for n in one.members]
        p = _any_of(index.proven_p, [one.index.proven_p for one in inner], figures)
        tested.append(Tested(family, tuple(wholes[family]), index, *p, tuple(inner)))
    adjusted = holm([one.p_value for one in tested]).tolist()
    found = [
        FigureFamily(one, p, _changed(one, comparisons) if p <= rate else {})
        for one, p in zip(tested, adjusted, strict=True)
    ]
    return sorted(found, key=lambda one: (one.p_value, one.tested.p_value))


def _any_of(whole: float, *parts: Sequence[float]) -> tuple[float, bool]:
    """p-value of a change in one direction, and whether the whole is the surest of all.

    The harmonic mean of those of the whole and of each level of its parts, which weigh the same:
    what several show counts for more than what one does. It holds for small p-values that depend
    on each other (Wilson, Proceedings of the National Academy of Sciences 116, 2019). Half of it,
    since they are two-sided, and each direction has its own rate. A part that is the whole says it
    once.

    :param whole: two-sided.
    :param parts: two-sided, of each level.
    """
    levels = [[whole], *(one for one in parts if len(one) > 1)]
    weighed = [sum(1 / max(p, LEAST_P) for p in one) / len(one) for one in levels]
    return len(levels) / sum(weighed) / 2, weighed[0] == max(weighed)


def _changed(family: Tested, comparisons: Sequence[Comparison]) -> dict[int, float]:
    """The adjusted p-value of each figure of a family that changed, by its position.

    Its kinds first, and then the figures of those that changed. In a family that changed at least
    one kind did, and in a kind at least one figure: if none is sure by itself, the surest. If the
    index of a family changed, at least one figure went the same way.
    """
    found: dict[int, float] = {}
    of_kinds = _at_least_one([one.p_value for one in family.kinds])
    selected = sum(p <= FALSE_SHARE for p in of_kinds)
    for kind, p_of_kind in zip(family.kinds, of_kinds, strict=True):
        # Of figures less may be false where fewer kinds were selected (Benjamini and Bogomolov).
        share = len(family.kinds) / max(1, selected)
        own = _at_least_one([comparisons[number].proven_p for number in kind.members], share)
        adjusted = [max(p_of_kind, p) for p in own]
        found |= dict(zip(kind.members, adjusted, strict=True))
    if family.is_by_index:
        # It is sure of the index, so something went its way, whatever else went the other.
        its_way = [n for n in family.members if comparisons[n].slowdown * family.index.change > 0]
        if its_way and min(found[number] for number in its_way) > FALSE_SHARE:
            found[min(its_way, key=lambda number: comparisons[number].proven_p)] = FALSE_SHARE
    return found


def _at_least_one(p_values: Sequence[float], share: float = 1.0) -> list[float]:
    """p-values adjusted as by :func:`benjamini_hochberg`, where something among them changed.

    If none is sure, the surest alone is: others may well have the same adjusted p-value.

    :param share: what they are multiplied by.
    """
    adjusted = [min(1.0, share * p) for p in benjamini_hochberg(p_values)]
    if min(adjusted) > FALSE_SHARE:
        adjusted[p_values.index(min(p_values))] = FALSE_SHARE
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted so that those up to a rate have at most this share of false ones."""
    given = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(-given)
    stepped = given[order] * given.size / np.arange(given.size, 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.minimum.accumulate(stepped), 1)
    return [float(one) for one in adjusted]


def empirical(comparisons: Sequence[Comparison], sizes: Sequence[int]) -> list[Comparison]:
    """Comparisons whose errors are as wide as the bulk of them shows, where no history does.

    Most figures did not change: how far they went all the same is the spread of what did not
    (Efron, Journal of the American Statistical Association 99, 2004). It gives way to a history.

    :param sizes: of each, the sessions of its history.
    """
    able = [not one.reason and one.better != 'exact' for one in comparisons]
    bulk = [
        (-float(special.ndtri(max(one.p_value, 1e-300) / 2)), one.slowdown)
        for one, is_able in zip(comparisons, able, strict=True)
        if is_able
    ]
    widening = max(0.0, _scale(bulk) - 1)
    return [
        with_error(one, one.error * (1 + widening * max(0.0, 1 - size / ENOUGH_HISTORY)))
        if is_able
        else one
        for one, is_able, size in zip(comparisons, able, sizes, strict=True)
    ]


def _scale(changes: Sequence[tuple[float, float]]) -> float:
    """The standard deviation of standardised changes where nothing changed.

    What changed did so in one direction, mostly: the other side shows half of what did not. Where
    nearly all went one way, nothing shows that: all may have changed.

    :param changes: sizes that standard normal values would have, and their signs.
    """
    sides = [[size for size, sign in changes if sign * side > 0] for side in (-1, 1)]
    if len(changes) < ENOUGH_BULK or min(map(len, sides)) < ENOUGH_OF_SIDE:
        return 1.0
    return min(float(np.median(side)) for side in sides) / float(special.ndtri(0.75))


def _indices(
    members: Sequence[FamilyMember],
    comparisons: Sequence[Comparison],
    groups: Mapping[Key, Sequence[int]],
) -> dict[Key, Comparison]:
    """The comparison of the index of each group; the spread of all of them is what one leans on."""
    singles = np.array([one.single for one in comparisons])
    sides = {
        key: _index([members[i] for i in numbers], singles[numbers])
        for key, numbers in groups.items()
    }
    histories = [one.history for one in sides.values() if one.history]
    kind = learn(histories, pool_variance((one.before, one.after) for one in sides.values()))
    found = []
    for key, one in sides.items():
        # What one member shares with its occasion, the index does.
        own = replace(kind, occasions=max(members[i].occasions for i in groups[key]))
        index = compare(one.before, one.after, 'lower', one.history, own)
        # No session's location is surer than that of a figure, whatever the unit is.
        short = max(1.0, FLOOR / one.unit / math.sqrt(index.single))
        found.append(
            replace(with_error(index, index.error * short), single=index.single * short**2)
        )
    sizes = [one.history.size if one.history else 0 for one in sides.values()]
    return {
        key: replace(
            one,
            change=one.change * side.unit,
            error=one.error * side.unit,
            single=one.single * side.unit**2,
        )
        for (key, side), one in zip(sides.items(), empirical(found, sizes), strict=True)
    }


@dataclass(frozen=True, eq=False)
class _Index:
    """How slow sessions were over all members, as factors whose logarithms are in a unit.

    :param unit: the standard deviation of sessions if all members went together: in it indices of
        steady and of noisy figures vary alike, and one can lean on the others.
    """

    before: Series
    after: Series
    history: Series | None
    unit: float


def _index(members: Sequence[FamilyMember], singles: Floats) -> _Index:
    """The index of some figures.

    :param singles: shape (n,), the variance of a session of each member: it counts by how steady it
        is.
    """
    weights = 1 / np.maximum(singles, FLOOR**2)
    weights = np.minimum(weights, HEAVIEST * np.median(weights))
    signed = [
        -weight if one.better == 'higher' else weight
        for one, weight in zip(members, weights.tolist(), strict=True)
    ]
    middles = [
        (float(trimmed_mean(one.before.locations)) + float(trimmed_mean(one.after.locations))) / 2
        for one in members
    ]
    pasts = [one.history if one.history and one.history.has_logarithms else None for one in members]
    own = [float(trimmed_mean(one.locations)) if one else 0.0 for one in pasts]
    before = _over(signed, [one.before for one in members], middles)
    after = _over(signed, [one.after for one in members], middles)
    past = _over(signed, pasts, own)
    values = [value for some in (before, after, past) for value in some.values()]
    unit = max(
        float(np.average(np.sqrt(singles), weights=weights)),
        max(map(abs, values)) / MOST_UNITS,
        FLOOR,
    )
    return _Index(
        _in_units(before, unit),
        _in_units(after, unit),
        _in_units(past, unit) if past else None,
        unit,
    )


def _in_units(values: Mapping[float, float], unit: float) -> Series:
    times = sorted(values)
    return series([math.exp(values[time] / unit) for time in times], times)


def _over(
    weights: Sequence[float], parts: Sequence[Series | None], middles: Sequence[float]
) -> dict[float, float]:
    """The mean of figures in each session that most of them were measured in, by its time.

    :param weights: of each figure, below 0 where more is better.
    :param middles: what is subtracted from the logarithms of each.
    """
    sums: dict[float, float] = {}
    known: dict[float, float] = {}
    for weight, one, middle in zip(weights, parts, middles, strict=True):
        if one is None:
            continue
        for time, value in zip(one.session_times.tolist(), one.locations.tolist(), strict=True):
            sums[time] = sums.get(time, 0.0) + weight * (value - middle)
            known[time] = known.get(time, 0.0) + abs(weight)
    # Sessions of a side may have had no figure in common: the fullest counts in any case.
    enough = min(ENOUGH_WEIGHT * sum(map(abs, weights)), max(known.values(), default=0.0))
    return {time: sums[time] / weight for time, weight in known.items() if weight >= enough}
