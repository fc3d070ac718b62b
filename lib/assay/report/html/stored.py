"""Pages of runs: of one that is stored, and of one that has just ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.report.html import page, screened
from assay.report.html.contents import Subject, contents
from assay.results.cases import Report
from assay.results.history import History, StoredRun, load
from assay.results.verdict import Verdict


def write(path: Path, history: History, runs: Sequence[StoredRun]) -> None:
    """The page of the newest of some runs, compared with the others.

    :param runs: oldest first, at least one.
    :raises AssayError: if one cannot be read, or the file cannot be written.
    """
    *others, shown = runs
    report = history.report(shown)
    # Of a report from elsewhere the machine is another, whatever it is called.
    seen = screened.of_run(report) if shown.file is None else ()
    subject = Subject(report, shown.verdict, shown.problems, None, others, history, seen)
    page.write(path, contents(subject))


def write_ended(path: Path, report: Report, verdict: Verdict, log: Sequence[str]) -> None:
    """The page of a run that has just ended, with the history that it is part of.

    :raises AssayError: if the history cannot be read, or the file cannot be written.
    """
    seen = screened.of_run(report)
    subject = Subject(report, verdict.word, verdict.problems, log, (), load(), seen)
    page.write(path, contents(subject))
