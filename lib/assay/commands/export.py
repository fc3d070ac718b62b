"""The command ``export``: the stored figures for other programs."""

from __future__ import annotations

from typing import Annotated

import typer

from assay import AssayError
from assay.commands.options import OutputOption, StoredSystemOption


def export(
    output: OutputOption,
    words: Annotated[
        str,
        typer.Argument(metavar='RUNS', help='Which runs; all by default.', show_default=False),
    ] = '',
    system: StoredSystemOption = None,
) -> None:
    """Write the stored figures as Parquet, CSV or metrics.

    FILE ends in .parquet, .csv or .prom; - prints CSV, and -.prom metrics. RUNS is chosen as in
    `assay history`. A file is written whole or not at all. Metrics are of the
    newest run of each case.

    Examples:

    \b
      assay export --output figures.parquet
      assay export 2026-11-01..2026-11-20 -o november.csv
      assay export --output /var/lib/node_exporter/textfile/assay.prom
    """
    import sys

    from assay.files import explained, write_whole
    from assay.report.terminal import warn
    from assay.results.export import form
    from assay.results.history import load
    from assay.results.run_selectors import choose_or_all

    make = form(str(output))
    stored = load()
    warn(stored.notices())
    runs = choose_or_all(stored, words, system)
    if not runs:
        raise AssayError(f'no run is stored in {stored.database}: `assay run` stores one.')
    content = make(stored.figures(run for run in runs if not run.summary.problem))
    if str(output) == '-' or str(output).startswith('-.'):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return
    with explained(output, 'written'):
        write_whole(output, content)
