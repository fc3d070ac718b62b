"""What a run ends with: it is judged, shown, and written where the command line says."""

from __future__ import annotations

import shutil
from dataclasses import replace

from assay import AssayError, paths
from assay.report import junit, terminal
from assay.results.baseline import stale
from assay.results.judged import judged, kept
from assay.results.verdict import Verdict
from assay.running.reframe_options import Given
from assay.running.runs import Run
from assay.running.supervise import Ended


def conclude(own: Run, end: Ended, given: Given, seconds: float) -> Verdict:
    """Judge a run, and show, store and write what came of it.

    :param seconds: the wall time of the run.
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
    try:
        if given.junit:
            junit.write(given.junit, report, verdict, log or [], seconds)
    except AssayError as error:
        verdict = replace(verdict, problems=(*problems, str(error)))
        if report:
            kept(report, verdict)
    if report:
        terminal.show(report, log or [], end.printed)
        terminal.warn(stale(report, paths.REFERENCES))
    terminal.conclude(report, verdict, seconds)
    return verdict
