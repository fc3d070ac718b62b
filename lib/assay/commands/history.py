"""The command ``history``: the stored runs, and how one of them goes."""

from __future__ import annotations

from typing import Annotated

import typer

from assay import AssayError
from assay.commands.options import JsonOption


def history(
    words: Annotated[
        str, typer.Argument(metavar='RUNS', help='Which runs: see above.', show_default=False)
    ] = '',
    system: Annotated[
        str | None, typer.Option(metavar='NAME', help='Only runs of this system.')
    ] = None,
    last: Annotated[int, typer.Option(metavar='N', help='At most the newest N.', min=1)] = 20,
    as_json: JsonOption = False,
    remove: Annotated[
        str | None,
        typer.Option(metavar='RUNS', help='Remove these runs from the database for good.'),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar='AGE',
            help='Remove older runs, and older lines of perflogs, for good: 365d, or the first day '
            'that is kept.',
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option('--dry-run', help='Only say what --remove or --keep would remove.')
    ] = False,
) -> None:
    """List the stored runs, newest last.

    RUNS is `last` or `last~3`, a date or two (2026-11-01..2026-11-20), a label, the first
    characters of an identifier, a report of ReFrame's, or a folder of perflogs (a path with a /).

    Examples:

    \b
      assay history
      assay history 2026-11-01..2026-11-20 --system generic
      assay history before-upgrade --json
      assay history --remove 5d38a3d3
      assay history --keep 365d --dry-run
    """
    from assay.report.history import history_json, show_history, show_removed
    from assay.report.terminal import warn
    from assay.results.history import load, remove_runs
    from assay.results.perflogs import old_lines, remove_old_lines
    from assay.results.run_selectors import choose_or_all, kept_since, old_runs, removable

    stored = load()
    if remove is not None and keep is not None:
        raise AssayError('--remove and --keep are two ways to remove runs: take one.')
    if remove is not None:
        if words:
            raise AssayError(f'--remove {remove} has its own words: leave out {words!r}.')
        old = removable(stored, remove, system)
        show_removed(old if dry_run else remove_runs(stored, old), {}, dry_run)
        return
    if keep is not None:
        if words or system:
            raise AssayError(f'--keep {keep} is of all runs: leave out {words or "--system"!r}.')
        since = kept_since(keep)
        old = old_runs(stored, since)
        if dry_run:
            show_removed(old, old_lines(stored.database.parent, since), dry_run)
        else:
            lines = remove_old_lines(stored.database.parent, since)
            show_removed(remove_runs(stored, old), lines, dry_run)
        return
    if dry_run:
        raise AssayError('--dry-run is for --remove and --keep.')
    warn(stored.notices())
    runs = choose_or_all(stored, words, system)
    if as_json:
        print(history_json(runs[-last:]))
    else:
        show_history(runs, last)
