"""Checks of others' applications, as Spack builds them; upstream's of ours beside ours."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from reframe.core.builtins import parameter, run_after, run_before, variable
from reframe.core.exceptions import SanityError

from assay.checks.application import ApplicationCheck
from assay.checks.build import installed
from assay.config.environments import feature
from assay.job.launch import LaunchError, apart
from assay.machine.provenance import Provenance
from assay.programs.application import WrongAnswerError
from assay.programs.figure import Figure
from assay.spack.lock_file import Build

#: The folder of our own run.
OURS = 'ours'


class SpackApplicationCheck(ApplicationCheck):
    """An application on the program of a package of Spack's.

    A subclass gives ``package`` and ``program``. It runs in environments that Spack builds the
    package for (``assay run --with spack:<package>``).
    """

    package: str = variable(str)
    program: str = variable(str)
    is_smoke_case = False

    @run_after('setup')
    def tell_implementation(self) -> None:
        self.implementation = self.package

    @run_after('init')
    def need_package(self) -> None:
        self.narrow_to_features(feature(self.package))

    @cached_property
    def installed(self) -> Build:
        return installed(self, self.package)

    @property
    def program_name(self) -> str:
        return self.program

    @property
    def program_path(self) -> str:
        return str(self.installed.path(self.program))

    @property
    def provenance(self) -> Provenance:
        return self.installed.provenance


class UpstreamCheck(SpackApplicationCheck):
    """The same problem as ours, read and verified the same way, on upstream's program.

    Our own program runs it just before, in the same job: the figure ``<rate>_of_ours`` is
    upstream's rate as a fraction of ours, both of the whole time, as upstream has no windows.
    """

    # Most of them are built without threads.
    layout: str = parameter(['packed'], type=str, loggable=True)

    @run_before('run')
    def run_ours_before(self) -> None:
        Path(self.stagedir, OURS).mkdir()
        self.write_files(self.asked, OURS)
        program = self.build.product(self.application.program)
        self.prerun_cmds = [apart(OURS, self.start_line(program, *self.asked.arguments))]
        self.keep_files = [*self.keep_files, OURS]

    def verify(self) -> None:
        program = self.application.program
        try:
            launch = self.launch_apart(OURS, program, self.placement, self.num_tasks)
            self.ours = self.read_apart(launch, self.asked)
        except (WrongAnswerError, LaunchError) as error:
            raise SanityError(f'our own {program}: {error}') from None
        super().verify()

    def figures(self) -> dict[str, Figure]:
        figures, time = super().figures(), self.application.time
        of_ours = self.ours[time].value / figures[time].value
        return figures | {f'{self.application.rate}_of_ours': Figure(of_ours, '1', 'higher')}
