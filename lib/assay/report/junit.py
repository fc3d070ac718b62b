"""The verdict of a run as JUnit's XML, as Jenkins' xUnit plugin reads it (its junit-10.xsd).

ReFrame's own file knows neither what we hold a case to nor why a case was skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from assay import AssayError
from assay.results.cases import Case, Run, deciding_attempt, is_no_evidence
from assay.results.failures import (
    case_findings,
    failure_reason,
    files,
    is_good,
    left_in_good_cases,
    skipped_cases,
    why_not_run,
)
from assay.results.reframe_report import read_reframe_report
from assay.results.verdict import Verdict
from assay.running.runs import RunFolder
from assay.text import plain, visible_lines
from assay.witness.disturbance import FARTHER_APART, MOVED


def write_junit(
    path: Path,
    run: Run | None,
    verdict: Verdict,
    log: Iterable[str],
    seconds: float,
    left_out: Iterable[str] = (),
) -> None:
    """Write a test case for each case of the run, and one for the run as a whole.

    That one has an error exactly when the verdict is not good, whatever became of the cases; its
    output tells what was found in cases that passed, and was left in their environment.

    :param run: None if it left no report.
    :param log: the lines of ReFrame's log file, which tells why cases were skipped.
    :param seconds: the wall time of the run.
    :param left_out: cases that a budget left out, which are skipped.
    :raises AssayError: if the file cannot be written.
    """
    suite = Element('testsuite', name='assay')
    if run:
        suite.set('hostname', plain(run.hostname))
        suite.set('timestamp', f'{run.begun.astimezone():%FT%T}')
        _add_cases(suite, run, list(log))
    for name in sorted(left_out):
        one = _add(suite, plain(name.partition(' ')[0]), plain(name), 0)
        SubElement(one, 'skipped', type='left out', message='left out by --budget')
    whole = _add(suite, 'assay', 'the run as a whole', seconds)
    if verdict.problems:
        error = SubElement(whole, 'error', type='run', message=plain('; '.join(verdict.problems)))
        error.text = visible_lines('\n'.join(verdict.problems))
    elif verdict.disturbed:
        words = f'{verdict.disturbed} case(s) were disturbed by others: nothing is known of them'
        SubElement(whole, 'error', type='disturbed', message=words)
    if run:
        notes = [
            left_in_good_cases(run),
            *(f'finding: {one}' for one, _ in case_findings(run)),
        ]
        if told := '\n'.join(filter(None, notes)):
            SubElement(whole, 'system-out').text = told
    totals = {
        'tests': str(len(suite)),
        'failures': str(len(suite.findall('testcase/failure'))),
        'errors': str(len(suite.findall('testcase/error'))),
        'time': f'{seconds:.3f}',
    }
    suite.attrib.update(totals, skipped=str(len(suite.findall('testcase/skipped'))))
    suites = Element('testsuites', totals, name='assay')
    suites.append(suite)
    ElementTree.indent(suites)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suites).write(path, encoding='utf-8', xml_declaration=True)
    except OSError as error:
        raise AssayError(f'{path}: cannot be written: {error.strerror}') from None


def write_of_run(
    path: Path, own: RunFolder | None, verdict: Verdict, left_out: Iterable[str]
) -> None:
    """Write the file of a run that has ended, with a verdict that goes beyond it.

    :param own: the run; None if it never began.
    :param left_out: as of :func:`write_junit`.
    :raises AssayError: if the file cannot be written.
    """
    report, log, seconds = None, [], 0.0
    with suppress(AssayError, OSError):  # of one that did not get so far
        if own:
            log = own.log.read_text(errors='replace').splitlines()
            report = read_reframe_report(own.report)
            seconds = report.seconds or 0.0
    write_junit(path, report, verdict, log, seconds, left_out)


def _add_cases(suite: Element, run: Run, log: list[str]) -> None:
    """The checks' cases, and the builds that failed."""
    why_skipped = dict(skipped_cases(run, log))
    counted_cases = run.counted
    for tries in run.attempts:
        case = deciding_attempt(tries)
        good = is_good(case)
        if case.is_fixture and good:
            continue
        one = _add(suite, plain(case.check), case.title, case.seconds.total or 0)
        if case.result == 'skip':
            SubElement(one, 'skipped', message=why_skipped[case.title])
        elif is_no_evidence(case):
            # JUnit has no word for it; a failure would be taken for a worse system.
            SubElement(
                one, 'skipped', type='disturbed', message=f'disturbed: {failure_reason(case)}'
            )
        elif case.result == 'fail_deps':
            SubElement(one, 'failure', type='not run', message=why_not_run(case, counted_cases))
        elif not good:
            _add_failure(one, 'failure', case)
        else:
            for earlier in tries:
                for why in earlier.replaced:
                    if why in (MOVED, FARTHER_APART):  # a good job, which did not fail
                        continue
                    SubElement(one, 'flakyFailure', type='disturbed', message=plain(why))
                if earlier is not case:
                    _add_failure(one, 'flakyFailure', earlier)


def _add(suite: Element, check: str, name: str, seconds: float) -> Element:
    return SubElement(suite, 'testcase', classname=check, name=name, time=f'{seconds:.3f}')


def _add_failure(one: Element, kind: str, case: Case) -> None:
    """The sentence that the terminal shows, and where the job's files are."""
    found = SubElement(one, kind, type=case.result, message=failure_reason(case))
    found.text = plain(' '.join(files(case))) or None
