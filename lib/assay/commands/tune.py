"""The command ``tune``: the algorithms of an MPI's collective operations against its default."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from assay import AssayError, paths
from assay.commands.options import (
    TIME,
    ExtraOption,
    JsonOption,
    OneJobOption,
    OutputOption,
    SystemOption,
)
from assay.config import settings

#: The check whose cases are tuned.
CHECK = paths.CHECKS / 'mpi' / 'tune.py'


def tune(
    context: typer.Context,
    system: SystemOption = settings.DEFAULT_SYSTEM,
    budget: Annotated[
        float | None,
        typer.Option(
            '--budget',
            metavar='TIME',
            parser=TIME,
            help='Do not start another job that would exceed this, such as 20m; the same command '
            'continues later.',
        ),
    ] = None,
    output: OutputOption = Path('collectives.rules'),
    extra: ExtraOption = None,
    one_job: OneJobOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find collective algorithms better than the defaults.

    Each algorithm that the MPI says it has is measured in turn with the default, results checked,
    for the ranks of one case: the first that -n and -p leave. An algorithm that crashes, hangs,
    gives a wrong answer or is ignored is reported and not offered. Where one looks better, rules in
    the MPI's own format are applied and measured again, in pairs A B B A. Only proved rules are
    written, with the settings that use them; otherwise the answer is to keep the defaults.

    Without --budget everything is measured until it is decided. A stopped command keeps its
    measurements, and the same command continues from there. The exit code is 0 if all is decided,
    and 3 if the time ended first. All other options are ReFrame's.

    Examples:

    \b
      assay tune -p '^openmpi$' --budget 20m
      assay tune -p '^mpich$' -n '%fabric=shm%layout=packed' -o mpich.json
      assay tune --system mycluster:cpu -p '^openmpi$' -n '%scale=4_nodes' --budget 2h
    """
    from assay.report.tuning import show_tuning, tuning_json
    from assay.results.runner import Runner, make_ready
    from assay.running import reframe_options, selection, session
    from assay.tuning.measuring import Tuning, write_rules

    given = reframe_options.read_for('a tuning', context.args)
    suite = session.suite(system, 'tune', extra or [], given, one_job)
    suite.go_to_head()
    folder = output.resolve().parent
    suite.assert_shared(folder)
    if not os.access(folder, os.W_OK):
        raise AssayError(f'{folder}: rules cannot be written there: name a file by -o.')
    site = suite.load()
    asked = [f'--checkpath={CHECK}', *context.args]
    cases = selection.list_cases(suite.command, asked, suite.environment)
    if not cases:
        selection.explain_selection(site, given)
        raise AssayError('no case to tune was selected.')
    for kind, option in (('environment', '-p'), ('partition', '--system NAME:PARTITION')):
        names = sorted({getattr(one, kind) for one in cases})
        if len(names) > 1:
            raise AssayError(f'one {kind} is tuned: choose it by {option} ({", ".join(names)}).')
    case = cases[0]
    family = next(
        one['extras']['family'] for one in site['environments'] if one['name'] == case.environment
    )
    handles = make_ready(suite, site, [f'{re.escape(case.environment)}$'])
    options = [*asked, *selection.leaving_out({one.name for one in cases} - {case.name})]
    runner = Runner(suite, given, handles, 'tune', suite.own)
    with suite.in_one_job(site, given, options, [case]):
        found = Tuning(runner, options, case, family, budget).run()
    file = output if found.rules else None
    if file:
        write_rules(file, found)
    if as_json:
        print(tuning_json(found, file))
    else:
        show_tuning(found, file)
    raise typer.Exit(128 + runner.signals[0] if runner.signals else found.exit_code)
