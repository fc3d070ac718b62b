"""The cases of a run: which attempts count, and that a report is one."""

import pytest

from assay import AssayError
from assay.results.cases import cases, read_report
from assay.results.failures import Retried, failures, retried
from assay.results.rows import rows
from assay.results.verdict import counts, judge
from reports import LOG, passing, then


def test_a_retry_replaces_what_it_retries_and_is_told(golden_report):
    failed, passed = golden_report('FailedSanity'), passing(golden_report('FailedSanity'))
    report = then(failed, passed, only_failed=True)
    assert judge(report, 0, LOG).passed
    assert failures(report) == []
    assert counts(report) == (2, 0, 0, 0)
    assert retried(report)[0] == Retried(
        'FailedSanity %fabric=shm %layout=packed @toy:node+gnu', 2, 'another fabric was used'
    )
    assert len(rows(report)) == 2
    assert not judge(report, 1, LOG).passed


def test_a_retry_that_fails_is_no_pass(golden_report):
    runs = [golden_report('FailedSanity') for _ in range(3)]
    report = then(*runs, only_failed=True)
    assert judge(report, 0, LOG).problems == ('2 of 2 cases failed',)
    assert retried(report) == []


def test_every_repetition_counts(golden_report):
    report = then(
        golden_report('Passed'),
        passing(golden_report('Passed'), 80.0),
        golden_report('Passed'),
        only_failed=False,
    )
    assert judge(report, 0, LOG).problems == ('2 of 6 cases failed',)
    assert failures(report)[0].case == ('Passed %fabric=shm %layout=packed @toy:node+gnu, run 2')
    assert len(rows(report)) == 6
    assert counts(report) == (4, 2, 0, 0)


def test_a_repetition_without_time_to_end_is_none(golden_report):
    stopped = golden_report('Passed')
    for case in cases(stopped):
        case['result'], case['perfvalues'] = 'abort', None
    assert judge(stopped, 0, LOG).problems == ('2 of 2 cases failed',)
    report = then(golden_report('Passed'), stopped, only_failed=False)
    assert judge(report, 0, LOG).passed


@pytest.mark.parametrize('text', ['', '{"runs": []', '[]', '{}'])
def test_a_broken_report_is_named(tmp_path, text):
    path = tmp_path / 'report.json'
    path.write_text(text)
    with pytest.raises(AssayError, match=r'report\.json: not a report'):
        read_report(path)


def test_a_repetition_of_what_all_failed_is_no_retry(golden_report):
    failed, passed = golden_report('FailedSanity'), passing(golden_report('FailedSanity'))
    for one in (failed, passed):  # and no fixture beside
        for run in one['runs']:
            run['testcases'] = [case for case in run['testcases'] if not case['fixture']]
    report = then(failed, passed, only_failed=False)
    assert judge(report, 0, LOG).problems == ('2 of 4 cases failed',)
    assert retried(report) == []
