"""How long a job may ask for: no longer than its partition allows."""

from __future__ import annotations

from reframe.core.builtins import run_after
from reframe.core.pipeline import RegressionTestPlugin
from reframe.utility.typecheck import Duration


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
