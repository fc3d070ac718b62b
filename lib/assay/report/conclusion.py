"""What a run ends with: it is judged, shown, and written where the command line says."""

from __future__ import annotations

import shutil
import signal

from assay import AssayError, paths
from assay.report import junit, terminal
from assay.results.baseline import stale
from assay.results.cases import Report, read_report
from assay.results.store import keep_verdict
from assay.results.verdict import Verdict, judge, misaddressed
from assay.running.reframe_options import Given
from assay.running.runs import Run
from assay.running.supervise import Ended


def conclude(own: Run, end: Ended, given: Given, seconds: float) -> Verdict:
    """Judge a run, and show and write what came of it.

    :param seconds: the wall time of the run.
    """
    report, problems = None, list(end.problems)
    if end.stopped:
        problems.append(f'stopped by {end.stopped.name}: not everything was measured')
    elif end.code < 0:
        problems.append(f'ReFrame was killed by {signal.Signals(-end.code).name}')
    if own.report.exists():
        try:
            report = read_report(own.report)
        except AssayError as error:
            problems.append(str(error))
    log = own.log.read_text(errors='replace').splitlines() if own.log.is_file() else None
    judged = judge(report, end.code, log, end.printed)
    problems += judged.problems
    if report:
        problems += misaddressed(report, given.variables, given.parameters)
    try:
        if given.report and report:
            given.report.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(own.report, given.report)
    except OSError as error:
        problems.append(f'{given.report}: cannot be written: {error.strerror}')
    if report:
        problems += _kept(report, Verdict(tuple(problems), judged.disturbed))
    verdict = Verdict(tuple(problems), judged.disturbed)
    try:
        if given.junit:
            junit.write(given.junit, report, verdict, log or [], seconds)
    except AssayError as error:
        verdict = Verdict((*problems, str(error)), judged.disturbed)
        if report:
            _kept(report, verdict)
    if report:
        terminal.show(report, log or [], end.printed)
        terminal.warn(stale(report, paths.REFERENCES))
    terminal.conclude(report, verdict, seconds)
    return verdict


def _kept(report: Report, verdict: Verdict) -> list[str]:
    """Store a verdict in the history; why that could not be done."""
    try:
        keep_verdict(report['session_info']['uuid'], verdict.word, verdict.problems)
    except AssayError as error:
        return [str(error)]
    return []
