"""What the parts of a check have of ReFrame and of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from reframe.core.pipeline import RegressionTestPlugin

from assay.checks.build import BuildSources
from assay.job.ending import EndedJob
from assay.job.launch import Launch
from assay.programs.figure import Figure


class CheckPart(RegressionTestPlugin):
    """A part of a check: its base, and names for mypy only."""

    fabric: str
    layout: str
    scale: str
    build: BuildSources
    executable: str
    executable_opts: list[str]
    env_vars: dict[str, str]
    own_variables: dict[str, str]
    asked_for: dict[str, str]
    prerun_cmds: list[str]
    postrun_cmds: list[str]
    keep_files: list[str]
    skip: Callable[[str], NoReturn]
    if TYPE_CHECKING:

        @property
        def family(self) -> str: ...
        @property
        def ended_job(self) -> EndedJob: ...
        @property
        def launch(self) -> Launch: ...
        def look_for_leftovers(self) -> None: ...
        def read_job(self) -> dict[str, Figure]: ...
