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
            help='Check the file of this system.',
        ),
    ] = None,
    mpi: PlaceOption = None,
) -> None:
    """Check this machine's MPIs and fabrics, or a system's file.

    Lists MPIs and fabrics, what is missing and what to do, and the known defects that the last runs
    found in each MPI.

    With --system it checks the file of that system against Slurm and the MPIs: the options of
    sbatch, node counts, cores and memory, modules, versions, fabrics that each MPI was built with,
    and PMIs. It submits no job.

    The exit code is 0 if `assay run` can work here and the file is right.

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
