"""What the first sessions say is to be measured again."""

from __future__ import annotations

from dataclasses import dataclass

from assay.results.diff.compared import Compared
from assay.results.diff.difference import Difference
from assay.results.diff.judging import past_of
from assay.results.figure_series import Figure
from assay.results.statistics.comparison import OCCASIONS_ASSUMED, Comparison, Verdict, Word
from assay.results.statistics.retest import spread_of_foursomes
from assay.results.statistics.retest import suspects as suspected
from assay.results.statistics.series import Series
from assay.results.statistics.spread import Variance
from assay.running.setting import Settings


@dataclass(frozen=True)
class Suspect:
    """A figure to measure again.

    :param looked: worse or better, as it looked at first; None if it looked like nothing: no
        history, or a short one, says how far sessions are apart, or others disturbed them.
    :param spread: what fours of sessions do in its history; None where that is too short.
    """

    figure: Figure
    looked: Word | None
    spread: Variance | None


def suspects(found: Difference, settings: Settings) -> list[Suspect]:
    """What to measure again.

    That is what looks changed, by itself or with its family, what others disturbed, and what cannot
    be decided without a history that says how far sessions are apart.
    """
    able = [
        (one, one.verdict)
        for one in found.figures
        if one.verdict and not one.is_exact and not one.verdict.comparison.reason
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
        Suspect(figure, looked, _spread(past_of(figure, past, settings)))
        for figure, looked in wanted.items()
    ]


def _lacks_history(one: Verdict) -> bool:
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
