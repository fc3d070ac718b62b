"""The two sides of a comparison: whether they can be compared, and their figures in pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assay import AssayError
from assay.programs.application import OF_CONTROL
from assay.results.figure_series import CONDITIONS, FigureKey, Measured, Past, is_negligible
from assay.results.history import History, StoredRun
from assay.results.statistics.changes import EDGE, find_changes
from assay.results.statistics.series import Series, series
from assay.running.setting import Settings
from assay.text import first_few
from assay.witness.disturbance import TAKEN
from assay.witness.profile import STARTUP

Pair = tuple[Measured, Measured]
Tables = tuple[pl.DataFrame, pl.DataFrame]
#: A start or end of jobs, of all cases: system, partition, environment and figure.
Startup = tuple[str, str, str, str]

#: The columns that tell cases apart.
CASE = ('system', 'partition', 'environment', 'case')
#: Likewise jobs.
JOB = (*CASE, 'run', 'repeat')
#: Starts and ends of jobs below a second are compared if they grew by more than this factor, to
#: more than so many seconds: on an unchanged machine the median of 20 cases was 0.02 to 0.05 s, and
#: the slowest job of 62 sessions took 0.1 s.
GROWN_STARTUP, NOTICED_STARTUP = 2.0, 0.2
#: Sessions of a side that nobody disturbed: of as many or more the others are left out.
ENOUGH_CALM = 3
#: Values of a case that was measured again without which its first values count as well.
ENOUGH_AGAIN = 3
#: What others took of the CPUs before and after is as much if it differs by less than this share.
ALIKE = 0.05


def assert_comparable(before: Sequence[StoredRun], after: Sequence[StoredRun]) -> None:
    """:raises AssayError: if they share a run, or are of several systems."""
    if shared := {run.uuid for run in before} & {run.uuid for run in after}:
        names = first_few(sorted(uuid[:8] for uuid in shared))
        raise AssayError(f'BEFORE and AFTER share {names}: a run is compared with others only.')
    systems = sorted({run.summary.system for run in (*before, *after)})
    if len(systems) > 1:
        raise AssayError(
            f'the runs are of several systems, {first_few(systems)}, which are never compared: '
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
    named = {name: settings.after.name_here(name) for name in cases.unique()}
    old = old.with_columns(cases.replace(named).cast(pl.Categorical()))
    if settings.after.environment:
        old = old.with_columns(environment=pl.lit(settings.after.environment, pl.Categorical()))
    return old, new


def names_in_both(figure: FigureKey, settings: Settings) -> tuple[FigureKey, FigureKey]:
    """The names of a figure before and after."""
    before, after = (
        replace(
            figure,
            environment=one.environment or figure.environment,
            case=one.name_here(figure.case),
        )
        for one in settings
    )
    return before, after


def pair_figures(
    old: Mapping[FigureKey, Measured], new: Mapping[FigureKey, Measured]
) -> tuple[list[Pair], tuple[FigureKey, ...], tuple[FigureKey, ...]]:
    """The figures of both, whatever their units; then those of only one of them.

    Starts and ends of jobs that nobody waits for are not compared, unless they grew
    (:func:`grown_startups`). Nor are rates of kernels that a control was measured beside each time:
    what slowed the core slowed both, and what the software lost is in their ratio alone. Where the
    ratio has fewer values on a side, as of runs before there was a control, it is left out instead.
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
            pairs.append((old[was], one))
    grown = grown_startups(pairs)
    by_name = {(one.figure.test_case, one.figure.figure): (was, one) for was, one in pairs}
    left_out = set()
    for (case, name), ratio in by_name.items():
        if name.endswith(OF_CONTROL):
            rate = case, f'{name.removesuffix(OF_CONTROL)}_rate'
            both = zip(ratio, by_name.get(rate, ratio), strict=True)
            has_fewer = any(len(one.values) < len(other.values) for one, other in both)
            left_out.add((case, name) if has_fewer else rate)
    compared = [
        (was, one)
        for was, one in pairs
        if (one.figure.test_case, one.figure.figure) not in left_out
        and (not is_negligible(was, one) or _startup(one.figure) in grown)
    ]
    return compared, tuple(rest), tuple(only_after)


def grown_startups(pairs: Iterable[Pair]) -> set[Startup]:
    """The starts and ends that grew by more than a factor, to what somebody waits for.

    The medians of all cases decide, and all cases are compared or none: chosen one by one, those
    that grew by chance would make an index of their own.
    """
    sides: dict[Startup, tuple[list[float], list[float]]] = {}
    for was, one in pairs:
        if one.figure.figure in STARTUP and was.middle and one.middle:
            before, after = sides.setdefault(_startup(one.figure), ([], []))
            before.append(was.middle)
            after.append(one.middle)
    return {
        name
        for name, (before, after) in sides.items()
        if median(after) > max(NOTICED_STARTUP, GROWN_STARTUP * median(before))
    }


def _startup(figure: FigureKey) -> Startup:
    return figure.system, figure.partition, figure.environment, figure.figure


def without_first_values(
    table: pl.DataFrame, again: Sequence[StoredRun], comparable: pl.DataFrame
) -> pl.DataFrame:
    """A table of figures without the first values of cases that were measured again.

    First values stay until there are ``ENOUGH_AGAIN`` others: fewer would leave less doubt.

    :param again: the runs in which cases were measured again, which are in the table as well.
    :param comparable: the table, with what else keeps jobs from being compared.
    """
    is_again = pl.col('run').cast(pl.String).is_in([run.uuid for run in again])
    of_cases = (
        comparable.filter((pl.col('figure') != '-') & pl.col('disturbances').is_null())
        .group_by(CASE)
        .agg(pl.col('run').filter(is_again).n_unique().alias('rounds'))
    )
    cases = of_cases.filter(pl.col('rounds') >= ENOUGH_AGAIN)
    first = table.filter(~is_again).join(cases, on=CASE, how='anti', maintain_order='left')
    return pl.concat([first, table.filter(is_again)])


def beside_controls(tables: Tables) -> Tables:
    """Both tables with the ratios to a control of disturbed jobs.

    They count whatever others took: who takes turns on a core leaves the best windows of kernels in
    caches and of their control, and who slows the core slows both.
    """
    ratio = pl.col('figure').cast(pl.String).str.ends_with(OF_CONTROL)
    before, after = (
        table.with_columns(disturbances=pl.when(~ratio).then('disturbances')) for table in tables
    )
    return before, after


def alike_disturbed(tables: Tables) -> Tables:
    """Both tables with the values of disturbed jobs where these are evidence all the same.

    Where others always use the nodes, to leave out what they disturb leaves nothing. Values of a
    case that they disturbed before and after by as much count: what others took is in the spread of
    both. That is so if fewer than :data:`ENOUGH_CALM` of its sessions on a side would count
    otherwise, and the medians of what was taken differ by less than :data:`ALIKE`. Jobs that lost
    more than that stay left out.
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


def all_disturbed(tables: Tables) -> Tables:
    """Both tables with the values of all disturbed jobs: what looks worse by them may not be."""
    before, after = (
        table.with_columns(disturbances=pl.lit(None, table.schema['disturbances']))
        for table in tables
    )
    return before, after


def _taken_of_jobs(table: pl.DataFrame) -> pl.DataFrame:
    """A table of jobs: whether nobody disturbed the job, and the share that others took."""
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


# Whether the runs of one side are all of one state ------------------------------------------------


@dataclass(frozen=True)
class TwoStates:
    """Steps within the runs of a side: the comparison matches neither of its two states.

    :param run: identifier of the run with which most figures are in the later state.
    :param figures: all that have a step, sorted.
    """

    run: str
    figures: tuple[FigureKey, ...]


def two_states(side: Iterable[Measured], past: Past) -> TwoStates | None:
    """The steps of figures within some runs; None if there are none.

    The runs of a side are few. So steps are looked for in the past and them together, and those
    count that are as plausible (95%) nowhere but between two runs of the side.

    :param past: what runs before them teach; none of them is of the side.
    """
    searched = [
        (one, own, past.unchanged.get(one.figure))
        for one in side
        if (own := one.series) and own.size > EDGE
    ]
    joined = [_joined(known, own) for _, own, known in searched]
    found: dict[FigureKey, str] = {}
    for (one, _, known), whole, changes in zip(searched, joined, find_changes(joined), strict=True):
        places = _places(whole, known.size if known else 0)
        within = (
            int(np.searchsorted(places, step.first))
            for step in changes
            if step.form == 'step' and places[0] < step.earliest and step.latest <= places[-1]
        )
        if first := next(within, 0):
            found[one.figure] = one.runs.unique(maintain_order=True).cast(str)[first]
    if not found:
        return None
    ((run, _),) = Counter(found.values()).most_common(1)
    return TwoStates(run, tuple(sorted(found)))


def _joined(known: Series | None, own: Series) -> Series:
    """Both in order of time; the sessions of the second have the greater numbers."""
    if known is None:
        return own
    return series(
        np.concatenate([known.values, own.values]),
        np.concatenate([known.times, own.times]),
        np.concatenate([known.sessions, own.sessions + known.sessions.max() + 1]),
    )


def _places(whole: Series, known: int) -> NDArray[np.int64]:
    """The places of the second side's sessions in both; the first side has ``known`` sessions."""
    numbers, first = np.unique(whole.sessions, return_index=True)
    in_order = numbers[np.argsort(first)]
    return np.flatnonzero(in_order >= known)
