"""In ReFrame's process: reports its cases while it runs, and sees the end of local jobs at once.

ReFrame prints a failed case without the reason, which it keeps for its end. A listener of its
pipeline writes each case that has ended to a pipe, as ReFrame's report will have it. The reader
judges it by the same rules as the report; nothing is judged here. Cases that ReFrame only lists are
written there as well.

ReFrame looks for the end of a local job ten times in the first second, and ever less often after
that: the end of a job of three seconds it sees a third of a second late, in which nothing runs.
Schedulers are asked for their jobs as before.

A job that was stopped ends later than its script, which the signal ends at once: the MPI's launcher
passes it on to the ranks, and they tell how they end. ReFrame kills the launcher when it sees the
end of the script, so it does not look until all of them have ended.

ReFrame itself reads a deprecated variable of each check five times, and looks each time through the
source of all frames for a user who may have done it: more CPU time than for all else of a case.
"""

from __future__ import annotations

import os
import select
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from types import SimpleNamespace
from typing import Any

import reframe.core.runtime as rt
from reframe.core import fields, variables
from reframe.core.warnings import ReframeDeprecationWarning
from reframe.frontend import cli
from reframe.frontend.executors import (
    ABORT_REASONS,
    RegressionTask,
    Runner,
    TaskEventListener,
    TestCase,
)
from reframe.frontend.executors.policies import AsynchronousExecutionPolicy, _PollController
from reframe.frontend.reporting import RunReport
from reframe.utility import jsonext

from assay.config.scales import is_scale, nodes_of_scale
from assay.running import events
from assay.running.processes import pids, read_process

#: Seconds after which ReFrame looks at a job that goes on: at its time limit.
SECONDS = 1.0

#: Seconds that what a job started has to end once the job was stopped. Open MPI's launcher kills
#: ranks that ignore the signal after one.
GRACE = 10.0


class _Awake(_PollController):
    """Ends ReFrame's sleep when a local job ends."""

    def __init__(self, tasks: Iterable[RegressionTask]) -> None:
        super().__init__()
        self._tasks = tasks
        self._has_work = False

    def reset_poll_rate(self) -> None:
        """Called when a job has ended."""
        super().reset_poll_rate()
        self._has_work = True

    def snooze(self) -> None:
        for job in self._jobs():
            _let_end(job)
        # What is judged is judged while the next job starts, and not while that measures.
        if self._has_work:
            self._has_work = False
            return
        jobs = [*self._jobs()]
        if any(getattr(job, 'is_new', False) for job in jobs):
            return  # a step, whose nodes may be free
        with ExitStack() as opened:
            try:
                # A step that waits for nodes has no process.
                handles = [_open(job, opened) for job in jobs if job.proc]
            except (AttributeError, OSError):
                # Not a job of this machine; or one that has ended and is to be measured again; or
                # a kernel before 5.3.
                super().snooze()
            else:
                if handles:
                    _wait(handles, SECONDS)
                elif jobs:
                    super().snooze()

    def _jobs(self) -> Iterator[Any]:
        for task in self._tasks:
            if task.state == 'compiling':
                yield task.check.build_job
            elif task.state == 'running':
                yield task.check.job


def _let_end(job: Any) -> None:
    """Sleep while anything of a local job that was stopped goes on, for as long as it may."""
    if hasattr(job, 'proc') and job.cancel_time:
        seconds = min(GRACE, job.cancel_time + GRACE - time.time())
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and _goes_on(job.proc.pid):
            time.sleep(0.05)


def _goes_on(session: int) -> bool:
    """Whether a process of a session has not ended."""
    for pid in pids():
        with suppress(OSError):  # it has gone
            one = read_process(pid)
            if one.session == session and not one.has_ended:
                return True
    return False


def _open(job: Any, opened: ExitStack) -> int:
    """Open a handle that can be read once the job has ended."""
    handle = os.pidfd_open(job.proc.pid)
    opened.callback(os.close, handle)
    return handle


def _wait(handles: Iterable[int], seconds: float) -> None:
    """Until one can be read, or the time is over."""
    # Not select(), which refuses handles beyond 1023.
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    poll.poll(seconds * 1000)


class _Policy(AsynchronousExecutionPolicy):
    def __init__(self) -> None:
        super().__init__()
        self._pollctl = _Awake(self._current_tasks)

    def _advance_startup(self, task: RegressionTask) -> Any:
        self._look_at_steps()
        return super()._advance_startup(task)

    def _advance_ready_run(self, task: RegressionTask) -> Any:
        self._look_at_steps()
        return super()._advance_ready_run(task)

    def _advance_running(self, task: RegressionTask) -> Any:
        # ReFrame takes a second to find that out of ten thousand.
        return 0 if getattr(task.check.job, 'goes_on', False) else super()._advance_running(task)

    def _advance_completing(self, task: RegressionTask) -> Any:
        self._look_at_steps()
        return super()._advance_completing(task)

    def _look_at_steps(self) -> None:
        for scheduler in self._schedulers.values():
            if look := getattr(scheduler, 'look', None):
                look()


class _Teller(TaskEventListener):
    """Tells of tasks, as ReFrame calls a case under way."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def tell(self, what: str, told: Callable[[], object], **more: object) -> None:
        """Write an event; a mistake of ours is seen, and changes nothing of ReFrame's run.

        :param told: makes the message.
        """
        try:
            line = f'{jsonext.dumps({what: told(), **more})}\n'
        except ABORT_REASONS:  # as a signal raises it, wherever it comes
            raise
        except Exception:
            traceback.print_exc()
            return
        with suppress(OSError), open(self.pipe, 'w', closefd=False) as pipe:  # nobody reads it
            pipe.write(line)

    def tell_round(self, cases: Iterable[TestCase]) -> None:
        def own() -> list[dict[str, Any]]:
            return [_named(case) for case in cases if not case.check.is_fixture()]

        self.tell(events.ROUND, own, **{events.NUMBER: rt.runtime().current_run})

    def tell_listed(self, cases: Iterable[TestCase]) -> None:
        def own() -> list[dict[str, Any]]:
            return [
                {
                    **_named(case),
                    events.NEEDS: sorted({one.check.display_name for one in _needed(case)}),
                    events.NODES: _nodes_of(case),
                }
                for case in cases
                if case.in_degree == 0
            ]

        self.tell(events.LISTED, own)

    def on_task_compile(self, task: RegressionTask) -> None:
        if task.check.build_job:
            self.tell(events.BUILDS, lambda: _named(task.testcase))

    def on_task_run(self, task: RegressionTask) -> None:
        if task.check.job:
            self.tell(events.RUNS, lambda: _named(task.testcase))

    def _tell_nothing(self, task: RegressionTask) -> None:
        pass

    on_task_setup = on_task_compile_exit = on_task_exit = _tell_nothing

    def on_task_skip(self, task: RegressionTask) -> None:
        def told() -> dict[str, Any]:
            why = str(task.exc_info[1])
            found = _reported(task) | {events.WHY_SKIPPED: why}
            if why == 'dependencies failed':  # ReFrame notes that a moment later
                found['result'] = 'fail_deps'
            return found

        self.tell(events.ENDED, told)

    def _has_ended(self, task: RegressionTask) -> None:
        self.tell(events.ENDED, lambda: _reported(task))

    on_task_abort = on_task_failure = on_task_success = _has_ended
    on_task_xfailure = on_task_xsuccess = _has_ended


def _named(case: TestCase) -> dict[str, Any]:
    """The fields that name a case, as in ReFrame's report."""
    return {
        'display_name': case.check.display_name,
        'system': rt.runtime().system.name,
        'partition': case.partition.name,
        'environ': case.environ.name,
        'fixture': case.check.is_fixture(),
    }


def _nodes_of(case: TestCase) -> int:
    """The nodes of its job; 0 for all that are idle, 1 where a check has no scale."""
    scale = getattr(case.check, 'scale', None)
    if isinstance(scale, str) and is_scale(scale):
        return nodes_of_scale(scale, case.partition.extras)
    return int(getattr(case.check, 'asked_nodes', 1))


def _needed(case: TestCase) -> Iterator[TestCase]:
    """The cases that it depends on, and those that they depend on."""
    for one in case.deps:
        yield one
        yield from _needed(one)


def _reported(task: RegressionTask) -> dict[str, Any]:
    """A case as ReFrame's report has it."""
    report = RunReport()
    report.update_run_stats(SimpleNamespace(runs=lambda: [(rt.runtime().current_run, [task])]))
    case: dict[str, Any] = report['runs'][0]['testcases'][0]
    case.pop('fail_info', None)  # of the exception more than the reason, which no rule asks for
    return case


class _TellingRunner(Runner):
    """ReFrame's, with a listener that is called before ReFrame's own, which may end the run."""

    teller: _Teller

    def _runall(self, testcases: list[TestCase]) -> None:
        if self.teller not in self.policy.task_listeners:
            self.policy.task_listeners.insert(0, self.teller)
        self.teller.tell_round(testcases)
        super()._runall(testcases)


def _warn(message: str, from_version: str = '') -> None:
    """Warn of what is deprecated, with the place in the first file that is not ReFrame's."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get('__name__', '').startswith('reframe'):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ReframeDeprecationWarning, stacklevel=level)


def send_events() -> None:
    """From here on, by the pipe that the environment names; called by the configuration."""
    pipe = int(os.environ.pop(events.VARIABLE))
    os.set_inheritable(pipe, False)  # no job is to hold it open
    teller = _TellingRunner.teller = _Teller(pipe)
    show_list = cli.list_checks

    def list_checks(cases: list[TestCase], *how: object) -> None:
        teller.tell_listed(cases)
        show_list(cases, *how)

    # ReFrame 4.10.4 makes or calls these after it has read its configuration.
    fields.user_deprecation_warning = variables.user_deprecation_warning = _warn
    cli.Runner = _TellingRunner
    cli.AsynchronousExecutionPolicy = _Policy
    cli.list_checks = list_checks
