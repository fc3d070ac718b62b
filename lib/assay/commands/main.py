"""The command and its options; files beside this one for its commands.

In all of them imports that cost time stand inside the functions that need them: ``assay env`` runs
in every shell.
"""

from __future__ import annotations

import copy
import errno
import os
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from assay import AssayError, __version__, error_text, paths
from assay.commands import accept as accept_command
from assay.commands import bundle as bundle_command
from assay.commands import cluster as cluster_command
from assay.commands import spack as spack_command
from assay.commands import witness as witness_command
from assay.commands.compare_settings import compare_settings
from assay.commands.culprit import culprit
from assay.commands.history import (
    baseline,
    compare_runs,
    export,
    forget,
    history,
    provenance,
    report,
    trend,
    triage,
)
from assay.commands.init import doctor, init
from assay.commands.nightly import nightly
from assay.commands.options import SystemOption, command_group
from assay.commands.place import place
from assay.commands.run import run
from assay.commands.screen import screen
from assay.commands.tune import tune
from assay.config import settings
from assay.report.console import write_visibly
from assay.text import plain

app = command_group(
    'Does MPI on this machine work and perform? A regression test suite built on ReFrame.',
    add_completion=False,
    pretty_exceptions_enable=False,
)

# The exit code after Ctrl-C.
STOPPED = 130

# What old words are called now, and what others call what there is.
NOW = {
    'diff': 'compare-runs',
    'verify': 'accept verify',
    'history --remove': 'forget',
    'history --keep': 'forget',
    'witness show --diff': 'witness BEFORE AFTER',
    'cluster up --nodes': 'cluster up --size N',
    'provenance --report': 'provenance REPORT.json',
}

PASS_ON = {'ignore_unknown_options': True, 'allow_extra_args': True}


@app.callback(invoke_without_command=True)
def assay(
    version: Annotated[bool, typer.Option('--version', help='Print the version.')] = False,
) -> None:
    if version:
        print(f'assay {__version__}')
        raise typer.Exit


app.command(context_settings=PASS_ON)(run)
app.command(context_settings=PASS_ON)(nightly)


@app.command()
def env(system: SystemOption = settings.DEFAULT_SYSTEM) -> None:
    """Print exports with which a plain ReFrame runs the suite.

    Example:

    \b
      eval "$(./assay env)"; reframe -r -t smoke
    """
    settings.assert_writable()
    for name, value in settings.exports(system).items():
        print(f'export {name}={shlex.quote(value)}')


@app.command(context_settings=PASS_ON)
def test(
    context: typer.Context,
    everything: Annotated[
        bool, typer.Option('--all', help='Run all tests, which takes some 20 minutes.')
    ] = False,
) -> None:
    """Run the suite's own tests.

    Every other option goes to pytest (-h for its help).

    Without --all each test that starts programs runs once, on one MPI, and those marked as slow
    do not run. Tests that are named, by a file, -k or -m, all run.

    Examples:

    \b
      assay test
      assay test --all
      assay test tests/unit -k mpi
      assay test -n 0 --pdb tests/bench/test_ring.py
    """
    os.chdir(paths.ROOT)
    beside = ['-n', '2', '--no-loadscope-reorder']
    options = [*beside, *(['--all'] if everything else []), *context.args]
    os.execv(sys.executable, [sys.executable, '-m', 'pytest', *options])


app.command()(doctor)
app.command()(init)
app.command()(place)
app.command()(provenance)
app.command()(history)
app.command()(forget)
app.command()(compare_runs)
app.command(context_settings=PASS_ON)(compare_settings)
app.command()(culprit)
app.command(context_settings=PASS_ON)(screen)
app.command(context_settings=PASS_ON)(tune)
app.command()(trend)
app.command()(report)
app.command()(triage)
app.command()(baseline)
app.command()(export)
app.add_typer(witness_command.app, name='witness')
app.add_typer(accept_command.app, name='accept')
app.add_typer(cluster_command.app, name='cluster')
app.add_typer(spack_command.app, name='spack')
app.add_typer(bundle_command.app, name='bundle')


def _stop(number: int, _: object) -> None:
    """A signal's handler: end in order, as after Ctrl-C."""
    print('assay: stopped.', file=sys.stderr)
    raise SystemExit(128 + number)


def _with_one_command(words: Sequence[str]) -> typer.Typer:
    """The application with the command alone that is called; with all if that is none of them.

    To make all of them takes longer than most of them run.
    """
    name = words[0] if words else ''
    one = copy.copy(app)
    one.registered_commands = [
        command
        for command in app.registered_commands
        if command.callback and command.callback.__name__.replace('_', '-') == name
    ]
    one.registered_groups = [group for group in app.registered_groups if group.name == name]
    return one if one.registered_commands or one.registered_groups else app


def main() -> None:
    """Entry point: foreseeable errors end in one sentence and exit code 1."""
    # Where a stream was closed, as by >&-, Python has none.
    sys.stdout = sys.stdout or open(os.devnull, 'w')  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, 'w')  # noqa: SIM115
    write_visibly()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)
    try:
        words = sys.argv[1:]
        code = _with_one_command(words)(words, prog_name='assay', standalone_mode=False)
        sys.stdout.flush()  # what fails only when Python ends has no sentence
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        # The reader of the output has gone, or its disk is full. Python would complain of that once
        # more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.ENOSPC:
            print(f'assay: {error.filename or "output"}: {error.strerror}', file=sys.stderr)
        code = 1
    except AssayError as error:
        sys.exit(error_text(error))
    except typer.TyperException as error:
        told = plain(error.format_message())
        context = getattr(error, 'ctx', None)
        command = context.command_path if context else 'assay'
        found = re.match(r"No such (?:command '([\w-]+)'|option: (--[\w-]+))", told)
        called = f'{command} {found[1] or found[2]}' if found else ''
        now = NOW.get(called.removeprefix('assay '))
        sys.exit(f'assay: {told} See `{f"assay {now}" if now else f"{command} --help"}`.')
    if code == STOPPED:
        print('assay: stopped.', file=sys.stderr)
    sys.exit(code)
