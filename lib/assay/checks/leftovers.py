"""What steered the job of a check and was set by nobody who should: variables that were left."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import reframe.core.runtime as rt
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, variable
from reframe.core.pipeline import RegressionTestPlugin

from assay import say
from assay.job.launch import Launch, witnessed_in
from assay.witness.variables import leftovers, of_ranks, steering

#: Those of OpenMP that a layout sets, for a job or for each of its ranks.
_OF_LAYOUTS = frozenset({'OMP_NUM_THREADS', 'OMP_PLACES', 'OMP_PROC_BIND'})

#: Where modules systems keep what is loaded: in a shell that has these nothing is loaded again.
_LOADED = ('LOADEDMODULES', '_LMFILES_', '__LMOD_', '_ModuleTable', '__MODULES_')

#: Seconds that the commands and modules of a system's file may take.
PATIENCE = 60


class TellsLeftovers(RegressionTestPlugin):
    """A check that tells which variables steered its job, and that neither it nor the system's file
    had set.

    What is set on purpose is known by its name. ``-S env_vars=...`` of a user is none of that.
    """

    # What the bases beside it give: for mypy only.
    own_variables: dict[str, str]
    asked_for: dict[str, str]
    env_vars: dict[str, str]
    if TYPE_CHECKING:

        @property
        def family(self) -> str: ...
        @property
        def launch(self) -> Launch: ...

    #: ``NAME=VALUE`` of each; whether ranks had them, or only the script of the job.
    leftovers: list[str] = variable(typ.List[str], value=[], loggable=True)
    leftovers_seen: bool = variable(typ.Bool, value=False, loggable=True)

    @run_after('init')
    def forget_leftovers_that_a_user_set(self) -> None:
        self.leftovers, self.leftovers_seen = [], False

    def look_for_leftovers(self) -> None:
        """Of a job that has ended, however it did."""
        report = self.launch.seen or next(witnessed_in(Path(self.stagedir)), None)
        asked = self._asked_otherwise
        if report:
            found = of_ranks(report)
        else:  # schedulers hand on the environment of this process, and the script sets the rest
            handed_on = {
                name: value
                for name, value in steering(os.environ).items()
                if name not in self.env_vars
            }
            found = {name: {value} for name, value in {**handed_on, **asked}.items()}
        left = leftovers(found, self._set_on_purpose, asked, self.family)
        if left and (by_commands := self._set_by_commands()):
            left = leftovers(found, self._set_on_purpose | by_commands, asked, self.family)
        self.leftovers, self.leftovers_seen = left, report is not None

    @property
    def _of_the_system(self) -> dict[str, str]:
        environments = (self.current_partition.local_env, self.current_environ)
        return {name: value for one in environments for name, value in one.env_vars.items()}

    @property
    def _asked_otherwise(self) -> dict[str, str]:
        """What the user set for the job, and would not be so without."""
        purpose = self._of_the_system | self.own_variables
        asked = steering(self.asked_for)
        return {name: value for name, value in asked.items() if purpose.get(name) != value}

    @property
    def _set_on_purpose(self) -> frozenset[str]:
        # What is in LD_PRELOAD beside the witness is a user's.
        later = self.env_vars.keys() - self.asked_for.keys() - {'LD_PRELOAD'}
        return _OF_LAYOUTS | later | self.own_variables.keys() | self._of_the_system.keys()

    def _set_by_commands(self) -> frozenset[str]:
        """What the system's file sets by modules and commands, whose names do not tell."""
        where, environ = self.current_partition, self.current_environ
        if not (
            where.prepare_cmds or environ.prepare_cmds or where.local_env.modules or environ.modules
        ):
            return frozenset()
        commands = rt.emit_loadenv_commands(where.local_env, environ)
        return set_by((*where.prepare_cmds, *commands))


@cache
def set_by(commands: tuple[str, ...]) -> frozenset[str]:
    """Names of the steering variables that shell commands set where none is set before.

    Of commands that do not end that is unknown, which is said.
    """
    bare = {name: value for name, value in os.environ.items() if not name.startswith(_LOADED)}
    for name in steering(bare):
        del bare[name]
    script = '\n'.join(['exec 3>&1 >/dev/null', *commands, 'env -0 >&3'])
    # Not a pipe, which what commands have started could hold open.
    with tempfile.TemporaryFile('w+', errors='replace') as out:
        try:
            subprocess.run(
                ['bash', '-c', script],
                env=bare,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            say(
                f"the commands and modules of the system's file did not end within {PATIENCE} s: "
                f'which variables they set is not known'
            )
        out.seek(0)
        found = dict(one.partition('=')[::2] for one in out.read().split('\0'))
    return frozenset(steering(found))
