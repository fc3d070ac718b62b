"""The command ``trend``: what changed over the stored runs, since when, and what else changed."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.commands.options import CasesOption, FiguresOption, JsonOption, StoredSystemOption


def trend(
    words: Annotated[
        str,
        typer.Argument(metavar='RUNS', help='Which runs; all by default.', show_default=False),
    ] = '',
    system: StoredSystemOption = None,
    cases: CasesOption = '',
    figures: FiguresOption = '',
    as_json: JsonOption = False,
    show_all: Annotated[
        bool, typer.Option('--all', help='Show every figure, unchanged ones too.')
    ] = False,
) -> None:
    """Find steps and slow drifts in the stored figures.

    Each comes with the first bad run and with what changed there.

    RUNS is chosen as in `assay history`; without it, runs that compare, accept, init, screen or the
    campaign made are left out. Exit code 1 says that a figure is worse than it was, and
    that no later run repaired it.

    Examples:

    \b
      assay trend
      assay trend 2026-08-01..2026-11-20 --system generic
      assay trend -n fabric=tcp --figure latency --all
    """
    from assay.report.terminal import warn
    from assay.report.trend import show_trend, trend_json
    from assay.results.history import load
    from assay.results.run_selectors import choose_or_all
    from assay.results.trend import trend

    stored = load()
    warn(stored.notices())
    runs = choose_or_all(stored, words, system)
    if not words:  # nobody chose those with a purpose of their own
        runs = [run for run in runs if not run.summary.purpose]
    found = trend(stored, runs, cases, figures)
    if as_json:
        print(trend_json(found))
    else:
        show_trend(found, show_all)
    raise typer.Exit(1 if found.is_bad else 0)
