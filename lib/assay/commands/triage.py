"""The command ``triage``: what is behind the failures of stored runs."""

from __future__ import annotations

from typing import Annotated

import typer

from assay import AssayError


def triage(
    words: Annotated[
        str,
        typer.Argument(metavar='RUNS', help='Which runs; all by default.', show_default=False),
    ] = '',
    case: Annotated[
        str,
        typer.Argument(
            metavar='CASE',
            help='The failure to classify: its name, or a part that no other failure has.',
            show_default=False,
        ),
    ] = '',
    kind: Annotated[
        str,
        typer.Option(
            '--class',
            metavar='CLASS',
            help='hardware, network, mpi, scheduler, filesystem, suite or unknown.',
            show_default=False,
        ),
    ] = '',
    note: Annotated[
        str, typer.Option(metavar='TEXT', help='What was found.', show_default=False)
    ] = '',
    system: Annotated[
        str | None, typer.Option(metavar='NAME', help='Only runs of this system.')
    ] = None,
) -> None:
    """List the failures of stored runs, or say what is behind one.

    RUNS is chosen as in `assay history`. Class and note are kept with the run, and stand in its
    report and in `assay history`. Given again, they take the place of the earlier ones.

    Examples:

    \b
      assay triage
      assay triage 2026-11-01..2026-11-20 --system generic
      assay triage last 'Ring %fabric=tcp' --class network --note 'switch 3, ticket 1234'
    """
    from assay.report.history import show_failures
    from assay.report.terminal import warn
    from assay.results.history import load
    from assay.results.run_selectors import choose_or_all
    from assay.results.triage import classify, failed

    stored = load()
    warn(stored.notices())
    runs = choose_or_all(stored, words, system)
    if case and kind:
        show_failures([classify(stored, runs, case, kind, note)])
    elif case or kind or note:
        raise AssayError('to classify a failure give RUNS, CASE and --class; --note if you like.')
    else:
        show_failures([*failed(stored, runs)])
