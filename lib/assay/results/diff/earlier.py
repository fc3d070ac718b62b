"""The runs before those that are compared: they show what a system does when nothing changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from assay.results.diff.sides import Pair
from assay.results.figure_series import FigureKey, Measured, Past, learn_past, measured
from assay.results.figures import duplicate_runs
from assay.results.history import History, StoredRun
from assay.results.unchanged import mostly_good, unchanged, usual


@dataclass(frozen=True, eq=False)
class Earlier:
    """What they show.

    :param runs: how many of them teach.
    :param figures: those of both sides, and others of their kinds, also where their cases failed:
        they show how often a reference was missed.
    :param past: what they teach where nothing changed.
    """

    runs: int
    figures: Mapping[FigureKey, Measured]
    past: Past


def learn_earlier(
    history: History,
    before: Sequence[StoredRun],
    after: Sequence[StoredRun],
    tables: Iterable[pl.DataFrame],
    pairs: Iterable[Pair],
) -> Earlier:
    """Learn from the runs of the system that began before the last of those before.

    What was read twice teaches nothing.

    :param tables: of the runs that are compared.
    :param pairs: the figures of both sides.
    """
    chosen = {run.uuid for run in (*before, *after)}
    runs = [
        run
        for run in usual(history.runs)
        if run.summary.system == before[0].summary.system
        and run.begun < before[-1].begun
        and run.uuid not in chosen
    ]
    table = history.figures(runs)
    if any(run.file for run in (*before, *after)):
        twice = duplicate_runs(table, pl.concat(tables))
        table = table.filter(~pl.col('run').cast(pl.String).is_in(twice))
    kinds = {after.kind for _, after in pairs}
    figures = {figure: one for figure, one in measured(table).items() if one.kind in kinds}
    teaching = mostly_good(table)
    return Earlier(len(teaching), figures, learn_past(unchanged(figures.values(), teaching)))
