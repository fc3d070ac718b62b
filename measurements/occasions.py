"""How much of the variance of sessions is between occasions, and what is said of pairs across them.

    .venv/bin/python measurements/occasions.py

Sessions of `upgrade_day_*.parquet`, of the suite since kernels have been measured in caches as
well; half an hour without a session separates occasions. Three successive sessions are a side, as
they are compared. The variance of sides of different occasions has two parts, that between
occasions and that between sides of one; it is held against what the sessions of a side vary by. It
is a sum of mean squares, so that its degrees of freedom are Satterthwaite's (Biometrics Bulletin 2,
1946), for as many figures as the correlated ones are worth: n^2 / sum of their squared
correlations. Sessions of a change count for figures that it cannot touch. Jobs on far cores do not
count, nor disturbed ones.

The second table is of trials of `real_changes.py`, each an occasion: the three runs before of each
are a side. There is one side of each, so the whole variance of sides counts as between occasions.

The third table is what `assay compare-runs` says of pairs of unchanged sides on two occasions.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from injected import UNCHANGED
from real_changes import DATA_OF_TRIALS
from scipy.stats import chi2
from told_of_changes import (
    NOT_WORSE,
    PAIRS,
    RUNS,
    UNDECIDED,
    WORSE,
    Pair,
    empty_database,
    evenly,
    judged,
    runs_of,
    told_of,
    triples_of,
)

from assay.programs.application import OF_CONTROL
from assay.results.diff.families import is_without_messages
from assay.results.statistics.series import Floats
from assay.witness.disturbance import AS_FAR, CORE_LATENCY, CORE_MOVE
from assay.witness.profile import STARTUP

DATA = [
    Path(__file__).with_name('data') / f'upgrade_day_{name}.parquet'
    for name in ('moved_cores', 'measured_again', 'more_changes')
]
#: Without a session for so long, the next is another occasion.
APART = 1800
#: Of each change the checks that it may touch, or the fabric over which messages do; of those that
#: touch everything no session counts.
TOUCHED: dict[str, tuple[str, ...]] = {
    'unchanged': (),
    'stencil-25': ('MiniGhost',),
    'stencil-10': ('MiniGhost',),
    'blas': ('Dgemm', 'HPL', 'Mini'),
    'buffers': ('tcp',),
    'window-scaling': ('tcp',),
    'single-copy': ('shm', 'tcp'),
    'eager': ('shm', 'tcp'),
    'collectives': ('shm', 'tcp'),
}
#: What names of figures end with that are fractions of a limit, and begin with that are of kernels.
FRACTIONS = ('_of_limit', '_over_limit', '_of_link', '_over_ping_pong')
KERNELS = ('matvec', 'dot', 'waxpy', 'assembly', 'stencil', 'force', 'neighbour', 'panel', 'update')
#: Sides on so many occasions show something, and correlations of so many sessions.
ENOUGH_OCCASIONS, ENOUGH_SESSIONS = 3, 6


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition('\n')[0]).parse_args()
    stored = pl.concat(pl.read_parquet(path).cast({pl.Categorical: pl.String}) for path in DATA)
    begun = stored.group_by('run').agg(pl.col('begun').min()).sort('begun')
    occasion = (begun['begun'].dt.epoch('s').diff().fill_null(0) > APART).cum_sum().to_numpy()
    position = dict(zip(begun['run'], range(len(begun)), strict=True))
    print(f'{len(begun)} sessions on {occasion[-1] + 1} occasions: {np.bincount(occasion)}\n')
    of_shares(stored, occasion, position)
    of_trials()
    of_pairs(stored, dict(zip(begun['run'], occasion, strict=True)))


# ----- shares of variance -----------------------------------------------------------------------


def of_shares(stored: pl.DataFrame, occasion: np.ndarray, position: dict[str, int]) -> None:
    groups: dict[str, dict[str, list[Floats]]] = {}
    ours = untouched(stored).sort('begun').group_by('case', 'figure', maintain_order=True)
    for (_, figure), one in ours:
        logs = np.full(len(occasion), np.nan)
        sign = 1 if one['better'][0] == 'lower' else -1
        logs[[position[run] for run in one['run']]] = sign * np.log(one['value'])
        check = one['check'][0]
        name = group_of(check, str(figure))
        groups.setdefault(name, {}).setdefault(check, []).append(logs)
    print('| figures | number | worth | share between occasions | at most (95%) |', end=' ')
    print('mean of a check | at most |\n|---|---:|---:|---:|---:|---:|---:|')
    for name, checks in sorted(groups.items()):
        of_figures = share([one for some in checks.values() for one in some], occasion)
        of_checks = share([mean_of(some, occasion) for some in checks.values()], occasion)
        if of_figures and of_checks:
            count, worth, *shares = of_figures
            cells = [f'{one:.2f}' for one in (*shares, *of_checks[2:])]
            print('|', ' | '.join([name, str(count), f'{worth:.1f}', *cells]), '|')


def group_of(check: str, figure: str) -> str:
    """What figures are alike: a fraction is of a limit measured between the windows of its own."""
    if figure in STARTUP:
        return 'start-up'
    if figure.endswith(FRACTIONS):
        return 'fraction'
    if check.startswith('Dgemm') or figure.startswith(KERNELS):
        return 'kernel'
    if check.startswith('Collectives'):
        return 'collective'
    is_of_bandwidth = 'bandwidth' in figure or 'bisection' in figure or 'bidirectional' in figure
    is_of_messages = check.startswith(('PointToPoint', 'Ring', 'Pairs')) and not is_of_bandwidth
    return 'latency' if is_of_messages else f'others: {check}'


def untouched(stored: pl.DataFrame) -> pl.DataFrame:
    """Values of jobs on near cores that nobody disturbed, of figures that no change touched."""
    cores = stored.filter(pl.col('figure').is_in([CORE_LATENCY, CORE_MOVE])).pivot(
        on='figure', index=['run', 'case'], values='value', aggregate_function='max'
    )
    near = AS_FAR * cores[CORE_LATENCY].min()
    found = judged(stored.filter(pl.col('disturbances').is_null())).join(
        cores, on=['run', 'case'], how='left'
    )
    columns = ('label', 'check', 'figure', 'fabric', CORE_LATENCY, CORE_MOVE)
    kept = []
    for label, check, figure, fabric, latency, move in found.select(columns).rows():
        alone = is_without_messages(check, figure) or check == 'Stream'
        touched = TOUCHED.get(label, (check,))
        moved = latency is not None and (latency >= near or (move or 1) >= AS_FAR)
        is_touched = check.startswith(touched) or (not alone and fabric in touched)
        kept.append((alone or not moved) and not is_touched)
    last = found.filter(pl.Series(kept)).sort('begun', 'measured')
    return last.unique(['run', 'case', 'figure'], keep='last', maintain_order=True)


def share(
    figures: Sequence[Floats], occasion: np.ndarray
) -> tuple[int, float, float, float] | None:
    """Of figures: how many, what they are worth, the share between occasions, and at most."""
    found = [(one, parts) for one in figures if (parts := mean_squares(one, occasion))]
    if not found:
        return None
    worth = len(found) ** 2 / float((correlations([one for one, _ in found], occasion) ** 2).sum())
    between, within, sides, occasions, more = np.mean([parts for _, parts in found], axis=0)
    parts = between / sides, within * (1 - 1 / sides)
    total = sum(parts)
    freedom = worth * total**2 / (parts[0] ** 2 / occasions + parts[1] ** 2 / more)
    return len(found), worth, *of_sessions(total, freedom)


def of_sessions(ratio: float, freedom: float) -> tuple[float, float]:
    """The share between occasions, and at most (95%).

    :param ratio: the variance of a mean of three over what independent sessions would give.
    """
    ratios = np.array([ratio, ratio * freedom / float(chi2.ppf(0.05, freedom))])
    beyond = np.maximum(0, ratios - 1) / RUNS
    return tuple((beyond / (1 + beyond)).tolist())


def mean_squares(logs: Floats, occasion: np.ndarray) -> tuple[float, ...] | None:
    """Mean squares of sides between occasions and within one, over that of independent sessions.

    Beside them the sides of an occasion, and the degrees of freedom of both.
    """
    sides, of = [], []
    for one in range(occasion[-1] + 1):
        values = logs[(occasion == one) & np.isfinite(logs)]
        for i in range(0, len(values) - RUNS + 1, RUNS):
            sides.append(values[i : i + RUNS])
            of.append(one)
    names, number, counts = np.unique(of, return_inverse=True, return_counts=True)
    if len(names) < ENOUGH_OCCASIONS or len(of) == len(names):
        return None
    unit = max(float(np.var(sides, axis=1, ddof=1).mean()), 1e-6) / RUNS
    means = np.mean(sides, axis=1)
    middles = np.array([means[number == i].mean() for i in range(len(names))])
    between = float((counts * (middles - means.mean()) ** 2).sum()) / (len(names) - 1)
    within = float(((means - middles[number]) ** 2).sum()) / (len(of) - len(names))
    usual = (len(of) - float((counts**2).sum()) / len(of)) / (len(names) - 1)
    return between / unit, within / unit, usual, len(names) - 1, len(of) - len(names)


def correlations(figures: Sequence[Floats], occasion: np.ndarray) -> Floats:
    rest = [without_occasions(one, occasion) for one in figures]
    found = np.eye(len(rest))
    for i, one in enumerate(rest):
        for j in range(i):
            both = np.isfinite(one) & np.isfinite(rest[j])
            pair = one[both], rest[j][both]
            if both.sum() >= ENOUGH_SESSIONS and min(side.std() for side in pair) > 0:
                found[i, j] = found[j, i] = np.corrcoef(*pair)[0, 1]
    return found


def without_occasions(logs: Floats, occasion: np.ndarray) -> Floats:
    found = np.full(len(logs), np.nan)
    for one in range(occasion[-1] + 1):
        its = (occasion == one) & np.isfinite(logs)
        if its.any():
            found[its] = logs[its] - logs[its].mean()
    return found


def mean_of(figures: Sequence[Floats], occasion: np.ndarray) -> Floats:
    """The mean of figures in sessions that have most of them, each by how steady it is."""
    logs = np.array(figures)
    spread = [np.nanvar(without_occasions(one, occasion)) for one in logs]
    weights = 1 / np.maximum(spread, 1e-6)
    weights = np.minimum(weights, 4 * np.median(weights))[:, None] * np.isfinite(logs)
    sums = np.nansum(weights * (logs - np.nanmean(logs, axis=1, keepdims=True)), axis=0)
    enough = np.isfinite(logs).sum(axis=0) > len(logs) / 2
    return np.where(enough, sums / np.maximum(weights.sum(axis=0), 1e-12), np.nan)


# ----- trials ------------------------------------------------------------------------------------


def of_trials() -> None:
    """Of kernels in caches, as rates and over their control; as if all figures varied as one."""
    trials = [json.loads(line) for line in DATA_OF_TRIALS.read_text().splitlines()]
    trial_of = {run: number for number, one in enumerate(trials) for run in one['runs'][:RUNS]}
    stored = pl.read_parquet(DATA_OF_TRIALS.with_suffix('.parquet'))
    ours = (
        stored.cast({pl.Categorical: pl.String})
        .filter(pl.col('run').is_in([*trial_of]))
        .with_columns(trial=pl.col('run').replace_strict(trial_of))
    )
    print('\n| kernels in caches | figures | trials | share between trials | at most (95%) |')
    print('|---|---:|---:|---:|---:|')
    for name, ending in (('over their control', OF_CONTROL), ('rates', '_rate')):
        figures = ours.filter(pl.col('figure').str.ends_with(f'in_caches{ending}'))
        ratios, trials_of = [], set()
        for _, one in figures.group_by('case', 'figure'):
            last = one.sort('measured').unique('run', keep='last')
            sides = last.group_by('trial').agg(pl.col('value').log())
            sides = sides.filter(pl.col('value').list.len() == RUNS)
            if len(sides) >= ENOUGH_OCCASIONS:
                logs = np.array(sides['value'].to_list())
                unit = float(np.var(logs, axis=1, ddof=1).mean()) / RUNS
                ratios.append(float(np.var(logs.mean(axis=1), ddof=1)) / unit)
                trials_of |= set(sides['trial'])
        shares = of_sessions(float(np.mean(ratios)), len(trials_of) - 1)
        cells = [f'{one:.2f}' for one in shares]
        print('|', ' | '.join([name, str(len(ratios)), str(len(trials_of)), *cells]), '|')


# ----- pairs across occasions -------------------------------------------------------------------


def of_pairs(stored: pl.DataFrame, occasion_of: dict[str, int]) -> None:
    unchanged = runs_of(stored, UNCHANGED)
    sides: dict[int, list[tuple[str, ...]]] = {}
    for side in triples_of(unchanged, 1):
        if len(occasions := {occasion_of[run] for run in side}) == 1:
            sides.setdefault(occasions.pop(), []).append(side)
    print('\n| occasions | pairs | worse, 1 | undecided, 3 | not worse, 0 | named first |')
    print('|---|---:|---:|---:|---:|---|')
    # Polars has threads, which a forked process would wait for in vain.
    spawn = multiprocessing.get_context('spawn')
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(os.cpu_count(), spawn) as pool,
    ):
        tell = partial(told_of, stored=stored, database=empty_database(Path(folder)))
        for one, other in product(sides, sides):
            if one >= other:
                continue
            pairs = [Pair(UNCHANGED, *pair) for pair in product(sides[one], sides[other])]
            told = [*pool.map(tell, evenly(pairs, PAIRS))]
            codes = Counter(each.code for each in told)
            counts = [str(codes[code]) for code in (WORSE, UNDECIDED, NOT_WORSE)]
            first = Counter(each.first for each in told if each.code == WORSE)
            said = ', '.join(f'{name} {count}' for name, count in first.most_common())
            cells = [f'{one + 1}, {other + 1}', str(len(told)), *counts, said or '-']
            print('|', ' | '.join(cells), '|', flush=True)


if __name__ == '__main__':
    main()
