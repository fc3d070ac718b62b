"""Where the time of a case went before and after: what the witness saw in its jobs.

Its reports are in the folders of runs, of which only the newest are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from assay import AssayError
from assay.results import store
from assay.results.cases import counted, title
from assay.results.history import History, StoredRun
from assay.witness.profile import figures, summarise_calls
from assay.witness.reading import WitnessError, read
from assay.witness.report import Report


@dataclass(frozen=True)
class Shares:
    """Of the wall time of a job, the mean of its ranks."""

    computation: float
    transfer: float
    waiting: float


@dataclass(frozen=True)
class TimeSpent:
    """Where the time of a case went, in one run before and one after.

    :param case: its name, partition and environment.
    :param call: the MPI call whose time changed most; empty if there is none.
    :param seconds: of that call before and after, over all ranks.
    """

    case: str
    before: Shares
    after: Shares
    call: str
    seconds: tuple[float, float]


#: The folder in which a run keeps what a case left, by the case's name, partition and environment.
Folders = Mapping[str, Path]


def folders(history: History, run: StoredRun) -> Folders:
    """Those of a run; none of a report from elsewhere, whose paths mean nothing here."""
    found: dict[str, Path] = {}
    if run.file is None:
        for _, report in store.reports([run.uuid], history.database):
            if not isinstance(report, AssayError):
                kept = ((title(case), case.get('outputdir')) for case in counted(report))
                found |= {name: Path(folder) for name, folder in kept if folder}
    return found


def time_spent(before: Folders, after: Folders, cases: Iterable[str]) -> TimeSpent | None:
    """Of the first case of which both sides still have what the witness saw; None if none has."""
    for case in cases:
        then, now = (_seen(side.get(case)) for side in (before, after))
        if then and now:
            return _compared(case, then, now)
    return None


def _seen(folder: Path | None) -> Report | None:
    """What the witness saw; None where that is gone or damaged, or says nothing of time."""
    if folder is None:
        return None
    try:
        report = read(folder / 'witness.json')
    except WitnessError:
        return None
    return report if report.has_profile else None


def _compared(case: str, before: Report, after: Report) -> TimeSpent:
    old, new = ({call.name: call.time for call in summarise_calls(one)} for one in (before, after))
    calls = sorted(old.keys() | new.keys())
    call = max(calls, key=lambda name: abs(new.get(name, 0) - old.get(name, 0)), default='')
    seconds = (old.get(call, 0.0), new.get(call, 0.0))
    return TimeSpent(case, _shares(before), _shares(after), call, seconds)


def _shares(report: Report) -> Shares:
    seen = figures(report)
    computation = 1 - seen.transfer_share - seen.imbalance_share
    return Shares(computation, seen.transfer_share, seen.imbalance_share)
