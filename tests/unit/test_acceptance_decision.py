"""Whether commitments are met, by the values of their runs; and where an acceptance stands."""

from __future__ import annotations

import copy
import json
import os
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import accepted
from assay import AssayError, paths
from assay.acceptance import run as running
from assay.acceptance.contract import Commitment, Contract, TuningRules
from assay.acceptance.decision import (
    CaseRun,
    FigureOutcome,
    conclude,
    conditions,
    decide_commitment,
)
from assay.acceptance.journal import Begun, Interrupted, JournalEntry, RunEnded
from assay.acceptance.plan import Spread, plan_acceptance, seconds, spreads
from assay.acceptance.run import (
    TUNING,
    Prepared,
    SelectedCase,
    allowed_variables,
    assert_no_variables,
    can_no_longer_pass,
    next_cases,
    options_to_measure_once,
)
from assay.acceptance.show import risks, sentences
from assay.acceptance.status import case_runs, fits, jobs_of, outcomes, status_of
from assay.commands import accept
from assay.results.case_history import case_histories
from assay.results.history import load_history
from assay.running import reframe_options
from assay.running.runs import RunFolder
from assay.running.selection import Listed
from assay.running.session import Suite
from assay.vcluster import cluster
from assay.vcluster.node import Node
from assay.witness.variables import OF_THE_SCHEDULER
from reports import disturbed, run_of

GOLDEN = paths.ROOT / 'tests' / 'golden' / 'reports'
CASE = 'Passed %fabric=shm %layout=packed @toy:node+gnu'


def commitment(**changes) -> Commitment:
    usual = {
        'id': 'one',
        'check': 'Passed',
        'figure': 'latency',
        'fabric': 'shm',
        'layout': 'packed',
        'value': 50,
        'unit': 'us',
        'better': 'lower',
        'statistic': 'median',
        'runs': 3,
    }
    return Commitment.model_validate({**usual, **changes})


def contract(*commitments: Commitment, **changes) -> Contract:
    party = {'name': 'P', 'signers': ('S',)}
    usual = {
        'name': 'A machine',
        'parties': {'buyer': party, 'vendor': party},
        'system': 'toy',
        'nodes': {'number': 1},
        'commitments': commitments or (commitment(),),
        'rules': {'category': 'base', 'text': 'As delivered.'},
        'risks': {'producer': 0.05, 'consumer': 0.05, 'good': 0.1, 'bad': 0.1},
        'most_jobs': 10,
    }
    return Contract.model_validate({**usual, **changes})


def of(*values, why='others disturbed it'):
    return [
        FigureOutcome(run, value, '' if value is not None else why)
        for run, value in enumerate(values, 1)
    ]


@pytest.mark.parametrize(
    ('changes', 'values', 'word', 'value'),
    [
        ({}, [40, 60, 50], 'met', 50),
        ({}, [40, 60, 50.1], 'missed', 50.1),
        ({'better': 'higher'}, [40, 60, 50], 'met', 50),
        ({'better': 'higher'}, [40, 60, 49.9], 'missed', 49.9),
        ({'statistic': 'minimum'}, [49, 90, 90], 'met', 49),
        ({'statistic': 'maximum'}, [40, 45, 51], 'missed', 51),
        ({'statistic': 'maximum'}, [40, 45, 50], 'met', 50),
        ({'statistic': 'mean'}, [40, 50, 60], 'met', 50),
        ({'statistic': 'mean'}, [40, 50, 60.1], 'missed', pytest.approx(50.03, abs=0.01)),
        ({'statistic': 'minimum', 'better': 'higher'}, [60, 60, 49], 'missed', 49),
        ({}, [40], 'undecided', None),
        ({}, [], 'undecided', None),
        ({}, [40, None, 60], 'undecided', None),
        ({}, [40, None, 60, 50], 'met', 50),
        ({}, [40, float('nan'), 60], 'undecided', None),
        ({}, [40, float('inf'), -1], 'undecided', None),
        ({'largest_spread': 0.1}, [40, 44, 42], 'met', 42),
        ({'largest_spread': 0.1}, [40, 44.1, 42], 'undecided', 42),
        ({'largest_spread': 0.1}, [60, 70, 65], 'undecided', 65),
        ({'largest_spread': 0.1}, [0, 1, 1], 'undecided', 1),
    ],
)
def test_the_word(changes, values, word, value):
    found = decide_commitment(commitment(**changes), of(*values))
    assert (found.word, found.value) == (word, value)


def test_the_first_runs_count_and_no_other():
    """A fourth run that is better changes nothing, and neither does one that is worse."""
    assert decide_commitment(commitment(), of(60, 60, 60, 1, 1)).word == 'missed'
    found = decide_commitment(commitment(), of(40, 40, 40, 99, 99))
    assert (found.word, found.runs, found.values) == ('met', (1, 2, 3), (40, 40, 40))


def test_a_run_without_a_value_is_told_and_followed_by_another():
    found = decide_commitment(commitment(), of(40, None, 45, 50))
    assert found.runs == (1, 3, 4)
    assert found.without == ((2, 'others disturbed it'),)


@pytest.mark.parametrize(
    ('changes', 'values', 'word'),
    [
        ({'statistic': 'maximum'}, [51], 'missed'),
        ({'statistic': 'minimum', 'better': 'higher'}, [60, 49], 'missed'),
        ({}, [51], 'undecided'),
        ({}, [51, 52], 'missed'),
        ({'statistic': 'mean'}, [151], 'missed'),
        ({'statistic': 'mean'}, [149], 'undecided'),
        ({'statistic': 'mean', 'better': 'higher'}, [1], 'undecided'),
    ],
)
def test_what_no_further_run_can_change_is_final(changes, values, word):
    found = decide_commitment(commitment(**changes), of(*values))
    assert (found.word, found.is_final) == (word, word == 'missed')


def test_a_spread_that_is_too_large_stays_so():
    found = decide_commitment(commitment(largest_spread=0.05), of(40, 44))
    assert (found.word, found.is_final) == ('undecided', True)
    assert found.reason == 'the runs differ by 10%, and at most 5% was agreed'


def test_a_commitment_that_is_given_up_is_never_met():
    found = decide_commitment(commitment(), of(40, 40, 40), waived_by='Ada Buyer')
    assert (found.word, found.says) == ('waived', 'met')
    assert conclude([found], []).word == 'NOT DECIDED'
    other = decide_commitment(commitment(id='two'), of(40, 40, 40))
    assert conclude([found, other], []).word == 'ACCEPTED'


def test_the_sentence_of_a_miss():
    assert decide_commitment(commitment(), of(51, 52, 53)).reason == (
        'the median of 3 runs is 52.00 us; at most 50.00 us is committed'
    )


def ran(*words, nodes=('n1',)):
    return [CaseRun(run, 'case', word, nodes) for run, word in enumerate(words, 1)]


@pytest.mark.parametrize(
    ('changes', 'cases', 'hours', 'name', 'word'),
    [
        ({}, ran('pass', 'pass'), 0, 'share', 'met'),
        ({}, ran('pass', 'fail'), 0, 'share', 'missed'),
        ({'stability': {'hours': 0, 'share': 0.5}}, ran('pass', 'fail'), 0, 'share', 'met'),
        ({}, ran('disturbed', 'interrupted'), 0, 'share', 'undecided'),
        ({}, [], 0, 'share', 'undecided'),
        (
            {'stability': {'hours': 0, 'share': 0.07}},
            ran(*['pass'] * 7, *['fail'] * 93),
            0,
            'share',
            'met',
        ),
        ({'stability': {'hours': 2}}, ran('pass'), 1.9, 'hours', 'undecided'),
        ({'stability': {'hours': 2}}, ran('pass'), 2, 'hours', 'met'),
        ({'nodes': {'number': 2}}, ran('pass'), 0, 'nodes', 'undecided'),
        ({'nodes': {'number': 2, 'may_be_missing': 1}}, ran('pass'), 0, 'nodes', 'met'),
        ({'nodes': {'names': ('n1',)}}, ran('pass'), 0, 'nodes', 'met'),
        ({'nodes': {'names': ('n2',)}}, ran('pass'), 0, 'nodes', 'missed'),
        (
            {'nodes': {'names': ('n1', 'n2')}},
            ran('disturbed', nodes=('n2',)),
            0,
            'nodes',
            'undecided',
        ),
        ({}, ran('fail'), 0, 'failed nodes', 'missed'),
        (
            {'stability': {'hours': 0, 'most_failed_nodes': 1}},
            ran('fail'),
            0,
            'failed nodes',
            'met',
        ),
        ({'screening_first': True}, ran('pass'), 0, 'screening', 'undecided'),
    ],
)
def test_conditions(changes, cases, hours, name, word):
    found = {one.name: one.word for one in conditions(contract(**changes), cases, hours, None)}
    assert found[name] == word


def golden(name='Passed', **changes):
    report = json.loads((GOLDEN / f'{name}.json').read_text())
    for run in report['runs']:
        # One of its cases is enough.
        own = [case for case in run['testcases'] if '%fabric=tcp' not in case['display_name']]
        run['testcases'] = own
        for case in run['testcases']:
            case.update({} if case['fixture'] else changes)
    return report


#: Of a value that is lost everybody sees what it was.
DISTURBED = 'others disturbed it; it measured '


def value_of(report, **changes):
    (found,) = outcomes(commitment(**changes), [(1, run_of(report))])
    return found.value, found.why


def test_the_value_of_a_report():
    assert value_of(golden()) == (pytest.approx(42.5, rel=0.5), '')


def test_a_value_that_missed_its_reference_counts():
    value, why = value_of(golden('FailedReference'), check='FailedReference')
    assert value is not None and not why


@pytest.mark.parametrize(
    ('report', 'changes', 'why'),
    [
        (golden(), {'figure': 'rate'}, 'it has no figure rate'),
        # Archives that were signed say so of a run that was stopped.
        (golden(result='abort', perfvalues={}), {}, 'it has no figure latency'),
        (golden(), {'unit': 'ms'}, 'its unit is us, and not ms'),
        (golden(directions={'latency': 'higher'}), {}, 'better is higher, and not lower'),
        (golden('FailedSanity'), {'check': 'FailedSanity'}, 'fail: '),
        (golden('Skipped'), {'check': 'Skipped'}, 'skip: '),
        (disturbed(golden('FailedReference')), {'check': 'FailedReference'}, DISTURBED),
    ],
)
def test_a_run_without_a_value_says_why(report, changes, why):
    value, told = value_of(report, **changes)
    assert value is None
    assert told.startswith(why)


def test_of_a_run_without_the_case_nothing_is_said():
    assert not [*outcomes(commitment(check='Other'), [(1, run_of(golden()))])]


def test_the_case_of_a_commitment():
    name = 'Ring %fabric=shm %layout=packed %scale=1_node'
    one = commitment(check='Ring', fabric='shm', scale='1_node')
    assert fits(one, name, 'mpich')
    assert not fits(one, name.replace('shm', 'ucx-shm'), 'mpich')
    assert not fits(one, name.replace('Ring', 'RingTwo'), 'mpich')
    assert not fits(one.model_copy(update={'environment': 'openmpi'}), name, 'mpich')
    assert not fits(one.model_copy(update={'parameters': {'size': 'cache'}}), name, 'mpich')


def test_a_case_that_a_run_was_started_with_is_never_forgotten():
    names = [CASE, 'Gone @toy:node+gnu']
    found = {one.case: one.word for one in case_runs(1, names, run_of(golden()))}
    assert found['Gone @toy:node+gnu'] == 'interrupted'
    assert [one.word for one in case_runs(1, names, None)] == ['interrupted'] * 2
    assert jobs_of(names, run_of(golden(replaced=['', '']))) == 4


def entries(*told):
    begun = datetime(2026, 11, 1, tzinfo=timezone.utc)
    found = []
    for number, what in enumerate(told, 1):
        time = begun + timedelta(minutes=30 * number)
        found.append(JournalEntry(number, time, what, '', ''))
    return found


BEGUN = Begun(contract='', commit='', system='toy')


def started(run, case=CASE):
    return accepted.started(run, case)


def ended(run):
    return RunEnded(run=run, uuid='', word='PASSED', files={})


def test_a_run_that_was_killed_counts_as_a_job_and_is_no_value():
    journal = entries(BEGUN, started(1), Interrupted(run=1, files={}), started(2), ended(2))
    found = status_of(contract(commitment(runs=1)), journal, {2: run_of(golden())})
    assert (found.jobs, found.hours) == (2, 0.5)
    assert [one.word for one in found.runs] == ['interrupted', 'pass']
    assert found.verdict.word == 'ACCEPTED'
    told = [one for one in sentences(found) if one.startswith('run ')]
    assert told == [
        'run 1 was interrupted: its command was killed, so it has no values; its jobs count'
    ]


def test_a_run_without_an_end_is_told():
    found = status_of(contract(), entries(BEGUN, started(1)), {})
    told = [one for one in sentences(found) if one.startswith('run ')]
    assert told == [
        'run 1 has no end yet: it goes on, or its command was killed, as the next '
        '`assay accept run` finds out'
    ]


def test_more_jobs_than_agreed_are_not_accepted():
    journal = entries(BEGUN, *(started(run) for run in range(1, 4)), ended(3))
    one = contract(commitment(runs=1), most_jobs=2)
    assert status_of(one, journal, {3: run_of(golden())}).verdict.word == 'NOT MET'


def wanted(
    one: Commitment, environment='gnu', case='Passed %fabric=shm %layout=packed'
) -> SelectedCase:
    return SelectedCase(one, Listed(case, 'toy:node', environment))


def test_what_is_run_next_until_all_is_decided():
    two = (commitment(id='a', runs=1), commitment(id='b', figure='other', runs=1))
    terms = contract(*two)
    cases = [wanted(two[0]), wanted(two[1], 'second')]
    now = status_of(terms, entries(BEGUN), {})
    assert [one.environment for one in next_cases(now, cases)] == ['gnu']
    now = status_of(terms, entries(BEGUN, started(1), ended(1)), {1: run_of(golden())})
    assert [one.environment for one in next_cases(now, cases)] == ['second']
    done = contract(two[0])
    now = status_of(done, entries(BEGUN, started(1), ended(1)), {1: run_of(golden())})
    assert next_cases(now, cases[:1]) == []
    longer = contract(two[0], stability={'hours': 5})
    assert next_cases(replace(now, contract=longer), cases[:1]) == [cases[0].case]


def test_disturbed_cases_take_no_more_jobs_than_were_agreed():
    now = status_of(contract(most_jobs=4), entries(BEGUN, started(1), ended(1)), {})
    cases = [wanted(commitment()).case]
    assert options_to_measure_once(now, cases) == []
    assert options_to_measure_once(now, [*cases, *cases]) == options_to_measure_once(
        replace(now, jobs=2), cases
    )
    assert options_to_measure_once(replace(now, jobs=2), cases) == ['-S', 'wait_for_quiet=0']


def test_two_commitments_on_one_case_are_one_case():
    two = (commitment(id='a'), commitment(id='b', figure='other'))
    now = status_of(contract(*two), entries(BEGUN), {})
    assert len(next_cases(now, [wanted(one) for one in two])) == 1


def test_nothing_more_is_run_once_nothing_can_be_accepted():
    terms = contract(commitment(runs=1, value=1))
    now = status_of(terms, entries(BEGUN, started(1), ended(1)), {1: run_of(golden())})
    assert now.verdict.word == 'NOT MET' and can_no_longer_pass(now)
    # A failure is final only where those to come cannot make up for it.
    failed = replace(now, decisions=(), runs=tuple(ran('fail')), conditions=())
    assert can_no_longer_pass(failed)
    lenient = contract(stability={'hours': 0, 'share': 0.9})
    assert not can_no_longer_pass(replace(failed, contract=lenient, jobs=1))
    assert can_no_longer_pass(replace(failed, contract=lenient, jobs=2))


def test_of_cases_that_do_not_fit_the_nearest_are_told(monkeypatch):
    """MPICH has no tcp of its own: what it has between nodes comes first."""
    there = [
        Listed(f'Ring %fabric={fabric} %layout=packed %scale={scale}', 'c:p', environment)
        for environment, fabric in (('openmpi', 'tcp'), ('mpich', 'ucx-tcp'))
        for scale in ('1_node', '2_nodes', '4_nodes')
    ]
    monkeypatch.setattr(running, 'list_cases', lambda *_: there)
    asked = commitment(check='Ring', fabric='tcp', scale='2_nodes', environment='mpich')
    suite = Suite(RunFolder(Path()), 'c:p', 'acceptance', (), {})
    with pytest.raises(AssayError) as raised:
        running.select_cases(contract(asked), suite)
    told = str(raised.value).partition('there are ')[2].split('; ')
    assert told[:2] == [
        'Ring %fabric=tcp %layout=packed %scale=2_nodes @c:p+openmpi',
        'Ring %fabric=ucx-tcp %layout=packed %scale=2_nodes @c:p+mpich',
    ]
    assert told[-1] == 'and 2 more'


def test_variables_that_tune_jobs():
    base = TuningRules(category='base', text='x')
    peak = TuningRules(category='peak', text='x', variables=('UCX_TLS',))
    assert allowed_variables(base, {'PATH': '/bin', 'HOME': '/'}) == {}
    assert allowed_variables(peak, {'UCX_TLS': 'rc'}) == {'UCX_TLS': 'rc'}
    for rules, name in ((base, 'UCX_TLS'), (peak, 'OMPI_MCA_pml'), (base, 'LD_PRELOAD')):
        with pytest.raises(AssayError, match=f'sets {name}, which the rules'):
            allowed_variables(rules, {name: 'x'})


def test_what_slurm_puts_into_each_allocation_tunes_nothing():
    base = TuningRules(category='base', text='x')
    assert allowed_variables(base, OF_THE_SCHEDULER) == {}
    for name in OF_THE_SCHEDULER:
        with pytest.raises(AssayError, match=f'sets {name}, which the rules'):
            allowed_variables(base, {name: 'ssh'})


def test_what_the_virtual_cluster_sets_on_its_head_tunes_nothing(tmp_path):
    base = TuningRules(category='base', text='x')
    assert allowed_variables(base, Node(tmp_path, 0).environment) == {}


def test_a_cluster_that_has_to_be_started_first_decides_nothing(tmp_path, monkeypatch, capsys):
    for name in [name for name in os.environ if name.startswith(TUNING)]:  # of this machine
        monkeypatch.delenv(name)
    monkeypatch.setattr(cluster, 'STATE', tmp_path / 'vcluster')
    monkeypatch.setattr(running, 'prepare_acceptance', lambda *_: on_the_cluster())
    here, new = paths.ROOT / 'contract.yaml', paths.ROOT / 'new'
    for command in (lambda: accept.plan(here), lambda: accept.run(here, new)):
        with pytest.raises(SystemExit) as ended:
            command()
        assert ended.value.code == 3
        assert 'no virtual cluster is up. Start one: ' in capsys.readouterr().err
    assert not new.exists()


def on_the_cluster() -> Prepared:
    suite = Suite(RunFolder(Path()), 'vcluster:srun', 'acceptance', (), {})
    return Prepared(contract(), suite, reframe_options.read_options([]))


@pytest.mark.parametrize('place', ['/tmp', '/dev/shm'])
def test_nothing_is_kept_where_it_goes_with_the_virtual_cluster(place, monkeypatch, capsys):
    monkeypatch.setattr(running, 'prepare_acceptance', lambda *_: on_the_cluster())
    here, there = paths.ROOT / 'contract.yaml', Path(place, 'of', 'mine')
    for command in (lambda: accept.plan(there), lambda: accept.run(here, there)):
        with pytest.raises(SystemExit) as ended:
            command()
        assert ended.value.code == 2
        assert f'assay: {there}: each node of the virtual' in capsys.readouterr().err


def test_without_a_history_nothing_is_known(tmp_path):
    history = load_history(tmp_path / 'results.db')
    asked = [wanted(commitment()), wanted(commitment(expected_spread=0.1))]
    assert seconds(case_histories(history, 'generic'), asked) == [None, None]
    unknown, expected = spreads(history, asked)
    assert unknown is None and expected.source == 'the contract'


@pytest.mark.parametrize(
    'option', ['export=ALL,UCX_TLS=rc', '--exp=UCX_TLS', '#SBATCH -N1 --export=A=1', 'v=UCX_TLS=rc']
)
def test_no_option_of_jobs_sets_variables_past_the_rules(option, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        accept.run(tmp_path / 'none.yaml', tmp_path, [option])
    assert ended.value.code == 2
    assert f'--job-option {option}: it may set variables' in capsys.readouterr().err


def test_other_options_of_jobs_are_left_alone():
    assert_no_variables(['reservation=expo', '--time=1:00:00', 'exclusive', '#SBATCH --mem=0'])


def test_a_plan_counts_jobs_and_time_and_tells_what_would_hold():
    two = (commitment(id='a', runs=5), commitment(id='b', figure='other', runs=3))
    cases = [replace(wanted(one), case=replace(wanted(one).case, nodes=4)) for one in two]
    found = plan_acceptance(contract(*two), cases, [60, 60], [Spread(0.02, ''), Spread(0.02, '')])
    assert (found.jobs, found.seconds, found.node_hours) == (5, 300, pytest.approx(1 / 3))
    assert (found.is_held, found.exit_code) == (True, 0)
    loose = plan_acceptance(contract(*two), cases, [60, None], [Spread(0.2, ''), Spread(0.02, '')])
    assert (loose.exit_code, loose.held.needed.keys()) == (1, {'a'})
    needed = loose.held.needed['a']
    assert f'a: {needed} runs would hold its part of both risks' in risks(loose)
    few = plan_acceptance(contract(*two, most_jobs=5), cases, [60, 60], [Spread(0.02, '')] * 2)
    assert few.exit_code == 0
    unknown = plan_acceptance(contract(*two), cases, [60, 60], [None, Spread(0.02, '')])
    assert (unknown.exit_code, unknown.curve) == (3, ())


def test_what_is_given_up_is_in_no_plan():
    two = (commitment(id='a'), commitment(id='b', figure='other'))
    waiver = {'commitment': 'a', 'by': 'S', 'reason': 'r'}
    terms = contract(*two, waivers=(waiver,))
    cases = [wanted(two[0], case='X'), wanted(two[1], case='Y')]
    found = plan_acceptance(terms, cases, [1, 1], [None, Spread(0.02, '')])
    assert (found.names, found.exit_code, found.jobs) == (('b',), 0, 3)
    now = status_of(terms, entries(BEGUN), {})
    assert [one.name for one in next_cases(now, cases)] == ['Y']


@pytest.mark.parametrize('other', [{'partition': 'fast'}, {'environ': 'other'}])
def test_values_of_two_cases_are_never_taken_together(other):
    runs = [(1, run_of(golden())), (2, run_of(golden(**other))), (3, run_of(golden()))]
    first, second, third = outcomes(commitment(), runs)
    assert (first.value, first.why) == (third.value, third.why)
    assert second.value is None
    assert second.why.endswith(f' is another case than {CASE}')


def test_a_report_of_somebody_else_says_nothing_of_a_commitment():
    """Two cases that fit are no value: nobody chooses one of them."""
    report = golden()
    own = [case for case in report['runs'][0]['testcases'] if not case['fixture']]
    other = copy.deepcopy(own[0]) | {'partition': 'other'}
    report['runs'][0]['testcases'].append(other)
    assert value_of(report) == (None, '2 cases of the run fit')
