"""What a run ends with: it is judged, shown, and written where the command line says."""

from __future__ import annotations

import shutil
import signal
from dataclasses import dataclass, replace

from assay import AssayError, paths
from assay.report import junit, terminal
from assay.results.baseline import stale
from assay.results.cases import Report, read_report
from assay.results.store import keep_verdict
from assay.results.verdict import Verdict, judge, misaddressed
from assay.running.reframe_options import Given
from assay.running.runs import Run
from assay.running.supervise import Ended


@dataclass(frozen=True)
class Concluded:
    """What came of a session of ReFrame.

    :param report: None if it left none that can be read.
    :param log: the lines of its log; None if there is none.
    """

    report: Report | None
    log: list[str] | None
    verdict: Verdict


def judged(own: Run, end: Ended, given: Given) -> Concluded:
    """Judge a session, without a word."""
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
    found = judge(report, end.code, log, end.printed)
    problems += found.problems
    if report:
        problems += misaddressed(report, given.variables, given.parameters)
    return Concluded(report, log, replace(found, problems=tuple(problems)))


def conclude(own: Run, end: Ended, given: Given, seconds: float) -> Verdict:
    """Judge a run, and show, store and write what came of it.

    :param seconds: the wall time of the run.
    """
    found = judged(own, end, given)
    report, log, disturbed = found.report, found.log, found.verdict.disturbed
    problems = [*found.verdict.problems]
    try:
        if given.report and report:
            given.report.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(own.report, given.report)
    except OSError as error:
        problems.append(f'{given.report}: cannot be written: {error.strerror}')
    if report:
        problems += kept(report, Verdict(tuple(problems), disturbed))
    verdict = Verdict(tuple(problems), disturbed)
    try:
        if given.junit:
            junit.write(given.junit, report, verdict, log or [], seconds)
    except AssayError as error:
        verdict = Verdict((*problems, str(error)), disturbed)
        if report:
            kept(report, verdict)
    if report:
        terminal.show(report, log or [], end.printed)
        terminal.warn(stale(report, paths.REFERENCES))
    terminal.conclude(report, verdict, seconds)
    return verdict


def kept(report: Report, verdict: Verdict) -> list[str]:
    """Store a verdict in the history; why that could not be done."""
    try:
        keep_verdict(report['session_info']['uuid'], verdict.word, verdict.problems)
    except AssayError as error:
        return [str(error)]
    return []
