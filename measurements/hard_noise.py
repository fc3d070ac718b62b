"""What `assay compare-runs` says of simulated suites with hard noise: alarms, doubts, losses found.

    .venv/bin/python measurements/hard_noise.py
    .venv/bin/python measurements/hard_noise.py --workers 1 --only tails

The figures, their cases, kinds and families are those of a real session of the smoke mode; there is
no history. Seeds are fixed; prints Markdown. Two parts, each of at most ten minutes of one core:

*tails*: eight runs and eight. One figure lost a third, with noise and spread of its own, while the
others have the noise of error_rates.py, with spreads from 0.5% to 10%. Where nothing changed all
figures of a suite have that noise, and spreads up to 30%: each doubt is a false one.

*adversary*: three runs and three of all figures, with what an adversary would choose: one session
slow as a whole, figures with two modes, a machine that drifts meanwhile, families that move as one.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import polars as pl
from error_rates import SHAPES, of_shape, options_of_parts, spreads
from injected import UNCHANGED
from real_changes import DATA
from told_of_changes import empty_database, history_of, judged, runs_of

from assay.results.diff.difference import Difference, difference
from assay.witness.profile import STARTUP

#: Of the real session in the first part: enough for families, and few enough to be quick.
CHECKS = ('PointToPoint', 'Ring', 'Halo', 'MiniFE', 'MiniGhost', 'Stream', 'Clock')
#: What one figure loses, and what all of a family do.
LOST = ('PointToPoint', 'tcp', 'latency')
FAMILY = 'latency over tcp of openmpi-system'
TAILS = ('t with 3 df', 't with 2 df', 'spells')
WORDS = ('worse', 'undecided', 'not worse')

SLOW = 'mixed; one session after is 30% slower as a whole'
MODES = 'two modes 10% apart'
DRIFT = 'mixed; each figure drifts by up to 10% meanwhile'
ALIKE = 'normal, correlation of 0.9 in families'
ADVERSARY = (('mixed', 0.1), (SLOW, 0.1), (MODES, 0.005), (DRIFT, 0.05), (ALIKE, 0.1))


@dataclass(frozen=True)
class Suite:
    """How a suite is simulated.

    :param noise: of all figures, with spreads up to ``most``; if ``is_own`` of the figure that
        lost, which has just that spread, and all others have mixed noise.
    :param sessions: of a side.
    :param lost: ``one figure``, ``one family``, or nothing.
    """

    noise: str
    most: float
    sessions: int
    is_small: bool = False
    lost: str = 'nothing'
    loss: float = 0.0
    is_own: bool = False


# ----- data -------------------------------------------------------------------------------------


@lru_cache
def session(is_small: bool) -> pl.DataFrame:
    """The figures of a real session, a row for each; for a small suite those of some checks.

    Without starts and ends of jobs, of which only those are compared that grew.
    """
    stored = pl.read_parquet(DATA)
    first = runs_of(stored, UNCHANGED)[0]
    figures = (
        judged(stored.filter(pl.col('run').cast(pl.String) == first))
        .filter(~pl.col('figure').cast(pl.String).is_in([*STARTUP]))
        .with_columns(disturbances=pl.lit(None, stored.schema['disturbances']))
    )
    return figures.filter(pl.col('check').cast(pl.String).is_in(CHECKS)) if is_small else figures


def noise(rng: np.random.Generator, suite: Suite, families: np.ndarray) -> np.ndarray:
    """Of all figures, as logarithms in which negative is worse: shape (figures, runs)."""
    count, runs = len(families), 2 * suite.sessions
    if suite.is_own:
        return spreads(rng, count, 0.005, 0.1) * of_shape(rng, 'mixed', count, runs)
    wide = spreads(rng, count, 0.005, suite.most) if suite.noise != MODES else suite.most
    if suite.noise in TAILS:
        return wide * heavy(rng, suite.noise, count, runs)
    if suite.noise == ALIKE:
        shared = rng.standard_normal((families.max() + 1, runs))[families]
        return wide * (np.sqrt(0.9) * shared + np.sqrt(0.1) * rng.standard_normal((count, runs)))
    if suite.noise == MODES:
        modes = 0.1 * (rng.random((count, runs)) < 0.5)
        return wide * rng.standard_normal((count, runs)) - modes
    logs = wide * of_shape(rng, 'mixed', count, runs)
    if suite.noise == SLOW:
        logs[:, rng.integers(suite.sessions, runs)] += np.log(0.7)
    if suite.noise == DRIFT:
        logs -= rng.uniform(0, 0.1, (count, 1)) * np.arange(runs) / (runs - 1)
    return logs


def heavy(rng: np.random.Generator, shape: str, figures: int, runs: int) -> np.ndarray:
    """One of :data:`TAILS`, of unit spread; two degrees of freedom have the quartiles of three."""
    if shape in SHAPES:
        return of_shape(rng, shape, figures, runs)
    return rng.standard_t(2, (figures, runs)) / np.sqrt(3) * 0.937


# ----- what is said -----------------------------------------------------------------------------


def told(suite: Suite, logs: np.ndarray, database: Path) -> Difference:
    """What is said of values.

    :param logs: shape (figures, runs), negative is worse.
    """
    figures = session(suite.is_small)
    is_lower = (figures['better'].cast(pl.String) == 'lower').to_numpy()[:, None]
    values = np.exp(np.where(is_lower, -logs, logs))
    stored = pl.concat(
        figures.with_columns(
            pl.Series('value', of_run),
            run=pl.lit(f'{number:08x}-0000-4000-8000-000000000000', figures.schema['run']),
            begun=pl.col('begun') + timedelta(minutes=5 * number),
            measured=pl.col('measured') + timedelta(minutes=5 * number),
        )
        for number, of_run in enumerate(values.T)
    )
    history = history_of(stored, database)
    return difference(history, history.runs[: suite.sessions], history.runs[suite.sessions :])


@lru_cache
def families(is_small: bool, database: Path) -> dict[str, list[int]]:
    """The figures of each family by their positions in the session; none is in two."""
    figures = session(is_small)
    found = told(Suite('', 0, 1, is_small), np.zeros((len(figures), 2)), database).families
    key = ['case', 'environment', 'figure']
    rows = {row: at for at, row in enumerate(figures.select(pl.col(key).cast(pl.String)).rows())}
    return {
        one.name: [
            rows[each.figure.case, each.figure.environment, each.figure.figure]
            for each in one.members
        ]
        for one in found
    }


def verdict(job: tuple[int, Suite], database: Path) -> str:
    seed, suite = job
    rng = np.random.default_rng(seed)
    figures = session(suite.is_small)
    of_families = families(suite.is_small, database)
    which = np.zeros(len(figures), int)
    for number, members in enumerate(of_families.values()):
        which[members] = number
    logs = noise(rng, suite, which)
    if suite.loss:
        names = figures.select(pl.col('check', 'fabric', 'figure').cast(pl.String)).rows()
        lost = [names.index(LOST)] if suite.lost == 'one figure' else of_families[FAMILY]
        if suite.is_own:
            logs[lost] = suite.most * heavy(rng, suite.noise, 1, 2 * suite.sessions)
        logs[lost, suite.sessions :] += np.log1p(-suite.loss)
    return told(suite, logs, database).verdict


# ----- tables -----------------------------------------------------------------------------------


def of_tails() -> Iterator[Suite]:
    for shape in TAILS:
        for spread in (0.05, 0.1, 0.2):
            yield Suite(shape, spread, 8, True, 'one figure', 1 / 3, True)
    for shape in ('mixed', *TAILS):
        yield Suite(shape, 0.3, 8, True)


def of_adversary() -> Iterator[Suite]:
    for shape, most in ADVERSARY:
        nothing = Suite(shape, most, 3)
        yield nothing
        for lost, loss in (('one figure', 1 / 3), ('one family', 0.1), ('one family', 0.25)):
            yield replace(nothing, lost=lost, loss=loss)


PARTS = {'tails': of_tails, 'adversary': of_adversary}


def main() -> None:
    parser = options_of_parts(__doc__, PARTS, 20, 'of a row that lost')
    parser.add_argument(
        '--unchanged', type=int, default=100, help='of one of the adversary that lost nothing'
    )
    options = parser.parse_args()
    # Polars has threads, which a forked process would wait for in vain.
    spawn = multiprocessing.get_context('spawn')
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(options.workers, spawn) as pool,
    ):
        tell = partial(verdict, database=empty_database(Path(folder)))
        for part in options.only:
            print(f'\n| sessions | noise | spread | what lost | suites | {" | ".join(WORDS)} |')
            print('|---:|---|---:|---|---:|' + '---:|' * len(WORDS))
            for suite in PARTS[part]():
                is_long = part == 'adversary' and not suite.loss
                count = options.unchanged if is_long else options.suites
                words = Counter(
                    pool.map(tell, [(seed, suite) for seed in range(count)], chunksize=5)
                )
                shares = ' | '.join(f'{words[word] / count:.0%}' for word in WORDS)
                most = '' if suite.is_own or suite.noise == MODES else 'up to '
                lost = f'{suite.lost}, {suite.loss:.0%}' if suite.loss else suite.lost
                print(
                    f'| {suite.sessions} and {suite.sessions} | {suite.noise} | '
                    f'{most}{suite.most:.3g} | {lost} | {count} | {shares} |',
                    flush=True,
                )


if __name__ == '__main__':
    main()
