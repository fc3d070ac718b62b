"""The fewest causes that explain all values of a few nodes.

Of few nodes a bad one is in half of the pairs, so no median moves. Yet it explains every slow pair
and leaves no other, which a robust spread does not ask. Here explanations compete: nothing is
wrong, one node, one pair, a group, two of them, and so on. Each gives every value a mean, and the
one is chosen by which the values are likeliest, less what its choice costs:

    (d0 + P) / 2 * ln(d0 s0^2 + sum of squared residuals) + k / 2 * ln(P) + ln(how many there are)

The first part is Student's t of P values whose variance has the scaled inverse chi-squared prior
(s0^2, d0) of :func:`assay.results.statistics.spread.moderate`. The second is Schwarz's for k more
means ("Estimating the dimension of a model", Annals of Statistics 6, 1978). The third is that of
Chen and Chen where many are tried ("Extended Bayesian information criteria", Biometrika 95, 2008).
Where nothing is wrong, a ratio of likelihoods reaches 1/a in no more than a part a of all cases
(Markov's inequality), which is the chance that is reported. Beyond that an explanation has to be
whole: all that it touches is slow, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from assay.results.statistics.series import Floats
from assay.results.statistics.spread import Variance
from assay.screening.findings import FALSE_RATE

#: Of more nodes than this, medians tell.
MOST_NODES = 16
#: Of more than this the groups are too many to be tried that no switch is known of.
MOST_GROUPED = 8
#: Of the explanations that are likeliest, how many are tried for being whole.
TRIED = 64
#: By less than this, in logarithms, none of two explanations is the likelier one: 20 to 1.
AS_LIKELY = np.log(20)

Truths = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SuspectCause:
    """A possible cause of slow values.

    :param members: numbers of nodes: one, two of a pair, some of a group; none for everything.
    :param hits: shape (P,), the values that it makes worse.
    :param named: how many things have to be named to say it: of a group that no switch is known
        of, all of its nodes.
    """

    kind: Literal['node', 'pair', 'group', 'all']
    members: tuple[int, ...]
    hits: Truths
    named: int = 1


@dataclass(frozen=True, eq=False)
class Culprit:
    """One of the causes that explain the values.

    :param causes: those that would show in the same values: any of them may be it.
    :param own: numbers of the values that it alone makes worse.
    :param others: how many values nothing makes worse.
    :param far: by how much its own are worse than those.
    :param chance: how many explanations as good there are by chance, in all that is tested.
    """

    causes: tuple[SuspectCause, ...]
    own: tuple[int, ...]
    others: int
    far: float
    chance: float


def causes_of_pairs(
    ends: NDArray[np.int64], nodes: int, groups: Sequence[Sequence[int]]
) -> Iterator[SuspectCause]:
    """Every node, every pair, every group up to half of the nodes, and everything.

    :param ends: shape (P, 2).
    :param groups: numbers of nodes that have a switch in common, which are groups of more nodes.
    """
    for node in range(nodes):
        yield SuspectCause('node', (node,), (ends == node).any(axis=1))
    for number, pair in enumerate(ends.tolist()):
        yield SuspectCause('pair', tuple(sorted(pair)), np.arange(len(ends)) == number)
    known = {tuple(sorted(one)) for one in groups if 1 < len(one) < nodes}
    for group in known:
        yield SuspectCause('group', group, np.isin(ends, group).sum(axis=1) == 1)
    for size in range(2, nodes // 2 + 1 if nodes <= MOST_GROUPED else 0):
        for group in combinations(range(nodes), size):
            inside = np.isin(ends, group).sum(axis=1)
            # That they are fast to each other has to be seen of each.
            is_seen = {*ends[inside == 2].ravel().tolist()} == {*group}
            if is_seen and group not in known and (2 * size < nodes or 0 in group):
                yield SuspectCause('group', group, inside == 1, size)
    yield SuspectCause('all', (), np.ones(len(ends), bool))


def causes_of_nodes(nodes: int) -> Iterator[SuspectCause]:
    """Every node by itself, and everything."""
    for node in range(nodes):
        yield SuspectCause('node', (node,), np.arange(nodes) == node)
    yield SuspectCause('all', (), np.ones(nodes, bool))


def find_causes(
    each: Floats,
    causes: Sequence[SuspectCause],
    known: Variance,
    least: float,
    tests: float,
    usual: Variance | None = None,
    kinds: NDArray[np.int64] | None = None,
) -> list[Culprit]:
    """The fewest causes that explain what is worse; none where nothing is, or nothing explains it.

    :param each: shape (P, T), natural logarithms of T measurements of each, larger where worse;
        shown in each of them has to be what shows in their mean.
    :param known: the variance of sound ones that is supposed.
    :param least: by less than this nothing is worse.
    :param tests: how many such questions are asked at once.
    :param usual: where values are changes against a past, the variance of what is common to all; a
        change of everything is then a cause as well.
    :param kinds: shape (P,), of values that differ for good, each kind from the others.
    """
    of = _Values.of(each, known, usual, kinds)
    if all(np.ptp(of.mean[of.kinds == kind]) < least for kind in np.unique(of.kinds)):
        return []
    by_hits: dict[bytes, list[SuspectCause]] = {}
    for cause in causes:
        if cause.hits.any():
            by_hits.setdefault(cause.hits.tobytes(), []).append(cause)
    rivals = [tuple(one) for one in by_hits.values()]
    hits = np.zeros((len(rivals), len(of.mean)), bool)
    hits[:, : len(each)] = [one[0].hits for one in rivals]
    named = np.array([one[0].named for one in rivals])
    fits = _apart([one[0] for one in rivals])
    costs = named * np.log((named == 1).sum())
    nodes = sum(cause.kind == 'node' for cause in causes)
    enough = float(np.log(tests / FALSE_RATE))
    best: list[tuple[float, tuple[int, ...]]] = [(of.score(hits[:0]), ())]
    for chosen, score in _by_size(of, hits, costs, fits, least, max(1, nodes // 2)):
        best.append((score, chosen))
    now = 0
    while better := [one for one in best[now + 1 :] if one[0] - best[now][0] > enough]:
        now = best.index(better[0])
    score, chosen = best[now]
    chance = tests * float(np.exp(best[0][0] - score))
    touched = hits[list(chosen)]
    others = int(np.count_nonzero(~touched[:, : len(each)].any(axis=0)))
    found = []
    for at, one in enumerate(chosen):
        alike = [one]
        for other in np.flatnonzero(named == 1).tolist():
            if other in chosen:
                continue
            instead = [*chosen[:at], other, *chosen[at + 1 :]]
            as_likely = of.score(hits[instead]) - costs[instead].sum() > score - AS_LIKELY
            is_same = np.array_equal(of.own_values(hits[instead], at), of.own_values(touched, at))
            if as_likely and is_same and of.is_whole(hits[instead], least):
                alike.append(other)
        found.append(
            Culprit(
                tuple(cause for number in alike for cause in rivals[number]),
                tuple(np.flatnonzero(of.own_values(touched, at)).tolist()),
                others,
                float(of.effects(touched)[at].mean()),
                chance,
            )
        )
    return found


def _apart(causes: Sequence[SuspectCause]) -> Truths:
    """Whether each two causes may be there together: shape (n, n).

    The nodes of a group that no switch is known of have to be seen to be fast to each other, which
    they are not if one of them is in another group, or bad.
    """
    fits = np.ones((len(causes), len(causes)), bool)
    for at, one in enumerate(causes):
        for other, rival in enumerate(causes):
            if one.kind == 'group' and one.named > 1 and rival.kind in ('node', 'group'):
                is_apart = at == other or {*one.members}.isdisjoint(rival.members)
                fits[at, other] = fits[other, at] = is_apart and fits[at, other]
    return fits


def _by_size(
    of: _Values, hits: Truths, costs: Floats, fits: Truths, least: float, most: int
) -> Iterator[tuple[tuple[int, ...], float]]:
    """The likeliest explanation by one cause, by two, and then by one more each."""
    bases: list[tuple[int, ...]] = [()]
    for size in range(1, most + 2):
        scores = np.array(
            [of.scores(hits[list(base)], hits) - costs[list(base)].sum() - costs for base in bases]
        )
        order = np.argsort(-scores, axis=None, kind='stable')[: TRIED * size]
        found = {
            tuple(sorted((*bases[at // len(hits)], at % len(hits)))): float(scores.flat[at])
            for at in order.tolist()
        }
        whole = [
            (one, score)
            for one, score in found.items()
            if len({*one}) == size
            and fits[np.ix_(one, one)].all()
            and of.is_whole(hits[list(one)], least)
        ]
        if whole:
            yield whole[0]
        elif size > 1:
            return
        # Two are tried of all, for one alone may explain nothing; a third stands beside two.
        bases = [(one,) for one in range(len(hits))] if size == 1 else [whole[0][0]]


@dataclass(frozen=True, eq=False)
class _Values:
    """Values, and against a past one more: what is common to all is near to nothing.

    :param mean: shape (P,).
    :param each: shape (P, T).
    :param weight: shape (P,).
    :param kinds: shape (P,).
    """

    mean: Floats
    each: Floats
    weight: Floats
    kinds: NDArray[np.int64]
    known: Variance

    @staticmethod
    def of(
        each: Floats, known: Variance, usual: Variance | None, kinds: NDArray[np.int64] | None
    ) -> _Values:
        kinds = np.zeros(len(each), np.int64) if kinds is None else kinds
        weight = np.ones(len(each))
        if usual:
            each = np.vstack([each, np.zeros(each.shape[1])])
            weight = np.append(weight, known.value / usual.value)
            kinds = np.append(kinds, 0)
        return _Values(each.mean(axis=1), each, weight, kinds, known)

    def score(self, chosen: Truths) -> float:
        """The log-likelihood of the values under causes, of shape (k, P)."""
        return float(self.scores(chosen, np.zeros((1, len(self.mean)), bool))[0])

    def scores(self, chosen: Truths, more: Truths) -> Floats:
        """The scores of the chosen causes with each of N more, of shape (N, P): shape (N,)."""
        _, cells = np.unique(np.vstack([self.kinds, chosen]), axis=1, return_inverse=True)
        squares = np.zeros(len(more))
        means = np.zeros(len(more))
        for cell in range(cells.max() + 1):
            which = cells.ravel() == cell
            weight, value = self.weight[which], self.weight[which] * self.mean[which]
            for inside in (more[:, which], ~more[:, which]):
                heavy = inside @ weight
                squares += (inside @ value) ** 2 / np.where(heavy > 0, heavy, 1)
                means += heavy > 0
        left = np.maximum((self.weight * self.mean**2).sum() - squares, 0)
        freedom, size = self.known.freedom, len(self.mean)
        likely = -(freedom + size) / 2 * np.log(freedom * self.known.value + left)
        return np.asarray(likely - means / 2 * np.log(size))

    def own_values(self, chosen: Truths, at: int) -> Truths:
        """The values that one of the causes alone makes worse."""
        return np.asarray(chosen[at] & (chosen.sum(axis=0) == 1))

    def effects(self, chosen: Truths) -> list[Floats]:
        """By how much each cause makes its own values worse than untouched values of their kind:
        shape (values,); empty if there are no such values."""
        above = self._above(chosen, self.mean)
        found = (above[self.own_values(chosen, at)] for at in range(len(chosen)))
        return [one[~np.isnan(one)] for one in found]

    def _above(self, chosen: Truths, values: Floats) -> Floats:
        """The excess of values over those of their kind that no cause touches; NaN without any."""
        left = ~chosen.any(axis=0)
        above = np.full(len(values), np.nan)
        for kind in np.unique(self.kinds):
            sound = left & (self.kinds == kind)
            if sound.any():
                which = self.kinds == kind
                above[which] = values[which] - np.average(values[sound], weights=self.weight[sound])
        return above

    def is_whole(self, chosen: Truths, least: float) -> bool:
        """Whether all that the causes touch is worse, each time, and nothing else is."""
        effects = self.effects(chosen)
        if any(not len(one) or one.mean() < least for one in effects):
            return False
        half = np.where(chosen, [[one.mean() / 2] for one in effects], 0).max(axis=0)
        touched = chosen.any(axis=0)
        means = self._above(chosen, self.mean)
        if (means[touched] < half[touched]).any():
            return False
        if (means[~touched] > min(one.mean() for one in effects) / 2).any():
            return False
        times = (self._above(chosen, one) for one in self.each.T)
        own = [self.own_values(chosen, at) for at in range(len(chosen))]
        return all(
            np.nanmean(one[mine]) >= effect.mean() / 2
            for one in times
            for mine, effect in zip(own, effects, strict=True)
        )
