"""The check of a site's own applications (:mod:`assay.running.site_applications`)."""

from __future__ import annotations

import glob
import os
import re
import shlex
import shutil
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import reframe.core.runtime as rt
import reframe.utility.typecheck as typ
from reframe.core.builtins import parameter, run_after, run_before, variable
from reframe.core.exceptions import ReframeError, SanityError

from assay import AssayError
from assay.checks.cases import scales
from assay.checks.check import MpiCheck
from assay.checks.launching import is_script
from assay.job.launch import WITNESS
from assay.job.output import MOST
from assay.machine.provenance import Provenance, of_binary
from assay.programs.figure import Figure
from assay.running import site_applications as applications
from assay.running.application_builds import Toolchain, build, repository_of
from assay.running.site_applications import site_applications
from assay.text import as_field
from assay.witness import HOSTS

#: How names of files begin that ReFrame and the witness write.
_OF_JOB = 'rfm_', WITNESS, HOSTS


class SiteApplicationCheck(
    MpiCheck,
    special=True,  # type: ignore[call-arg]  # which mypy, without ReFrame's own types, misses
):
    """An application of the site, as its entry says.

    Its answer is verified, and it is held to fabric, layout and placement as any check of ours; its
    figures are held to the bounds of its entry.
    """

    application: str = parameter([*site_applications()], type=str, loggable=True)
    layout: str = parameter(
        [*dict.fromkeys(one for app in site_applications().values() for one in app.layouts)],
        type=str,
        loggable=True,
    )
    scale: str = parameter(scales(), type=str, loggable=True)
    #: Whose figures these are: without bounds in its entry they are only recorded.
    implementation: str = variable(str, value='', loggable=True)
    #: Of the repository of an application that has one, by any name; what is checked out without.
    commit: str = variable(str, value='HEAD', loggable=True)
    #: Its command is one, so rank 0 runs another program; where outputs are read again it is gone.
    runs_script: bool = variable(typ.Bool, value=False, loggable=True)
    build_time_limit = '30m'
    least_ranks = 1
    measures = applications.figures_of_all(site_applications())

    @cached_property
    def entry(self) -> applications.SiteApplication:
        return site_applications()[self.application]

    @property
    def own_references(self) -> tuple[Path, dict[str, object]]:
        """The file that its bounds stand in, and they."""
        bounds = {name: one.reference for name, one in self.entry.figures.items() if one.reference}
        return applications.file(), dict(bounds)

    @run_after('init')
    def take_what_the_entry_says(self) -> None:
        self.implementation = self.application
        self.narrow_to_features(self.entry.mpi)
        self.time_limit = self.entry.time_limit
        self.cores_per_rank = self.entry.threads
        if self.layout not in self.entry.layouts:
            self.valid_systems = []

    @property
    def ranks_per_node(self) -> int | None:
        if self.entry.ranks is None:
            return super().ranks_per_node
        if count := self.most_ranks_per_node(self.entry.allows):
            return count
        self.skip(
            f'{self.application} cannot run on {self.node_count} nodes with as many ranks on each '
            f'as fit: its ranks are {self.entry.ranks}'
        )

    @run_after('setup')
    def send_messages(self) -> None:
        """One rank sends none: on each fabric its case would be the same."""
        self.skip_if(
            self.num_tasks == 1 and self.best_fabric not in (None, self.fabric),
            f'{self.application} has 1 rank here, which sends no message: it runs on '
            f'{self.best_fabric} alone',
        )

    @run_after('setup')
    def stay_where_it_can_run(self) -> None:
        environment = self.current_environ.name
        self.skip_if(
            not re.search(self.entry.environments, environment),
            f'{self.application} does not run in {environment}: its entry says so',
        )
        if clash := applications.clash(self.application, site_applications()):
            raise ReframeError(clash)
        self.env_vars = {**self.entry.variables, **self.env_vars}

    @run_after('setup')
    def assert_it_has_commits(self) -> None:
        if self.commit != 'HEAD' and self.entry.repository is None:
            raise ReframeError(
                f'{self.application}: its entry has no repository that {self.commit} could be of'
            )

    @cached_property
    def checked_out(self) -> tuple[str, Path]:
        """The commit that is run, and the folder in which it was built.

        :raises ReframeError: if there is no such commit, or it does not build.
        """
        where, environment = self.current_partition, self.current_environ
        commands = rt.emit_loadenv_commands(where.local_env, environment)
        asks_login = rt.runtime().get_option('general/0/use_login_shell')
        made_with = self.build.provenance
        repository = repository_of(self.entry)
        try:
            commit = repository.commit_of(self.commit)
            if self.commit == 'HEAD' and repository.has_changes():
                self.remark(f'{repository.path} has changes that are not committed, nor measured')
            tools = Toolchain(
                ['bash', *(['-l'] if asks_login else [])],
                [*where.prepare_cmds, *commands],
                [environment.name, made_with.compiler, made_with.mpi, made_with.target],
                float(self.build_time_limit),
            )
            return commit, build(self.application, self.entry, commit, tools)
        except AssayError as error:
            raise ReframeError(str(error)) from None

    @property
    def program(self) -> Path:
        """The executable.

        :raises ReframeError: if it does not exist.
        """
        name = self.entry.command[0]
        if self.entry.repository is not None:
            if self.is_dry_run():
                return Path(name)
            commit, folder = self.checked_out
            name = str(folder / name)
        elif '/' in name:  # beside the file, as the inputs
            name = str(applications.file().parent / name)
        if found := shutil.which(name):
            return Path(found).absolute()
        of_commit = f' of commit {commit[:12]}' if self.entry.repository is not None else ''
        raise ReframeError(
            f'{self.application}: there is no program {self.entry.command[0]}{of_commit}'
        )

    @property
    def program_name(self) -> str:
        return os.path.basename(shlex.split(self.executable)[0])

    def command_of(self, program: str) -> str | None:
        return None if self.runs_script else program

    @run_before('run')
    def put_program_and_inputs(self) -> None:
        folder = Path(self.stagedir)
        for one in self.entry.files:  # ReFrame may keep the folder of an earlier run
            for earlier in _found(folder, one) + _found(folder, Path(one).name):
                earlier.unlink(missing_ok=True)
        for name in self.entry.inputs:
            try:
                shutil.copy(Path(applications.file().parent, name), folder)
            except OSError as error:
                raise ReframeError(f'{self.application}: input {name}: {error.strerror}') from None
        self.executable = shlex.quote(str(self.program))
        self.runs_script = False
        with suppress(OSError):  # a binary may be executable and not readable
            self.runs_script = is_script(self.program)
        self.executable_opts = [shlex.quote(word) for word in self.entry.command[1:]]
        self.keep_files = [*self.keep_files, *self.entry.files]

    @property
    def provenance(self) -> Provenance:
        found = of_binary(self.program)
        if self.entry.repository is None:
            return found
        commit, _ = self.checked_out
        return replace(found, by='repository', spec=as_field(self.entry.build), commit=commit)

    def text_written(self, one: applications.SitePattern) -> str:
        """The text that the program wrote to the place of a pattern.

        :raises SanityError: if there is no file, or which one is meant is not known.
        """
        if one.file is None:
            return self.launch.text
        folder = self.ended_job.folder
        # Files are kept without the folders that they were in.
        files = _found(folder, one.file) or _found(folder, Path(one.file).name)
        if not files:
            raise SanityError(f'{self.application}: it wrote no file {one.file}')
        if len(files) > 1:
            names = ' and '.join(path.name for path in files[:2])
            raise SanityError(f'{self.application}: {one.file} means {names}: name one of them')
        if files[0].stat().st_size > MOST:
            raise SanityError(f'{self.application}: {one.file} has more than {MOST >> 20} MiB')
        return files[0].read_text(errors='replace')

    def verify_answers(self) -> None:
        for one in self.entry.answer:
            if fault := one.fault(self.text_written(one)):
                raise SanityError(f'{self.application}: {fault}')

    def figures(self) -> dict[str, Figure]:
        found: dict[str, Figure] = {}
        for name, one in self.entry.figures.items():
            try:
                value = one.number(one.find, self.text_written(one))
            except ValueError as error:
                raise SanityError(f'{self.application}: figure {name}: {error}') from None
            if value is None:
                raise SanityError(
                    f'{self.application}: {one.place} has no figure {name}: {one.find}'
                )
            found[name] = one.quantity.figure(value)
        return found


def _found(folder: Path, pattern: str) -> list[Path]:
    """The files that ReFrame keeps for a pattern, without those that the job itself makes there."""
    paths = (folder / name for name in glob.glob(pattern, root_dir=folder))
    return sorted(one for one in paths if one.is_file() and not one.name.startswith(_OF_JOB))
