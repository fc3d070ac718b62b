"""Variables by which jobs could be tuned, against what the rules of a contract allow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from assay import AssayError
from assay.acceptance.contract import Rules
from assay.witness.variables import OF_THE_SCHEDULER, STEERING

#: What variables begin with that tune jobs: those that steer them, and those by which compilers of
#: Open MPI are chosen. What the suite and the system's file set for jobs is not in the environment
#: of a command.
TUNING = (*STEERING, 'OMPI_')

#: What lets root start jobs in a container: nothing that a figure depends on.
_HARMLESS = ('OMPI_ALLOW_RUN_AS_ROOT', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM')

#: Options of schedulers that set variables for a job: Slurm's, which may be shortened, and PBS's.
_EXPORTING = re.compile(r'(?:^|\s)-*(?:exp|v)')


def assert_no_variables(options: Iterable[str]) -> None:
    """:raises AssayError: if an option for all jobs sets variables, past the rules."""
    for option in options:
        if _EXPORTING.search(option):
            raise AssayError(
                f'--job-option {option}: it may set variables of jobs, which the rules of a '
                f'contract have to allow: set them where this command is started'
            )


def allowed(rules: Rules, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that tune jobs, by name, all of which the rules allow.

    :param environment: of the command that starts jobs.
    :raises AssayError: if one is set that they do not.
    """
    found = {
        name: value
        for name, value in sorted(environment.items())
        if name in rules.variables
        or (
            name.startswith(TUNING)
            and name not in _HARMLESS
            and OF_THE_SCHEDULER.get(name) != value
        )
    }
    if strange := [name for name in found if name not in rules.variables]:
        raise AssayError(
            f'the environment sets {", ".join(strange)}, which the rules of the contract '
            f'({rules.category}) do not allow: unset it'
        )
    return found
