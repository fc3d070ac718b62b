"""In ReFrame's process: when a scheduler is asked for its jobs, and what becomes of them.

ReFrame asks as often as it looks at its cases, ends the run if there is no answer, and waits for
ever for a job in a state that it does not know. Here a scheduler is asked soon after a change and
then ever less often; one that does not answer is asked again; and each job comes to an end, with a
sentence that says why, if the scheduler does not bring it to one.
"""

from __future__ import annotations

import math
import shlex
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import reframe.core.runtime as rt
from reframe.core.exceptions import JobError
from reframe.core.schedulers import Job

from assay import say
from assay.machine import job_states
from assay.text import plain
from assay.tools import NoAnswerError, ask

#: Seconds between two questions: about jobs that have changed, and about others. A site that
#: wants fewer sets ``poll_rate_max`` and ``poll_rate_min`` in ReFrame's configuration.
SOON, SELDOM = 2.0, 30.0

#: Of the time since the last change that is waited for the next.
SHARE = 0.25

#: Seconds that a command may take.
PATIENCE = 60

#: Seconds for which a scheduler may not answer before its jobs are given up.
OUTAGE = 1800.0

#: Seconds that a job may be in a state that passes (:data:`assay.machine.job_states.PASSING`).
PASSING = 600.0

#: Seconds in which a scheduler that does not know a job may come to know it: a database lags.
UNKNOWN = 300.0

#: Seconds beyond its time limit after which a job is ended that its scheduler has not.
OVERTIME = 900.0

#: Seconds that jobs which were cancelled have to end before a run that is stopped writes its
#: report: all of them together, though ReFrame waits for one after the other.
STOPPING = 20.0

#: What ReFrame sets if nobody does.
_RATES = {'poll_rate_max': 10, 'poll_rate_min': 0.1}


def answer_of(command: str, patience: int = PATIENCE) -> subprocess.CompletedProcess[str]:
    """The answer of a scheduler's command, whatever its exit code.

    :raises NoAnswerError: if it does not end in time, or cannot be started.
    """
    return ask(shlex.split(command), patience)


@dataclass
class Record:
    """The record of a scheduler on a job.

    :param state: in Slurm's words.
    :param reason: why it waits.
    :param nodes: that it has, as Slurm writes them.
    :param exit_code: once it has ended.
    :param ended: seconds since 1970.
    :param by: who cancelled it: a number of a user.
    """

    state: str
    reason: str = ''
    nodes: str = ''
    exit_code: int | None = None
    ended: float | None = None
    by: str = ''


@dataclass
class _Past:
    """The states of a job that were seen so far; times are of a monotonic clock."""

    state: str
    since: float
    running_since: float | None = None
    reason: str = ''
    reason_since: float = 0.0


class AsksInMeasure:
    """A scheduler of ReFrame's that asks in measure, and lets no job wait for ever.

    What it is mixed into gives :meth:`ask`, and ReFrame's ``cancel_many``.
    """

    cancel_many: Any

    #: Of the scheduler, in sentences.
    product: str

    _asked = _changed = _silent_since = -math.inf
    _stopping_since: float | None = None
    _jobs: frozenset[str] = frozenset()

    def __init__(self) -> None:
        super().__init__()
        self._past: dict[str, _Past] = {}
        self._given_up: set[str] = set()
        option = rt.runtime().get_option
        rates = {name: option(f'general/0/{name}') for name in _RATES}
        self._soon, self._seldom = (
            seconds if rates[name] == _RATES[name] else 1 / rates[name]
            for name, seconds in zip(_RATES, (SOON, SELDOM), strict=True)
        )

    def ask(self, jobs: list[Job]) -> dict[str, Record]:
        """The scheduler's records of jobs, by their numbers.

        :raises NoAnswerError: if it does not answer.
        """
        raise NotImplementedError

    def no_longer_known(self, job: Job, seconds: float) -> Record | None:
        """The state of a job that the scheduler does not know; None to ask again.

        :param seconds: since it was last known, or submitted.
        """
        raise NotImplementedError

    def is_cancelled(self, job: Any) -> bool:
        """Whether the scheduler was told to end a job."""
        raise NotImplementedError

    def why_blocked(self, reason: str, seconds: float) -> str | None:
        """Why a job that has waited for a reason for so long cannot start; None if it may."""
        return job_states.for_good(reason)

    def poll(self, *jobs: Job | None) -> None:
        waiting: list[Any] = [job for job in jobs if job is not None and not self.finished(job)]
        now = time.monotonic()
        if numbers := frozenset(job.jobid for job in waiting) - self._jobs:
            self._jobs |= numbers
            self._changed = now
        if not waiting or now - self._asked < self._pause(now):
            return
        try:
            records = self.ask(waiting)
        except NoAnswerError as error:
            self._asked = time.monotonic()
            self._was_silent(waiting, str(error))
            return
        self._asked = time.monotonic()
        if self._silent_since > -math.inf:
            silent = self._asked - self._silent_since  # a command may wait for a while itself
            say(f'{self.product} answers again, after {silent:.0f} s')
            self._silent_since = -math.inf
        for job in waiting:
            self._heed(job, records.get(job.jobid), now)

    def finished(self, job: Any) -> bool:
        """Whether a job has ended, or is given up: ReFrame then raises its exception."""
        return job.jobid in self._given_up or job_states.has_ended(job.state)

    def wait(self, job: Any) -> None:
        """Wait for the end of a job; for that of one that was cancelled not for ever."""
        while not self.finished(job):
            if self.is_cancelled(job):
                self._stopping_since = self._stopping_since or time.monotonic()
                if time.monotonic() - self._stopping_since > STOPPING:
                    return
            self.poll(job)
            time.sleep(0.5)

    def _pause(self, now: float) -> float:
        since = now - max(self._changed, self._silent_since)
        return max(self._soon, min(self._seldom, since * SHARE))

    def _was_silent(self, jobs: Iterable[Any], said: str) -> None:
        now, said = time.monotonic(), plain(said, 300)
        if self._silent_since == -math.inf:
            self._silent_since = now
            say(
                f'{self.product} does not answer ({said}): it is asked again for '
                f'{OUTAGE / 60:.0f} min'
            )
        elif now - self._silent_since > OUTAGE:
            for job in jobs:
                self._give_up(
                    job, f'{self.product} has not answered for {OUTAGE / 60:.0f} min: {said}'
                )

    def _heed(self, job: Any, record: Record | None, now: float) -> None:
        """Note what a scheduler says of a job, and end the job if nothing else does."""
        past = self._past.setdefault(job.jobid, _Past('', now))
        if record is None:
            if past.state:
                past.state, past.since = '', now
            record = self.no_longer_known(job, now - past.since)
            if record is None:
                return
        if record.state != past.state:
            self._changed = past.since = now
            past.state = record.state
        if record.reason != past.reason:
            past.reason, past.reason_since = record.reason, now
        job._state = f'{record.state} by {record.by}' if record.by else record.state
        job._nodespec = record.nodes
        if record.state == 'SUSPENDED':
            job.was_suspended = True
        if record.state in job_states.ENDED:
            job._exitcode = record.exit_code
            job._completion_time = record.ended or job._completion_time
        elif why := self._cannot_go_on(job, record, past, now):
            self.cancel_many([job])
            self._give_up(job, why)

    def _cannot_go_on(self, job: Any, record: Record, past: _Past, now: float) -> str | None:
        """Why a job would never end; None if it may."""
        state, lasts = record.state, now - past.since
        if state in job_states.STUCK:
            why = plain(record.reason, 200)
            return f'{job_states.STUCK[state]}{f" ({why})" if why else ""}'
        if state in job_states.PASSING:
            nodes = record.nodes or 'its nodes'
            why = job_states.PASSING[state].format(nodes=nodes)
            return (
                f'its job is {state} for {PASSING / 60:.0f} min: {why}' if lasts > PASSING else None
            )
        if state in job_states.RUNNING:
            past.running_since = past.running_since or now
            over = now - past.running_since - (job.time_limit or math.inf)
            return (
                f'its job runs {OVERTIME / 60:.0f} min beyond its time limit, and {self.product} '
                'does not end it'
                if over > OVERTIME
                else None
            )
        past.running_since = None  # it starts anew
        reason = plain(record.reason, 200)
        if words := self.why_blocked(record.reason, now - past.reason_since):
            return f'the scheduler did not start its job: {reason}: {words}'
        if job.max_pending_time and time.time() - job.submit_time > job.max_pending_time:
            hours = f'{job.max_pending_time / 3600:g} h'
            return (
                f'its job waited for {hours} and did not start: {state} ({reason or "no reason"})'
            )
        return None

    def _give_up(self, job: Any, why: str) -> None:
        job._exception = JobError(plain(why), job.jobid)
        self._given_up.add(job.jobid)
