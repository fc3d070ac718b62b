"""The command ``witness``: a report as tables, as a picture, and against another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def witness(
    report: Annotated[Path, typer.Argument(metavar='REPORT.json', show_default=False)],
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar='FILE.png|FILE.svg',
            help='Draw the message matrix and where the time went as well.',
        ),
    ] = None,
    diff: Annotated[
        Path | None,
        typer.Option(metavar='OTHER.json', help='Show how another report differs.'),
    ] = None,
) -> None:
    """Show what the witness recorded in a job.

    Placement, fabric, profile, waiting and messages. The witness is preloaded into every program of
    a run; its report, witness.json, is among the job's files.

    Examples:

    \b
      assay witness witness.json
      assay witness witness.json --picture job.svg
      assay witness before.json --diff after.json
    """
    from assay.report import pictures, witness_difference, witness_job
    from assay.report.console import console
    from assay.report.table import say
    from assay.witness.reading import read

    first = read(report)
    second = read(diff) if diff else None
    if picture:
        pictures.draw(first, picture)
    out = console()
    if second:
        witness_difference.show(first, second, out)
    else:
        witness_job.show(first, out)
    if picture:
        say(out, f'\npicture: {picture}')
