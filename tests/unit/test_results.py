"""Rows, sentences and verdicts from ReFrame's own reports."""

import math
from pathlib import Path

import pytest

from assay import AssayError
from assay.results import verdict as results
from assay.witness.disturbance import DISTURBANCES
from reports import LOG, passing, then
from witnessed import entries, host, process, write

REPORTS = Path(__file__).parents[1] / 'golden' / 'reports'


def row(value, reference, lower, upper):
    return results.Row('c', 'e', 'f', 'l', 'n', value, 'us', reference, lower, upper, 'pass')


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
    verdict = results.judge(golden_report(name), exit_code, LOG)
    assert verdict.passed is (problem is None)
    if problem:
        assert problem in ' '.join(verdict.problems)


def test_another_program_may_have_no_reference(golden_report):
    """Those for any machine are of our own sources."""
    report = golden_report('NoReference')
    assert results.unheld(report) == []
    for case in results.cases(report):
        if not case['fixture']:
            case['implementation'] = 'xhpl'
    assert results.judge(report, 0, LOG).passed
    assert [case['implementation'] for case in results.unheld(report)] == ['xhpl', 'xhpl']


def test_no_report_is_a_failure_whatever_reframe_says():
    assert 'no check was selected' in results.judge(None, 0, LOG).problems[0]
    assert 'exit code 3' in results.judge(None, 3, LOG).problems[0]


def test_a_report_of_builds_only_measured_nothing(golden_report):
    report = golden_report('Passed')
    for run in report['runs']:
        run['testcases'] = [case for case in run['testcases'] if case['fixture']]
    assert 'nothing was measured' in results.judge(report, 0, LOG).problems[0]


def test_a_missed_reference_says_what_disturbed_the_job(golden_report, tmp_path):
    """What the witness saw of each run of the job, where the stage folder is still there."""
    report = golden_report('FailedReference')
    quiet = results.failures(report)[0].reason
    for run, share in (('1', 0.48), ('2', 0.01)):
        disturbance = dict.fromkeys(DISTURBANCES, 0.0) | {'seconds': 2.0, 'foreign_share': share}
        folder = tmp_path / run
        folder.mkdir()
        content = entries([process()], [host() | {'disturbance': disturbance}])
        write(folder / 'witness.json', content)
    results.cases(report)[1]['stagedir'] = str(tmp_path)
    words = "; the node was disturbed: other processes took 48% of the time of the job's CPUs"
    assert results.failures(report)[0].reason == quiet + words


def test_a_report_of_the_witness_that_is_none_says_nothing(golden_report, tmp_path):
    report = golden_report('FailedReference')
    quiet = results.failures(report)[0].reason
    (tmp_path / 'witness.json').write_text('{')
    results.cases(report)[1]['stagedir'] = str(tmp_path)
    assert results.failures(report)[0].reason == quiet


@pytest.mark.parametrize('value', [None, math.nan, math.inf])
def test_a_figure_without_a_value_is_a_failure(golden_report, value):
    report = golden_report('Passed')
    results.cases(report)[-1]['perfvalues']['toy:node:latency'][0] = value
    assert 'without a value for the figure latency' in results.judge(report, 0, LOG).problems[-1]


def test_a_retry_replaces_what_it_retries_and_is_told(golden_report):
    failed, passed = golden_report('FailedSanity'), passing(golden_report('FailedSanity'))
    report = then(failed, passed, only_failed=True)
    assert results.judge(report, 0, LOG).passed
    assert results.failures(report) == []
    assert results.counts(report) == (2, 0, 0)
    assert results.retried(report)[0] == results.Retried(
        'FailedSanity %fabric=shm %layout=packed @toy:node+gnu', 2, 'another fabric was used'
    )
    assert len(results.rows(report)) == 2
    assert not results.judge(report, 1, LOG).passed


def test_a_retry_that_fails_is_no_pass(golden_report):
    runs = [golden_report('FailedSanity') for _ in range(3)]
    report = then(*runs, only_failed=True)
    assert results.judge(report, 0, LOG).problems == ('2 of 2 cases failed',)
    assert results.retried(report) == []


def test_every_repetition_counts(golden_report):
    report = then(
        golden_report('Passed'),
        passing(golden_report('Passed'), 80.0),
        golden_report('Passed'),
        only_failed=False,
    )
    assert results.judge(report, 0, LOG).problems == ('2 of 6 cases failed',)
    assert results.failures(report)[0].case == (
        'Passed %fabric=shm %layout=packed @toy:node+gnu, run 2'
    )
    assert len(results.rows(report)) == 6
    assert results.counts(report) == (4, 2, 0)


def test_a_repetition_without_time_to_end_is_none(golden_report):
    stopped = golden_report('Passed')
    for case in results.cases(stopped):
        case['result'], case['perfvalues'] = 'abort', None
    assert results.judge(stopped, 0, LOG).problems == ('2 of 2 cases failed',)
    report = then(golden_report('Passed'), stopped, only_failed=False)
    assert results.judge(report, 0, LOG).passed


@pytest.mark.parametrize(
    ('value', 'lower', 'upper', 'good'),
    [(80.0, -0.1, 0.1, False), (20.0, -0.1, None, False), (80.0, -0.1, None, True)],
)
def test_a_figure_is_held_to_its_bounds_whatever_reframe_makes_of_it(
    golden_report, value, lower, upper, good
):
    """As it does with strict_check off."""
    report = golden_report('Passed')
    case = results.cases(report)[-1]
    case['perfvalues'] = {'toy:node:latency': [value, 42, lower, upper, 'us', 'fail']}
    if good:
        case['perfvalues']['toy:node:latency'][-1] = 'pass'
    assert results.judge(report, 0, LOG).passed is good
    assert results.rows(report)[-1].verdict == ('pass' if good else 'fail')
    assert [f'latency is {value:.2f} us, but' in f.reason for f in results.failures(report)] == (
        [] if good else [True]
    )


def test_a_failure_that_a_reference_announces_is_none(golden_report):
    report = golden_report('Passed')
    case = results.cases(report)[-1]
    case['result'] = 'xfail'
    case['perfvalues'] = {
        'toy:node:latency': [80.0, 42, -0.1, 0.1, 'us', 'xfail'],
        'toy:node:other': [42.0, 42, -0.1, 0.1, 'us', 'pass'],
    }
    assert results.judge(report, 0, LOG).passed
    assert [row.verdict for row in results.rows(report)] == ['pass', 'xfail', 'pass']
    case['perfvalues']['toy:node:other'][0] = 80.0
    assert not results.judge(report, 0, LOG).passed


@pytest.mark.parametrize(('log', 'said'), [(None, 'is missing'), ([], 'stops'), (['x'], 'stops')])
def test_without_a_whole_log_nobody_knows_what_was_left_out(golden_report, log, said):
    (problem,) = results.judge(golden_report('Passed'), 0, log).problems
    assert problem.startswith(f"ReFrame's log {said}")


def test_what_reframe_only_prints_counts(golden_report):
    printed = ["\x1b[33mWARNING: environment variable 'RFM_CLEAN_STAGEDIR' not a boolean\x1b[0m"]
    assert not results.judge(golden_report('Passed'), 0, LOG, printed).passed
    assert results.judge(golden_report('Passed'), 0, LOG, LOG).passed


def test_many_warnings_are_counted(golden_report):
    words = ('could', 'not', 'check', 'path', 'exist', 'log', 'store', 'save', 'skip', 'test')
    log = [f"WARNING: {word} path '/{number}'" for word in words for number in range(3)]
    problems = results.judge(golden_report('Passed'), 0, [*log, *log, *LOG]).problems
    assert problems[0] == "ReFrame warned: could path '/0' (and 2 more like it)"
    assert len(problems) == results.MOST_WARNINGS + 1
    assert problems[-1] == "2 more kinds of warnings are in ReFrame's log"


def test_sentences_are_one_visible_line(golden_report):
    """Neither a job nor a host name can write a line that looks like ours."""
    report = golden_report('FailedSanity')
    case = results.cases(report)[1]
    case['fail_reason'] = 'sanity error: \x1b[1A\x1b[2J\nPASSED: 70 passed' + 'x' * 1_000_000
    case['system'] = 'n1\u202e\n'
    failure = results.failures(report)[0]
    assert failure.reason.startswith(r'\x1b[1A\x1b[2J PASSED: 70 passedx')
    assert len(failure.reason) <= 2000
    assert failure.case.isprintable()


def test_headlines_are_rows_that_nothing_holds(golden_report):
    report = golden_report('NoReference')
    assert not any(row.headline for row in results.rows(report))
    for case in results.cases(report):
        case['headlines'] = ['latency']
    assert [row.headline for row in results.rows(report)] == [True, True]


def test_rows_hold_figures_and_absolute_bounds(golden_report):
    first, second = results.rows(golden_report('Passed'))
    assert (first.check, first.environment, first.fabric) == ('Passed', 'gnu', 'shm')
    assert (second.fabric, second.layout, second.figure) == ('tcp', 'packed', 'latency')
    assert (first.value, first.unit, first.reference) == (42.5, 'us', 42)
    assert (first.lower, first.upper) == pytest.approx((37.8, 46.2))
    assert first.deviation == pytest.approx(0.5 / 42)
    assert first.room == pytest.approx(3.7 / 42)
    assert first.verdict == 'pass'


@pytest.mark.parametrize(
    ('name', 'verdicts'),
    [
        ('FailedReference', ['fail', 'fail']),
        ('FailedSanity', ['fail', 'fail']),
        ('FailedBuild', ['fail', 'not run', 'not run']),
        ('NoFigures', ['no figure', 'no figure']),
        ('NoReference', ['no bound', 'no bound']),
        ('Skipped', []),
    ],
)
def test_verdicts_of_rows(golden_report, name, verdicts):
    assert [row.verdict for row in results.rows(golden_report(name))] == verdicts


@pytest.mark.parametrize(
    ('args', 'deviation', 'room'),
    [
        ((80, 100, 50, None), -0.2, 0.3),
        ((40, 100, 50, None), -0.6, -0.1),
        ((115, 100, None, 110), 0.15, -0.05),
        ((-12, -10, -11, -9), -0.2, -0.1),
        ((5, 100, None, None), -0.95, None),
        ((5, None, None, None), None, None),
        ((5, 0, -1, 6), None, None),
        ((math.nan, 100, 90, 110), None, None),
    ],
)
def test_deviation_and_room(args, deviation, room):
    assert row(*args).deviation == (deviation if deviation is None else pytest.approx(deviation))
    assert row(*args).room == (room if room is None else pytest.approx(room))


@pytest.mark.parametrize(
    ('reference', 'threshold', 'bound'),
    [(42, -0.1, 37.8), (-100, -0.1, -110), (0, 5, 5), (100, None, None)],
)
def test_bounds_are_reframes(reference, threshold, bound):
    from reframe.utility.sanity import reference_bounds

    found = results._bound(reference, threshold)
    assert found == (bound if bound is None else pytest.approx(bound))
    thresholds = (threshold, None) if (threshold or 0) < 0 else (None, threshold)
    if bound is not None:
        assert found in reference_bounds(reference, *thresholds)


def test_sentences(golden_report):
    reference = results.failures(golden_report('FailedReference'))[0]
    assert reference.reason == (
        'latency is 42.50 us, but at most 22.00 us is allowed (reference 20.00)'
    )
    assert reference.files[1:] == ('rfm_job.out', 'rfm_job.err')
    assert results.failures(golden_report('FailedSanity'))[0].reason == 'another fabric was used'
    assert results.failures(golden_report('NotANumber'))[0].reason == 'latency is nan: not a number'
    assert results.failures(golden_report('Passed')) == []


def test_a_job_that_was_not_started_quotes_the_scheduler(golden_report):
    report = golden_report('FailedSanity')
    results.cases(report)[1]['fail_reason'] = (
        'job blocked error: [jobid=4] job cancelled because it was blocked due to reason: '
        'ReqNodeNotAvail, UnavailableNodes:n4'
    )
    assert results.failures(report)[0].reason == (
        'the scheduler did not start its job: ReqNodeNotAvail, UnavailableNodes:n4'
    )


def test_what_waits_for_a_broken_build_is_one_sentence(golden_report):
    build, waiting = results.failures(golden_report('FailedBuild'))
    assert build.case == 'BrokenBuild @toy:node+gnu'
    assert build.reason == 'build job failed with exit code: 1'
    assert build.files[1:] == ('rfm_build.out', 'rfm_build.err')
    assert (waiting.case, waiting.reason) == (
        '2 case(s)',
        'not run, because BrokenBuild @toy:node+gnu failed',
    )


def test_a_build_failure_quotes_the_compiler(golden_report, tmp_path):
    report = golden_report('FailedBuild')
    (tmp_path / 'rfm_build.err').write_text("toy.c: In function\ntoy.c:1:1: error: no 'x'\n")
    results.cases(report)[0]['stagedir'] = str(tmp_path)
    assert results.failures(report)[0].reason.endswith("exit code: 1: toy.c:1:1: error: no 'x'")


def test_skip_reasons_come_from_reframes_log(golden_report):
    log = (REPORTS / 'Skipped.log').read_text().splitlines()
    (case, reason), _ = results.skipped(golden_report('Skipped'), log)
    assert case == 'Skipped %fabric=shm %layout=packed @toy:node+gnu'
    assert reason == 'this machine has no shm'
    # ReFrame aligns the numbers of a longer run.
    longer = [line.replace('/3) ', '/83) ').replace('] (', '] ( ') for line in log]
    assert longer != log
    assert results.skipped(golden_report('Skipped'), longer)[0] == (case, reason)
    (_, reason), _ = results.skipped(golden_report('Skipped'), [])
    assert reason == "no reason in ReFrame's log"


@pytest.mark.parametrize('text', ['', '{"runs": []', '[]', '{}'])
def test_a_broken_report_is_named(tmp_path, text):
    path = tmp_path / 'report.json'
    path.write_text(text)
    with pytest.raises(AssayError, match=r'report\.json: not a report'):
        results.read_report(path)


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (None, '-'),
        (0, '0'),
        (42.5, '42.50'),
        (28221.3, '28221'),
        (0.02841, '0.02841'),
        (999.96, '1000.0'),
        (1.5e-9, '1.500e-09'),
        (math.nan, 'nan'),
        (-0.5, '-0.5000'),
    ],
)
def test_numbers_keep_four_digits(value, text):
    assert results.number(value) == text


def test_a_check_that_reframe_leaves_out_fails_the_run(golden_report):
    log = ["WARNING: skipping test file 'ring.py': name conflict error: test 'Ring_00'"]
    verdict = results.judge(golden_report('Passed'), 0, [*LOG, *log])
    assert verdict.problems == (
        "ReFrame warned: skipping test file 'ring.py': name conflict error: test 'Ring_00'",
    )


def test_a_variable_of_a_class_that_no_case_is_of_fails_the_run(golden_report):
    report = golden_report('Passed')
    right = ['Passed.printed=x.y', 'Build.source=x', 'printed=a.b']
    assert results.misaddressed(report, right, ['Passed.printed=x,y', 'layout=a.b']) == []
    wrong = ['Pased.printed=x', 'build.source=x', *right]
    assert results.misaddressed(report, wrong, ['Build.source=x,y']) == [
        "no selected check is 'Pased', of which -S sets 'printed'",
        "no selected check is 'build', of which -S sets 'source'",
        "no selected check is 'Build', of which -P sets 'source'",
    ]


def test_a_repetition_of_what_all_failed_is_no_retry(golden_report):
    failed, passed = golden_report('FailedSanity'), passing(golden_report('FailedSanity'))
    for one in (failed, passed):  # and no fixture beside
        for run in one['runs']:
            run['testcases'] = [case for case in run['testcases'] if not case['fixture']]
    report = then(failed, passed, only_failed=False)
    assert results.judge(report, 0, LOG).problems == ('2 of 4 cases failed',)
    assert results.retried(report) == []
