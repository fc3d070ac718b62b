"""The time of a case before and after, by its parts, as the witness saw it in the jobs.

Its reports are in the folders of runs, and only the newest of these are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from assay import AssayError
from assay.results import store
from assay.results.history import History, StoredRun
from assay.running.runs import KEPT
from assay.witness.profile import figures, summarise_calls
from assay.witness.reading import WitnessError, read_witness
from assay.witness.report import Report


@dataclass(frozen=True)
class Shares:
    """Shares of a job's wall time, the mean of its ranks; for several jobs the medians."""

    computation: float
    transfer: float
    waiting: float


@dataclass(frozen=True)
class TimeSpent:
    """The time of a case by its parts: medians over its jobs before, and over those after.

    :param case: its name, partition and environment.
    :param jobs: how many of them still tell, before and after.
    :param call: the MPI call whose time changed most; empty if there is none.
    :param seconds: of that call before and after, over all ranks.
    """

    case: str
    jobs: tuple[int, int]
    before: Shares
    after: Shares
    call: str
    seconds: tuple[float, float]


#: The folders in which runs keep what a case left, by the case's name, partition and environment.
Folders = Mapping[str, Sequence[Path]]


def folders(history: History, runs: Sequence[StoredRun]) -> Folders:
    """The folders of the newest of some runs; a report from elsewhere has none here.

    :param runs: oldest first.
    """
    found: dict[str, dict[Path, None]] = {}
    of_here = [run.uuid for run in runs[-KEPT:] if run.file is None]
    for _, run in store.runs(of_here, history.database):
        for case in [] if isinstance(run, AssayError) else run.counted:
            if folder := case.files.output:
                found.setdefault(case.title, {})[Path(folder)] = None
    return {case: [*of_case] for case, of_case in found.items()}


def time_spent(before: Folders, after: Folders, cases: Iterable[str]) -> TimeSpent | None:
    """Compare the first case that has the witness's report on both sides; None if none has."""
    for case in cases:
        then, now = (
            [report for folder in side.get(case, ()) if (report := _seen(folder))]
            for side in (before, after)
        )
        if then and now:
            return _compared(case, then, now)
    return None


def _seen(folder: Path) -> Report | None:
    """The witness's report of a job; None if it is gone, damaged, or without times."""
    try:
        report = read_witness(folder / 'witness.json')
    except WitnessError:
        return None
    return report if report.has_profile else None


def _compared(case: str, before: Sequence[Report], after: Sequence[Report]) -> TimeSpent:
    old, new = _seconds(before), _seconds(after)
    calls = sorted(old.keys() | new.keys())
    call = max(calls, key=lambda name: abs(new.get(name, 0) - old.get(name, 0)), default='')
    seconds = (old.get(call, 0.0), new.get(call, 0.0))
    jobs = (len(before), len(after))
    return TimeSpent(case, jobs, _shares(before), _shares(after), call, seconds)


def _seconds(jobs: Sequence[Report]) -> dict[str, float]:
    """The time of each MPI call, over all ranks; in a job that did not make it, 0."""
    found = [{call.name: call.time for call in summarise_calls(job)} for job in jobs]
    names = {name for calls in found for name in calls}
    return {name: median(calls.get(name, 0.0) for calls in found) for name in names}


def _shares(jobs: Sequence[Report]) -> Shares:
    seen = [figures(job) for job in jobs]
    return Shares(
        computation=median(1 - one.transfer_share - one.imbalance_share for one in seen),
        transfer=median(one.transfer_share for one in seen),
        waiting=median(one.imbalance_share for one in seen),
    )
