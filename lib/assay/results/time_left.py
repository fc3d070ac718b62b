"""How long a run will go on: by its pace so far, and what its cases took in earlier runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from statistics import median

from assay import AssayError, paths
from assay.results import store
from assay.results.cases import Run
from assay.results.rows import is_number

#: Earlier sessions that are asked how long cases take.
ASKED = 5

#: The part of a run for which its pace is rather that of earlier runs: what was measured so far may
#: have been the quick cases.
TRUST = 0.2


def earlier_seconds(database: Path = paths.RESULTS_DATABASE) -> dict[str, float]:
    """Seconds by which each case, by its title, made the newest stored session longer that ran it.

    With its share of what passed between jobs. Where jobs ran beside each other it is less than the
    job's own time. Nothing if the database cannot be read, which others tell.
    """
    found: dict[str, float] = {}
    try:
        newest = [one.uuid for one in store.sessions(database) if not one.problem][-ASKED:]
        for _, run in store.runs(newest, database) if newest else ():
            if not isinstance(run, AssayError):
                found |= _seconds(run)
    except AssayError:
        pass
    return found


def _seconds(run: Run) -> dict[str, float]:
    built, ran = 0.0, []
    for case in run.cases:
        if case.is_fixture:
            built += case.seconds.compile or 0.0
        elif is_number(case.seconds.run) and case.seconds.run > 0:
            ran.append((case.title, case.seconds.run))
    measuring = (run.seconds or 0.0) - built
    if not (ran and is_number(measuring) and measuring > 0):
        return {}
    share = measuring / sum(seconds for _, seconds in ran)
    return {name: share * seconds for name, seconds in ran}


class TimeLeft:
    """The time until a selection of cases will have ended.

    :param names: the titles of the cases.
    :param earlier: seconds of cases in earlier runs, by title.
    """

    def __init__(self, names: Collection[str], earlier: Mapping[str, float]) -> None:
        known = [earlier[name] for name in names if name in earlier]
        usual = median(known) if known else 1.0
        self._open = {name: earlier.get(name, usual) for name in names}
        self._total = sum(self._open.values())
        self._trusted = TRUST * self._total if 2 * len(known) >= len(names) else 0.0
        self._done = 0.0
        self._began: float | None = None

    def begins(self, now: float) -> None:
        """A job was submitted.

        :param now: seconds of a clock.
        """
        if self._began is None:
            self._began = now

    def ends(self, name: str, counts: bool) -> None:
        """A case has ended.

        :param counts: whether it ran; one that was skipped says nothing of the pace.
        """
        weight = self._open.pop(name, 0.0)
        self._done += weight if counts else 0.0

    def seconds(self, now: float) -> float | None:
        """How long it will still take; None if nobody knows."""
        done = self._done + self._trusted
        if not done:
            return None
        spent = self._trusted + (0.0 if self._began is None else now - self._began)
        return sum(self._open.values()) * spent / done
