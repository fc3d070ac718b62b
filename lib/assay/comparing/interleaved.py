"""Two settings measured in turn, in real sessions, until it is known which figures differ.

Sessions are run in fours, A B B A.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from assay import AssayError, say
from assay.comparing.pairs import Suspect, decisions, find_suspects, with_result
from assay.comparing.sessions import (
    FIRST,
    ComparedSession,
    Failing,
    assert_something_in_common,
    failing,
    session,
    stored_runs,
    without_partition,
)
from assay.results.diff.difference import Difference, difference
from assay.results.history import History, load_history
from assay.results.runner import NoGoodError, Runner, StoppedError
from assay.results.statistics.comparison import MARGIN
from assay.results.statistics.retest import BUDGET, FOURSOME
from assay.running import selection
from assay.running.setting import Settings
from assay.running.supervise import note_signals
from assay.text import many, plain

#: So many times what others disturbed is measured again at once; what they still do is left out.
AGAIN = 2


def session_label(settings: Settings, side: int) -> str:
    """By which `assay history` tells what a session was; no label has a stroke."""
    before, after = (plain(str(one).replace('/', '-')) for one in settings)
    return f'compare {before} with {after}: {(before, after)[side]}'


@dataclass(frozen=True, eq=False)
class Interleaved:
    """All that is said of two settings.

    :param settings: before, and after.
    :param difference: what was measured again with what the pairs say of it; without what failed.
    :param suspects: how many figures were to be measured again.
    :param pairs: how many pairs were measured.
    :param uneven: cases that fail with one of them, or far more often with it.
    :param failed: cases that fail with both alike.
    :param stopped: why it ended before all was decided; empty if it did not.
    """

    settings: Settings
    difference: Difference
    suspects: int
    pairs: int
    uneven: tuple[Failing, ...]
    failed: tuple[Failing, ...]
    stopped: str

    @property
    def is_worse(self) -> bool:
        return self.difference.is_worse or bool(self.uneven)

    @property
    def verdict(self) -> str:
        """In a word."""
        return 'worse' if self.is_worse else self.difference.verdict

    @property
    def exit_code(self) -> int:
        return 1 if self.is_worse else self.difference.exit_code


def compare_at_first(
    history: History,
    sessions: Sequence[ComparedSession],
    settings: Settings,
    margin: float = MARGIN,
) -> Difference:
    """The difference that the first sessions show.

    :raises AssayError: if they have nothing in common, or are not stored.
    """
    before, after = stored_runs(history, sessions)
    return difference(history, before, after, margin, settings)


def finish(
    history: History,
    found: Difference,
    wanted: Sequence[Suspect],
    first: Sequence[ComparedSession],
    pairs: Sequence[ComparedSession],
    settings: Settings,
    stopped: str = '',
) -> Interleaved:
    """The conclusion.

    :param found: what :func:`compare_at_first` said of the sessions ``first``.
    :param stopped: why it ended, if that was before all was decided.
    """
    told = decisions(history, wanted, pairs, settings, found.margin)
    first_said = {one.figure: one for one in found.figures}
    again = {
        figure: with_result(first_said[figure], one, len(wanted), found.margin, stopped)
        for figure, one in told.items()
    }
    both = found.before, found.after
    in_the_end = difference(history, *both, found.margin, settings, again, found.earlier)
    uneven, failed = failing([*first, *pairs])
    return Interleaved(
        settings,
        # Failures of all sessions are reported, not of the first alone.
        replace(in_the_end, lost=(), at_times=()),
        len(wanted),
        len(pairs) // 4 * 2,
        uneven,
        failed,
        stopped if not wanted or not all(one.is_decided for one in told.values()) else '',
    )


class InterleavedMeasurement:
    """A comparison under way.

    :param runner: of its sessions.
    :param settings: of the two sides.
    :param options: of ReFrame, for all sessions.
    :param margin: a change within it is called the same.
    :param seconds: after which no further four sessions begin that would end later; the first four
        are measured in any case. None for no such bound.
    """

    def __init__(
        self,
        runner: Runner,
        settings: Settings,
        options: Sequence[str],
        margin: float,
        seconds: float | None,
    ) -> None:
        self.runner, self.settings, self.options = runner, settings, options
        self.margin, self.seconds = margin, seconds
        self.began = time.monotonic()
        #: How many sessions there were, and seconds of the last four.
        self.number, self.took = 0, 0.0
        self.first: list[ComparedSession] = []
        self.pairs: list[ComparedSession] = []

    def run(self) -> tuple[Interleaved, int]:
        """Measure until all is decided, or the budget is spent, or somebody stops it.

        :returns: what is said, and the exit code.
        :raises AssayError: if a session is no good as a whole before both settings were
            measured, or there is nothing to compare.
        :raises SystemExit: if it was told to stop before that.
        """
        with note_signals() as self.runner.signals:
            stopped = self._first()
            found = compare_at_first(load_history(), self.first, self.settings, self.margin)
            wanted = find_suspects(found, self.settings)
            say(
                f'{many(len(found.figures), "figure")} of both, of which {len(wanted)} '
                'are measured again, in pairs'
            )
            self.runner.begin_stage()
            stopped = stopped or self._again(wanted)
            sessions = self.first, self.pairs
            why = str(stopped or '')
            result = finish(load_history(), found, wanted, *sessions, self.settings, why)
            if self.runner.signals:
                return result, 128 + self.runner.signals[0]
            return result, 1 if isinstance(stopped, NoGoodError) else result.exit_code

    def _first(self) -> StoppedError | None:
        """The first sessions; why they ended early, if they did."""
        try:
            for _ in range(FIRST):
                self._assert_time_is_left()
                self._foursome(self.first, ())
        except StoppedError as stopped:
            if {one.side for one in self.first} != {0, 1}:
                self._end(stopped)
            return stopped
        return None

    def _end(self, stopped: StoppedError) -> NoReturn:
        """End before both settings were measured."""
        told = f'{stopped}, before both were measured'
        if self.first:
            its_label = session_label(self.settings, self.first[0].side)
            told += f'; what was is stored, with the label {its_label!r}'
        if isinstance(stopped, NoGoodError):
            raise AssayError(f'{told}.')
        say(told)
        raise SystemExit(128 + self.runner.signals[0])

    def _again(self, wanted: Sequence[Suspect]) -> StoppedError | None:
        """Suspects alone, until decided; why that ended early, if it did."""
        cases = {without_partition(case) for one in self.first for case in one.ran}
        still = [*wanted]
        while still and len(self.pairs) < 2 * BUDGET:
            open_cases = {self.settings.after.shared_title(one.figure.case) for one in still}
            number = len(self.pairs) // 2 + 1
            at_most = (2 * BUDGET - len(self.pairs)) // 4 * self.took
            try:
                self._assert_time_is_left()
                say(
                    f'pairs {number} and {number + 1} of at most {BUDGET}: '
                    f'{many(len(still), "figure")} of {many(len(open_cases), "case")} are open; '
                    f'at most {at_most / 60:.0f} min more'
                )
                self._foursome(self.pairs, cases - open_cases)
            except StoppedError as stopped:
                return stopped
            told = decisions(load_history(), wanted, self.pairs, self.settings, self.margin)
            still = [one for one in wanted if not told[one.figure].is_decided]
        return None

    def _foursome(self, done: list[ComparedSession], left_out: Iterable[str]) -> None:
        """Measure four sessions, A B B A.

        :param done: gets each session that is complete.
        :param left_out: names of cases.
        :raises StoppedError: if somebody stops it, or a session is no good.
        :raises AssayError: if the first two have no case in common.
        """
        began = time.monotonic()
        left_out = {*left_out}
        for side in FOURSOME:
            one = self._session(side, left_out)
            # Those that others disturbed at once, so that the four stay in their order.
            for _ in range(AGAIN):
                if one.disturbed:
                    disturbed = {without_partition(case) for case in one.disturbed}
                    # A case of two partitions is run on both again.
                    calm = {without_partition(case) for case in one.ran} - disturbed
                    say(f'others disturbed {many(len(one.disturbed), "case")}: measured again')
                    one = one.with_retry(self._session(side, left_out | calm))
            done.append(one)
            if len(done) == 2:
                assert_something_in_common(done, self.settings)
        self.took = time.monotonic() - began

    def _session(self, side: int, left_out: Iterable[str]) -> ComparedSession:
        """One session, judged and stored.

        :raises NoGoodError: if more is wrong with it than that cases failed.
        :raises StoppedError: if this command was told to stop.
        """
        self.runner.assert_not_stopped()
        setting = self.settings[side]
        self.number += 1
        say(f'session {self.number}: {setting}')
        without = selection.leaving_out(map(setting.name_here, left_out))
        own = self.runner.begin()
        options = [*setting.options, *self.options, *without]
        label = session_label(self.settings, side)
        ended = self.runner.complete(
            own, label, options, setting.exports, f'a session of {setting}'
        )
        ended.tell_failures()
        assert ended.run
        self.runner.release(own, not ended.verdict.problems, side)
        return session(ended.run, side, self.settings)

    def _assert_time_is_left(self) -> None:
        """:raises StoppedError: if four more sessions would end too late, and are not the first."""
        if not self.took or self.seconds is None:
            return
        if time.monotonic() - self.began + self.took > self.seconds:
            raise StoppedError(f'the time of {self.seconds / 60:g} min was over')
