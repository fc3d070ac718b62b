"""Whether a case is good, and if not why: failed, retried or skipped, in a sentence each.

A sentence ends with the variables that were left in the environment of the case's job or in files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.results.cases import GOOD, Case, CaseFigure, Run, deciding_attempt, is_no_evidence
from assay.results.rows import (
    bounds_in_words,
    is_beyond,
    is_number,
    number,
    row_of,
    with_unit,
)
from assay.running import reframe_log
from assay.text import plain
from assay.tools import first_error
from assay.witness.profile import STARTUP
from assay.witness.variables import OF_THE_MEETING, OF_THE_START

#: Variables that a sentence names.
_MOST = 4

#: Said where commands or modules may have set them.
_UNSURE = " (what the system's file sets by commands or modules is not known)"

#: Variables that explain no failure: which warnings an MPI prints, and components that Open MPI's
#: own file excludes, as in Debian's and conda-forge's packages (what jobs use is set and proved).
_HARMLESS = re.compile(
    r'\w+_(?:warn|show|help)(?:_\w+)?=.*'
    r'|(?:pml|btl|mtl|osc)=\^\S+ in \S+/openmpi-mca-params\.conf'
)


@dataclass(frozen=True)
class Failure:
    """A test case that failed: one sentence, and where the job's files are.

    :param case: what it is called.
    :param ran: the case itself; None of several, and of what is no case.
    """

    case: str
    reason: str
    files: tuple[str, ...]
    ran: Case | None = None


@dataclass(frozen=True)
class Retried:
    """A test case that passed, but not at once, and why it did not at first."""

    case: str
    attempts: int
    reason: str


def is_good(case: Case) -> bool:
    """Whether a case measured something, and all of it is as it should be."""
    return case.result in GOOD and _wrong(case) is None


def is_bad(case: Case) -> bool:
    """Whether a case that was not skipped shows that something is wrong."""
    return not is_good(case) and not is_no_evidence(case)


def _wrong(case: Case) -> str | None:
    """The fault of a case that ReFrame passed; None if it has none."""
    return None if case.is_fixture else missing_measurement(case) or _all_missed(case)


def missing_measurement(case: Case) -> str | None:
    """A sentence on what the measurement of a case lacks that ReFrame passed; None if nothing."""
    if not case.figures:
        return 'passed without any figure: nothing was measured'
    if lost := [figure.name for figure in case.figures if not is_number(figure.value)]:
        return f'passed without a value for the figure {lost[0]}'
    if not _has_reference(case) and not _is_of_another_program(case):
        return 'passed without any reference: the figures were held to nothing'
    return None


def _has_reference(case: Case) -> bool:
    return any(figure.has_bound for figure in case.figures if figure.name not in STARTUP)


def _is_of_another_program(case: Case) -> bool:
    """References for any machine are those of our sources: others have none to start with."""
    return case.implementation not in ('', 'assay')


def cases_without_reference(run: Run) -> list[Case]:
    """Cases of a program that the user named, without a reference for any figure."""
    return [
        case
        for case in run.counted
        if case.result in GOOD and _is_of_another_program(case) and not _has_reference(case)
    ]


def case_findings(run: Run) -> list[tuple[str, str]]:
    """Findings of good cases: each once, with the title of the first case that has it."""
    said: dict[str, str] = {}
    for case in run.own_cases:
        if is_good(case) and case.finding:
            said.setdefault(plain(case.finding), case.title)
    return sorted(said.items())


def left_in_good_cases(run: Run) -> str | None:
    """Variables that were left in the environment or files of good cases, in a sentence; or None.

    Those that steer the start of ranks are left out, since these ranks have started.
    """
    good = [case for case in run.own_cases if is_good(case)]
    # By their names, as one may have a value of its own in each job.
    values: dict[str, set[str]] = {}
    counts, in_files = Counter[str](), Counter[str]()
    is_unsure = False
    for case in good:
        found = {one for one in case.leftovers.variables if not one.startswith(OF_THE_START)}
        is_unsure |= bool(found) and case.leftovers.are_unsure
        counts.update({*map(_name, found)})
        in_files.update({*_harmful_in_files(case)})
        for one in found:
            values.setdefault(_name(one), set()).add(one)

    def named(counted: Counter[str], values: Mapping[str, set[str]]) -> str:
        told = []
        for name, count in sorted(counted.items(), key=lambda one: (-one[1], one[0])):
            own = values.get(name, {name})
            what, several = (name, f'{len(own)} values, ') if len(own) > 1 else (*own, '')
            told.append(f'{what} ({several}{count} of {len(good)} cases)')
        return _named(told)

    sentences = []
    if counts:
        who = 'not by Assay' if is_unsure else "neither by Assay nor by the system's file"
        sentences.append(
            f'set in the environment of cases that passed, but {who}: {named(counts, values)}'
            f'{_UNSURE if is_unsure else ""}'
        )
    if in_files:
        sentences.append(
            f'set by files for cases that passed, but neither by Assay nor by the '
            f"system's file: {named(in_files, {})}"
        )
    return '; '.join(sentences) or None


def _name(leftover: str) -> str:
    return leftover.partition('=')[0]


def _all_missed(case: Case) -> str | None:
    """The figures that are beyond their bounds, and what disturbed the job."""
    sentences = []
    for figure in case.figures:
        no_number = figure.value is not None and not is_number(figure.value)
        is_missed = is_beyond(figure.value, figure.lower, figure.upper)
        if no_number or (is_missed and row_of(case, figure).verdict == 'fail'):
            sentences.append(f'{describe_miss(figure)}: {figure.slowest_rank}'.removesuffix(': '))
    return '; '.join([*sentences, *case.disturbances]) if sentences else None


def describe_miss(one: CaseFigure) -> str:
    """A sentence: a figure is beyond its bounds, or no number."""
    if not is_number(one.value):
        return f'{one.name} is {one.value}: not a number'
    bounds = with_unit(bounds_in_words(one.lower, one.upper), one.unit)
    return (
        f'{one.name} is {with_unit(number(one.value), one.unit)}, but {bounds} is allowed '
        f'(reference {number(one.reference)})'
    )


def failures(run: Run) -> list[Failure]:
    """A sentence for each case that failed, builds first.

    All that wait for the same have one together; all that were stopped have one, too.
    """
    all_cases = run.counted
    bad = [case for case in all_cases if case.result != 'skip' and is_bad(case)]
    failed = [case for case in bad if case.result not in ('fail_deps', 'abort')]
    failed.sort(key=lambda case: not case.is_fixture)
    found = _failures_of(failed, all_cases)
    waiting: dict[str, int] = {}
    for case in bad:
        if case.result in ('fail_deps', 'abort'):
            words = (
                why_not_run(case, failed) if case.result == 'fail_deps' else failure_reason(case)
            )
            waiting[words] = waiting.get(words, 0) + 1
    found += [Failure(f'{count} case(s)', words, ()) for words, count in waiting.items()]
    return found


def disturbed_cases(run: Run) -> list[Failure]:
    """A sentence for each case that is neither good nor bad: what was measured is no evidence."""
    all_cases = run.counted
    return _failures_of(filter(is_no_evidence, all_cases), all_cases)


def _failures_of(some: Iterable[Case], all_cases: list[Case]) -> list[Failure]:
    times = Counter(case.full_name for case in all_cases)
    found = []
    for case in some:
        which = f', run {case.run_index + 1}' if times[case.full_name] > 1 else ''
        found.append(Failure(f'{case.title}{which}', failure_reason(case), files(case), case))
    return found


def why_not_run(case: Case, all_cases: Iterable[Case]) -> str:
    """A sentence: a case waited for others that failed."""
    names = [
        one.title
        for one in all_cases
        if one.result not in GOOD | {'skip', 'fail_deps'}
        and (one.unique_name, f'{one.system}:{one.partition}', one.environment) in case.needs
    ]
    return f'not run, because {", ".join(names) or "what it depends on"} failed'


def retried_cases(run: Run) -> list[Retried]:
    """The cases that are good, and were not at the first attempt."""
    found = []
    for tries in run.attempts:
        case, earlier = deciding_attempt(tries), _earlier_reasons(tries)
        if earlier and is_good(case):
            found.append(Retried(case.title, len(earlier) + 1, earlier[0]))
    return found


def _earlier_reasons(tries: list[Case]) -> list[str]:
    """Why each job of a case but the last did not do: by its check's own word, or by a retry."""
    found: list[str] = []
    for case in tries:
        found += map(plain, case.replaced)
        if case is not tries[-1]:
            found.append(failure_reason(case))
    return found


def skipped_cases(run: Run, log: Iterable[str]) -> list[tuple[str, str]]:
    """Each skipped case and its reason, which only ReFrame's log tells.

    :param log: the lines of ReFrame's log file.
    """
    reasons = reframe_log.skip_reasons(log)
    return [
        (case.title, plain(reasons.get(case.full_name, "no reason in ReFrame's log")))
        for case in run.counted
        if case.result == 'skip'
    ]


# What ReFrame says where a job could not be submitted.
_REFUSED = re.compile(
    r"^spawned process error: command '(sbatch|qsub)\b.*--- stderr ---\n(.*?)\n*--- stderr ---",
    re.DOTALL,
)


def failure_reason(case: Case) -> str:
    """Why a case failed, in a sentence, and what was left in its environment."""
    sentence = _wrong(case) if case.result in GOOD else _reason(case)
    return plain(f'{sentence}{_in_environment(case)}{_in_files(case)}{_differences(case)}')


def _reason(case: Case) -> str:
    if is_no_evidence(case):
        jobs = len(case.replaced) + 1
        times = f'; measured {jobs} times' if jobs > 1 else ''
        return f'{case.no_evidence}{times}'
    if case.result == 'abort':
        return 'not finished, because the run was stopped'
    if case.fail_phase == 'performance' and (missed := _all_missed(case)):
        return missed
    # ReFrame's own scheduler for this machine ends the case here, others leave it to the check.
    if 'job timed out' in case.fail_reason and case.files.stderr:
        from assay.job.ending import why_cut_short  # here, as it takes a while to load

        folder = Path(case.files.stage)
        if hung := why_cut_short('TIMEOUT', folder, folder / case.files.stderr):
            return hung
    if blocked := re.search(r'it was blocked due to reason: (.*)', case.fail_reason):
        return f'the scheduler did not start its job: {blocked[1]}'
    if refused := _REFUSED.search(case.fail_reason):
        said = re.sub(rf'^{refused[1]}: (error: )?', '', refused[2], flags=re.MULTILINE)
        return f'the scheduler refused its job: {"; ".join(said.splitlines())}'
    # ReFrame starts each reason with the kind of its exception.
    said = re.sub(
        r'^(sanity|performance|build|reframe|job) error: (\[jobid=\S+\] )?',
        '',
        case.fail_reason,
    )
    if case.fail_phase == 'compile_wait' and (line := _first_error(case)):
        said += f': {line}'
    if said.strip():
        return said.strip()
    if not case.fail_phase:  # so ReFrame ends what depends on something that failed
        return 'it did not run, because what it depends on failed'
    return f'failed in phase {case.fail_phase}, and ReFrame gives no reason'


def _first_error(case: Case) -> str | None:
    """The first error in the output of a build, if its stage folder is still there."""
    for name in (case.files.build_stderr, case.files.build_stdout):
        path = Path(case.files.stage, name)
        if path.is_file() and (line := first_error(path)):
            return line
    return None


def files(case: Case) -> tuple[str, ...]:
    """The stage folder and those of the job's output files that ReFrame names."""
    return (case.files.stage, *case.output_names) if case.files.stage else ()


def _harmful_in_files(case: Case) -> list[str]:
    """Settings that files made for a case's job, without those that explain nothing."""
    return [one for one in case.leftovers.in_files if not _HARMLESS.fullmatch(one)]


def _in_files(case: Case) -> str:
    if not (found := _harmful_in_files(case)):
        return ''
    return f"; files set {_named(found)}, which neither Assay nor the system's file does"


def _differences(case: Case) -> str:
    if not (found := case.leftovers.hosts_differ_in):
        return ''
    return f'; its nodes differ in {_named(found)}'


def _in_environment(case: Case) -> str:
    is_seen, is_unsure = case.leftovers.are_seen, case.leftovers.are_unsure
    # Ranks that were in MPI_Init had found each other.
    harmless = OF_THE_MEETING if is_seen else ()
    found = [one for one in case.leftovers.variables if not one.startswith(harmless)]
    if not found:
        return ''
    unsure = _UNSURE if is_unsure else ''
    if is_seen:
        who = 'Assay does not' if is_unsure else "neither Assay nor the system's file does"
        return f'; the environment sets {_named(found)}, which {who}{unsure}'
    who = 'Assay does not set' if is_unsure else "neither Assay nor the system's file sets"
    told = f'; its job was submitted with {_named(found)}, which {who}'
    return f'{told} (what its ranks had is not known){unsure}'


def _named(variables: Sequence[str]) -> str:
    """Some variables of a job, which are text of others."""
    more = f' and {len(variables) - _MOST} more' if len(variables) > _MOST else ''
    return ', '.join(map(plain, variables[:_MOST])) + more
