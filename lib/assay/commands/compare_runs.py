"""The command ``compare-runs``: what is worse in some runs than in others."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.commands.options import AllRowsOption, JsonOption, MarginOption, StoredSystemOption


def compare_runs(
    before: Annotated[str, typer.Argument(metavar='BEFORE', help='Runs of the old state.')],
    after: Annotated[str, typer.Argument(metavar='AFTER', help='Runs of the new state.')],
    system: StoredSystemOption = None,
    margin: MarginOption = 0.05,
    everything: AllRowsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare stored runs: what is worse, and what else changed.

    BEFORE and AFTER are chosen as in `assay history`: `last`, `last~1`, a date or two, a label, an
    identifier, or a report of ReFrame's. The exit code is 1 if something is worse or a case gives
    no figures any more; 3 if something looks worse by more than the margin and could not be
    decided; otherwise 0.

    Examples:

    \b
      assay compare-runs last~1 last
      assay compare-runs before-upgrade after-upgrade
      assay compare-runs 2026-11-01..2026-11-10 2026-11-12 --all
    """
    from assay.report.diff import show_diff
    from assay.report.diff_json import diff_json
    from assay.report.terminal import warn
    from assay.results.diff.difference import difference
    from assay.results.history import load
    from assay.results.run_selectors import choose

    stored = load()
    old, new = (choose(stored, words, system) for words in (before, after))
    warn(stored.notices())
    found = difference(stored, old, new, margin)
    if as_json:
        print(diff_json(found))
    else:
        show_diff(found, everything)
    raise typer.Exit(found.exit_code)
