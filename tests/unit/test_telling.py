"""What ReFrame tells of its cases while it runs: as its report has them, and before it ends."""

import json
import os
from types import SimpleNamespace

import pytest

from assay import paths
from assay.results.failures import failure_reason
from assay.results.reframe_report import case_of
from assay.running import reframe_plugin
from assay.running.events import BUILDS, ENDED, NUMBER, ROUND, RUNS, WHY_SKIPPED
from assay.running.runs import RunFolder
from assay.running.supervise import supervise
from reports import cases

TOYS = paths.ROOT / 'tests' / 'golden' / 'reports'
CONFIGURATIONS = [paths.CONFIG / 'common.py', TOYS / 'toy_system.py']

#: What the report alone can have, beside what a clock tells: its own name, names that ReFrame makes
#: of others, and an exception as Python has it.
OF_THE_REPORT = {'uuid', 'session_uuid', 'fail_info', 'basename', 'sysenv'}


class Listener:
    hears_all = False

    def __init__(self):
        self.heard = []

    def hear(self, event):
        self.heard.append(event)
        return False


@pytest.fixture(scope='module')
def told(tmp_path_factory):
    """The events of a run of toys, and its report."""
    run, listener = RunFolder(tmp_path_factory.mktemp('run')), Listener()
    names = '^(Passed|FailedSanity|FailedBuild|Skipped)%'
    selection = ['-c', str(TOYS / 'toys.py'), '-n', names, '--max-retries=1']
    options = ['--perflogdir', str(run.folder), '--system=toy']
    environment = (
        os.environ | run.exports | {'RFM_CONFIG_FILES': ':'.join(map(str, CONFIGURATIONS))}
    )
    command = [str(paths.VENV_BIN / 'reframe'), '-r', *selection, *options]
    end = supervise(command, environment, run, [], listener)
    assert end.code == 1, end.printed
    return listener.heard, json.loads(run.report.read_text())


def of_kind(heard, kind):
    return [event[kind] for event in heard if kind in event]


def test_each_case_is_told_as_the_report_has_it(told):
    heard, report = told
    ended = {(one['run_index'], one['name'], one['environ']): one for one in of_kind(heard, ENDED)}
    assert len(ended) == len(of_kind(heard, ENDED)) == len(cases(report)) == 10 + 5
    for case in cases(report):
        early = ended[case['run_index'], case['name'], case['environ']]
        other = {name for name in case if case[name] != early.get(name)}
        other = {name for name in other if not name.startswith('time_')} - OF_THE_REPORT
        # After a failure of the job ReFrame still looks for figures, of which it has no value.
        assert other == {'perfvalues'} if case['fail_phase'] == 'sanity' else not other
        assert early.keys() <= case.keys() | {WHY_SKIPPED}
        assert failure_reason(case_of(early)) == failure_reason(case_of(case))


def test_what_a_skipped_case_says_is_told(told):
    skipped = [one for one in of_kind(told[0], ENDED) if one['result'] == 'skip']
    assert [one[WHY_SKIPPED] for one in skipped] == [
        'this machine has no shm',
        'this machine has no tcp',
    ]


def test_rounds_builds_and_jobs(told):
    heard, _ = told
    first, second = [event for event in heard if ROUND in event]
    assert heard[0] == first
    assert (first[NUMBER], len(first[ROUND])) == (0, 8)
    assert (second[NUMBER], len(second[ROUND])) == (1, 4)
    assert {one['display_name'] for one in of_kind(heard, BUILDS)} == {
        'Build ~toy:node+gnu',
        'BrokenBuild ~toy:node+gnu',
    }
    ran = [one['display_name'] for one in of_kind(heard, RUNS)]
    assert 'Passed %fabric=shm %layout=packed' in ran
    assert not any(name.startswith(('Skipped', 'FailedBuild', 'Build')) for name in ran)


def test_a_mistake_of_ours_is_seen_and_is_none_of_reframes(monkeypatch, capfd):
    """The task is none, so nothing of it can be told."""
    read, write = os.pipe()
    monkeypatch.setattr(reframe_plugin.rt, 'runtime', lambda: SimpleNamespace(current_run=0))
    teller = reframe_plugin._Teller(write)
    teller.on_task_success(None)
    teller.on_task_skip(None)
    os.close(write)
    with open(read) as pipe:
        assert pipe.read() == ''
    assert capfd.readouterr().err.count('AttributeError') == 2
