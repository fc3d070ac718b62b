"""The two sides of a comparison: whether they can be compared, and their figures in pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from assay import AssayError
from assay.results.figure_series import Figure, Measured, is_negligible
from assay.results.history import History, StoredRun
from assay.results.machine_figures import CONDITIONS
from assay.running.setting import Settings

Pair = tuple[Measured, Measured]


def assert_comparable(before: Sequence[StoredRun], after: Sequence[StoredRun]) -> None:
    """:raises AssayError: if they share a run, or are of several systems."""
    if shared := {run.uuid for run in before} & {run.uuid for run in after}:
        names = some(sorted(uuid[:8] for uuid in shared))
        raise AssayError(f'BEFORE and AFTER share {names}: a run is compared with others only.')
    systems = sorted({run.summary.system for run in (*before, *after)})
    if len(systems) > 1:
        raise AssayError(
            f'the runs are of several systems, {some(systems)}, which are never compared: '
            '--system chooses the runs of one.'
        )


def tables_of(
    history: History,
    before: Sequence[StoredRun],
    after: Sequence[StoredRun],
    settings: Settings | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables of figures of both.

    :param settings: as of :func:`difference`: then a case before has the name that it has after, so
        that its figures have one name in both.
    """
    tables = history.figures(before), history.figures(after)
    if settings is None:
        return tables
    old, new = tables
    cases = old['case'].cast(pl.String)
    named = {name: settings.after.named(name) for name in cases.unique()}
    old = old.with_columns(cases.replace(named).cast(pl.Categorical()))
    if settings.after.environment:
        old = old.with_columns(environment=pl.lit(settings.after.environment, pl.Categorical()))
    return old, new


def names_in_both(figure: Figure, settings: Settings) -> tuple[Figure, Figure]:
    """What a figure of either side is called before, and after."""
    before, after = (
        replace(
            figure,
            environment=one.environment or figure.environment,
            case=one.named(figure.case),
        )
        for one in settings
    )
    return before, after


def paired(
    old: Mapping[Figure, Measured], new: Mapping[Figure, Measured]
) -> tuple[list[Pair], tuple[Figure, ...], tuple[Figure, ...]]:
    """The figures of both, whatever their units; then those of only one of them.

    Starts and ends of jobs that nobody waits for are not compared.
    """
    rest = {figure: replace(figure, unit='') for figure in old if figure not in new}
    pairs, only_after = [], []
    for figure, one in new.items():
        alike = (was for was, name in rest.items() if name == replace(figure, unit=''))
        was = figure if figure in old else next(alike, None)
        if was is None:
            only_after.append(figure)
        else:
            rest.pop(was, None)
            if not is_negligible(old[was], one):
                pairs.append((old[was], one))
    return pairs, tuple(rest), tuple(only_after)


def without_first_values(table: pl.DataFrame, again: Sequence[StoredRun]) -> pl.DataFrame:
    """A table of figures without what was measured again, in what it was before that.

    A case that others disturbed each time it was measured again keeps its first values.

    :param again: the runs in which it was measured again, which are in the table as well.
    """
    if not again:
        return table
    is_again = pl.col('run').cast(pl.String).is_in([run.uuid for run in again])
    counts = (pl.col('figure') != '-') & pl.col('disturbances').is_null()
    case = ('system', 'partition', 'environment', 'case')
    cases = table.filter(is_again & counts).select(case).unique()
    first = table.filter(~is_again).join(cases, on=case, how='anti', maintain_order='left')
    return pl.concat([first, table.filter(is_again)])


def without_conditions(found: Mapping[Figure, Measured]) -> dict[Figure, Measured]:
    """Without the figures that only tell how quiet the nodes were."""
    return {figure: one for figure, one in found.items() if figure.figure not in CONDITIONS}


def some(names: Sequence[str], most: int = 4) -> str:
    """The first few of some names."""
    return ', '.join([*names[:most], *(['...'] if len(names) > most else [])]) or 'nothing'
