"""The verdict: what ReFrame passes and nothing proves is a failure."""

import math

import pytest

from assay.results.failures import cases_without_reference, failures
from assay.results.rows import rows
from assay.results.unmatched import misaddressed_options
from assay.results.verdict import MOST_WARNINGS, judge_run
from reports import LOG, cases, disturbed, own_cases, run_of, then


@pytest.mark.parametrize(
    ('name', 'exit_code', 'problem'),
    [
        ('Passed', 0, None),
        ('Passed', 1, 'exit code 1'),
        ('FailedReference', 1, '2 of 2 cases failed'),
        ('FailedSanity', 1, '2 of 2 cases failed'),
        ('FailedBuild', 1, '2 of 2 cases failed'),
        ('NotANumber', 1, '2 of 2 cases failed'),
        # ReFrame itself ends these with exit code 0.
        ('Skipped', 0, 'all 2 selected cases were skipped'),
        ('NoFigures', 0, 'passed without any figure'),
        ('NoReference', 0, 'passed without any reference'),
    ],
)
def test_verdict(golden_report, name, exit_code, problem):
    verdict = judge_run(run_of(golden_report(name)), exit_code, LOG)
    assert verdict.passed is (problem is None)
    if problem:
        assert problem in ' '.join(verdict.problems)


@pytest.mark.parametrize('name', ['FailedReference', 'FailedSanity', 'FailedBuild', 'NoFigures'])
def test_what_failed_cases_explain_is_told_apart(golden_report, name):
    verdict = judge_run(run_of(golden_report(name)), 1, LOG)
    assert (verdict.of_cases, verdict.of_session) == (verdict.problems, ())
    verdict = judge_run(run_of(golden_report(name)), 1, LOG[:-1])
    (other,) = verdict.of_session
    assert 'stops before its end' in other


def test_another_program_may_have_no_reference(golden_report):
    """Those for any machine are of our own sources."""
    report = golden_report('NoReference')
    assert cases_without_reference(run_of(report)) == []
    for case in own_cases(report):
        case['implementation'] = 'xhpl'
    assert judge_run(run_of(report), 0, LOG).passed
    assert [case.implementation for case in cases_without_reference(run_of(report))] == [
        'xhpl',
        'xhpl',
    ]


def test_no_report_is_a_failure_whatever_reframe_says():
    assert 'no check was selected' in judge_run(None, 0, LOG).problems[0]
    assert 'exit code 3' in judge_run(None, 3, LOG).problems[0]


def test_a_report_of_builds_only_measured_nothing(golden_report):
    report = golden_report('Passed')
    for run in report['runs']:
        run['testcases'] = [case for case in run['testcases'] if case['fixture']]
    assert 'nothing was measured' in judge_run(run_of(report), 0, LOG).problems[0]


@pytest.mark.parametrize('value', [None, math.nan, math.inf])
def test_a_figure_without_a_value_is_a_failure(golden_report, value):
    report = golden_report('Passed')
    cases(report)[-1]['perfvalues']['toy:node:latency'][0] = value
    assert (
        'without a value for the figure latency' in judge_run(run_of(report), 0, LOG).problems[-1]
    )


@pytest.mark.parametrize(
    ('value', 'lower', 'upper', 'good'),
    [(80.0, -0.1, 0.1, False), (20.0, -0.1, None, False), (80.0, -0.1, None, True)],
)
def test_a_figure_is_held_to_its_bounds_whatever_reframe_makes_of_it(
    golden_report, value, lower, upper, good
):
    """As it does with strict_check off."""
    report = golden_report('Passed')
    case = cases(report)[-1]
    case['perfvalues'] = {'toy:node:latency': [value, 42, lower, upper, 'us', 'fail']}
    if good:
        case['perfvalues']['toy:node:latency'][-1] = 'pass'
    assert judge_run(run_of(report), 0, LOG).passed is good
    assert rows(run_of(report))[-1].verdict == ('pass' if good else 'fail')
    assert [f'latency is {value:.2f} us, but' in f.reason for f in failures(run_of(report))] == (
        [] if good else [True]
    )


def test_a_failure_that_a_reference_announces_is_none(golden_report):
    report = golden_report('Passed')
    case = cases(report)[-1]
    case['result'] = 'xfail'
    case['perfvalues'] = {
        'toy:node:latency': [80.0, 42, -0.1, 0.1, 'us', 'xfail'],
        'toy:node:other': [42.0, 42, -0.1, 0.1, 'us', 'pass'],
    }
    assert judge_run(run_of(report), 0, LOG).passed
    assert [row.verdict for row in rows(run_of(report))] == ['pass', 'xfail', 'pass']
    case['perfvalues']['toy:node:other'][0] = 80.0
    assert not judge_run(run_of(report), 0, LOG).passed


@pytest.mark.parametrize(('log', 'said'), [(None, 'is missing'), ([], 'stops'), (['x'], 'stops')])
def test_without_a_whole_log_nobody_knows_what_was_left_out(golden_report, log, said):
    (problem,) = judge_run(run_of(golden_report('Passed')), 0, log).problems
    assert problem.startswith(f"ReFrame's log {said}")


def test_what_reframe_only_prints_counts(golden_report):
    printed = ["\x1b[33mWARNING: environment variable 'RFM_CLEAN_STAGEDIR' not a boolean\x1b[0m"]
    assert not judge_run(run_of(golden_report('Passed')), 0, LOG, printed).passed
    assert judge_run(run_of(golden_report('Passed')), 0, LOG, LOG).passed


def test_many_warnings_are_counted(golden_report):
    words = ('could', 'not', 'check', 'path', 'exist', 'log', 'store', 'save', 'skip', 'test')
    log = [f"WARNING: {word} path '/{number}'" for word in words for number in range(3)]
    problems = judge_run(run_of(golden_report('Passed')), 0, [*log, *log, *LOG]).problems
    assert problems[0] == "ReFrame warned: could path '/0' (and 2 more like it)"
    assert len(problems) == MOST_WARNINGS + 1
    assert problems[-1] == "2 more kinds of warnings are in ReFrame's log"


def test_a_check_that_reframe_leaves_out_fails_the_run(golden_report):
    log = ["WARNING: skipping test file 'ring.py': name conflict error: test 'Ring_00'"]
    verdict = judge_run(run_of(golden_report('Passed')), 0, [*LOG, *log])
    assert verdict.problems == (
        "ReFrame warned: skipping test file 'ring.py': name conflict error: test 'Ring_00'",
    )


def test_a_variable_of_a_class_that_no_case_is_of_fails_the_run(golden_report):
    report = golden_report('Passed')
    right = ['Passed.printed=x.y', 'Build.source=x', 'printed=a.b']
    assert misaddressed_options(run_of(report), right, ['Passed.printed=x,y', 'layout=a.b']) == []
    wrong = ['Pased.printed=x', 'build.source=x', *right]
    assert misaddressed_options(run_of(report), wrong, ['Build.source=x,y']) == [
        "no selected check is 'Pased', of which -S sets 'printed'",
        "no selected check is 'build', of which -S sets 'source'",
        "no selected check is 'Build', of which -P sets 'source'",
    ]


def test_no_evidence_is_neither_good_nor_bad(golden_report):
    report = disturbed(golden_report('FailedReference'))
    verdict = judge_run(run_of(report), 1, LOG)
    assert (verdict.word, verdict.exit_code, verdict.problems) == ('DISTURBED', 3, ())
    assert not verdict.passed
    assert failures(run_of(report)) == []
    assert [row.verdict for row in rows(run_of(report))] == ['disturbed', 'disturbed']


def test_a_failure_comes_before_no_evidence(golden_report):
    verdict = judge_run(run_of(disturbed(golden_report('FailedReference'), 0)), 1, LOG)
    assert (verdict.word, verdict.exit_code) == ('FAILED', 1)
    assert verdict.problems == ('1 of 2 cases failed',)
    log = [*LOG, "WARNING: check path '/a' does not exist"]
    assert judge_run(run_of(disturbed(golden_report('FailedReference'))), 1, log).word == 'FAILED'


@pytest.mark.parametrize('name', ['FailedSanity', 'NotANumber', 'FailedBuild'])
def test_what_is_no_missed_reference_is_a_failure_whoever_disturbed(golden_report, name):
    """Whatever it says."""
    report = golden_report(name)
    for case in cases(report):
        case['no_evidence'] = 'x'
        case['fail_reason'] = (case['fail_reason'] or '').replace('error: ', 'error: disturbed: ')
    assert judge_run(run_of(report), 1, LOG).problems[0] == '2 of 2 cases failed'


def aborted(report):
    """A report of what was stopped before its end."""
    for case in cases(report):
        case |= {'result': 'abort', 'perfvalues': {}}
    return report


def test_a_disturbed_case_hides_no_repetition_that_was_stopped(golden_report):
    """As by --maxfail, for which ReFrame counts a disturbed case."""
    first = disturbed(golden_report('FailedReference'))
    later = aborted(golden_report('FailedReference'))
    verdict = judge_run(run_of(then(first, later, only_failed=False)), 1, LOG)
    assert verdict.problems == ('3 case(s) of a repetition were stopped before their end',)
    assert verdict.word == 'FAILED'


def test_a_disturbed_case_hides_no_repetition_that_never_began(golden_report):
    report = disturbed(golden_report('FailedReference'))
    report['session_info']['cmdline'] += ' --reruns 2 --maxfail=1'
    assert judge_run(run_of(report), 1, LOG).problems == ('only 1 of 3 repetitions were run',)
