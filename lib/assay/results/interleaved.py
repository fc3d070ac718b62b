"""Two environments measured in turn: what looks changed, what pairs say of it, and what failed.

Sessions are in the order A B B A, each of one environment, and so of both meet the same spells of
the machine. The first of them only say what to measure again; of that the pairs alone decide.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import polars as pl

from assay import AssayError
from assay.results.cases import Report, counted, title
from assay.results.diff import (
    Compared,
    Difference,
    Environments,
    difference,
    earlier_runs,
    past_of,
    tables_of,
)
from assay.results.failures import is_bad
from assay.results.figure_series import Figure, Measured, learn_past, measured
from assay.results.history import History, StoredRun
from assay.results.statistics.comparison import (
    COUNTED_ONCE,
    MARGIN,
    Better,
    Comparison,
    Verdict,
    Word,
)
from assay.results.statistics.multiplicity import SUITE_RATE
from assay.results.statistics.retest import (
    BUDGET,
    LOOKS,
    Decision,
    decide,
    spread_of_foursomes,
)
from assay.results.statistics.retest import suspects as suspected
from assay.results.statistics.spread import MANY, Variance

#: Which environment each session of four is of: a drift, and a spell of four, touch both alike.
FOURSOME = (0, 1, 1, 0)
#: Sessions before anything is measured again: this many times four.
FIRST = 2
#: Where the error of what was measured again comes from.
TERM = 'pairs of sessions, A B B A'


@dataclass(frozen=True)
class Session:
    """A session of one of the environments, and those that measured again what others disturbed.

    :param side: 0 of the first, 1 of the second.
    :param uuids: of their runs, in order of time.
    :param ran: its cases that were run, without their environment.
    :param failed: those of them that failed.
    :param disturbed: those of them that others disturbed, each time.
    """

    side: int
    uuids: tuple[str, ...]
    ran: frozenset[str]
    failed: frozenset[str]
    disturbed: frozenset[str] = frozenset()

    def then(self, again: Session) -> Session:
        """With one that measured its disturbed cases again."""
        return replace(
            self,
            uuids=(*self.uuids, *again.uuids),
            failed=self.failed | again.failed,
            disturbed=self.disturbed & again.disturbed,
        )


@dataclass(frozen=True)
class Uneven:
    """A case that fails with one environment, and never with the other.

    :param case: its name and partition.
    :param failed: in how many sessions of each.
    :param ran: in how many sessions of each it was run.
    """

    case: str
    failed: tuple[int, int]
    ran: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Interleaved:
    """All that is said of two environments.

    :param environments: before, and after.
    :param difference: what was measured again with what the pairs say of it.
    :param suspects: how many figures were to be measured again.
    :param pairs: how many pairs were measured.
    :param uneven: cases that fail with one of them.
    :param failed: names of cases that fail with both.
    :param stopped: why it ended before all was decided; empty if it did not.
    """

    environments: Environments
    difference: Difference
    suspects: int
    pairs: int
    uneven: tuple[Uneven, ...]
    failed: tuple[str, ...]
    stopped: str

    @property
    def is_worse(self) -> bool:
        return self.difference.is_worse or bool(self.uneven)


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


@dataclass(frozen=True, eq=False)
class Told:
    """What pairs say of a suspect so far.

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


def session(report: Report, side: int) -> Session:
    """What came of a session."""
    ran, failed, disturbed = set(), set(), set()
    for case in counted(report):
        if case['fixture'] or case['result'] == 'skip':
            continue
        # The name ends with the environment.
        name = title(case).removesuffix(f'+{case["environ"]}')
        ran.add(name)
        if is_bad(case):
            failed.add(name)
        elif case.get('taken_by_others'):
            disturbed.add(name)
    uuids = (report['session_info']['uuid'],)
    return Session(side, uuids, *map(frozenset, (ran, failed, disturbed)))


def assert_something_in_common(sessions: Iterable[Session], environments: Environments) -> None:
    """:raises AssayError: if no case was run with both."""
    ran: tuple[set[str], set[str]] = (set(), set())
    for one in sessions:
        ran[one.side].update(one.ran)
    if not ran[0] & ran[1]:
        told = ' and '.join(
            f'{len(names)} with {name}' for names, name in zip(ran, environments, strict=True)
        )
        raise AssayError(
            f'no case is run with both {environments[0]} and {environments[1]}: of those selected '
            f'there are {told}. `assay run -l -p NAME` lists the cases of one.'
        )


def compare_at_first(
    history: History,
    sessions: Sequence[Session],
    environments: Environments,
    margin: float = MARGIN,
) -> Difference:
    """What the first sessions say.

    :raises AssayError: if they have nothing in common, or are not stored.
    """
    before, after = stored(history, sessions)
    return difference(history, before, after, margin, environments)


def suspects(history: History, found: Difference, environments: Environments) -> list[Suspect]:
    """What to measure again.

    That is what looks changed, what others disturbed, and what cannot be told for want of a history
    that says how far sessions are apart.
    """
    able = [
        (one, one.verdict)
        for one in found.figures
        if one.verdict and not one.is_exact and not one.verdict.comparison.reason
    ]
    looks = {*suspected([verdict.comparison for _, verdict in able])}
    wanted = {
        one.figure: _direction(verdict.comparison) if number in looks else None
        for number, (one, verdict) in enumerate(able)
        if number in looks or _lacks_history(verdict)
    }
    wanted |= {one.figure: None for one in found.figures if _is_disturbed(one)}
    spreads = _spreads(history, found, wanted, environments)
    return [Suspect(one, looked, spreads[one]) for one, looked in wanted.items()]


def _lacks_history(one: Verdict) -> bool:
    term = one.comparison.term
    is_short = not one.comparison.is_seen or term.endswith(COUNTED_ONCE)
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


def decisions(
    history: History,
    wanted: Sequence[Suspect],
    pairs: Sequence[Session],
    environments: Environments,
    margin: float,
) -> dict[Figure, Told]:
    """What pairs say of suspects so far.

    Of four sessions of which one gave no value that counts, none counts for that figure. Who is
    decided stays so, whatever is measured later on.

    :param pairs: sessions in fours, as ``FOURSOME``; what is left of a last four is not looked at.
    """
    fours = [pairs[at : at + 4] for at in range(0, len(pairs) - 3, 4)]
    told = {one.figure: Told() for one in wanted}
    if not fours:
        return told
    runs = stored(history, [one for four in fours for one in four])
    before, after = (measured(one) for one in tables_of(history, *runs, environments))
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
                told[one.figure] = Told(decision, old.of_runs(names), new.of_runs(names))
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
        decision = decide(before, after, better, count, SUITE_RATE, margin, one.spread, one.looked)
        if decision.word:
            break
    return decision


def _aligned(
    old: Measured, new: Measured, fours: Sequence[Sequence[Session]]
) -> tuple[list[Sequence[Session]], tuple[list[float], list[float]]]:
    """The fours of which all sessions gave a value, and these values as pairs."""
    of_run = [
        dict(zip(side.runs.cast(pl.String).to_list(), side.values.to_list(), strict=True))
        for side in (old, new)
    ]
    kept: list[Sequence[Session]] = []
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


def _spreads(
    history: History, found: Difference, figures: Iterable[Figure], environments: Environments
) -> dict[Figure, Variance | None]:
    """What fours of sessions do in the histories of figures, of both environments."""
    figures = {*figures}
    names = {replace(one, environment=name) for one in figures for name in environments}
    past = measured(history.figures(earlier_runs(history, found.before, found.after)))
    learned = learn_past(one for figure, one in past.items() if figure in names)
    series = {one: past_of(one, learned, environments) for one in figures}
    return {
        one: spread_of_foursomes(own.locations) if own and own.has_logarithms else None
        for one, own in series.items()
    }


def finish(
    history: History,
    found: Difference,
    wanted: Sequence[Suspect],
    first: Sequence[Session],
    pairs: Sequence[Session],
    environments: Environments,
    stopped: str = '',
) -> Interleaved:
    """What is said in the end.

    :param found: what :func:`compare_at_first` said of the sessions ``first``.
    :param stopped: why it ended, if that was before all was decided.
    """
    told = decisions(history, wanted, pairs, environments, found.margin)
    first_said = {one.figure: one for one in found.figures}
    again = {
        figure: _compared(first_said[figure], one, len(wanted), found.margin, stopped)
        for figure, one in told.items()
    }
    both = found.before, found.after
    uneven, failed = _failures([*first, *pairs])
    return Interleaved(
        environments,
        difference(history, *both, found.margin, environments, again),
        len(wanted),
        len(pairs) // 4 * 2,
        uneven,
        failed,
        stopped if not wanted or not all(one.is_decided for one in told.values()) else '',
    )


def _compared(first: Compared, told: Told, count: int, margin: float, stopped: str) -> Compared:
    """A suspect with what the pairs say of it.

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
    verdict = Verdict(
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


def _failures(sessions: Sequence[Session]) -> tuple[tuple[Uneven, ...], tuple[str, ...]]:
    """Cases that fail with one environment and never with the other; those that fail with both."""
    ran, failed = (Counter[str](), Counter[str]()), (Counter[str](), Counter[str]())
    for one in sessions:
        ran[one.side].update(one.ran)
        failed[one.side].update(one.failed)
    uneven, alike = [], []
    for case in sorted({*failed[0], *failed[1]}):
        bad, all_of_it = ((counts[0][case], counts[1][case]) for counts in (failed, ran))
        ever = [count > 0 for count in bad]
        if ever[0] != ever[1]:
            uneven.append(Uneven(case, bad, all_of_it))
        else:
            alike.append(case)
    return tuple(uneven), tuple(alike)


def stored(
    history: History, sessions: Iterable[Session]
) -> tuple[list[StoredRun], list[StoredRun]]:
    """The runs of sessions in the history: of the one environment, and of the other.

    :raises AssayError: if one is not there, or cannot be read.
    """
    known = {run.uuid: run for run in history.runs}
    found: tuple[list[StoredRun], list[StoredRun]] = ([], [])
    for side, uuid in ((one.side, uuid) for one in sessions for uuid in one.uuids):
        run = known.get(uuid)
        if run is None:
            raise AssayError(f'{history.database}: the session {uuid} was not stored.')
        if run.summary.problem:
            raise AssayError(run.summary.problem)
        found[side].append(run)
    return found
