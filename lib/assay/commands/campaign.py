"""The command ``cluster campaign``: faults in a cluster of their own, and who sees them."""

from __future__ import annotations

from typing import Annotated

import typer

from assay import AssayError, say
from assay.text import plain


def campaign(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar='[FAULT]...',
            help='Faults or kinds of them, such as network/delay or node; all by default.',
            show_default=False,
        ),
    ] = None,
    severity: Annotated[
        list[str] | None,
        typer.Option(
            metavar='SEVERITY', help='low, middle or high; may be repeated. All by default.'
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option('--list', help='Print the faults, and bring none in.')
    ] = False,
) -> None:
    """Bring faults into a cluster, and tell which the suite sees.

    Starts a virtual cluster, and for each fault of tests/faults/catalogue injects it, runs the
    check that meets it, heals it, and runs the check again. Prints a table in Markdown,
    a row as soon as it is known. The exit code is 0 if each fault of middle and high severity was
    seen, with a sentence that names its cause, and nothing else was red.

    Examples:

    \b
      assay cluster campaign --list
      assay cluster campaign network/delay --severity high
      assay cluster campaign >matrix.md
    """
    from assay.campaign import catalogue, look
    from assay.campaign.course import course
    from assay.machine.mpi import find_mpis
    from assay.report import campaign as report
    from assay.running.prepare import prepare

    faults = catalogue.choose_faults(catalogue.load_faults(), names or [])
    if wrong := [one for one in severity or [] if one not in catalogue.SEVERITIES]:
        raise AssayError(f'--severity {wrong[0]}: it is one of {", ".join(catalogue.SEVERITIES)}')
    severities = [one for one in catalogue.SEVERITIES if one in (severity or [one])]
    if show:
        for name, fault in faults.items():
            print(plain(f'{name:32} {", ".join(fault.degrees):18} {fault.what}'))
        return
    prepare('vcluster', [])
    (mpi,) = (one for one in find_mpis() if one.name == look.ENVIRONMENT)
    print(*report.heading(), sep='\n', flush=True)
    outcomes = []
    for outcome in course(mpi, faults, severities):
        outcomes.append(outcome)
        print(plain(report.row(outcome)), flush=True)
    good = sum(outcome.is_good for outcome in outcomes)
    say(f'{good} of {len(outcomes)} as they should be')
    raise typer.Exit(good < len(outcomes))
