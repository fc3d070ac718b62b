"""Pages of runs: of one that is stored, and of one that has just ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay import AssayError
from assay.report.html import page, screened
from assay.report.html.contents import Subject, contents
from assay.results.cases import Run
from assay.results.history import History, StoredRun, load
from assay.results.verdict import Verdict
from assay.text import plain


def write(path: Path, history: History, runs: Sequence[StoredRun]) -> None:
    """The page of the newest of some runs, compared with the others.

    Of two systems the newest run of each stands beside the other.

    :param runs: oldest first, at least one.
    :raises AssayError: if one cannot be read, they are of more systems, or the file cannot be
        written.
    """
    systems = {stored.summary.system: stored for stored in runs if stored.summary.system}
    if len(systems) > 2:
        names = ', '.join(sorted(plain(name) for name in systems))
        raise AssayError(
            f'the runs are of {len(systems)} systems, {names}, and a page shows two side by side: '
            'choose runs of fewer, or one system by --system NAME.'
        )
    shown = runs[-1]
    other = systems.keys() - {shown.summary.system} if shown.summary.system else ()
    there = systems[next(iter(other))] if other else None
    others = [stored for stored in runs[:-1] if stored.summary.system not in other]
    run = history.run_of(shown)
    subject = Subject(
        run,
        shown.verdict,
        shown.problems,
        None,
        others,
        history,
        # Of a report from elsewhere the machine is another, whatever it is called.
        screened.of_run(run) if shown.file is None else (),
        (there, history.run_of(there)) if there else None,
    )
    page.write(path, contents(subject))


def write_ended(path: Path, run: Run, verdict: Verdict, log: Sequence[str]) -> None:
    """The page of a run that has just ended, with the history that it is part of.

    :raises AssayError: if the history cannot be read, or the file cannot be written.
    """
    seen = screened.of_run(run)
    subject = Subject(run, verdict.word, verdict.problems, log, (), load(), seen)
    page.write(path, contents(subject))
