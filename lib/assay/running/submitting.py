"""In ReFrame's process: sbatch gets the options of a job as the jobs of `assay init` give them.

ReFrame writes them into the job's script alone. A site's wrapper of sbatch may look at the command
line alone, so they stand there as well.
"""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import Any

from reframe.core.schedulers.slurm import SlurmJobScheduler

_PREFIX = '#SBATCH '
_sbatch = SlurmJobScheduler.sbatch


def options_in(script: str) -> list[str]:
    """The options of sbatch at the head of a script, in their quotes."""
    head = takewhile(lambda line: line.startswith('#') or not line.strip(), script.splitlines())
    return [line.removeprefix(_PREFIX) for line in head if line.startswith(_PREFIX)]


def _with_options(scheduler: SlurmJobScheduler, args: list[str]) -> Any:
    *given, script = args
    return _sbatch(scheduler, [*given, *options_in(Path(script).read_text()), script])


def begin() -> None:
    """From here on; called by the configuration."""
    SlurmJobScheduler.sbatch = _with_options
