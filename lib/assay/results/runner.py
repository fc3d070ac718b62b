"""Sessions of ReFrame: what has to be there before the first, and what came of each."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from assay import AssayError, say
from assay.results import store
from assay.results.cases import Run
from assay.results.failures import failures, skipped_cases
from assay.results.reframe_report import read_reframe_report
from assay.results.unmatched import misaddressed_options
from assay.results.verdict import Verdict, judge_run
from assay.running import runs
from assay.running.reframe_options import Given
from assay.running.runs import RunFolder
from assay.running.session import Suite
from assay.running.supervise import Audience, Ended
from assay.spack import builds

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


def make_ready(suite: Suite, site: _SiteConfig, environments: Iterable[str]) -> list[int]:
    """Wait for the turn, set a damaged database aside, and build what cannot wait for a job.

    :param site: the configuration, loaded.
    :param environments: expressions; each environment of the run matches one.
    :returns: handles to be kept open as long as the turn lasts.
    :raises AssayError: if something cannot be had.
    """
    # Before a wait that may be long.
    builds.assert_installable(site, suite.system, environments)
    handles = suite.take_turn(site)
    if aside := store.set_aside_if_damaged():
        say(f'the results database was damaged: it is {aside} now, and a new one begins')
    # Before any job: what cannot be built fails here.
    builds.install_for_checks(site, suite.system, environments)
    return handles


@dataclass(frozen=True)
class Concluded:
    """The result of a session of ReFrame.

    :param run: None if it left no report that can be read.
    :param log: the lines of its log; None if there is none.
    :param stopped: the signal that stopped it; None if none did.
    :param unstored: why its verdict is not in the history; empty if it is.
    """

    run: Run | None
    log: list[str] | None
    verdict: Verdict
    stopped: signal.Signals | None = None
    unstored: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems of the session as a whole, not only of some of its cases."""
        return (*self.verdict.of_session, *self.unstored)

    @property
    def exit_code(self) -> int:
        """That of its verdict, or 128 and the number of the signal that stopped it."""
        return 128 + self.stopped if self.stopped else self.verdict.exit_code

    @property
    def reasons(self) -> list[str]:
        """Why something was not measured: cases that failed or were skipped, and the problems."""
        told = []
        if self.run:
            told += [f'{one.case}: {one.reason}' for one in failures(self.run)]
            skipped = skipped_cases(self.run, self.log or ())
            told += [f'{case}: skipped: {reason}' for case, reason in skipped]
        return [*told, *self.problems]

    def tell_failures(self) -> None:
        """Say a sentence for each case that failed."""
        for one in failures(self.run) if self.run else []:
            say(f'failed: {one.case}: {one.reason}')


class StoppedError(Exception):
    """No more is measured: this command was told to stop, or its time was over."""


class NoGoodError(StoppedError):
    """A session was no good as a whole."""


class Runner:
    """Runs sessions, one after the other; each is judged, and its verdict stored.

    :param suite: what they are started with.
    :param given: what was asked of ReFrame.
    :param handles: locks that are held all the while.
    :param purpose: why they are run, if not to show how the machine is.
    :param first: the folder of the first session; None for a new one.
    """

    def __init__(
        self,
        suite: Suite,
        given: Given,
        handles: Sequence[int],
        purpose: str,
        first: RunFolder | None = None,
    ) -> None:
        self.suite, self.given, self.handles, self.purpose = suite, given, handles, purpose
        #: Those that this command was sent, to stop: a command of several sessions notes them.
        self.signals: list[signal.Signals] = []
        self._first = first
        self._newest: dict[int, RunFolder] = {}

    def begin(self) -> RunFolder:
        """The folder of the next session."""
        own, self._first = self._first or runs.begin_run(), None
        return own

    def run(
        self,
        own: RunFolder,
        label: str | None,
        options: Sequence[str],
        exports: Mapping[str, str | None] = MappingProxyType({}),
        audience: Audience | None = None,
    ) -> Concluded:
        """Run a session to its end.

        :param own: its folder.
        :param options: of ReFrame.
        :param exports: variables for ReFrame, beside those of the suite; None of those that it is
            to lack.
        :param audience: it hears what goes on.
        """
        end = self.suite.run(own, label, options, self.handles, audience, self.purpose, exports)
        if end.stopped:
            self.signals.insert(0, end.stopped)
        found = judge_session(own, end, self.given)
        unstored = store_verdict(found.run, found.verdict) if found.run else []
        return replace(found, stopped=end.stopped, unstored=tuple(unstored))

    def assert_not_stopped(self) -> None:
        """:raises StoppedError: if this command was told to stop."""
        if self.signals:
            raise StoppedError(f'stopped by {self.signals[0].name}')

    def complete(
        self,
        own: RunFolder,
        label: str | None,
        options: Sequence[str],
        exports: Mapping[str, str | None] = MappingProxyType({}),
        what: str = 'a session',
    ) -> Concluded:
        """Run a session that is one of several to be compared, as :meth:`run` does; it has a run.

        :raises NoGoodError: if more is wrong with it than that cases failed.
        :raises StoppedError: if this command was told to stop.
        """
        ended = self.run(own, label, options, exports)
        if ended.stopped:
            self.assert_not_stopped()
        if ended.problems or not ended.run:
            ended.tell_failures()
            raise NoGoodError(f'{what} is no good: {"; ".join(ended.problems)}')
        return ended

    def release(self, own: RunFolder, is_good: bool, kind: int = 0) -> None:
        """A session is over: of the good ones of a kind only the newest keeps its folder.

        Otherwise a command with many sessions would push out the folders of all other runs.
        """
        if is_good:
            if earlier := self._newest.get(kind):
                shutil.rmtree(earlier.folder, ignore_errors=True)
            self._newest[kind] = own
        os.close(own.handle)

    def begin_stage(self) -> None:
        """The folders that are left of the sessions so far stay."""
        self._newest.clear()


def judge_session(own: RunFolder, end: Ended, given: Given) -> Concluded:
    """Judge a session by what it left, without a word."""
    run, problems = None, list(end.problems)
    if end.stopped:
        problems.append(f'stopped by {end.stopped.name}: not everything was measured')
    elif end.code < 0:
        problems.append(f'ReFrame was killed by {signal.Signals(-end.code).name}')
    if own.report.exists():
        try:
            run = read_reframe_report(own.report)
        except AssayError as error:
            problems.append(str(error))
    log = own.log.read_text(errors='replace').splitlines() if own.log.is_file() else None
    found = judge_run(run, end.code, log, end.printed)
    problems += found.problems
    if run:
        problems += misaddressed_options(run, given.variables, given.parameters)
    return Concluded(run, log, replace(found, problems=tuple(problems)))


def store_verdict(run: Run, verdict: Verdict) -> list[str]:
    """Store a verdict in the history; why that could not be done."""
    try:
        store.keep_verdict(run.uuid, verdict.word, verdict.problems)
    except AssayError as error:
        return [str(error)]
    return []
