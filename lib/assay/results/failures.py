"""Whether a case is good, and if not why: failed, retried or skipped, in a sentence each."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from assay.job.ending import cut_short
from assay.results.cases import (
    GOOD,
    Case,
    Report,
    attempts,
    case_name,
    counted,
    is_no_evidence,
    title,
    what_counts,
)
from assay.results.leftovers import UNSURE, left, named, of_files
from assay.results.rows import (
    allowed,
    bound,
    is_beyond,
    is_number,
    number,
    of_unit,
    row_of,
)
from assay.running import reframe_log
from assay.text import plain
from assay.witness.startup import STARTUP
from assay.witness.variables import OF_THE_START


@dataclass(frozen=True)
class Failure:
    """A test case that failed: one sentence, and where the job's files are."""

    case: str
    reason: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Retried:
    """A test case that passed, but not at once, and why it did not at first."""

    case: str
    attempts: int
    reason: str


def is_good(case: Case) -> bool:
    """Whether a case measured something, and all of it is as it should be."""
    return case['result'] in GOOD and _wrong(case) is None


def is_bad(case: Case) -> bool:
    """Whether a case that was not skipped shows that something is wrong."""
    return not is_good(case) and not is_no_evidence(case)


def _wrong(case: Case) -> str | None:
    """What is wrong with a case that ReFrame passed."""
    return None if case['fixture'] else lacking(case) or _all_missed(case)


def lacking(case: Case) -> str | None:
    """What of its measurement a case has not that ReFrame passed."""
    figures = case['perfvalues'] or {}
    lost = [name for name, values in figures.items() if not is_number(values[0])]
    if not figures:
        return 'passed without any figure: nothing was measured'
    if lost:
        return f'passed without a value for the figure {lost[0].rpartition(":")[2]}'
    if not _has_reference(case) and not _is_of_another_program(case):
        return 'passed without any reference: the figures were held to nothing'
    return None


def _has_reference(case: Case) -> bool:
    return any(
        (lower, upper) != (None, None)
        for name, (_, _, lower, upper, *_) in (case['perfvalues'] or {}).items()
        if name.rpartition(':')[2] not in STARTUP
    )


def _is_of_another_program(case: Case) -> bool:
    """References for any machine are those of our sources: others have none to start with."""
    return bool(case.get('implementation', 'assay') != 'assay')


def unheld(report: Report) -> list[Case]:
    """Cases of a program that the user named, of which no figure has a reference."""
    return [
        case
        for case in counted(report)
        if case['result'] in GOOD and _is_of_another_program(case) and not _has_reference(case)
    ]


def left_in_good_cases(report: Report) -> str | None:
    """What was left in environment and files of cases that are good, in a sentence; or None.

    What steers how ranks are started has done no harm where they have started.
    """
    good = [case for case in counted(report) if not case['fixture'] and is_good(case)]
    of_cases = [
        (case, {one for one in case.get('leftovers') or () if not one.startswith(OF_THE_START)})
        for case in good
    ]
    # By their names, as one may have a value of its own in each job.
    counts = Counter(name for _, found in of_cases for name in set(map(_name, found)))
    in_files = _left_in_files(good)
    if not counts:
        return in_files
    also = f'; {in_files}' if in_files else ''
    values: defaultdict[str, set[str]] = defaultdict(set)
    for one in set().union(*(found for _, found in of_cases)):
        values[_name(one)].add(one)
    told = [
        (
            f'{name} ({len(values[name])} values, {count} of {len(good)} cases)'
            if len(values[name]) > 1
            else f'{next(iter(values[name]))} ({count} of {len(good)} cases)'
        )
        for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]
    if any(case.get('leftovers_unsure') for case, found in of_cases if found):
        return (
            f'set in the environment of cases that passed, but not by Assay: {named(told)}{UNSURE}'
            f'{also}'
        )
    return (
        f'set in the environment of cases that passed, but neither by Assay nor by the '
        f"system's file: {named(told)}{also}"
    )


def _left_in_files(good: list[Case]) -> str | None:
    """What files set for cases that are good, in a sentence."""
    counts = Counter(one for case in good for one in {*of_files(case)})
    if not counts:
        return None
    told = [
        f'{one} ({count} of {len(good)} cases)'
        for one, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]
    return (
        f'set by files for cases that passed, but neither by Assay nor by the '
        f"system's file: {named(told)}"
    )


def _name(leftover: str) -> str:
    return leftover.partition('=')[0]


def _all_missed(case: Case) -> str | None:
    """The figures that are beyond their bounds, and what disturbed the job."""
    found = []
    for name, values in (case['perfvalues'] or {}).items():
        value, reference, lower, upper, *_ = values
        # As it mostly is, and a row takes longer to be made.
        if is_number(value) and not is_beyond(
            value, bound(reference, lower), bound(reference, upper)
        ):
            continue
        row = row_of(case, name.rpartition(':')[2], values)
        no_number = row.value is not None and not is_number(row.value)
        if no_number or (row.verdict == 'fail' and is_beyond(row.value, row.lower, row.upper)):
            bounds = (row.reference, row.lower, row.upper)
            sentence = missed(row.figure, row.value, row.unit, *bounds)
            if who := (case.get('slowest_ranks') or {}).get(row.figure):
                sentence += f': {who}'
            found.append(sentence)
    return '; '.join([*found, *(case.get('disturbances') or ())]) if found else None


def missed(
    name: str,
    value: float | None,
    unit: str,
    reference: float | None,
    lower: float | None,
    upper: float | None,
) -> str:
    """That a figure is beyond its bounds, or no number.

    :param lower: in its unit; None if it is open.
    :param upper: likewise.
    """
    if not is_number(value):
        return f'{name} is {value}: not a number'
    return (
        f'{name} is {of_unit(number(value), unit)}, but {of_unit(allowed(lower, upper), unit)} is '
        f'allowed (reference {number(reference)})'
    )


def failures(report: Report) -> list[Failure]:
    """A sentence for each case that failed, builds first.

    Of all that wait for the same, and of all that were stopped, there is one.
    """
    all_cases = counted(report)
    bad = [case for case in all_cases if case['result'] != 'skip' and is_bad(case)]
    failed = [case for case in bad if case['result'] not in ('fail_deps', 'abort')]
    failed.sort(key=lambda case: not case['fixture'])
    found = _told(failed, all_cases)
    waiting: dict[str, int] = {}
    for case in bad:
        if case['result'] in ('fail_deps', 'abort'):
            words = not_run(case, failed) if case['result'] == 'fail_deps' else reason(case)
            waiting[words] = waiting.get(words, 0) + 1
    found += [Failure(f'{count} case(s)', words, ()) for words, count in waiting.items()]
    return found


def disturbed_cases(report: Report) -> list[Failure]:
    """A sentence for each case that is neither good nor bad: what was measured is no evidence."""
    all_cases = counted(report)
    return _told(filter(is_no_evidence, all_cases), all_cases)


def _told(some: Iterable[Case], all_cases: list[Case]) -> list[Failure]:
    times = Counter(map(case_name, all_cases))
    found = []
    for case in some:
        which = f', run {case["run_index"] + 1}' if times[case_name(case)] > 1 else ''
        found.append(Failure(f'{title(case)}{which}', reason(case), files(case)))
    return found


def not_run(case: Case, all_cases: Iterable[Case]) -> str:
    """That a case waited for others that failed."""
    needed = set(map(tuple, case['dependencies_actual']))
    names = [
        title(one)
        for one in all_cases
        if one['result'] not in GOOD | {'skip', 'fail_deps'}
        and (one['unique_name'], f'{one["system"]}:{one["partition"]}', one['environ']) in needed
    ]
    return f'not run, because {", ".join(names) or "what it depends on"} failed'


def retried(report: Report) -> list[Retried]:
    """The cases that are good, and were not at the first attempt."""
    found = []
    for tries in attempts(report):
        case, earlier = what_counts(tries), _earlier_reasons(tries)
        if earlier and is_good(case):
            found.append(Retried(title(case), len(earlier) + 1, earlier[0]))
    return found


def _earlier_reasons(tries: list[Case]) -> list[str]:
    """Why each job of a case but the last did not do: by its check's own word, or by a retry."""
    found: list[str] = []
    for case in tries:
        found += map(plain, case.get('replaced') or ())
        if case is not tries[-1]:
            found.append(reason(case))
    return found


def skipped(report: Report, log: Iterable[str]) -> list[tuple[str, str]]:
    """Each skipped case and its reason, which only ReFrame's log tells.

    :param log: the lines of ReFrame's log file.
    """
    said = reframe_log.skip_reasons(log)
    return [
        (title(case), plain(said.get(case_name(case), "no reason in ReFrame's log")))
        for case in counted(report)
        if case['result'] == 'skip'
    ]


# What ReFrame says where a job could not be submitted.
_REFUSED = re.compile(
    r"^spawned process error: command '(sbatch|qsub)\b.*--- stderr ---\n(.*?)\n*--- stderr ---",
    re.DOTALL,
)


def reason(case: Case) -> str:
    """Why a case failed, in a sentence, and what was left in its environment."""
    said = _wrong(case) if case['result'] in GOOD else _reason(case)
    return plain(f'{said}{left(case)}')


def _reason(case: Case) -> str:
    if is_no_evidence(case):
        jobs = len(case.get('replaced') or ()) + 1
        times = f'; measured {jobs} times' if jobs > 1 else ''
        return f'{case["no_evidence"]}{times}'
    if case['result'] == 'abort':
        return 'not finished, because the run was stopped'
    if case['fail_phase'] == 'performance' and (missed := _all_missed(case)):
        return missed
    # ReFrame's own scheduler for this machine ends the case here, others leave it to the check.
    if 'job timed out' in (case['fail_reason'] or ''):
        folder = Path(case['stagedir'])
        if hung := cut_short('TIMEOUT', folder, folder / case['job_stderr']):
            return hung
    if blocked := re.search(r'it was blocked due to reason: (.*)', case['fail_reason'] or ''):
        return f'the scheduler did not start its job: {blocked[1]}'
    if refused := _REFUSED.search(case['fail_reason'] or ''):
        said = re.sub(rf'^{refused[1]}: (error: )?', '', refused[2], flags=re.MULTILINE)
        return f'the scheduler refused its job: {"; ".join(said.splitlines())}'
    # ReFrame starts each reason with the kind of its exception.
    said = re.sub(
        r'^(sanity|performance|build|reframe|job) error: (\[jobid=\S+\] )?',
        '',
        case['fail_reason'] or '',
    )
    if case['fail_phase'] == 'compile_wait' and (line := _first_error(case)):
        said += f': {line}'
    if said.strip():
        return said.strip()
    if case['fail_phase'] is None:  # so ReFrame ends what depends on something that failed
        return 'it did not run, because its build failed'
    return f'failed in phase {case["fail_phase"]}, and ReFrame gives no reason'


def _first_error(case: Case) -> str | None:
    """The first error in the output of a build, if its stage folder is still there."""
    for name in (case['build_stderr'], case['build_stdout']):
        path = Path(case['stagedir'], name)
        if path.is_file():
            for line in path.read_text(errors='replace').splitlines():
                if re.search(r'\berror\b', line, re.IGNORECASE):
                    return line.strip()
    return None


def files(case: Case) -> tuple[str, ...]:
    """The stage folder and those of the job's output files that ReFrame names."""
    folder = case['stagedir']
    if not folder:
        return ()
    kind = 'build' if (case['fail_phase'] or '').startswith('compile') else 'job'
    names = [case[f'{kind}_{stream}'] for stream in ('stdout', 'stderr')]
    return (folder, *(name for name in names if name))
