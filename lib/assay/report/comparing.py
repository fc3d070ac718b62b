"""Two environments measured in turn, in real sessions, until it is known which figures differ."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

from assay import AssayError, say
from assay.report.conclusion import judged, kept
from assay.results import interleaved
from assay.results.diff import Environments
from assay.results.failures import failures
from assay.results.history import load
from assay.results.interleaved import FIRST, FOURSOME, Interleaved, Session, Suspect
from assay.results.statistics.retest import BUDGET
from assay.running import runs, selection
from assay.running.reframe_options import Given
from assay.running.runs import Run
from assay.running.session import Suite
from assay.running.supervise import noted
from assay.spelling import many

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


#: So many times what others disturbed is measured again at once; what they still do is left out.
AGAIN = 2


class StoppedError(Exception):
    """A session ended before it was complete, because this command was told to stop."""


class NoGoodError(StoppedError):
    """A session was no good as a whole."""


class Measuring:
    """A comparison under way.

    :param suite: what its sessions are started with.
    :param site: its configuration, loaded.
    :param options: of ReFrame, for all of them.
    :param handles: locks that are held all the while.
    :param seconds: after which no further four sessions begin that would end later; the first four
        are measured in any case. None for no such bound.
    """

    def __init__(
        self,
        suite: Suite,
        site: _SiteConfig,
        environments: Environments,
        given: Given,
        options: Sequence[str],
        handles: Sequence[int],
        seconds: float | None,
    ) -> None:
        self.suite, self.site, self.environments, self.given = suite, site, environments, given
        self.options, self.handles = options, handles
        self.began = time.monotonic()
        self.seconds = seconds
        #: Of the last four sessions.
        self.took = 0.0
        self.number = 0
        #: Whether a session was no good as a whole, which ended it.
        self.no_good = False
        #: Folders of good sessions of this stage, the newest last.
        self.folders: list[tuple[int, Run]] = []

    def run(self, margin: float) -> tuple[Interleaved, int]:
        """Measure until all is decided, or the budget is spent, or somebody stops it.

        :returns: what is said, and the exit code.
        :raises AssayError: if a session is no good as a whole before both environments were
            measured, or there is nothing to compare.
        :raises SystemExit: if it was told to stop before that.
        """
        first: list[Session] = []
        pairs: list[Session] = []
        with noted() as signals:
            stopped = self._first(first, signals)
            history = load()
            found = interleaved.compare_at_first(history, first, self.environments, margin)
            wanted = interleaved.suspects(history, found, self.environments)
            say(
                f'{many(len(found.figures), "figure")} of both, of which {len(wanted)} '
                'are measured again, in pairs'
            )
            self.folders.clear()  # so that those of the first sessions that are left stay
            if not stopped:
                stopped = self._again(wanted, first, pairs, margin, signals)
            both = (found, wanted, first, pairs, self.environments)
            result = interleaved.finish(load(), *both, stopped)
            code = int(result.is_worse or self.no_good)
            return result, 128 + signals[0] if signals else code

    def _first(self, done: list[Session], signals: list[signal.Signals]) -> str:
        """The first sessions; why they ended early, if they did."""
        for number in range(FIRST):
            if number and (why := self._time_is_over()):
                return why
            try:
                self._foursome(done, (), signals)
            except StoppedError as stopped:
                if {one.side for one in done} != {0, 1}:
                    self._end(stopped, done, signals)
                return str(stopped)
        return ''

    def _end(
        self, stopped: StoppedError, done: Sequence[Session], signals: Sequence[signal.Signals]
    ) -> NoReturn:
        """End before both environments were measured."""
        told = f'{stopped}, before both were measured'
        if done:
            told += (
                f'; what was is stored, with the label {label(self.environments, done[0].side)!r}'
            )
        if self.no_good:
            raise AssayError(f'{told}.')
        say(told)
        raise SystemExit(128 + signals[0])

    def _again(
        self,
        wanted: Sequence[Suspect],
        first: Sequence[Session],
        pairs: list[Session],
        margin: float,
        signals: list[signal.Signals],
    ) -> str:
        """Suspects alone, until decided; why that ended early, if it did."""
        cases = {_name(case) for one in first for case in one.ran}
        open_figures = {one.figure for one in wanted}
        while open_figures and len(pairs) < 2 * BUDGET:
            if why := self._time_is_over():
                return why
            still = [one for one in wanted if one.figure in open_figures]
            left_out = cases - {one.figure.case for one in still}
            number = len(pairs) // 2 + 1
            say(
                f'pairs {number} and {number + 1} of at most {BUDGET}: '
                f'{many(len(still), "figure")} of {many(len(cases - left_out), "case")} '
                f'are open{self._at_most((2 * BUDGET - len(pairs)) // 4)}'
            )
            try:
                self._foursome(pairs, left_out, signals)
            except StoppedError as stopped:
                return str(stopped)
            told = interleaved.decisions(load(), wanted, pairs, self.environments, margin)
            open_figures = {figure for figure, one in told.items() if not one.is_decided}
        return ''

    def _foursome(
        self, done: list[Session], left_out: Iterable[str], signals: list[signal.Signals]
    ) -> None:
        """Four sessions, A B B A.

        :raises StoppedError: if this command was told to stop, or a session is no good; what is
            complete is in ``done``.
        """
        began = time.monotonic()
        left_out = {*left_out}
        for side in FOURSOME:
            one = self._session(side, left_out, signals)
            # Those that others disturbed at once, so that the four stay in their order.
            for _ in range(AGAIN):
                if one.disturbed:
                    disturbed = {_name(case) for case in one.disturbed}
                    # A case of two partitions is run on both again.
                    calm = {_name(case) for case in one.ran} - disturbed
                    say(f'others disturbed {many(len(one.disturbed), "case")}: measured again')
                    one = one.then(self._session(side, left_out | calm, signals))
            done.append(one)
            if len(done) == 2:
                interleaved.assert_something_in_common(done, self.environments)
        self.took = time.monotonic() - began

    def _session(
        self, side: int, left_out: Iterable[str], signals: list[signal.Signals]
    ) -> Session:
        """One session, judged and stored.

        :param left_out: names of cases.
        :raises NoGoodError: if more is wrong with it than that cases failed.
        :raises StoppedError: if this command was told to stop.
        """
        if signals:
            raise StoppedError(f'stopped by {signals[0].name}')
        name = self.environments[side]
        self.number += 1
        say(f'session {self.number}: {name}')
        # ReFrame searches names without their blanks.
        names = [re.escape(case.replace(' ', '')) for case in sorted(left_out)]
        without = [f'--exclude=^{case}$' for case in names]
        own = runs.begin() if self.number > 1 else self.suite.own
        options = ['-p', f'^{re.escape(name)}$', *self.options, *without]
        end = self.suite.run(own, label(self.environments, side), options, self.handles, False)
        found = judged(own, end, self.given)
        report, verdict = found.report, found.verdict
        problems = verdict.of_session
        if report:
            problems = (*problems, *kept(report, verdict))
        if end.stopped:
            signals.insert(0, end.stopped)
            raise StoppedError(f'stopped by {end.stopped.name}')
        for one in failures(report) if report else []:
            say(f'failed: {one.case}: {one.reason}')
        if report is None and not end.code:
            selection.explain(self.site, self.suite.environment, self.given)
        if problems:
            self.no_good = True
            raise NoGoodError(f'a session of {name} is no good: {"; ".join(problems)}')
        assert report
        self._tidy(side, own, bool(verdict.problems))
        os.close(own.handle)
        return interleaved.session(report, side)

    def _tidy(self, side: int, own: Run, has_failed: bool) -> None:
        """Of good sessions the newest of each environment keeps its folder.

        A comparison has so many that those of all other runs would go.
        """
        if has_failed:
            return
        for one, earlier in self.folders:
            if one == side:
                shutil.rmtree(earlier.folder, ignore_errors=True)
        self.folders = [(one, run) for one, run in self.folders if one != side] + [(side, own)]

    def _time_is_over(self) -> str:
        """Why no further four sessions begin; empty if they may."""
        if self.seconds is None:
            return ''
        if time.monotonic() - self.began + self.took <= self.seconds:
            return ''
        return f'the time of {self.seconds / 60:g} min was over'

    def _at_most(self, fours: int) -> str:
        if not self.took:
            return ''
        return f'; at most {fours * self.took / 60:.0f} min more'


def label(environments: Environments, side: int) -> str:
    """By which `assay history` tells what a session was; no label has a stroke."""
    before, after = (name.replace('/', '-') for name in environments)
    return f'compare {before} with {after}: {(before, after)[side]}'


def _name(case: str) -> str:
    """The name of a case, without its partition."""
    return case.rpartition(' @')[0]
