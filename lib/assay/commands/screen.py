"""The command ``screen``: all nodes of a partition against each other."""

from __future__ import annotations

from typing import Annotated

import typer

from assay import AssayError
from assay.commands.options import ExtraOption, JsonOption, OneJobOption, SystemOption
from assay.config import settings


def screen(
    context: typer.Context,
    system: SystemOption = settings.DEFAULT_SYSTEM,
    nodes: Annotated[
        str | None,
        typer.Option(metavar='LIST', help='The nodes, such as n[1-16]; all idle ones by default.'),
    ] = None,
    reserve: Annotated[
        str | None, typer.Option(metavar='NAME', help='A reservation of Slurm to run in.')
    ] = None,
    quick: Annotated[
        bool, typer.Option('--quick', help='Measure each node 3 times instead of 8.')
    ] = False,
    environment: Annotated[
        str | None, typer.Option(metavar='NAME', help='The MPI; the first one by default.')
    ] = None,
    fabric: Annotated[
        str | None,
        typer.Option(metavar='NAME', help="The partition's first by default, devices before TCP."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option('--from', metavar='FILE', help='Judge a stored screening again, or `last`.'),
    ] = None,
    extra: ExtraOption = None,
    one_job: OneJobOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the bad node, link or switch of a partition.

    One job repeatedly measures every node alone, all nodes at once, and pairs of nodes, and
    compares them with each other and with their own past. The output names the bad part, with the
    evidence and the commands that would drain it. It drains and resumes nothing itself.

    The exit code is 0 if nothing was found, 1 if something was or the job failed, and 3 if it is
    undecided: others disturbed nodes, one is a suspect, or one gives no answer. All other options
    are ReFrame's: -J, -S, ...

    Examples:

    \b
      assay screen --system mycluster:compute
      assay screen --system mycluster:compute --nodes n[1-64] --quick
      assay screen --system mycluster:compute --reserve maintenance
      assay screen --system mycluster:compute --from last --json
    """
    from assay.report import screening as report
    from assay.report.progress import Progress
    from assay.running import reframe_options, session
    from assay.screening.findings import MOST_EARLIER
    from assay.screening.kept import earlier_screenings, find_screening
    from assay.screening.measured import read_screening
    from assay.screening.measuring import job_options, measure_nodes
    from assay.screening.verdict import judge_screening
    from assay.screening.where import choose_where

    if source and (nodes or reserve or quick or context.args):
        raise AssayError('--from judges what was measured: leave out options of a measurement.')
    given = reframe_options.read_for('a screening', context.args)
    suite = session.suite(system, 'screen', extra or [], given, one_job)
    if not source:
        suite.go_to_head()
    site = suite.load()
    where = choose_where(site, system, environment, fabric)
    if source:
        path = find_screening(source, where.partition)
    else:
        job = job_options(where, nodes, reserve, quick)
        audience = None if as_json else Progress(suite.own, given)
        path = measure_nodes(
            suite, site, where, given, job, context.args, audience, not (nodes or reserve)
        )
    now = read_screening(path)
    verdict = judge_screening(now, [*earlier_screenings(path, now, MOST_EARLIER).values()])
    if as_json:
        print(report.screening_json(now, verdict, where.scheduler, path))
    else:
        report.show_screening(now, verdict, where.scheduler, path)
    raise typer.Exit(verdict.exit_code)
