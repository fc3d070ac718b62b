"""The two sides of a comparison: whether they can be compared, and their figures in pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from assay import AssayError
from assay.results.figure_series import CONDITIONS, FigureKey, Measured, is_negligible
from assay.results.history import History, StoredRun
from assay.running.setting import Settings
from assay.witness.disturbance import TAKEN

Pair = tuple[Measured, Measured]
Tables = tuple[pl.DataFrame, pl.DataFrame]

#: The columns that tell cases apart.
CASE = ('system', 'partition', 'environment', 'case')
#: Likewise jobs.
JOB = (*CASE, 'run', 'repeat')
#: Sessions of a side that nobody disturbed: of as many or more the others are left out.
ENOUGH_CALM = 3
#: What others took of the CPUs before and after is as much if it differs by less than this share.
ALIKE = 0.05


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
) -> Tables:
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


def names_in_both(figure: FigureKey, settings: Settings) -> tuple[FigureKey, FigureKey]:
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
    old: Mapping[FigureKey, Measured], new: Mapping[FigureKey, Measured]
) -> tuple[list[Pair], tuple[FigureKey, ...], tuple[FigureKey, ...]]:
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


def without_first_values(
    table: pl.DataFrame, again: Sequence[StoredRun], comparable: pl.DataFrame
) -> pl.DataFrame:
    """A table of figures without what was measured again, in what it was before that.

    A case that was disturbed each time it was measured again keeps its first values.

    :param again: the runs in which it was measured again, which are in the table as well.
    :param comparable: the table, with what else keeps jobs from being compared.
    """
    is_again = pl.col('run').cast(pl.String).is_in([run.uuid for run in again])
    counts = (pl.col('figure') != '-') & pl.col('disturbances').is_null()
    cases = comparable.filter(is_again & counts).select(CASE).unique()
    first = table.filter(~is_again).join(cases, on=CASE, how='anti', maintain_order='left')
    return pl.concat([first, table.filter(is_again)])


def alike_disturbed(tables: Tables) -> Tables:
    """Both tables with the values of disturbed jobs where these are evidence all the same.

    Where others always use the nodes, to leave out what they disturb leaves nothing. Of a case that
    they disturbed before and after by as much, values count: what others took is in the spread of
    both. That is so if fewer than :data:`ENOUGH_CALM` of its sessions on a side would count
    otherwise, and the medians of what was taken differ by less than :data:`ALIKE`. What more than
    that was taken of stays left out.
    """
    jobs = [_taken_of_jobs(table) for table in tables]
    of_case = [
        table.group_by(CASE).agg(
            pl.col('run').filter('calm').n_unique().alias('calm'), pl.col('taken').median()
        )
        for table in jobs
    ]
    both = of_case[0].join(of_case[1], on=CASE)
    lacks = pl.min_horizontal('calm', 'calm_right') < ENOUGH_CALM
    alike = both.filter(lacks & ((pl.col('taken') - pl.col('taken_right')).abs() < ALIKE)).select(
        *CASE, most=pl.max_horizontal('taken', 'taken_right') + ALIKE
    )
    before, after = (
        table.join(
            of_jobs.join(alike, on=CASE)
            .filter(pl.col('taken') < pl.col('most'))
            .select(*JOB, counts=pl.lit(True)),
            on=JOB,
            how='left',
            maintain_order='left',
        )
        .with_columns(disturbances=pl.when('counts').then(None).otherwise('disturbances'))
        .drop('counts')
        for table, of_jobs in zip(tables, jobs, strict=True)
    )
    return before, after


def _taken_of_jobs(table: pl.DataFrame) -> pl.DataFrame:
    """Of each job whether nobody disturbed it, and what others took."""
    by_others = pl.col('figure').cast(pl.String).is_in(TAKEN)
    return (
        table.filter(pl.col('figure') != '-')
        .group_by(JOB)
        .agg(
            calm=pl.col('disturbances').is_null().all(),
            # Of what nobody saw it is null, and as much as nothing.
            taken=pl.col('value').filter(by_others).mean() * by_others.sum(),
        )
    )


def without_conditions(found: Mapping[FigureKey, Measured]) -> dict[FigureKey, Measured]:
    """Without the figures that only tell how quiet the nodes were."""
    return {figure: one for figure, one in found.items() if figure.figure not in CONDITIONS}


def some(names: Sequence[str], most: int = 4) -> str:
    """The first few of some names."""
    return ', '.join([*names[:most], *(['...'] if len(names) > most else [])]) or 'nothing'
