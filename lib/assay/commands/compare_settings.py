"""The command ``compare-settings``: two settings that are both installed, measured in turn."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Annotated

import typer

from assay import AssayError
from assay.commands.options import (
    TIME,
    AllRowsOption,
    ExtraOption,
    JsonOption,
    MarginOption,
    ModeOption,
    OneJobOption,
    SystemOption,
)
from assay.config import settings


def compare_settings(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar='[BEFORE AFTER] [OPTIONS OF REFRAME]',
            help='Two environments, short for --before env=BEFORE --after env=AFTER.',
        ),
    ] = None,
    before: Annotated[
        list[str] | None,
        typer.Option('--before', metavar='NAME=VALUE', help='A setting of the side before.'),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option('--after', metavar='NAME=VALUE', help='A setting of the side after.'),
    ] = None,
    mode: ModeOption = 'smoke',
    system: SystemOption = settings.DEFAULT_SYSTEM,
    extra: ExtraOption = None,
    within: Annotated[
        float | None,
        typer.Option(
            metavar='TIME',
            parser=TIME,
            help='Do not start another round of four sessions that would exceed this, such as 20m; '
            'the first round is always measured.',
        ),
    ] = None,
    margin: MarginOption = 0.05,
    one_job: OneJobOption = False,
    everything: AllRowsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure with two settings in turn, and compare the second.

    A setting is env=NAME; a parameter of the checks, as fabric=tcp or layout=spread; flags=-O1,
    which builds add to their own; sources=PATH, another checkout of the suite whose programs are
    built; commit=NAME, of the repository of an application; nodes=n[1-4], of Slurm; or a variable
    of the jobs, which begins with a capital. --before and --after take several, each with an option
    of its own. A side without any is as it is.

    Figures that look changed are measured again, alone, in pairs A B B A, until they are decided or
    12 pairs are spent. The exit code is 1 if a figure is worse, or a case fails only or far more
    often with one setting; 3 if nothing is worse, but a figure looks worse by more than the margin
    and is undecided, or most could not be compared. All other options are ReFrame's, as with `assay
    run`: -n, -p, -t, -S, ...

    Examples:

    \b
      assay compare-settings openmpi mpich
      assay compare-settings openmpi mpich -n '^Ring%fabric=shm' --within 10m
      assay compare-settings --before fabric=tcp --after fabric=shm -p '^openmpi$'
      assay compare-settings --after OMPI_MCA_btl_vader_single_copy_mechanism=none -p '^openmpi$'
      assay compare-settings --after flags=-O1 -n '^MiniGhost'
      assay compare-settings --after sources=../assay-before -n '^MiniFE%fabric=shm'
      assay compare-settings --before env=openmpi --before fabric=ucx-ib \\
        --after env=intelmpi --after fabric=ofi-verbs
    """
    from assay.comparing.interleaved import InterleavedMeasurement
    from assay.report.diff import show_interleaved
    from assay.report.diff_json import interleaved_json
    from assay.results.diff.judging import assert_margin
    from assay.results.runner import Runner, make_ready
    from assay.running import reframe_options, selection, session, setting

    # Options that are ReFrame's end the environments.
    names = [*takewhile(lambda word: not word.startswith('-'), words or ())]
    options = (words or [])[len(names) :]
    if len(names) not in (0, 2) or not (names or before or after):
        raise AssayError(
            'name two environments before all options of ReFrame, as in `assay compare-settings '
            'openmpi mpich -n Ring`, or two settings by --before and --after.'
        )
    envs = [f'env={name}' for name in names]
    sides = setting.read_settings([*envs[:1], *(before or [])], [*envs[1:], *(after or [])])
    given = reframe_options.read_for('a comparison', options)
    assert_margin(margin)
    suite = session.suite(system, mode, extra or [], given, one_job)
    suite.go_to_head()
    site = suite.load()
    setting.assert_settable(sides, site, given)

    def cases_of(more: list[str]) -> list[selection.Listed]:
        return selection.list_cases(suite.command, [*more, *options], suite.environment)

    cases = [cases_of(one.options) for one in sides]
    if not setting.cases_in_common(sides, cases):
        if not (all_cases := cases_of([])):
            selection.explain_selection(site, given)
        raise AssayError(setting.why_nothing_in_common(sides, cases, all_cases))
    wanted = [f'{re.escape(one.environment)}$' for one in sides if one.environment]
    handles = make_ready(suite, site, wanted or given.environments)
    runner = Runner(suite, given, handles, 'compare', suite.own)
    both = [case for those in cases for case in those]
    # Without that time: the first four sessions are measured in any case.
    with suite.in_one_job(site, setting.with_nodes(given, sides), options, both):
        found, code = InterleavedMeasurement(runner, sides, options, margin, within).run()
    if as_json:
        print(interleaved_json(found))
    else:
        show_interleaved(found, everything)
    raise typer.Exit(code)
