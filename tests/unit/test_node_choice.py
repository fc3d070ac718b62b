"""On which of the free nodes cases run, where a run says how."""

import json
import math
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import polars as pl
import pytest
from reframe.core.exceptions import JobSchedulerError
from reframe.core.schedulers import slurm

from assay import AssayError
from assay.machine.slurm import ConstraintError, nodes_with, switches
from assay.results import node_turns
from assay.running import allocation, node_choice, slurm_jobs
from assay.running.node_choice import NodeChoice, way_of
from assay.running.node_plan import NodePlan, Want
from assay.running.selection import Listed

NODES = [f'n{number}' for number in range(1, 7)]
SWITCHES = {'s1': ['n1', 'n2', 'n3'], 's2': ['n4', 'n5'], 's3': ['n6', 'n7']}


@pytest.mark.parametrize(
    'topology',
    [
        'SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-3]\n'
        'SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n4\n'
        'SwitchName=core Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[1-2]\n',
        'BlockName=s1 BlockIndex=0 Nodes=n[1-3] BlockSize=4\nBlockName=s2 BlockIndex=1 Nodes=n4\n'
        'AggregatedBlock=s[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=8\n',
    ],
)
def test_switches_and_blocks(monkeypatch, topology):
    monkeypatch.setattr('assay.machine.slurm.query', lambda *command: topology)
    assert switches() == {'s1': ('n1', 'n2', 'n3'), 's2': ('n4',)}


def test_those_that_had_no_case_for_the_longest_time():
    choice = NodeChoice('turn', {'n1': 5.0, 'n2': 3.0, 'n4': 4.0}, {})
    free = ['n1', 'n2', 'n3', 'n4']
    assert choice.choose(free, 2) == choice.choose(free, 2) == ['n3', 'n2']
    assert [choice.take(free, 2) for _ in range(3)] == [['n3', 'n2'], ['n4', 'n1'], ['n2', 'n3']]
    assert choice.choose(free, 5) == []


def test_at_random():
    choice = NodeChoice('random', {}, {})
    drawn = {frozenset(choice.take(NODES, 2)) for _ in range(200)}
    assert all(len(two) == 2 for two in drawn)
    assert len(drawn) > 3


@pytest.mark.parametrize(
    ('free', 'count', 'chosen'),
    [
        (['n1', 'n2', 'n4', 'n5'], 2, ['n4', 'n5']),  # n1 was used
        (['n1', 'n2', 'n4'], 2, ['n2', 'n1']),
        (['n1', 'n4', 'n6'], 1, ['n4']),
        (['n1', 'n2', 'n4', 'n6'], 3, ['n2', 'n1', 'n4']),  # of two switches, not of three
        (['n1', 'n8', 'n9'], 2, ['n8', 'n9']),  # of no switch that is known
    ],
)
def test_behind_one_switch(free, count, chosen):
    assert NodeChoice('switch', {'n1': 1.0}, SWITCHES).choose(free, count) == chosen


def test_words_that_are_no_way():
    assert way_of('switch') == 'switch'
    with pytest.raises(AssayError, match=r'--choose-nodes turns: no way has this name.* turn'):
        way_of('turns')


def test_a_command_tells_reframe_s_process(tmp_path):
    path = tmp_path / 'nodes.json'
    assert node_choice.choice_of_run({}) is None
    NodeChoice('switch', {'n1': 1.0}, {'s1': ('n1', 'n2')}).write(path)
    choice = node_choice.choice_of_run({node_choice.VARIABLE: str(path)})
    assert choice.choose(['n1', 'n2', 'n3'], 2) == ['n2', 'n1']
    with pytest.raises(AssayError, match='cannot be written'):
        choice.write(tmp_path / 'no' / 'nodes.json')


def test_cases_of_one_job_are_on_the_nodes_that_are_chosen():
    choice = NodeChoice('turn', {'n1': 2.0, 'n2': 1.0}, {})
    plan = NodePlan(['n1', 'n2', 'n3'], choose=choice.take)
    plan.add('pair', Want(2))
    plan.add('there', Want(1, frozenset({'n1', 'n2'})))
    assert plan.next() == ('pair', ['n3', 'n2'])
    assert plan.next() == ('there', ['n1'])
    plan.add('large', Want(3))
    plan.has_ended(['n3', 'n2'])
    assert plan.next() is None
    plan.has_ended(['n1'])
    assert sorted(plan.next()[1]) == ['n1', 'n2', 'n3']


@pytest.mark.parametrize(
    ('jobs', 'named'),
    [
        ([], ['--nodelist=n3,n2']),
        (['nodes=3'], ['--nodelist=n3,n2,n1']),
        (['N=1-2'], ['--nodelist=n3']),
        (['exclude=n3'], ['--nodelist=n2,n1']),
        (['nodelist=n1'], ['--nodelist=n1']),
        (['constraint=gpu'], ['--nodelist=n2,n1']),
        (['constraint=[a|b]', 'nodes=2'], []),
    ],
)
def test_the_nodes_of_one_job_for_all_cases(monkeypatch, jobs, named):
    states = dict.fromkeys(['n1', 'n2', 'n3'], 'idle') | {'n0': 'mixed', 'n4': 'idle*'}
    monkeypatch.setattr(allocation, 'node_states', lambda partitions: states)
    monkeypatch.setattr(allocation, 'most_nodes', lambda partitions: 9)
    monkeypatch.setattr('assay.machine.slurm.records', lambda what: FEATURES)
    partition = {'name': 'a', 'scheduler': 'slurm', 'max_jobs': 1}
    choice = NodeChoice('turn', {'n1': 2.0, 'n2': 1.0}, {})
    site = {'systems/0/partitions': [partition]}
    asked = allocation.request(site, [Listed('x', 's:a', 'e', nodes=2)], jobs, None, choice)
    assert [one for one in asked if one.startswith('--nodelist')] == named


FEATURES = [
    {'NodeName': 'n1', 'AvailableFeatures': 'gpu,big'},
    {'NodeName': 'n2', 'AvailableFeatures': 'gpu'},
    {'NodeName': 'n3', 'AvailableFeatures': 'big'},
    {'NodeName': 'n4', 'AvailableFeatures': '(null)'},
]


@pytest.mark.parametrize(
    ('constraint', 'nodes'),
    [
        ('gpu', ['n1', 'n2']),
        ('gpu&big', ['n1']),
        ('gpu,big', ['n1']),
        ('gpu|big', ['n1', 'n2', 'n3']),
        ('g', []),
        ('(gpu)&(big)', ['n1']),
        ('(gpu|big)&gpu', ['n1', 'n2']),
        ('(gpu)', ['n1', 'n2']),
        ('(gpu&big)|(big)', ['n1', 'n3']),
    ],
)
def test_the_nodes_that_satisfy_a_constraint(monkeypatch, constraint, nodes):
    monkeypatch.setattr('assay.machine.slurm.records', lambda what: FEATURES)
    assert sorted(nodes_with(constraint)) == nodes


@pytest.mark.parametrize(
    'constraint', ['gpu*2', '[a|b]', '(a)&b|c', 'a|b&c', 'a&', '!a', '(a', 'a)']
)
def test_a_constraint_that_only_slurm_understands(constraint):
    with pytest.raises(ConstraintError, match='only Slurm can tell'):
        nodes_with(constraint)


class Idle(SimpleNamespace):
    """A node, as ReFrame has it."""

    __hash__ = object.__hash__


@pytest.fixture
def scheduler(monkeypatch, tmp_path):
    """Slurm with three idle nodes, of which the first had a case last."""
    path = tmp_path / 'nodes.json'
    path.write_text(json.dumps({'way': 'turn', 'used': {'n1': 2.0, 'n2': 1.0}, 'switches': {}}))
    monkeypatch.setenv(node_choice.VARIABLE, str(path))
    made = slurm_jobs.WithoutDatabase.__new__(slurm_jobs.WithoutDatabase)
    idle = {Idle(name=name, states={'IDLE'}) for name in ('n1', 'n2', 'n3')}
    made.allnodes = lambda: idle
    made.filternodes = lambda job, nodes: nodes
    monkeypatch.setattr(slurm_jobs.WithoutDatabase, '_nodes', (-math.inf, frozenset()))
    made._promised = node_choice.Promised(lambda job: job.state == 'COMPLETED')
    monkeypatch.setattr(slurm.SlurmJobScheduler, 'emit_preamble', lambda self, job: job.options)
    return made


def job(nodes, name='rfm_Ring'):
    return SimpleNamespace(
        name=name,
        num_tasks=4 * nodes,
        num_tasks_per_node=4,
        sched_access=['-p all'],
        options=['-H'],
        cli_options=[],
        state='PENDING',
    )


@pytest.mark.parametrize(
    ('access', 'asked', 'node'),
    [
        ('-C gpu', [], 'n2'),
        ('-p all', ['--constraint=gpu,big'], 'n1'),
        ('-C gpu', ['--constraint=big'], 'n1'),
        ('-C gpu|big', ['-C big'], 'n3'),
        ('-C [gpu|big]', [], None),
    ],
)
def test_nodes_that_are_chosen_satisfy_all_constraints(scheduler, access, asked, node):
    for one in scheduler.allnodes():
        one.active_features = {'n1': ['gpu', 'big'], 'n2': ['gpu'], 'n3': ['big']}[one.name]
    one = job(1)
    one.sched_access, one.cli_options = [access], asked
    assert scheduler.emit_preamble(one) == ['-H', *([f'--nodelist={node}'] if node else [])]


def test_jobs_of_their_own_are_on_the_nodes_that_are_chosen(scheduler):
    first, second, third = job(1), job(2), job(1)
    assert scheduler.emit_preamble(first) == ['-H', '--nodelist=n3']
    assert scheduler.emit_preamble(second) == ['-H', '--nodelist=n2,n1']
    assert scheduler.emit_preamble(third) == ['-H']  # all are promised: Slurm chooses
    first.state = second.state = 'COMPLETED'
    assert scheduler.emit_preamble(job(1)) == ['-H', '--nodelist=n3']


def test_slurm_is_asked_once_for_the_nodes_of_many_jobs(scheduler, monkeypatch):
    asked, now, nodes = [], 100.0, scheduler.allnodes()
    monkeypatch.setattr(slurm_jobs.time, 'monotonic', lambda: now)
    scheduler.allnodes = lambda: asked.append(now) or nodes
    other = slurm_jobs.WithDatabase.__new__(slurm_jobs.WithDatabase)  # of another partition
    other.allnodes, other.filternodes = scheduler.allnodes, lambda job, nodes: nodes.clear() or {}
    jobs = [job(1), job(2)]
    for one in jobs:
        scheduler.emit_preamble(one)
    assert other.emit_preamble(job(1)) == ['-H']
    assert asked == [100.0]
    jobs[0].state = 'COMPLETED'
    now += 1
    assert scheduler.emit_preamble(job(1)) == ['-H', '--nodelist=n3'] and asked == [100.0]
    assert scheduler.emit_preamble(job(1)) == ['-H'] and asked == [100.0]
    jobs[1].state = 'COMPLETED'
    now += 2
    assert scheduler.emit_preamble(job(1)) == ['-H', '--nodelist=n1']
    assert asked == [100.0, 103.0]


@pytest.mark.parametrize(
    ('state', 'nodes'),
    [
        ('idle+reserved', ['--nodelist=n3']),
        ('idle+maintenance+reserved', ['--nodelist=n3']),
        ('idle+cloud+powered_down', ['--nodelist=n3']),
        ('idle+planned', []),
        ('idle+drain', []),
        ('mixed', []),
    ],
)
def test_nodes_that_are_free(scheduler, state, nodes):
    """Of a reservation that is not the job's there are none after the filter."""
    for node in scheduler.allnodes():
        node.states = {*state.upper().split('+')}
    assert scheduler.emit_preamble(job(1)) == ['-H', *nodes]


def test_builds_have_any_node(scheduler):
    assert scheduler.emit_preamble(job(1, 'rfm_build_BuildSources')) == ['-H']


def test_no_choice_where_slurm_does_not_tell_its_nodes(scheduler, monkeypatch):
    def away():
        raise JobSchedulerError('no controller')

    scheduler.allnodes = away
    assert scheduler.emit_preamble(job(1)) == ['-H']
    monkeypatch.delenv(node_choice.VARIABLE)
    assert scheduler.emit_preamble(job(1)) == ['-H']


NOW = datetime.now(timezone.utc)


class Stored:
    """A history of jobs: nodes, and how many days ago."""

    def __init__(self, jobs):
        self.runs = [
            SimpleNamespace(summary=SimpleNamespace(system=name), is_of_the_future=False, name=name)
            for name in ('made', 'other')
        ]
        self._jobs = jobs

    def figures(self, runs):
        assert [run.name for run in runs] == ['made']
        times = [NOW - timedelta(days=days) for _, days in self._jobs]
        return pl.DataFrame({'nodes': [nodes for nodes, _ in self._jobs], 'measured': times})


def test_when_nodes_had_their_last_case():
    stored = Stored([('n[1-2]', 3), ('n2', 1), (None, 1), ('n[', 1)])
    used = node_turns.last_used(stored, 'made:batch')
    ages = {node: round((NOW.timestamp() - when) / 86400) for node, when in used.items()}
    assert ages == {'n1': 3, 'n2': 1}


SITE = {'systems/0/partitions': [{'name': 'a', 'scheduler': 'slurm', 'access': ['-p all']}]}


@pytest.mark.parametrize(
    ('jobs', 'told'),
    [
        ([('n[1-3]', 1)], 'each of 3 nodes had a case within a week'),
        ([('n1', 1), ('n2', 8)], '2 of 3 nodes had no case within a week: n[2-3]'),
    ],
)
def test_nodes_without_a_turn_are_told(monkeypatch, capsys, jobs, told):
    monkeypatch.setattr(node_turns, 'load_history', lambda: Stored(jobs))
    states = {'n1': 'idle', 'n2': 'allocated', 'n3': 'mixed', 'n4': 'drained: fan'}
    monkeypatch.setattr(allocation, 'node_states', lambda partitions: states)
    node_turns.tell_turns(SimpleNamespace(system='made'), SITE, [])
    assert capsys.readouterr().err == f'Assay: {told}\n'


def test_nodes_that_are_excluded_have_no_turn(monkeypatch):
    monkeypatch.setattr(node_turns, 'load_history', lambda: Stored([('n1', 1)]))
    states = dict.fromkeys(['n1', 'n2', 'n3', 'n4'], 'idle')
    monkeypatch.setattr(allocation, 'node_states', lambda partitions: states)
    access = {'name': 'a', 'scheduler': 'slurm', 'access': ['-p all', '--exclude=n[2-3]']}
    suite, site = SimpleNamespace(system='made'), {'systems/0/partitions': [access]}
    assert node_turns.turns(suite, site, NOW.timestamp()).late == ('n1', 'n4')
    assert node_turns.turns(suite, site, NOW.timestamp(), ['x=n4']).late == ('n1', 'n2', 'n3')


@pytest.mark.parametrize(
    ('jobs', 'late'),
    [([], ('n1', 'n2', 'n3')), (['constraint=big'], ('n1', 'n3')), (['C=[gpu|big]'], None)],
)
def test_nodes_that_do_not_satisfy_a_constraint_have_no_turn(monkeypatch, jobs, late):
    monkeypatch.setattr(node_turns, 'load_history', lambda: Stored([('n1', 1)]))
    states = dict.fromkeys(['n1', 'n2', 'n3', 'n4'], 'idle')
    monkeypatch.setattr(allocation, 'node_states', lambda partitions: states)
    monkeypatch.setattr('assay.machine.slurm.records', lambda what: FEATURES)
    access = {'name': 'a', 'scheduler': 'slurm', 'access': ['-p all', '-C gpu|big']}
    suite, site = SimpleNamespace(system='made'), {'systems/0/partitions': [access]}
    if late:
        assert node_turns.turns(suite, site, NOW.timestamp(), jobs).late == late
        return
    with pytest.raises(ConstraintError):
        node_turns.turns(suite, site, NOW.timestamp(), jobs)


def test_nodes_of_a_reservation_have_their_turn_in_it(monkeypatch):
    monkeypatch.setattr(node_turns, 'load_history', lambda: Stored([('n9', 1)]))
    states = {'n1': 'idle', 'n2': 'maint', 'n3': 'reserved', 'n4': 'allocated'}
    monkeypatch.setattr(allocation, 'node_states', lambda partitions: states)
    monkeypatch.setattr(allocation, 'reserved_nodes', lambda names: {'n2', 'n4'})
    suite = SimpleNamespace(system='made')
    for jobs, late, free in (
        ([], ('n1', 'n4'), ['n1']),
        (['reservation=x'], ('n2', 'n4'), ['n2']),
    ):
        now = node_turns.turns(suite, SITE, NOW.timestamp(), jobs)
        assert (now.late, now.free) == (late, free)


def test_only_slurm_is_told_nodes(tmp_path, monkeypatch):
    monkeypatch.setattr(node_turns, 'load_history', lambda: Stored([('n1', 1)]))
    monkeypatch.setattr(node_turns, 'switches', lambda: {})
    suite = SimpleNamespace(system='made', environment={})
    own = SimpleNamespace(folder=tmp_path)
    node_turns.use_chosen_nodes(suite, SITE, 'turn', own)
    choice = node_choice.choice_of_run(suite.environment)
    assert choice.choose(['n1', 'n2'], 1) == ['n2']
    local = {'systems/0/partitions': [{'name': 'a', 'scheduler': 'local'}]}
    with pytest.raises(AssayError, match='the scheduler of a is local'):
        node_turns.use_chosen_nodes(suite, local, 'turn', own)
