"""A night: put off, or measured, held against good ones, remembered, and told if it is news."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from assay import AssayError, say
from assay.config import settings
from assay.nights.folder import Folder
from assay.nights.maintenance import LONGEST, in_maintenance
from assay.nights.measuring import NightMeasurement
from assay.nights.message import as_minute, last_line, message, notify, subject
from assay.nights.outcome import NightOutcome, Reported, of_problem
from assay.report import junit
from assay.results.verdict import Verdict
from assay.running.node_choice import Way
from assay.running.reframe_options import Given
from assay.running.session import Suite
from assay.text import plain

#: The exit code of a night on which nothing was measured, and nothing is wrong: EX_TEMPFAIL of
#: sysexits.h.
PUT_OFF = 75


@dataclass(frozen=True)
class Night:
    """A night of a system and a mode.

    :param suite: what its runs are started with, or why they cannot be.
    :param given: what is asked of ReFrame.
    :param options: the same, as they were given.
    :param margin: a change within it is called the same.
    :param command: that tells people; None if they look for themselves.
    :param budget: seconds for which cases are chosen; None to run them all.
    :param way: how nodes are chosen; None to leave them to the scheduler.
    """

    suite: Suite | AssayError
    system: str
    mode: str
    given: Given
    options: Sequence[str]
    margin: float
    command: str | None
    budget: float | None = None
    way: Way | None = None

    def spend(self) -> int:
        """All of it, unless another one is under way.

        :returns: the exit code.
        :raises AssayError: if what is known of nights can be neither read nor written.
        :raises SystemExit: if it was told to stop; nothing is remembered then.
        """
        folder = Folder(self.system, self.mode)
        with folder.alone() as handle:
            if handle is None:
                if folder.busy_for() > LONGEST:
                    raise AssayError(f'another night of {self._which} has not ended for two days')
                say(f'put off: another night of {self._which} is under way')
                return PUT_OFF
            memory = folder.read()
            folder.write(memory)  # before anybody hears of what could not be remembered
            put_off, good, said = None, None, ''
            measuring: NightMeasurement | None = None
            try:
                self.given.remove_files_of_an_earlier_run()
                if why := in_maintenance(settings.load(self.system), self.given.jobs):
                    put_off = min(memory.put_off or _now(), _now())
                    if _now() - put_off <= LONGEST:
                        folder.write(memory.after(memory.told, None, put_off))
                        say(f'put off: {why}')
                        return PUT_OFF
                    raise AssayError(f'nothing was measured since {as_minute(put_off)}: {why}')
                if isinstance(self.suite, AssayError):
                    raise self.suite
                about = self.suite, self.suite.load(), self.given, self.options, handle, folder.file
                measuring = NightMeasurement(*about, self.budget, self.way)
                outcome, good = measuring.measure(memory, self.margin)
            except AssayError as error:
                said = ''.join(f'assay: {plain(line)}\n' for line in str(error).splitlines())
                outcome = of_problem(str(error))
            except Exception as error:  # whatever it is, it has to reach people
                said = traceback.format_exc()
                outcome = of_problem(f'{type(error).__name__}: {error}')
            told, problem = self._tell(outcome, memory.told)
            folder.write(memory.after(told, good, put_off))
            print(said, end='', file=sys.stderr)
            if problem:
                say(problem)
            if outcome.word in ('FAILED', 'WORSE') and self.given.junit:
                choice = measuring.choice if measuring else None
                left_out = choice.titles_left_out if choice else ()
                own = None if isinstance(self.suite, AssayError) else self.suite.own
                verdict = Verdict(outcome.sentences)
                junit.write_of_run(self.given.junit, own, verdict, left_out)
            print(last_line(self._which, outcome, memory.told))
            return 1 if problem else outcome.exit_code

    @property
    def _which(self) -> str:
        return f'{self.system} ({self.mode})'

    def _tell(self, outcome: NightOutcome, before: Reported) -> tuple[Reported, str]:
        """Tell people what is new; what they know now, and why they could not be notified.

        A night that is undecided, or that others disturbed, says nothing: nobody is notified.
        """
        if not outcome.is_evidence or before.is_of(outcome):
            return before, ''
        headline = subject(self._which, outcome, before)
        if self.command is not None:
            where = '' if isinstance(self.suite, AssayError) else f'files: {self.suite.own.folder}'
            text = message(headline, outcome, before, where)
            try:
                notify(self.command, outcome.word, headline, text)
            except AssayError as error:
                return before, str(error)
        return Reported(word=outcome.word, culprits=outcome.culprits, since=_now()), ''


def _now() -> datetime:
    return datetime.now().astimezone()
