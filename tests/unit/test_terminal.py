"""What a run ends with on the terminal."""

import re

import pytest

from assay.report import terminal
from assay.results.verdict import judge_run
from assay.witness.disturbance import MOVED
from reports import LOG, NO_EVIDENCE, cases, disturbed, own_cases, passing, run_of, then


@pytest.mark.parametrize('width', [80, 120, 160])
def test_figures_are_never_cut(monkeypatch, capsys, golden_report, width):
    monkeypatch.setenv('COLUMNS', str(width))
    report = golden_report('FailedReference')
    for case in cases(report):
        for values in case['perfvalues'].values():
            values[0] = 123456.789
    terminal.show_run(run_of(report), LOG, everything=True)
    shown = capsys.readouterr().out
    assert shown.count('123457 us') == 4  # two rows, two sentences
    assert len(re.findall(r' 20\.00 +at most 22\.00 +fail *$', shown, re.MULTILINE)) == 2
    assert 'at most 22.00 us is allowed' in shown
    if width == 80:
        assert max(map(len, shown.partition('failed:')[0].splitlines())) <= 80


def test_the_last_line_counts(capsys, golden_report):
    report = golden_report('FailedBuild')
    terminal.show_verdict(run_of(report), judge_run(run_of(report), 1, LOG), 12.3)
    shown = capsys.readouterr()
    assert shown.out == 'FAILED: 0 passed, 2 failed, 0 skipped of 2 cases in 12 s\n'
    assert shown.err == 'assay: 2 of 2 cases failed\n'
    report = golden_report('Passed')
    terminal.show_verdict(run_of(report), judge_run(run_of(report), 0, LOG), 3)
    assert capsys.readouterr().out == 'PASSED: 2 passed, 0 failed, 0 skipped of 2 cases in 3 s\n'
    case = own_cases(report)[0]
    case |= {'result': 'skip', 'jobid': '7+2'}
    terminal.show_verdict(run_of(report), judge_run(run_of(report), 0, LOG), 3)
    assert capsys.readouterr().out == (
        'PASSED: 1 passed, 0 failed, 0 skipped of 1 cases in 3 s; '
        '1 of 2 cases did not run before the end of the job\n'
    )


def test_what_was_left_in_the_environment_is_told_once(capsys, golden_report):
    report = golden_report('Passed')
    for case in cases(report):
        case['leftovers'] = ['UCX_TLS=rc']
    terminal.show_run(run_of(report), LOG)
    said = [line for line in capsys.readouterr().out.splitlines() if 'UCX_TLS' in line]
    assert len(said) == 1 and said[0].endswith(': UCX_TLS=rc (2 of 2 cases)')


def test_disturbed_cases_are_counted_apart(capsys, golden_report):
    report = disturbed(golden_report('FailedReference'), 1)
    terminal.show_run(run_of(report), LOG)
    terminal.show_verdict(run_of(report), judge_run(run_of(report), 1, LOG), 3)
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == 'FAILED: 0 passed, 1 failed, 1 disturbed, 0 skipped of 2 cases in 3 s'
    case = 'FailedReference %fabric=tcp %layout=packed @toy:node+gnu'
    assert f'disturbed: {case}: {NO_EVIDENCE}' in shown
    assert not any(line.startswith(f'failed: {case}') for line in shown)
    report = disturbed(golden_report('FailedReference'))
    terminal.show_verdict(run_of(report), judge_run(run_of(report), 1, LOG), 3)
    shown = capsys.readouterr()
    assert shown.out == (
        'DISTURBED: 0 passed, 0 failed, 2 disturbed, 0 skipped of 2 cases in 3 s\n'
    )
    assert shown.err == (
        'assay: 2 case(s) were disturbed by others, so nothing is known of them: run them again '
        'when the nodes are quiet\n'
    )


def test_what_a_job_printed_obeys_no_terminal(monkeypatch, capsys, golden_report):
    hostile = '\x1b[1A\x1b[2J\rPASSED: 70 passed\nPASSED: 70 passed\u202e'
    report = golden_report('FailedSanity')
    for case in cases(report):
        case['fail_reason'] = f'sanity error: {hostile}'
        case['environ'] = case['stagedir'] = case['fabric'] = case['implementation'] = hostile
        case['perfvalues'] = {f'toy:node:{hostile}': [42.5, 42, -0.1, 0.1, hostile, 'pass']}
    terminal.show_run(run_of(report), LOG)
    shown = capsys.readouterr().out
    assert shown.replace('\n', '').isprintable()
    assert not any(line.startswith('PASSED') for line in shown.splitlines())
    assert r'\x1b[1A\x1b[2J PASSED: 70 passed PASSED' in shown


def test_a_line_counts_the_figures_that_nothing_holds(capsys, golden_report):
    report = golden_report('NoReference')
    terminal.show_run(run_of(report), LOG)
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == '2 of 2 figures have no reference; see `assay report`, --all, perflogs'
    terminal.show_run(run_of(report), LOG, ['--- Logging error ---'])
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == '2 of 2 figures have no reference; not all could be recorded'
    terminal.show_run(run_of(report), LOG, everything=True)
    assert capsys.readouterr().out.count(' 42.50 us ') == 2


def test_what_came_nearest_to_failing_is_told_where_nothing_failed(capsys, golden_report):
    terminal.show_run(run_of(passing(golden_report('Passed'))), LOG)
    shown = capsys.readouterr().out.splitlines()
    # Of one check one figure, as all would say the same.
    assert [one for one in shown if one.startswith('least margin')] == [
        'least margin: Passed gnu shm: latency 42.50 us (37.80 to 46.20)'
    ]
    terminal.show_run(run_of(golden_report('FailedReference')), LOG)
    assert 'least margin' not in capsys.readouterr().out


def test_cases_that_were_skipped_for_the_same_reason_are_counted(capsys, golden_report):
    report = golden_report('Skipped')
    log = [
        *LOG,
        *(
            f'[     SKIP ] ( {n}/2) Skipped %fabric={fabric} %layout=packed /1234abcd '
            f'@toy:node+gnu [no room]'
            for n, fabric in enumerate(('shm', 'tcp'), 1)
        ),
    ]
    terminal.show_run(run_of(report), log)
    shown = [one for one in capsys.readouterr().out.splitlines() if 'skipped' in one]
    assert shown == ['skipped: 2 cases: no room']
    terminal.show_run(run_of(report), log, everything=True)
    shown = [one for one in capsys.readouterr().out.splitlines() if 'skipped' in one]
    assert len(shown) == 2 and all(one.endswith('@toy:node+gnu: no room') for one in shown)


def test_of_many_failures_the_rest_is_counted(capsys, golden_report):
    report = golden_report('FailedSanity')
    (run,) = report['runs']
    last = run['testcases'][-1]
    run['testcases'] = [
        last | {'display_name': f'FailedSanity %fabric=tcp %size={n}'} for n in range(40)
    ]
    terminal.show_run(run_of(report), LOG)
    shown = capsys.readouterr().out.splitlines()
    assert sum(one.startswith('failed: FailedSanity ') for one in shown) == 8
    assert 'failed: 32 more, of which --all tells' in shown
    terminal.show_run(run_of(report), LOG, everything=True)
    assert capsys.readouterr().out.count('\nfailed: FailedSanity ') == 40


@pytest.mark.parametrize('width', [80, 160])
@pytest.mark.parametrize('good', [0, 100])
def test_however_much_is_wrong_it_is_one_screen(monkeypatch, capsys, golden_report, width, good):
    """Of a window in which long lines go on below, with the verdict and what is wrong."""
    monkeypatch.setenv('COLUMNS', str(width))
    report = disturbed(golden_report('FailedReference'), 1)
    (run,) = report['runs']
    *_, other = passing(golden_report('Passed'))['runs'][0]['testcases']
    run['testcases'] = [
        one | {'display_name': f'{one["display_name"]} %size={n}'}
        for one in run['testcases'][1:]
        for n in range(20)
    ] + [other | {'display_name': f'Passed %fabric=shm %size={n}'} for n in range(good)]
    verdict = judge_run(run_of(report), 1, LOG)
    terminal.show_run(run_of(report), LOG, below=terminal.why_not_good(verdict))
    terminal.show_verdict(run_of(report), verdict, 3)
    shown = ''.join(capsys.readouterr()).splitlines()
    assert sum(max(1, -(-len(line) // width)) for line in shown) <= 40
    for word in ('failed', 'disturbed'):
        assert any(line.startswith(f'{word}: FailedReference ') for line in shown)
        assert any(re.match(rf'{word}: \d+ more', line) for line in shown)
    assert any(re.match(r'FailedReference size=\d+ .*!', line) for line in shown)


def test_a_case_that_needed_a_second_attempt_is_told(capsys, golden_report):
    retry = passing(golden_report('FailedSanity'))
    report = then(golden_report('FailedSanity'), retry, only_failed=True)
    terminal.show_run(run_of(report), LOG)
    assert (
        'passed at the 2nd attempt: FailedSanity %fabric=shm %layout=packed @toy:node+gnu: '
        'first: another fabric was used\n'
    ) in capsys.readouterr().out


def test_cases_that_needed_one_for_the_same_reason_are_one_line(capsys, golden_report):
    report = passing(golden_report('Passed'))
    (run,) = report['runs']
    again = run['testcases'][-1] | {'replaced': [MOVED]}
    run['testcases'] = [again | {'display_name': f'Passed %size={n}'} for n in range(3)]
    terminal.show_run(run_of(report), LOG)
    said = capsys.readouterr().out
    assert f'passed at a later attempt: 3 cases: first: {MOVED}\n' in said
    assert '2nd attempt' not in said
    terminal.show_run(run_of(report), LOG, everything=True)
    assert capsys.readouterr().out.count('passed at the 2nd attempt: Passed %size=') == 3


@pytest.mark.parametrize(
    ('number', 'word'), [(2, '2nd'), (3, '3rd'), (4, '4th'), (11, '11th'), (21, '21st')]
)
def test_ordinals(number, word):
    assert terminal.ordinal(number) == word
