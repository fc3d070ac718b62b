"""What a run says while it goes on, of cases of real reports."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from assay.report import progress
from assay.report.progress import Progress
from assay.results.failures import failures
from assay.results.reframe_report import name_of
from assay.running.events import BUILDS, ENDED, NUMBER, ROUND, RUNS, WHY_SKIPPED
from reports import NO_EVIDENCE, cases, disturbed, own_cases, run_of

RUN = SimpleNamespace(log=Path('/runs/1/reframe.log'))


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """What earlier runs tell: nothing, unless a test says so."""
    seconds = {}
    monkeypatch.setattr(progress, 'earlier_seconds', lambda: seconds)
    return seconds


@pytest.fixture
def heard(capsys):
    """Lets a listener hear events; returns the lines it prints."""

    def hear(*events, given=(), listener=None):
        listener = listener or Progress(RUN, SimpleNamespace(names_of_options={*given}))
        for event in events:
            before = capsys.readouterr().out
            said = listener.hear(json.loads(json.dumps(event)))
            printed = capsys.readouterr().out
            assert said == bool(printed)
            shown.append(before + printed)
        return ''.join(shown).splitlines()

    shown = []
    return hear


def events(report, number=0):
    """Those of a run, from its report."""
    own = own_cases(report)
    yield {ROUND: own, NUMBER: number}
    for case in cases(report):
        yield {BUILDS if case['fixture'] else RUNS: case}
    for case in cases(report):
        yield {ENDED: case}


def test_one_that_passes(heard, golden_report):
    (build,) = [case for case in cases(golden_report('Passed')) if case['fixture']]
    took = f'{build["time_compile"]:.0f}'
    assert heard(*events(golden_report('Passed'))) == [
        '2 cases; what ReFrame says is in /runs/1/reframe.log',
        'building Build gnu ...',
        f'built Build gnu in {took} s',
        '1/2 pass      Passed gnu shm packed: latency 42.50 us (37.80 to 46.20)',
        '2/2 pass      Passed gnu tcp packed: latency 42.50 us (37.80 to 46.20)',
    ]


@pytest.mark.parametrize(
    'name', ['FailedReference', 'FailedSanity', 'NoFigures', 'NotANumber', 'NoReference']
)
def test_a_failure_is_told_by_the_sentence_of_the_end(heard, golden_report, name):
    shown = heard(*events(golden_report(name)))
    told = [one.reason for one in failures(run_of(golden_report(name)))]
    assert len(told) == 2
    for count, (fabric, sentence) in enumerate(zip(('shm', 'tcp'), told, strict=True), 1):
        line = f'{count}/2 FAIL      {name} gnu {fabric} packed: {sentence}'
        assert line in shown


def test_a_build_that_fails_and_what_waits_for_it(heard, golden_report):
    report = golden_report('FailedBuild')
    (failed, *_) = failures(run_of(report))
    shown = heard(*events(report))
    assert f'FAIL {failed.case}: {failed.reason}' in shown
    assert shown[-1] == ('2/2 not run   FailedBuild gnu tcp packed: what it needs failed')


def test_disturbed_and_skipped_cases(heard, golden_report):
    shown = heard(*events(disturbed(golden_report('FailedReference'), 1)))
    assert shown[-1].startswith('2/2 disturbed FailedReference gnu tcp packed')
    assert NO_EVIDENCE in shown[-1]
    skipped = {**cases(golden_report('Skipped'))[-1], WHY_SKIPPED: 'there is no\x1b[2J tcp'}
    (line,) = heard({ENDED: skipped})[len(shown) :]
    assert line.endswith(r'skip      Skipped gnu tcp packed: there is no\x1b[2J tcp')


def test_cases_of_a_run_that_is_stopped_are_left_to_its_end(heard, golden_report):
    stopped = {**cases(golden_report('FailedSanity'))[-1], 'result': 'abort'}
    assert heard({ENDED: stopped}) == []


def test_a_case_that_is_reported_twice_has_one_line(heard, golden_report):
    """As where Ctrl-C comes just as it ends; one that then fails is told again."""
    (*_, passed) = told = [*events(golden_report('Passed'))]
    failed = {ENDED: passed[ENDED] | {'result': 'fail', 'fail_reason': 'stopped'}}
    shown = heard(*told, passed, failed)
    ended = [line.split()[1] for line in shown if line[1:3] == '/2']
    assert ended == ['pass', 'pass', 'FAIL']


def test_of_several_figures_the_one_nearest_to_its_bound(heard, golden_report):
    case = cases(golden_report('Passed'))[-1] | {
        'headlines': ['plain'],
        'perfvalues': {
            'toy:node:other': [1, 0, None, None, 's', 'pass'],
            'toy:node:plain': [1234.5, 0, None, None, 'MB/s', 'pass'],
            'toy:node:far': [5, 10, -0.9, None, '1', 'pass'],
            'toy:node:near': [1.4, 1, None, 0.5, '1', 'pass'],
            'toy:node:exact': [10, 10, 0, 0, '1', 'pass'],
        },
    }
    (line,) = heard({ENDED: case})
    assert line.endswith(': near 1.400 (at most 1.500)')
    for name in ('far', 'near'):
        del case['perfvalues'][f'toy:node:{name}']
    assert heard({ENDED: case})[-1].endswith(': plain 1234 MB/s')
    for name in ('plain', 'other'):
        del case['perfvalues'][f'toy:node:{name}']
    assert heard({ENDED: case})[-1].endswith(': exact 10.00 (only 10.00)')


def test_in_a_narrow_window_a_long_line_goes_on_in_the_next(heard, golden_report, monkeypatch):
    monkeypatch.setenv('COLUMNS', '80')
    shown = heard(*events(golden_report('FailedReference')))
    assert shown[-2:] == [
        '2/2 FAIL      FailedReference gnu tcp packed:',
        '    latency is 42.50 us, but at most 22.00 us is allowed (reference 20.00)',
    ]
    assert all(len(line) <= 80 for line in shown)
    shown = heard(*events(golden_report('Passed')))
    assert shown[-1] == '2/2 pass      Passed gnu tcp packed: latency 42.50 us (37.80 to 46.20)'


def test_the_time_that_is_left(heard, golden_report, known, monkeypatch):
    report, clock = golden_report('Passed'), iter((0, 0, 5, 5, 30, 150, 270))
    monkeypatch.setattr(progress, 'time', SimpleNamespace(monotonic=lambda: next(clock)))
    for case in cases(report):
        known[name_of(case).title] = 120.0
    shown = heard(*events(report))
    assert shown[0] == '2 cases, about 4 min left; what ReFrame says is in /runs/1/reframe.log'
    assert shown[-2].startswith('1/2 pass ')
    assert shown[-2].endswith(': latency 42.50 us (37.80 to 46.20); about 2 min left')
    assert shown[-1].endswith(': latency 42.50 us (37.80 to 46.20)')


def test_a_sentence_is_told_as_it_is(heard, golden_report, known):
    report = golden_report('FailedSanity')
    known.update({name_of(case).title: 120.0 for case in cases(report)})
    assert heard(*events(report))[-2].endswith('gnu shm packed: another fabric was used')


def test_a_later_round_counts_anew(heard, golden_report):
    listener = Progress(RUN, SimpleNamespace(names_of_options=set()))
    first = heard(*events(golden_report('Passed')), listener=listener)
    shown = heard(*events(golden_report('Passed'), number=1), listener=listener)[len(first) :]
    assert shown[0] == 'round 2: 2 cases'
    assert shown[-1].startswith('2/2 ')


@pytest.mark.parametrize(
    ('option', 'all_of_it'),
    [('--verbose', True), ('--performance-report', True), ('--failure-stats', True), ('-n', False)],
)
def test_who_asks_for_what_reframe_prints_gets_it(option, all_of_it):
    assert Progress(RUN, SimpleNamespace(names_of_options={option})).hears_all is all_of_it


def test_where_no_colours_are_wanted_there_are_none(heard, golden_report, monkeypatch):
    monkeypatch.setenv('FORCE_COLOR', '1')
    monkeypatch.setenv('TERM', 'xterm')  # a dumb one has none
    monkeypatch.delenv('NO_COLOR', raising=False)
    report = golden_report('FailedSanity')
    assert any('\x1b[' in line for line in heard(*events(report)))
    monkeypatch.setenv('NO_COLOR', '1')
    monkeypatch.setenv('COLUMNS', '160')
    (line,) = heard({ENDED: cases(report)[-1]})[-1:]
    assert '\x1b' not in line


def test_one_that_fails_after_it_had_passed_is_told_again_and_counted_once(heard, golden_report):
    own, *_ = events(golden_report('Passed'))
    first, second = own[ROUND]
    failed = first | {'result': 'fail', 'fail_phase': 'cleanup', 'fail_reason': 'no room'}
    shown = heard(own, {ENDED: first}, {ENDED: failed}, {ENDED: second})
    assert [line[:13].rstrip() for line in shown[1:]] == ['1/2 pass', '1/2 FAIL', '2/2 pass']
    assert shown[2].endswith('no room')
