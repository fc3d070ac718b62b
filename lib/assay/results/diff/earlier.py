"""The runs before those that are compared: they show what a system does when nothing changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from assay.results.diff.sides import Pair
from assay.results.figure_series import Figure, Measured, Past, learn_past, measured
from assay.results.history import History, StoredRun
from assay.results.read_twice import read_twice


@dataclass(frozen=True, eq=False)
class Earlier:
    """What they show.

    :param runs: how many they are.
    :param figures: those of both sides, and others of their kinds.
    :param past: what these teach.
    """

    runs: int
    figures: Mapping[Figure, Measured]
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
        for run in history.runs
        if run.summary.system == before[0].summary.system
        and run.begun < before[-1].begun
        and run.uuid not in chosen
        and not run.summary.problem
    ]
    table = history.figures(runs)
    if any(run.file for run in (*before, *after)):
        twice = read_twice(table, pl.concat(tables))
        runs = [run for run in runs if run.uuid not in twice]
        table = table.filter(~pl.col('run').cast(pl.String).is_in(twice))
    kinds = {after.kind for _, after in pairs}
    figures = {figure: one for figure, one in measured(table).items() if one.kind in kinds}
    return Earlier(len(runs), figures, learn_past(figures.values()))
