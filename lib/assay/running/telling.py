"""In ReFrame's process: reports the end of its cases while it runs.

ReFrame prints a failed case without the reason, which it keeps for its end. So
a listener of its pipeline writes each case that has ended to a pipe, as ReFrame's report will have
it. Its reader judges it by the same rules as the report; nothing is judged here.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import reframe.core.runtime as rt
from reframe.frontend import cli
from reframe.frontend.executors import (
    ABORT_REASONS,
    RegressionTask,
    Runner,
    TaskEventListener,
    TestCase,
)
from reframe.frontend.reporting import RunReport
from reframe.utility import jsonext

from assay.running.events import BUILDS, ENDED, NUMBER, ROUND, RUNS, VARIABLE, WHY_SKIPPED


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

        self.tell(ROUND, own, **{NUMBER: rt.runtime().current_run})

    def on_task_setup(self, task: RegressionTask) -> None:
        pass

    def on_task_compile(self, task: RegressionTask) -> None:
        if task.check.build_job:
            self.tell(BUILDS, lambda: _named(task.testcase))

    def on_task_compile_exit(self, task: RegressionTask) -> None:
        pass

    def on_task_run(self, task: RegressionTask) -> None:
        if task.check.job:
            self.tell(RUNS, lambda: _named(task.testcase))

    def on_task_exit(self, task: RegressionTask) -> None:
        pass

    def on_task_skip(self, task: RegressionTask) -> None:
        def told() -> dict[str, Any]:
            why = str(task.exc_info[1])
            found = _reported(task) | {WHY_SKIPPED: why}
            if why == 'dependencies failed':  # ReFrame notes that a moment later
                found['result'] = 'fail_deps'
            return found

        self.tell(ENDED, told)

    def _has_ended(self, task: RegressionTask) -> None:
        self.tell(ENDED, lambda: _reported(task))

    on_task_abort = on_task_failure = on_task_success = _has_ended
    on_task_xfailure = on_task_xsuccess = _has_ended


def _named(case: TestCase) -> dict[str, Any]:
    """What names a case, as in ReFrame's report."""
    return {
        'display_name': case.check.display_name,
        'system': rt.runtime().system.name,
        'partition': case.partition.name,
        'environ': case.environ.name,
        'fixture': case.check.is_fixture(),
    }


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


def begin() -> None:
    """From here on tell, by the pipe that the environment names; called by the configuration."""
    pipe = int(os.environ.pop(VARIABLE))
    os.set_inheritable(pipe, False)  # no job is to hold it open
    _TellingRunner.teller = _Teller(pipe)
    cli.Runner = _TellingRunner  # which ReFrame 4.10.4 makes after it has read its configuration
