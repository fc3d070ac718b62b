"""What a run ends with: it is judged, shown, and written where the command line says."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError, paths
from assay.report import junit, terminal
from assay.results.baseline import stale
from assay.results.budget import Choice
from assay.results.cases import Run
from assay.results.runner import judge_session, store_verdict
from assay.results.unmatched import unmatched_names, unmeasured_parts
from assay.results.verdict import Verdict
from assay.running.reframe_options import Given
from assay.running.runs import RunFolder
from assay.running.supervise import Ended
from assay.text import plain

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


def conclude_run(
    own: RunFolder,
    end: Ended,
    given: Given,
    seconds: float,
    choice: Choice | None = None,
    site: _SiteConfig | None = None,
) -> Verdict:
    """Judge a run, and show, store and write what came of it.

    :param seconds: the wall time of the run.
    :param choice: what was chosen for a budget, if there was one.
    :param site: the system's configuration: what it has and was not measured is told.
    """
    found = judge_session(own, end, given)
    run, log = found.run, found.log
    problems = [*found.verdict.problems]
    # What a budget leaves out is told by itself.
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
        notes = stale(run, paths.REFERENCES)
        if site and is_all:
            notes += unmeasured_parts(site, run, given)
        below = [*notes, *terminal.why_not_good(verdict)]
        terminal.show_run(run, log or [], end.printed, given.everything, below)
        terminal.warn(notes)
    terminal.show_verdict(run, verdict, seconds, choice)
    return verdict


def _write(
    given: Given,
    run: Run | None,
    verdict: Verdict,
    log: list[str],
    seconds: float,
    left_out: Iterable[str],
) -> list[str]:
    """Write JUnit and the page where they are to go; why one of them cannot be written.

    :param left_out: titles of the cases that a budget left out.
    """

    def of_junit(path: Path) -> None:
        junit.write_junit(path, run, verdict, log, seconds, left_out)

    def of_page(path: Path) -> None:
        if run is None:
            raise AssayError(f'{path}: not written, since the run left no report')
        from assay.report.html.page import write_ended  # which takes time to load

        write_ended(path, run, verdict, log)

    asked = ((given.junit, of_junit), (given.page, of_page))
    found = (_problem(path, write, verdict.problems) for path, write in asked if path)
    return [problem for problem in found if problem]


def _problem(path: Path, write: Callable[[Path], None], known: Iterable[str]) -> str | None:
    """Why a file could not be written, whatever the reason; None if it could.

    The table of the run and its verdict are still to come: nothing that is written beside them may
    keep them back.

    :param known: problems that were told before, a mistake of ours with the place where it is.
    """
    try:
        write(path)
    except AssayError as error:
        return str(error)
    except Exception as error:  # a mistake of ours
        problem = f'{path}: not written: {type(error).__name__}: {plain(error)}'
        if problem not in known:
            traceback.print_exc()
        return problem
    return None
