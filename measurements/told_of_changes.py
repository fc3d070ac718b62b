"""What `assay diff` and pairs say of the sessions that real_changes.py measured, by change.

The verdicts are those of the product: a history is made of the stored figures, and handed to what
`assay diff` and `assay compare` call.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
from common import interval
from injected import UNCHANGED, Change

from assay.comparing.interleaved import compare_at_first, finish
from assay.comparing.pairs import TERM
from assay.comparing.sessions import FIRST, FOURSOME, Session
from assay.comparing.suspects import suspects
from assay.results.diff.compared import Compared
from assay.results.diff.difference import Difference, difference
from assay.results.history import History, StoredRun
from assay.results.machine_figures import CONDITIONS
from assay.results.rows import BAD
from assay.results.statistics.comparison import Word
from assay.results.summary import Summary
from assay.running import setting

#: Runs of the unchanged machine that are compared with some after a change, and how many these are.
BEFORE, AFTER = 5, (1, 3, 5)
#: What the environment of the changed machine is called beside that of the unchanged one.
BOTH = setting.read(['env=unchanged'], ['env=changed'])


@dataclass(frozen=True)
class Told:
    """What was said of a change; of each figure by its name, ``check figure``.

    :param sizes: after over before, and its interval, of what has values above 0.
    :param disturbed: the share of its jobs that others disturbed.
    :param by_diff: what each comparison with some runs after said, by their number.
    :param by_pairs: what pairs said; empty if there were too few rounds.
    """

    change: Change
    sizes: dict[str, tuple[float, float, float]]
    disturbed: float
    by_diff: dict[int, list[Difference]]
    by_pairs: dict[str, Compared]

    def can_touch(self, name: str) -> bool:
        return re.search(self.change.touches, name) is not None

    def said(self, count: int) -> list[dict[str, Compared]]:
        """Of each comparison with so many runs after, its figures."""
        return [figures_of(one) for one in self.by_diff[count]]


def told_of(change: Change, stored: pl.DataFrame, database: Path) -> Told:
    named = [UNCHANGED.name, change.name]
    ours = stored.filter(pl.col('label').cast(pl.String).is_in(named))
    of_change = ours.filter(pl.col('label') == change.name)
    jobs = of_change.unique(['run', 'case'])
    history = history_of(ours, database)
    return Told(
        change,
        true_sizes(ours, change),
        jobs['disturbances'].is_not_null().mean(),
        {count: [*compared(history, change, count)] for count in AFTER},
        paired(ours, change, database),
    )


def history_of(figures: pl.DataFrame, database: Path) -> History:
    runs = figures.group_by('run').agg(pl.col('begun', 'label', 'system').first()).sort('begun')
    summaries = (
        StoredRun(run, begun, begun, Summary(label=label, system=system))
        for run, begun, label, system in runs.cast({pl.Categorical: pl.String}).rows()
    )
    return History(tuple(summaries), database, figures.drop('round'))


def compared(history: History, change: Change, count: int) -> Iterator[Difference]:
    """What `assay diff` says of each so many runs of a change, and the newest before them.

    All other runs of the unchanged machine before them are the history.
    """
    unchanged = [run for run in history.runs if run.summary.label == UNCHANGED.name]
    after = [run for run in history.runs if run.summary.label == change.name]
    # Of the unchanged machine only those that have enough before them.
    after = [run for run in after if run.begun > unchanged[2 * BEFORE - 1].begun]
    for at in range(0, len(after) - count + 1, count):
        some = after[at : at + count]
        past = [run for run in unchanged if run.begun < some[0].begun]
        known = replace(history, runs=(*past, *some))
        yield difference(known, past[-BEFORE:], some)


def figures_of(found: Difference) -> dict[str, Compared]:
    return {f'{one.after.check} {one.figure.figure}': one for one in found.figures}


def paired(ours: pl.DataFrame, change: Change, database: Path) -> dict[str, Compared]:
    """What `assay compare` says of the rounds, as if the change were another environment.

    The first rounds choose the suspects, the others are the pairs.
    """
    is_changed = pl.col('label') == change.name
    environment = (
        pl.when(is_changed)
        .then(pl.lit(BOTH.after.environment))
        .otherwise(pl.lit(BOTH.before.environment))
    )
    table = ours.with_columns(environment=environment.cast(pl.Categorical()))
    fours = []
    for _, figures in table.filter(pl.col('round') > 0).group_by('round', maintain_order=True):
        runs = [*figures.sort('begun').group_by('run', maintain_order=True)]
        four = [session_of(str(run), rows, change) for (run,), rows in runs]
        if [one.side for one in four] == [*FOURSOME]:
            fours.append(four)
    if len(fours) <= FIRST:
        return {}
    first, pairs = (
        [one for four in some for one in four] for some in (fours[:FIRST], fours[FIRST:])
    )
    history = history_of(table, database)
    found = compare_at_first(history, first, BOTH)
    wanted = suspects(found, BOTH)
    return figures_of(finish(history, found, wanted, first, pairs, BOTH).difference)


def pairs_of(one: Compared) -> int:
    """How many pairs it took; 0 of what was not measured again."""
    is_paired = one.verdict is not None and one.verdict.comparison.term == TERM
    return one.verdict.comparison.sizes[0] if is_paired else 0


def session_of(run: str, rows: pl.DataFrame, change: Change) -> Session:
    """As :func:`assay.comparing.sessions.session` makes it of the report."""
    case = pl.format('{} @{}:{}', 'case', 'system', 'partition')
    named = rows.with_columns(name=case)
    bad = pl.col('verdict').cast(pl.String).is_in([*BAD])
    failed = {*named.filter(bad)['name']}
    disturbed = {*named.filter(pl.col('disturbances').is_not_null())['name']} - failed
    side = int(rows['label'][0] == change.name)
    return Session(side, (run,), *map(frozenset, (named['name'], failed, disturbed)))


def true_sizes(ours: pl.DataFrame, change: Change) -> dict[str, tuple[float, float, float]]:
    """After over before of each figure in each round, disturbed or not; median and interval."""
    logs = ours.filter(
        (pl.col('round') > 0)
        & (pl.col('value') > 0)
        & ~pl.col('figure').cast(pl.String).is_in([*CONDITIONS])
    ).with_columns(
        name=pl.format('{} {}', 'check', 'figure'),
        log=pl.col('value').log() * pl.when(pl.col('label') == change.name).then(1).otherwise(-1),
    )
    of_rounds = (
        logs.group_by('name', 'round')
        .agg(ratio=(pl.col('log').sum() / 2).exp(), values=pl.len())
        .filter(pl.col('values') == len(FOURSOME))
    )
    return {
        name: interval(ratios)
        for name, ratios in of_rounds.group_by('name').agg('ratio').sort('name').rows()
    }


def real(one: Told) -> Iterator[tuple[str, Word, float]]:
    """The figures that a change made worse or better for sure, which of both, and by how much."""
    if one.change.beside:
        return
    directions = {name: told.after.better for each in one.said(1) for name, told in each.items()}
    for name, (ratio, low, high) in one.sizes.items():
        better = directions.get(name)
        if one.can_touch(name) and better in ('higher', 'lower') and (low > 1 or high < 1):
            word: Word = 'better' if (ratio > 1) == (better == 'higher') else 'worse'
            yield name, word, math.expm1(abs(math.log(ratio)))
