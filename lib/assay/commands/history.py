"""The command ``history``: the stored runs."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.commands.options import JsonOption, StoredSystemOption


def history(
    words: Annotated[
        str, typer.Argument(metavar='RUNS', help='Which runs: see above.', show_default=False)
    ] = '',
    system: StoredSystemOption = None,
    last: Annotated[int, typer.Option(metavar='N', help='At most the newest N.', min=1)] = 20,
    as_json: JsonOption = False,
) -> None:
    """List the stored runs, newest last.

    RUNS is `last` or `last~3`, a date or two (2026-11-01..2026-11-20), a label, the first
    characters of an identifier, a report of ReFrame's, or a folder of perflogs (a path with a /).
    `assay forget` removes them.

    Examples:

    \b
      assay history
      assay history 2026-11-01..2026-11-20 --system generic
      assay history before-upgrade --json
    """
    from assay.report.history import history_json, show_history
    from assay.report.terminal import warn
    from assay.results.history import load
    from assay.results.run_selectors import choose_or_all

    stored = load()
    warn(stored.notices())
    runs = choose_or_all(stored, words, system)
    if as_json:
        print(history_json(runs[-last:]))
    else:
        show_history(runs, last)
