"""The verdict on each figure of a comparison, or why it has none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import polars as pl

from assay import AssayError
from assay.programs.application import OF_CONTROL
from assay.results.diff.compared import Compared
from assay.results.diff.families import family_of, kind_of
from assay.results.diff.sides import Pair, names_in_both
from assay.results.figure_series import (
    FigureKey,
    Measured,
    Past,
    learn_past,
    measured_figures,
)
from assay.results.figures import duplicate_runs
from assay.results.history import History, StoredRun
from assay.results.rows import is_beyond
from assay.results.statistics.comparison import Better, Word, judge_comparisons
from assay.results.statistics.families import FamilyMember, FigureFamily, judge_suite
from assay.results.statistics.series import Series
from assay.results.statistics.spread import NO_KIND, OCCASIONS, OCCASIONS_BESIDE_CONTROL
from assay.results.unchanged import mostly_good_runs, unchanged_figures, usual_runs
from assay.running.setting import Settings


@dataclass(frozen=True, eq=False)
class Earlier:
    """Runs before those that are compared, which show an unchanged system.

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
        for run in usual_runs(history.runs)
        if run.summary.system == before[0].summary.system
        and run.begun < before[-1].begun
        and run.uuid not in chosen
    ]
    table = history.figures(runs)
    if any(run.file for run in (*before, *after)):
        twice = duplicate_runs(table, pl.concat(tables))
        table = table.filter(~pl.col('run').cast(pl.String).is_in(twice))
    kinds = {after.kind for _, after in pairs}
    figures = {figure: one for figure, one in measured_figures(table).items() if one.kind in kinds}
    teaching = mostly_good_runs(table)
    return Earlier(
        len(teaching), figures, learn_past(unchanged_figures(figures.values(), teaching))
    )


#: Sessions that a figure was the same in before it counts as exact: of counts that a check says to
#: be, some vary after all, with the time that a job has. If one varies in any share of runs, at
#: most 1.8% of comparisons come after so many equal ones.
EXACT_SINCE = 20
#: Likewise a reference that was met in so many sessions before and missed in all after: of one that
#: is missed in any share of sessions, this share of comparisons looks so at most.
BY_CHANCE = 20**20 / 21**21
#: What was 0 may have been rounded to it: it rose if such steps are at most this share of it now.
ROUNDED = 0.5


def assert_margin(margin: float) -> None:
    """:raises AssayError: if it is none."""
    if not 0 < margin < 1:
        raise AssayError(f'a margin is between 0% and 100%, such as 5%, not {100 * margin:g}%')


def judge_figures(
    pairs: Sequence[Pair],
    earlier: Earlier,
    margin: float,
    settings: Settings | None,
    again: Mapping[FigureKey, Compared],
    rate: float,
) -> tuple[list[Compared], list[FigureFamily]]:
    """Every figure with its verdict: all of them are one suite, whose error rate is promised.

    :param earlier: what the runs before show, in which nothing is judged.
    :param again: as of :func:`~assay.results.diff.difference.difference`.
    :param rate: likewise.
    :returns: the figures, and the families that they were tested in, whose members are positions
        among the figures.
    """
    past = earlier.past
    found = [
        Compared(*pair, None, _why_not(*pair, past, settings), _is_of(*pair)) for pair in pairs
    ]
    told = [number for number, one in enumerate(found) if not one.why_not]
    members = [_member(found[number], past, settings) for number in told]
    suite = judge_suite(members, rate)
    verdicts = judge_comparisons(suite.comparisons, rate, margin, suite.p_values)
    for number, verdict in zip(told, verdicts, strict=True):
        one = found[number]
        if word := _word_of_zeros(one, earlier.figures.get(one.figure)):
            verdict = replace(verdict, word=word, reason='')
        one = replace(one, verdict=verdict)
        if _misses_now(one, earlier.figures.get(one.figure)):
            one = replace(one, is_missing=True) if one.word == 'worse' else one.worse_by_missing()
        found[number] = one
    families = [one.at(told) for one in suite.families]
    return [again.get(one.figure, one) for one in found], families


def _member(one: Compared, past: Past, settings: Settings | None) -> FamilyMember:
    assert one.before.series and one.after.series
    return FamilyMember(
        family_of(one),
        kind_of(one.after),
        one.before.series,
        one.after.series,
        _better(one),
        past_series(one.figure, past, settings),
        past.kinds.get(one.after.kind, NO_KIND),
        OCCASIONS_BESIDE_CONTROL if one.figure.figure.endswith(OF_CONTROL) else OCCASIONS,
    )


def _better(one: Compared) -> Better:
    return cast(Better, one.after.better or one.before.better)


def past_series(figure: FigureKey, past: Past, settings: Settings | None) -> Series | None:
    """The history of a figure; of two settings that one which varies more."""
    names = names_in_both(figure, settings) if settings else (figure,)
    found = (past.unchanged.get(name) for name in names)
    usable = [one for one in found if one]
    return max(
        usable,
        key=lambda one: float(one.locations.var()) if one.has_logarithms else 0.0,
        default=None,
    )


def _misses_now(one: Compared, earlier: Measured | None) -> bool:
    """Whether all sessions after miss a reference that all before would meet, and not by chance.

    The spread may be too wide to tell more, or the change within the margin, but who sees the case
    fail is right. Before they may have been held to another reference: who tightens it makes
    nothing worse.
    """
    met, missed = [one.before, *([earlier] if earlier else [])], one.after
    if {*missed.verdicts} != {'fail'}:
        return False
    better = missed.better or one.before.better
    lower = cast('float | None', missed.lowers.max()) if better != 'lower' else None
    upper = cast('float | None', missed.uppers.min()) if better != 'higher' else None

    def beyond(side: Measured) -> Iterator[bool]:
        return (is_beyond(value, lower, upper) for value in side.values)

    if not all(beyond(missed)) or any(any(beyond(side)) for side in met):
        return False
    return _is_no_chance(met, missed)


def _is_no_chance(earlier: Iterable[Measured], after: Measured) -> bool:
    """Whether what is so in all sessions after, and in none before, is hardly so by chance."""
    n, k = (sum(side.runs.n_unique() for side in sides) for sides in (earlier, [after]))
    return (n / (n + k)) ** n * (k / (n + k)) ** k <= BY_CHANCE


def rises_from_zero(before: Measured, after: Measured) -> bool:
    """Whether a figure was 0 each time before and never is after, by more than rounding makes."""
    old, new = before.series, after.series
    if old is None or new is None or old.values.any():
        return False
    return bool(new.values.all()) and new.step <= ROUNDED


def _word_of_zeros(one: Compared, earlier: Measured | None) -> Word | None:
    """The word for a figure that is always 0 on one side and has no ratio; None for others.

    A figure that is to be high and is 0 after counts as gone.
    """
    old, new, better = one.before, one.after, _better(one)
    if better == 'exact':
        return None
    if not any(value for side in (old, new) for value in side.values):
        return 'same'
    met = [old, *([earlier] if earlier else [])]
    if not _is_no_chance(met, new):
        return None
    if rises_from_zero(old, new) and not any(value for side in met for value in side.values):
        return 'better' if better == 'higher' else 'worse'
    if better == 'lower' and all(rises_from_zero(new, side) for side in met):
        return 'better'
    return None


def _why_not(before: Measured, after: Measured, past: Past, settings: Settings | None) -> str:
    """Why two sides of a figure cannot be compared; empty if they can."""
    old, new = before.figure.unit or 'none', after.figure.unit or 'none'
    if old != new:
        return f'its unit was {old} and is {new}'
    if before.better and after.better and before.better != after.better:
        return f'it got better {before.better}, and now gets better {after.better}'
    better = after.better or before.better
    if better is None:
        return 'the direction in which it gets better was not stored yet'
    if better not in ('higher', 'lower', 'exact'):
        return f'the direction in which it gets better is stored as {better!r}'
    for side, when in ((before, 'before'), (after, 'after')):
        if side.series is None:
            return f'no value {when} is left: {_left_out(side)}'
    past_name = names_in_both(after.figure, settings)[0] if settings else after.figure
    return _why_not_exact(before, after, past.unchanged.get(past_name)) if better == 'exact' else ''


def _why_not_exact(before: Measured, after: Measured, known: Series | None) -> str:
    """Why a count that changed may be no exact one; empty if it is, or did not change."""
    assert before.series
    earlier, sessions = {*before.values}, before.series.size
    if not {*after.values} - earlier and len(earlier) == 1:
        return ''
    if known:
        earlier, sessions = earlier | {*known.values.tolist()}, sessions + known.size
    if len(earlier) > 1:
        return 'it is said to be exact, and varied before as well'
    if sessions < EXACT_SINCE:
        return f'it is said to be exact, which takes {EXACT_SINCE} equal runs before to show'
    return ''


def _left_out(one: Measured) -> str:
    counts = {'disturbed': one.disturbed, 'not a number, or negative': one.unusable}
    said = ', '.join(f'{count} {what}' for what, count in counts.items() if count)
    return said or 'all are below 0, of which there is no ratio'


#: Of whatever check: a raw TCP socket between nodes, measured in the job beside MPI. The kernel,
#: the driver and the network make it; no MPI and no flag of a compiler does.
OF_THE_NETWORK = frozenset({'socket_latency', 'socket_bandwidth', 'socket_bandwidth_of_link'})
#: By check: what cores and memory of a node give. Programs without messages measure it.
OF_THE_NODE = {
    'Clock': frozenset(
        {
            *('scalar_frequency', 'vector_frequency', 'cycles_kept'),
            *('scalar_slowest_core', 'vector_slowest_core'),
        }
    ),
    'Stream': frozenset({'copy', 'scale', 'add', 'triad'}),
}
#: What a build can change of those: they are controls only where these facts are the same. Their
#: flags are the suite's own, whatever a site builds with.
_OF_THE_BUILD = ('by', 'compiler', 'flags', 'target')


def _is_of(before: Measured, after: Measured) -> str:
    """``network`` or ``node`` if nothing but that can have touched a figure; otherwise empty."""
    name = after.figure.figure
    if name in OF_THE_NETWORK:
        return 'network'
    old, new = ([side.facts.get(fact) for fact in _OF_THE_BUILD] for side in (before, after))
    is_same_build = old == new and None not in new
    return 'node' if name in OF_THE_NODE.get(after.check, ()) and is_same_build else ''
