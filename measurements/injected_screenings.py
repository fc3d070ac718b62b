"""False drains and recall of `assay screen`, on screenings that are made up.

    .venv/bin/python measurements/injected_screenings.py
    .venv/bin/python measurements/injected_screenings.py --most 1000

Nodes differ from each other for good, by a spread of one of several shapes, and each measurement by
1% more. Into 0 to 5% of them a fault is put that makes dgemm and frequency slower; with history,
five or ten screenings before it were without. A tenth of the nodes is missing from each of these; a
third of all is of another generation, 40% faster. Seeds are fixed; it takes twenty minutes on one
core, and prints Markdown.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

import numpy as np

from assay.screening.measured import MEASURES, MODES, Links, Screening
from assay.screening.verdict import ScreeningVerdict, judge_screening

SWEEPS, NOISE = 8, 0.01
#: Screenings before the one that is judged.
HISTORIES = (0, 5, 10)
SIZES = {100: 200, 1000: 40, 10_000: 8}
SEVERITIES = (0.03, 0.05, 0.10, 0.20)
BEGUN = datetime(2026, 1, 1, tzinfo=timezone.utc)
#: What a slow processor is slow in.
HIT = ('dgemm alone', 'dgemm together', 'frequency alone', 'frequency together')

Random = np.random.Generator


def _skewed(random: Random, n: int) -> np.ndarray:
    """A tail of sound nodes on the slow side: those of identical parts that need more power."""
    return 0.01 * (2 - random.gamma(4, 0.5, n))


#: Logarithms of what sound nodes give, around 0.
SHAPES: dict[str, Callable[[Random, int], np.ndarray]] = {
    'normal, 1%': lambda random, n: random.normal(0, 0.01, n),
    "Student's t of 5, 1%": lambda random, n: 0.01 * random.standard_t(5, n) * math.sqrt(3 / 5),
    'skewed to the slow side, 1%': _skewed,
    'even over 8%': lambda random, n: random.uniform(-0.04, 0.04, n),
}


@dataclass(frozen=True)
class Machine:
    """A machine whose nodes differ for good.

    :param usual: shape (n,) of each figure, logarithms.
    """

    usual: dict[str, np.ndarray]
    is_old: np.ndarray

    @property
    def size(self) -> int:
        return len(self.is_old)


def machine(random: Random, n: int, shape: str) -> Machine:
    old = np.arange(n) % 3 == 0
    figures = (f'{measure} {mode}' for measure in MEASURES for mode in MODES)
    return Machine({name: SHAPES[shape](random, n) - 0.4 * old for name in figures}, old)


def screening(
    random: Random, of: Machine, number: int, bad: np.ndarray | None = None, by: float = 0.0
) -> Screening:
    """One screening of all nodes, the bad ones slower by a fraction."""
    n = of.size
    values = {
        name: 1e9 * np.exp(usual[:, None] + random.normal(0, NOISE, (n, SWEEPS)))
        for name, usual in of.usual.items()
    }
    if bad is not None:
        for name in HIT:
            values[name][bad] *= 1 - by
    facts = [{'processor': 'old' if old else 'new', 'cpus': 64} for old in of.is_old]
    ends = schedule(n)
    return Screening(
        system='made:up',
        environment='none',
        fabric='none',
        begun=BEGUN + timedelta(days=number),
        nodes=tuple(f'n{i}' for i in range(n)),
        values=values,
        taken={mode: np.zeros((n, SWEEPS)) for mode in MODES},
        facts=tuple(facts),
        faults=tuple({} for _ in range(n)),
        noise=tuple({} for _ in range(n)),
        links=Links(
            ends,
            2e-6 * np.exp(random.normal(0, 0.03, (len(ends), 2))),
            2e10 * np.exp(random.normal(0, 0.03, (len(ends), 2))),
            np.full((len(ends), 2), np.nan),
        ),
        switches={},
    )


def schedule(n: int) -> np.ndarray:
    """The pairs that meet, as sources/mpi/pairs/schedule.h has them: shape (P, 2)."""
    circle = n - 1 if n % 2 == 0 else n
    rounds = range(circle)
    if n > 64:
        half = math.ceil(math.log2(n))
        even = [circle * i // half for i in range(half)]
        rounds = sorted({*even, *((one + 2**i) % circle for i, one in enumerate(even))})
    pairs = set()
    for total in rounds:
        for a in range(circle):
            b = (total - a) % circle
            partner = b if a != b else n - 1
            if a != partner and partner < n:
                pairs.add((min(a, partner), max(a, partner)))
    return np.array(sorted(pairs))


def without_some(random: Random, one: Screening) -> Screening:
    """A tenth of the nodes was not there. Their links are left out: nobody looks at old ones."""
    stay = np.sort(random.choice(len(one.nodes), len(one.nodes) * 9 // 10, replace=False))
    empty = np.zeros((0, 2))
    return replace(
        one,
        nodes=tuple(one.nodes[i] for i in stay),
        values={name: values[stay] for name, values in one.values.items()},
        taken={mode: taken[stay] for mode, taken in one.taken.items()},
        facts=tuple(one.facts[i] for i in stay),
        faults=tuple(one.faults[i] for i in stay),
        noise=tuple(one.noise[i] for i in stay),
        links=Links(empty.astype(np.int64), empty, empty, empty),
    )


def drained(verdict: ScreeningVerdict) -> set[str]:
    return {one.members[0] for one in verdict.drain}


def sound(random: Random, n: int, shape: str, earlier: int, times: int) -> tuple[int, float]:
    """False drains of so many screenings, and the seconds of one judgement."""
    false, seconds = 0, 0.0
    for _ in range(times):
        now, before = _one(random, n, shape, earlier, None, 0.0)
        began = time.perf_counter()
        false += len(drained(judge_screening(now, before)))
        seconds += time.perf_counter() - began
    return false, seconds / times


def _one(
    random: Random, n: int, shape: str, earlier: int, bad: np.ndarray | None, by: float
) -> tuple[Screening, list[Screening]]:
    of = machine(random, n, shape)
    before = [without_some(random, screening(random, of, number)) for number in range(earlier)]
    return screening(random, of, earlier, bad, by), before


def found(
    random: Random, n: int, shape: str, earlier: int, by: float, share: float, times: int
) -> tuple[float, int]:
    """The share of the bad nodes that were found, and false drains beside them."""
    hits = false = bad_ones = 0
    for _ in range(times):
        bad = random.choice(n, max(1, round(share * n)), replace=False)
        now, before = _one(random, n, shape, earlier, bad, by)
        names = {f'n{i}' for i in bad}
        told = drained(judge_screening(now, before))
        hits += len(told & names)
        false += len(told - names)
        bad_ones += len(bad)
    return hits / bad_ones, false


LINKS = ('one node', 'one pair', 'a group of 16')


def links(random: Random, n: int, what: str, times: int) -> tuple[int, int]:
    """How often the culprit of slow links was named, and how often anybody else was.

    Latency is twice as long. A pair is one that has met, and was slow alone too.
    """
    right = wrong = 0
    for _ in range(times):
        one = screening(random, machine(random, n, 'normal, 1%'), 0)
        ends, latency = one.links.ends, one.links.latency.copy()
        alone = np.full(one.links.alone.shape, np.nan)
        first = int(random.integers(n - 16))
        if what == 'one pair':
            pair = int(random.integers(len(ends)))
            slow = np.arange(len(ends)) == pair
            alone[pair] = 4e-6, 2e10
            kind, members = 'pair', tuple(sorted(f'n{i}' for i in ends[pair]))
        elif what == 'one node':
            slow = (ends == first).any(axis=1)
            kind, members = 'node', (f'n{first}',)
        else:
            inside = (ends >= first) & (ends < first + 16)
            slow = inside.sum(axis=1) == 1
            kind, members = 'group', tuple(sorted(f'n{first + i}' for i in range(16)))
        latency[slow] *= 2
        switches = (
            {'s1': tuple(f'n{first + i}' for i in range(16))} if what == 'a group of 16' else {}
        )
        now = replace(
            one, links=replace(one.links, latency=latency, alone=alone), switches=switches
        )
        findings = judge_screening(now).findings
        right += any((one.kind, one.members) == (kind, members) for one in findings)
        wrong += any((one.kind, one.members) != (kind, members) for one in findings)
    return right, wrong


#: Logarithms of what pairs of sound nodes vary by, in two tournaments: shape (pairs, 2).
FEW_SHAPES: dict[str, Callable[[Random, int], np.ndarray]] = {
    'normal, 5%': lambda random, pairs: random.normal(0, 0.05, (pairs, 2)),
    "Student's t of 3, 10% between pairs": lambda random, pairs: (
        0.1 * random.standard_t(3, (pairs, 1)) / math.sqrt(3) + random.normal(0, 0.03, (pairs, 2))
    ),
    'one time in five twice as long': lambda random, pairs: (
        math.log(2) * (random.random((pairs, 2)) < 0.2) + random.normal(0, 0.03, (pairs, 2))
    ),
    'three pairs in ten by half longer for good': lambda random, pairs: (
        math.log(1.5) * (random.random((pairs, 1)) < 0.3) + random.normal(0, 0.03, (pairs, 2))
    ),
}
#: What is slow of few nodes, and by how much.
FEW_FAULTS = ('one node', 'two nodes', 'one pair', 'one node in dgemm')
FEW_TIMES = (2.5, 5, 100)


def few(
    random: Random, n: int, shape: str, earlier: int, what: str = '', by: float = 1.0
) -> tuple[bool, bool]:
    """Whether the culprit of a few nodes was named, alone, and whether anybody else was.

    Who may be it with others is not named.
    """
    of = Machine(
        {f'{measure} {mode}': random.normal(0, 0.01, n) for measure in MEASURES for mode in MODES},
        np.zeros(n, bool),
    )
    before = [
        _with_links(random, screening(random, of, number), shape) for number in range(earlier)
    ]
    now = _with_links(random, screening(random, of, earlier), shape)
    bad = random.permutation(n)[:2]
    ends = now.links.ends
    latency, alone = now.links.latency.copy(), now.links.alone.copy()
    told: set[tuple[str, tuple[str, ...]]] = set()
    if what.endswith('dgemm'):
        now.values['dgemm alone'][bad[0]] /= by
        told = {('node', (f'n{bad[0]}',))}
    elif what.endswith('pair'):
        pair = random.integers(len(ends))
        latency[pair] *= by
        alone[pair] = latency[pair, 0], 2e10
        told = {('pair', tuple(sorted(f'n{one}' for one in ends[pair])))}
    elif what:
        bad = bad[: 1 + (what == 'two nodes')]
        latency *= 1 + np.isin(ends, bad).sum(axis=1)[:, None] * (by - 1)
        told = {('node', (f'n{one}',)) for one in bad}
    now = replace(now, links=replace(now.links, latency=latency, alone=alone))
    found = {
        (one.kind, one.members)
        for one in judge_screening(now, before).findings
        if one.kind not in ('either', 'suspect')
    }
    return bool(told) and found == told, bool(found - told)


def _with_links(random: Random, one: Screening, shape: str) -> Screening:
    own = np.random.default_rng(len(one.nodes))  # what pairs differ by for good
    logs = FEW_SHAPES[shape](own if 'for good' in shape else random, len(one.links.ends))
    return replace(one, links=replace(one.links, latency=2e-6 * np.exp(logs)))


def tell_of_few(times: int) -> None:
    """Tables of all sizes from 2 to 16 nodes."""
    sizes = range(2, 17)
    print('\n| pairs of sound nodes | history | ' + ' | '.join(map(str, sizes)) + ' |')
    print('|---|---|' + '---|' * len(sizes))
    for shape in FEW_SHAPES:
        for earlier in (0, 5):
            cells = []
            for n in sizes:
                random = np.random.default_rng(n)
                cells.append(sum(few(random, n, shape, earlier)[1] for _ in range(4 * times)))
            row = ' | '.join(map(str, cells))
            print(f'| {shape} | {earlier or "none"} | {row} |', flush=True)
    print('\n| what is slow | times | history | ' + ' | '.join(map(str, sizes)) + ' |')
    print('|---|---|---|' + '---|' * len(sizes))
    for what in FEW_FAULTS:
        for by in FEW_TIMES if what != 'one node in dgemm' else (1.25, 2):
            for earlier in (0, 5):
                cells = []
                for n in sizes:
                    random = np.random.default_rng(n)
                    looks = [few(random, n, 'normal, 5%', earlier, what, by) for _ in range(times)]
                    right, wrong = (sum(column) for column in zip(*looks, strict=True))
                    cells.append(f'{right}, {wrong} wrong' if wrong else f'{right}')
                row = ' | '.join(cells)
                print(f'| {what} | {by:g} | {earlier or "none"} | {row} |', flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--most', type=int, default=10_000, help='nodes of the largest machine')
    parser.add_argument('--few', type=int, metavar='N', help='only 2 to 16 nodes, N times each')
    given = parser.parse_args()
    if given.few:
        tell_of_few(given.few)
        return
    most = given.most
    sizes = {n: times for n, times in SIZES.items() if n <= most}
    print(
        '| spread of sound nodes | nodes | history | false drains | screenings | seconds of one |'
    )
    print('|---|---|---|---|---|---|')
    for shape in SHAPES:
        for n, times in sizes.items():
            for earlier in HISTORIES:
                random = np.random.default_rng(n)
                false, seconds = sound(random, n, shape, earlier, times)
                print(
                    f'| {shape} | {n} | {earlier or "none"} | {false} | {times} | {seconds:.2f} |',
                    flush=True,
                )
    print('\n| nodes | bad | history | 3% slow | 5% | 10% | 20% | false drains |')
    print('|---|---|---|---|---|---|---|---|')
    for n, times in sizes.items():
        times = max(3, times // 4)
        for share in (0.0, 0.05):
            for earlier in HISTORIES:
                random = np.random.default_rng(n)
                cells, false = [], 0
                for by in SEVERITIES:
                    recall, more = found(random, n, 'normal, 1%', earlier, by, share, times)
                    cells.append(f'{recall:.0%}')
                    false += more
                bad = 'one' if not share else f'{share:.0%}'
                print(
                    f'| {n} | {bad} | {earlier or "none"} | {" | ".join(cells)} | {false} |',
                    flush=True,
                )
    print('\n| nodes | rounds | what is slow | named | somebody else named | screenings |')
    print('|---|---|---|---|---|---|')
    for n, times in sizes.items():
        times = max(3, times // 2)
        rounds = len(schedule(n)) // (n // 2)
        for what in LINKS:
            right, wrong = links(np.random.default_rng(n), n, what, times)
            print(f'| {n} | {rounds} | {what} | {right} | {wrong} | {times} |', flush=True)
    tell_of_few(25)


if __name__ == '__main__':
    main()
