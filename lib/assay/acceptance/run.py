"""A contract with the suite on its system, and the runs of its acceptance, each told to the journal
before and after, until all is decided.

Each run is a session of ReFrame with the cases of one environment that still need values.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import AssayError, error_text, locks, paths, say
from assay.acceptance import archive as archives
from assay.acceptance import journal
from assay.acceptance.archive import Archive
from assay.acceptance.contract import Commitment, Contract, TuningRules, read_contract
from assay.acceptance.decision import least_passed
from assay.acceptance.journal import AnyEntry, Started
from assay.acceptance.status import Status, count_misfits, fits, status_in
from assay.checks.remeasure import JOBS
from assay.config import settings
from assay.files import explain_errors
from assay.results.cases import check_of
from assay.results.runner import Runner, make_ready
from assay.running import reframe_options, session
from assay.running.reframe_options import Given
from assay.running.runs import RunFolder
from assay.running.selection import Listed, list_cases
from assay.running.session import Suite
from assay.running.supervise import note_signals
from assay.text import many, plain
from assay.witness.variables import OF_THE_SCHEDULER, STEERING

if TYPE_CHECKING:
    from reframe.core.config import _SiteConfig

#: Cases that a sentence names.
_MOST = 4


@dataclass(frozen=True)
class SelectedCase:
    """The case of a commitment."""

    commitment: Commitment
    case: Listed


def _nearest(commitment: Commitment, there: Sequence[Listed]) -> list[Listed]:
    """The cases of its check, those first that a commitment is likely to mean."""
    own = [case for case in there if check_of(case.name) == commitment.check]
    return sorted(own, key=lambda case: count_misfits(commitment, case.name, case.environment))


def selection_options(contract: Contract) -> list[str]:
    """ReFrame's option that selects all cases of the checks of a contract, and perhaps more."""
    checks = dict.fromkeys(one.check for one in contract.commitments)
    return ['-n', f'^({"|".join(checks)})']


def select_cases(contract: Contract, suite: Suite) -> list[SelectedCase]:
    """The case of each commitment, in their order.

    :raises AssayError: if no case fits a commitment, or several do; all of them are told.
    """
    there = list_cases(suite.command, selection_options(contract), suite.environment)
    found, problems = [], []
    for one in contract.commitments:
        own = [case for case in there if fits(one, case.name, case.environment)]
        if len(own) == 1:
            found.append(SelectedCase(one, own[0]))
            continue
        told = own or _nearest(one, there)
        names = [case.title for case in told]
        some = '; '.join(names[:_MOST]) + (
            f'; and {len(names) - _MOST} more' * (len(names) > _MOST)
        )
        if own:
            problems.append(f'{one.id}: {len(own)} cases fit, name one: {some}')
        else:
            others = f'there are {some}' if names else f'there is none of {one.check}'
            problems.append(f'{one.id}: no case on {contract.system} fits; {others}')
    if problems:
        raise AssayError('\n'.join(problems))
    return found


#: The mode that all checks are in, at all scales.
MODE = 'acceptance'

#: Exit codes: a contract that cannot be used; something that has to be done first.
WRONG, UNDECIDED = 2, 3


@dataclass(frozen=True)
class Prepared:
    """A contract, and what its cases are started with."""

    contract: Contract
    suite: Suite
    given: Given


def prepare_acceptance(path: Path, extra: Sequence[str], is_one_job: bool = False) -> Prepared:
    """Read a contract, and make the suite ready for its system.

    :param extra: what ``--with`` names.
    :param is_one_job: whether all cases are to be steps of one job.
    :raises AssayError: if the contract is wrong, its system is unknown, or the suite cannot be had.
    """
    contract = read_contract(path, may_be_pipe=True)
    settings.system_file(contract.system)
    given = reframe_options.read_options(selection_options(contract))
    suite = session.suite(contract.system, MODE, extra, given, is_one_job)
    return Prepared(contract, suite, given)


@contextmanager
def exiting_with(code: int = WRONG) -> Iterator[None]:
    """Print an error as always, but end with this exit code.

    :raises SystemExit: instead of an AssayError.
    """
    try:
        yield
    except AssayError as error:
        print(error_text(error), file=sys.stderr)
        raise SystemExit(code) from None


#: What variables begin with that tune jobs: those that steer them, and those by which compilers of
#: Open MPI are chosen. What the suite and the system's file set for jobs is not in the environment
#: of a command.
TUNING = (*STEERING, 'OMPI_')

#: What lets root start jobs in a container: nothing that a figure depends on.
_HARMLESS = ('OMPI_ALLOW_RUN_AS_ROOT', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM')

#: Options of schedulers that set variables for a job: Slurm's, which may be shortened, and PBS's.
_EXPORTING = re.compile(r'(?:^|\s)-*(?:exp|v)')


def assert_no_variables(options: Iterable[str]) -> None:
    """:raises AssayError: if an option for all jobs sets variables, past the rules."""
    for option in options:
        if _EXPORTING.search(option):
            raise AssayError(
                f'--job-option {option}: it may set variables of jobs, which the rules of a '
                f'contract have to allow: set them where this command is started'
            )


def allowed_variables(rules: TuningRules, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that tune jobs, by name, all of which the rules allow.

    :param environment: of the command that starts jobs.
    :raises AssayError: if one is set that they do not.
    """
    found = {
        name: value
        for name, value in sorted(environment.items())
        if name in rules.variables
        or (
            name.startswith(TUNING)
            and name not in _HARMLESS
            and OF_THE_SCHEDULER.get(name) != value
        )
    }
    if strange := [name for name in found if name not in rules.variables]:
        raise AssayError(
            f'the environment sets {", ".join(strange)}, which the rules of the contract '
            f'({rules.category}) do not allow: unset it'
        )
    return found


#: Seconds between two looks whether a run has ended that outlived its command.
LOOK = 0.5


def open_archive(folder: Path, contract: Path, system: str) -> tuple[Archive, int]:
    """Begin the acceptance of a folder, or continue it.

    :param contract: the file that the acceptance is to be by.
    :returns: the acceptance, and a handle: nobody else goes on with it while that is open.
    :raises AssayError: if it is by another contract, another command is at it, or its journal is
        damaged.
    """
    with explain_errors(folder, 'read'):
        is_new = not folder.is_dir() or not any(folder.iterdir())
    if is_new:
        archive = archives.create_archive(folder, contract, system)
        return archive, _alone(archive)
    archive = archives.find_archive(folder)
    handle = _alone(archive)
    if archive.contract.read_bytes() != contract.read_bytes():
        raise AssayError(
            f'{folder} was begun with another contract than {contract}: go on with '
            f'{archive.contract}, or begin in a new folder'
        )
    chain = journal.read_journal(archive.journal)
    # Else nothing is written: signatures are of the journal as it is.
    if chain.torn or journal.open_runs(chain.entries):
        _wait_for_what_goes_on(chain.entries)
        archives.resume_archive(archive)
    return archive, handle


def _alone(archive: Archive) -> int:
    """:raises AssayError: if another command runs cases for an acceptance."""
    with explain_errors(archive.contract, 'opened'):
        handle = os.open(archive.contract, os.O_RDWR | os.O_CLOEXEC)
    if not locks.try_lock(handle, archive.contract):
        raise AssayError(f'{archive.folder}: another `assay accept run` is at it: wait for its end')
    return handle


def _wait_for_what_goes_on(entries: Sequence[AnyEntry]) -> None:
    """Wait for the ReFrame of a command that was killed: its jobs would disturb those to come."""
    left = {*journal.open_runs(entries)}
    for entry in journal.of(Started, entries):
        if entry.what.run in left:
            run = RunFolder(paths.RUNS / Path(entry.what.folder).name)
            if run.is_under_way:
                say(f'run {entry.what.run} was left by its command: waiting for its end')
            while run.is_under_way:
                time.sleep(LOOK)


class Measuring:
    """An acceptance under way.

    :param selected: the case of each commitment.
    :param options: of ReFrame, for all jobs.
    """

    def __init__(
        self,
        prepared: Prepared,
        site: _SiteConfig,
        archive: Archive,
        selected: Sequence[SelectedCase],
        options: Sequence[str],
    ) -> None:
        self.prepared, self.site, self.archive, self.options = prepared, site, archive, options
        self.contract, self.selected = prepared.contract, selected

    def run(self) -> tuple[Status, int]:
        """Measure until all is decided, no job is left, or somebody stops it.

        :returns: where the acceptance stands, and the exit code.
        :raises AssayError: if a run is no good as a whole, or cannot be kept.
        """
        environments = dict.fromkeys(one.case.environment for one in self.selected)
        names = [f'^{re.escape(name)}$' for name in environments]
        suite, given = self.prepared.suite, self.prepared.given
        handles = make_ready(suite, self.site, names)
        runner = Runner(suite, given, handles, 'accept', suite.own)
        with note_signals() as runner.signals:
            while True:
                now = status_in(self.archive, self.contract)
                cases = next_cases(now, self.selected)
                if runner.signals:
                    return now, 128 + runner.signals[0]
                if not cases:
                    return now, now.verdict.exit_code
                if now.jobs + len(cases) > self.contract.most_jobs:
                    say(
                        f'{now.jobs} of {many(self.contract.most_jobs, "job")} are used, and '
                        f'{many(len(cases), "more case")} would be needed: nothing more is run'
                    )
                    return now, now.verdict.exit_code
                self._session(cases, options_to_measure_once(now, cases), runner)

    def _session(self, cases: Sequence[Listed], more: Sequence[str], runner: Runner) -> None:
        """Run some cases.

        :param more: options of ReFrame, for this run alone.
        :raises AssayError: as :meth:`run`.
        """
        own = runner.begin()
        environment = cases[0].environment
        expressions = '|'.join(re.escape(one.name.replace(' ', '')) for one in cases)
        selected = ['-n', f'^({expressions})$', '-p', f'^{re.escape(environment)}$']
        number = archives.start_run(
            self.archive,
            cases=[one.title for one in cases],
            environment=environment,
            folder=own.folder.name,
            options=self.options,
            variables=allowed_variables(self.contract.rules, os.environ),
        )
        say(f'run {number}: {many(len(cases), "case")} with {environment}')
        label = f'acceptance {plain(self.archive.folder.resolve().name, 100)}: run {number}'
        its_options = [*selected, *self.options, *more]
        ended = runner.run(own, label, its_options)
        # What a run that was stopped has measured counts as well: nobody chooses by stopping.
        word = 'STOPPED' if ended.stopped else ended.verdict.word
        archives.end_run(self.archive, number, own, word, self.site)
        if ended.stopped:
            return
        ended.tell_failures()
        if ended.problems:
            raise AssayError(
                f'run {number} is no good as a whole: {"; ".join(ended.problems)}. It counts; with '
                f'the same command the acceptance goes on'
            )
        # The archive has all that counts.
        runner.release(own, ended.verdict.passed)


def next_cases(now: Status, selected: Sequence[SelectedCase]) -> list[Listed]:
    """The cases of the next run; none if all is decided, or nothing can be accepted any more."""
    contract = now.contract
    said = {one.commitment.id: one for one in now.decisions}
    kept = [one for one in selected if said[one.commitment.id].word != 'waived']
    if can_no_longer_pass(now):
        return []
    still = [one for one in kept if not said[one.commitment.id].is_final]
    if not still and now.hours < contract.stability.hours:
        still = kept
    # The environment that was run least is next: they alternate, so that a drift touches all.
    times = {one.case.environment: 0 for one in still}
    for one in {ran.run: ran for ran in now.runs}.values():
        name = one.case.rpartition('+')[2]
        if name in times:
            times[name] += 1
    least = min(times, key=lambda name: times[name], default=None)
    return [*dict.fromkeys(one.case for one in still if one.case.environment == least)]


def options_to_measure_once(now: Status, cases: Sequence[Listed]) -> list[str]:
    """ReFrame's options to measure disturbed cases only once, if jobs may be too few.

    A case that is measured again takes jobs that were not agreed else.
    """
    is_enough = now.jobs + JOBS * len(cases) <= now.contract.most_jobs
    return [] if is_enough else ['-S', 'wait_for_quiet=0']


def can_no_longer_pass(now: Status) -> bool:
    """Whether nothing that follows can let the machine be accepted."""
    if any(one.is_final and one.word in ('missed', 'undecided') for one in now.decisions):
        return True
    others = {one.name for one in now.conditions if one.word == 'missed'}
    if others - {'share'}:
        return True
    passed = sum(one.word == 'pass' for one in now.runs)
    failed = sum(one.word == 'fail' for one in now.runs)
    left = max(0, now.contract.most_jobs - now.jobs)
    return passed + left < least_passed(now.contract, passed + failed + left)
