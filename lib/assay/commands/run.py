"""The command ``run``: prepare, let ReFrame run, and judge the results."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from assay import AssayError
from assay.commands.options import (
    BudgetOption,
    ExtraOption,
    ModeOption,
    NodesOption,
    OneJobOption,
    PlaceOption,
    SystemOption,
)
from assay.config import settings

#: Seconds for which `--against` measures again what looks worse, unless a budget is given.
AGAIN = 600.0


def run(
    context: typer.Context,
    mode: ModeOption = 'smoke',
    system: SystemOption = settings.DEFAULT_SYSTEM,
    extra: ExtraOption = None,
    mpi: PlaceOption = None,
    label: Annotated[
        str | None,
        typer.Option(metavar='TEXT', help='A name for the run, to find it in `assay history`.'),
    ] = None,
    repeat: Annotated[
        int,
        typer.Option(
            metavar='N',
            help='Run the whole selection N times, one after the other; with --against as N runs. '
            'For a comparison, several runs at different times tell more.',
        ),
    ] = 1,
    against: Annotated[
        str | None,
        typer.Option(
            metavar='BEFORE',
            help='Compare with these stored runs, chosen as in `assay history`, and measure again '
            'what looks or may be worse until it is decided, as a rule in three rounds.',
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar='FILE.html',
            help='Also write the run as one HTML page, as `assay report` does.',
        ),
    ] = None,
    budget: BudgetOption = None,
    one_job: OneJobOption = False,
    choose_nodes: NodesOption = None,
    every_node: Annotated[
        bool,
        typer.Option(
            '--every-node',
            help='Run the selection again and again on idle nodes of Slurm, until each node that '
            'is not out had a case, or --budget is used.',
        ),
    ] = False,
    everything: Annotated[
        bool, typer.Option('--all', help='Show every figure of every case, and each skipped case.')
    ] = False,
) -> None:
    """Run checks, and compare their figures with the references.

    Installs and builds what is missing, runs the checks of a mode through ReFrame, and ends with
    the failures and a line for each check. The exit code is 0 only if something was measured and
    all of it passed. It is 3 if nothing failed, but others disturbed some cases each time;
    otherwise 1. With --against it is also 1 if something is worse, and 3 if something looks worse
    by more than 5% and 10 minutes (or --budget) did not decide it.

    All other options are ReFrame's: -n, -t, -E, -S, -P, --dry-run, -l, ... Options that would void
    the verdict are refused (docs/reframe-options.md).

    Examples:

    \b
      assay run
      assay run --mode maintenance --with intelmpi
      assay run --mpi /opt/acme-mpi --mpi 'gcc/12 openmpi/4.1.6'
      assay run --with spack
      assay run --with spack:applications --mode maintenance
      assay run -n '%fabric=tcp' -P layout=packed --report-junit=junit.xml
      assay run --label before
      assay run --against before --repeat 3
      assay run --report report.html
      assay run --mode maintenance --budget 20m
      assay run --mode maintenance --system mycluster:compute --one-job -J nodes=16
      assay run -l
    """
    from assay.results.history import load_history
    from assay.results.run_selectors import assert_label
    from assay.running import reframe_options, session
    from assay.running.node_choice import way_of
    from assay.running.prepare import name_mpis

    name_mpis(system, mpi or [])
    given = replace(
        reframe_options.read_options(context.args),
        page=report,
        everything=everything,
        extra=tuple(extra or ()),
    )
    if label is not None:
        assert_label(label)
    again = reframe_options.repetitions(context.args, repeat)
    if budget is not None:
        reframe_options.assert_can_be_chosen_for(given)
    if every_node:
        reframe_options.assert_is_for_several_runs(given, repeat, against, one_job)
    before = []
    if against is not None:
        from assay.comparing.against import assert_cases_in_common, runs_before

        reframe_options.assert_can_be_held_against(given, repeat)
        before = runs_before(load_history(), against, system)
    way = way_of(choose_nodes) if choose_nodes is not None else None
    if every_node and way not in (None, 'turn'):
        raise AssayError(f'--every-node takes nodes in turn: leave out --choose-nodes {way}.')
    started = time.monotonic()
    suite = session.suite(system, mode, extra or [], given, one_job)
    suite.go_to_head()
    site = suite.load()
    if given.action:
        command = [*suite.command, *context.args]
        if budget is not None:
            from assay.one_run import RunRequest, choose_for, options_for_choice

            request = RunRequest(suite, site, given, label, context.args)
            command += options_for_choice(choose_for(request, budget, repeat))
        raise typer.Exit(subprocess.call(command, env=suite.environment))

    from assay.one_run import (
        RunRequest,
        choose_for,
        in_ordered_job,
        measure_against,
        measure_every_node,
        measure_once,
    )
    from assay.results import node_turns
    from assay.results.runner import make_ready
    from assay.running.selection import list_cases

    selected = []
    if against is not None:
        selected = list_cases(suite.command, context.args, suite.environment)
        assert_cases_in_common(load_history(), before, against, selected)
    given.remove_files_of_an_earlier_run()
    handles = make_ready(suite, site, given.environments)
    if way:
        node_turns.use_chosen_nodes(suite, site, way, suite.own)
    request = RunRequest(suite, site, given, label, context.args, handles)
    if every_node:
        raise typer.Exit(measure_every_node(request, budget))
    so_far = time.monotonic() - started
    choice = None
    if budget is not None:
        choice = choose_for(request, budget, repeat)
        so_far = 0.0  # a budget is for what is chosen, and not for what is waited for or installed

    def run_it() -> int:
        if against is not None:
            names = {one.name for one in selected}
            return measure_against(request, before, names, repeat, budget or AGAIN, choice)
        repeated = replace(request, options=[*again, *context.args])
        return measure_once(repeated, suite.own, so_far, choice).exit_code

    if against is None:
        job = in_ordered_job(request, choice, budget, repeat)
    else:  # each of its runs is of the same cases
        cases = choice.listed if choice else selected
        job = suite.in_one_job(site, given, context.args, cases, budget)
    with job:
        code = run_it()
    if way:
        node_turns.tell_turns(suite, site, given.jobs)
    raise typer.Exit(code)
