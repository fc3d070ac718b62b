"""The command ``witness``: a report as tables, as a page of charts, and against another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay import AssayError


def witness(
    report: Annotated[Path, typer.Argument(metavar='REPORT.json', show_default=False)],
    after: Annotated[
        Path | None,
        typer.Argument(
            metavar='[AFTER.json]', help='Show how this report differs.', show_default=False
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar='FILE.html',
            help='Draw who sent to whom, where ranks sat and where the time went as well.',
        ),
    ] = None,
) -> None:
    """Show what the witness recorded in a job.

    Placement, fabric, profile, waiting and messages. The witness is preloaded into every program of
    a run; its report, witness.json, is among the job's files.

    Examples:

    \b
      assay witness witness.json
      assay witness witness.json --picture job.html
      assay witness before.json after.json
    """
    from assay.report.console import console, print_line
    from assay.report.witness import show_difference, show_job
    from assay.witness.reading import read_witness

    first = read_witness(report)
    second = read_witness(after) if after else None
    if picture:
        from assay.report.html import page  # which takes time to load

        if picture.suffix.lower() != '.html':
            raise AssayError(f'{picture}: a picture is a page for a browser: call it .html')
        page.write_page(picture, page.page_of_job(first))
    out = console()
    if second:
        show_difference(first, second, out)
    else:
        show_job(first, out)
    if picture:
        print_line(out, f'\npicture: {picture}')
