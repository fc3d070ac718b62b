"""JUnit's XML of a run, by the rules of the junit-10.xsd of Jenkins' xUnit plugin."""

import re
from xml.etree import ElementTree

import pytest

from assay import AssayError
from assay.report import junit
from assay.results.verdict import judge_run
from reports import LOG as END
from reports import NO_EVIDENCE, cases, disturbed, passing, run_of, then

SKIP = '[    SKIP ] (2/3) Skipped %fabric=shm %layout=packed /e88e4d30 @toy:node+gnu [no shm]'
LOG = [*END, SKIP]

# What the schema asks for: the attributes of each element, those it must have, and what is in it.
ALLOWED = {
    'testsuites': ({'name', 'time', 'tests', 'failures', 'errors'}, set(), {'testsuite'}),
    'testsuite': (
        {'name', 'tests', 'failures', 'errors', 'time', 'skipped', 'timestamp', 'hostname'},
        {'name', 'tests', 'failures', 'errors'},
        {'testcase'},
    ),
    'testcase': (
        {'name', 'time', 'classname'},
        {'name'},
        {'skipped', 'error', 'failure', 'flakyFailure', 'system-out'},
    ),
    'skipped': ({'type', 'message'}, set(), set()),
    'error': ({'type', 'message'}, set(), set()),
    'failure': ({'type', 'message'}, set(), set()),
    'flakyFailure': ({'type', 'message'}, {'type'}, set()),
    'system-out': (set(), set(), set()),
}


def written(tmp_path, report, exit_code=0, log=LOG):
    run = run_of(report) if report else None
    verdict = judge_run(run, exit_code, log)
    junit.write_junit(tmp_path / 'new' / 'junit.xml', run, verdict, log or [], 1234.5678)
    root = ElementTree.parse(tmp_path / 'new' / 'junit.xml').getroot()
    assert root.tag == 'testsuites'
    for element in root.iter():
        attributes, needed, children = ALLOWED[element.tag]
        assert needed <= set(element.attrib) <= attributes
        assert {child.tag for child in element} <= children
    for element in (root, *root):
        assert re.fullmatch(r'\d+\.\d{3}', element.get('time'))
    bad = int(root[0].get('failures')) + int(root[0].get('errors'))
    assert bool(bad) is not verdict.passed
    for name in ('failure', 'error', 'skipped'):
        count = len(root.findall(f'.//testcase/{name}/..'))
        assert root[0].get(name.rstrip('s') + 's' if name != 'skipped' else name) == str(count)
    assert int(root[0].get('tests')) == len(root[0])
    return root


def message(root, kind, number=0):
    return root.findall(f'.//{kind}')[number].get('message')


def test_a_good_run(tmp_path, golden_report):
    root = written(tmp_path, golden_report('Passed'))
    names = [(one.get('classname'), one.get('name')) for one in root.iter('testcase')]
    assert names == [
        ('Passed', 'Passed %fabric=shm %layout=packed @toy:node+gnu'),
        ('Passed', 'Passed %fabric=tcp %layout=packed @toy:node+gnu'),
        ('assay', 'the run as a whole'),
    ]
    assert float(root[0][0].get('time')) > 0
    assert root[0].get('timestamp')[:2] == '20'


@pytest.mark.parametrize(
    ('name', 'failures', 'sentence'),
    [
        ('FailedReference', 2, 'latency is 42.50 us, but at most 22.00 us is allowed'),
        ('FailedSanity', 2, 'another fabric was used'),
        ('FailedBuild', 3, 'build job failed with exit code: 1'),
        ('NotANumber', 2, 'latency is nan: not a number'),
        # ReFrame's own file tells of no failure here.
        ('NoFigures', 2, 'passed without any figure: nothing was measured'),
        ('NoReference', 2, 'the figures were held to nothing'),
    ],
)
def test_a_failure_is_our_sentence(tmp_path, golden_report, name, failures, sentence):
    root = written(tmp_path, golden_report(name), exit_code=1)
    assert root[0].get('failures') == str(failures)
    assert sentence in message(root, 'failure')
    assert '2 of 2 cases failed' in message(root, 'error')


def test_what_was_left_in_the_environment_is_output_of_the_run(tmp_path, golden_report):
    report = golden_report('Passed')
    for case in cases(report):
        case['leftovers'] = ['UCX_TLS=rc']
    (told,) = written(tmp_path, report).findall('.//system-out')
    assert told.text.endswith(': UCX_TLS=rc (2 of 2 cases)')


def test_what_waited_for_a_build_says_so(tmp_path, golden_report):
    root = written(tmp_path, golden_report('FailedBuild'), exit_code=1)
    assert message(root, 'failure', 2) == 'not run, because BrokenBuild @toy:node+gnu failed'


def test_a_skipped_case_is_skipped(tmp_path, golden_report):
    root = written(tmp_path, golden_report('Skipped'))
    assert root[0].get('skipped') == '2'
    assert message(root, 'skipped') == 'no shm'


@pytest.mark.parametrize(
    ('name', 'log', 'sentence'),
    [
        (None, LOG, 'no check was selected'),
        ('Passed', None, 'log is missing'),
        ('Passed', [], 'stops before its end'),
        ('Passed', [*LOG, "WARNING: check path '/a' does not exist"], "'/a' does not exist"),
        ('Passed', [*LOG, 'WARNING: failed to store results in the database: full'], 'full'),
    ],
)
def test_what_is_wrong_with_no_case_is_wrong_with_the_run(
    tmp_path, golden_report, name, log, sentence
):
    root = written(tmp_path, golden_report(name) if name else None, log=log)
    assert root[0].get('failures') == '0'
    assert sentence in message(root, 'error')


def test_a_case_that_needed_a_second_attempt_is_flaky(tmp_path, golden_report):
    retry = passing(golden_report('FailedSanity'))
    report = then(golden_report('FailedSanity'), retry, only_failed=True)
    root = written(tmp_path, report)
    assert message(root, 'flakyFailure') == 'another fabric was used'


def test_a_disturbed_case_has_no_result_and_the_run_is_not_good(tmp_path, golden_report):
    root = written(tmp_path, disturbed(golden_report('FailedReference')), exit_code=1)
    assert (root[0].get('failures'), root[0].get('errors'), root[0].get('skipped')) == tuple('012')
    assert message(root, 'skipped') == f'disturbed: {NO_EVIDENCE}'
    error = root.find('.//error')
    assert error.get('type') == 'disturbed'
    assert error.get('message') == '2 case(s) were disturbed by others: nothing is known of them'


def test_a_case_that_was_measured_again_is_flaky(tmp_path, golden_report):
    report = golden_report('Passed')
    cases(report)[-1]['replaced'] = [NO_EVIDENCE]
    root = written(tmp_path, report)
    assert message(root, 'flakyFailure') == NO_EVIDENCE
    assert root.find('.//flakyFailure').get('type') == 'disturbed'


def test_no_character_that_xml_forbids_gets_in(tmp_path, golden_report):
    hostile = 'é\x00\x1b[1A\x0b\ud800\ufffe\x85]]><failure message="x"/>\n&'
    report = golden_report('FailedSanity')
    report['session_info']['hostname'] = hostile
    for case in cases(report):
        case['fail_reason'] = case['stagedir'] = hostile
        case['system'] = hostile.replace('\ud800', '')
    log = [*LOG, f'WARNING: {hostile}']
    root = written(tmp_path, report, log=log)
    assert message(root, 'failure').startswith('é\\x00\\x1b[1A \\ud800\\ufffe ]]><failure')


def test_a_file_that_cannot_be_written(golden_report):
    run = run_of(golden_report('Passed'))
    verdict = judge_run(run, 0, LOG)
    with pytest.raises(AssayError, match='cannot be written'):
        junit.write_junit(junit.Path('/proc/nothing/junit.xml'), run, verdict, LOG, 1.0)
