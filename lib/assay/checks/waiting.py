"""What a check waits for before its job, and how long the job may take."""

from __future__ import annotations

import os
from functools import cache

import reframe.core.runtime as rt
from reframe.core.builtins import run_after, run_before
from reframe.core.pipeline import RegressionTestPlugin
from reframe.utility.typecheck import Duration

from assay import say
from assay.running import runs, turn

#: The longest that a job may wait in a queue, where one that can never start waits for ever. `assay
#: run` tells the scheduler's reason meanwhile.
IN_QUEUE = '24h'


class TakesTurns(RegressionTestPlugin):
    """A check whose jobs measure no other run's."""

    @run_before('compile')
    @run_before('run')
    def wait_for_turn(self) -> None:
        if not self.is_dry_run() and turn.is_needed(rt.runtime().site_config):
            _take_turn()


@cache
def _take_turn() -> None:
    """Once for this process, unless the command that started it has the turn for it."""
    if turn.VARIABLE not in os.environ:
        turn.take(f'run {runs.this().folder.name}', say)


class KeepsTimeLimit(RegressionTestPlugin):
    """A check whose jobs, and builds as jobs, ask for no more time than their partition has.

    A scheduler may let a job that asks for more wait for ever.
    """

    @run_after('setup')
    def keep_time_limit(self) -> None:
        if not self.current_partition.time_limit:
            return
        most = Duration.__rfm_cast_str__(self.current_partition.time_limit)
        for name in ('time_limit', 'build_time_limit'):
            if (asked := getattr(self, name)) and asked > most:
                setattr(self, name, most)
