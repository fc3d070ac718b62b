"""A session of ReFrame: what one is started with, and how it is run.

``assay run`` is one of them, ``assay compare-settings`` many.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from assay import AssayError, paths, say
from assay.config import settings
from assay.config.lint import lint_own
from assay.machine.job_states import forget_job_around
from assay.machine.slurm import SCHEDULERS, forget_sbatch_defaults
from assay.running import allocation, node_choice, prepare, runs, session_extras, supervise, turn
from assay.running.leftovers import stop_what_was_left
from assay.running.reframe_options import Given
from assay.running.runs import RunFolder
from assay.running.selection import Listed, files_of, list_cases
from assay.running.site_applications import site_applications
from assay.running.supervise import Audience, Ended
from assay.vcluster.command import assert_shared, run_on_head

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


@dataclass(frozen=True)
class Suite:
    """The suite on a system, in a mode.

    :param own: the run whose folder the configuration is loaded with.
    :param mode: of ``assay run``.
    :param command: ReFrame, with the options that the mode stands for.
    :param environment: the variables that ReFrame needs.
    :param not_heeded: variables for sbatch that a user had set.
    :param is_one_job: whether the cases of all sessions are to be steps of one job.
    :param around: the number of the job around this command, or that the environment names, which
        that is to be.
    """

    own: RunFolder
    system: str
    mode: str
    command: tuple[str, ...]
    environment: dict[str, str]
    not_heeded: tuple[str, ...] = ()
    is_one_job: bool = False
    around: str | None = None

    def go_to_head(self) -> None:
        """Run this command on the head of the virtual cluster instead, if it is for that system.

        :raises SystemExit: as it ended there.
        :raises AssayError: if no cluster is up.
        """
        if self._is_cluster and (code := run_on_head()) is not None:
            raise SystemExit(code)

    def assert_shared(self, *named: Path) -> None:
        """See that this command finds files and folders there as well.

        :raises AssayError: if the head of the virtual cluster has its own in that place.
        """
        for path in named if self._is_cluster else ():
            assert_shared(path)

    @property
    def _is_cluster(self) -> bool:
        return self.system.partition(':')[0] == settings.CLUSTER_SYSTEM

    def load(self) -> _SiteConfig:
        """The configuration; where it uses Slurm, variables that sbatch will ignore are reported.

        :raises AssayError: if it is wrong, or a check, a reference or an application is.
        """
        site = settings.load_system(self.system)
        if turn.is_needed(site):
            settings.assert_tmpdir()
        if self.not_heeded and any(
            one['scheduler'] in SCHEDULERS for one in site.get('systems/0/partitions')
        ):
            _tell(self.not_heeded)
        if problems := lint_own():
            raise AssayError('\n'.join(problems))
        site_applications()  # of whose mistakes ReFrame would print a traceback
        return site

    def take_turn(self, site: _SiteConfig) -> list[int]:
        """Wait until no other run uses this machine, if jobs run on it; stop what runs left.

        The process that starts this command may have the turn for it.

        :returns: what is to be kept open as long as the turn lasts.
        :raises AssayError: if the turn cannot be had.
        """
        handles = []
        if turn.is_needed(site) and turn.VARIABLE not in os.environ:
            handles.append(turn.take(f'run {self.own.folder.name}', self._waits))
            self.environment[turn.VARIABLE] = 'yes'
        stop_what_was_left()
        return handles

    def _waits(self, for_what: str) -> None:
        # An MPI may be another by then.
        self.own.mpis.unlink(missing_ok=True)
        say(for_what)

    @contextmanager
    def in_one_job(
        self,
        site: _SiteConfig,
        given: Given,
        options: Sequence[str],
        cases: Sequence[Listed] = (),
        budget: float | None = None,
    ) -> Iterator[str | None]:
        """Have the job for all cases of the sessions within, if one was asked for: its number.

        :param given: what was asked of ReFrame.
        :param options: of ReFrame, which select the cases where these are not given.
        :param budget: seconds that the sessions may take, if that is given.
        :raises AssayError: if there is no such job.
        :raises SystemExit: if this command was told to stop while it waited for that.
        """
        if self.is_one_job:
            cases = cases or list_cases(self.command, options, self.environment)
        if not self.is_one_job or not cases:
            yield None
            return
        choice = node_choice.choice_of_run(self.environment)
        asked = allocation.request(site, cases, given.jobs, budget, choice)
        try:
            given_up = allocation.cancel_reasons(site, cases)
            with allocation.one_job(self.around, asked, self.own.folder, given_up) as number:
                self.environment[allocation.VARIABLE] = number
                words = allocation.words_of(given.jobs)
                is_sized = not (self.around or allocation.value_in(words, '-N', '--nodes'))
                self.environment[allocation.SIZED] = number if is_sized else ''
                yield number
        except allocation.SignalledError as stopped:
            raise SystemExit(128 + stopped.args[0]) from None

    def run(
        self,
        own: RunFolder,
        label: str | None,
        options: Sequence[str],
        handles: Sequence[int],
        audience: Audience | None = None,
        purpose: str | None = None,
        exports: Mapping[str, str | None] = MappingProxyType({}),
    ) -> Ended:
        """Run ReFrame once, to its end.

        :param options: of ReFrame.
        :param handles: locks that are held as long as it runs, beside that of its folder.
        :param audience: it hears what goes on.
        :param purpose: the command that makes the run, if not to show how the machine is
            (:mod:`assay.results.unchanged`).
        :param exports: variables for ReFrame, beside those of the suite; None of those that it is
            to lack.
        """
        runs.starts_jobs(own)
        asked = session_extras.options(label, self.mode, purpose)
        last = [f'--report-file={own.report}', '--report-junit=', '--nocolor']
        command = [*self.command, *asked, '-r', *options, *last]
        all_of_them = {**self.environment, **own.exports, **exports}
        environment = {name: value for name, value in all_of_them.items() if value is not None}
        return supervise.supervise(command, environment, own, [own.handle, *handles], audience)


def suite(
    system: str, mode: str, extra: Sequence[str], given: Given, is_one_job: bool = False
) -> Suite:
    """The suite, with what the machine lacks installed.

    :param extra: what ``--with`` names.
    :param given: what is asked of ReFrame.
    :param is_one_job: whether all cases are to be steps of one job.
    :raises AssayError: if mode or system are unknown, something cannot be installed, or nothing may
        be written.
    """
    around = None
    if is_one_job:
        around = allocation.leave() or os.environ.get(allocation.VARIABLE)
    settings.assert_writable()
    for name in (runs.VARIABLE, node_choice.VARIABLE):
        os.environ.pop(name, None)  # of a run that this command is part of a job of
    not_heeded = tuple(forget_sbatch_defaults())
    job = forget_job_around(os.environ)
    if job and allocation.VARIABLE not in os.environ:
        say(f'within the job {job}, whose nodes and options the jobs of this run do not take over')
    own = runs.this_run()
    options = settings.options_of_mode(mode)
    exports = settings.exports(system)
    if found := prepare.prepare_machine(system, extra):
        prepare.keep_mpis(own, found)
    # Not ReFrame's --mode, with which 4.10.4 ignores -p: the options that the mode stands for.
    files = (f'--checkpath={file}' for file in files_of(given, paths.CHECKS))
    command = (str(paths.VENV_BIN / 'reframe'), *options, *files)
    environment = {**os.environ, **exports}
    return Suite(own, system, mode, command, environment, not_heeded, is_one_job, around)


@cache
def _tell(not_heeded: tuple[str, ...]) -> None:
    """Once, however often the configuration is loaded."""
    say(
        f'ignored: {", ".join(not_heeded)}. Write what jobs need into the partition '
        f"(access: ['--account=...']), or give it by -J (-J account=...)."
    )
