"""What a run says while it goes on: a line for each build, and for each case as it ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from assay.report.console import console
from assay.results.case_history import TimeLeft, earlier_seconds
from assay.results.cases import Case, CaseName, is_no_evidence
from assay.results.failures import is_good, reason
from assay.results.reframe_report import case_of, name_of
from assay.results.rows import nearest, rows_of, told_of
from assay.running import events
from assay.spelling import many
from assay.text import plain

if TYPE_CHECKING:
    from rich.console import Console

    from assay.running.reframe_options import Given
    from assay.running.runs import RunFolder

#: Options of ReFrame's that ask for something that it prints.
TO_BE_READ = {'--verbose', '--performance-report', '--failure-stats'}

#: Verdicts of which a sentence says why, the same as at the end of the run.
SENTENCES = ('FAIL', 'disturbed')

#: Characters that the longest verdict takes.
WORD = max(map(len, SENTENCES))

_STYLES = {'FAIL': 'red', 'not run': 'red', 'disturbed': 'yellow', 'skip': 'dim'}


class Progress:
    """Tells on standard output what goes on; lines of nothing but text where it is no terminal.

    :param own: the run.
    :param given: what was asked of ReFrame.
    """

    def __init__(self, own: RunFolder, given: Given) -> None:
        self.log = own.log
        self.hears_all = not TO_BE_READ.isdisjoint(given.names_of_options)
        self._total = 0
        self._ended: dict[str, str] = {}
        self._left: TimeLeft | None = None

    def hear(self, event: dict[str, Any]) -> bool:
        """Show an event; whether there was anything to show."""
        out, now = console(), time.monotonic()
        if (cases := event.get(events.ROUND)) is not None:
            self._tell_round(out, [*map(name_of, cases)], event[events.NUMBER], now)
        elif case := event.get(events.BUILDS):
            _say(out, f'building {_short(name_of(case))} ...')
        elif case := event.get(events.ENDED):
            return self._tell_end(out, case_of(case), case.get(events.WHY_SKIPPED, ''), now)
        elif event.get(events.RUNS) and self._left:
            self._left.begins(now)
            return False
        return True

    def _tell_round(self, out: Console, cases: list[CaseName], number: int, now: float) -> None:
        self._total, self._ended = len(cases), {}
        self._left = TimeLeft([case.title for case in cases], earlier_seconds())
        words = many(self._total, 'case')
        if left := time_left_in_words(self._left.seconds(now)):
            words += f', {left}'
        if number:
            _say(out, f'round {number + 1}: {words}')
        else:
            _say(out, f'{words}; what ReFrame says is in {self.log}')

    def _tell_end(self, out: Console, case: Case, why_skipped: str, now: float) -> bool:
        word = _word(case)
        if case.is_fixture:
            if word == 'pass':
                _say(out, f'built {_short(case)} in {case.seconds.compile or 0:.0f} s')
            elif word == 'FAIL':
                _say(out, f'{word} {case.title}: {reason(case)}', word)
            return word in ('pass', 'FAIL')
        if case.result == 'abort':  # many at once, of which the end tells
            return False
        # One that passed may fail yet, as it is cleaned up. What is stopped just as a case ends has
        # ReFrame report it again.
        if self._ended.get(case.title) == word:
            return False
        self._ended[case.title] = word
        left = None
        if self._left:
            self._left.ends(case.title, word not in ('skip', 'not run'))
            left = self._left.seconds(now)
        count = f'{len(self._ended):{len(str(self._total))}}/{self._total}'
        head = f'{count} {word:{WORD}} {_short(case)}'
        detail = plain(why_skipped) if word == 'skip' else _detail(case, word)
        if word not in SENTENCES:  # which are told as they are
            detail = '; '.join(filter(None, (detail, time_left_in_words(left))))
        if not detail:
            _say(out, head, word)
        elif len(head) + len(detail) + 2 <= out.width:
            _say(out, f'{head}: {detail}', word)
        else:
            _say(out, f'{head}:', word)
            _say(out, f'{"":{len(count)}} {detail}', word)
        return True


def time_left_in_words(seconds: float | None) -> str:
    """A time that is left, in words; nothing if it is not known, or next to nothing."""
    if seconds is None or seconds < 5:
        return ''
    if seconds < 55:
        return f'about {10 * round(seconds / 10) or 10} s left'
    minutes = round(seconds / 60)
    return f'about {minutes} min left' if minutes < 60 else f'about {seconds / 3600:.1f} h left'


def _say(out: Console, text: str, word: str = '') -> None:
    out.print(text, markup=False, soft_wrap=True, style=_STYLES.get(word))


def _short(case: CaseName) -> str:
    """What tells a case from others of a run."""
    parts = [case.short_name, case.environment, case.fabric, case.layout]
    return plain(' '.join(filter(None, parts)))


def _word(case: Case) -> str:
    """The verdict of a case."""
    if is_good(case) or case.result == 'skip':
        return case.result
    if case.result == 'fail_deps':
        return 'not run'
    return 'disturbed' if is_no_evidence(case) else 'FAIL'


def _detail(case: Case, word: str) -> str:
    """Why a case is not good; of one that is, the figure that is nearest to its bound."""
    if word == 'not run':
        return 'what it needs failed'
    if word in SENTENCES:
        return reason(case)
    rows = rows_of(case)
    shown = nearest(rows) or [row for row in rows if row.headline] or rows
    return told_of(shown[0]) if shown else ''
