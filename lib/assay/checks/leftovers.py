"""Variables left in the environment that steered the job of a check.

Also settings from files that reached its ranks, and settings in which its hosts differ.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache

import reframe.core.runtime as rt
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, variable
from reframe.core.environments import Environment
from reframe.core.exceptions import ReframeError

from assay import say
from assay.checks.part import CheckPart
from assay.job.launch import reports_in
from assay.text import plain
from assay.witness.settings import host_differences, left_in_files, set_by_files
from assay.witness.variables import MOST, leftovers, of_ranks, steering

#: Those of OpenMP that a layout sets, for a job or for each of its ranks.
_OF_LAYOUTS = frozenset({'OMP_NUM_THREADS', 'OMP_PLACES', 'OMP_PROC_BIND'})

#: Where modules systems keep what is loaded: in a shell that has these nothing is loaded again.
_LOADED = ('LOADEDMODULES', '_LMFILES_', '__LMOD_', '_ModuleTable', '__MODULES_')

#: What may be done outside of a job to see what modules set: commands of nothing but names. What
#: loads collections needs the home of a user, and others do more than to set variables.
_HARMLESS = re.compile(r'module (?:load|use|unuse) [\w./:+@~=-]+', re.ASCII)

#: Seconds that the modules of a system's file may take.
PATIENCE = 60


class TellsLeftovers(CheckPart):
    """A check that tells which variables steered its job, and that neither it nor the system's file
    had set.

    Variables set on purpose are known by their names. ``-S env_vars=...`` of a user is not.
    """

    #: ``NAME=VALUE`` of each; whether ranks had them, or only the script of the job.
    leftovers: list[str] = variable(typ.List[str], value=[], loggable=True)
    leftovers_seen: bool = variable(typ.Bool, value=False, loggable=True)
    #: Whether the system's file may have set them: what its commands or modules set is not known.
    leftovers_unsure: bool = variable(typ.Bool, value=False, loggable=True)
    #: ``NAME=VALUE in FILE`` of each that a file set, and in what the job's hosts differ.
    leftovers_in_files: list[str] = variable(typ.List[str], value=[], loggable=True)
    hosts_differ_in: list[str] = variable(typ.List[str], value=[], loggable=True)

    @run_after('init')
    def forget_leftovers_that_a_user_set(self) -> None:
        self.leftovers, self.leftovers_seen, self.leftovers_unsure = [], False, False
        self.leftovers_in_files, self.hosts_differ_in = [], []

    def look_for_leftovers(self) -> None:
        """Look for leftovers of a job that has ended in any way; they never change its result."""
        try:
            self._look_for_leftovers()
        except (OSError, ReframeError) as error:
            _once(f'variables that were left could not be looked for: {error}')

    def _look_for_leftovers(self) -> None:
        report = self.launch.seen
        # Where nothing is forced another start of the job has what forces its fabric.
        if report is None and self.launch.is_forced:
            report = next(reports_in(self.ended_job.folder), None)
        asked = self._asked_otherwise
        if report:
            of_files = set_by_files(report)
            found = {
                name: values - of_files.get(name, set())
                for name, values in of_ranks(report).items()
            }
            self.leftovers_in_files = left_in_files(report)[:MOST]
            self.hosts_differ_in = host_differences(report)[:MOST]
        else:  # schedulers hand on the environment of this process, and the script sets the rest
            handed_on = {
                name: value
                for name, value in steering(os.environ).items()
                if name not in self.env_vars
            }
            found = {name: {value} for name, value in {**handed_on, **asked}.items()}
        left = leftovers(found, self._set_on_purpose, asked, self.family)
        if left:
            by_modules = self._set_by_modules()
            self.leftovers_unsure = by_modules is None or bool(self._commands)
            if by_modules:
                left = leftovers(found, self._set_on_purpose | by_modules, asked, self.family)
        self.leftovers, self.leftovers_seen = left, report is not None

    @property
    def _of_the_system(self) -> dict[str, str]:
        return {name: value for one in self._environments for name, value in one.env_vars.items()}

    @property
    def _environments(self) -> tuple[Environment, Environment]:
        return self.current_partition.local_env, self.current_environ

    @property
    def _commands(self) -> list[str]:
        """The commands that only the system's file may add to the script of a job."""
        of_environments = (command for one in self._environments for command in one.prepare_cmds)
        return [*self.current_partition.prepare_cmds, *of_environments]

    @property
    def _asked_otherwise(self) -> dict[str, str]:
        """Variables that the user set for the job, not to values of Assay or the system's file."""
        purpose = self._of_the_system | self.own_variables
        asked = steering(self.asked_for)
        return {name: value for name, value in asked.items() if purpose.get(name) != value}

    @property
    def _set_on_purpose(self) -> frozenset[str]:
        # What is in LD_PRELOAD beside the witness is a user's.
        later = self.env_vars.keys() - self.asked_for.keys() - {'LD_PRELOAD'}
        by_name = variables_named_in(self._commands) | variables_exported_by(
            self.current_partition.access
        )
        of_file = by_name | self._of_the_system.keys()
        return _OF_LAYOUTS | later | self.own_variables.keys() | of_file

    def _set_by_modules(self) -> frozenset[str] | None:
        """Variables that the modules of the system's file set; None if they are not known."""
        modules = rt.runtime().modules_system
        commands = [
            command
            for one in self._environments
            for module in one.modules_detailed
            for name in modules.resolve_module(module['name'])
            for command in modules.emit_load_commands(
                name, module.get('collection', False), module.get('path', None)
            )
        ]
        if not all(map(_HARMLESS.fullmatch, commands)):
            _tell_unknown(f'outside of a job {"; ".join(commands)} is not run')
            return None
        return variables_set_by(tuple(commands)) if commands else frozenset()


@cache
def variables_set_by(commands: tuple[str, ...]) -> frozenset[str] | None:
    """Names of the steering variables that commands of modules set in an empty environment.

    They have a folder of their own, which is empty, as home and for their files.

    :returns: None where that cannot be found out, which is said.
    """
    bare = {name: value for name, value in os.environ.items() if not name.startswith(_LOADED)}
    for name in steering(bare):
        del bare[name]
    each = (f'{{ {command}\n}} || exit 1' for command in commands)
    script = '\n'.join(['exec 3>&1 >/dev/null', *each, 'env -0 >&3'])
    try:
        # Not a pipe, which what commands have started could hold open.
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            tempfile.TemporaryFile('w+', errors='replace') as out,
        ):
            ended = subprocess.run(
                ['bash', '-c', script],
                cwd=folder,
                env={**bare, 'HOME': folder, 'TMPDIR': folder},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL,
                timeout=PATIENCE,
            )
            out.seek(0)
            told = out.read()
    except subprocess.TimeoutExpired:
        _tell_unknown(f'loading them did not end within {PATIENCE} s')
        return None
    except OSError as error:
        _tell_unknown(f'they could not be loaded: {error}')
        return None
    if ended.returncode or not told:
        _tell_unknown(f'loading them ended with exit code {ended.returncode}')
        return None
    return frozenset(steering(dict(one.partition('=')[::2] for one in told.split('\0'))))


def variables_named_in(commands: Iterable[str]) -> frozenset[str]:
    """Steering variables named in shell commands, without running them."""
    words = re.findall(r'[A-Za-z_]\w*', '\n'.join(commands), re.ASCII)
    return frozenset(steering(dict.fromkeys(words, '')))


def variables_exported_by(access: Iterable[str]) -> frozenset[str]:
    """Names of the variables that options of Slurm give a job."""
    lists = (option.partition('=')[2] for option in access if option.startswith('--export='))
    return frozenset(one.partition('=')[0] for names in lists for one in names.split(','))


def _tell_unknown(why: str) -> None:
    _once(f"which variables the modules of the system's file set is not known: {why}")


@cache
def _once(words: str) -> None:
    say(plain(words))
