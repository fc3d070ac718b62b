"""The command ``compare``: two environments that are both there, measured in turn.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

import re
from typing import Annotated

import typer

from assay import AssayError
from assay.commands.options import (
    AllRowsOption,
    ExtraOption,
    JsonOption,
    MarginOption,
    ModeOption,
    SystemOption,
)
from assay.config import settings


def compare(
    context: typer.Context,
    before: Annotated[str, typer.Argument(metavar='ENV_A', help='The environment before.')],
    after: Annotated[str, typer.Argument(metavar='ENV_B', help='The environment after.')],
    mode: ModeOption = 'smoke',
    system: SystemOption = settings.DEFAULT_SYSTEM,
    extra: ExtraOption = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            metavar='N',
            min=0,
            help='Begin no four sessions that would end later than this; the first four are '
            'measured in any case.',
        ),
    ] = None,
    margin: MarginOption = 0.05,
    everything: AllRowsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure in two environments in turn, and say what is worse or better in the second.

    What looks changed is measured again, alone, in pairs A B B A: until it is decided, or 12 pairs
    are spent. The exit code is 1 if a figure is worse, or a case fails with one of them only, or
    far more often with one. Every other option is passed to ReFrame, as `assay run` does it: -n,
    -t, -S, ...

    Examples:

    \b
      assay compare openmpi mpich
      assay compare openmpi mpich -n '^Ring%fabric=shm' --minutes 10
      assay compare openmpi intelmpi --with intelmpi --mode maintenance
    """
    from assay.comparing.foursomes import Foursomes
    from assay.comparing.measuring import Measuring
    from assay.report.interleaved import as_text, show
    from assay.results.diff.judging import assert_margin
    from assay.results.ready import make_ready
    from assay.running import reframe_options, session
    from assay.running.both_environments import assert_both

    if before.startswith('-') or after.startswith('-'):
        raise AssayError('the two environments come first: `assay compare openmpi mpich -n Ring`.')
    given = reframe_options.read_for_comparison(context.args)
    assert_margin(margin)
    suite = session.suite(system, mode, extra or [], given)
    if (code := suite.on_head()) is not None:
        raise typer.Exit(code)
    site = suite.load()
    assert_both(site, system, before, after)
    handles = make_ready(suite, site, [f'{re.escape(name)}$' for name in (before, after)])
    seconds = None if minutes is None else 60 * minutes
    foursomes = Foursomes(suite, site, (before, after), given, context.args, handles)
    found, code = Measuring(foursomes, margin, seconds).run()
    if as_json:
        print(as_text(found))
    else:
        show(found, everything)
    raise typer.Exit(code)
