"""Which of many changes did it: simulated regressions, and what the search says of each.

    .venv/bin/python measurements/culprits.py
    .venv/bin/python measurements/culprits.py --bayesect ~/venv/lib/python3.11/site-packages

Each seed has up to 64 changes and an effect of 5%. Sessions vary as those of the null campaign
did, in blocks of ten in their order, scaled to a spread of 2%. The effect is known from three
sessions before and three after, and so with an error. A measurement is a pair of sessions.

The bound: what has to be learned, from the probability of the true cause at first to 95%, over
what a pair tells at most if the effect and the spread were known. For `none` it is what a pair of
all changes tells against the others. Of `versions` there is one cause too, and none is made without
all before it: a pair has the effect in one session or in neither, and not on either side. Of
`thirds` three causes add up, and of `triple` all three are needed. Of `uneven` two add up, one of
which has 85%: right is it alone, or both. Right first and
among three are of the answers when it ends, sure or not, and first at 95% of the answer that has
that first, before it is confirmed. Pairs are told until the first answer of
95%, and with those that confirm it, as the command measures them. Beside it, on the same seeds,
with the changes as commits in a row and a pair of a commit and the first one as a test, which is
bad at half of the effect: git bisect, and git_bayesect until it is sure or had 60 tests
(--bayesect: where that is installed).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from assay.results.statistics.culprits import PRIOR, SURE, Flags, Search
from assay.results.statistics.series import Floats

DATA = Path(__file__).with_name('data') / 'null.parquet'
EFFECT, SPREAD, BLOCK, MOST = 0.05, 0.02, 10, 60

#: Of each kind the seeds, and the changes that are guilty.
KINDS = {
    'one': (200, 1),
    'none': (100, 0),
    'both': (30, 2),
    'sum': (30, 2),
    'several': (30, 6),
    'versions': (50, 1),
    'thirds': (60, 3),
    'triple': (60, 3),
    'uneven': (60, 2),
}


@dataclass(frozen=True)
class Outcome:
    """What came of a seed.

    :param first: whether the true cause is the likeliest.
    :param early: whether it was as the first answer had 95%.
    :param three: whether it is among three.
    :param pairs: until an answer had 95%.
    :param confirmed: all that were measured.
    :param bound: pairs that no search needs less of.
    :param probability: of the likeliest.
    :param bisect: whether git bisect names a true change.
    :param bayesect: likewise; None where that is not installed.
    :param tests: that it had.
    """

    kind: str
    first: bool
    early: bool
    three: bool
    pairs: int
    confirmed: int
    bound: float
    probability: float
    bisect: bool
    bayesect: bool | None
    tests: int


def noises() -> list[Floats]:
    """The logarithms of the null campaign's figures, each scaled to the spread."""
    table = pl.read_parquet(DATA).sort('begun')
    found = []
    for _, one in table.group_by('environment', 'fabric', 'check', 'figure', maintain_order=True):
        values = one['value'].to_numpy()
        if len(values) > 2 * BLOCK and (values > 0).all() and np.ptp(values):
            logs = np.log(values)
            found.append((logs - logs.mean()) / logs.std(ddof=1) * SPREAD)
    return found


class Machine:
    """Sessions of a machine in which some changes have an effect."""

    def __init__(self, kind: str, seed: int, noise: Sequence[Floats]) -> None:
        self.random = np.random.default_rng([seed, [*KINDS].index(kind)])
        self.kind, self.noise = kind, noise[self.random.integers(len(noise))]
        self.count = int(self.random.choice([8, 16, 32, 64], p=[0.1, 0.2, 0.3, 0.4]))
        self.guilty = self.random.choice(self.count, KINDS[kind][1], replace=False)
        self._left: list[float] = []

    def _session(self, changes: Flags) -> float:
        if not self._left:
            at = self.random.integers(len(self.noise) - BLOCK)
            self._left = [*self.noise[at : at + BLOCK]]
        return EFFECT * self.share(changes) + self._left.pop(0)

    def share(self, changes: Flags) -> float:
        """Of the effect, that changes have."""
        made = changes[self.guilty]
        match self.kind:
            case 'none':
                return 0.0
            case 'both' | 'triple':
                return float(made.all())
            case 'uneven':
                return float(made @ [0.85, 0.15])
        return float(made.mean())

    def pair(self, first: Flags, second: Flags, number: int) -> float:
        """The change between two sessions, in turn the one or the other first."""
        if number % 2:
            return -self.pair(second, first, number + 1)
        return self._session(first) - self._session(second)

    @property
    def right(self) -> list[tuple[str, tuple[int, ...]]]:
        """The answers that are right."""
        those = tuple(sorted(map(int, self.guilty)))
        kind = {0: 'none', 1: 'one', 2: 'two', 3: 'three'}.get(len(those), 'several')
        found = [(kind, those if len(those) < 4 else ())]
        if self.kind == 'uneven':
            found.append(('one', (int(self.guilty[0]),)))
        return found


def bits_of_a_pair(values: tuple[float, float]) -> float:
    """That a pair tells at most of which of two values it has, if all but that is known."""
    scale = math.sqrt(2) * SPREAD
    grid = np.linspace(-EFFECT - 9 * scale, EFFECT + 9 * scale, 20001)
    sides = [np.exp(-(((grid - mean) / scale) ** 2) / 2) for mean in values]
    sides = [one / one.sum() for one in sides]
    mixed = (sides[0] + sides[1]) / 2
    return float((sides[0] * np.log2(np.maximum(sides[0], 1e-300) / mixed)).sum())


def bound(machine: Machine) -> float:
    """Pairs that no search needs less of."""
    n = machine.count
    if machine.kind == 'none':
        odds = math.log2(SURE / (1 - SURE) * (1 - PRIOR['none']) / PRIOR['none'])
        return odds / (EFFECT**2 / (4 * SPREAD**2) / math.log(2))
    prior = {
        'both': PRIOR['both'] / math.comb(n, 2),
        'sum': PRIOR['sum'] / math.comb(n, 2),
        'triple': PRIOR['all'] / math.comb(n, 3),
        'thirds': PRIOR['thirds'] / math.comb(n, 3),
        'several': PRIOR['several'],
    }.get(machine.kind, PRIOR['one'] / n)
    values = (EFFECT, 0.0 if machine.kind == 'versions' else -EFFECT)
    return math.log2(SURE / prior) / bits_of_a_pair(values)


def try_seed(kind: str, seed: int, noise: Sequence[Floats], bayesect: str | None) -> Outcome:
    """Search the cause of a simulated regression."""
    machine = Machine(kind, seed, noise)
    seen = EFFECT + machine.random.normal(0, SPREAD * math.sqrt(2 / 3))
    seen = max(seen, EFFECT / 3)  # of less nobody would ask
    spread = math.sqrt(2) * SPREAD / seen
    search = Search(np.ones(machine.count), spread, in_order=kind == 'versions')
    least = bound(machine)
    pairs, confirmed, early = 0, 0, False
    while confirmed < MOST and (split := search.step()) is not None:
        value = machine.pair(split.first, split.second, confirmed) / seen
        search.record(split.first, split.second, value)
        confirmed += 1
        top = search.answers()[0]
        if not pairs and top.probability >= SURE:
            pairs, early = confirmed, (top.kind, top.changes) in machine.right
    answers = search.answers()
    named = [(one.kind, one.changes) for one in answers[:3]]
    row = Row(machine, seen)
    by_bayesect, tests = git_bayesect(row, bayesect)
    return Outcome(
        kind,
        named[0] in machine.right,
        early if pairs else named[0] in machine.right,
        any(one in machine.right for one in named),
        pairs or confirmed,
        confirmed,
        least,
        answers[0].probability,
        git_bisect(row),
        by_bayesect,
        tests,
    )


class Row:
    """The changes as commits in a row, each tested against what was before the first."""

    def __init__(self, machine: Machine, seen: float) -> None:
        self.machine, self.seen = machine, seen
        self.order = machine.random.permutation(machine.count)
        self.tests = 0

    def is_bad(self, commit: int) -> bool:
        """Whether a commit looks bad, with all changes up to it."""
        made = np.zeros(self.machine.count, dtype=bool)
        made[self.order[: commit + 1]] = True
        value = self.machine.pair(made, np.zeros_like(made), self.tests)
        self.tests += 1
        return value > self.seen / 2

    def is_guilty(self, commit: int) -> bool:
        return self.order[commit] in self.machine.guilty


def git_bisect(row: Row) -> bool:
    """Whether bisection names a true change; of none it always names one."""
    good, bad = -1, row.machine.count - 1
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if row.is_bad(middle) else (middle, bad)
    return row.is_guilty(bad)


def git_bayesect(row: Row, where: str | None) -> tuple[bool | None, int]:
    """Whether git_bayesect names a true change, and how many tests it had."""
    if where is None:
        return None, 0
    sys.path.append(where)
    from git_bayesect import Bisector

    # Its first commit is the newest one: that of the cause and all newer ones are bad.
    last = row.machine.count - 1
    bisector = Bisector([1.0] * row.machine.count)
    row.tests = 0
    while row.tests < MOST and bisector.distribution.max() < SURE:
        index = bisector.select()
        bisector.record(index, row.is_bad(last - index))
    return row.is_guilty(last - int(bisector.distribution.argmax())), row.tests


def show(found: Sequence[Outcome]) -> None:
    """Print the tables."""
    headings = (
        *('cause', 'seeds', 'first at 95%', 'first', 'among three', 'pairs', 'median', 'bound'),
        *('over it', 'confirmed', 'over it', 'sure and wrong'),
        *('git bisect', 'git_bayesect', 'its tests'),
    )
    print('| ' + ' | '.join(headings) + ' |')
    print('|---|' + '---:|' * (len(headings) - 1))
    for kind in KINDS:
        those = [one for one in found if one.kind == kind]
        if not those:
            continue
        pairs, confirmed, least = (
            np.array([getattr(one, name) for one in those])
            for name in ('pairs', 'confirmed', 'bound')
        )
        bayes = [one.bayesect for one in those if one.bayesect is not None]
        cells = (
            kind,
            str(len(those)),
            f'{np.mean([one.early for one in those]):.1%}',
            f'{np.mean([one.first for one in those]):.1%}',
            f'{np.mean([one.three for one in those]):.1%}',
            f'{pairs.mean():.1f}',
            f'{np.median(pairs):.0f}',
            f'{least.mean():.1f}',
            f'{pairs.sum() / least.sum():.2f}',
            f'{confirmed.mean():.1f}',
            f'{confirmed.sum() / least.sum():.2f}',
            f'{np.mean([one.probability >= SURE and not one.first for one in those]):.1%}',
            f'{np.mean([one.bisect for one in those]):.1%}',
            f'{np.mean(bayes):.1%}' if bayes else '-',
            f'{np.mean([one.tests for one in those]):.1f}' if bayes else '-',
        )
        print(f'| {" | ".join(cells)} |')
    calibration([(one.probability, one.first) for one in found])


def calibration(answers: Sequence[tuple[float, bool]]) -> None:
    """Print how often first answers of each probability are right."""
    print('\n| probability of the first | seeds | mean probability | right |')
    print('|---|---:|---:|---:|')
    for low, high in ((0, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 0.97), (0.97, 0.99), (0.99, 1.01)):
        those = [one for one in answers if low <= one[0] < high]
        if those:
            told, right = np.mean(those, axis=0)
            print(f'| {low:.0%} to {min(high, 1):.0%} | {len(those)} | {told:.1%} | {right:.1%} |')


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--part', type=float, default=1.0, help='of the seeds')
    parser.add_argument('--from', dest='begin', type=int, default=0, help='the first seed')
    parser.add_argument('--kinds', nargs='+', choices=KINDS, default=[*KINDS])
    parser.add_argument('--bayesect', help='the folder that has git_bayesect.py')
    parser.add_argument('--workers', type=int, default=1)
    arguments = parser.parse_args()
    noise = noises()
    seeds = [
        (kind, arguments.begin + seed)
        for kind in arguments.kinds
        for seed in range(max(1, round(KINDS[kind][0] * arguments.part)))
    ]
    with ProcessPoolExecutor(arguments.workers) as pool:
        told = partial(_try, noise=noise, bayesect=arguments.bayesect)
        show([*pool.map(told, seeds)])


def _try(kind_and_seed: tuple[str, int], noise: Sequence[Floats], bayesect: str | None) -> Outcome:
    return try_seed(*kind_and_seed, noise, bayesect)


if __name__ == '__main__':
    main()
