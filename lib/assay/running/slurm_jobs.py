"""In ReFrame's process: jobs of Slurm, also of one that does not answer for a while."""

from __future__ import annotations

import errno
import math
import os
import re
import shlex
import time
from itertools import count, takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import reframe.core.runtime as rt
from reframe.core.exceptions import JobSchedulerError, ReframeError, SpawnedProcessError
from reframe.core.schedulers import Job, slurm

from assay import AssayError, say
from assay.machine import job_states
from assay.machine.slurm import PASSES, node_list, nodes_with
from assay.running import node_choice
from assay.running.allocation import named_nodes, options_for_sbatch, take_option
from assay.running.asking import (
    OUTAGE,
    PATIENCE,
    UNKNOWN,
    AsksInMeasure,
    Record,
    answer_of,
)
from assay.text import plain
from assay.tools import NoAnswerError

#: Seconds that scancel may take, on which a run that is stopped waits for each of its jobs; and
#: seconds after which one is tried again that failed.
CANCELLING, AGAIN = 10, 60

#: Seconds for which squeue may not know a new job: so long ReFrame waits, too.
NEW = 2.0

#: Seconds for which an answer of Slurm to what its nodes do holds: a run submits hundreds of jobs
#: at once, and others take nodes meanwhile.
NODES_HOLD = 2.0

#: The longest that is waited between two submissions.
LONGEST = 60

# What there is instead of accounts where a site keeps none.
_DISABLED = re.compile(rf'accounting storage is disabled|^\S+: {os.strerror(errno.ENOENT)}$')

_OPTION = '#SBATCH '

# All states of a node that a job could have now: one that is switched off is switched on for it,
# and those in reservations are for jobs of these alone.
_FREE = {'IDLE', 'CLOUD', 'DYNAMIC_NORM', 'DYNAMIC_FUTURE', 'POWERED_DOWN', 'POWERING_UP'}
_FREE |= {'RESERVED', 'MAINTENANCE'}

# What names of jobs begin with that build.
_BUILD = 'rfm_build_'

# States of a database that the queue knows better: it may have started the job again.
_MAY_COME_BACK = {'PREEMPTED', 'NODE_FAIL', 'BOOT_FAIL', 'REQUEUED', 'PENDING', ''}


class _Job(slurm._SlurmJob):
    _nodelist: list[str]

    @property
    def nodelist(self) -> Any:
        """Its nodes, once it has ended; Slurm, which may not answer, is not asked for them."""
        if job_states.has_ended(self.state) and not self._nodelist:
            # Of a job that had none Slurm says `None assigned`.
            self._nodelist = named_nodes(self._nodespec or '')
        return self._nodelist


class MakesJobs:
    """A scheduler of ReFrame's with jobs of a class of our own."""

    job_class: type[slurm._SlurmJob]

    def make_job(self, *args: Any, **kwargs: Any) -> Any:
        made: Any = super().make_job(*args, **kwargs)  # type: ignore[misc]
        made.__class__ = self.job_class  # with what ReFrame asks of it for several clusters
        return made


class WithoutDatabase(MakesJobs, AsksInMeasure, slurm.SqueueJobScheduler):
    """Slurm without an accounting database: some minutes after its end a job is forgotten."""

    product = 'Slurm'
    job_class = _Job

    _not_cancelled = -math.inf
    _default_partition: str | None = None
    # For all partitions, which may have the same nodes: when Slurm told of them, and what it told.
    _nodes: tuple[float, frozenset[Any]] = (-math.inf, frozenset())
    _promised = node_choice.Promised(lambda job: job_states.has_ended(job.state))

    def emit_preamble(self, job: Any) -> Any:
        """With the nodes that were chosen for a job, if that many are free."""
        choice = node_choice.choice_of_run()
        if choice and not job.name.startswith(_BUILD):
            per_node = int(job.num_tasks_per_node or job.num_tasks or 1)
            count = -(-(job.num_tasks or 1) // per_node)
            free = self._free(job)
            nodes = choice.take(free, count)
            self._promised.add(job, nodes)
            job.options = [*job.options, *([f'--nodelist={node_list(nodes)}'] if nodes else [])]
        return super().emit_preamble(job)

    def _free(self, job: Any) -> set[str]:
        """The nodes that a job could have now; none if Slurm does not tell."""
        try:
            if time.monotonic() - self._nodes[0] > NODES_HOLD:
                WithoutDatabase._nodes = time.monotonic(), frozenset(self.allnodes())
            nodes = {*self._nodes[1]}
            # Of several constraints ReFrame's filter takes the last, and it reads no comma.
            words = options_for_sbatch(job.sched_access, [*job.options, *job.cli_options])
            constraint, others = take_option(words, '-C', '--constraint')
            if constraint:
                able = nodes_with(constraint, {node.name: node.active_features for node in nodes})
                nodes = {node for node in nodes if node.name in able}
            asked = SimpleNamespace(sched_access=[shlex.join(others)], options=[], cli_options=[])
            nodes = self.filternodes(asked, nodes)
        except (ReframeError, AssayError):
            return set()
        free = {node.name for node in nodes if 'IDLE' in node.states and node.states <= _FREE}
        return free - self._promised.nodes

    def _get_default_partition(self) -> Any:
        self._default_partition = self._default_partition or super()._get_default_partition()
        return self._default_partition

    def ask(self, jobs: list[Job]) -> dict[str, Record]:
        return self._queue(jobs)

    def _queue(self, jobs: list[Any]) -> dict[str, Record]:
        numbers = ','.join(job.jobid for job in jobs)
        shown = '"%i|%T|%N|%r"'
        said = self._run(f'{self._squeue} -h -t all -j {numbers} -o {shown}', 'Invalid job id')
        found = {}
        for line in said.splitlines():
            number, state, nodes, reason = [*line.split('|', 3), '', '', ''][:4]
            if number in (job.jobid for job in jobs):
                why = reason.strip('()')
                found[number] = Record(_state(state), '' if why == 'None' else why, nodes)
        for number, record in found.items():
            if record.state in job_states.ENDED:
                record.exit_code = self._exit_code(number)
        return found

    def _exit_code(self, number: str) -> int | None:
        """The exit code of a job that has ended; None if Slurm does not know it."""
        told = answer_of(f'scontrol --oneliner show job {number}')
        code = re.search(r'\bExitCode=(\S+)', told.stdout)
        return _exit_code(code[1]) if code else None

    def no_longer_known(self, job: Any, seconds: float) -> Record | None:
        if seconds < NEW:
            return None
        return Record('CANCELLED' if job.is_cancelling else 'COMPLETED', nodes=job._nodespec or '')

    def is_cancelled(self, job: Any) -> bool:
        return bool(job.is_cancelling)

    def _run(self, command: str, *nothing: str, patience: int = PATIENCE) -> str:
        """The output of one of Slurm's commands.

        :param nothing: errors that only say that there is nothing.
        :raises NoAnswerError: if it fails, or prints nothing but an error.
        """
        told = answer_of(command, patience)
        failed = told.returncode or ('error' in told.stderr and not told.stdout.strip())
        if failed and not any(words in told.stderr for words in nothing):
            said = told.stderr or told.stdout or f'exit code {told.returncode}'
            raise NoAnswerError(f'{command.split()[0]}: {said.strip()}')
        return str(told.stdout)

    def why_blocked(self, reason: str, seconds: float) -> str | None:
        return job_states.in_vain(reason, seconds, self._cancel_reasons)

    def submit(self, job: Any) -> None:
        arguments = [
            *(job.sched_access if self._sched_access_in_submit else ()),
            job.script_filename,
        ]
        deadline = time.monotonic() + OUTAGE
        for tries in count():
            try:
                told = self.sbatch(arguments).stdout
                break
            except SpawnedProcessError as error:
                said = plain(error.stderr or error)
                if not self._passes(said) or time.monotonic() > deadline:
                    raise
            if not tries:
                say(f'{job.name} is not submitted yet: {said}; tried again')
            time.sleep(min(2 << tries, LONGEST))
            if told := self._submitted(job):
                break
        # A wrapper of the site may print more.
        number = re.search(r'Submitted batch job (\d+)', told)
        if not number:
            raise JobSchedulerError(f'sbatch does not say the number of a job: {plain(told, 300)}')
        job._jobid, job._submit_time = number[1], time.time()

    def sbatch(self, args: list[str]) -> Any:
        """Give it the options in a job's script on its command line as well.

        A site's wrapper of sbatch may look at these alone.
        """
        *given, script = args
        return super().sbatch([*given, *options_in(Path(script).read_text()), script])

    def _passes(self, said: str) -> bool:
        """Whether what sbatch says passes without anybody who does something."""
        site = self._resubmit_on_errors
        return bool(PASSES.search(said) or (site and re.search('|'.join(site), said)))

    def _submitted(self, job: Any) -> str:
        """A line as of sbatch: a job was submitted by a command that did not hear of it."""
        name = shlex.quote(job.name)
        try:
            told = self._run(f'{self._squeue} -h -u {os.getuid()} -n {name} -o "%i|%Z"')
        except NoAnswerError:
            return ''
        folder = os.path.realpath(job.workdir)
        for line in told.splitlines():
            number, _, where = line.partition('|')
            # An earlier job of the case may not have gone yet.
            if number not in self._jobs and os.path.realpath(where) == folder:
                return f'Submitted batch job {number}'
        return ''

    def cancel_many(self, jobs: Any) -> None:
        if not jobs:
            return
        command = f'scancel {" ".join(job.jobid for job in jobs)}'
        gone = ('Invalid job id', 'already completing', 'already finished')
        try:
            if time.monotonic() - self._not_cancelled < AGAIN:
                raise NoAnswerError('scancel has just failed')
            self._run(command, *gone, patience=CANCELLING)
        except NoAnswerError as error:
            self._not_cancelled = time.monotonic()
            say(f'jobs may be left ({error}). To cancel them: {command}')
        for job in jobs:
            job._is_cancelling = True


class WithDatabase(WithoutDatabase):
    """Slurm as sacct tells of it, and squeue of what sacct does not know."""

    _without_database = False

    def ask(self, jobs: list[Any]) -> dict[str, Record]:
        known: dict[str, Record] = {}
        silent = False
        if not self._without_database:
            try:
                known = self._accounts(jobs)
            except NoAnswerError as error:
                silent = True
                if _DISABLED.search(str(error)):
                    self._without_database = True
                    say(
                        f"{plain(error, 100)}, so squeue is asked: write 'scheduler': 'squeue' in "
                        "the partition's configuration"
                    )
        states = {number: record.state for number, record in known.items()}
        unsure = [job for job in jobs if states.get(job.jobid, '') in _MAY_COME_BACK]
        if not unsure:
            return known
        try:
            return known | self._queue(unsure)
        except NoAnswerError:
            if silent or any(job.jobid not in known for job in unsure):
                raise
            # As far as is known they come back.
            return known | {job.jobid: Record('PENDING') for job in unsure}

    def _accounts(self, jobs: list[Any]) -> dict[str, Record]:
        since = time.strftime('%F', time.localtime(min(job.submit_time for job in jobs)))
        numbers = ','.join(job.jobid for job in jobs)
        with rt.temp_environment(env_vars={'SLURM_TIME_FORMAT': '%s'}):
            said = self._run(
                f'{self._sacct} -S {since} -P -j {numbers} -o jobid,state,exitcode,end,nodelist'
            )
        found = {}
        for line in said.splitlines():
            number, state, code, end, nodes = [*line.split('|', 4), '', '', '', ''][:5]
            if number in (job.jobid for job in jobs):
                by = re.search(r' by (\d+)', state)
                found[number] = Record(
                    _state(state),
                    nodes=nodes,
                    exit_code=_exit_code(code),
                    ended=float(end) if end.isdigit() else None,
                    by=by[1] if by else '',
                )
        return found

    def no_longer_known(self, job: Any, seconds: float) -> Record | None:
        if self._without_database:
            return super().no_longer_known(job, seconds)
        if seconds > UNKNOWN:
            self._give_up(
                job,
                f'neither sacct nor squeue knows its job for {UNKNOWN / 60:.0f} min: whether it '
                'ran is unknown',
            )
        return None


def options_in(script: str) -> list[str]:
    """The options of sbatch at the head of a script, quoted for a shell, without remarks."""
    head = takewhile(lambda line: line.startswith('#') or not line.strip(), script.splitlines())
    options = [line.removeprefix(_OPTION) for line in head if line.startswith(_OPTION)]
    return [shlex.join(shlex.split(option, comments=True)) for option in options]


def _state(word: str) -> str:
    """A state as it is, of ``CANCELLED by 0`` and ``CANCELLED+``."""
    return (re.match(r'\w*', word) or [''])[0]


def _exit_code(code: str) -> int | None:
    """The exit code as a shell has it: 137 for ``0:9``, ended by signal 9; None for no code."""
    parts = re.fullmatch(r'(\d+):(\d+)', code)
    if not parts:
        return None
    own, signal = map(int, parts.groups())
    return own or (128 + signal if signal else 0)
