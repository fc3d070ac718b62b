"""One run of the suite on the cluster, and what it said."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from assay import AssayError, paths
from assay.campaign.catalogue import SCREEN
from assay.results.failures import Failure, disturbed_cases, failures, left_in_good_cases
from assay.results.reframe_report import read_reframe_report
from assay.running import runs
from assay.tools import ask

ASSAY = str(paths.ROOT / 'assay')
SYSTEM = 'vcluster:srun'
ENVIRONMENT = 'openmpi'

#: By which the runs can be taken out of the history: they measured what was broken.
LABEL = 'campaign'

#: Findings of a screening that accuse nobody.
UNDECIDED = ('suspect', 'disturbed')

#: Seconds until a job must have come through MPI_Init, with the build before it.
PATIENCE = 120


@dataclass(frozen=True)
class Look:
    """The failed and disturbed cases of a run.

    :param failed: the cases that failed, with their sentences.
    :param disturbed: those that are no evidence, with the sentences that say why.
    :param note: what it said of variables that were left in the environment of cases that passed.
    """

    failed: list[Failure] = field(default_factory=list)
    disturbed: list[Failure] = field(default_factory=list)
    note: str | None = None


@contextmanager
def started_run(
    checks: list[str], variables: dict[str, str], options: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """Start a run; one that is left before its end is stopped.

    :param checks: as ``-n`` has them.
    :param variables: of their jobs.
    :param options: more of ``assay run``.
    """
    command = [ASSAY, 'run', '--system', SYSTEM, '-p', f'^{ENVIRONMENT}$']
    command += ['--label', LABEL, '--session-extras', 'purpose=campaign', *options]
    for check in checks:
        command += ['-n', f'^{check}']
        if variables:
            given = ','.join(f'{name}:{value}' for name, value in variables.items())
            command += ['-S', f'{class_of(check)}.env_vars={given}']
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield run
    finally:
        if run.poll() is None:
            run.terminate()  # it cancels its jobs first
            run.communicate()


def run_checks(
    checks: list[str],
    variables: dict[str, str],
    options: Sequence[str] = (),
    is_kept: bool = True,
) -> Look:
    """Run checks to the end, or a screening, which later ones are held against if it is kept."""
    if checks == [SCREEN]:
        return screen_partition(options, is_kept)
    with started_run(checks, variables, options) as run:
        return await_end(run, checks)


def screen_partition(options: Sequence[str], is_kept: bool) -> Look:
    """Screen the partition; what a finding accuses begins its sentence.

    :param options: more of ``assay screen``.
    :param is_kept: whether later screenings are held against it.
    :raises AssayError: if the screening did not come to its end.
    """
    command = [ASSAY, 'screen', '--system', SYSTEM, '--environment', ENVIRONMENT, '--json']
    command += options
    done = ask(command)
    try:
        told = json.loads(done.stdout)
    except ValueError:
        raise AssayError(
            f'a screening ended with exit code {done.returncode}:\n{done.stderr}'
        ) from None
    if not is_kept:
        Path(told['file']).unlink()
    look = Look()
    for one in told['findings']:
        evidence = '; '.join(f'{entry["figure"]}: {entry["text"]}' for entry in one['evidence'])
        reason = f'{" ".join([one["kind"], *one["members"]])}: {evidence}'
        into = look.disturbed if one['kind'] in UNDECIDED else look.failed
        into.append(Failure(SCREEN, reason, ()))
    return look


def is_of(case: str, check: str) -> bool:
    """Whether a case, by its title, is one of a check, as ``-n`` has it."""
    return f'{case.replace(" %", "%")} '.startswith((f'{check}%', f'{check} '))


def class_of(check: str) -> str:
    """The class of a check, by a name that may have parameters."""
    return check.partition('%')[0]


def await_end(run: subprocess.Popen[str], checks: list[str]) -> Look:
    """Wait for the end of a run.

    Where no case failed, but the run as a whole did, its first check is said to have failed.

    :raises AssayError: if it lacks a check, or its exit code is not what it found.
    """
    said = run.communicate()[0]
    reasons = re.findall(r'^assay: (.*)', said, re.MULTILINE)
    of_all = [Failure(checks[0], '; '.join(reasons), ())] if reasons and run.returncode == 1 else []
    if of_all and not re.search(r'^FAILED: ', said, re.MULTILINE):
        return Look(of_all)  # it was refused before any case
    report = read_reframe_report(runs.newest_report())
    cases = [case.title for case in report.counted]
    for check in checks:
        if not any(is_of(case, check) for case in cases):
            raise AssayError(f'no case of {check} was run:\n{said[-4000:]}')
    look = Look(failures(report) or of_all, disturbed_cases(report), left_in_good_cases(report))
    if run.returncode != (1 if look.failed else 3 if look.disturbed else 0):
        raise AssayError(f'a run ended with exit code {run.returncode}:\n{said[-4000:]}')
    return look


def await_ranks(since: float) -> None:
    """Wait until the ranks of a job are past MPI_Init: then the witness writes where they are.

    :param since: seconds of the epoch, before the run was started.
    :raises AssayError: if that takes too long.
    """
    stage = paths.RUNS / 'last' / 'stage'
    deadline = time.monotonic() + PATIENCE
    while not any(p.stat().st_mtime > since for p in stage.glob('vcluster/*/*/*/witness.json')):
        if time.monotonic() > deadline:
            raise AssayError(f'after {PATIENCE} s no job has come through MPI_Init')
        time.sleep(0.1)
