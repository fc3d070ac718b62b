"""The command ``history``: the stored runs, and how one of them goes.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from assay import AssayError


def history(
    words: Annotated[
        str, typer.Argument(metavar='RUNS', help='Which runs: see above.', show_default=False)
    ] = '',
    system: Annotated[
        str | None, typer.Option(metavar='NAME', help='Only runs of this system.')
    ] = None,
    last: Annotated[int, typer.Option(metavar='N', help='At most the newest N.', min=1)] = 20,
    as_json: Annotated[
        bool, typer.Option('--json', help='Print JSON, of all that is known.')
    ] = False,
    remove: Annotated[
        str | None,
        typer.Option(metavar='RUNS', help='Remove these runs from the database for good.'),
    ] = None,
) -> None:
    """List the stored runs, newest last.

    RUNS is `last` or `last~3`, a date or two (2026-11-01..2026-11-20), a label, the first
    characters of an identifier, or a report of ReFrame's.

    Examples:

    \b
      assay history
      assay history 2026-11-01..2026-11-20 --system generic
      assay history before-upgrade --json
      assay history --remove 5d38a3d3
    """
    import sys

    from assay.report.history import as_text, show
    from assay.results.choice import choose, of_system, removable
    from assay.results.history import load, remove_runs
    from assay.text import plain

    stored = load()
    if remove is not None:
        if words:
            raise AssayError(f'--remove {remove} has its own words: leave out {words!r}.')
        for run in remove_runs(stored, removable(stored, remove, system)):
            print(f'removed: {run.uuid}')
        return
    for notice in stored.notices():
        print(f'assay: {plain(notice)}', file=sys.stderr)
    runs = choose(stored, words, system) if words else of_system(stored, system)
    if as_json:
        print(as_text(runs[-last:]))
    else:
        show(runs, last)
