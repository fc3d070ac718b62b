"""Two settings measured in turn, in real sessions, until it is known which figures differ."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Sequence
from typing import NoReturn

from assay import AssayError, say
from assay.comparing import interleaved
from assay.comparing.foursomes import Foursomes, NoGoodError, StoppedError, label
from assay.comparing.interleaved import Interleaved
from assay.comparing.pairs import decisions
from assay.comparing.sessions import FIRST, Session, without_partition
from assay.comparing.suspects import Suspect, suspects
from assay.results.history import load
from assay.results.statistics.retest import BUDGET
from assay.running.supervise import noted
from assay.spelling import many


class Measuring:
    """A comparison under way.

    :param foursomes: what measures its sessions.
    :param margin: a change within it is called the same.
    :param seconds: after which no further four sessions begin that would end later; the first four
        are measured in any case. None for no such bound.
    """

    def __init__(self, foursomes: Foursomes, margin: float, seconds: float | None) -> None:
        self.foursomes, self.margin, self.seconds = foursomes, margin, seconds
        self.settings = foursomes.settings
        self.began = time.monotonic()
        #: Of the last four sessions.
        self.took = 0.0
        self.first: list[Session] = []
        self.pairs: list[Session] = []

    def run(self) -> tuple[Interleaved, int]:
        """Measure until all is decided, or the budget is spent, or somebody stops it.

        :returns: what is said, and the exit code.
        :raises AssayError: if a session is no good as a whole before both settings were
            measured, or there is nothing to compare.
        :raises SystemExit: if it was told to stop before that.
        """
        with noted() as signals:
            stopped = self._first(signals)
            found = interleaved.compare_at_first(load(), self.first, self.settings, self.margin)
            wanted = suspects(found, self.settings)
            say(
                f'{many(len(found.figures), "figure")} of both, of which {len(wanted)} '
                'are measured again, in pairs'
            )
            self.foursomes.runner.begin_stage()
            stopped = stopped or self._again(wanted, signals)
            sessions = self.first, self.pairs
            why = str(stopped or '')
            result = interleaved.finish(load(), found, wanted, *sessions, self.settings, why)
            if signals:
                return result, 128 + signals[0]
            return result, 1 if isinstance(stopped, NoGoodError) else result.exit_code

    def _first(self, signals: list[signal.Signals]) -> StoppedError | None:
        """The first sessions; why they ended early, if they did."""
        try:
            for _ in range(FIRST):
                self._assert_time_is_left()
                self._foursome(self.first, (), signals)
        except StoppedError as stopped:
            if {one.side for one in self.first} != {0, 1}:
                self._end(stopped, signals)
            return stopped
        return None

    def _end(self, stopped: StoppedError, signals: Sequence[signal.Signals]) -> NoReturn:
        """End before both settings were measured."""
        told = f'{stopped}, before both were measured'
        if self.first:
            its_label = label(self.settings, self.first[0].side)
            told += f'; what was is stored, with the label {its_label!r}'
        if isinstance(stopped, NoGoodError):
            raise AssayError(f'{told}.')
        say(told)
        raise SystemExit(128 + signals[0])

    def _again(
        self, wanted: Sequence[Suspect], signals: list[signal.Signals]
    ) -> StoppedError | None:
        """Suspects alone, until decided; why that ended early, if it did."""
        cases = {without_partition(case) for one in self.first for case in one.ran}
        still = [*wanted]
        while still and len(self.pairs) < 2 * BUDGET:
            open_cases = {self.settings.after.shared(one.figure.case) for one in still}
            number = len(self.pairs) // 2 + 1
            at_most = (2 * BUDGET - len(self.pairs)) // 4 * self.took
            try:
                self._assert_time_is_left()
                say(
                    f'pairs {number} and {number + 1} of at most {BUDGET}: '
                    f'{many(len(still), "figure")} of {many(len(open_cases), "case")} are open; '
                    f'at most {at_most / 60:.0f} min more'
                )
                self._foursome(self.pairs, cases - open_cases, signals)
            except StoppedError as stopped:
                return stopped
            told = decisions(load(), wanted, self.pairs, self.settings, self.margin)
            still = [one for one in wanted if not told[one.figure].is_decided]
        return None

    def _foursome(
        self, done: list[Session], left_out: Iterable[str], signals: list[signal.Signals]
    ) -> None:
        """Four sessions, and how long they took.

        :raises StoppedError: as :meth:`Foursomes.measure`.
        """
        began = time.monotonic()
        self.foursomes.measure(done, left_out, signals)
        self.took = time.monotonic() - began

    def _assert_time_is_left(self) -> None:
        """:raises StoppedError: if four more sessions would end too late, and are not the first."""
        if not self.took or self.seconds is None:
            return
        if time.monotonic() - self.began + self.took > self.seconds:
            raise StoppedError(f'the time of {self.seconds / 60:g} min was over')
