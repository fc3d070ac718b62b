"""All stored runs of a database, with what is known of each, and their figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError, paths
from assay.results import store
from assay.results.cases import Run
from assay.results.perflogs import runs_of
from assay.results.reframe_report import read_reframe_report
from assay.results.verdict import Summary, summary
from assay.text import many

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class StoredRun:
    """A run that was stored, here or in a report or perflogs from elsewhere.

    :param uuid: ReFrame's identifier of the session.
    :param begun: when it began, UTC.
    :param ended: when it ended, UTC.
    :param summary: what is in it.
    :param verdict: the word of the last line of ``assay run``; None where that did not run it, or
        did not come to its end.
    :param problems: why the verdict was no other.
    :param file: the report, or the folder of perflogs, that it is from; None of the database.
    :param causes: what somebody found to be behind its failures.
    """

    uuid: str
    begun: datetime
    ended: datetime
    summary: Summary
    verdict: str | None = None
    problems: tuple[str, ...] = ()
    file: Path | None = None
    causes: tuple[store.TriageCause, ...] = ()

    @property
    def name(self) -> str:
        """The part of the identifier that people read and write."""
        return self.uuid[:8]

    @property
    def is_dated(self) -> bool:
        """Whether it is known when it began."""
        return self.begun != store.BEGINNING

    @property
    def is_of_the_future(self) -> bool:
        """Whether a clock was wrong: that of the run, or this one."""
        return self.begun > datetime.now(timezone.utc)


@dataclass(frozen=True)
class History:
    """The runs of a database, and their figures.

    :param runs: oldest first, with those that cannot be read.
    :param database: where they are stored.
    """

    runs: tuple[StoredRun, ...]
    database: Path
    _figures: pl.DataFrame

    def notices(self) -> list[str]:
        """Problems of the history, a sentence each."""
        found = [
            f'{path} was set aside, because it was damaged: its runs are not in the history. '
            '`sqlite3 FILE .recover` saves what can be read of it; removed, it is forgotten.'
            for path in store.damaged_databases(self.database)
        ]
        found += [
            f'{run.summary.problem}; `assay forget {run.name}` drops it.'
            for run in self.runs
            if run.summary.problem
        ]
        future = [run for run in self.runs if run.is_of_the_future and not run.summary.problem]
        if future:
            first = f'run {future[0].name} began on {future[0].begun:%Y-%m-%d}'
            others = f', and {many(len(future) - 1, "more run")} later' if future[1:] else ''
            found.append(
                f'{first}{others}, which is in the future: a clock was wrong. `last` does not '
                'count what is in the future.'
            )
        return found

    def run_of(self, run: StoredRun) -> Run:
        """A stored run as it was measured.

        :raises AssayError: if it can no longer be read.
        """
        if run.file:
            return next(one for one in _runs(run.file) if one.uuid == run.uuid)
        for _, found in store.runs([run.uuid], self.database):
            if isinstance(found, AssayError):
                raise found
            return found
        raise AssayError(f'run {run.name} was removed from {self.database} meanwhile.')

    def figures(self, runs: Iterable[StoredRun]) -> pl.DataFrame:
        """The table of figures of some runs (:data:`assay.results.figures.SCHEMA`).

        :raises AssayError: if the report of one can no longer be read.
        """
        import polars as pl

        from assay.results.figures import plain_rows, table

        runs = list(runs)
        stored = [run.uuid for run in runs if run.file is None and not run.summary.problem]
        frames = [self._figures]
        if len(stored) < len(self.runs):
            frames = [self._figures.filter(pl.col('run').is_in(stored))]
        wanted = {run.uuid for run in runs if run.file}
        for file in dict.fromkeys(run.file for run in runs if run.file):
            found = [one for one in _runs(file) if one.uuid in wanted]
            frames += [table(plain_rows(one)) for one in found]
        return pl.concat(frames)


def load_history(database: Path = paths.RESULTS_DATABASE) -> History:
    """All stored runs; none where nothing was stored yet.

    :raises AssayError: if the database is damaged, locked, of another form, or cannot be read.
    """
    from assay.results.figures import load_table

    sessions, verdicts = store.sessions(database), store.verdicts(database)
    causes = store.causes(database)
    read = load_table(database, [one.uuid for one in sessions if not one.problem])
    runs = []
    for one in sessions:
        found = Summary(problem=one.problem) if one.problem else read.summaries.get(one.uuid)
        if found is None:  # it was removed meanwhile
            continue
        verdict = verdicts.get(one.uuid)
        if isinstance(verdict, AssayError):
            found = found if found.problem else Summary(problem=str(verdict))
            verdict = None
        word, problems = verdict or (None, ())
        own = causes.get(one.uuid, ())
        runs.append(StoredRun(one.uuid, one.begun, one.ended, found, word, problems, causes=own))
    return History(tuple(runs), database, read.figures)


def remove_runs(history: History, runs: Iterable[StoredRun]) -> list[StoredRun]:
    """Remove runs from the database, and give back the space they took.

    :raises AssayError: if that cannot be done.
    """
    runs = list(runs)
    if runs:
        store.remove([run.uuid for run in runs], history.database)
    return runs


def of_file(file: Path) -> list[StoredRun]:
    """The run of a report of ReFrame's, or the runs of a folder of perflogs, oldest first.

    They may be of another machine.

    :raises AssayError: if it is neither.
    """
    return [
        StoredRun(one.uuid, one.begun, one.ended, summary(one), file=file) for one in _runs(file)
    ]


def _runs(file: Path) -> list[Run]:
    return runs_of(file) if file.is_dir() else [read_reframe_report(file)]
