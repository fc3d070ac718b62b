"""In ReFrame's process: jobs of PBS Professional, OpenPBS and Torque."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from reframe.core.exceptions import SpawnedProcessError
from reframe.core.schedulers import pbs

from assay import say
from assay.machine import job_states
from assay.quantities import clock_seconds
from assay.running.asking import UNKNOWN, AsksInMeasure, Record, answer_of
from assay.text import plain
from assay.tools import NoAnswerError

# What qstat says of jobs that it has forgotten, or has among those that ended, which is no failure.
_NONE = re.compile(r'unknown job|job has finished', re.IGNORECASE)

_ATTRIBUTE = re.compile(r'^ {2,}(\S+) = (.*)$', re.MULTILINE)


class Pbs(AsksInMeasure, pbs.PbsJobScheduler):
    """PBS, as ``qstat -f`` tells of it, and of jobs that it has finished ``qstat -xf``."""

    product = 'PBS'

    #: The commands that are asked, the next for jobs that the one before does not know.
    asked: tuple[str, ...] = ('qstat -f', 'qstat -xf')

    def ask(self, jobs: list[Any]) -> dict[str, Record]:
        found: dict[str, Record] = {}
        for command in self.asked:
            if missing := [job.jobid for job in jobs if job.jobid not in found]:
                found |= self._told(command, missing)
        for job in jobs:
            if record := found.get(job.jobid):
                self._complete(job, record)
        return found

    def _told(self, command: str, numbers: list[str]) -> dict[str, Record]:
        answer = answer_of(f'{command} {" ".join(numbers)}')
        # Of several jobs it may know some, and tell of the others beside them.
        if answer.returncode and not _NONE.search(answer.stderr):
            said = answer.stderr or answer.stdout or f'exit code {answer.returncode}'
            raise NoAnswerError(said.strip())
        return {number: _record(facts) for number, facts in _jobs(answer.stdout)}

    def _complete(self, job: Any, record: Record) -> None:
        """Complete a record by what is known only here: whether the job's output has come."""
        if record.nodes:
            self._update_nodelist(job, record.nodes)
            record.nodes = ','.join(dict.fromkeys(job.nodelist))
        if record.reason and record.state not in job_states.ENDED:
            past = self._past.get(job.jobid)
            if past is None or past.reason != record.reason:
                say(f'job {job.jobid} waits: {plain(record.reason, 200)}')
        if record.state in job_states.ENDED and not (job.cancelled or self._has_output(job)):
            record.state = 'EXITING'

    def _has_output(self, job: Any) -> bool:
        folder = Path(job.workdir)
        return all((folder / name).exists() for name in (job.stdout, job.stderr))

    def no_longer_known(self, job: Any, seconds: float) -> Record | None:
        if job.cancelled:
            return Record('CANCELLED')
        if self._has_output(job):
            return Record('COMPLETED')
        if seconds > UNKNOWN:
            self._give_up(
                job,
                f'PBS does not know its job for {UNKNOWN / 60:.0f} min, and left no output in '
                f'{job.workdir}: whether it ran is unknown',
            )
        return None

    def is_cancelled(self, job: Any) -> bool:
        return bool(job.cancelled)

    def cancel_many(self, jobs: Any) -> None:
        for job in jobs:
            self.cancel(job)

    def cancel(self, job: Any) -> None:
        try:
            super().cancel(job)
        except SpawnedProcessError as error:
            if not _NONE.search(error.stderr or ''):
                say(f'a job may be left ({plain(error, 300)}). To cancel it: qdel {job.jobid}')
            job._cancelled = True


class PbsPro(Pbs):
    """PBS Professional and OpenPBS keep finished jobs for a while, and tell of them with ``-x``."""

    asked = ('qstat -xf',)


class Torque(Pbs):
    """Torque, whose ``-x`` means XML."""

    asked = ('qstat -f',)
    TASKS_OPT = pbs.TorqueJobScheduler.TASKS_OPT


def _jobs(told: str) -> list[tuple[str, dict[str, str]]]:
    """The jobs of what qstat prints, by their numbers; long values go on in lines with a tab."""
    told = re.sub(r'\n\t', '', told)
    parts = re.split(r'^Job Id: *(\S+).*$', told, flags=re.MULTILINE)[1:]
    return [
        (number, {name.lower(): value for name, value in _ATTRIBUTE.findall(facts)})
        for number, facts in zip(parts[::2], parts[1::2], strict=True)
    ]


def _record(facts: dict[str, str]) -> Record:
    code = facts.get('exit_status')
    number = int(code) if code and re.fullmatch(r'-?\d+', code) else None
    used, asked = (
        clock_seconds(facts.get(f'{kind}.walltime', '')) or 0
        for kind in ('resources_used', 'resource_list')
    )
    comment = facts.get('comment', '')
    state = job_states.of_pbs(
        facts.get('job_state', ''), number, bool(asked and used >= asked), comment
    )
    return Record(
        state,
        comment if state not in ('RUNNING', 'EXITING') else '',
        facts.get('exec_host', ''),
        # One of a signal is no program's.
        number if number is not None and state in ('COMPLETED', 'FAILED') else None,
    )
