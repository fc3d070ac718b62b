"""Changes in a history, the run that each began with, and what else changed there.

:func:`assay.results.statistics.changes.find_changes` finds steps and drifts. Here they get their
runs, their direction, what the jobs ran with before and after, and whether a later step repaired
them.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from assay.results.cases import Facts
from assay.results.figure_series import FigureKey, Measured, is_negligible, measured_figures
from assay.results.history import History, StoredRun
from assay.results.provenance import changed_facts
from assay.results.run_selectors import choose_figures
from assay.results.statistics.changes import FEWEST, Change, beginning, find_changes, slope
from assay.results.statistics.multiplicity import rate_of_a_look
from assay.results.statistics.series import DAY, GREATEST, Floats, Series, ratio, trimmed_mean

#: The error rate of one look, if somebody looks every day: 0.35 false alarms a year are expected.
RATE = rate_of_a_look(365)
#: Standard errors within which a state is again the one before a change.
AS_BEFORE = 3.0
#: Sessions of a part of a history in which changes are looked for by itself.
FEWEST_OF_PART = 2 * FEWEST

Direction = Literal['worse', 'better', 'changed']
#: What became of a figure by its newest run.
State = Literal[
    'worse', 'better', 'changed', 'repaired', 'unchanged', 'too few', 'has zeros', 'one time'
]


@dataclass(frozen=True, eq=False)
class FigureTrend:
    """A figure over runs.

    :param sessions: shape (n,), of each session its place among the runs that were looked at.
    :param values: shape (n,), the location of each session; none of a figure with zeros.
    """

    measured: Measured
    sessions: tuple[int, ...]
    values: Floats
    state: State

    @property
    def figure(self) -> FigureKey:
        return self.measured.figure


@dataclass(frozen=True)
class TrendFinding:
    """A step or a drift of one figure.

    :param ratio: of a step, the state after it over the state before; of a drift, end over begin.
    :param per_week: of a drift, the change in a week as a fraction; 0 of a step.
    :param p_value: as in :class:`Change`.
    :param first: the first bad run, as most likely; of a drift, the run that it begins at.
    :param earliest: the first run that is as plausible (95%).
    :param latest: the last run that is as plausible.
    :param last_good: the figure's run before the first bad one; of a drift, before the earliest.
    :param bad: the figure's run after it; of a drift, where it ends.
    :param facts: what differs between those two.
    :param is_repaired: whether the newest state is the one before again, or a better one.
    """

    figure: FigureKey
    form: Literal['step', 'drift']
    direction: Direction
    ratio: float
    per_week: float
    p_value: float
    first: StoredRun
    earliest: StoredRun
    latest: StoredRun
    last_good: StoredRun
    bad: StoredRun
    facts: Facts
    is_repaired: bool

    @property
    def is_bad(self) -> bool:
        """Whether the figure is worse today because of it."""
        return self.direction == 'worse' and not self.is_repaired

    @property
    def state(self) -> str:
        """``worse``, ``better``, ``changed`` or ``worse, repaired``."""
        is_over = self.direction == 'worse' and self.is_repaired
        return 'worse, repaired' if is_over else self.direction


@dataclass(frozen=True)
class ChangeGroup:
    """Steps of several figures that one run explains, as it is plausible for each of them.

    :param run: the first bad run of most of them.
    """

    run: StoredRun
    found: tuple[TrendFinding, ...]


@dataclass(frozen=True)
class Trend:
    """The changes that a history shows.

    :param runs: that were looked at, oldest first.
    :param of_the_future: how many were left out, because a clock was wrong.
    :param lines: of each figure.
    :param empty: figures without any value that could be used.
    :param groups: steps, in order of time.
    :param drifts: sorted by figure.
    """

    runs: tuple[StoredRun, ...]
    of_the_future: int
    lines: tuple[FigureTrend, ...]
    empty: tuple[FigureKey, ...]
    groups: tuple[ChangeGroup, ...]
    drifts: tuple[TrendFinding, ...]

    @property
    def found(self) -> tuple[TrendFinding, ...]:
        return (*(one for group in self.groups for one in group.found), *self.drifts)

    @property
    def is_bad(self) -> bool:
        """Whether the newest state of any figure is worse than one before it."""
        return any(one.is_bad for one in self.found)

    def states(self) -> Counter[str]:
        """How many figures are in each state."""
        return Counter(line.state for line in self.lines)


def find_trend(
    history: History, runs: Iterable[StoredRun], cases: str = '', figures: str = ''
) -> Trend:
    """Find the changes in some runs.

    :param cases: a regular expression that is found in the names of the cases to look at.
    :param figures: likewise of the figures.
    :raises AssayError: if one is none, or no figure matches; if a report cannot be read.
    """
    given = sorted(runs, key=lambda run: (run.begun, run.uuid))
    looked = [run for run in given if not run.is_of_the_future and not run.summary.problem]
    chosen = [*choose_figures(measured_figures(history.figures(looked)), cases, figures).values()]
    empty = [one.figure for one in chosen if one.series is None]
    chosen = [one for one in chosen if one.series is not None and not is_negligible(one)]
    histories = [one.series for one in chosen if one.series is not None]
    changes = _changes(histories)
    place = {run.uuid: number for number, run in enumerate(looked)}
    lines, steps, drifts = [], list[_Step](), list[TrendFinding]()
    for one, past, (start, of_figure) in zip(chosen, histories, changes, strict=True):
        sessions = [place[run] for run in one.runs.unique(maintain_order=True).cast(str)]
        own = [_Step(one, sessions, *each) for each in _judged(past, start, of_figure, one.better)]
        steps += [step for step in own if step.change.form == 'step']
        drifts += [step.finding(looked, None) for step in own if step.change.form == 'drift']
        state = _state(own, past)
        values = np.exp(past.locations) if past.has_logarithms else np.array([])
        lines.append(FigureTrend(one, tuple(sessions), values, state))
    groups = sorted(_grouped(steps, looked), key=lambda group: group.run.begun)
    future = sum(run.is_of_the_future for run in given)
    return Trend(tuple(looked), future, tuple(lines), tuple(empty), tuple(groups), tuple(drifts))


def _changes(histories: Sequence[Series]) -> list[tuple[int, tuple[Change, ...]]]:
    """The changes of each history, and at which session the part begins that they were found in.

    Several steps and repairs hide each other. So the newest half of a history is searched by itself
    as well, and its newest half, all in one family of tests: the result is of the longest part in
    which anything was found.
    """
    longest = max((one.size for one in histories), default=0)
    parts = [
        (number, max(0, one.size - (longest >> halvings)))
        for halvings in range(longest.bit_length())
        for number, one in enumerate(histories)
        if not halvings or one.size > longest >> halvings >= FEWEST_OF_PART
    ]
    searched = [histories[number].newest(histories[number].size - start) for number, start in parts]
    found: list[tuple[int, tuple[Change, ...]]] = [(0, ())] * len(histories)
    for (number, start), changes in zip(parts, find_changes(searched, RATE), strict=True):
        if changes and not found[number][1]:
            moved = (
                replace(
                    one,
                    first=one.first + start,
                    earliest=one.earliest + start,
                    latest=one.latest + start,
                )
                for one in changes
            )
            found[number] = start, tuple(moved)
    return found


@dataclass(frozen=True)
class _Step:
    """A change of a figure, judged; ``sessions`` are places of runs."""

    measured: Measured
    sessions: list[int]
    change: Change
    direction: Direction
    ratio: float
    is_repaired: bool

    @property
    def plausible(self) -> tuple[int, int]:
        """The places of the earliest and the latest run at which it may have come."""
        change = self.change
        places = [self.sessions[one] for one in (change.earliest, change.first, change.latest)]
        return min(places), max(places)

    def finding(self, runs: Sequence[StoredRun], at: int | None) -> TrendFinding:
        """:param at: the place of the run that explains it; None of a drift."""
        change, sessions = self.change, self.sessions
        first, earliest, latest = change.first, change.earliest, change.latest
        whole, per_week = self.ratio, 0.0
        if at is None:
            bad = latest
            history = self.measured.series
            assert history
            logs, times = history.locations[: bad + 1], history.session_times[: bad + 1]
            places = beginning(logs[first:], times[first:])
            first, earliest, latest = (first + one for one in places)
            good = max(change.first, earliest - 1)
            # The ratio of :class:`Change` is of the level part before it as well.
            rate = slope(logs[first:], times[first:])
            whole = ratio(rate * float(times[-1] - times[first]))
            per_week = ratio(rate * 7 * DAY) - 1
        else:
            bad = max(1, bisect_left(sessions, at))
            good = bad - 1
        last_good, first_bad = runs[sessions[good]], runs[sessions[bad]]
        return TrendFinding(
            figure=self.measured.figure,
            form=change.form,
            direction=self.direction,
            ratio=whole,
            per_week=per_week,
            p_value=change.p_value,
            first=runs[sessions[first]],
            earliest=runs[sessions[earliest]],
            latest=runs[sessions[latest]],
            last_good=last_good,
            bad=first_bad,
            facts=changed_facts(
                _facts(self.measured, last_good, -1), _facts(self.measured, first_bad, 0)
            ),
            is_repaired=self.is_repaired,
        )


def _grouped(steps: list[_Step], runs: Sequence[StoredRun]) -> list[ChangeGroup]:
    """Steps of one cause together: the estimate of each is off by some runs.

    The run that most steps are estimated at takes all for which it is plausible, and so on.
    """
    groups = []
    while steps:
        estimates = Counter(step.sessions[step.change.first] for step in steps)
        at = max(estimates, key=lambda place: (estimates[place], -place))
        here = [step for step in steps if step.plausible[0] <= at <= step.plausible[1]]
        steps = [step for step in steps if not step.plausible[0] <= at <= step.plausible[1]]
        groups.append(ChangeGroup(runs[at], tuple(step.finding(runs, at) for step in here)))
    return groups


def _facts(one: Measured, run: StoredRun, job: int) -> Facts:
    """The provenance and nodes of one job of a run; of repeats the first (0) or last (-1)."""
    row = (one.runs == run.uuid).arg_true()[job]
    known: dict[str, str] = json.loads(one.provenance[row] or '{}')
    return (*known.items(), ('nodes', one.nodes[row] or ''))


@dataclass(frozen=True)
class _Level:
    """A state between two steps: the logarithms that it begins and ends with, and their error."""

    begin: float
    end: float
    error: float


def _judged(
    history: Series, start: int, changes: Sequence[Change], better: str | None
) -> list[tuple[Change, Direction, float, bool]]:
    """Each change with its direction, its ratio, and whether it was repaired.

    The ratio of a step is that of the states beside it: that of :class:`Change` is of all that was
    before and after, in which there may be other steps.

    :param start: the session from which on the history was searched.
    """
    if not changes:
        return []
    edges = [start, *(one.first for one in changes if one.form == 'step'), history.size]
    drifts = {one.first: one for one in changes if one.form == 'drift'}
    levels = {
        begin: _level(history.locations[begin:end], drifts.get(begin))
        for begin, end in pairwise(edges)
    }
    before = dict(zip(edges[1:], levels.values(), strict=True))
    newest = levels[edges[-2]]
    judged = []
    for one in changes:
        if one.form == 'step':
            was = before[one.first]
            change, left = levels[one.first].begin - was.end, newest.end - was.end
        else:
            was = levels[one.first]
            change, left = was.end - was.begin, newest.end - was.begin
        noise = AS_BEFORE * math.hypot(was.error, newest.error) + 1e-9
        is_repaired = math.copysign(1, change) * left <= noise
        judged.append((one, _direction(better, change), ratio(change), is_repaired))
    return judged


def _level(logs: Floats, drift: Change | None) -> _Level:
    """:param drift: over all of them, if there is one."""
    whole = math.log(min(max(drift.ratio, 1 / GREATEST), GREATEST)) if drift else 0.0
    beside = logs - np.linspace(-whole / 2, whole / 2, len(logs))
    middle = float(trimmed_mean(beside))
    return _Level(
        middle - whole / 2, middle + whole / 2, float(beside.std(ddof=1)) / math.sqrt(len(logs))
    )


def _direction(better: str | None, change: float) -> Direction:
    if better is None:
        return 'changed'
    gain = {'higher': change, 'lower': -change}.get(better, -1.0)  # exact: no change is good
    return 'better' if gain > 0 else 'worse'


def _state(steps: Sequence[_Step], history: Series) -> State:
    if not history.has_logarithms:
        return 'has zeros'
    if history.size < FEWEST:
        return 'too few'
    if not history.has_order:
        return 'one time'
    if any(one.direction == 'worse' and not one.is_repaired for one in steps):
        return 'worse'
    left = [one.direction for one in steps if not one.is_repaired]
    if left:
        return left[-1]
    return 'repaired' if steps else 'unchanged'
