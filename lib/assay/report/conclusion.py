"""What a run ends with: it is judged, shown, and written where the command line says."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace

from assay import AssayError, paths
from assay.report import junit, terminal
from assay.results.baseline import stale
from assay.results.budget import Choice
from assay.results.cases import Report
from assay.results.judged import judged, kept
from assay.results.verdict import Verdict
from assay.running.reframe_options import Given
from assay.running.runs import Run
from assay.running.supervise import Ended


def conclude(
    own: Run, end: Ended, given: Given, seconds: float, choice: Choice | None = None
) -> Verdict:
    """Judge a run, and show, store and write what came of it.

    :param seconds: the wall time of the run.
    :param choice: what was chosen for a budget, if there was one.
    """
    found = judged(own, end, given)
    report, log = found.report, found.log
    problems = [*found.verdict.problems]
    try:
        if given.report and report:
            given.report.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(own.report, given.report)
    except OSError as error:
        problems.append(f'{given.report}: cannot be written: {error.strerror}')
    if report:
        problems += kept(report, replace(found.verdict, problems=tuple(problems)))
    verdict = replace(found.verdict, problems=tuple(problems))
    left_out = choice.titles_left_out if choice else ()
    if unwritten := _write(given, report, verdict, log or [], seconds, left_out):
        verdict = replace(verdict, problems=(*problems, *unwritten))
        if report:
            kept(report, verdict)
        # Those that could be written have to say so as well.
        _write(given, report, verdict, log or [], seconds, left_out)
    if report:
        terminal.show(report, log or [], end.printed)
        terminal.warn(stale(report, paths.REFERENCES))
    terminal.conclude(report, verdict, seconds, choice)
    return verdict


def _write(
    given: Given,
    report: Report | None,
    verdict: Verdict,
    log: list[str],
    seconds: float,
    left_out: Iterable[str],
) -> list[str]:
    """Write JUnit and the page where they are to go; why one of them cannot be written.

    :param left_out: titles of the cases that a budget left out.
    """
    problems = []
    try:
        if given.junit:
            junit.write(given.junit, report, verdict, log, seconds, left_out)
    except AssayError as error:
        problems.append(str(error))
    try:
        if given.page and report:
            from assay.report.html.stored import write_ended  # which takes time to load

            write_ended(given.page, report, verdict, log)
        elif given.page:
            problems.append(f'{given.page}: not written, since the run left no report')
    except AssayError as error:
        problems.append(str(error))
    return problems
