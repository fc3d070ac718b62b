"""The check of a site's own applications (:mod:`assay.config.applications`)."""

from __future__ import annotations

import re
import shlex
import shutil
from functools import cached_property
from pathlib import Path

from reframe.core.builtins import parameter, run_after, run_before
from reframe.core.exceptions import ReframeError, SanityError

from assay.checks.cases import scales
from assay.checks.check import MpiCheck
from assay.config import applications
from assay.config.applications import site_applications
from assay.machine.provenance import Provenance, of_binary
from assay.programs.figure import Figure


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
    measures = applications.measured_by(site_applications())

    @cached_property
    def entry(self) -> applications.SiteApplication:
        return site_applications()[self.application]

    @property
    def implementation(self) -> str:
        """Whose figures these are: without bounds in its entry they are only recorded."""
        return self.application

    @property
    def own_references(self) -> tuple[Path, dict[str, object]]:
        """The file that its bounds stand in, and they."""
        bounds = {name: one.reference for name, one in self.entry.figures.items() if one.reference}
        return applications.file(), dict(bounds)

    @run_after('init')
    def take_what_the_entry_says(self) -> None:
        self.narrow_to_features(self.entry.mpi)
        self.time_limit = self.entry.time_limit
        self.cores_per_rank = self.entry.threads
        if self.layout not in self.entry.layouts:
            self.valid_systems = []

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

    @property
    def program(self) -> Path:
        """The executable.

        :raises ReframeError: if it does not exist.
        """
        name = self.entry.command[0]
        if '/' in name:  # beside the file, as the inputs
            name = str(applications.file().parent / name)
        if found := shutil.which(name):
            return Path(found).absolute()
        raise ReframeError(f'{self.application}: there is no program {self.entry.command[0]}')

    @run_before('run')
    def put_program_and_inputs(self) -> None:
        for name in self.entry.inputs:
            try:
                shutil.copy(Path(applications.file().parent, name), self.stagedir)
            except OSError as error:
                raise ReframeError(f'{self.application}: input {name}: {error.strerror}') from None
        self.executable = str(self.program)
        self.executable_opts = [shlex.quote(word) for word in self.entry.command[1:]]

    @property
    def provenance(self) -> Provenance:
        return of_binary(self.program)

    def verify_answers(self) -> None:
        for one in self.entry.answer:
            if fault := one.fault(self.launch.text):
                raise SanityError(f'{self.application}: {fault}')

    def figures(self) -> dict[str, Figure]:
        found: dict[str, Figure] = {}
        for name, one in self.entry.figures.items():
            value = one.value(self.launch.text)
            if value is None:
                raise SanityError(
                    f'{self.application}: its output has no figure {name}: {one.find}'
                )
            found[name] = one.quantity.figure(value)
        return found
