"""The command ``doctor``: what this machine has for the suite."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.commands.options import PlaceOption
from assay.config import settings


def doctor(
    system: Annotated[
        str | None,
        typer.Option(
            '--system',
            metavar='NAME[:PARTITION]',
            help='Hold what the file of this system says against what is there.',
        ),
    ] = None,
    mpi: PlaceOption = None,
) -> None:
    """Say what this machine has and lacks, and what to do.

    It repeats which known defects of each MPI the last runs showed.

    With --system it asks Slurm and the MPIs of a system whether its file is right: the options that
    sbatch needs, node counts, cores and memory, modules, versions, fabrics that each MPI was built
    with, and PMIs. No job is submitted.

    The exit code is 0 if `assay run` can work here, and what the file says is there.

    Examples:

    \b
      assay doctor
      assay doctor --system mycluster
      assay doctor --mpi /opt/acme-mpi
    """
    from assay.discovery.check_config import hold
    from assay.results.defects import found_last
    from assay.running.doctor import Findings, examine
    from assay.running.prepare import name_mpis

    name_mpis(system or settings.DEFAULT_SYSTEM, mpi or [])
    if system is None:
        raise typer.Exit(0 if examine(found_last()) else 1)
    found = Findings()
    hold(system, found)
    raise typer.Exit(0 if found.can_run else 1)
