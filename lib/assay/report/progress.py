"""Lines of a run while it goes on, one for each build and for each case that ends; and its end."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import AssayError, paths
from assay.report import junit, terminal
from assay.report.console import console
from assay.results.baseline import changes_since_learned
from assay.results.budget import Choice
from assay.results.case_history import TimeLeft, earlier_seconds
from assay.results.cases import Case, CaseName, Run, is_no_evidence
from assay.results.failures import failure_reason, is_good
from assay.results.reframe_report import case_of, name_of
from assay.results.rows import nearest, row_in_words, rows_of
from assay.results.runner import Concluded, judge_session, store_verdict
from assay.results.unmatched import unmatched_names, unmeasured_parts
from assay.results.verdict import Verdict
from assay.running import events
from assay.running.reframe_options import Given
from assay.running.runs import RunFolder
from assay.running.supervise import Ended
from assay.text import many, plain

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig
    from rich.console import Console

#: Options of ReFrame's that ask for something that it prints.
TO_BE_READ = {'--verbose', '--performance-report', '--failure-stats'}

#: Verdicts with a sentence that says why, the same as at the end of the run.
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
                _say(out, f'{word} {case.title}: {failure_reason(case)}', word)
            return word in ('pass', 'FAIL')
        if case.result == 'abort':  # many at once: the end of the run reports them
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
        if word not in SENTENCES:  # which stand alone
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
    """A short name that tells a case from others of a run."""
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
        return failure_reason(case)
    rows = rows_of(case)
    shown = nearest(rows) or [row for row in rows if row.figure.is_headline] or rows
    return row_in_words(shown[0]) if shown else ''


def conclude_run(
    own: RunFolder,
    end: Ended,
    given: Given,
    seconds: float,
    choice: Choice | None = None,
    site: _SiteConfig | None = None,
) -> Concluded:
    """Judge a run, and show, store and write the result.

    :param seconds: the wall time of the run.
    :param choice: what was chosen for a budget, if there was one.
    :param site: the system's configuration: what it has and was not measured is reported.
    """
    found = judge_session(own, end, given)
    run, log = found.run, found.log
    problems = [*found.verdict.problems]
    # Cases that a budget leaves out are reported by themselves.
    is_all = given.is_whole and not choice
    if run and is_all and not end.stopped:
        problems += unmatched_names(run, given)
    try:
        if given.report and run:
            given.report.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(own.report, given.report)
    except OSError as error:
        problems.append(f'{given.report}: cannot be written: {error.strerror}')
    if run:
        problems += store_verdict(run, replace(found.verdict, problems=tuple(problems)))
    verdict = replace(found.verdict, problems=tuple(problems))
    unmeasured = choice.titles_left_out if choice else ()
    if unwritten := _write(given, run, verdict, log or [], seconds, unmeasured):
        verdict = replace(verdict, problems=(*problems, *unwritten))
        if run:
            store_verdict(run, verdict)
        # Those that could be written have to say so as well.
        _write(given, run, verdict, log or [], seconds, unmeasured)
    if run:
        notes = changes_since_learned(run, paths.REFERENCES)
        if site and is_all:
            notes += unmeasured_parts(site, run, given)
        below = [*notes, *terminal.why_not_good(verdict)]
        terminal.show_run(run, log or [], end.printed, given.everything, below)
        terminal.warn(notes)
    terminal.show_verdict(run, verdict, seconds, choice)
    return replace(found, verdict=verdict, stopped=end.stopped)


def _write(
    given: Given,
    run: Run | None,
    verdict: Verdict,
    log: list[str],
    seconds: float,
    left_out: Iterable[str],
) -> list[str]:
    """Write JUnit and the page where they are to go; why one of them cannot be written.

    The table of the run and its verdict are still to come: nothing that is written beside them may
    keep them back.

    :param left_out: titles of the cases that a budget left out.
    """

    def of_junit(path: Path) -> None:
        junit.write_junit(path, run, verdict, log, seconds, left_out)

    def of_page(path: Path) -> None:
        if run is None:
            raise AssayError(f'{path}: not written, since the run left no report')
        from assay.report.html.page import write_ended  # which takes time to load

        write_ended(path, run, verdict, log)

    problems = []
    for path, write in ((given.junit, of_junit), (given.page, of_page)):
        try:
            if path:
                write(path)
        except AssayError as error:
            problems.append(str(error))
        except Exception as error:  # a mistake of ours: the place where it is, once
            problems.append(f'{path}: not written: {type(error).__name__}: {plain(error)}')
            if problems[-1] not in verdict.problems:
                traceback.print_exc()
    return problems
