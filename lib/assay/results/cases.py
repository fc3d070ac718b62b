"""The cases of a run, from ReFrame's JSON report: their names and their attempts."""

from __future__ import annotations

import json
import math
import re
import shlex
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay import AssayError
from assay.machine.job_states import ENDED_BY_SCHEDULER, PREEMPTED
from assay.text import plain

#: The words with which a check begins why it failed, if that is no evidence.
NO_EVIDENCE = 'disturbed: '

# So begins the only reason that is no evidence though there are no figures.
_PREEMPTED = NO_EVIDENCE + ENDED_BY_SCHEDULER[PREEMPTED].partition(':')[0]

Case = dict[str, Any]
Report = dict[str, Any]

# ReFrame's results that do not fail a run. An expected failure is one that a reference announces.
GOOD = {'pass', 'xfail'}


def left_in(case: Case) -> Path | None:
    """The folder with the files of a case; None where that is gone.

    Of one that passed it is ReFrame's output, of another its stage, though ReFrame names both.
    """
    names = ('outputdir', 'stagedir') if case['result'] in GOOD else ('stagedir', 'outputdir')
    for name in names:
        if (path := case.get(name)) and Path(path).is_dir():
            return Path(path)
    return None


def read_report(path: Path) -> Report:
    """ReFrame's JSON report.

    :raises AssayError: if it is not one.
    """
    try:
        text = path.read_text()
    except (OSError, ValueError) as error:
        raise _no_report(path, error) from error
    return as_report(text, path)


def as_report(text: str | bytes, where: object) -> Report:
    """ReFrame's JSON report from its text.

    :param where: it is from, for the message.
    :raises AssayError: if it is none.
    """
    try:
        report: Report = json.loads(text)
        report['session_info'], report['runs']
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _no_report(where, error) from error
    return report


def _no_report(where: object, error: Exception) -> AssayError:
    return AssayError(f'{where}: not a report of ReFrame: {type(error).__name__}: {error}')


def assert_text(*words: Any) -> None:
    """:raises AssayError: if one of them is no text, or none that can be written as UTF-8."""
    try:
        ''.join(words).encode()
    except (TypeError, UnicodeError) as error:
        raise AssayError(f'not as ReFrame writes it: {type(error).__name__}: {error}') from error


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
    may_retry = was_given(report, '--max-retries') is not None
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


def was_given(report: Report, option: str) -> str | None:
    """The value of an option of ReFrame on its command line; None if it was not given.

    What stands in the text of another option, such as a label, is none.
    """
    words = _words(report['session_info'].get('cmdline', ''))
    value = None
    for number, word in enumerate(words):
        name, equals, rest = word.partition('=')
        if name == option:
            value = rest if equals else ''.join(words[number + 1 : number + 2])
    return value


# It is asked for several options of each session, and sessions of a year have one command line.
@lru_cache(maxsize=256)
def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError:  # not as ReFrame quotes: then no option excuses anything
        return ()


def not_repeated(report: Report) -> str | None:
    """That not all was run as often as was asked for, as where ``--maxfail`` ends a session.

    A ``--duration`` ends the last repetition by itself.
    """
    if was_given(report, '--duration') is not None:
        return None
    later = [case for run in report['runs'][1:] for case in run['testcases']]
    if stopped := [case for case in later if case['result'] == 'abort']:
        return f'{len(stopped)} case(s) of a repetition were stopped before their end'
    asked = was_given(report, '--reruns') or ''
    if asked.isdigit() and len(report['runs']) <= int(asked):
        return f'only {len(report["runs"])} of {int(asked) + 1} repetitions were run'
    return None


def counted(report: Report) -> list[Case]:
    """The cases that the verdict is about: all but those that a retry replaced."""
    return [what_counts(tries) for tries in attempts(report)]


def what_counts(tries: list[Case]) -> Case:
    """Of the attempts at a case the last; one that is no evidence takes nothing from a failure."""
    failed = [case for case in tries if not is_no_evidence(case)]
    return failed[-1] if failed and is_no_evidence(tries[-1]) else tries[-1]


def is_no_evidence(case: Case) -> bool:
    """Whether figures of a case missed their references, and nothing else was wrong with it.

    One that met a reference unexpectedly was: no others have made it better. That others disturbed
    its job, and what they took, is for the check to say; also that they took its nodes, and the job
    came to no figures.
    """
    if case['result'] != 'fail' or not case.get('no_evidence'):
        return False
    phase, _, said = (case['fail_reason'] or '').partition(' error: ')
    if phase != case['fail_phase'] or not said.startswith(NO_EVIDENCE):
        return False
    # Figures last: most cases passed, and thousands of figures are asked for each.
    figures = (case['perfvalues'] or {}).values()
    return (phase == 'sanity' and said.startswith(_PREEMPTED)) or (
        phase == 'performance'
        and all(isinstance(value, int | float) and math.isfinite(value) for value, *_ in figures)
        and all(result != 'xpass' for *_, result in figures)
    )


def case_name(case: Case) -> str:
    """Name, partition and environment of a case, as ReFrame prints it."""
    return f'{case["display_name"]} @{case["system"]}:{case["partition"]}+{case["environ"]}'


def title(case: Case) -> str:
    """As ``case_name``; a fixture's name holds its partition and environment already."""
    return plain(re.sub(r' ~\S+', '', case_name(case)))


def class_name(case: Case) -> str:
    """The class of a check, with which ReFrame's names begin."""
    name: str = case['display_name']
    return name.partition(' ')[0]


def check_name(case: Case) -> str:
    """Name and parameters of the check, without those that have a column of their own."""
    return _check_name(case['display_name'])


# It is asked for each figure.
@lru_cache(maxsize=4096)
def _check_name(display_name: str) -> str:
    name = re.sub(r' (~|%(fabric|layout)=)\S+', '', display_name)
    return name.replace('%scale=', '').replace('%', '')
