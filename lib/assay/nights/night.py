"""A night: put off, or measured, held against good ones, remembered, and told if it is news."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from assay import AssayError, say
from assay.nights.folder import Folder, Told
from assay.nights.maintenance import LONGEST, in_maintenance
from assay.nights.measuring import Measuring
from assay.nights.message import day, last_line, message, subject
from assay.nights.notify import notify
from assay.nights.outcome import Outcome, of_problem
from assay.running.reframe_options import Given
from assay.running.session import Suite

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

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
    """

    suite: Suite | AssayError
    system: str
    mode: str
    given: Given
    options: Sequence[str]
    margin: float
    command: str | None

    def spend(self) -> int:
        """All of it, unless another one is under way.

        :returns: the exit code.
        :raises AssayError: if what is known of nights can be neither read nor written.
        :raises SystemExit: if it was told to stop; nothing is remembered then.
        """
        folder = Folder(self.system, self.mode)
        with folder.alone() as handle:
            if handle is None:
                say(f'put off: another night of {self._which} is under way')
                return PUT_OFF
            memory = folder.read()
            put_off, good = None, None
            try:
                suite, site = self._loaded()
                if why := in_maintenance(site, self.options):
                    put_off = memory.put_off or _now()
                    if _now() - put_off <= LONGEST:
                        folder.write(memory.after(memory.told, None, put_off))
                        say(f'put off: {why}')
                        return PUT_OFF
                    raise AssayError(f'nothing was measured since {day(put_off)}: {why}')
                measuring = Measuring(suite, site, self.given, self.options, handle)
                outcome, good = measuring.measure(memory, self.margin)
            except AssayError as error:
                say(str(error))
                outcome = of_problem(str(error))
            told, is_told = self._tell(outcome, memory.told)
            folder.write(memory.after(told, good, put_off))
            print(last_line(self._which, outcome, memory.told))
            return outcome.exit_code if is_told else 1

    @property
    def _which(self) -> str:
        return f'{self.system} ({self.mode})'

    def _loaded(self) -> tuple[Suite, _SiteConfig]:
        if isinstance(self.suite, AssayError):
            raise self.suite
        return self.suite, self.suite.load()

    def _tell(self, outcome: Outcome, before: Told) -> tuple[Told, bool]:
        """Tell people what is new; what they know now, and whether all went well.

        That others disturbed a night says nothing of the machine, and nobody is told.
        """
        if outcome.word == 'DISTURBED' or before.is_of(outcome):
            return before, True
        headline = subject(self._which, outcome, before)
        if self.command is not None:
            where = '' if isinstance(self.suite, AssayError) else f'files: {self.suite.own.folder}'
            text = message(headline, outcome, before, where)
            try:
                notify(self.command, outcome.word, headline, text)
            except AssayError as error:
                say(str(error))
                return before, False
        return Told(word=outcome.word, culprits=outcome.culprits, since=_now()), True


def _now() -> datetime:
    return datetime.now().astimezone()
