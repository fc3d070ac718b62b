"""Runs on a busy machine, until each node had a case."""

import os
import signal
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from assay import AssayError, one_run, paths
from assay.machine.slurm import AwayError
from assay.one_run import IN_VAIN, LOOK, RunRequest, measure_every_node
from assay.results import node_turns
from assay.results.node_turns import NodeTurns
from assay.results.runner import Concluded
from assay.results.verdict import Verdict
from assay.running import runs
from assay.running.asking import OUTAGE
from assay.tools import NoAnswerError
from command import call

ENDS = {0: Verdict(()), 1: Verdict(('a case failed',)), 3: Verdict((), True)}


class Machine:
    """Four nodes, of which one is down; each run reaches one idle node.

    :ivar frees: seconds after which a node is idle.
    """

    def __init__(self):
        self.states = {'n1': 'idle', 'n2': 'allocated', 'n3': 'idle', 'n4': 'down'}
        self.frees, self.done, self.codes, self.seconds = {}, set(), [], 0.0
        self.reaches, self.stopped, self.has_report = True, None, True

    def turns(self, suite, site, since, jobs=()):
        for node, seconds in self.frees.items():
            if seconds <= self.seconds:
                self.states[node] = 'idle'
        able = {node: state for node, state in self.states.items() if state != 'down'}
        return NodeTurns(able, tuple(node for node in able if node not in self.done))

    def measure(self, request, own):
        if self.reaches:
            self.done.add(self.turns(request.suite, request.site, 0).free[0])
        verdict = ENDS[self.codes.pop(0) if self.codes else 0]
        return Concluded(object() if self.has_report else None, None, verdict, self.stopped)

    def sleep(self, seconds):
        self.seconds += seconds
        assert self.seconds < 100 * LOOK, 'nobody ends it'


@pytest.fixture
def machine(monkeypatch, tmp_path):
    made = Machine()
    clock = SimpleNamespace(
        time=lambda: made.seconds, monotonic=lambda: made.seconds, sleep=made.sleep
    )
    monkeypatch.setattr(one_run, 'time', clock)
    monkeypatch.setattr(one_run, 'measure_once', made.measure)
    monkeypatch.setattr(node_turns, 'turns', made.turns)
    monkeypatch.setattr(node_turns, 'use_chosen_nodes', lambda *about: None)
    monkeypatch.setattr(paths, 'RUNS', tmp_path)
    own = runs.begin_run()
    suite = SimpleNamespace(own=own, in_one_job=lambda *about: nullcontext())
    made.run = lambda budget=None, jobs=(): measure_every_node(
        RunRequest(suite, None, SimpleNamespace(jobs=jobs), None, [], []), budget
    )
    yield made
    os.close(own.handle)


def test_nodes_in_use_have_their_case_later(machine, capsys):
    machine.frees = {'n2': 3 * LOOK}
    assert machine.run() == 0
    assert machine.done == {'n1', 'n2', 'n3'} and machine.seconds == 3 * LOOK
    assert capsys.readouterr().err == (
        'Assay: waiting until a node is idle: 1 of 3 nodes had no case yet: n2\n'
        'Assay: 3 runs: each of 3 nodes had a case in them\n'
    )


def test_a_budget_ends_it(machine, capsys):
    assert machine.run(2.5 * LOOK) == 0
    assert machine.done == {'n1', 'n3'} and machine.seconds == 2.5 * LOOK
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == 'Assay: 2 runs: 1 of 3 nodes had no case in them: n2'


def test_a_budget_in_which_no_node_was_idle_is_no_success(machine):
    machine.states = dict.fromkeys(machine.states, 'mixed')
    assert machine.run(LOOK) == 3


def test_a_node_that_goes_down_is_not_waited_for(machine):
    machine.sleep = lambda seconds: machine.states.update(n2='down')
    one_run.time.sleep = machine.sleep
    assert machine.run() == 0
    assert machine.done == {'n1', 'n3'}


@pytest.mark.parametrize('kind', [AwayError, NoAnswerError])
def test_slurm_is_asked_again_that_is_away_after_a_run(machine, monkeypatch, capsys, kind):
    away = iter([kind('x'), kind('x')])

    def turns(*about):
        if machine.done and (error := next(away, None)):
            raise error
        return machine.turns(*about)

    monkeypatch.setattr(node_turns, 'turns', turns)
    machine.states['n2'] = 'down'
    assert machine.run() == 0
    assert machine.done == {'n1', 'n3'} and machine.seconds == 2 * LOOK
    away = iter([kind('sinfo: no answer')] * 100)
    machine.done, machine.codes = set(), [3]
    assert machine.run(LOOK) == 3
    assert machine.done == {'n1'} and machine.seconds == 2 * LOOK + OUTAGE
    assert capsys.readouterr().err.endswith(
        'Assay: sinfo: no answer\nAssay: 1 run: which nodes had a case is not known\n'
    )


def test_runs_that_reach_no_other_node_end(machine, capsys):
    machine.reaches = False
    machine.codes = [0] * IN_VAIN + [1]
    assert machine.run() == 0
    assert machine.codes == [1]
    assert f'no other node had a case in the last {IN_VAIN} runs' in capsys.readouterr().err


@pytest.mark.parametrize(('codes', 'code'), [([0, 0], 0), ([3, 0], 3), ([1, 3], 1), ([0, 1], 1)])
def test_the_exit_code_is_the_worst(machine, codes, code):
    machine.states['n2'] = 'down'
    machine.codes = codes
    assert machine.run() == code


def test_a_run_that_is_stopped_ends_it(machine):
    machine.stopped = signal.SIGTERM
    assert machine.run() == 143 and len(machine.done) == 1


def test_a_run_without_a_report_ends_it(machine):
    machine.has_report, machine.codes = False, [1]
    assert machine.run() == 1 and len(machine.done) == 1


@pytest.mark.parametrize(
    ('words', 'told'),
    [
        (['--repeat', '2'], 'and --repeat: that is of one run'),
        (['--against', 'last'], 'and --against: '),
        (['--report-junit=x.xml'], 'and --report-junit: '),
        (['--report', 'x.html'], 'and --report: '),
        (['-J', 'nodelist=n1'], 'and -J nodelist: each job would have all'),
        (['-J', '-w n1'], 'and -J nodelist: '),
        (['-l'], 'and --list: nothing would be run'),
        (['--choose-nodes', 'random'], 'takes nodes in turn: leave out --choose-nodes random'),
    ],
)
def test_what_is_not_for_several_runs(words, told):
    with pytest.raises(AssayError, match=f'--every-node {told}'):
        call('run', '--every-node', *words)
