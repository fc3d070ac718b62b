"""Figures that are measured again in pairs: which ones, and what the pairs say of them.

The first sessions choose the suspects; the pairs alone decide them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import polars as pl

from assay.comparing.sessions import ComparedSession, stored_runs
from assay.results.diff.compared import Compared
from assay.results.diff.difference import Difference
from assay.results.diff.judging import past_series
from assay.results.diff.sides import tables_of
from assay.results.figure_series import FigureKey, Measured, measured_figures
from assay.results.history import History
from assay.results.statistics.comparison import (
    OCCASIONS_ASSUMED,
    Better,
    Comparison,
    FigureVerdict,
    Word,
)
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.statistics.retest import (
    BUDGET,
    LOOKS,
    Decision,
    decide_by_pairs,
    spread_of_foursomes,
)
from assay.results.statistics.retest import figures_that_look_changed as suspected
from assay.results.statistics.series import Series
from assay.results.statistics.spread import MANY, Variance
from assay.running.setting import Settings

#: Where the error of what was measured again comes from.
TERM = 'pairs of sessions, A B B A'


@dataclass(frozen=True)
class Suspect:
    """A figure to measure again.

    :param looked: worse or better, as it looked at first; None if it looked like nothing: no
        history, or a short one, says how far sessions are apart, or others disturbed them.
    :param spread: what fours of sessions do in its history; None where that is too short.
    """

    figure: FigureKey
    looked: Word | None
    spread: Variance | None


def find_suspects(found: Difference, settings: Settings) -> list[Suspect]:
    """Choose the figures to measure again.

    That is what looks changed, by itself or with its family, what others disturbed, and what cannot
    be decided without a history that says how far sessions are apart.
    """
    able = [
        (one, one.verdict)
        for one in found.figures
        if one.verdict and not one.is_exact and not one.is_without_ratio
    ]
    looks = {*suspected([verdict.comparison for _, verdict in able])}
    looks |= {
        number
        for number, (one, verdict) in enumerate(able)
        if verdict.word in ('worse', 'better') and not one.misses
    }
    wanted = {
        one.figure: _direction(verdict.comparison) if number in looks else None
        for number, (one, verdict) in enumerate(able)
        if number in looks or _lacks_history(verdict)
    }
    wanted |= {one.figure: None for one in found.figures if _is_disturbed(one)}
    past = found.earlier.past
    return [
        Suspect(figure, looked, _spread(past_series(figure, past, settings)))
        for figure, looked in wanted.items()
    ]


def _lacks_history(one: FigureVerdict) -> bool:
    term = one.comparison.term
    is_short = not one.comparison.is_seen or term.endswith(OCCASIONS_ASSUMED)
    return one.word == 'cannot tell' and is_short


def _is_disturbed(one: Compared) -> bool:
    """Whether that others disturbed its jobs is all that kept it from being compared."""
    before, after = one.before, one.after
    return (
        one.verdict is None
        and bool(before.disturbed or after.disturbed)
        and (before.series is None or after.series is None)
        and before.figure.unit == after.figure.unit
        and before.better == after.better
        and after.better in ('higher', 'lower')
    )


def _direction(one: Comparison) -> Word:
    return 'better' if (one.change > 0) == (one.better == 'higher') else 'worse'


def _spread(past: Series | None) -> Variance | None:
    return spread_of_foursomes(past.locations) if past and past.has_logarithms else None


@dataclass(frozen=True, eq=False)
class SuspectResult:
    """The result of the pairs for a suspect so far.

    :param decision: at the last look; None before the first.
    :param before: its values in the pairs that were looked at; None if there are none.
    :param after: likewise.
    """

    decision: Decision | None = None
    before: Measured | None = None
    after: Measured | None = None

    @property
    def is_decided(self) -> bool:
        return self.decision is not None and self.decision.word is not None


def decisions(
    history: History,
    wanted: Sequence[Suspect],
    pairs: Sequence[ComparedSession],
    settings: Settings,
    margin: float,
) -> dict[FigureKey, SuspectResult]:
    """The results of the pairs for suspects so far.

    If one of four sessions gave no value that counts, none counts for that figure. A decided
    figure stays decided, whatever is measured later on.

    :param pairs: sessions in fours, as ``FOURSOME``; what is left of a last four is not looked at.
    """
    fours = [pairs[at : at + 4] for at in range(0, len(pairs) - 3, 4)]
    told = {one.figure: SuspectResult() for one in wanted}
    if not fours:
        return told
    runs = stored_runs(history, [one for four in fours for one in four])
    before, after = (measured_figures(one) for one in tables_of(history, *runs, settings))
    for one in wanted:
        old, new = before.get(one.figure), after.get(one.figure)
        if old and new:
            kept, values = _aligned(old, new, fours)
            better = cast(Better, new.better or old.better)
            decision = _last_look(values, better, len(wanted), margin, one)
            if decision:
                fours_of_it = kept[: decision.pairs // 2]
                looked_at = [uuid for four in fours_of_it for each in four for uuid in each.uuids]
                names = pl.Series(looked_at, dtype=pl.String)
                told[one.figure] = SuspectResult(decision, old.of_runs(names), new.of_runs(names))
    return told


def _last_look(
    values: tuple[list[float], list[float]],
    better: Better,
    count: int,
    margin: float,
    one: Suspect,
) -> Decision | None:
    decision = None
    for look in LOOKS:
        if look > len(values[0]):
            break
        before, after = (side[:look] for side in values)
        decision = decide_by_pairs(
            before, after, better, count, SUITE_RATE, margin, one.spread, one.looked
        )
        if decision.word:
            break
    return decision


def _aligned(
    old: Measured, new: Measured, fours: Sequence[Sequence[ComparedSession]]
) -> tuple[list[Sequence[ComparedSession]], tuple[list[float], list[float]]]:
    """The fours whose sessions all gave a value, and these values as pairs."""
    of_run = [
        dict(zip(side.runs.cast(pl.String).to_list(), side.values.to_list(), strict=True))
        for side in (old, new)
    ]
    kept: list[Sequence[ComparedSession]] = []
    values: tuple[list[float], list[float]] = ([], [])
    for four in fours:
        found = [(one.side, _first(of_run[one.side], one.uuids)) for one in four]
        if all(value is not None and value > 0 for _, value in found):
            kept.append(four)
            for side, value in found:
                values[side].append(cast(float, value))
    return kept, values


def _first(values: Mapping[str, float], runs: Iterable[str]) -> float | None:
    """The value of the first run that has one that counts."""
    return next((values[run] for run in runs if run in values), None)


def with_result(
    first: Compared, told: SuspectResult, count: int, margin: float, stopped: str
) -> Compared:
    """A suspect with the result of its pairs.

    :param count: of the suspects, which share the rate.
    """
    decision, before, after = told.decision, told.before, told.after
    if decision is None or before is None or after is None:
        if first.verdict is None:
            return first
        why = stopped or 'of too few pairs all four sessions gave a value that counts'
        reason = f'not decided by pairs: {why}'
        return replace(
            first, verdict=replace(first.verdict, word='cannot tell', reason=reason), misses=False
        )
    rate = LOOKS[decision.pairs] * SUITE_RATE / count
    comparison = Comparison(
        cast(Better, after.better or before.better),
        (decision.pairs, decision.pairs),
        math.log(decision.ratio),
        decision.error,
        decision.freedom,
        MANY,
        decision.p_value / count,
        TERM,
    )
    word, reason = decision.word or 'cannot tell', ''
    if word == 'cannot tell':
        reason = _why_undecided(decision, margin, stopped)
    verdict = FigureVerdict(
        word,
        comparison,
        decision.p_value,
        comparison.interval(),
        comparison.smallest(rate),
        None,
        reason,
    )
    # Whatever references were missed at first: the pairs decide.
    told_again = replace(first, before=before, after=after, verdict=verdict)
    return replace(told_again, why_not='', misses=False)


def _why_undecided(decision: Decision, margin: float, stopped: str) -> str:
    if decision.p_value <= SUITE_RATE:
        return 'the pairs say the opposite of what it looked like at first'
    if decision.pairs == BUDGET:
        return f'{BUDGET} pairs were not enough: the interval reaches over {margin:.0%}'
    return f'not decided by {decision.pairs} pairs: {stopped or "the others were no evidence"}'
