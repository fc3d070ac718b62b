"""The cases of a run: which attempts count, and that a report is one."""

import pytest

from assay import AssayError
from assay.results.failures import Retried, disturbed_cases, failures, retried_cases
from assay.results.reframe_report import read_reframe_report
from assay.results.rows import rows
from assay.results.verdict import counts, judge_run
from reports import LOG, NO_EVIDENCE, cases, disturbed, passing, run_of, then


def test_a_retry_replaces_what_it_retries_and_is_told(golden_report):
    failed, passed = golden_report('FailedSanity'), passing(golden_report('FailedSanity'))
    report = then(failed, passed, only_failed=True)
    assert judge_run(run_of(report), 0, LOG).passed
    assert failures(run_of(report)) == []
    assert counts(run_of(report)) == (2, 0, 0, 0)
    assert retried_cases(run_of(report))[0] == Retried(
        'FailedSanity %fabric=shm %layout=packed @toy:node+gnu', 2, 'another fabric was used'
    )
    assert len(rows(run_of(report))) == 2
    assert not judge_run(run_of(report), 1, LOG).passed


def test_a_retry_that_fails_is_no_pass(golden_report):
    runs = [golden_report('FailedSanity') for _ in range(3)]
    report = then(*runs, only_failed=True)
    assert judge_run(run_of(report), 0, LOG).problems == ('2 of 2 cases failed',)
    assert retried_cases(run_of(report)) == []


def test_every_repetition_counts(golden_report):
    report = then(
        golden_report('Passed'),
        passing(golden_report('Passed'), 80.0),
        golden_report('Passed'),
        only_failed=False,
    )
    assert judge_run(run_of(report), 0, LOG).problems == ('2 of 6 cases failed',)
    assert failures(run_of(report))[0].case == (
        'Passed %fabric=shm %layout=packed @toy:node+gnu, run 2'
    )
    assert len(rows(run_of(report))) == 6
    assert counts(run_of(report)) == (4, 2, 0, 0)


def test_a_repetition_without_time_to_end_is_none(golden_report):
    stopped = golden_report('Passed')
    for case in cases(stopped):
        case['result'], case['perfvalues'] = 'abort', None
    assert judge_run(run_of(stopped), 0, LOG).problems == ('2 of 2 cases failed',)
    report = then(golden_report('Passed'), stopped, only_failed=False)
    report['session_info']['cmdline'] += ' --duration=1m'
    assert judge_run(run_of(report), 0, LOG).passed


def test_a_failure_stays_one_though_its_retry_was_disturbed(golden_report):
    """And a retry of what was disturbed counts as any does."""
    missed, no_evidence = (
        golden_report('FailedReference'),
        disturbed(golden_report('FailedReference')),
    )
    report = then(missed, no_evidence, only_failed=True)
    assert judge_run(run_of(report), 1, LOG).problems == ('2 of 2 cases failed',)
    assert failures(run_of(report))[0].reason.startswith(
        'latency is 42.50 us, but at most 22.00 us is'
    )
    assert {row.verdict for row in rows(run_of(report))} == {'fail'}
    report = then(
        disturbed(golden_report('FailedReference')),
        passing(golden_report('FailedReference')),
        only_failed=True,
    )
    assert judge_run(run_of(report), 0, LOG).passed
    assert retried_cases(run_of(report))[0].reason == NO_EVIDENCE
    report = then(
        disturbed(golden_report('FailedReference')),
        golden_report('FailedReference'),
        only_failed=True,
    )
    assert judge_run(run_of(report), 1, LOG).word == 'FAILED'


def test_each_repetition_counts_beside_a_disturbed_one(golden_report):
    report = then(
        disturbed(golden_report('FailedReference')),
        golden_report('FailedReference'),
        only_failed=False,
    )
    assert judge_run(run_of(report), 1, LOG).problems == ('2 of 4 cases failed',)
    assert counts(run_of(report)) == (0, 2, 2, 0)


def test_what_was_measured_again_is_told(golden_report):
    report = golden_report('Passed')
    cases(report)[-1]['replaced'] = [NO_EVIDENCE, 'again']
    assert [(one.attempts, one.reason) for one in retried_cases(run_of(report))] == [
        (3, NO_EVIDENCE)
    ]
    report = disturbed(golden_report('FailedReference'))
    cases(report)[-1]['replaced'] = ['first']
    told = disturbed_cases(run_of(report))
    assert [one.reason for one in told] == [NO_EVIDENCE, f'{NO_EVIDENCE}; measured 2 times']
    assert told[0].files[1:] == ('rfm_job.out', 'rfm_job.err')


@pytest.mark.parametrize('text', ['', '{"runs": []', '[]', '{}'])
def test_a_broken_report_is_named(tmp_path, text):
    path = tmp_path / 'report.json'
    path.write_text(text)
    with pytest.raises(AssayError, match=r'report\.json: not a report'):
        read_reframe_report(path)


def test_a_repetition_of_what_all_failed_is_no_retry(golden_report):
    failed, passed = golden_report('FailedSanity'), passing(golden_report('FailedSanity'))
    for one in (failed, passed):  # and no fixture beside
        for run in one['runs']:
            run['testcases'] = [case for case in run['testcases'] if not case['fixture']]
    report = then(failed, passed, only_failed=False)
    assert judge_run(run_of(report), 0, LOG).problems == ('2 of 4 cases failed',)
    assert retried_cases(run_of(report)) == []


def test_a_label_is_no_option(golden_report):
    """One that holds the name of an option makes no repetition a retry that replaces a failure."""
    report = golden_report('FailedReference')
    report['session_info']['cmdline'] += " '--session-extras=label=x --max-retries y'"
    report = then(report, passing(golden_report('FailedReference')), only_failed=False)
    for run in report['runs']:
        run['testcases'] = [case for case in run['testcases'] if not case['fixture']]
    assert len(run_of(report).counted) == len(cases(report)) == 4


#: What is done to the second case of a report, and what is said of it.
MALFORMED = {
    'display_name is missing': lambda case: case.pop('display_name'),
    'fixture is neither true nor false': lambda case: case.update(fixture='no'),
    'result is no text': lambda case: case.update(result=['pass']),
    'perfvalues is missing': lambda case: case.pop('perfvalues'),
    'perfvalues is no object': lambda case: case.update(perfvalues=[1]),
    r'perfvalues\.a:b:c: it has not six values': lambda case: case.update(perfvalues={'a:b:c': []}),
    r'perfvalues\.a:b:c: it is no list': lambda case: case.update(perfvalues={'a:b:c': 'figure'}),
    r'perfvalues\.a:b:c: there is no number': lambda case: case.update(
        perfvalues={'a:b:c': ['1', 0, None, None, 'us', 'pass']}
    ),
    'replaced has something that is no text': lambda case: case.update(replaced=[1]),
    'dependencies_actual is no list': lambda case: case.update(dependencies_actual=[5]),
    'num_tasks is no whole number': lambda case: case.update(num_tasks='four'),
    'job_completion_time_unix is no time': lambda case: case.update(job_completion_time_unix='now'),
    'ran_variables or ran_settings: No closing': lambda case: case.update(ran_variables="A='"),
}


@pytest.mark.parametrize('said', MALFORMED)
def test_a_malformed_field_is_named_with_its_case(golden_report, said):
    report = golden_report('Passed')
    MALFORMED[said](report['runs'][0]['testcases'][1])
    with pytest.raises(AssayError, match=rf'writes it: runs\[0\]\.testcases\[1\]: {said}'):
        run_of(report)


def test_what_no_check_has_set_is_not_there(golden_report):
    report = golden_report('Passed')
    unset = ('fabric', 'executable', 'replaced', 'num_tasks', 'headlines', 'no_evidence', 'ran_mpi')
    for name in unset:
        cases(report)[1][name] = '<undefined>'
    case = run_of(report).cases[1]
    assert (case.fabric, case.replaced, case.no_evidence, case.job.ranks) == ('', (), '', None)
    assert case.fact('ran_mpi') == ''
