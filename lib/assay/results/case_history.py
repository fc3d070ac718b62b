"""The history of each case in the stored runs of a system: when it ran, how long, how it ended.

The table of figures has neither times nor cases that were skipped, so the reports are read. By the
same times :class:`TimeLeft` tells how long a run will go on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from statistics import median

from assay import AssayError, paths
from assay.results import store
from assay.results.cases import Case, Run, deciding_attempt, is_no_evidence
from assay.results.failures import is_bad, is_good
from assay.results.history import History, StoredRun
from assay.results.rows import is_number
from assay.text import plain

#: How many of the newest runs of a system are read: a case in none of them counts as never run.
NEWEST = 100

#: The newest runs of a case that give its time and its figures.
LATELY = 5

#: The newest runs of a case in which a failure still counts.
FORGIVEN = 3

#: The spread of a held figure, as a fraction of its median, above which its case varies a lot.
VARIES = 0.1

#: Seconds above which a time is damaged: a week.
LONGEST = 7 * 24 * 3600

#: From the worst to none: as they are worth looking at again.
TROUBLES = ('failed', 'disturbed', 'not good lately', 'varies', '')

#: The newest sessions from which the times of cases are taken.
ASKED = 5

#: The check that looks for known defects of MPIs, and how many of its runs are looked through, from
#: the newest on.
DEFECTS, MOST_RUNS = 'KnownDefect', 10

#: The part of a run during which the pace of earlier runs counts as well: what was measured so far
#: may have been the quick cases.
TRUST = 0.2


@dataclass
class CaseHistory:
    """The history of a case.

    :param last: when the newest run began that ran it, whatever the outcome; None if there is none.
        Runs that a wrong clock dates into the future do not count.
    :param in_future: when the newest of those claims to have begun.
    :param seconds: how long it took, at most :data:`LATELY` values, the newest last; without runs
        in which it was measured again or waited for others.
    :param endings: at most :data:`FORGIVEN` words: ``good``, ``failed`` or ``disturbed``.
    :param figures: the values of each figure with a bound, at most :data:`LATELY`.
    :param seconds_of_steps: at most :data:`LATELY` that it took as a step of an allocation: any
        other job may have waited in a queue.
    """

    last: datetime | None = None
    in_future: datetime | None = None
    seconds: list[float] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)
    seconds_of_steps: list[float] = field(default_factory=list)

    @property
    def trouble(self) -> str:
        """The reason to look at it again, one of :data:`TROUBLES`."""
        if self.endings and self.endings[-1] != 'good':
            return self.endings[-1]
        if any(one != 'good' for one in self.endings):
            return 'not good lately'
        return 'varies' if any(map(_varies, self.figures.values())) else ''

    def add(self, run: StoredRun, tries: list[Case]) -> None:
        """Learn from the attempts of a run that began after all runs before.

        :param tries: the attempts at the case, the first one first.
        """
        case = deciding_attempt(tries)
        if case.had_no_time:
            return
        if run.is_of_the_future:
            self.in_future = max(self.in_future or run.begun, run.begun)
        else:
            self.last = max(self.last or run.begun, run.begun)
        took = sum(_seconds_of_stages(one) for one in tries)
        waited = any(one.replaced or one.no_evidence for one in tries)
        if 0 < took <= LONGEST and not waited:
            self.seconds = [*self.seconds, took][-LATELY:]
            if re.fullmatch(r'\d+\.\d+', case.job.id):
                self.seconds_of_steps = [*self.seconds_of_steps, took][-LATELY:]
        # What fails while faults are brought in, or in a draft, is no reason to look at it again.
        if run.summary.purpose or case.result == 'skip':
            return
        ending = 'disturbed' if is_no_evidence(case) else 'failed' if is_bad(case) else 'good'
        self.endings = [*self.endings, ending][-FORGIVEN:]
        for one in case.figures if ending == 'good' else ():
            if is_number(one.value) and one.has_bound:
                values = [*self.figures.get(one.name, ()), one.value]
                self.figures[one.name] = values[-LATELY:]


def case_histories(history: History, system: str) -> dict[str, CaseHistory]:
    """The histories of cases in the newest runs of a system, by the case's full name.

    Runs that cannot be read tell nothing. Builds have a history of their time as well.

    :param system: it may be ``name:partition``.
    """
    name = system.partition(':')[0]
    runs = [one for one in history.runs if one.summary.system == name and not one.summary.problem]
    by_uuid = {one.uuid: one for one in runs[-NEWEST:]}
    known: dict[str, CaseHistory] = {}
    for uuid, run in store.runs(by_uuid, history.database) if by_uuid else ():
        for tries in run.attempts if isinstance(run, Run) else ():
            case = deciding_attempt(tries)
            if case.result != 'abort':
                name = case.display_name if case.is_fixture else case.title
                known.setdefault(name, CaseHistory()).add(by_uuid[uuid], tries)
    return known


def _seconds_of_stages(case: Case) -> float:
    """The seconds of a case's stages; NaN where one of them is no time.

    What only builds starts no job: ReFrame counts its turn to run, which the jobs of others have.
    """
    only_builds = case.is_fixture and not case.job.id
    seconds = replace(case.seconds, run=None) if only_builds else case.seconds
    return sum(one if one >= 0 else math.nan for one in seconds.of_stages if one is not None)


def _varies(values: list[float]) -> bool:
    middle = median(values)
    spread = median(abs(value - middle) for value in values)
    return len(values) >= 3 and spread > VARIES * abs(middle)


def earlier_seconds(database: Path = paths.RESULTS_DATABASE) -> dict[str, float]:
    """How many seconds each case, by its title, added to the newest stored session that ran it.

    That includes its share of the time between jobs. Where jobs ran beside each other, it is less
    than the job's own time. Empty if the database cannot be read, which others report.
    """
    found: dict[str, float] = {}
    with suppress(AssayError):
        newest = [one.uuid for one in store.sessions(database) if not one.problem][-ASKED:]
        for _, run in store.runs(newest, database) if newest else ():
            if isinstance(run, Run):
                found |= _seconds_of_cases(run)
    return found


def _seconds_of_cases(run: Run) -> dict[str, float]:
    built, ran = 0.0, []
    for case in run.cases:
        if case.is_fixture:
            built += case.seconds.compile or 0.0
        elif case.result != 'skip' and is_number(case.seconds.run) and case.seconds.run > 0:
            ran.append((case.title, case.seconds.run))
    measuring = (run.seconds or 0.0) - built
    if not (ran and is_number(measuring) and measuring > 0):
        return {}
    share = measuring / sum(seconds for _, seconds in ran)
    return {name: share * seconds for name, seconds in ran}


def known_defects(database: Path = paths.RESULTS_DATABASE) -> list[str]:
    """The sentences of cases whose last run showed a known defect of an MPI.

    The commands that show the history report problems of the database.
    """
    said: dict[str, str] = {}
    with suppress(AssayError):
        for _, run in store.runs(store.newest_with(DEFECTS, MOST_RUNS, database), database):
            for case in run.own_cases if isinstance(run, Run) else ():
                if case.check == DEFECTS and is_good(case):
                    said.setdefault(case.full_name, plain(case.finding))
    return sorted({one for one in said.values() if ' has: ' in one})


class TimeLeft:
    """The time until a selection of cases will have ended.

    :param names: the titles of the cases.
    :param earlier: seconds of cases in earlier runs, by title.
    """

    def __init__(self, names: Collection[str], earlier: Mapping[str, float]) -> None:
        known = [earlier[name] for name in names if name in earlier]
        usual = median(known) if known else 1.0
        self._open = {name: earlier.get(name, usual) for name in names}
        is_known = 2 * len(known) >= len(names)
        self._trusted = TRUST * sum(self._open.values()) if is_known else 0.0
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
        """How long it will still take; None if that is unknown."""
        done = self._done + self._trusted
        if not done:
            return None
        spent = self._trusted + (0.0 if self._began is None else now - self._began)
        return sum(self._open.values()) * spent / done
