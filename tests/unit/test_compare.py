"""Two settings measured in turn: what is measured again, what is said, and how it ends."""

import json
import math
import os
import re
import signal
from dataclasses import replace

import pytest

from assay import AssayError, paths
from assay.commands import main as cli
from assay.comparing import interleaved
from assay.comparing.interleaved import InterleavedMeasurement, session_label
from assay.comparing.pairs import TERM
from assay.comparing.sessions import ComparedSession, Failing, failing, stored_runs
from assay.report.diff import interleaved_conclusion, show_interleaved
from assay.report.diff_json import interleaved_json
from assay.results import runner
from assay.results.diff import judging
from assay.results.diff.difference import difference
from assay.results.failures import is_bad
from assay.results.figure_series import learn_past
from assay.results.history import load_history
from assay.results.reframe_report import read_reframe_report
from assay.results.run_selectors import assert_label, choose_runs
from assay.results.runner import Concluded, Runner
from assay.results.statistics.retest import BUDGET
from assay.results.verdict import Verdict
from assay.running import reframe_options
from assay.running.selection import Listed
from assay.running.setting import (
    Setting,
    assert_settable,
    cases_in_common,
    read_settings,
    why_nothing_in_common,
)
from assay.running.supervise import Ended
from changing import changing
from sessions import BOTH, FIGURES, Machine
from stored import NOW

ENVIRONMENTS = read_settings(['env=openmpi'], ['env=mpich'])


@pytest.fixture
def machine(tmp_path, golden_report, monkeypatch):
    monkeypatch.setattr('assay.paths.RUNS', tmp_path / 'runs')
    one = Machine(tmp_path / 'perflogs' / 'results.db', golden_report)
    problems = one.problems = {}

    def judged(own, end, given):
        run = read_reframe_report(own.report)
        failed = [case for case in run.cases if is_bad(case)]
        said = (f'{len(failed)} cases failed',) if failed else ()
        return Concluded(run, [], Verdict((*said, *problems.get(len(one.ran), ())), 0, said))

    monkeypatch.setattr(runner, 'judge_session', judged)
    monkeypatch.setattr(runner, 'store_verdict', lambda report, verdict: [])
    monkeypatch.setattr(interleaved, 'load_history', lambda: load_history(one.database))
    monkeypatch.setenv('COLUMNS', '200')
    return one


def compared(machine, seconds=None, margin=0.05, settings=ENVIRONMENTS):
    given = reframe_options.read_for('a comparison', [])
    sessions = Runner(machine, given, [], 'compare', machine.own)
    return InterleavedMeasurement(sessions, settings, [], margin, seconds).run()


def fail(case, values):
    case |= {'result': 'fail', 'fail_phase': 'sanity', 'fail_reason': 'another fabric'}
    values.clear()


@changing
def worse_over(name, number, case, values, fabric, factor=1.2):
    if name == 'mpich' and case['fabric'] == fabric:
        values['latency'] *= factor
        values['bandwidth'] /= factor


@changing
def fails_where(name, number, case, values, where):
    if where(name, number, case):
        fail(case, values)


@changing
def disturbed_where(name, number, case, values, where):
    if where(name, number, case):
        case['taken_by_others'] = ['other processes took 60% of the time']


def over_tcp(name, number, case):
    return case['fabric'] == 'tcp'


# What is said -------------------------------------------------------------------------------------


def test_what_looks_worse_is_measured_again_alone_until_it_is_decided(machine, capsys):
    machine.history(30)
    machine.change = worse_over('tcp')
    found, code = compared(machine)
    assert (found.is_worse, code, found.stopped) == (True, 1, '')
    words = {(one.figure.case.split()[1], one.word) for one in found.difference.figures}
    assert words == {('%fabric=shm', 'same'), ('%fabric=tcp', 'worse'), ('%fabric=ofi-tcp', 'same')}
    order = [name for name, _ in machine.ran]
    assert order[:4] == order[4:8] == ['openmpi', 'mpich', 'mpich', 'openmpi']
    # Then the one case alone: the two others are left out.
    assert machine.ran[8:] == [(name, 2) for name in order[:4] * (len(machine.ran[8:]) // 4)]
    assert found.suspects == 2
    assert found.pairs == 4
    show_interleaved(found, everything=True)
    text = capsys.readouterr().out
    assert 'before is openmpi, after is mpich' in text
    assert 'worse: 2 of 2 figures over tcp, by' in text
    assert 'mpi: openmpi@5 -> mpich@5' in text
    assert 'error of 2 figures: pairs of sessions, A B B A' in text
    assert text.endswith('WORSE: 2 worse, 0 better, 4 same, 0 cannot tell of 6 figures\n')


def test_what_earlier_runs_teach_is_learned_once(machine, monkeypatch):
    learned = []

    def learn(histories):
        learned.append(learn_past(histories))
        return learned[-1]

    monkeypatch.setattr(judging, 'learn_past', learn)
    machine.history(12)
    found, _ = compared(machine, seconds=0)
    assert [found.difference.earlier.past] == learned


def test_the_same_is_the_same(machine):
    machine.history(30)
    found, _ = compared(machine)
    assert not found.is_worse
    assert {one.word for one in found.difference.figures} == {'same'}


def test_jobs_of_both_end_in_one_second(machine):
    """As short ones do on a fast machine."""
    machine.history(4)
    machine.change = lambda name, number, case, values: case.update(
        job_completion_time_unix=NOW.timestamp()
    )
    found, _ = compared(machine, seconds=0)
    assert not found.is_worse


def test_what_pairs_decide_is_not_said_of_missed_references(machine, monkeypatch):
    at_first = interleaved.compare_at_first

    def missing(*about):
        found = at_first(*about)
        return replace(found, figures=tuple(replace(one, misses=True) for one in found.figures))

    monkeypatch.setattr(interleaved, 'compare_at_first', missing)
    machine.change = worse_over('tcp')
    found, _ = compared(machine)
    again = [one for one in found.difference.figures if one.verdict.comparison.term == TERM]
    assert len(again) == found.suspects > 0
    assert not any(one.misses for one in again)


def test_without_a_history_pairs_decide_about_what_looks_changed(machine):
    machine.change = worse_over('shm', 1 / 1.3)
    found, _ = compared(machine)
    assert (found.suspects, found.pairs > 0) == (2, True)
    words = {(one.figure.case.split()[1], one.word) for one in found.difference.figures}
    same = {('%fabric=tcp', 'same'), ('%fabric=ofi-tcp', 'same')}
    assert words == {('%fabric=shm', 'better')} | same
    assert not found.is_worse
    told = json.loads(interleaved_json(found))
    assert told['settings'] == ['openmpi', 'mpich']
    assert told['verdict'] == 'not worse'
    assert told['measured_again'] == 2
    again = {one['word'] for one in told['figures'] if one['error_term'] == TERM}
    assert again == {'better'}


def test_a_short_history_leaves_it_to_pairs(machine):
    """With it what is not the same is hardly ever a suspect: eight sessions count as two."""
    machine.history(3)

    @machine.changes
    def change(name, number, case, values):
        values['latency'] *= 1.5 if name == 'mpich' else 1
        for one in values:
            values[one] *= math.exp(machine.random.normal(0, 0.1))

    found, _ = compared(machine)
    assert found.suspects == 6
    words = {(one.figure.figure, one.word) for one in found.difference.figures}
    assert ('latency', 'worse') in words
    assert not {('latency', 'better'), ('bandwidth', 'worse'), ('bandwidth', 'better')} & words


def test_what_only_one_has_is_no_failure(machine):
    machine.history(30)

    @machine.changes
    def change(name, number, case, values):
        return case['fabric'] != 'ofi-tcp' or name == 'mpich'

    found, _ = compared(machine)
    assert not found.is_worse
    assert [one.environment for one in found.difference.only_after] == ['mpich', 'mpich']


def test_nothing_in_common_is_said_after_two_sessions(machine):
    machine.change = lambda name, _, case, values: (case['fabric'] == 'shm') == (name == BOTH[0])
    words = r'no case is run with both openmpi and mpich, .*: there are 1'
    with pytest.raises(AssayError, match=words):
        compared(machine)
    assert len(machine.ran) == 2


def test_what_looked_changed_by_chance_is_cleared_by_pairs(machine):
    machine.history(30)
    number = machine.number

    @machine.changes
    def change(name, now, case, values):
        if name == 'mpich' and case['fabric'] == 'shm' and now <= number + 8:
            values['latency'] *= 1.1

    found, _ = compared(machine)
    assert not found.is_worse
    words = {one.word for one in found.difference.figures if 'shm' in one.figure.case}
    assert words == {'same'}
    assert found.pairs == BUDGET


def test_values_of_disturbed_jobs_do_not_count_in_pairs(machine):
    machine.history(30)
    change, number = worse_over('tcp'), machine.number

    @machine.changes
    def disturbed(name, now, case, values):
        change(name, now, case, values)
        # The first session of pairs, whenever it is measured; one of the second four at first.
        if now in (number + 9, number + 10, number + 11, number + 15):
            case['taken_by_others'] = ['other processes took 60% of the time']
            values['latency'] *= 0.5

    found, _ = compared(machine)
    assert found.is_worse
    assert found.pairs == 6
    assert len(machine.ran) == 8 + 12 + 3
    (one,) = [one for one in found.difference.figures if one.word == 'worse' and one.change > 0]
    assert one.verdict.comparison.sizes == (4, 4)
    assert 0.15 < one.change < 0.21


def test_what_others_disturbed_at_first_is_measured_again(machine):
    machine.history(30)
    number = machine.number
    at_first = disturbed_where(lambda name, now, case: now <= number + 16 and name == 'mpich')
    machine.change = lambda *about: (worse_over('tcp')(*about), at_first(*about))
    found, _ = compared(machine)
    words = {(one.figure.case.split()[1], one.word) for one in found.difference.figures}
    assert words == {('%fabric=shm', 'same'), ('%fabric=tcp', 'worse'), ('%fabric=ofi-tcp', 'same')}


def test_a_disturbed_case_is_measured_again_at_once_and_alone(machine):
    machine.history(30)
    number = machine.number
    machine.change = disturbed_where(
        lambda name, now, case: now == number + 2 and case['fabric'] == 'shm'
    )
    found, _ = compared(machine, seconds=0)
    assert machine.ran == [(BOTH[0], 0), (BOTH[1], 0), (BOTH[1], 2), (BOTH[1], 0), (BOTH[0], 0)]
    assert {one.verdict.comparison.sizes for one in found.difference.figures} == {(2, 2)}


def test_a_case_disturbed_on_one_partition_is_measured_again_on_both(machine):
    machine.history(30)
    machine.partitions = ['cpu', 'gpu']
    number = machine.number
    # At first on the one, and at once again on the other, which has its value by then.
    there = ((number + 2, 'shm', 'cpu'), (number + 3, 'shm', 'gpu'))
    machine.change = disturbed_where(
        lambda name, now, case: (now, case['fabric'], case['partition']) in there
    )
    found, _ = compared(machine, seconds=0)
    assert machine.ran == [(BOTH[0], 0), (BOTH[1], 0), (BOTH[1], 2), (BOTH[1], 0), (BOTH[0], 0)]
    assert {one.verdict.comparison.sizes for one in found.difference.figures} == {(2, 2)}
    assert len(found.difference.figures) == 12


def test_what_others_always_disturb_cannot_be_told(machine):
    machine.change = disturbed_where(lambda *about: True)
    found, code = compared(machine, seconds=0)
    assert (code, found.suspects, found.pairs, len(machine.ran)) == (3, 6, 0, 12)
    assert re.match(
        'STOPPED: UNDECIDED: .* of 6 .*; the time of 0 min', interleaved_conclusion(found)
    )
    assert {one.reason.partition(':')[0] for one in found.difference.figures} == {
        'no value before is left'
    }
    assert found.difference.verdict == 'undecided'


@pytest.mark.parametrize('failing', BOTH)
def test_a_case_that_fails_with_one_of_them_is_told(machine, capsys, failing):
    machine.history(30)
    machine.change = fails_where(lambda name, *about: name == failing and over_tcp(name, *about))
    found, _ = compared(machine)
    assert found.is_worse
    assert [one.case for one in found.uneven] == [
        'Ring %fabric=tcp %layout=packed %scale=1_node @toy:node'
    ]
    assert interleaved_conclusion(found).startswith('WORSE: ')
    assert '1 case failed more often with one setting' in interleaved_conclusion(found)
    show_interleaved(found)
    assert f'4 of 4 sessions with {failing}' in capsys.readouterr().out


@pytest.mark.parametrize('failing', BOTH)
def test_the_only_case_may_fail_with_one_of_them(machine, capsys, failing):
    @machine.changes
    def change(name, number, case, values):
        if name == failing:
            fail(case, values)
        return case['fabric'] == 'tcp'

    found, code = compared(machine)
    assert (code, len(found.uneven), found.difference.figures) == (1, 1, ())
    show_interleaved(found)
    text = capsys.readouterr().out
    assert f'4 of 4 sessions with {failing}' in text
    assert re.search(r'\nWORSE: .* of 0 figures, 1 case failed more often with one', text)


def test_nothing_is_compared_where_all_fails_with_both(machine):
    machine.change = fails_where(lambda *about: True)
    with pytest.raises(
        AssayError, match=r'no case that was run before and after both .* ever gave'
    ):
        compared(machine)


def test_a_case_that_fails_once_with_one_of_them_is_told(machine):
    machine.history(30)
    number = machine.number
    machine.change = fails_where(lambda _, now, case: now == number + 4 and case['fabric'] == 'tcp')
    found, _ = compared(machine)
    assert found.is_worse
    (one,) = found.uneven
    assert (one.failed, one.ran) == ((1, 0), (4, 4))


def test_a_case_that_fails_with_both_is_no_difference(machine, capsys):
    machine.history(30)
    machine.change = fails_where(over_tcp)
    found, _ = compared(machine)
    assert not found.is_worse
    show_interleaved(found)
    assert re.search(
        r'failed with both, .* @toy:node: 4 of 4 sessions with openmpi, 4 of 4 sessions with mpich',
        capsys.readouterr().out,
    )


def test_a_session_that_is_no_good_ends_it(machine):
    machine.problems[2] = ('no check has the variable tyme_limit',)
    with pytest.raises(AssayError) as ended:
        compared(machine)
    assert str(ended.value) == (
        'a session of mpich is no good: no check has the variable tyme_limit, before both were '
        "measured; what was is stored, with the label 'compare openmpi with mpich: openmpi'."
    )


@pytest.mark.parametrize(('session', 'pairs'), [(3, 0), (10, 0), (14, 2)])
def test_what_was_known_before_a_session_that_is_no_good_is_told(machine, session, pairs):
    machine.history(30)
    machine.change = worse_over('tcp', 1.05)
    machine.problems[session] = ('ReFrame was killed by SIGKILL',)
    found, code = compared(machine)
    assert (code, found.pairs, len(machine.ran)) == (1, pairs, session)
    assert interleaved_conclusion(found).startswith('STOPPED: ')
    assert interleaved_conclusion(found).endswith('is no good: ReFrame was killed by SIGKILL')


@pytest.mark.parametrize(('works', 'failed'), [(1, (1, 2)), (2, (2, 1))])
def test_a_case_that_fails_more_often_with_one_of_them_is_no_difference(machine, works, failed):
    machine.history(30)
    number = machine.number
    machine.change = fails_where(
        lambda _, now, case: case['fabric'] == 'tcp' and now != number + works
    )
    found, _ = compared(machine, seconds=0)
    assert found.uneven == ()
    (one,) = found.failed
    assert (one.failed, one.ran) == (failed, (2, 2))
    assert not found.is_worse


@pytest.mark.parametrize(
    ('times', 'cases', 'uneven'), [(8, 3, True), (8, 300, False), (9, 3, False)]
)
def test_a_case_that_fails_far_more_often_with_one_of_them_is_uneven(times, cases, uneven):
    """Of 16 sessions of each, in all and in some: by chance in 0.2% of comparisons, or in 0.7%."""
    names = frozenset(map(str, range(cases)))
    sessions = [
        ComparedSession(side, (), names, frozenset({'0'} if side == 0 or number < times else ()))
        for side in (0, 1)
        for number in range(16)
    ]
    one = Failing('0', (16, times), (16, 16))
    assert failing(sessions) == (((one,), ()) if uneven else ((), (one,)))


def test_a_case_that_fails_hides_nothing_else_that_is_wrong(machine):
    machine.change = fails_where(over_tcp)
    machine.problems[2] = ('no check has the variable tyme_limit',)
    with pytest.raises(AssayError, match='a session of mpich is no good: no check has the var'):
        compared(machine)


def test_a_parameter_pairs_cases_that_differ_in_it_alone(machine, capsys):
    """And what is left out of the pairs is so by the name that it has on each side."""
    machine.layouts = ['packed', 'spread']
    machine.history(30)

    @machine.changes
    def change(name, number, case, values):
        if 'fabric=tcp' in case['display_name'] and 'spread' in case['display_name']:
            values['latency'] *= 1.3

    found, code = compared(machine, settings=read_settings(['fabric=shm'], ['fabric=tcp']))
    assert code == 1
    words = {(one.figure.case, one.figure.figure): one.word for one in found.difference.figures}
    assert words == {
        (f'Ring %fabric=tcp %layout={layout} %scale=1_node', figure): (
            'worse' if (layout, figure) == ('spread', 'latency') else 'same'
        )
        for layout in ('packed', 'spread')
        for figure in FIGURES
    }
    of_both = [
        [f'Ring %fabric={fabric} %layout={layout} %scale=1_node' for layout in machine.layouts]
        for fabric in ('shm', 'tcp', 'tcp', 'shm')
    ]
    assert machine.cases[:8] == of_both * 2
    assert machine.cases[8:12] == [names[1:] for names in of_both]
    show_interleaved(found)
    assert 'before is fabric=shm, after is fabric=tcp' in capsys.readouterr().out


def test_a_case_that_fails_with_one_value_of_a_parameter_has_a_name_of_both(machine):
    machine.change = fails_where(over_tcp)
    found, _ = compared(machine, seconds=0, settings=read_settings(['fabric=shm'], ['fabric=tcp']))
    (one,) = found.uneven
    assert one.case == 'Ring %fabric=* %layout=packed %scale=1_node @toy:node+openmpi'
    assert (one.failed, one.ran) == ((0, 2), (2, 2))


def test_flags_and_variables_leave_the_names_of_cases_as_they_are(machine):
    settings = read_settings([], ['flags=-O1', 'OMPI_MCA_pml=ob1'])
    machine.history(30)
    found, _ = compared(machine, seconds=0, settings=settings)
    assert machine.exports == [{}, settings.after.exports, settings.after.exports, {}]
    assert {one.figure.environment for one in found.difference.figures} == {'openmpi'}
    assert machine.labels[1] == 'compare unchanged with flags=-O1, OMPI_MCA_pml=ob1: ' + str(
        settings.after
    )


def test_what_looks_worse_and_is_not_decided_has_an_exit_code_of_its_own(machine):
    machine.history(30)
    machine.change = worse_over('tcp')
    found, code = compared(machine, seconds=0)
    assert (code, found.verdict, len(found.difference.suspects)) == (3, 'undecided', 2)
    assert interleaved_conclusion(found).startswith('STOPPED: UNDECIDED: 0 worse, ')
    advice = '; more time (--within), fewer cases (-n) or a quieter machine'
    assert advice in interleaved_conclusion(found)
    assert json.loads(interleaved_json(found))['verdict'] == 'undecided'


def test_what_looks_better_and_is_not_decided_is_not_worse(machine):
    machine.history(30)
    machine.change = worse_over('tcp', 1 / 1.2)
    found, code = compared(machine, seconds=0)
    assert (code, found.difference.suspects) == (0, ())


# How it ends --------------------------------------------------------------------------------------


def test_a_bound_in_time_leaves_what_is_open_undecided(machine):
    machine.history(30)
    machine.change = worse_over('tcp')
    found, code = compared(machine, seconds=0)
    assert (code, found.is_worse, found.pairs) == (3, False, 0)
    assert [name for name, _ in machine.ran] == ['openmpi', 'mpich', 'mpich', 'openmpi']
    unsure = [one for one in found.difference.figures if one.word == 'cannot tell']
    assert {one.reason for one in unsure} == {'not decided by pairs: the time of 0 min was over'}
    assert interleaved_conclusion(found).startswith('STOPPED: ')


@pytest.mark.parametrize(('session', 'pairs'), [(3, 0), (7, 0), (10, 0), (14, 2)])
def test_a_signal_ends_it_with_what_is_known(machine, session, pairs):
    machine.history(30)
    machine.change = worse_over('tcp', 1.05)
    machine.ends[session] = Ended(stopped=signal.SIGINT)
    found, code = compared(machine)
    assert (code, found.stopped) == (128 + signal.SIGINT, 'stopped by SIGINT')
    assert found.pairs == pairs
    assert not {'worse', 'better'} & {one.word for one in found.difference.figures}
    assert interleaved_conclusion(found).startswith('STOPPED: ')


def test_a_signal_between_sessions_counts_too(machine, monkeypatch):
    machine.history(30)
    run = machine.run

    def then_told(*options, **more):
        ended = run(*options, **more)
        if len(machine.ran) == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return ended

    monkeypatch.setattr(machine, 'run', then_told)
    found, code = compared(machine)
    assert code == 128 + signal.SIGTERM
    assert len(machine.ran) == 5
    assert found.stopped == 'stopped by SIGTERM'


def test_stopped_before_both_were_measured_there_is_nothing_to_say(machine, capsys):
    machine.ends[2] = Ended(stopped=signal.SIGINT)
    with pytest.raises(SystemExit) as ended:
        compared(machine)
    assert ended.value.code == 130
    assert 'stopped by SIGINT, before both were measured' in capsys.readouterr().err


def test_its_sessions_leave_the_folders_of_other_runs(machine):
    @machine.changes
    def change(name, number, case, values):
        for one in values:
            values[one] *= math.exp(machine.random.normal(0, 0.3))

    compared(machine)
    assert len(machine.ran) == 8 + 2 * BUDGET
    assert len([*(machine.own.folder.parent).glob('[0-9]*')]) == 4  # the last of each stage


def test_its_sessions_are_found_again_and_never_taken_for_runs_to_diff(machine):
    compared(machine, seconds=0)
    stored = load_history(machine.database)
    before, after = (choose_runs(stored, session_label(ENVIRONMENTS, side)) for side in (0, 1))
    assert [len(before), len(after)] == [2, 2]
    for side in (0, 1):
        assert_label(session_label(ENVIRONMENTS, side))
        assert_label(session_label(read_settings(['env=gcc/13'], ['env=gcc/14']), side))
    with pytest.raises(AssayError, match='no figure is of runs before'):
        difference(stored, before, after)


def test_a_session_that_was_not_stored_ends_it(machine):
    with pytest.raises(AssayError, match='was not stored'):
        stored_runs(
            load_history(machine.database), [ComparedSession(0, ('x',), frozenset(), frozenset())]
        )


# What it is asked ---------------------------------------------------------------------------------


class Site(dict):
    """A configuration of one partition, and with this environment."""

    def __init__(self, scheduler='local', **environment):
        super().__init__(environments=[environment])
        self.scheduler = scheduler

    def get(self, key):
        assert key == 'systems/0/partitions'
        return [{'scheduler': self.scheduler}]


CASES = [
    Listed(f'Ring %fabric={fabric} %layout={layout}', 'toy:node', name)
    for name, fabric, layout in (
        ('openmpi', 'shm', 'packed'),
        ('openmpi', 'tcp', 'packed'),
        ('openmpi', 'tcp', 'spread'),
        ('mpich', 'ofi-tcp', 'packed'),
        ('mpich', 'ofi-shm', 'spread'),
        ('cray', 'shm', 'spread'),
    )
]


def of(setting):
    """The cases that ReFrame would list with the options of a setting."""
    options = setting.options
    name = options[options.index('-p') + 1] if '-p' in options else ''
    excluded = [one.partition('=')[2] for one in options if one.startswith('--exclude=')]
    return [
        one
        for one in CASES
        if re.match(name, one.environment)
        and not any(re.search(pattern, one.name.replace(' ', '')) for pattern in excluded)
    ]


def held(settings, scheduler='local'):
    """See that they can be compared, as the command does."""
    assert_settable(settings, Site(scheduler), reframe_options.read_for('a comparison', []))
    sides = [*map(of, settings)]
    if not cases_in_common(settings, sides):
        raise AssayError(why_nothing_in_common(settings, sides, CASES))


def test_nothing_is_selected():
    told = why_nothing_in_common(ENVIRONMENTS, [[], []], [])
    assert told == 'no check was selected, so nothing was measured.'


@pytest.mark.parametrize(
    ('before', 'after', 'sentence'),
    [
        ('', '', 'unchanged is compared with itself'),
        ('env=openmpi', 'env=openmpi', 'openmpi is compared with itself'),
        ('UCX_TLS=tcp FI_LOG=a', 'FI_LOG=a UCX_TLS=tcp', 'FI_LOG=a is compared with itself'),
        ('fabric=tcp', '', 'fabric=tcp is held against no other fabric: give --after fabric='),
        ('X=1', 'env=mpich', 'env=mpich is held against no other env: give --before env='),
        ('', 'ompi_mca_pml=ob1', r'ompi_mca_pml=.* \(Variables of jobs begin with a capital'),
        ('', 'OMPI-PML=ob1', "--after 'OMPI-PML=ob1': a setting is NAME=VALUE, such as env=mpich"),
        ('tcp', 'fabric=shm', "--before 'tcp': a setting is NAME=VALUE"),
        ('', 'flags=', "--after 'flags=': a setting is NAME=VALUE"),
        (
            '',
            'sources=/nowhere',
            'sources=/nowhere is no checkout of Assay: there is no /nowhere/s',
        ),
        ('', 'X=1 X=2', '--after gives X twice'),
        ('env=openmpi', 'env=mpihc', r'env=mpihc: no env of the selected .* did you mean mpich\?'),
        ('fabric=shm', 'fabric=tpc', r'fabric=tpc: no fabric .* did you mean tcp\?'),
        ('size=1', 'size=2', "size=1: no selected case has a parameter 'size'"),
        (
            'env=openmpi',
            'env=mpich',
            'no case is run with both openmpi and mpich: .* there are 3 with openmpi and 2 with',
        ),
        ('env=mpich fabric=shm', 'env=openmpi fabric=shm', 'there are 0 with mpich, fabric=shm'),
        ('', 'nodes=n[1-4]', 'nodes=... is for systems whose jobs Slurm starts'),
    ],
)
def test_settings_that_cannot_be_compared(before, after, sentence):
    with pytest.raises(AssayError, match=sentence):
        held(read_settings(before.split(), after.split()))


@pytest.mark.parametrize(
    ('before', 'after'),
    [
        ('', 'OMPI_MCA_pml=ob1'),
        ('', 'flags=-O1'),
        ('fabric=shm', 'fabric=tcp'),
        ('layout=packed', 'layout=spread'),
        ('env=openmpi fabric=tcp', 'env=mpich fabric=ofi-tcp'),
        ('', 'nodes=n[1-4]'),
    ],
)
def test_settings_that_can_be_compared(before, after):
    held(read_settings(before.split(), after.split()), 'slurm')


@pytest.mark.parametrize(
    ('after', 'options', 'sentence'),
    [
        ('env=mpich', ['-p', 'mpich'], '-p is not for a comparison of environments'),
        ('env=mpich OMP_X=1', ['-S', 'Ring.env_vars=A:1'], '-S Ring.env_vars=A:1: give it as a s'),
        (f'env=mpich sources={paths.ROOT}', [], 'sources=... is not for what Spack builds'),
        ('env=mpich flags=-O1', [], r'flags=... is not for what Spack builds \(for openmpi\)'),
    ],
)
def test_options_that_a_setting_leaves_no_room_for(after, options, sentence):
    site = Site(name='openmpi', features=['mpi', 'spack'])
    given = reframe_options.read_for('a comparison', options)
    with pytest.raises(AssayError, match=sentence):
        assert_settable(read_settings(['env=openmpi'], after.split()), site, given)


def test_a_session_is_started_with_its_setting():
    one, other = read_settings(
        ['env=gcc+13', 'fabric=shm', 'nodes=n[1-4]'],
        ['env=mpich', 'fabric=tcp', 'OMPI_MCA_btl=self,tcp', 'UCX_TLS=', 'flags=-O1 -g'],
    )
    by_fabric = '--exclude=^(?!.*%fabric=shm(?:%|$))'
    assert one.options == ['-p', r'^gcc\+13$', by_fabric, '-J', 'nodelist=n[1-4]']
    assert one.exports == {}
    # The value of a variable goes into a script as it stands.
    said = '{"OMPI_MCA_btl": "self,tcp", "UCX_TLS": "\'\'"}'
    assert other.options[-2:] == ['-S', f'env_vars={said}']
    assert other.exports == {'ASSAY_MORE_FLAGS': '-O1 -g'}
    (_, checkout) = read_settings([], [f'sources={paths.ROOT}'])
    assert checkout.exports == {'ASSAY_OTHER_SOURCES': str(paths.SOURCES)}
    assert not checkout.parameters and not checkout.options
    kept = ['Ring%fabric=shm', 'Ring%fabric=shm%size=1']
    names = [*kept, 'Ring%fabric=shm-2', 'Ring', 'My%ofabric=shm']
    assert [name for name in names if not re.search(by_fabric.partition('=')[2], name)] == kept


def test_what_a_case_is_called():
    settings = read_settings(['env=openmpi', 'fabric=shm'], ['env=mpich', 'fabric=ofi-tcp'])
    before, after = (
        f'Ring %fabric={fabric} %layout=packed @toy:node+{name}'
        for fabric, name in (('shm', 'openmpi'), ('ofi-tcp', 'mpich'))
    )
    assert settings.as_after(before) == after
    shared = 'Ring %fabric=* %layout=packed @toy:node'
    told = [one.shared_title(title) for one, title in zip(settings, (before, after), strict=True)]
    assert told == [shared, shared]
    assert settings.before.name_here('Ring %fabric=* %layout=packed') == before.partition(' @')[0]
    assert str(settings.after) == 'mpich, fabric=ofi-tcp'
    assert str(Setting({})) == 'unchanged'


@pytest.mark.parametrize(
    ('words', 'sentence'),
    [
        ([], 'name two environments before all options of ReFrame, .* or two settings by --before'),
        ([*BOTH, '--repeat', '3'], '--repeat is not for a comparison'),
        ([*BOTH, '--max-retries=2'], '--max-retries is not for a comparison'),
        ([*BOTH, '--maxfail', '1'], '--maxfail is not for a comparison: a session that ends early'),
        ([*BOTH, '--exec-order=random'], '--exec-order is not for a comparison'),
        ([*BOTH, '-l'], '--list is not for a comparison: `assay run --list`'),
        ([*BOTH, '--label', 'x'], 'neither Assay nor ReFrame has an option --label'),
        ([*BOTH, '--margin', '200%'], 'a margin is between 0% and 100%'),
        ([*BOTH, '--margin', 'nan'], "'--margin': 'nan': write a percentage such as 5%"),
        ([*BOTH, '--within', '-1'], "'--within': '-1': write a time such as 90s"),
        ([*BOTH, '--within', '20'], "'--within': '20': write a time such as 90s"),
        ([*BOTH, '--mode', 'quick'], 'Known modes'),
        ([*BOTH, '--system', 'nowhere'], 'unknown system'),
        ([*BOTH, 'intelmpi'], 'name two environments before all options'),
        ([*BOTH, '-n', 'Ring', 'intelmpi'], "'intelmpi' is no option"),
        (['-n', 'Ring', *BOTH], 'name two environments before all options'),
        (['openmpi'], 'name two environments before all options'),
        (
            ['--before', 'fabric=tcp', '--after', 'fabric'],
            "--after 'fabric': a setting is NAME=VALUE",
        ),
        ([*BOTH, '--before', 'env=mpich'], '--before gives env twice'),
    ],
)
def test_words_that_it_does_not_take(monkeypatch, words, sentence):
    monkeypatch.setattr('sys.argv', ['assay', 'compare-settings', *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert re.search(sentence, ended.value.code)
