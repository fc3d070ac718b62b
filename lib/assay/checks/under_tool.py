"""An application of ours that is started twice in one job: under a tool for MPI, and as it is."""

from __future__ import annotations

from functools import cached_property

from reframe.core.builtins import parameter, run_after, run_before
from reframe.core.exceptions import SanityError

from assay.checks.application import PackageCheck
from assay.checks.benchmark import as_sanity_error
from assay.job.launch import Launch, LaunchError
from assay.programs.application import Application
from assay.programs.figure import Figure, Quantity
from assay.programs.hpl import Hpl
from assay.programs.minife import MiniFE
from assay.programs.minighost import MiniGhost
from assay.programs.minimd import MiniMD

#: The folder of the start under the tool.
_UNDER = 'under_tool'


class UnderToolCheck(PackageCheck):
    """Such an application, once on a node, for each MPI that Spack built the tool for.

    The start as it is has the witness, and proves layout and fabric as in any check. The tool wraps
    the calls of MPI as the witness does, and only one of them can: so the start under the tool has
    no witness. A subclass defines :meth:`line_under_tool` and :meth:`hold_report`.
    """

    #: By name.
    applications = {one.name: one for one in (Hpl(), MiniFE(), MiniGhost(), MiniMD())}
    code: str = parameter([*applications], type=str, loggable=True)
    size: str = parameter(['starved'], type=str, loggable=True)
    layout: str = parameter(['packed'], type=str, loggable=True)
    scale: str = parameter(['1_node'], type=str, loggable=True)
    #: The time of the whole, over that without the tool.
    measures = {'time_under_tool': Quantity('1', 'lower', headline=True)}
    always_sends = frozenset({'messages'})  # HPL's limit is measured for a given time

    @run_after('init')
    def limit_time(self) -> None:
        self.time_limit = '10m'

    @cached_property
    def application(self) -> Application:  # type: ignore[override]  # one for each code
        return self.applications[self.code]

    @property
    def is_maintenance_case(self) -> bool:
        return self.is_first_fabric

    def line_under_tool(self, *command: str) -> str:
        """The line of the job's script that starts the program's command under the tool."""
        raise NotImplementedError

    def hold_report(self, launch: Launch) -> None:
        """Judge what the tool reports of a start.

        :raises WrongAnswerError, LaunchError: with a sentence that says what is wrong.
        """
        raise NotImplementedError

    @run_before('run')
    def start_under_tool_before(self) -> None:
        line = self.line_under_tool(self.program_path, *self.asked.arguments)
        self.start_before(_UNDER, line)
        self.write_files(self.asked, _UNDER)

    def verify(self) -> None:
        super().verify()
        launch = self.launch_apart(_UNDER, self.program_name, self.placement, self.num_tasks)
        try:
            with as_sanity_error(f'{self.program_name} under {self.package}'):
                self.hold_report(launch)
                self.under_tool = self.application.read(
                    launch.text, launch.folder, self.asked, launch.ranks, self.placement.threads
                )
        except LaunchError as error:
            raise SanityError(f'under {self.package}: {error}') from None

    def figures(self) -> dict[str, Figure]:
        time = self.application.time
        ratio = self.under_tool[time].value / self.answer[time].value
        return self.as_figures(time_under_tool=ratio)
