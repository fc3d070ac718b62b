"""The command ``triage``: what is behind the failures of stored runs."""

from __future__ import annotations

from typing import Annotated

import typer

from assay import AssayError
from assay.commands.options import CasesOption, JsonOption, StoredSystemOption


def triage(
    words: Annotated[
        str,
        typer.Argument(metavar='RUNS', help='Which runs; all by default.', show_default=False),
    ] = '',
    case: CasesOption = '',
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
    system: StoredSystemOption = None,
    as_json: JsonOption = False,
) -> None:
    """List failures of stored runs, or say what is behind one.

    RUNS is chosen as in `assay history`. With --class it is one run, and -n selects one of its
    failures. Class and note are kept with the run, and stand in its
    report and in `assay history`. Given again, they take the place of the earlier ones.

    Examples:

    \b
      assay triage
      assay triage 2026-11-01..2026-11-20 --system generic
      assay triage last -n 'Ring %fabric=tcp' --class network --note 'switch 3, ticket 1234'
    """
    from assay.report.history import failures_json, show_failures
    from assay.report.terminal import warn
    from assay.results.history import load
    from assay.results.run_selectors import choose_or_all, of_cases
    from assay.results.triage import classify, failed

    stored = load()
    warn(stored.notices())
    runs = choose_or_all(stored, words, system)
    if kind:
        found = [classify(stored, runs, case, kind, note)]
    elif note:
        raise AssayError('--note is for a failure with --class.')
    else:
        is_chosen = of_cases(case)
        found = [one for one in failed(stored, runs) if is_chosen(one.case)]
    if as_json:
        print(failures_json(found))
    else:
        show_failures(found)
