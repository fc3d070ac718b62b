"""Causes of the failures of stored runs, as somebody who looked into them found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay import AssayError
from assay.results.failures import failures
from assay.results.history import History, StoredRun
from assay.results.run_selectors import of_cases
from assay.results.store import TriageCause, keep_cause
from assay.text import first_few, plain, unknown_name

#: What can be behind a failure.
CLASSES = ('hardware', 'network', 'mpi', 'scheduler', 'filesystem', 'suite', 'unknown')


@dataclass(frozen=True)
class TriagedFailure:
    """A failure of a stored run.

    :param case: name, partition and environment of what failed; builds fail too.
    :param cause: what is behind it; None if nobody has said so yet.
    """

    run: StoredRun
    case: str
    reason: str
    cause: TriageCause | None


def triaged_failures(history: History, runs: Sequence[StoredRun]) -> Iterator[TriagedFailure]:
    """The failures of some runs, those that waited for another one left out.

    :raises AssayError: if the report of one can no longer be read.
    """
    for run in runs:
        if run.summary.problem or not run.summary.failed:
            continue
        known = {cause.failed: cause for cause in run.causes}
        for one in failures(history.run_of(run)):
            if one.files:  # else it was never run
                yield TriagedFailure(run, one.case, one.reason, known.get(one.case))


def classify(
    history: History, runs: Sequence[StoredRun], words: str, kind: str, note: str
) -> TriagedFailure:
    """Store what is behind a failure.

    :param runs: there has to be one.
    :param words: what the name of the case is, or what no other that failed has in it.
    :raises AssayError: if that is not one failure, or the class is none, or it cannot be written.
    """
    if kind not in CLASSES:
        raise AssayError(f'--class {kind}: {unknown_name(kind, "class", CLASSES)}.')
    if len(runs) != 1:
        raise AssayError(f'{len(runs)} runs are meant: a failure is of one. Take an identifier.')
    (run,) = runs
    if run.file:
        raise AssayError(f'{run.file} is not stored here, so nothing can be kept of it.')
    every = [*triaged_failures(history, runs)]
    is_meant = of_cases(words)
    found = [one for one in every if one.case == words] or [
        one for one in every if is_meant(one.case)
    ]
    if len(found) != 1:
        those = found or every
        names = first_few([one.case for one in those]) if those else 'nothing failed in it'
        which = f'{len(found)} failures of run {run.name} have {plain(words)!r} in their names'
        raise AssayError(f'{which}: {names}.')
    cause = TriageCause(found[0].case, kind, plain(note))
    keep_cause(run.uuid, cause, history.database)
    return TriagedFailure(run, found[0].case, found[0].reason, cause)
