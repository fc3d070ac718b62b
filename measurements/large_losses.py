"""Large losses without a history: how often they are missed, left open, and found.

    .venv/bin/python measurements/large_losses.py

Two questions, on simulated suites, with what the commands call; seeds are fixed; prints Markdown.

What `assay compare-runs` says of eight runs before and eight after where one figure lost a third.
The figures, their cases, kinds and families are those of a real session of the smoke mode; their
noise is that of error_rates.py, with spreads from 0.5% to 10%. The figure that lost has noise and
spread of its own. Where nothing changed all figures of a suite have that noise, and spreads up to
30%: each doubt is a false one.

What the pairs of `assay compare-settings` say where twelve of 100 figures lost much: spreads from
0.3% to 10%, and all figures are suspects. Where nothing differs each verdict is a false alarm; of
modes that hardly vary all sessions of a side may be of one by chance.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from error_rates import CHANGED, FIGURES, NEW, PAIRS, campaign, percent, simulated
from error_rates import interleaved as decided
from injected import UNCHANGED
from real_changes import DATA
from told_of_changes import empty_database, history_of, judged, runs_of

from assay.results.diff.difference import difference

RUNS = 8
#: Of the real session: enough for families, and few enough to be quick.
CHECKS = ('PointToPoint', 'Ring', 'Halo', 'MiniFE', 'MiniGhost', 'Stream', 'Clock')
LOST = ('PointToPoint', 'tcp', 'latency')
#: The loss of a third, and the noise of the figure that has it.
LOSS = 1 / 3
TAILS = ('t with 3 df', 't with 2 df', 'spells')
SPREADS = (0.05, 0.1, 0.2)
WORDS = ('worse', 'undecided', 'not worse')
#: Twelve losses of a suite.
LARGE = np.repeat([0.1, 0.2, 1 / 3, 0.5], 3)
MODES = 'two narrow modes'
NULL = DATA.with_name('null.parquet')


def noise(rng: np.random.Generator, shape: str, figures: int, runs: int) -> np.ndarray:
    """Of one shape; negative is worse."""
    if shape == 't with 2 df':  # which has no standard deviation: its quartiles are those of 3
        return rng.standard_t(2, (figures, runs)) / np.sqrt(3) * 0.937
    if shape == MODES:
        mode = (rng.random((figures, runs)) < 0.75) / np.sqrt(0.75 * 0.25)
        return mode + 0.05 * rng.standard_normal((figures, runs))
    if shape == 'mixed':  # any figure may have any of them
        return simulated(rng, figures, runs)[rng.permutation(figures)]
    return simulated(rng, figures, runs, (shape,))


def spreads(rng: np.random.Generator, least: float, most: float, figures: int) -> np.ndarray:
    return np.exp(rng.uniform(np.log(least), np.log(most), (figures, 1)))


# ----- eight runs and eight ---------------------------------------------------------------------


def session() -> pl.DataFrame:
    """The figures of a real session, a row for each."""
    stored = pl.read_parquet(DATA)
    first = runs_of(stored, UNCHANGED)[0]
    return (
        judged(stored.filter(pl.col('run').cast(pl.String) == first))
        .filter(pl.col('check').cast(pl.String).is_in(CHECKS))
        .with_columns(disturbances=pl.lit(None, stored.schema['disturbances']))
    )


def verdict(job: tuple[int, str, float, float], database: Path) -> str:
    """What is said of a suite.

    :param job: seed, noise and spread of the figure, and its loss; without a loss those of all
        figures, the spread being the greatest.
    """
    seed, shape, spread, loss = job
    rng = np.random.default_rng(seed)
    figures = session()
    count = len(figures)
    if loss:
        logs = spreads(rng, 0.005, 0.1, count) * noise(rng, 'mixed', count, 2 * RUNS)
        names = figures.select(pl.col('check', 'fabric', 'figure').cast(pl.String)).rows()
        lost = names.index(LOST)
        logs[lost] = spread * noise(rng, shape, 1, 2 * RUNS)
        logs[lost, RUNS:] += np.log1p(-loss)
    else:
        logs = spreads(rng, 0.005, spread, count) * noise(rng, shape, count, 2 * RUNS)
    logs[(figures['better'].cast(pl.String) == 'lower').to_numpy()] *= -1
    stored = pl.concat(
        figures.with_columns(
            pl.Series('value', np.exp(of_run)),
            run=pl.lit(f'{number:08x}-0000-4000-8000-000000000000', figures.schema['run']),
            begun=pl.col('begun') + timedelta(minutes=5 * number),
            measured=pl.col('measured') + timedelta(minutes=5 * number),
        )
        for number, of_run in enumerate(logs.T)
    )
    history = history_of(stored, database)
    return difference(history, history.runs[:RUNS], history.runs[RUNS:]).verdict


def of_runs(pool: ProcessPoolExecutor, suites: int) -> None:
    print(f'\n### Eight runs and eight, {suites} suites a row\n')
    print('| what lost | noise | spread | worse | undecided | not worse |')
    print('|---|---|---:|---:|---:|---:|')
    rows = [(shape, spread, LOSS) for shape in TAILS for spread in SPREADS]
    rows += [(shape, 0.3, 0.0) for shape in ('mixed', *TAILS)]
    with tempfile.TemporaryDirectory() as folder:
        tell = partial(verdict, database=empty_database(Path(folder)))
        for shape, spread, loss in rows:
            jobs = [(seed, shape, spread, loss) for seed in range(suites)]
            told = Counter(pool.map(tell, jobs, chunksize=5))
            shares = ' | '.join(f'{told[word] / suites:.0%}' for word in WORDS)
            what, most = ('a third of one', '') if loss else ('nothing', 'up to ')
            print(f'| {what} | {shape} | {most}{spread:.0%} | {shares} |', flush=True)


# ----- two settings in turn ---------------------------------------------------------------------


def words(job: tuple[int, str, bool]) -> np.ndarray:
    """What pairs say of each figure of a suite, of which twelve may have lost much."""
    seed, shape, is_changed = job
    rng = np.random.default_rng(seed)
    pairs = np.exp(spreads(rng, 0.003, 0.1, FIGURES) * noise(rng, shape, FIGURES, 2 * PAIRS))
    if is_changed:
        pairs[: len(LARGE), NEW] *= 1 - LARGE[:, None]
    return decided(pairs, pairs, None, history=False)


def words_of_window(start: int) -> np.ndarray:
    """The same of successive runs of the null campaign, in which nothing was changed."""
    runs = np.exp(campaign(NULL)[:, start : start + 2 * PAIRS])
    return decided(runs, runs, None, history=False)


def of_settings(pool: ProcessPoolExecutor, suites: int) -> None:
    found = np.array([*pool.map(words, [(seed, 'mixed', True) for seed in range(suites)])])
    print(f'\n### Two settings in turn, without a history, {suites} suites with twelve losses\n')
    print('| loss | found | open | called the same or better |\n|---:|---:|---:|---:|')
    of_losses = [(f'{loss:.0%}', found[:, : len(LARGE)][:, loss == LARGE]) for loss in set(LARGE)]
    for name, those in (*sorted(of_losses), ('all', found[:, : len(LARGE)])):
        shares = [(those == word).mean() for word in ('worse', 'cannot tell')]
        cells = ' | '.join(percent(one) for one in (*shares, 1 - sum(shares)))
        print(f'| {name} | {cells} |')
    print('\n| nothing differs, noise | suites | suites alarmed | figures alarmed |')
    print('|---|---:|---:|---:|')
    unchanged = [
        (shape, words, [(seed, shape, False) for seed in range(count)])
        for shape, count in (('mixed', 5 * suites), (MODES, suites))
    ]
    windows = campaign(NULL).shape[1] - 2 * PAIRS + 1
    unchanged.append(('windows of the null campaign', words_of_window, range(windows)))
    for name, tell, jobs in unchanged:
        alarms = np.isin([*pool.map(tell, jobs)], CHANGED)
        shares = percent(alarms.any(axis=1).mean()), f'{100 * alarms.mean():.3f}%'
        print(f'| {name} | {len(jobs)} | {" | ".join(shares)} |', flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--suites', type=int, default=100, help='of a row (default 100)')
    parser.add_argument('--workers', type=int, default=os.cpu_count())
    options = parser.parse_args()
    # Polars has threads, which a forked process would wait for in vain.
    spawn = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(options.workers, spawn) as pool:
        of_settings(pool, 4 * options.suites)
        of_runs(pool, options.suites)


if __name__ == '__main__':
    main()
