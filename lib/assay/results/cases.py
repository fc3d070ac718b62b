"""A run as it was measured: its cases, their figures and jobs, and which attempts count.

Only :mod:`assay.results.reframe_report` reads ReFrame's report into these types. A field that a
report may lack has a default, which means that there was none or that it is unknown.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from assay.machine.job_states import ENDED_BY_SCHEDULER, PREEMPTED
from assay.text import plain

#: A check begins its reason with this if the failure is no evidence against the machine.
NO_EVIDENCE = 'disturbed: '

# The beginning of the only such reason without figures.
_PREEMPTED = NO_EVIDENCE + ENDED_BY_SCHEDULER[PREEMPTED].partition(':')[0]

# ReFrame's results that do not fail a run. An expected failure is one that a reference announces.
GOOD = {'pass', 'xfail'}

#: Parameters of checks that have a name of their own here.
PARAMETERS = ('fabric', 'layout', 'scale', 'size', 'sweep')

#: Name and value of each.
Facts = tuple[tuple[str, str], ...]


class CaseFigure(NamedTuple):
    """A figure that a case measured, and what it was held to then.

    A tuple, since a history has hundreds of thousands of them.

    :param name: without the place where it was measured.
    :param value: as it was measured: NaN and infinities too, and NaN for what is no number at all;
        None if the case gave it no value.
    :param reference: None if there was none.
    :param lower: its bound in its own unit; None if it is open.
    :param upper: likewise.
    :param unit: empty if it has none.
    :param result: ReFrame's word for it; None where ReFrame did not come to judge it.
    :param better: ``higher``, ``lower`` or ``exact``; None if the check does not say, or the run is
        older than this field.
    :param is_headline: whether it is shown even if nothing holds it.
    :param slowest_rank: who kept all ranks waiting, in words; empty if that is not known.
    """

    name: str
    value: float | None
    reference: float | None = None
    lower: float | None = None
    upper: float | None = None
    unit: str = ''
    result: str | None = None
    better: str | None = None
    is_headline: bool = False
    slowest_rank: str = ''

    @property
    def has_bound(self) -> bool:
        """Whether it can miss its reference."""
        return self.lower is not None or self.upper is not None


@dataclass(frozen=True, slots=True)
class Job:
    """The job of a case; of one that had none nothing of it is known.

    :param id: that the scheduler gave it.
    :param nodes: their names.
    :param ended: when it ended, UTC.
    :param ranks: how many it had.
    :param ranks_per_node: None where that was left to the scheduler.
    :param runs_script: whether the executable was a script.
    """

    id: str = ''
    nodes: tuple[str, ...] = ()
    ended: datetime | None = None
    exit_code: int | None = None
    ranks: int | None = None
    ranks_per_node: int | None = None
    executable: str = ''
    runs_script: bool = False


@dataclass(frozen=True, slots=True)
class Files:
    """The places of a case's files, now or earlier; empty for a file that never existed.

    :param stage: the folder in which its job ran.
    :param output: the folder with what ReFrame kept of it, if it passed.
    :param stdout: the name of its job's output; likewise the other three.
    :param kept: the names of what is kept besides, which may be patterns.
    """

    stage: str = ''
    output: str = ''
    stdout: str = ''
    stderr: str = ''
    build_stdout: str = ''
    build_stderr: str = ''
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seconds:
    """How long the stages of a case took: None of one that it did not reach, NaN if damaged.

    :param total: with the time between them.
    """

    setup: float | None = None
    compile: float | None = None
    run: float | None = None
    sanity: float | None = None
    performance: float | None = None
    total: float | None = None

    @property
    def of_stages(self) -> tuple[float | None, ...]:
        """The stages alone: between them a case may only wait for other jobs."""
        return self.setup, self.compile, self.run, self.sanity, self.performance


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Variables that neither Assay nor the system's file set, as ``NAME=value``.

    :param variables: in the environment of its job.
    :param in_files: that files set.
    :param are_seen: whether its ranks had them, and not only the script of its job.
    :param are_unsure: whether commands or modules of the system's file may have set them.
    :param hosts_differ_in: in which its nodes differ.
    """

    variables: tuple[str, ...] = ()
    in_files: tuple[str, ...] = ()
    are_seen: bool = False
    are_unsure: bool = False
    hosts_differ_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseName:
    """The name and parameters that tell a case from others of its run.

    :param display_name: of its check with all parameters, as ReFrame prints it.
    :param is_fixture: whether it only builds for others.
    :param fabric: its parameter of this name; likewise the others. Empty if it has none.
    """

    display_name: str
    system: str
    partition: str
    environment: str
    is_fixture: bool
    fabric: str = ''
    layout: str = ''
    scale: str = ''
    size: str = ''
    sweep: str = ''

    @property
    def full_name(self) -> str:
        """Name, partition and environment, as ReFrame prints them."""
        return f'{self.display_name} @{self.system}:{self.partition}+{self.environment}'

    @property
    def title(self) -> str:
        """The full name for people; a fixture's holds its partition and environment already."""
        return plain(_without_place(self.full_name))

    @property
    def name(self) -> str:
        """The check with all its parameters, the same on all partitions and environments."""
        return _without_place(self.display_name)

    @property
    def check(self) -> str:
        """The class of the check."""
        return check_of(self.display_name)

    @property
    def short_name(self) -> str:
        """The check with its parameters but those that have a column of their own."""
        return _short_name(self.display_name)

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """Short name, environment, fabric and layout, as tables have them; ``-`` for none."""
        return self.short_name, self.environment, self.fabric or '-', self.layout or '-'


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(CaseName):
    """A case of a run, as it went once.

    :param result: ReFrame's word for what became of it.
    :param figures: that it measured, or should have.
    :param fail_phase: the stage in which it failed; empty if it did not, or never began.
    :param fail_reason: ReFrame's or its check's words; empty if there are none.
    :param place: its run within the session, and its place there; None in a run that is known by
        perflogs alone.
    :param run_index: which of the session's runs it is of, from 0.
    :param implementation: whose program an application's case ran; empty of other checks.
    :param no_evidence: why its figures are no evidence; empty if they are.
    :param replaced: why each job before its last did not do.
    :param disturbances: what disturbed it, in words.
    :param taken_by_others: what others took of its nodes, in words, whatever its result is.
    :param finding: what people are to know of it though it passed; empty if nothing.
    :param facts: what it was built from and what it ran with; see :mod:`assay.results.provenance`.
    :param hash: ReFrame's of the check.
    :param unique_name: of the check, by which others depend on it.
    :param needs: unique names, partitions and environments of the cases that it depends on.
    :param environments: expressions for the environments that its check is for.
    """

    result: str
    figures: tuple[CaseFigure, ...]
    fail_phase: str = ''
    fail_reason: str = ''
    place: tuple[int, int] | None = None
    run_index: int = 0
    job: Job = Job()
    files: Files = Files()
    seconds: Seconds = Seconds()
    implementation: str = ''
    no_evidence: str = ''
    replaced: tuple[str, ...] = ()
    disturbances: tuple[str, ...] = ()
    taken_by_others: tuple[str, ...] = ()
    leftovers: Leftovers = Leftovers()
    finding: str = ''
    facts: Facts = ()
    hash: str = ''
    unique_name: str = ''
    needs: tuple[tuple[str, ...], ...] = ()
    environments: tuple[str, ...] = ()

    def figure(self, name: str) -> CaseFigure | None:
        """Its figure of a name; None if it has none."""
        return next((one for one in self.figures if one.name == name), None)

    def fact(self, name: str) -> str:
        """Its fact of a name; empty if that is not known."""
        return next((value for known, value in self.facts if known == name), '')

    @property
    def came_to_its_figures(self) -> bool:
        """Whether no phase before its figures failed: one that missed a reference has measured.

        A case that never ran, as its build failed or the run was stopped, has no such phase.
        """
        return self.result != 'skip' and self.fail_phase in ('', 'performance')

    @property
    def had_no_time(self) -> bool:
        """Whether the job for all cases had no time left for it, which is no word on the case.

        A step of :mod:`assay.running.steps` that waits for nodes is called ``JOB+NUMBER``.
        """
        return self.result == 'skip' and bool(re.fullmatch(r'\d+\+\d+', self.job.id))

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of its outputs: those of its build, if that failed."""
        if self.fail_phase.startswith('compile'):
            names = self.files.build_stdout, self.files.build_stderr
        else:
            names = self.files.stdout, self.files.stderr
        return tuple(name for name in names if name)


@dataclass(frozen=True, slots=True)
class Run:
    """A session of ReFrame: the suite was run once, or with repetitions or retries several times.

    :param uuid: ReFrame's identifier of it.
    :param begun: when it began, UTC.
    :param ended: when it ended, UTC.
    :param rounds: the cases of each time.
    :param seconds: that it took; None if unknown.
    :param command: ReFrame's command line.
    :param hostname: where it was started; empty if unknown, as the next three.
    :param logs: the files of ReFrame's log.
    :param label: that it was given; None for none.
    :param mode: of ``assay run``; None of a plain ReFrame.
    :param purpose: of one that was not made to show how the machine is; None of all others.
    :param budget_left_out: how many of those selected a budget left out; they are not in the run.
    """

    uuid: str
    begun: datetime
    ended: datetime
    rounds: tuple[tuple[Case, ...], ...]
    seconds: float | None = None
    command: str = ''
    hostname: str = ''
    user: str = ''
    version: str = ''
    logs: tuple[str, ...] = ()
    label: str | None = None
    mode: str | None = None
    purpose: str | None = None
    budget_left_out: int = 0

    @property
    def left_out(self) -> int:
        """How many of those selected were left out for time."""
        return self.budget_left_out + sum(case.had_no_time for case in self.own_cases)

    @property
    def cases(self) -> list[Case]:
        """All cases of all rounds (``--reruns`` and ``--max-retries`` make several)."""
        return [case for cases in self.rounds for case in cases]

    @property
    def last_cases(self) -> list[Case]:
        """Each case once, as it last went."""
        return list({case.full_name: case for case in self.cases}.values())

    @property
    def counted(self) -> list[Case]:
        """The cases that the verdict is about: all but those that a retry replaced."""
        return [deciding_attempt(tries) for tries in self.attempts]

    @property
    def own_cases(self) -> list[Case]:
        """The cases that count and are of checks: all but builds."""
        return [case for case in self.counted if not case.is_fixture]

    @property
    def attempts(self) -> list[list[Case]]:
        """Each case with those that it replaces before it, the first one first.

        ``--max-retries`` runs what failed once more, which replaces it. ``--reruns`` and
        ``--duration`` run all of it again, and each time counts: one that has no time left to end
        is no attempt.
        """
        may_retry = self.option('--max-retries') is not None
        found: list[list[Case]] = []
        failed: dict[str, list[Case]] = {}
        for number, cases in enumerate(self.rounds):
            ran = {case.full_name for case in cases}
            is_retry = may_retry and bool(ran) and ran <= failed.keys()
            again: dict[str, list[Case]] = {}
            for case in cases:
                if is_retry:
                    tries = failed[case.full_name]
                    tries.append(case)
                elif number and case.result == 'abort':
                    continue
                else:
                    tries = [case]
                    found.append(tries)
                if case.result not in GOOD | {'skip'}:
                    again[case.full_name] = tries
            failed = again
        return found

    def option(self, name: str) -> str | None:
        """The value of an option of ReFrame on its command line; None if it was not given.

        A name within the value of another option, such as a label, does not count.
        """
        words = _words(self.command)
        value = None
        for number, word in enumerate(words):
            before, equals, rest = word.partition('=')
            if before == name:
                value = rest if equals else ''.join(words[number + 1 : number + 2])
        return value

    @property
    def not_repeated(self) -> str | None:
        """A sentence if a repetition is missing or was cut, as by ``--maxfail``; otherwise None.

        A ``--duration`` ends the last repetition by itself, which is no problem.
        """
        if self.option('--duration') is not None:
            return None
        later = [case for cases in self.rounds[1:] for case in cases]
        if stopped := [case for case in later if case.result == 'abort']:
            return f'{len(stopped)} case(s) of a repetition were stopped before their end'
        asked = self.option('--reruns') or ''
        if asked.isdigit() and len(self.rounds) <= int(asked):
            return f'only {len(self.rounds)} of {int(asked) + 1} repetitions were run'
        return None


def check_of(name: str) -> str:
    """The class of the check that the name of a case begins with."""
    return name.partition(' ')[0]


def parameters_of(name: str) -> dict[str, str]:
    """The parameters in the name of a case, such as ``Ring %fabric=shm %scale=1_node``."""
    return dict(re.findall(r'%([\w.]+)=(\S+)', name))


def bound(reference: float | None, threshold: float | None) -> float | None:
    """ReFrame's absolute bound: a fraction of the reference, and the bound itself where that is 0.

    To the last bit that of ``reframe.utility.sanity.reference_bounds``.
    """
    if threshold is None or reference is None:
        return None
    if not reference:
        return threshold
    return reference * (1 + (threshold if reference > 0 else -threshold))


def reference_and_bounds(
    reference: float | None, lower: float | None, upper: float | None
) -> tuple[float | None, float | None, float | None]:
    """Reference and bounds of a figure, in its own unit.

    :param reference: as ReFrame writes it: 0 without bounds where there is none.
    :param lower: as a fraction of the reference, as ReFrame has it; likewise the upper one.
    """
    is_missing = not reference and lower is None and upper is None
    return None if is_missing else reference, bound(reference, lower), bound(reference, upper)


def deciding_attempt(tries: list[Case]) -> Case:
    """The last attempt at a case, or an earlier failure if the last is no evidence."""
    failed = [case for case in tries if not is_no_evidence(case)]
    return failed[-1] if failed and is_no_evidence(tries[-1]) else tries[-1]


def is_no_evidence(case: Case) -> bool:
    """Whether a case only missed references, or lost its job, because of others on its nodes.

    Its check decides whether others disturbed the job, or preempted it before there were figures. A
    figure that unexpectedly met its reference is evidence: others do not make a job faster.
    """
    if case.result != 'fail' or not case.no_evidence:
        return False
    phase, _, reason = case.fail_reason.partition(' error: ')
    if phase != case.fail_phase or not reason.startswith(NO_EVIDENCE):
        return False
    # The figures come last: there are thousands of them.
    return (phase == 'sanity' and reason.startswith(_PREEMPTED)) or (
        phase == 'performance'
        and all(one.value is not None and math.isfinite(one.value) for one in case.figures)
        and all(one.result != 'xpass' for one in case.figures)
    )


def folder_left(case: Case) -> Path | None:
    """The folder with the files of a case; None if it is gone.

    A case that passed left its files in ReFrame's output folder, any other in its stage folder.
    """
    folders = (case.files.output, case.files.stage)
    for folder in folders if case.result in GOOD else reversed(folders):
        if folder and Path(folder).is_dir():
            return Path(folder)
    return None


def _without_place(name: str) -> str:
    """A name without the partition and the environment that a fixture's has."""
    return re.sub(r' ~\S+', '', name)


# It is asked for each figure.
@lru_cache(maxsize=4096)
def _short_name(display_name: str) -> str:
    name = re.sub(r' (~|%(fabric|layout)=)\S+', '', display_name)
    return name.replace('%scale=', '').replace('%', '')


# Called for several options of each session, and most sessions have the same command line.
@lru_cache(maxsize=256)
def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError:  # not as ReFrame quotes: then no option excuses anything
        return ()
