"""The command ``culprit``: which change made figures worse."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from typing import Annotated

import typer

from assay import AssayError, say
from assay.commands.options import (
    TIME,
    CasesOption,
    ExtraOption,
    FiguresOption,
    JsonOption,
    StoredSystemOption,
)


def culprit(
    before: Annotated[str, typer.Argument(metavar='BEFORE', help='Runs of the old state.')],
    after: Annotated[str, typer.Argument(metavar='AFTER', help='Runs of the new state.')],
    system: StoredSystemOption = None,
    cases: CasesOption = '',
    figures: FiguresOption = '',
    extra: ExtraOption = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar='TIME',
            parser=TIME,
            help='Do not start another pair of sessions that would exceed this, such as 30m.',
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find which of many changes made figures worse.

    BEFORE and AFTER are chosen as in `assay compare-runs`. Their differences are taken apart:
    variables of the jobs, lines of an MPI's files, soft limits, flags, packages that Spack chose,
    the MPI, the suite's sources, an application's commit, nodes. Pairs of sessions with some
    of the changes and with the others are measured, each chosen to tell most, until a cause has a
    probability of 95%: one change, two or three, several small ones, or none of these. Where the
    suite's sources or an application's commit did it, the commit is searched likewise, and where
    the MPI did, the version.

    The same command continues a stopped search. The exit code is 0 if there is an answer, and 3 if
    there is none yet, or none of the commits or versions brings back what all of them do.

    Examples:

    \b
      assay culprit before-upgrade after-upgrade
      assay culprit last~1 last --figure bandwidth --budget 30m
      assay culprit 2026-11-01..2026-11-10 2026-11-12 -n '^Ring' --json
    """
    from assay.comparing.culprit import (
        PURPOSE,
        CulpritSearch,
        question,
        with_packages_apart,
    )
    from assay.report.culprit import (
        culprits_json,
        kept_conclusion,
        kept_reproducer,
        show_culprits,
    )
    from assay.results.history import load_history
    from assay.results.run_selectors import LAST, choose_runs
    from assay.results.runner import Runner, make_ready
    from assay.running import reframe_options, session

    history = load_history()
    # `last` is the same when it goes on: its own sessions do not count.
    old, new = (choose_runs(history, words, system, PURPOSE) for words in (before, after))
    if any(run.file for run in (*old, *new)):
        raise AssayError('runs of files may be of another machine: choose runs of this one.')
    given = reframe_options.read_for('a comparison', [])
    # Whose checks were run before and after both.
    modes = {run.summary.mode or 'acceptance' for run in (*old, *new)}
    mode = modes.pop() if len(modes) == 1 else 'acceptance'
    suite = session.suite(system or new[-1].summary.system, mode, extra or [], given)
    suite.go_to_head()
    site = suite.load()
    asked = question(history, old, new, site, cases, figures)
    began = time.monotonic()
    asked = with_packages_apart(replace(asked, mode=mode), site, suite.system)
    solving = time.monotonic() - began
    options = asked.options
    given = reframe_options.read_for('a comparison', options)
    handles = make_ready(suite, site, given.environments)
    runner = Runner(suite, given, handles, PURPOSE, suite.own)
    # The budget counts Spack's solver, and not the wait for the machine's turn.
    search = CulpritSearch(runner, asked, options, budget, time.monotonic() - solving)
    found = search.run()
    if as_json:
        print(culprits_json(found))
    else:
        show_culprits(found)
    # `last` is another run tomorrow.
    sides = (
        runs[-1].name if LAST.fullmatch(words) else words
        for words, runs in ((before, old), (after, new))
    )
    chosen = [('--system', system or ''), ('-n', cases), ('--figure', figures)]
    chosen += [('--with', one) for one in extra or []]
    options = [word for option in chosen if option[1] for word in option]
    command = shlex.join(['./assay', 'culprit', *sides, *options])
    try:
        told = kept_conclusion(found)
        search.journal.conclude(asked, told, command, kept_reproducer(found))
    except AssayError as error:
        say(str(error))
    if found.signal:
        raise typer.Exit(128 + found.signal)
    raise typer.Exit(0 if found.is_answered else 3)
