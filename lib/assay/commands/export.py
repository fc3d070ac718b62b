"""The command ``export``: the stored figures for other programs."""

from __future__ import annotations

from typing import Annotated

import typer

from assay import AssayError


def export(
    to: Annotated[
        str,
        typer.Option(
            metavar='FILE',
            help='FILE.parquet, FILE.csv or FILE.prom; - prints CSV, -.prom metrics.',
        ),
    ],
    words: Annotated[
        str,
        typer.Argument(metavar='RUNS', help='Which runs; all by default.', show_default=False),
    ] = '',
    system: Annotated[
        str | None, typer.Option(metavar='NAME', help='Only runs of this system.')
    ] = None,
) -> None:
    """Write the stored figures as Parquet, CSV or metrics.

    RUNS is chosen as in `assay history`. A file is written whole or not at all. Metrics are of the
    newest run of each case.

    Examples:

    \b
      assay export --to figures.parquet
      assay export 2026-11-01..2026-11-20 --to november.csv
      assay export --to /var/lib/node_exporter/textfile/assay.prom
    """
    import sys
    from pathlib import Path

    from assay.files import explained, write_whole
    from assay.report.terminal import warn
    from assay.results.export import form
    from assay.results.history import load
    from assay.results.run_selectors import choose_or_all

    make = form(to)
    stored = load()
    warn(stored.notices())
    runs = choose_or_all(stored, words, system)
    if not runs:
        raise AssayError(f'no run is stored in {stored.database}: `assay run` stores one.')
    content = make(stored.figures(run for run in runs if not run.summary.problem))
    if to == '-' or to.startswith('-.'):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return
    with explained(Path(to), 'written'):
        write_whole(Path(to), content)
