"""A search for the change that made figures worse: how likely each is, and the next measurement.

A measurement is a pair of neighbouring sessions: one has some of the changes, the other has the
remaining ones. Its value is the change between the two in units of the change to be explained: 1 if
the first session has the whole effect, -1 if the second has it, 0 if neither or both. Each possible
cause predicts one of these values for each split, so a measurement divides them, as a weighing
does (group testing: Dorfman, Annals of Mathematical Statistics 14, 1943).

The causes are single changes, two or three of them, many small ones, and none of them. What is
measured gives each a likelihood, and Bayes' rule a probability. Values have Student-t errors, as
some are disturbed; the scale of the errors and the size of the effect are learned on the way: both
are integrated over a grid. Next the split is measured that tells most about the cause for its cost
(Lindley, Annals of Mathematical Statistics 27, 1956). git_bayesect has the same idea for tests that
pass or fail, and for one cause in a row of commits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from assay.results.statistics.series import Floats

Flags = NDArray[np.bool_]
Kind = Literal['one', 'two', 'three', 'several', 'none']

#: Before anything is measured: how likely each kind of cause is. Two are either needed both, each
#: enough by itself, or add up; three are all needed, have a third each, or one is enough by itself
#: and the other two together are, too. That one is needed, and either of two with it, looks the
#: same in sessions with some changes and with the remaining ones.
PRIOR = {
    'one': 0.72,
    'both': 0.04,
    'either': 0.01,
    'sum': 0.05,
    'all': 0.02,
    'thirds': 0.02,
    'mixed': 0.01,
    'several': 0.03,
    'none': 0.10,
}
#: Shares of the first of two that add up.
SHARES = (0.25, 0.5, 0.75)
#: Of more changes than this no two are looked at together: there are too many pairs.
MOST_IN_PAIRS = 150

#: How much of the change that was seen comes back here, and how likely that is. The least are
#: next to impossible beforehand: where values leave no doubt all the same, what is left of the
#: change is not taken for a part of what two changes share.
EFFECTS = np.concatenate([[0.12, 0.2], np.geomspace(0.35, 2.0, 9)])
EFFECT_SPREAD = 0.35
#: Standard deviation of a measurement, in units of the effect; how far a hint about it may be off.
SCALES = np.geomspace(0.04, 4.0, 15)
SCALE_SPREAD = 0.6
#: Three are looked for among so many of the likeliest changes, and as the likeliest two with any.
LIKELY_CHANGES = 7
#: Degrees of freedom of its errors: heavy tails, as others may disturb a session.
FREEDOM = 4.0
#: Several small causes are as unevenly spread as this number of equal ones. Of fewer changes than
#: the other number several are two or three, which are answers of their own.
SMALL_ONES, FEWEST_SMALL_ONES = 5, 4

#: A cause is named at this probability.
SURE = 0.95

#: From this probability of none, which has 10% at first, all changes are measured against none of
#: them. Of the first 40 seeds each of measurements/culprits.py none took 11.3 pairs to 95% with
#: 0.5, and a single one 9.3; 9.4 and 9.4 with this.
LIKELY_NONE = 0.12

#: Values that causes predict are multiples of a quarter or a third from -1 to 1.
_LEVELS = np.linspace(-1, 1, 25)
#: Splits that are looked at before the best of them is improved, and rounds of that.
_SPLITS, _ROUNDS = 32, 4
#: Shares of the probability that small sets have, where sessions fail.
_SMALL_PARTS = (0.03, 0.06, 0.12, 0.25) * 4
#: A search whose sessions fail at times ends where none tells as much.
LEAST_BITS = 0.001
#: However cheap it is, what tells less than this share of what another pair would is not measured.
LEAST_SHARE = 0.1
#: What is measured is chosen for so many of the likeliest causes, and as many drawn from the rest.
_LIKELY = 300


@dataclass(frozen=True)
class Answer:
    """A possible cause.

    :param changes: their positions: one, two, three, or none.
    """

    kind: Kind
    changes: tuple[int, ...]
    probability: float


@dataclass(frozen=True, eq=False)
class Split:
    """A measurement: a session with some changes, and one with others.

    :param first: shape (n,), the changes of the first.
    :param second: shape (n,), those of the second.
    :param bits: what it is expected to tell about the cause.
    :param is_proof: whether it is to confirm the likeliest answer.
    """

    first: Flags
    second: Flags
    bits: float
    is_proof: bool = False


def no_cost(first: Flags, second: Flags) -> Floats:
    """All splits cost the same."""
    return np.ones(len(first))


class Search:
    """A search under way.

    :param weights: shape (n,), how likely each change is to be the cause; any positive scale.
    :param spread: a guess at the standard deviation of a measurement, in units of the effect; None
        if there is none.
    :param in_order: whether none can be made without all before it, as the commits of a history.
    """

    def __init__(
        self, weights: Sequence[float], spread: float | None = None, in_order: bool = False
    ) -> None:
        own = np.asarray(weights, dtype=np.float64)
        assert len(own) and (own > 0).all(), 'each change has a weight above 0'
        self.weights, self.in_order = own / own.sum(), in_order
        self._build()
        effects = -((np.log(EFFECTS) / EFFECT_SPREAD) ** 2) / 2
        scales = np.zeros(len(SCALES))
        if spread:
            scales = -((np.log(SCALES / spread) / SCALE_SPREAD) ** 2) / 2
        grid = effects[:, None] + scales
        self._grid: Floats = (grid - special.logsumexp(grid)).ravel()
        #: Logarithms: of each cause, each effect and each scale, with all that was measured.
        self._logs = self._prior[:, None] + self._grid
        self._found: Floats | None = None
        #: What was measured.
        self._pairs: list[tuple[Flags, Flags, float]] = []
        self._counts: Counter[frozenset[bytes]] = Counter()
        #: The pairs that were measured, and those with a session that failed, in either order.
        self._done: set[tuple[bytes, bytes]] = set()
        self._failed: set[tuple[bytes, bytes]] = set()

    @property
    def measured(self) -> int:
        """How many pairs."""
        return len(self._pairs)

    def _build(self) -> None:
        """The causes: which changes each is about, and what effect sets of them have."""
        n = len(self.weights)
        pairs = np.transpose(np.triu_indices(n, 1)) if n <= MOST_IN_PAIRS else np.empty((0, 2), int)
        together = np.prod(self.weights[pairs], axis=1)
        together = together / together.sum() if len(pairs) else together
        # The effect is a for the first change, b for the second, c more for both.
        parts: list[tuple[NDArray[np.int_], tuple[float, float, float], Floats]] = [
            (np.repeat(np.arange(n)[:, None], 2, axis=1), (1, 0, 0), self.weights * PRIOR['one']),
            # In order they are the later one by itself, and the earlier one.
            (pairs, (0, 0, 1), together * PRIOR['both'] * (not self.in_order)),
            (pairs, (1, 1, -1), together * PRIOR['either'] * (not self.in_order)),
            *(
                (pairs, (share, 1 - share, 0), together * PRIOR['sum'] / len(SHARES))
                for share in SHARES
            ),
        ]
        ids = np.arange(n, n + len(pairs)) + 2
        self._of = np.concatenate([np.arange(n + 2), *(ids for _ in parts[1:])])
        self._names: list[tuple[Kind, tuple[int, ...]]] = [
            ('several', ()),
            ('none', ()),
            *(('one', (one,)) for one in range(n)),
            *(('two', (int(one), int(other))) for one, other in pairs),
        ]
        # The first two are several small ones, and none. A third change is the second one again
        # where there is none, and adds d for itself and e for all three.
        members = np.concatenate([np.zeros((2, 2), int)] + [part[0] for part in parts])
        self._members = members[:, [0, 1, 1]]
        effects = [np.zeros((2, 3))] + [np.tile(part[1], (len(part[0]), 1)) for part in parts]
        self._effects = np.pad(np.concatenate(effects), ((0, 0), (0, 2)))
        several = PRIOR['several'] * (n >= FEWEST_SMALL_ONES)
        prior = np.concatenate([[several, PRIOR['none']]] + [part[2] for part in parts])
        with np.errstate(divide='ignore'):
            self._prior = np.log(prior)

    def record(self, first: Flags, second: Flags, value: float) -> None:
        """Take in a measurement.

        :param first: shape (n,), the changes of its first session.
        :param second: shape (n,), those of its second.
        :param value: the change from the second session to the first, in units of the effect.
        """
        self._forget_threes()
        self._learn(np.arange(len(self._members)), first, second, value)
        self._found = None
        self._pairs.append((first, second, value))
        self._counts[frozenset((first.tobytes(), second.tobytes()))] += 1
        self._done |= _either_order(first, second)
        self._look_at_threes()

    def _learn(self, which: NDArray[np.int_], first: Flags, second: Flags, value: float) -> None:
        """Take in what a measurement says of some causes."""
        levels = self._levels(first[None], second[None], which)[0]
        effects, scales = (one.ravel() for one in np.meshgrid(EFFECTS, SCALES, indexing='ij'))
        table = _log_density(value - effects * _LEVELS[:, None], scales)
        self._logs[which] += table[levels]
        if which[0] == 0:
            made = first[None].astype(float) - second
            middle, wide = (one[:, 0] for one in self._of_several(made, effects, scales))
            own = _log_density(value - effects * middle, np.hypot(scales, effects * wide))
            self._logs[0] += own - table[levels[0]]

    def _forget_threes(self) -> None:
        base = len(self._prior)
        self._logs, self._members = self._logs[:base], self._members[:base]
        self._effects, self._of = self._effects[:base], self._of[:base]
        self._names = [one for one in self._names if one[0] != 'three']

    def _look_at_threes(self) -> None:
        """Put the likeliest threes among the causes: there are too many for all of them."""
        n = len(self.weights)
        twos = [one.changes for one in self.answers() if one.kind == 'two'] if n > 2 else []
        if self.in_order or not twos:
            return
        likely = np.argsort(-self.guilt(), kind='stable')[:LIKELY_CHANGES]
        those = {tuple(sorted(map(int, one))) for one in combinations(likely, 3)}
        those |= {tuple(sorted({*twos[0], one})) for one in range(n) if one not in twos[0]}
        members = np.array(sorted(those))
        # The products of all threes, by Newton's identities.
        square, cube = (float((self.weights**power).sum()) for power in (2, 3))
        prior = np.prod(self.weights[members], axis=1) / ((1 - 3 * square + 2 * cube) / 6)
        ways = [
            (members, (0, 0, 0, 0, 1), PRIOR['all']),
            (members, (1 / 3, 1 / 3, 0, 1 / 3, 0), PRIOR['thirds']),
            *((np.roll(members, by, 1), (0, 0, 1, 1, -1), PRIOR['mixed'] / 3) for by in range(3)),
        ]
        base, kinds = len(self._logs), len(self._names)
        logs = [np.log(prior * share)[:, None] + self._grid for *_, share in ways]
        self._logs = np.concatenate([self._logs, *logs])
        self._members = np.concatenate([self._members, *(those for those, *_ in ways)])
        self._effects = np.concatenate(
            [self._effects, *(np.tile(effects, (len(members), 1)) for _, effects, _ in ways)]
        )
        self._of = np.concatenate([self._of, *[kinds + np.arange(len(members))] * len(ways)])
        self._names += [('three', tuple(map(int, one))) for one in members]
        for pair in self._pairs:
            self._learn(np.arange(base, len(self._logs)), *pair)
        self._found = None

    def skip(self, first: Flags, second: Flags) -> None:
        """Have no proof of a pair, in either order: a session of it failed."""
        self._failed |= _either_order(first, second)

    def answers(self) -> list[Answer]:
        """All causes, the most likely first."""
        of_name = np.bincount(self._of, weights=self._posterior(), minlength=len(self._names))
        order = np.argsort(-of_name, kind='stable')
        return [
            Answer(kind, changes, float(of_name[one]))
            for one in order
            for kind, changes in [self._names[one]]
        ]

    def guilt(self) -> Floats:
        """Shape (n,), the probability that each change is a cause, alone or with another."""
        found = np.zeros(len(self.weights))
        members, posterior = self._members[2:], self._posterior()[2:]
        for place in range(3):
            is_own = (members[:, place, None] != members[:, :place]).all(axis=1)
            found += np.bincount(members[is_own, place], posterior[is_own], len(found))
        return found

    def step(self, cost: Callable[[Flags, Flags], Floats] = no_cost) -> Split | None:
        """The measurement to make now; None if the cause is confirmed, or none would tell more.

        All changes against none come first. A likely answer is confirmed by pairs that were not
        measured yet: its changes against all others, and where they are two, these against
        none, as a third one may have a part in it, and one of them against all others.

        :param cost: as of :meth:`next`.
        """
        everything = np.ones(len(self.weights), dtype=bool)
        if not self.measured:
            return Split(everything, ~everything, 0.0)
        top = self.answers()[0]
        if top.probability < SURE:
            return self.next(cost)
        alone = np.zeros_like(everything)
        alone[[*top.changes]] = True
        # Parts of the change rest on how large all of it is, and on a pair that parts them: each
        # is measured twice, as one pair may be wrong. None of them, and a change that is the only
        # one, rest on the pair of all.
        times = 1 if top.kind == 'one' and len(alone) > 1 else 2
        proofs = [(alone, ~alone, times), (~alone, ~everything, 1)][: len(top.changes)]
        order = np.arange(len(alone))
        if top.kind in ('several', 'none'):
            proofs = [(everything, ~everything, times)]
        elif self.in_order:
            # Each against the one before it: none is made without those before.
            proofs = [(order <= one, order < one, times) for one in top.changes]
        elif top.kind == 'two':
            # What either does depends on a third one where only both at once are looked at.
            both = zip(top.changes, (times, 1), strict=True)
            proofs += [(order == one, order != one, often) for one, often in both]
        for first, second, times in proofs:
            # Of all changes there are no others: all of them against none were measured.
            is_empty = np.array_equal(first, second)
            if not self.in_order and (first.tobytes(), second.tobytes()) in self._failed:
                second = ~everything  # the others fail without it, or it fails without them
            is_new = (first.tobytes(), second.tobytes()) not in self._done | self._failed
            if not is_empty and (is_new or 0 < self._times(first, second) < times):
                return Split(first, second, 0.0, is_proof=True)
        return None

    def _times(self, first: Flags, second: Flags) -> int:
        """How often a pair was measured, in either order."""
        return self._counts[frozenset((first.tobytes(), second.tobytes()))]

    def next(self, cost: Callable[[Flags, Flags], Floats] = no_cost) -> Split | None:
        """The split that tells most for its cost; None if some sessions fail, and those that work
        tell nothing more.

        :param cost: of splits, the changes of their first sessions and of their second ones, each
            of shape (m, n): what each costs, shape (m,).
        """
        random = np.random.default_rng(self.measured)
        likely, mass = self._drawn(random)
        density = self._densities()

        def worth(first: Flags, second: Flags) -> tuple[Floats, Floats]:
            bits = _bits(self._levels(first, second, likely), mass, density)
            # Another pair shows what is amiss with one; the same one again hardly does.
            times = [self._times(*sides) for sides in zip(first, second, strict=True)]
            each = cost(first, second)
            most = bits[np.isfinite(each)].max(initial=0.0)
            return (bits >= LEAST_SHARE * most) * bits / each / (1 + np.array(times)), bits

        parts = self._candidates(random)
        everything = parts[0]
        if self.answers()[0].kind == 'none' and self.answers()[0].probability > LIKELY_NONE:
            # Whether any is the cause: halves would leave open which side an effect is on.
            return Split(everything, ~everything, float(worth(parts[:1], ~parts[:1])[1][0]))
        if self.in_order:
            first, second = self._stretches()
            values, bits = worth(first, second)
            best = int(np.argmax(values))
            return Split(first[best], second[best], float(bits[best]))
        value = told = 0.0
        first, second = everything, ~everything
        for _ in range(1 + _ROUNDS):
            sides = self._sides(parts)
            values, bits = worth(*sides)
            best = int(np.argmax(values))
            if values[best] <= value * (1 + 1e-6):
                break
            value, told = float(values[best]), float(bits[best])
            first, second = (side[best] for side in sides)
            # Each change moved to the other side; the pairs of moves that keep the balance.
            chosen = parts[best % len(parts)]
            moves = chosen ^ np.eye(len(chosen), dtype=bool)
            swaps = moves[random.permutation(len(moves))] ^ chosen ^ moves
            parts = np.concatenate([moves, swaps])
        if self._failed and told < LEAST_BITS:
            return None
        if self._times(first, second) > self._times(everything, ~everything):
            # What it is held against is known worse than it is.
            return Split(everything, ~everything, 0.0)
        # The effect is in the first session, if it is in either: the likelier one.
        if self.guilt() @ first < self.guilt() @ second:
            first, second = second, first
        return Split(first, second, told)

    def _sides(self, parts: Flags) -> tuple[Flags, Flags]:
        """Pairs that divide some changes from the others: those of each side against each other.

        Where sessions fail, the ones against none and all against the ones as well: of these only
        one session may fail.
        """
        if not self._failed:
            return parts, ~parts
        none = np.zeros_like(parts)
        return np.concatenate([parts, parts, ~none]), np.concatenate([~parts, none, parts])

    def _drawn(self, random: np.random.Generator) -> tuple[NDArray[np.int_], Floats]:
        """Causes that stand for all of them, and how likely each is."""
        posterior = self._posterior()
        order = np.argsort(-posterior, kind='stable')
        top, rest = order[:_LIKELY], order[_LIKELY:]
        left = float(posterior[rest].sum())
        if not left:
            return top, posterior[top]
        drawn = random.choice(rest, _LIKELY, p=posterior[rest] / left)
        alike = np.full(_LIKELY, left / _LIKELY)
        return np.concatenate([top, drawn]), np.concatenate([posterior[top], alike])

    def _candidates(self, random: np.random.Generator) -> Flags:
        """Splits to begin with: all of them, the likeliest alone, and halves of the probability."""
        guilt = self.guilt()
        n = len(guilt)
        order = np.argsort(-guilt)
        splits = [np.ones(n, dtype=bool)]
        for count in range(1, min(n, 4)):
            one = np.zeros(n, dtype=bool)
            one[order[:count]] = True
            splits.append(one)
        jitter = guilt * np.exp(random.normal(0, 0.5, (_SPLITS, n)))
        for row in jitter:
            one, sides = np.zeros(n, dtype=bool), [0.0, 0.0]
            for change in np.argsort(-row):
                side = int(sides[1] < sides[0] or (sides[0] == sides[1] and random.random() < 0.5))
                one[change] = side == 0
                sides[side] += guilt[change]
            splits.append(one)
        if self._failed:
            # Nearly none and nearly all of them are likelier to work.
            for share in _SMALL_PARTS:
                order = random.permutation(n)
                few = np.zeros(n, dtype=bool)
                count = np.searchsorted(np.cumsum(guilt[order]), share * guilt.sum())
                few[order[: 1 + count]] = True
                splits += [few, ~few]
        return np.array(splits)

    def _stretches(self) -> tuple[Flags, Flags]:
        """Splits of changes in order: up to one of them against up to an earlier one, or none."""
        guilt = np.cumsum(self.guilt())
        parts = np.searchsorted(guilt, np.linspace(0, guilt[-1], _SPLITS, endpoint=False)[1:])
        ends = np.unique([0, *parts, *(parts + 1), len(guilt)])
        later, earlier = np.triu_indices(len(ends), 1)[::-1]
        up_to = np.arange(len(guilt)) < ends[:, None]
        return up_to[later], up_to[earlier]

    def _posterior(self) -> Floats:
        """The probability of each cause, shape (causes,)."""
        if self._found is None:
            found: Floats = np.exp(self._logs - self._logs.max()).sum(axis=1)
            self._found = found / found.sum()
        return self._found

    def _levels(self, first: Flags, second: Flags, which: NDArray[np.int_]) -> NDArray[np.int_]:
        """The predictions of causes for splits: positions in the levels, shape (splits, causes)."""
        members, effects = self._members[which], self._effects[which]

        def effect(sets: Flags) -> Floats:
            one, other, third = (sets[:, members[:, place]] for place in range(3))
            both = one & other
            made = one, other, both, third, both & third
            found: Floats = sum(part * effects[:, at] for at, part in enumerate(made))
            return found

        values = effect(first) - effect(second)
        if 0 in which:
            # Several small ones: the nearest to what they predict in the middle.
            at = int(np.argmax(self._logs[0]))
            likeliest = EFFECTS[at // len(SCALES), None], SCALES[at % len(SCALES), None]
            middle = self._of_several(first.astype(float) - second, *likeliest)[0][0]
            values[:, which == 0] = np.clip(middle, -1, 1)[:, None]
        return np.rint((values + 1) * (len(_LEVELS) - 1) / 2).astype(int)

    def _of_several(self, made: Floats, effects: Floats, scales: Floats) -> tuple[Floats, Floats]:
        """The predictions of several small causes for splits, by what measured pairs show of each.

        Beforehand each has a share as large as its weight, and as uncertain as if
        :data:`SMALL_ONES` equal ones were drawn by lot. What they do adds up: linear regression
        with that prior (Lindley and Smith, Journal of the Royal Statistical Society B 34, 1972).

        :param made: shape (splits, n): 1 for a change of the first session alone, -1 of the second.
        :param effects: shape (m,).
        :param scales: shape (m,), of errors.
        :returns: middles and standard deviations, in units of the effect, of shape (m, splits).
        """
        measured = [first.astype(float) - second for first, second, _ in self._pairs]
        past = np.reshape(measured, (-1, len(self.weights)))
        values = np.array([value for *_, value in self._pairs])

        def alike(one: Floats, other: Floats) -> Floats:
            found: Floats = one * self.weights @ other.T
            return (found - np.outer(one @ self.weights, other @ self.weights)) / SMALL_ONES

        errors = ((scales / effects) ** 2)[:, None, None] * np.eye(len(past))
        shared = alike(past, made)
        gains = np.linalg.solve(alike(past, past) + errors, shared)
        beyond = values / effects[:, None] - past @ self.weights
        middles = made @ self.weights
        variances = (made**2 @ self.weights - middles**2) / SMALL_ONES - (gains * shared).sum(1)
        middles = middles + np.einsum('mp,mps->ms', beyond, gains)
        return middles, np.sqrt(np.maximum(variances, 0.0))

    def _densities(self) -> Floats:
        """The density of values at each level, shape (levels, values), as they are known by now."""
        most = self._logs.max()
        grid = np.exp(self._logs - most).sum(axis=0).reshape(len(EFFECTS), len(SCALES))
        grid = grid / grid.sum()
        effect = float(np.exp(grid.sum(axis=1) @ np.log(EFFECTS)))
        scale = float(np.exp(grid.sum(axis=0) @ np.log(SCALES)))
        values = np.linspace(-effect - 8 * scale, effect + 8 * scale, 201)
        found = np.exp(_log_density(values - effect * _LEVELS[:, None], np.float64(scale)))
        normed: Floats = found / found.sum(axis=1, keepdims=True)
        return normed


def _either_order(first: Flags, second: Flags) -> set[tuple[bytes, bytes]]:
    sides = first.tobytes(), second.tobytes()
    return {sides, sides[::-1]}


def _bits(levels: NDArray[np.int_], mass: Floats, density: Floats) -> Floats:
    """The information of each split on the cause, in bits, shape (splits,).

    :param levels: of splits and causes, shape (splits, causes).
    :param mass: shape (causes,), how likely each is.
    :param density: shape (levels, values).
    """
    count = len(density)
    at = levels + count * np.arange(len(levels))[:, None]
    of_level = np.bincount(
        at.ravel(), np.broadcast_to(mass, levels.shape).ravel(), count * len(levels)
    ).reshape(len(levels), count)
    of_level = of_level / mass.sum()
    mixed = of_level @ density
    noise = -(density * np.log2(density)).sum(axis=1)
    told: Floats = -(mixed * np.log2(np.maximum(mixed, 1e-300))).sum(axis=1) - of_level @ noise
    return np.maximum(told, 0.0)


def _log_density(errors: Floats, scale: Floats | np.float64) -> Floats:
    """The logarithm of the density of Student's t, whose standard deviation is the scale."""
    unit = scale * np.sqrt((FREEDOM - 2) / FREEDOM)
    found: Floats = (
        special.gammaln((FREEDOM + 1) / 2)
        - special.gammaln(FREEDOM / 2)
        - np.log(FREEDOM * np.pi) / 2
        - np.log(unit)
        - (FREEDOM + 1) / 2 * np.log1p((errors / unit) ** 2 / FREEDOM)
    )
    return found
