"""The command ``nightly``: a run that a schedule starts, and that tells people only what is new."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from assay import AssayError
from assay.commands.options import (
    BudgetOption,
    ExtraOption,
    MarginOption,
    ModeOption,
    NodesOption,
    OneJobOption,
    SystemOption,
)
from assay.config import settings

if TYPE_CHECKING:
    from assay.running.session import Suite


def nightly(
    context: typer.Context,
    mode: ModeOption = 'maintenance',
    system: SystemOption = settings.DEFAULT_SYSTEM,
    extra: ExtraOption = None,
    margin: MarginOption = 0.05,
    budget: BudgetOption = None,
    one_job: OneJobOption = False,
    choose_nodes: NodesOption = None,
    tell: Annotated[
        str | None,
        typer.Option(
            '--notify',
            metavar='COMMAND',
            help='A shell command that gets a message on standard input when the verdict changes.',
        ),
    ] = None,
) -> None:
    """Run checks on a schedule, and report only news.

    Runs like `assay run`, and compares what passed with the last five good nights. Figures that
    look worse are measured again first. It does nothing if another night of the system and mode is
    under way, or if Slurm reports maintenance.

    The exit code is 0 if all passed and nothing is worse; 1 if something failed or is worse, or the
    notification failed; 3 if something looks worse and is undecided, or others disturbed it; and 75
    if the night was put off. After 48 hours of maintenance it is 1. All other options are
    ReFrame's, as with `assay run`.

    Examples:

    \b
      assay nightly --system mycluster
      assay nightly --system mycluster --notify 'mail -s "$ASSAY_SUBJECT" hpc@example.org'
      assay nightly --system mycluster:compute --mode smoke --report-junit=junit.xml
      assay nightly --system mycluster --mode acceptance --budget 2h
    """
    from assay.nights.night import Night
    from assay.results.diff.judging import assert_margin
    from assay.running import reframe_options, session
    from assay.running.node_choice import way_of

    given = replace(reframe_options.read_for('a night', context.args), extra=tuple(extra or ()))
    assert_margin(margin)
    way = way_of(choose_nodes) if choose_nodes is not None else None
    suite: Suite | AssayError
    try:
        suite = session.suite(system, mode, extra or [], given, one_job)
    except AssayError as error:  # which is reported like all else
        suite = error
    else:
        suite.go_to_head()
    night = Night(suite, system, mode, given, context.args, margin, tell, budget, way)
    raise typer.Exit(night.spend())
