"""In ReFrame's process: the end of a local job is seen at once.

ReFrame looks for it ten times in the first second, and ever less often after that: the end of a job
of three seconds it sees a third of a second late, in which nothing runs. What schedulers tell of
their jobs it asks for as before.

A job that was stopped ends later than its script, which the signal ends at once: the MPI's launcher
passes it on to the ranks, and they tell how they end. ReFrame kills the launcher when it sees the
end of the script, so it does not look until all of them have ended.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

from reframe.frontend import cli
from reframe.frontend.executors import RegressionTask
from reframe.frontend.executors.policies import AsynchronousExecutionPolicy, _PollController

from assay.running.processes import look_at, pids

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
            one = look_at(pid)
            if one.session == session and not one.has_ended:
                return True
    return False


def _open(job: Any, opened: ExitStack) -> int:
    """What can be read once the job has ended."""
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


def begin() -> None:
    """From here on; called by the configuration."""
    cli.AsynchronousExecutionPolicy = _Policy  # which ReFrame 4.10.4 makes after it has read that
