"""What ReFrame says beside its report. The lines are those of ReFrame 4.10.4."""

import pytest

from assay.running import reframe_log

END = (
    '[ \x1b[32m PASSED \x1b[0m ] Ran 3/3 test case(s) from 3 check(s) '
    '(0 failure(s), 0 expected failure(s), 0 skipped, 0 aborted)'
)


def complaints(*lines, checks=('Passed',), command='reframe -r'):
    lines = reframe_log.without_colours('\n'.join(lines).splitlines())
    return reframe_log.complaints(lines, set(checks), {'Build'}, command)


@pytest.mark.parametrize('colours', [True, False])
@pytest.mark.parametrize(
    ('warning', 'said'),
    [
        (
            "skipping fixture 'F_1e094380': value error: cannot be made:\n"
            "| /tmp/fix.py:7\n|     def boom(self): raise ValueError('cannot be made')\n",
            "skipping fixture 'F_1e094380': value error: cannot be made: | /tmp/fix.py:7",
        ),
        (
            'skipping all dependent test cases\n  - Dependent @generic:node+openmpi\n',
            'skipping all dependent test cases - Dependent @generic:node+openmpi',
        ),
        ("skipping test file 'ring.py': name conflict error: test 'Ring'", 'name conflict'),
        ("check path '/tmp/missing.py' does not exist", "check path '/tmp/missing.py' does not"),
        ("invalid test variable assignment: 'noequals'; skipping", 'invalid test variable'),
        (
            "reference unit ('generic:node:latency') for the performance variable 'latency' does "
            "not match the unit specified in the performance function ('us'): 'us' will be used",
            'reference unit',
        ),
        (
            "failed to store results in the database: [Errno 2] No such file or directory: '/p'",
            'failed to store results',
        ),
        (
            'could not log performance data for Good @generic:node+openmpi: logging failed: '
            "[Errno 30] Read-only file system: '/p'",
            'could not log performance data',
        ),
        ("redefinition of system 'lab': already defined in '/a.py'", 'redefinition'),
        # Words of a job cannot pass a warning off as another.
        (
            "skipping evaluation of performance variable 'x': RFM_X is deprecated; please use Y",
            'skipping evaluation',
        ),
    ],
)
def test_a_warning_fails_a_run(warning, said, colours):
    line = f'\x1b[33mWARNING: {warning}\x1b[0m' if colours else f'WARNING: {warning}'
    (sentence,) = complaints('[==========] Running 1 check(s)', line, END)
    assert sentence.startswith('ReFrame warned: ')
    assert said in sentence
    assert complaints(line, END, line) == [sentence]


@pytest.mark.parametrize(
    'warning',
    [
        'RFM_AUTODETECT_METHOD is deprecated; please use RFM_AUTODETECT_METHODS instead',
        "could not save topology file: '/home/x/topo.json': [Errno 30] Read-only file system",
        'error while evaluating expression `size=="cache"` for test case `Ring %scale=1_node '
        "@generic:node+mpich`: name 'size' is not defined",
        'run session stopped: maximum session duration exceeded',
    ],
)
def test_known_warnings_are_harmless(warning):
    assert complaints(f'\x1b[33mWARNING: {warning}\x1b[0m', END) == []


def test_an_error_fails_a_run():
    (sentence,) = complaints('\x1b[31mERROR: run session stopped: job error\x1b[0m')
    assert sentence == 'ReFrame reported an error: run session stopped: job error'


def test_a_record_that_could_not_be_written_fails_a_run():
    printed = [
        '--- Logging error ---',
        'Traceback (most recent call last):',
        '  File "/usr/lib/python3.11/logging/__init__.py", line 1094, in flush',
        'OSError: [Errno 28] No space left on device',
        'Call stack:',
    ]
    assert complaints(*printed, *printed) == [
        'ReFrame could not write a record: OSError: [Errno 28] No space left on device'
    ]
    assert not reframe_log.is_recorded(printed)
    assert reframe_log.is_recorded([END])


UNSET = "WARNING: test '{}': the following variables were not set: 'binry', 'printed'"
IGNORED = (
    "WARNING: 'depth' is neither a variable nor a parameter of test '{} %fabric=shm'; "
    'ignoring parameterization'
)


def test_an_option_that_sets_what_no_check_has():
    both = [UNSET.format('Passed'), UNSET.format('Build').replace(", 'printed'", '')]
    (sentence,) = complaints(*both)
    assert "'binry'" in sentence
    # ReFrame does not say it of fixtures.
    (sentence,) = complaints(IGNORED.format('Passed'))
    assert "'depth'" in sentence


def test_an_option_that_some_checks_have_is_for_them():
    assert complaints(UNSET.format('Build')) == []
    assert complaints(IGNORED.format('Ring'), checks=['Ring', 'Halo']) == []


def test_what_some_checks_lack_is_not_shown():
    assert not reframe_log.is_complaint(UNSET.format('Build'), of_one=False)
    assert reframe_log.is_complaint("WARNING: skipping test 'Passed': no", of_one=False)
    assert reframe_log.is_complaint('| and why', of_one=True)


def test_an_option_for_a_check_is_for_that_check():
    command = "reframe -r -S Passed.binry=1 -P 'Ring.depth=1,2'"
    (sentence,) = complaints(UNSET.format('Passed'), command=command)
    assert sentence == "Passed does not have the variable 'binry' that -S sets"
    (sentence,) = complaints(IGNORED.format('Ring'), checks=['Ring', 'Halo'], command=command)
    assert 'Ring does not have' in sentence


@pytest.mark.parametrize('word', ['PASSED', 'FAILED', 'ABORTED'])
def test_the_end_of_a_log(word):
    log = reframe_log.without_colours([END.replace('PASSED', word)])
    assert reframe_log.has_end(log)
    assert not reframe_log.has_end([f'x{log[0]}', log[0][:20]])
