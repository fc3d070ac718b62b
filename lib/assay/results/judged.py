"""What came of a session of ReFrame: judged by what it left, and its verdict kept."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

from assay import AssayError
from assay.results.cases import Run
from assay.results.reframe_report import read_report
from assay.results.store import keep_verdict
from assay.results.verdict import Verdict, judge, misaddressed
from assay.running.reframe_options import Given
from assay.running.runs import RunFolder
from assay.running.supervise import Ended


@dataclass(frozen=True)
class Concluded:
    """What came of a session of ReFrame.

    :param run: None if it left no report that can be read.
    :param log: the lines of its log; None if there is none.
    """

    run: Run | None
    log: list[str] | None
    verdict: Verdict


def judged(own: RunFolder, end: Ended, given: Given) -> Concluded:
    """Judge a session, without a word."""
    run, problems = None, list(end.problems)
    if end.stopped:
        problems.append(f'stopped by {end.stopped.name}: not everything was measured')
    elif end.code < 0:
        problems.append(f'ReFrame was killed by {signal.Signals(-end.code).name}')
    if own.report.exists():
        try:
            run = read_report(own.report)
        except AssayError as error:
            problems.append(str(error))
    log = own.log.read_text(errors='replace').splitlines() if own.log.is_file() else None
    found = judge(run, end.code, log, end.printed)
    problems += found.problems
    if run:
        problems += misaddressed(run, given.variables, given.parameters)
    return Concluded(run, log, replace(found, problems=tuple(problems)))


def kept(run: Run, verdict: Verdict) -> list[str]:
    """Store a verdict in the history; why that could not be done."""
    try:
        keep_verdict(run.uuid, verdict.word, verdict.problems)
    except AssayError as error:
        return [str(error)]
    return []
