"""What a run showed, from ReFrame's own JSON report: rows, failures, and the verdict.

Pure functions over the report, but for reading it and what jobs left in their stage folders.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import AssayError, witness
from assay.job.ending import cut_short
from assay.job.launch import WITNESS
from assay.running import reframe_log
from assay.text import plain
from assay.witness.disturbance import disturbed

Case = dict[str, Any]
Report = dict[str, Any]

# ReFrame's results that do not fail a run. An expected failure is one that a reference announces.
GOOD = {'pass', 'xfail'}

# The verdicts of rows that fail a run.
BAD = {'fail', 'not run', 'no figure', 'abort', 'xpass'}

#: Kinds of ReFrame's warnings that a verdict quotes.
MOST_WARNINGS = 8


@dataclass(frozen=True)
class Row:
    """One figure of one test case; ``lower`` and ``upper`` are absolute bounds, None if open."""

    check: str
    environment: str
    fabric: str
    layout: str
    figure: str
    value: float | None
    unit: str
    reference: float | None
    lower: float | None
    upper: float | None
    verdict: str
    #: It is shown even if nothing holds it.
    headline: bool = False

    @property
    def deviation(self) -> float | None:
        """How far the value is from its reference, as a fraction of the reference."""
        if not self.reference or not _is_number(self.value):
            return None
        return (self.value - self.reference) / abs(self.reference)

    @property
    def room(self) -> float | None:
        """How far the value is inside its nearest bound, as a fraction of the reference.

        Negative where it is beyond.
        """
        if not self.reference or not _is_number(self.value):
            return None
        rooms = []
        if self.lower is not None:
            rooms.append(self.value - self.lower)
        if self.upper is not None:
            rooms.append(self.upper - self.value)
        return min(rooms) / abs(self.reference) if rooms else None


@dataclass(frozen=True)
class Failure:
    """A test case that failed: one sentence, and where the job's files are."""

    case: str
    reason: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Retried:
    """A test case that passed, but not at once, and why it failed at first."""

    case: str
    attempts: int
    reason: str


@dataclass(frozen=True)
class Verdict:
    """Whether a run is good, and if not, every reason why."""

    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.problems


def read_report(path: Path) -> Report:
    """ReFrame's JSON report.

    :raises AssayError: if it is not one.
    """
    try:
        report = json.loads(path.read_text())
        report['session_info'], report['runs']
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AssayError(
            f'{path}: not a report of ReFrame: {type(error).__name__}: {error}'
        ) from error
    return report


def cases(report: Report) -> list[Case]:
    """All cases of all runs of the session (``--reruns`` and ``--max-retries`` make several)."""
    return [case for run in report['runs'] for case in run['testcases']]


def last_cases(report: Report) -> list[Case]:
    """Each case once, as it last went."""
    return list({case_name(case): case for case in cases(report)}.values())


def attempts(report: Report) -> list[list[Case]]:
    """Each case with those that it replaces before it, the first one first.

    ``--max-retries`` runs what failed once more, which replaces it. ``--reruns`` and ``--duration``
    run all of it again, and each time counts: one that has no time left to end is no attempt.
    """
    may_retry = '--max-retries' in report['session_info'].get('cmdline', '')
    found: list[list[Case]] = []
    failed: dict[str, list[Case]] = {}
    for number, run in enumerate(report['runs']):
        ran = {case_name(case) for case in run['testcases']}
        is_retry = may_retry and bool(ran) and ran <= failed.keys()
        again: dict[str, list[Case]] = {}
        for case in run['testcases']:
            if is_retry:
                tries = failed[case_name(case)]
                tries.append(case)
            elif number and case['result'] == 'abort':
                continue
            else:
                tries = [case]
                found.append(tries)
            if case['result'] not in GOOD | {'skip'}:
                again[case_name(case)] = tries
        failed = again
    return found


def counted(report: Report) -> list[Case]:
    """The cases that the verdict is about: all but those that a retry replaced."""
    return [tries[-1] for tries in attempts(report)]


def case_name(case: Case) -> str:
    """Name, partition and environment of a case, as ReFrame prints it."""
    return f'{case["display_name"]} @{case["system"]}:{case["partition"]}+{case["environ"]}'


def title(case: Case) -> str:
    """As ``case_name``; a fixture's name holds its partition and environment already."""
    return plain(re.sub(r' ~\S+', '', case_name(case)))


def class_name(case: Case) -> str:
    """The class of a check, with which ReFrame's names begin."""
    return case['display_name'].partition(' ')[0]


def check_name(case: Case) -> str:
    """Name and parameters of the check, without those that have a column of their own."""
    name = re.sub(r' (~|%(fabric|layout)=)\S+', '', case['display_name'])
    return name.replace('%scale=', '').replace('%', '')


def rows(report: Report) -> list[Row]:
    """One row for each figure, and one for each case that has none; build fixtures have none."""
    found: list[Row] = []
    for case in counted(report):
        if case['result'] == 'skip':
            continue
        figures = {
            name.rpartition(':')[2]: values
            for name, values in (case['perfvalues'] or {}).items()
            if values[0] is not None
        }
        if not figures:
            if not case['fixture'] or case['result'] not in GOOD:
                found.append(_row(case, '-', [None, None, None, None, '', None]))
            continue
        found += [_row(case, name, values) for name, values in figures.items()]
    return found


def _row(case: Case, figure: str, values: list) -> Row:
    value, reference, lower, upper, unit, _ = values
    bounded = lower is not None or upper is not None
    return Row(
        check=check_name(case),
        environment=case['environ'],
        fabric=case.get('fabric') or '-',
        layout=case.get('layout') or '-',
        figure=figure,
        value=value,
        unit=unit or '',
        # ReFrame writes a missing reference as 0 without bounds.
        reference=reference if reference or bounded else None,
        lower=_bound(reference, lower),
        upper=_bound(reference, upper),
        verdict=_verdict(case, figure, values),
        headline=figure in (case.get('headlines') or ()),
    )


def _verdict(case: Case, figure: str, values: list) -> str:
    value, reference, lower, upper, _, result = values
    if figure == '-' and case['result'] in GOOD:
        return 'pass' if case['fixture'] else 'no figure'
    if result in {'xfail', 'xpass'}:
        return result
    if _is_beyond(value, _bound(reference, lower), _bound(reference, upper)):
        return 'fail'
    if case['result'] in GOOD or result == 'pass':  # else it may be another figure that failed
        return 'no bound' if lower is None and upper is None else 'pass'
    return {'fail_deps': 'not run'}.get(case['result'], case['result'])


def _is_beyond(value: float | None, lower: float | None, upper: float | None) -> bool:
    """Whether a value is beyond its bounds, whatever ReFrame was told to make of it."""
    if not _is_number(value):
        return False  # which is judged by itself
    return (lower is not None and value < lower) or (upper is not None and value > upper)


def _bound(reference: float | None, threshold: float | None) -> float | None:
    """ReFrame's absolute bound: a fraction of the reference, and the bound itself where that is 0.

    To the last bit that of ``reframe.utility.sanity.reference_bounds``.
    """
    if threshold is None or reference is None:
        return None
    if not reference:
        return threshold
    return reference * (1 + (threshold if reference > 0 else -threshold))


def is_good(case: Case) -> bool:
    """Whether a case measured something, and all of it is as it should be."""
    return case['result'] in GOOD and _wrong(case) is None


def _wrong(case: Case) -> str | None:
    """What is wrong with a case that ReFrame passed."""
    return None if case['fixture'] else _lacking(case) or _all_missed(case)


def _lacking(case: Case) -> str | None:
    """What of its measurement a case has not that ReFrame passed."""
    figures = case['perfvalues'] or {}
    lost = [name for name, values in figures.items() if not _is_number(values[0])]
    if not figures:
        return 'passed without any figure: nothing was measured'
    if lost:
        return f'passed without a value for the figure {lost[0].rpartition(":")[2]}'
    if not _has_reference(case) and not _is_of_another_program(case):
        return 'passed without any reference: the figures were held to nothing'
    return None


def _all_missed(case: Case) -> str | None:
    """The figures that are beyond their bounds, and what disturbed the job."""
    missed = []
    for name, values in (case['perfvalues'] or {}).items():
        row = _row(case, name.rpartition(':')[2], values)
        no_number = row.value is not None and not _is_number(row.value)
        if no_number or (row.verdict == 'fail' and _is_beyond(row.value, row.lower, row.upper)):
            missed.append(_missed(row))
    return '; '.join([*missed, *disturbed(_witnessed(case))]) if missed else None


def failures(report: Report) -> list[Failure]:
    """A sentence for each case that failed, builds first, and one for all that wait for it."""
    all_cases = counted(report)
    times = Counter(map(case_name, all_cases))
    bad = [case for case in all_cases if case['result'] != 'skip' and not is_good(case)]
    failed = [case for case in bad if case['result'] != 'fail_deps']
    failed.sort(key=lambda case: not case['fixture'])
    found = []
    for case in failed:
        which = f', run {case["run_index"] + 1}' if times[case_name(case)] > 1 else ''
        found.append(Failure(f'{title(case)}{which}', reason(case), files(case)))

    waiting: dict[str, int] = {}
    for case in bad:
        if case['result'] == 'fail_deps':
            words = not_run(case, failed)
            waiting[words] = waiting.get(words, 0) + 1
    found += [Failure(f'{count} case(s)', words, ()) for words, count in waiting.items()]
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
    return [
        Retried(title(tries[-1]), len(tries), reason(tries[0]))
        for tries in attempts(report)
        if len(tries) > 1 and is_good(tries[-1])
    ]


def reason(case: Case) -> str:
    """Why a case failed, in a sentence."""
    return plain(_wrong(case) if case['result'] in GOOD else _reason(case))


def _reason(case: Case) -> str:
    if case['result'] == 'abort':
        return 'not finished, because the run was stopped'
    if case['fail_phase'] == 'performance' and (missed := _all_missed(case)):
        return missed
    # ReFrame's own scheduler for this machine ends the case here, others leave it to the check.
    if 'job timed out' in (case['fail_reason'] or ''):
        folder = Path(case['stagedir'])
        return cut_short('TIMEOUT', folder, folder / case['job_stderr'])
    if blocked := re.search(r'it was blocked due to reason: (.*)', case['fail_reason'] or ''):
        return f'the scheduler did not start its job: {blocked[1]}'
    # ReFrame starts each reason with the kind of its exception.
    said = re.sub(r'^(sanity|performance|build|reframe) error: ', '', case['fail_reason'] or '')
    if case['fail_phase'] == 'compile_wait' and (line := _first_error(case)):
        said += f': {line}'
    return said.strip() or f'failed in phase {case["fail_phase"]}, and ReFrame gives no reason'


def _witnessed(case: Case) -> Iterator[witness.Report]:
    """What the witness saw of each run of the job, if the stage folder is still there."""
    for path in Path(case['stagedir']).rglob(WITNESS):
        with suppress(witness.WitnessError):
            yield witness.read(path)


def _first_error(case: Case) -> str | None:
    """The first error in the output of a build, if its stage folder is still there."""
    for name in (case['build_stderr'], case['build_stdout']):
        path = Path(case['stagedir'], name)
        if path.is_file():
            for line in path.read_text(errors='replace').splitlines():
                if re.search(r'\berror\b', line, re.IGNORECASE):
                    return line.strip()
    return None


def _missed(row: Row) -> str:
    if not _is_number(row.value):
        return f'{row.figure} is {row.value}: not a number'
    allowed = []
    if row.lower is not None:
        allowed.append(f'at least {number(row.lower)}')
    if row.upper is not None:
        allowed.append(f'at most {number(row.upper)}')
    return (
        f'{row.figure} is {number(row.value)} {row.unit}, but {" and ".join(allowed)} {row.unit} '
        f'is allowed (reference {number(row.reference)})'
    )


def files(case: Case) -> tuple[str, ...]:
    """The stage folder and those of the job's output files that ReFrame names."""
    folder = case['stagedir']
    if not folder:
        return ()
    kind = 'build' if (case['fail_phase'] or '').startswith('compile') else 'job'
    names = [case[f'{kind}_{stream}'] for stream in ('stdout', 'stderr')]
    return (folder, *(name for name in names if name))


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


def judge(
    report: Report | None,
    reframe_exit_code: int,
    log: Iterable[str] | None,
    printed: Iterable[str] = (),
) -> Verdict:
    """Green only if something was measured and all of it passed.

    ReFrame itself passes a run that selected nothing, skipped everything, lost its figures or found
    no reference for them; it goes on without what it cannot load, set or write; and it writes no
    report when nothing was selected.

    :param log: the lines of ReFrame's log file; None if there is none.
    :param printed: the lines that ReFrame wrote to standard output and error: only there is what it
        warns of before it has a log file, and what it could not write.
    """
    lines = reframe_log.without_colours(log or ())
    problems = []
    if log is None:
        problems.append("ReFrame's log is missing: what it left out is unknown")
    elif not reframe_log.has_end(lines):
        problems.append("ReFrame's log stops before its end: what was left out is unknown")
    all_cases = counted(report) if report else []
    warned = reframe_log.complaints(
        [*lines, *reframe_log.without_colours(printed)],
        {class_name(case) for case in all_cases if not case['fixture']},
        {class_name(case) for case in all_cases if case['fixture']},
        report['session_info'].get('cmdline', '') if report else '',
    )
    problems += warned[:MOST_WARNINGS]
    if len(warned) > MOST_WARNINGS:
        problems.append(
            f"{len(warned) - MOST_WARNINGS} more kinds of warnings are in ReFrame's log"
        )
    if report is None:
        if reframe_exit_code:
            problems.append(f'ReFrame ended with exit code {reframe_exit_code} and left no report')
        else:
            problems.append('no check was selected, so nothing was measured')
        return Verdict(tuple(problems))
    own = [case for case in all_cases if not case['fixture']]
    done = [case for case in own if case['result'] != 'skip']
    if not own:
        problems.append('no check was selected, so nothing was measured')
    elif not done:
        problems.append(f'all {len(own)} selected cases were skipped, so nothing was measured')
    if bad := [case for case in done if not is_good(case)]:
        problems.append(f'{len(bad)} of {len(own)} cases failed')
    elif failed := failures(report):
        problems.append(f'{failed[0].case} failed')  # a fixture that no case waited for
    by_reason: dict[str, list[Case]] = {}
    for case in bad:
        if case['result'] in GOOD and (words := _lacking(case)):
            by_reason.setdefault(plain(words), []).append(case)
    for words, found in by_reason.items():
        others = f' and {len(found) - 1} more' if len(found) > 1 else ''
        problems.append(f'{title(found[0])}{others} {words}')
    if reframe_exit_code and not problems:
        problems.append(
            f'ReFrame ended with exit code {reframe_exit_code}: a case failed in an earlier run '
            'of this session, or the session was stopped; see above'
        )
    return Verdict(tuple(problems))


def misaddressed(report: Report, variables: Iterable[str], parameters: Iterable[str]) -> list[str]:
    """A sentence for each class that an option names and no case is of: ReFrame ignores it.

    :param variables: what ``-S`` sets, as ``[CLASS.]NAME=VALUE``; also of fixtures.
    :param parameters: what ``-P`` sets, likewise.
    """
    classes = {class_name(case) for case in cases(report)}
    checks = {class_name(case) for case in cases(report) if not case['fixture']}
    found = []
    for option, known, given in (('-S', classes, variables), ('-P', checks, parameters)):
        for one in given:
            name, dot, rest = one.partition('=')[0].partition('.')
            if dot and name not in known:
                found.append(
                    f'no selected check is {plain(name)!r}, of which {option} sets {plain(rest)!r}'
                )
    return found


def counts(report: Report | None) -> tuple[int, int, int]:
    """How many cases passed, failed and were skipped; fixtures are none."""
    own = [case for case in counted(report) if not case['fixture']] if report else []
    passed = sum(map(is_good, own))
    skips = sum(case['result'] == 'skip' for case in own)
    return passed, len(own) - passed - skips, skips


def unheld(report: Report) -> list[Case]:
    """Cases of a program that the user named, of which no figure has a reference."""
    return [
        case
        for case in counted(report)
        if case['result'] in GOOD and _is_of_another_program(case) and not _has_reference(case)
    ]


def _has_reference(case: Case) -> bool:
    figures = (case['perfvalues'] or {}).values()
    return any((lower, upper) != (None, None) for _, _, lower, upper, *_ in figures)


def _is_of_another_program(case: Case) -> bool:
    """References for any machine are those of our sources: others have none to start with."""
    return case.get('implementation', 'assay') != 'assay'


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def number(value: float | None) -> str:
    """A number with four significant digits, and no exponent where people read without one."""
    if value is None:
        return '-'
    if not math.isfinite(value) or value == 0:
        return f'{value:g}'
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f'{value:.3e}' if digits > 9 else f'{value:.{digits}f}'
