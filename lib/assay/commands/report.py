"""The command ``report``: a run as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.commands.options import OutputOption, StoredSystemOption


def report(
    words: Annotated[
        str, typer.Argument(metavar='RUNS', help='Which runs; the last by default.')
    ] = 'last',
    output: OutputOption = Path('report.html'),
    system: StoredSystemOption = None,
) -> None:
    """Write a run as one page for a browser.

    It has the verdict, figures, charts and history.

    RUNS is chosen as in `assay history`. The page shows the newest of several runs; the others are
    laid over its curves, and the figures of the one before stand beside its own. If runs are of two
    systems, the newest of each stand side by side. The page needs no network, and prints well.

    Examples:

    \b
      assay report
      assay report last~3 -o report.html
      assay report before-upgrade -o before.html
      assay report 2026-11-01..2026-11-20 --system generic -o november.html
    """
    from assay.report.html.page import write_stored
    from assay.report.terminal import warn
    from assay.results.history import load
    from assay.results.run_selectors import choose

    stored = load()
    warn(stored.notices())
    runs = choose(stored, words, system)
    write_stored(output, stored, runs)
    print(f'report: {output}')
