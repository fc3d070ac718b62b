"""The job of a screening: run through ReFrame, and what it measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError
from assay.machine.slurm import SCHEDULERS, node_list, switches
from assay.results.cases import folder_left
from assay.results.runner import Runner, make_ready
from assay.running import reframe_options
from assay.running.reframe_options import Given
from assay.running.session import Suite
from assay.running.supervise import Audience
from assay.screening import kept as screenings
from assay.screening import outputs
from assay.screening.outputs import collect
from assay.screening.where import Where, nodes_to_screen, why_left_out

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig


def measure_nodes(
    suite: Suite,
    site: _SiteConfig,
    where: Where,
    given: Given,
    job: Sequence[str],
    options: Sequence[str],
    audience: Audience | None,
    is_all: bool = True,
) -> Path:
    """Run the job, whatever number of nodes it has, and keep what it measured with its outputs.

    :param job: options of ReFrame that :func:`job_options` gave.
    :param options: those of the user.
    :param audience: it hears what goes on.
    :param is_all: whether all nodes of the partition are meant, and not those that a user named.
    :returns: the file of the screening.
    :raises AssayError: if it did not measure, with the reasons, or cannot be kept.
    :raises SystemExit: if it was told to stop.
    """
    handles = make_ready(suite, site, [f'{re.escape(where.environment)}$'])
    begun = datetime.now().astimezone()
    asked = [*where.options, *job, *options]
    runner = Runner(suite, given, handles, 'screen')
    given = replace(given, jobs=[*reframe_options.read_options([*job]).jobs, *given.jobs])
    with suite.in_one_job(site, given, asked):
        found = runner.run(suite.own, None, asked, audience=audience)
    if found.stopped:
        raise SystemExit(128 + found.stopped)
    cases = found.run.last_cases if found.run else ()
    ran = [one for one in cases if one.check == 'Screen' and one.result in ('pass', 'fail')]
    case = next((one for one in ran if one.came_to_its_figures), None)
    if case is None or found.unstored:
        raise AssayError('\n'.join(['the screening did not measure:', *found.reasons]))
    folder = folder_left(case) or Path(case.files.stage)
    nodes = case.job.nodes
    measured = collect(folder, where, begun, nodes, switches())
    if is_all:
        measured = replace(measured, left_out=why_left_out(where, measured.nodes))
    # The outputs first: a screening without them could not be verified.
    outputs.keep_outputs(screenings.path_of(measured), folder, where, nodes)
    return screenings.keep_screening(measured)


def job_options(where: Where, nodes: str | None, reserve: str | None, is_quick: bool) -> list[str]:
    """ReFrame's options for the nodes that a user names.

    :raises AssayError: if they are none, or the scheduler does not take them.
    """
    options = ['-S', 'Screen.quick=yes'] if is_quick else []
    if (nodes or reserve) and where.scheduler not in SCHEDULERS:
        raise AssayError(
            f'--nodes and --reserve are for Slurm; {where.partition} has {where.scheduler}: tell '
            f'it by -J, and the number of nodes by -S Screen.asked_nodes=N'
        )
    if nodes:
        names = nodes_to_screen(nodes)
        options += ['-J', f'nodelist={node_list(names)}', '-S', f'Screen.asked_nodes={len(names)}']
    if reserve:
        options += ['-J', f'reservation={reserve}']
    return options
