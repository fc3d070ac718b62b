"""Why a case failed, in a sentence."""

from pathlib import Path

import pytest

from assay.results.failures import failure_reason, failures, skipped_cases
from reports import cases, run_of

REPORTS = Path(__file__).parents[1] / 'golden' / 'reports'


def test_a_missed_reference_says_what_disturbed_the_job(golden_report):
    report = golden_report('FailedReference')
    quiet = failures(run_of(report))[0].reason
    words = "the node was disturbed: other processes took 48% of the time of the job's CPUs"
    cases(report)[1]['disturbances'] = [words]
    assert failures(run_of(report))[0].reason == f'{quiet}; {words}'


def test_a_case_whose_build_failed(golden_report):
    report = golden_report('FailedSanity')
    cases(report)[1].update(result='fail_deps', fail_phase=None, fail_reason=None)
    words = 'it did not run, because what it depends on failed'
    assert failure_reason(run_of(report).counted[1]) == words


def test_sentences_are_one_visible_line(golden_report):
    """Neither a job nor a host name can write a line that looks like ours."""
    report = golden_report('FailedSanity')
    case = cases(report)[1]
    case['fail_reason'] = 'sanity error: \x1b[1A\x1b[2J\nPASSED: 70 passed' + 'x' * 1_000_000
    case['system'] = 'n1\u202e\n'
    failure = failures(run_of(report))[0]
    assert failure.reason.startswith(r'\x1b[1A\x1b[2J PASSED: 70 passedx')
    assert len(failure.reason) <= 2000
    assert failure.case.isprintable()


def test_sentences(golden_report):
    reference = failures(run_of(golden_report('FailedReference')))[0]
    assert reference.reason == (
        'latency is 42.50 us, but at most 22.00 us is allowed (reference 20.00)'
    )
    assert reference.files[1:] == ('rfm_job.out', 'rfm_job.err')
    assert failures(run_of(golden_report('FailedSanity')))[0].reason == 'another fabric was used'
    assert failures(run_of(golden_report('NotANumber')))[0].reason == 'latency is nan: not a number'
    assert failures(run_of(golden_report('Passed'))) == []


def test_a_job_that_was_not_started_quotes_the_scheduler(golden_report):
    report = golden_report('FailedSanity')
    cases(report)[1]['fail_reason'] = (
        'job blocked error: [jobid=4] job cancelled because it was blocked due to reason: '
        'ReqNodeNotAvail, UnavailableNodes:n4'
    )
    assert failures(run_of(report))[0].reason == (
        'the scheduler did not start its job: ReqNodeNotAvail, UnavailableNodes:n4'
    )


def test_a_job_that_was_refused_quotes_the_scheduler(golden_report):
    report = golden_report('FailedSanity')
    cases(report)[1]['fail_reason'] = (
        "spawned process error: command 'sbatch rfm_job.sh' failed with exit code 1:\n"
        '--- stdout ---\n--- stdout ---\n--- stderr ---\n'
        'sbatch: error: Munge encode failed: Failed to access "munge.socket"\n'
        'sbatch: error: Batch job submission failed: Protocol authentication error\n\n'
        '--- stderr ---'
    )
    assert failures(run_of(report))[0].reason == (
        'the scheduler refused its job: Munge encode failed: Failed to access '
        '"munge.socket"; Batch job submission failed: Protocol authentication error'
    )


def test_what_waits_for_a_broken_build_is_one_sentence(golden_report):
    build, waiting = failures(run_of(golden_report('FailedBuild')))
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
    cases(report)[0]['stagedir'] = str(tmp_path)
    assert failures(run_of(report))[0].reason.endswith("exit code: 1: toy.c:1:1: error: no 'x'")


def test_skip_reasons_come_from_reframes_log(golden_report):
    log = (REPORTS / 'Skipped.log').read_text().splitlines()
    (case, reason), _ = skipped_cases(run_of(golden_report('Skipped')), log)
    assert case == 'Skipped %fabric=shm %layout=packed @toy:node+gnu'
    assert reason == 'this machine has no shm'
    # ReFrame aligns the numbers of a longer run.
    longer = [line.replace('/3) ', '/83) ').replace('] (', '] ( ') for line in log]
    assert longer != log
    assert skipped_cases(run_of(golden_report('Skipped')), longer)[0] == (case, reason)
    (_, reason), _ = skipped_cases(run_of(golden_report('Skipped')), [])
    assert reason == "no reason in ReFrame's log"


@pytest.mark.parametrize('result', ['abort', '<unknown>'])
def test_all_that_was_stopped_has_one_sentence(golden_report, result):
    """By a signal, or by an error in ReFrame's session: then it knows of no end."""
    report = golden_report('FailedSanity')
    *_, first, last = cases(report)
    for case in (first, last):
        case |= {'result': result, 'perfvalues': {}, 'fail_phase': None, 'fail_reason': None}
    assert [(one.case, one.reason) for one in failures(run_of(report))] == [
        ('2 case(s)', 'not finished, because the run was stopped')
    ]
