"""False alarms and power of three runs before and three after, with a short history and a long one.

    .venv/bin/python measurements/short_histories.py
    .venv/bin/python measurements/short_histories.py --suites 1000

Suites of 300 figures: 20 families of three kinds, each in five cases. The noise of figures is that
of error_rates.py: autocorrelated, with spells, heavy tails, outliers and modes, with spreads from
0.5% to 10% and a part that all figures of a run share; figures of a family share another part. The
statistics are those that `assay compare-runs` calls. Seeds are fixed; prints Markdown.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from error_rates import percent, simulated

from assay.results.statistics.families import FamilyMember, Judged, judge_suite
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.statistics.series import series
from assay.results.statistics.spread import NO_KIND, learn

FAMILIES, KINDS, CASES = 20, 3, 5
FIGURES = FAMILIES * KINDS * CASES
HISTORIES, RUNS = (0, 3, 10, 60), 3
SPREADS = (0.005, 0.1)
#: What figures of a family share, in their own spreads; and the noise of it.
SHARED = 0.5
SHARED_NOISE = ('autocorrelated', 'spells', 't with 3 df')
#: Seconds from one run to the next.
EVERY = 600.0
#: What gets slower: how many figures of the first family.
SLOWED = {'one family': KINDS * CASES, 'one kind': CASES, 'one figure': 1}
SLOWER = (0.1, 0.25)
#: Suites in which that is looked for.
CHANGED = 100


def suite(seed: int, history: int, slowed: int = 0, slower: float = 0.0) -> Judged:
    """What is said of a suite.

    :param history: runs before those that are compared.
    :param slowed: so many of the first figures get worse.
    :param slower: by how much their times grow, as a fraction.
    """
    rng = np.random.default_rng(seed)
    runs = history + 2 * RUNS
    spread = np.exp(rng.uniform(*np.log(SPREADS), (FIGURES, 1)))
    # Each family has every shape of noise.
    noise = simulated(rng, FIGURES, runs)[rng.permutation(FIGURES)]
    shared = simulated(rng, FAMILIES, runs, SHARED_NOISE)[rng.permutation(FAMILIES)]
    noise = noise + SHARED * np.repeat(shared, KINDS * CASES, axis=0)
    logs = spread * noise
    logs[:slowed, -RUNS:] += np.log1p(slower)
    times = EVERY * np.arange(runs)
    parts = slice(0, history), slice(history, history + RUNS), slice(history + RUNS, runs)
    sides = [[series(np.exp(one[part]), times[part]) for part in parts[1:]] for one in logs]
    pasts = [series(np.exp(one[parts[0]]), times[parts[0]]) if history else None for one in logs]
    kinds = [
        learn([past for past in pasts[i : i + CASES] if past]) if history > 1 else NO_KIND
        for i in range(0, FIGURES, CASES)
    ]
    members = [
        FamilyMember(
            f'family {i // (KINDS * CASES)}',
            f'kind {i // CASES}',
            before,
            after,
            'lower',
            pasts[i],
            kinds[i // CASES],
        )
        for i, (before, after) in enumerate(sides)
    ]
    return judge_suite(members)


def alarms(job: tuple[int, int]) -> tuple[int, int]:
    """How many families and figures are called changed in a suite in which nothing changed."""
    found = suite(*job)
    return sum(one.p_value <= SUITE_RATE for one in found.families), changed(found, FIGURES)


def is_found(job: tuple[int, int, int, float]) -> tuple[bool, bool]:
    """Whether any of the figures that got worse is called so, and its family is the surest."""
    found = suite(*job)
    return changed(found, job[2]) > 0, found.families[0].tested.name == 'family 0'


def changed(found: Judged, first: int) -> int:
    """How many of the first figures are called changed."""
    return sum(p <= SUITE_RATE for p in found.p_values[:first])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--suites', type=int, default=300, help='unchanged ones (default 300)')
    options = parser.parse_args()
    seeds = range(options.suites)
    what = [(name, slower) for name in SLOWED for slower in SLOWER]
    print(f'\n{options.suites} suites without a change, {CHANGED} with each\n')
    heads = ['runs of history', 'suites alarmed', 'figures alarmed']
    heads += [f'{name} slower by {slower:.0%}' for name, slower in what]
    print('|', ' | '.join(heads), '|')
    print('|' + '---:|' * len(heads))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for history in HISTORIES:
            done = np.array([*pool.map(alarms, [(seed, history) for seed in seeds], chunksize=5)])
            cells = [str(history), percent((done[:, 0] > 0).mean())]
            cells += [f'{100 * done[:, 1].mean() / FIGURES:.3f}%']
            for name, slower in what:
                jobs = [(seed, history, SLOWED[name], slower) for seed in range(CHANGED)]
                found = np.array([*pool.map(is_found, jobs, chunksize=5)])
                both, right = found[:, 0].mean(), (found[:, 0] & found[:, 1]).mean()
                cells.append(f'{both:.0%}, {right:.0%} first')
            print('|', ' | '.join(cells), '|', flush=True)


if __name__ == '__main__':
    main()
