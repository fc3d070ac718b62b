"""The journal of an acceptance: what is written, and what a machine that stopped leaves."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from accepted import started
from assay import AssayError, paths
from assay.acceptance import journal
from assay.acceptance.files import Checksum, canonical, digest, parse_record
from assay.acceptance.journal import Begun, Interrupted, Resumed, RunEnded, Torn

BEGUN = Begun(contract='c', commit='d', system='golden')
STARTED = started(1).model_dump(mode='json')
END = RunEnded(run=1, uuid='u', word='PASSED', files={})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / 'journal.jsonl'
    journal.begin_journal(path, BEGUN)
    return path


def kinds(path):
    chain = journal.read_journal(path)
    assert not chain.faults
    return [entry.what.kind for entry in chain.entries]


def test_entries_are_a_chain(path):
    journal.append(path, started(1))
    journal.append(path, END)
    lines = path.read_bytes().splitlines()
    entries = [json.loads(line) for line in lines]
    assert [entry['number'] for entry in entries] == [1, 2, 3]
    assert entries[0]['before'] == journal.NOTHING
    assert [entry['before'] for entry in entries[1:]] == [digest(line) for line in lines[:2]]
    assert all(canonical(parse_record(line)) == line for line in lines)
    chain = journal.read_journal(path)
    assert (chain.head, chain.torn, chain.faults) == (digest(lines[2]), b'', ())
    assert not [*journal.run_faults(chain.entries)]


def test_an_acceptance_is_begun_once(path):
    with pytest.raises(AssayError, match='is there: an acceptance is begun in a folder of its own'):
        journal.begin_journal(path, BEGUN)


def test_a_journal_whose_name_may_not_outlive_a_power_cut_is_not_begun(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, 'No space left on device')

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(AssayError, match='cannot be made: No space left'):
        journal.begin_journal(tmp_path / 'journal.jsonl', BEGUN)


def test_a_damaged_journal_gets_no_entry(path):
    path.write_bytes(path.read_bytes().replace(b'golden', b'silver'))
    journal.append(path, Resumed())  # the chain of one entry is whole, whatever it says
    path.write_bytes(path.read_bytes().replace(b'silver', b'golden'))
    for what in (lambda: journal.append(path, Resumed()), lambda: journal.resume_journal(path, {})):
        with pytest.raises(AssayError, match='what stands before line 2 was changed'):
            what()


@pytest.mark.parametrize('cut', [1, 20, 100])
def test_a_torn_line_is_told_and_counted(path, cut):
    """Power went while the end of a run was written: nothing is repaired, and nothing lost."""
    journal.append(path, started(1))
    whole = path.read_bytes()
    journal.append(path, END)
    torn = path.read_bytes()[len(whole) : -cut]
    path.write_bytes(whole + torn)
    assert journal.read_journal(path).torn == torn
    with pytest.raises(AssayError, match='its last line is torn: resume the acceptance first'):
        journal.append(path, Resumed())
    left = {'jobs/1/log': Checksum(sha256='0' * 64, size=4)}
    new = journal.resume_journal(path, {1: left})
    assert [entry.what for entry in new] == [
        Torn(sha256=digest(torn), size=len(torn)),
        Interrupted(run=1, files=left),
        Resumed(),
    ]
    assert torn in path.read_bytes()
    journal.append(path, started(2))
    assert kinds(path) == ['begun', 'started', 'torn', 'interrupted', 'resumed', 'started']
    # The torn line is part of the chain.
    path.write_bytes(path.read_bytes().replace(torn + b'\n', torn[:-1] + b'\n'))
    assert journal.read_journal(path).faults


def test_a_line_that_was_made_to_look_torn(path):
    """Nobody can hide an entry by cutting it."""
    journal.append(path, started(1))
    journal.append(path, Resumed())
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:-20] + b'\n' + lines[2])
    assert 'line 2 was changed: it is not JSON' in journal.read_journal(path).faults


def test_a_clock_that_is_set_back(path, monkeypatch):
    real = datetime.now(timezone.utc)

    class Clock(datetime):
        back = timedelta(0)

        @classmethod
        def now(cls, zone):
            return real + timedelta(hours=1) - cls.back

    monkeypatch.setattr(journal, 'datetime', Clock)
    journal.append(path, started(1))
    Clock.back = timedelta(minutes=1)
    with pytest.raises(AssayError, match='set the clock of this machine right'):
        journal.append(path, Resumed())
    Clock.back = timedelta(0)
    assert kinds(path) == ['begun', 'started']


@pytest.mark.parametrize(
    ('entries', 'words'),
    [
        ([started(2)], 'entry 2 starts run 2, and run 1 is the next'),
        ([started(1), started(1)], 'entry 3 starts run 1, and run 2 is the next'),
        ([END], 'entry 2 ends run 1, which no entry starts'),
        ([started(1), END, END], 'run 1, which has ended before'),
        ([started(1)], 'run 1 was started, and no entry tells how it ended'),
    ],
)
def test_runs_and_their_ends(path, entries, words):
    for one in entries:
        journal.append(path, one)
    told = [*journal.run_faults(journal.read_journal(path).entries)]
    assert any(words in one for one in told)


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        ({'number': True}, 'it is not JSON'),
        ({'number': 0}, '0 is no number of an entry'),
        ({'kind': 'undone'}, "'undone' is no kind of entry"),
        ({'kind': []}, '[] is no kind of entry'),
        ({'what': {}}, 'an entry begun is not so: contract: Field required'),
        ({'what': []}, 'an entry begun is not so: what it tells: '),
        ({'kind': 'resumed', 'what': {'more': 1}}, 'an entry resumed is not so: more: '),
        ({'kind': 'started', 'what': {**STARTED, 'run': '1'}}, 'an entry started is not so: run: '),
        ({'kind': 'started', 'what': {**STARTED, 'run': True}}, 'entry started is not so: run: '),
        ({'kind': 'report', 'what': {'files': {'a': {}}}}, 'report is not so: files.a.sha256: '),
        ({'time': '2026-11-24T05:00:00'}, 'is no time in UTC'),
        ({'time': '2026-11-24T06:00:00.000000+01:00'}, 'is no time in UTC'),
        ({'time': 7}, '7 is no time'),
        ({'more': 1}, 'it is no entry'),
    ],
)
def test_lines_that_are_no_entries(path, change, words):
    line = canonical(json.loads(path.read_bytes()) | change)
    if words == 'it is not JSON':
        line = line.replace(b'true', b'NaN')
    path.write_bytes(line + b'\n')
    (fault,) = journal.read_journal(path).faults[:1]
    assert words in fault and fault.startswith('line 1 was changed: ')


def test_json_has_one_spelling():
    for other in (b'{"a": 1}', b'{"b":1,"a":1}', b'{"a":1,"a":1}', b'{"a":1.0e0}', b'[1]', b'"a"'):
        with pytest.raises(ValueError, match='it is not written as Assay writes it'):
            parse_record(other)
    with pytest.raises(ValueError, match='it is not JSON'):
        parse_record(b'[' * 100_000)


PROGRAM = """
import sys
from pathlib import Path
from assay.acceptance import journal
from assay.acceptance.journal import Started
told = Started(
    run=1, cases=(sys.argv[3],), environment='', folder='', options=(), variables={}
)
for number in range(int(sys.argv[2])):
    journal.append(Path(sys.argv[1]), told)
    print(number, flush=True)
"""


def appending(path, count, text):
    environment = {**os.environ, 'PYTHONPATH': str(paths.ROOT / 'lib')}
    command = [sys.executable, '-c', PROGRAM, str(path), str(count), text]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def test_an_entry_waits_for_another(path):
    """Or two would name the same line as the one before them."""
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        process = appending(path, 1, 'x')
        waits = f'-> FLOCK  ADVISORY  WRITE {process.pid} '
        while waits not in Path('/proc/locks').read_text():
            assert process.poll() is None
            time.sleep(0.01)
        assert kinds(path) == ['begun']
    process.communicate()
    assert kinds(path) == ['begun', 'started']


def test_whoever_is_killed_leaves_a_whole_chain(path):
    process = appending(path, 10_000, 'x' * 4000)
    for _ in range(5):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    chain = journal.read_journal(path)
    assert not chain.faults and len(chain.entries) > 5
    journal.resume_journal(path, {})
    assert kinds(path)[-1] == 'resumed'
