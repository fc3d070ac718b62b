"""In ReFrame's process: each job of a check as a step of one allocation.

Slurm's own steps do the work. The script of a case runs on the first of its nodes, in a step that
overlaps all others (``srun --overlap``): it uses up nothing that a program of the case needs. The
programs that it starts are steps of their own, by ``srun`` or by an MPI's launcher, on the nodes
that its variables name. No other case has one of these nodes meanwhile.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shlex
import subprocess
import tempfile
import time
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar

import reframe.core.runtime as rt
from reframe.core import backends
from reframe.core.exceptions import JobError, SkipTestError
from reframe.core.launchers import mpi
from reframe.core.logging import getlogger
from reframe.core.schedulers import slurm
from reframe.frontend.executors import RegressionTask, policies

from assay import AssayError, locks, paths, say
from assay.files import explain_errors
from assay.machine import job_states
from assay.machine.slurm import BROKEN, PASSES, node_list, node_states, query, without_defaults
from assay.running import allocation, node_choice
from assay.running.asking import OUTAGE, STOPPING
from assay.running.node_plan import NodePlan, Want
from assay.running.selection import Listed
from assay.running.slurm_jobs import MakesJobs, options_in
from assay.text import fold_nodes, plain

Answer = TypeVar('Answer')

SCRIPT = Path(__file__).with_name('step.sh')

#: Cases that wait for nodes at most: ReFrame looks at each of them whenever one ends.
MOST = 10_000

#: How often a step is tried that could not be started.
TRIES = 3

#: Seconds between two questions whether steps have ended that were stopped, and seconds after which
#: their nodes are set aside; then seconds between two such questions.
AGAIN, PATIENCE, LOOK = 0.5, 60.0, 10.0

#: How much longer than lately a case may take near the end of the job, and seconds beside: one that
#: the end cuts off fails the run. Without these the last case was cut off in both of two jobs.
LONGER, MARGIN = 1.25, 5.0

#: Seconds for which the job's end holds that Slurm told.
LIMIT_HOLDS = 60.0

#: Seconds between two looks at steps while ReFrame prepares or judges cases.
SOON = 0.1

#: What a host says that has no room for one more process or open file until others end.
_FULL = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}

#: Options of a job that Slurm hands on to its steps, by the variable that does it.
_HANDED_ON = {
    'threads_per_core': 'SLURM_THREADS_PER_CORE',
    'hint': 'SLURM_HINT',
    'network': 'SLURM_NETWORK',
    'mem': 'SLURM_MEM_PER_NODE',
    'mem_per_cpu': 'SLURM_MEM_PER_CPU',
    'cpu_freq': 'SLURM_CPU_FREQ_REQ',
}

#: The node on which srun could not start a step, and what keeps it from doing so on any.
_NAMED = re.compile(r'failed on node (\S+):')
_OF_NO_NODE = re.compile(r'step limit reached|(unrecognized|invalid) option', re.IGNORECASE)


class _Job(slurm._SlurmJob):
    """A job of ReFrame's that is a step."""

    #: Seconds since 1970 at which it left the queue of the allocation.
    began: float | None = None
    #: What :mod:`assay.running.reframe_plugin` asks of a job whose end is seen at once.
    cancel_time = None
    client: subprocess.Popen[bytes] | None = None
    #: Whether ReFrame has not looked at it since it was submitted.
    is_new = False
    #: Of its case, and the class of its check; empty of a build.
    title = check = ''
    tries = 0

    @property
    def nodelist(self) -> Any:
        return self._nodelist

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended, which ReFrame need not find out."""
        return not job_states.has_ended(self._state)

    @property
    def proc(self) -> subprocess.Popen[bytes] | None:
        """The srun that waits for its end, if it goes on."""
        return self.client if self.client and self.client.returncode is None else None


@dataclass(eq=False)
class _Running:
    """A case that has nodes.

    :param said: what its srun says, and the script around it.
    :param state: how it ended, as soon as that is known; it still has to be cleared up.
    """

    job: Any
    nodes: list[str]
    client: subprocess.Popen[bytes]
    said: IO[bytes]
    began: float = field(default_factory=time.monotonic)
    state: str = ''
    exit_code: int | None = None
    stopped: float = 0.0

    @property
    def words(self) -> str:
        self.said.seek(0)
        return self.said.read().decode(errors='replace')

    def number(self, name: str) -> int | None:
        """The number that the script around its own printed for ``step`` or ``exit``, if it did."""
        found = re.search(rf'^assay-{name} (\d+)$', self.words, re.MULTILINE)
        return int(found[1]) if found else None


class _Allocation:
    """The job whose steps are the cases of this process, whatever partition of ReFrame's."""

    def __init__(self, number: str) -> None:
        self.number = number
        now = allocation.await_boot(number)
        # What somebody runs there by hand. Slurm tells steps of an array's other jobs as well.
        going_on = allocation.running_steps(number).items()
        self._foreign = {step for step, its in going_on if not its.isdisjoint(now.nodes)}
        # Of all nodes, by the options that they are asked for with.
        self._states: dict[tuple[str, ...], dict[str, str]] = {}
        self._is_sized = os.environ.get(allocation.SIZED) == number
        self._over = '' if now.is_running else f'the job {number} does not run'
        #: Of the lock by which this process has the job's nodes for itself, to its end.
        self.handle = _lock_of(number)
        if self.handle is None:
            self._over = f'another run has its cases in the job {number}'
        self.nodes = frozenset(now.nodes)
        # By the monotonic clock; and the seconds that the job had left at first.
        self._until, self._had = time.monotonic() + now.left, now.left
        path = os.environ.get(allocation.TIMES)
        told = json.loads(Path(path).read_text()) if path else {}
        self._times: dict[str, float] | None = told.get(allocation.STEPS)
        self._times_of_jobs: dict[str, float] = told.get(allocation.JOBS, {})
        # The longest of those that have ended well here, by check and time limit.
        self._times_here: dict[tuple[str, float | None], float] = {}
        self._first: frozenset[str] | None = None
        if allocation.FIRST in told:
            self._first = frozenset(told[allocation.FIRST])
        shared = any(
            one.extras.get('on_this_machine') for one in rt.runtime().system.partitions
        )  # a virtual cluster, whose nodes have the same CPUs
        choice = node_choice.choice_of_run()
        at_once, choose = 1 if shared else math.inf, choice.take if choice else None
        self._plan: NodePlan[Any] = NodePlan(now.nodes, at_once, choose)
        self._running: list[_Running] = []
        self._submitted = 0
        # Those on which a step was started.
        self._able: set[str] = set()
        # Nodes that get no cases for now, and since when: steps do not end there, or did not start.
        self._aside: dict[str, float] = {}
        self._asked = self._looked = self._polled = -math.inf
        self._timed = time.monotonic()
        self._silent_since: float | None = None
        #: When the run was stopped, if it was: then nothing starts any more.
        self.stopping_since: float | None = None
        if self._foreign:
            say(
                f'{", ".join(sorted(self._foreign))} go on in the job {number}, and may disturb '
                'what is measured'
            )
        if now.is_shared:
            say(
                f'other jobs may run on the nodes of the job {number}, beside what is measured: '
                'ask for one with --exclusive'
            )

    def submit(self, job: Any, want: Want) -> None:
        """Let a case wait for its nodes."""
        self._submitted += 1
        job._jobid, job._submit_time = f'{self.number}+{self._submitted}', time.time()
        job._state = 'PENDING'
        job.want, job.is_new = want, True
        if self._over:
            self._not_run(job)
            return
        self._plan.add(job, want)
        self._refuse()

    def poll(self, jobs: Iterable[Any]) -> None:
        """See what has ended, and start what can be: ReFrame has submitted all that it could."""
        for job in jobs:
            job.is_new = False
        for one in [*self._running]:
            if one not in self._running:  # the allocation has ended with another
                break
            if one.state:
                continue
            if one.client.poll() is not None:
                self._judge(one)
            elif one.job.time_limit and time.monotonic() - one.began > one.job.time_limit:
                _stop(one, 'TIMEOUT')
        self._clear()
        self._look_aside()
        self._start()
        self._polled = time.monotonic()

    def look(self) -> None:
        """The same while ReFrame is at work on other cases, once it has submitted the first."""
        if self._running and time.monotonic() - self._polled >= SOON:
            self.poll(())

    def stop(self) -> None:
        """End all cases, those that wait as well: the run is stopped."""
        if self.stopping_since:
            return
        self.stopping_since = time.monotonic()
        for one in self._running:
            if not one.state:
                _stop(one, 'CANCELLED')
        self._asked = -math.inf
        self._clear()
        self._start()

    def _start(self) -> None:
        if self.stopping_since:
            for job in self._plan.waiting():
                job._state = 'CANCELLED'
            return
        while not self._over and (found := self._plan.next()):
            if self._is_too_late(found[0]):
                self._plan.has_ended(found[1])
                self._not_run(found[0])
                continue
            try:
                self._launch(*found)
            except OSError as error:
                self._not_launched(*found, error)
                if error.errno in _FULL:
                    break
        if self._over:
            for job in self._plan.waiting():
                self._not_run(job)

    def is_last(self, job: Any) -> bool:
        """Whether a case has its turn only when no others wait."""
        return self._first is not None and bool(job.title) and job.title not in self._first

    def _is_too_late(self, job: Any) -> bool:
        """Whether a case would hardly end before the allocation does.

        It needs as long as it took lately, or else as any case of its check with the same limit
        did here, and some more. If that is not known half of its time limit counts, as few come
        near to that; but no more than half of the time that there was at first, or a short
        allocation would start nothing, and no more than a job of its own took, with its wait in the
        queue.
        """
        if self._times is None or not job.title:
            return False
        needs = self._times.get(job.title, self._times_here.get((job.check, job.time_limit)))
        if needs is not None:
            needs = LONGER * needs + MARGIN
        else:
            half = min(job.time_limit or math.inf, self._had) / 2
            needs = min(half, self._times_of_jobs.get(job.title, half))
        now = time.monotonic()
        if now - self._timed > (LOOK if self._until - now < needs else LIMIT_HOLDS):
            self._timed = now
            self._left()  # somebody may have given it more, or less
        return bool(self._over) or self._until - now < needs

    def _launch(self, job: Any, nodes: list[str]) -> None:
        folder = Path(job.workdir)
        for name in (job.stdout, job.stderr):
            (folder / name).write_bytes(b'')
        said = tempfile.TemporaryFile()  # noqa: SIM115 (it is read when the step has ended)
        job.client = subprocess.Popen(
            [
                *('srun', f'--jobid={self.number}', '--overlap', '--nodes=1', '--ntasks=1'),
                *(f'--nodelist={nodes[0]}', f'--job-name={job.name}', '--mem=0', '--mpi=none'),
                *('--cpu-bind=none', '--input=none', f'--chdir={folder}', *job.for_srun),
                *(str(SCRIPT), job.script_filename, job.stdout, job.stderr),
                *(f'{name}={value}' for name, value in self._variables(job, nodes).items()),
            ],
            cwd=folder,
            env=without_defaults(),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,  # or Ctrl-C would reach it
        )
        job.began, job._state = time.time(), 'RUNNING'
        self._running.append(_Running(job, nodes, job.client, said))

    def _not_launched(self, job: Any, nodes: list[str], error: OSError) -> None:
        """Fail a case that this host cannot start; it waits if there may be room for it later."""
        self._plan.has_ended(nodes)
        if error.errno in _FULL and self._running:
            self._plan.add(job, job.want)
        else:
            self._fail(job, f'this host could not start its job: {_told(error)}')

    def _variables(self, job: Any, nodes: list[str]) -> dict[str, str]:
        """The variables of a job of these nodes."""
        per_node, count = _per_node(job), job.num_tasks or 1
        full, rest = divmod(count, per_node)
        ranks = [f'{per_node}(x{full})' if full > 1 else f'{per_node}'] if full else []
        found = {
            'SLURM_JOB_NAME': job.name,
            'SLURM_SUBMIT_DIR': job.workdir,
            **dict.fromkeys(('SLURM_NTASKS', 'SLURM_NPROCS'), f'{count}'),
            'SLURM_TASKS_PER_NODE': ','.join([*ranks, *([f'{rest}'] if rest else [])]),
            **dict.fromkeys(('SLURM_NNODES', 'SLURM_JOB_NUM_NODES'), f'{len(nodes)}'),
            **dict.fromkeys(('SLURM_NODELIST', 'SLURM_JOB_NODELIST'), node_list(nodes)),
        }
        if job.num_tasks_per_node:
            found['SLURM_NTASKS_PER_NODE'] = f'{job.num_tasks_per_node}'
        if job.num_cpus_per_task:
            found['SLURM_CPUS_PER_TASK'] = f'{job.num_cpus_per_task}'
        found.update(job.handed_on)
        return found

    def _ask(self, question: Callable[[str], Answer]) -> Answer | None:
        """Slurm's answer on the job; None if it is away, which ends the run if it lasts."""
        try:
            answer = question(self.number)
        except AssayError as error:
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if now - self._silent_since > OUTAGE:
                say(f'Slurm has not answered for {OUTAGE / 60:.0f} min: {error}')
                self._end()
            return None
        self._silent_since = None
        return answer

    def _judge(self, one: _Running) -> None:
        """See how a case ended whose srun has: its own exit code is 0 also if a node died."""
        one.exit_code = one.number('exit')
        if one.exit_code == 0:
            one.state = 'COMPLETED'
            self._finish(one)
            return
        nodes = self._left()
        if nodes is None:
            return
        dead = [node for node in one.nodes if node not in nodes]
        if dead:
            one.state = 'NODE_FAIL'
        elif one.exit_code is not None:
            one.state = 'FAILED'
        elif one.number('step') is not None:
            one.state = 'CANCELLED'
        else:
            self._could_not_start(one)
            return
        _note(one, dead)

    def _left(self) -> set[str] | None:
        """The nodes that the job still has; None if Slurm is away, or the job has ended."""
        now = self._ask(allocation.ask_standing)
        if now is None:
            return None
        if not now.is_running:
            self._end(self._how_it_ended())
            return None
        self._until = time.monotonic() + now.left
        if gone := self._plan.nodes - {*now.nodes}:
            self._plan.lose(gone)
            say(
                f'{fold_nodes([*gone])} died, and {len(self._plan.nodes)} nodes of the job '
                f'{self.number} are left'
            )
        return {*now.nodes}

    def _could_not_start(self, one: _Running) -> None:
        """Try the case elsewhere: a node gets no more cases, or none for now, if it was its fault.

        That is the node which srun names; otherwise the first, on which the step was to be.
        """
        words = plain(one.words, 300)
        job, node = one.job, one.nodes[0]
        self._running.remove(one)
        named = _NAMED.search(one.words)
        if named and named[1] in one.nodes:
            node = named[1]
            self._aside[node] = time.monotonic()
            say(f'{node} gets no cases for {LOOK:.0f} s: {words}')
        elif not PASSES.search(words) and not _OF_NO_NODE.search(words) and self._starts_but(node):
            self._plan.lose([node])
            say(f'{node} gets no more cases, since it started none: {words}')
        elif not PASSES.search(words):
            self._aside[node] = time.monotonic()
        self._give_back(one)
        job.tries += 1
        if job.tries < TRIES:
            job._state = 'PENDING'
            self._plan.add(job, job.want)
        else:
            self._fail(job, f'the scheduler did not start its job: {words}')
        self._refuse()

    def _starts_but(self, node: str) -> bool:
        """Whether a step could be started on another node."""
        running = {one.nodes[0] for one in self._running if one.number('step') is not None}
        return bool((self._able | running) - {node})

    def _give_back(self, one: _Running) -> None:
        self._plan.has_ended(node for node in one.nodes if node not in self._aside)

    def _refuse(self) -> None:
        """Let no case wait for more nodes than there are.

        It fails if a job of its own does, and is skipped if the user's job is too small for it.
        """
        for job in self._plan.too_large():
            among = self.nodes if job.want.among is None else self.nodes & job.want.among
            left = len(among & self._plan.nodes)
            words = f'it needs {job.want.count} nodes, and the job {self.number} has {left}'
            if len(among) >= job.want.count:
                self._fail(job, f'the scheduler did not start its job: {words} left for it')
            elif why := self._why_no_job(job, len(among)):
                self._fail(job, f'the scheduler did not start its job: {words} for it{why}')
            else:
                job._exception = SkipTestError(f'{words} for it')
                # Without a number: the job would have no room for it in any time.
                job._jobid, job._state = '', 'CANCELLED'

    def _why_no_job(self, job: Any, own: int) -> str:
        """Why a case without enough nodes is wrong; empty if the user's job is too small for it.

        :param own: how many this job has for it.
        """
        words = shlex.split(' '.join([*job.sched_access, *job.options, *job.cli_options]))
        states = self._states.setdefault(tuple(words), {})
        if not states:
            with suppress(AssayError):
                states.update(allocation.states_for(words))
        out = [node for node in allocation.out_of_use(states) if node not in self.nodes]
        usable = len(states) - len(out)
        if states and job.want.count > usable:
            most = ', all that are up' if own >= usable else f'; no job can have more than {usable}'
            return most + (f' ({fold_nodes(out)} cannot be used)' if out else '')
        if lost := [node for node in out if node in job.named]:
            return f' ({fold_nodes(lost)} cannot be used)'
        if self._is_sized and not job.named:
            return f'; to ask for more: -J nodes={job.want.count}'
        return ''

    @staticmethod
    def _fail(job: Any, why: str) -> None:
        job._exception, job._state = JobError(why, job.jobid), 'CANCELLED'

    def _clear(self) -> None:
        """End what is left of cases on their nodes, and these cases with it.

        With the step of its script the programs that this started do not end, which are others.
        """
        now = time.monotonic()
        ending = [one for one in self._running if one.state]
        if not ending or now - self._asked < AGAIN:
            return
        self._asked = now
        for one in ending:
            one.stopped = one.stopped or now
        going_on = self._ask(allocation.running_steps)
        if going_on is None:
            for one in ending:
                one.stopped = now
            return
        left = {one: self._own(going_on, one.nodes) for one in ending}
        _scancel(step for those in left.values() for step in those)
        for one, those in left.items():
            if those or one.client.poll() is None:
                if now - one.stopped <= PATIENCE:
                    continue
                say(
                    f'{fold_nodes([*one.nodes])} gets no more cases until what ran there ends '
                    f'({", ".join(those)})'
                )
                self._aside.update(dict.fromkeys(one.nodes, now))
                one.client.kill()
                one.client.wait()
            self._finish(one)
        self._refuse()

    def _look_aside(self) -> None:
        """Give back nodes that were set aside, as soon as nothing goes on there.

        A node that died is known to Slurm only minutes later (SlurmdTimeout); until then its steps,
        and those of its case on other nodes, do not end.
        """
        now = time.monotonic()
        if self._over or not self._aside or now - self._looked < LOOK:
            return
        self._looked = now
        going_on = self._ask(allocation.running_steps)
        if going_on is None or self._left() is None:
            return
        _scancel(self._own(going_on, self._aside))
        free = [
            node
            for node, since in self._aside.items()
            if now - since >= LOOK and not self._own(going_on, [node])
        ]
        self._plan.give_back(free)
        lost = [
            node for node, since in self._aside.items() if node not in free and now - since > OUTAGE
        ]
        if lost:
            self._plan.lose(lost)
            say(f'{fold_nodes(lost)} gets no more cases: what ran there does not end')
        for node in (*free, *lost):
            del self._aside[node]
        self._refuse()

    def _own(self, going_on: dict[str, set[str]], nodes: Iterable[str]) -> list[str]:
        """The steps of cases that go on on nodes."""
        return [
            step
            for step, its in going_on.items()
            if step not in self._foreign and not its.isdisjoint(nodes)
        ]

    def _finish(self, one: _Running) -> None:
        job = one.job
        self._running.remove(one)
        self._give_back(one)
        job._nodelist = one.nodes
        if (step := one.number('step')) is not None:
            self._able.add(one.nodes[0])
            job._jobid = f'{self.number}.{step}'
        job._exitcode, job._completion_time = one.exit_code, time.time()
        if one.state == 'COMPLETED':
            kind = job.check, job.time_limit
            took = job._completion_time - job.began
            self._times_here[kind] = max(took, self._times_here.get(kind, 0.0))
        job._state = one.state
        one.said.close()

    def _how_it_ended(self) -> str:
        """Slurm's word for the end of the job, if it still knows it; that takes a moment."""
        for _ in range(TRIES):
            now = self._ask(allocation.ask_standing)
            if now is None or now.state not in job_states.ENDING:
                break
            if job_states.has_ended(now.state):
                return f' ({", ".join([now.state.lower(), *self._out_of_service(now)])})'
            time.sleep(AGAIN)
        return ''

    def _out_of_service(self, now: allocation.Standing) -> list[str]:
        """The nodes that it had and that failed or were drained, with the reason.

        That a node is reserved, or saves power, is no reason for the end of a job.
        """
        if now.state == 'TIMEOUT':
            return []
        try:
            states = node_states([now.partition] if now.partition else [])
        except AssayError:
            return []
        alike: defaultdict[str, list[str]] = defaultdict(list)
        for node, state in states.items():
            if node in self.nodes and state.startswith(('drain', *BROKEN)):
                alike[state].append(node)
        return [
            f'{fold_nodes(nodes)} {"is" if len(nodes) == 1 else "are"} {plain(state)}'
            for state, nodes in alike.items()
        ]

    def _end(self, how: str = '') -> None:
        """The allocation is over: what had not ended was not measured, and is not wrong.

        :param how: it ended, where that is known.
        """
        self._over = f'the job {self.number} has ended{how}'
        for one in [*self._running]:
            one.client.terminate()
            if one.number('exit') == 0 and not one.state:
                one.state, one.exit_code = 'COMPLETED', 0
            if one.state:  # it had ended before
                self._finish(one)
            else:
                self._not_run(one.job)
        self._running.clear()

    def _not_run(self, job: Any) -> None:
        if self._over:
            # By its warning the run does not count as good.
            _warn_once(f'{self._over}, and the cases that had not ended until then were not run')
        why = self._over or f'the job {self.number} had too little time left'
        job._exception = SkipTestError(f'not run: {why}')
        job._state = 'CANCELLED'


def _lock_of(job: str) -> int | None:
    """A handle with the lock of an allocation; None if another process has that.

    :raises AssayError: if it cannot be had at all.
    """
    path = paths.RUNS / f'job-{rt.runtime().system.name}-{job}.lock'
    with explain_errors(path, 'made'):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    if locks.try_lock(handle, path):
        return handle
    os.close(handle)
    return None


def _stop(one: _Running, state: str) -> None:
    one.state = state
    one.client.terminate()


def _scancel(steps: Iterable[str]) -> None:
    if numbers := [*steps]:
        with suppress(AssayError):  # one has ended, or Slurm is away: seen the next time
            query('scancel', *numbers)


@cache
def _warn_once(words: str) -> None:
    getlogger().warning(words)


def _note(one: _Running, dead: Iterable[str]) -> None:
    """Add to a case's errors what its srun said, where it tells why the case did not end well."""
    if one.state == 'FAILED':
        return
    lines = [line for line in one.words.splitlines() if not line.startswith('assay-')]
    lines += [f'Node failure on {node}' for node in dead]
    try:
        with Path(one.job.workdir, one.job.stderr).open('a') as errors:
            errors.writelines(f'{line}\n' for line in lines)
    except OSError as error:  # then its check could not tell it
        words = job_states.ENDED_BY_SCHEDULER[one.state]
        which = f' ({fold_nodes([*dead])})' if dead else ''
        one.job._exception = JobError(f'{words}{which}; {_told(error)}', one.job.jobid)


def _told(error: OSError) -> str:
    """The error in words, with its file if one is known."""
    return ': '.join(filter(None, [str(error.filename or ''), error.strerror or str(error)]))


def _per_node(job: Any) -> int:
    return int(job.num_tasks_per_node or job.num_tasks or 1)


@cache
def _allocation() -> _Allocation:
    return _Allocation(os.environ[allocation.VARIABLE])


class Steps(MakesJobs, slurm.SqueueJobScheduler):
    """Slurm; each of its jobs is a step of the allocation that the environment names."""

    job_class = _Job

    def __init__(self) -> None:
        super().__init__()
        for partition in rt.runtime().system.partitions:
            if self._config_prefix.endswith(f'/@{partition.name}/sched_options'):
                partition._max_jobs = MOST  # which is for jobs in a queue

    def submit(self, job: Any) -> None:
        options = _options(Path(job.script_filename).read_text())
        job.named = {*allocation.named_nodes(options.nodelist or '')}
        among = None
        if options.nodelist or options.exclude:
            own = _allocation().nodes
            among = frozenset(job.named) if options.nodelist else own
            among -= {*allocation.named_nodes(options.exclude or '')}
        job.for_srun = [
            f'--{name}={value}'
            for name in ('export', 'propagate')
            if (value := getattr(options, name))
        ]
        job.handed_on = {
            variable: value
            for name, variable in _HANDED_ON.items()
            if (value := getattr(options, name))
        }
        count = -(-(job.num_tasks or 1) // _per_node(job))
        _allocation().submit(job, Want(count, among, _allocation().is_last(job)))

    def filternodes(self, job: Any, nodes: Any) -> Any:
        found = super().filternodes(job, nodes)
        return {node for node in found if node.name in _allocation().nodes}

    def filternodes_by_state(self, nodelist: Any, state: str) -> Any:
        # To Slurm no node of an allocation is idle.
        return super().filternodes_by_state(nodelist, 'avail' if state == 'idle' else state)

    def poll(self, *jobs: Any) -> None:
        if submitted := [job for job in jobs if job]:
            _allocation().poll(submitted)

    def look(self) -> None:
        """Let no node wait for what ReFrame does with cases, which takes seconds of many."""
        if _allocation.cache_info().currsize:
            _allocation().look()

    def finished(self, job: Any) -> bool:
        return not job.goes_on

    def wait(self, job: Any) -> None:
        """Wait for the end of a job; if the run is stopped not for ever."""
        while not self.finished(job):
            since = _allocation().stopping_since
            if since and time.monotonic() - since > STOPPING:
                return
            self.poll(job)
            time.sleep(0.1)

    def cancel_many(self, jobs: Any) -> None:
        for job in jobs:
            job._is_cancelling = True
            _allocation().stop()


class _StepsOfSqueue(Steps):
    """The same by another name, since a class has one."""


def _options(script: str) -> Any:
    """The options of a job's script on its nodes and steps."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument('-w', '--nodelist')
    parser.add_argument('-x', '--exclude')
    for name in ('export', *_HANDED_ON):
        parser.add_argument(f'--{name.replace("_", "-")}')
    parser.add_argument('--propagate', nargs='?', const='ALL')
    words = [word for option in options_in(script) for word in shlex.split(option)]
    return parser.parse_known_args(words)[0]


class _Srun(mpi.SrunLauncher):
    """srun on the nodes of the case, which are not all of the job's."""

    def command(self, job: Any) -> list[str]:
        own = ['--nodes=$SLURM_NNODES', '--nodelist="$SLURM_JOB_NODELIST"']
        return [*super().command(job), *own]


class _Task(RegressionTask):
    """A case whose time does not count while it waits for nodes."""

    def run(self) -> None:
        check, case = self.check, self.testcase
        title = Listed(check.display_name, case.partition.fullname, case.environ.name).title
        if check.job:
            check.job.title, check.job.check = title, type(check).__name__
        super().run()

    def duration(self, phase: str) -> Any:
        if began := getattr(self.check.job, 'began', None):
            self._timestamps['run_start'] = began
        return super().duration(phase)


#: In the place of ReFrame's schedulers.
SCHEDULERS = {'slurm': Steps, 'squeue': _StepsOfSqueue}


def run_as_steps() -> None:
    """From here on srun keeps to a case's nodes, and cases wait for them without its being seen."""
    backends.getlauncher('srun')  # or ReFrame would register its own later
    del backends._launchers['srun']
    backends.register_launcher('srun')(_Srun)
    policies.RegressionTask = _Task
