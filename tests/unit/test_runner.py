"""Sessions one after the other: each is judged, its verdict stored, and few folders stay."""

import json
import signal
import uuid
from functools import partial

import pytest

from assay import AssayError, paths
from assay.results import store
from assay.results.runner import Runner
from assay.running import runs
from assay.running.reframe_options import Given
from assay.running.supervise import Ended
from reports import LOG, passing
from stored import put

GIVEN = Given(frozenset(), None, [], [], [], [], None, None)


class Suite:
    """Whose sessions leave these reports, and end so."""

    def __init__(self, database, *ends):
        self.database, self.ends, self.own = database, [*ends], runs.begin_run()
        self.purposes = []

    def run(self, own, label, options, handles, audience, purpose, exports):
        report, end = self.ends.pop(0)
        self.purposes.append(purpose)
        report['session_info']['uuid'] = str(uuid.uuid4())
        own.log.write_text('\n'.join(LOG))
        own.report.write_text(json.dumps(report))
        put(self.database, report)
        return end


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, 'RUNS', tmp_path / 'runs')
    found = tmp_path / 'perflogs' / 'results.db'
    monkeypatch.setattr(store, 'keep_verdict', partial(store.keep_verdict, database=found))
    return found


def runner(suite, purpose='compare'):
    return Runner(suite, GIVEN, [], purpose, suite.own)


def test_a_session_is_judged_and_its_verdict_stored(database, golden_report):
    suite = Suite(database, (passing(golden_report('Passed')), Ended()))
    one = runner(suite)
    ended = one.run(one.begin(), None, [])
    assert (ended.verdict.word, ended.stopped, ended.problems) == ('PASSED', None, ())
    assert store.verdicts(database)[ended.run.uuid][0] == 'PASSED'
    assert suite.purposes == ['compare']


def test_a_session_that_was_stopped_tells_by_what(database, golden_report):
    stopped = Ended(-signal.SIGTERM, signal.SIGTERM)
    one = runner(Suite(database, (passing(golden_report('Passed')), stopped)))
    ended = one.run(one.begin(), None, [])
    assert ended.stopped is signal.SIGTERM and one.signals == [signal.SIGTERM]
    assert store.verdicts(database)[ended.run.uuid][0] == 'FAILED'


def test_a_verdict_that_cannot_be_stored_is_a_problem(database, golden_report, monkeypatch):
    def refuse(*_):
        raise AssayError('the disk is full')

    monkeypatch.setattr(store, 'keep_verdict', refuse)
    one = runner(Suite(database, (passing(golden_report('Passed')), Ended())))
    ended = one.run(one.begin(), None, [])
    assert (ended.verdict.word, ended.problems) == ('PASSED', ('the disk is full',))


def test_of_good_sessions_of_a_kind_the_newest_keeps_its_folder(database, golden_report):
    suite = Suite(database)
    one = runner(suite)
    folders = []
    for kind, is_good in ((0, True), (1, True), (0, False), (0, True), (1, True)):
        own = one.begin()
        folders.append(own.folder)
        (own.folder / 'stage').mkdir()  # as of all that had jobs
        one.release(own, is_good, kind)
        assert not own.is_under_way
    assert folders[0] == suite.own.folder
    assert [folder.is_dir() for folder in folders] == [False, False, True, True, True]
    one.begin_stage()
    one.release(one.begin(), True)
    assert folders[3].is_dir()
