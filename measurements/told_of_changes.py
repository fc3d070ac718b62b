"""What `assay compare-runs` says of 3 stored sessions before and 3 after, and what others say.

The verdicts are those of the product: of each pair a history is made that holds these six sessions
alone, and handed to what `assay compare-runs` calls. The rules of others (error_rates.py) are
given the same values. Pairs share sessions: shares of pairs are less sure than so many independent
ones.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import error_rates
import numpy as np
import polars as pl
from injected import UNCHANGED, Change

from assay.results.diff.difference import Difference, difference
from assay.results.figure_series import CONDITIONS
from assay.results.history import History, StoredRun
from assay.results.verdict import Summary

#: Sessions of a side, pairs of a change, and pairs in which nothing changed.
RUNS, PAIRS, UNCHANGED_PAIRS = 3, 20, 60
#: Of the unchanged machine: each session, and each second.
STEPS = (1, 2)
#: Exit codes of `assay compare-runs`.
WORSE, UNDECIDED, NOT_WORSE = 1, 3, 0


@dataclass(frozen=True)
class Pair:
    """Sessions that are compared.

    :param change: what was changed between them.
    :param before: identifiers of runs, oldest first.
    :param after: likewise.
    """

    change: Change
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """What is said of a pair.

    :param code: the exit code of `assay compare-runs`.
    :param worse: how many figures it calls worse.
    :param first: the family that it names first, if any is worse.
    :param is_right: whether that is one that the change can touch.
    :param others: of each other rule, whether it calls any figure worse.
    """

    pair: Pair
    code: int
    worse: int
    first: str
    is_right: bool
    others: dict[str, bool]


def runs_of(stored: pl.DataFrame, change: Change) -> list[str]:
    """Identifiers of the sessions of a change, oldest first."""
    ours = stored.filter(pl.col('label') == change.name).sort('begun')
    return ours['run'].cast(pl.String).unique(maintain_order=True).to_list()


def pairs_of(stored: pl.DataFrame, change: Change) -> list[Pair]:
    """Three sessions of the unchanged machine, and three later ones of a change.

    Of a change: three successive sessions before, and three of its sessions after. Of no change:
    successive ones, and each second. At most :data:`PAIRS` and :data:`UNCHANGED_PAIRS` of them,
    evenly chosen.
    """
    unchanged = runs_of(stored, UNCHANGED)
    order = dict(stored.sort('begun').select(pl.col('run').cast(pl.String), 'begun').rows())
    if change is UNCHANGED:
        found = []
        for step in STEPS:
            triples = triples_of(unchanged, step)
            for before, after in combinations(triples, 2):
                if order[before[-1]] < order[after[0]]:
                    found.append(Pair(change, before, after))
        return evenly(found, UNCHANGED_PAIRS)
    after_triples = [*combinations(runs_of(stored, change), RUNS)]
    found = [
        Pair(change, before, after)
        for after in after_triples
        for before in triples_of(unchanged, 1)
        if order[before[-1]] < order[after[0]]
    ]
    return evenly(found, PAIRS)


def evenly(found: list[Pair], most: int) -> list[Pair]:
    if len(found) <= most:
        return found
    return [found[i] for i in np.linspace(0, len(found) - 1, most).round().astype(int)]


def triples_of(runs: Sequence[str], step: int) -> list[tuple[str, ...]]:
    last = len(runs) - (RUNS - 1) * step
    return [tuple(runs[i : i + RUNS * step : step]) for i in range(last)]


def difference_of(pair: Pair, stored: pl.DataFrame, database: Path) -> Difference:
    """What differs between the sessions of a pair.

    :param database: an empty one (:func:`empty_database`).
    """
    history = history_of(_figures_of(pair, stored), database)
    by_name = {run.uuid: run for run in history.runs}
    before, after = ([by_name[one] for one in some] for some in (pair.before, pair.after))
    return difference(history, before, after)


def _figures_of(pair: Pair, stored: pl.DataFrame) -> pl.DataFrame:
    return stored.filter(pl.col('run').cast(pl.String).is_in([*pair.before, *pair.after]))


def told_of(pair: Pair, stored: pl.DataFrame, database: Path) -> Told:
    """What is said of a pair; parameters as of :func:`difference_of`."""
    found = difference_of(pair, stored, database)
    first = next((one.name for one in found.families if one.word == 'worse'), '')
    is_right = bool(first) and re.search(pair.change.families, first) is not None
    rules = others(_figures_of(pair, stored), pair)
    return Told(pair, code_of(found), found.counts['worse'], first, is_right, rules)


def code_of(found: Difference) -> int:
    return WORSE if found.is_worse else UNDECIDED if found.is_undecided else NOT_WORSE


def empty_database(folder: Path) -> Path:
    """Of these runs no database holds a report, which would tell where the time went."""
    database = folder / 'results.db'
    with closing(sqlite3.connect(database)) as connection:
        connection.execute('CREATE TABLE sessions(uuid TEXT, json_blob TEXT)')
    return database


def history_of(figures: pl.DataFrame, database: Path) -> History:
    runs = figures.group_by('run').agg(pl.col('begun', 'label', 'system').first()).sort('begun')
    summaries = (
        StoredRun(run, begun, begun, Summary(label=label, system=system))
        for run, begun, label, system in runs.cast({pl.Categorical: pl.String}).rows()
    )
    return History(tuple(summaries), database, figures)


def judged(figures: pl.DataFrame) -> pl.DataFrame:
    """The figures of which more or less is better, disturbed or not: a row for each session."""
    return figures.filter(
        pl.col('better').cast(pl.String).is_in(['higher', 'lower'])
        & (pl.col('value') > 0)
        & ~pl.col('figure').cast(pl.String).is_in([*CONDITIONS])
    )


def others(figures: pl.DataFrame, pair: Pair) -> dict[str, bool]:
    """Whether each other rule calls any figure worse, of those that all six sessions have."""
    wide = (
        judged(figures)
        .cast({pl.Categorical: pl.String})
        .pivot(on='run', index=('case', 'environment', 'figure', 'better'), values='value')
        .drop_nulls()
    )
    before, after = (wide.select(some).to_numpy() for some in (pair.before, pair.after))
    higher = (wide['better'] == 'higher').to_numpy()
    is_loss = (after.mean(axis=1) < before.mean(axis=1)) == higher
    return {name: bool((found & is_loss).any()) for name, found in _rules(before, after)}


def _rules(before: np.ndarray, after: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """What each rule calls changed: shape (figures,).

    :param before: shape (figures, sessions).
    :param after: likewise.
    """
    if error_rates.compute_change_points:
        yield 'Otava', error_rates.otava(np.hstack([before, after]), RUNS)
    yield 'Perfherder', error_rates.perfherder(before, after)
    # What --performance-compare prints is the difference in per cent; people choose a threshold.
    medians = np.median(after, axis=1) / np.median(before, axis=1)
    for least in (0.05, 0.1, 0.25):
        yield f"ReFrame's comparison, {least:.0%}", np.abs(medians - 1) > least
    for bound in (0.1, 0.25):
        yield f'bounds of {bound:.0%}', error_rates.reframe_bounds(before, after, bound)
