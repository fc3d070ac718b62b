"""Nights of a suite whose runs are made up."""

import json
from contextlib import nullcontext
from functools import partial

from assay import paths
from assay.nights import measuring, night
from assay.nights.night import Folder, Night
from assay.nights.outcome import NightMemory
from assay.results import store
from assay.results.history import load_history
from assay.running import reframe_options, runs
from assay.running.supervise import Ended
from changing import changing
from reports import LOG
from sessions import Machine
from stored import put

HERE = {
    'systems': [{'partitions': [{'name': 'node', 'scheduler': 'local'}]}],
    'environments': [],
}


class Site(Machine):
    """A suite whose runs are made up: each case a little different in each."""

    is_one_job = False

    def load(self):
        return HERE

    def in_one_job(self, *about):
        return nullcontext('7')

    def run(self, own, text, options, handles, audience):
        excluded = [one.partition('=')[2] for one in options if one.startswith('--exclude=')]
        (own.folder / 'stage').mkdir()
        own.log.write_text('\n'.join(LOG))
        self.ran.append(len(excluded))
        self.labels.append(text)
        report = self.report('openmpi', excluded, text=text)
        put(self.database, report)
        own.report.write_text(json.dumps(report))
        return self.ends.pop(len(self.ran), Ended())


def night_site(tmp_path, golden_report, monkeypatch):
    """One that has run no night yet; a fixture of the tests of nights."""
    monkeypatch.setattr(paths, 'RUNS', tmp_path / 'runs')
    monkeypatch.setattr(paths, 'NIGHTS', tmp_path / 'nights')
    monkeypatch.setattr(paths, 'REFERENCES', tmp_path)
    one = Site(tmp_path / 'perflogs' / 'results.db', golden_report)
    one.told = tmp_path / 'told'
    monkeypatch.setattr(night.settings, 'load_system', lambda system: HERE)
    monkeypatch.setattr(measuring, 'load_history', lambda: load_history(one.database))
    monkeypatch.setattr(measuring, 'make_ready', lambda *about: [])
    keep = partial(store.keep_verdict, database=one.database)
    monkeypatch.setattr(store, 'keep_verdict', keep)
    monkeypatch.setenv('COLUMNS', '200')
    return one


def spend(site, command=None, **others):
    """A night; its exit code, and what people were told."""
    site.told.unlink(missing_ok=True)
    site.own = runs.begin_run()
    given = reframe_options.read_for('a night', [])
    command = command or f'(echo "$ASSAY_VERDICT: $ASSAY_SUBJECT"; cat) >{site.told}'
    about = {'suite': site, 'system': 'toy', 'mode': 'smoke', 'given': given, 'options': []}
    code = Night(**about | {'margin': 0.05, 'command': command} | others).spend()
    return code, site.told.read_text() if site.told.exists() else None


def good_nights(site):
    """Six of them, which people know of."""
    reports = [site.report('openmpi', days=6 - number) for number in range(6)]
    put(site.database, *reports)
    site.number += 10_000  # of what follows, each a later second of today
    Folder('toy', 'smoke').write(
        NightMemory(good=tuple(one['session_info']['uuid'] for one in reports))
    )


def remembered():
    return Folder('toy', 'smoke').read()


@changing
def slower(name, number, case, values, fabric='tcp', factor=1.3):
    if case['fabric'] == fabric:
        values['latency'] *= factor


@changing
def failing(name, number, case, values, fabric='tcp', reason='no answer'):
    if case['fabric'] == fabric:
        case |= {'result': 'fail', 'fail_phase': 'sanity', 'fail_reason': reason}


@changing
def late(name, number, case, values, fabric='tcp'):
    """Of a case that the job for all had no time left for."""
    if case['fabric'] == fabric:
        case |= {'result': 'skip', 'jobid': '7+2', 'time_run': 700.0, 'time_sanity': None}
        values.clear()


def nothing(*about):
    pass
