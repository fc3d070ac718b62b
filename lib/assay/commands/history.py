"""The commands ``history`` and ``forget``: the stored runs."""

from __future__ import annotations

from typing import Annotated

import typer

from assay import AssayError
from assay.commands.options import DryRunOption, JsonOption, StoredSystemOption


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


def forget(
    words: Annotated[
        str,
        typer.Argument(
            metavar='[RUNS]', help='Which runs, as in `assay history`.', show_default=False
        ),
    ] = '',
    keep: Annotated[
        str | None,
        typer.Option(
            metavar='TIME',
            help='Instead of RUNS: all older runs, and older lines of perflogs. Keep 365d, or '
            'what began on a day or after it (2026-01-01).',
        ),
    ] = None,
    system: StoredSystemOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Remove stored runs from the history for good.

    Examples:

    \b
      assay forget 5d38a3d3
      assay forget before-upgrade --dry-run
      assay forget --keep 365d
    """
    from assay.report.history import show_removed
    from assay.results.history import load, remove_runs
    from assay.results.perflogs import old_lines, remove_old_lines
    from assay.results.run_selectors import kept_since, old_runs, removable

    if bool(words) == (keep is not None):
        raise AssayError('name RUNS to remove, or how long to --keep runs: one of both.')
    stored = load()
    if keep is None:
        old = removable(stored, words, system)
        show_removed(old if dry_run else remove_runs(stored, old), {}, dry_run)
        return
    if system:
        raise AssayError(f"--keep {keep} is of all runs: leave out '--system'.")
    since = kept_since(keep)
    old = old_runs(stored, since)
    if dry_run:
        show_removed(old, old_lines(stored.database.parent, since), dry_run)
    else:
        lines = remove_old_lines(stored.database.parent, since)
        show_removed(remove_runs(stored, old), lines, dry_run)
