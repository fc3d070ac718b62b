"""What is removed from the history as too old, and that nothing else is lost by it."""

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import stored
from assay import AssayError, paths
from assay.results import perflogs, store
from assay.results.history import load_history
from assay.results.run_selectors import choose_runs, kept_since, old_runs
from command import call
from stored import put

HEADER = 'job_completion_time|system|perf_value'


def line(days, value=1):
    return f'{ago(days).replace(tzinfo=None).isoformat()}|toy|{value}'


def write(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(''.join(f'{one}\n' for one in lines).encode())
    return path


def ago(days):
    return (stored.NOW - timedelta(days=days)).astimezone()


# Lines of perflogs --------------------------------------------------------------------------------


def test_lines_of_older_jobs_go_and_all_others_stay(tmp_path):
    zoned = ago(3).astimezone(timezone(timedelta(hours=9))).isoformat()
    kept = [HEADER, line(1), 'null|toy|2', 'cut', f'{zoned}|toy|3', '', HEADER, line(2)]
    path = write(tmp_path / 'Ring.log', *kept[:3], line(9), line(4), *kept[3:], line(5))
    path.chmod(0o640)
    with path.open('ab') as file:
        file.write(b'\xff\n' + line(8).encode() + b'\n2026-11-2')  # whoever wrote it was killed
    assert perflogs.count_before(path, ago(4)) == 3
    assert perflogs.remove_before(path, ago(4)) == 3
    rest = ''.join(f'{one}\n' for one in (*kept[:3], line(4), *kept[3:])).encode()
    assert path.read_bytes() == rest + b'\xff\n2026-11-2'
    assert path.stat().st_mode & 0o777 == 0o640
    before = path.stat().st_ino
    assert perflogs.remove_before(path, ago(4)) == 0
    assert path.stat().st_ino == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ['.Ring.lock', 'Ring.log']


@pytest.mark.skipif(os.geteuid() != 0, reason='only root gives files away')
def test_a_perflog_keeps_its_owner_and_group(tmp_path):
    path = write(tmp_path / 'Ring.log', HEADER, line(9), line(1))
    os.chown(path, 1234, 4321)
    assert perflogs.remove_before(path, ago(4)) == 1
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_a_file_without_the_column_is_none_of_ours(tmp_path):
    path = write(tmp_path / 'Ring.log', 'time|value', line(9))
    assert perflogs.count_before(path, ago(1)) == 0


def test_perflogs_are_found_with_those_that_reframe_renamed(tmp_path):
    found = [write(tmp_path / 'toy' / 'node' / f'Ring.log{end}') for end in ('', '.h0', '.h12')]
    for other in ('.Ring.log.draft', '.Ring.log.h0.draft', '.Ring.lock', 'Ring.log.gz'):
        write(tmp_path / 'toy' / 'node' / other)
    write(tmp_path / 'results.db')
    (tmp_path / 'toy' / 'B.log').mkdir()
    assert perflogs.perflogs(tmp_path) == found


def test_what_vanishes_while_perflogs_are_sought_is_named(tmp_path, monkeypatch):
    def vanish(*_):
        raise FileNotFoundError(2, 'No such file or directory', '/proc/7')
        yield

    monkeypatch.setattr(Path, 'rglob', vanish)
    with pytest.raises(AssayError, match=r"cannot be searched for perflogs: .*'/proc/7'"):
        perflogs.perflogs(tmp_path)


KILLED = """
import sys, time
from datetime import datetime, timezone
from pathlib import Path
from assay.results import perflogs
def replace(draft, path):
    print('written', flush=True)
    time.sleep(600)
Path.replace = replace
perflogs.remove_before(Path(sys.argv[1]), datetime.fromisoformat(sys.argv[2]))
"""


def kill_when_it_says(word, *command, given=''):
    with subprocess.Popen(
        [sys.executable, '-c', *map(str, command)],
        env={**os.environ, 'PYTHONPATH': str(Path(stored.__file__).parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdin.write(given)
        process.stdin.close()
        assert process.stdout.readline() == f'{word}\n'
        process.send_signal(signal.SIGKILL)


def test_a_killed_writer_leaves_the_old_perflog_and_its_lock(tmp_path):
    path = write(tmp_path / 'Ring.log', HEADER, line(9), line(1))
    old = path.read_bytes()
    kill_when_it_says('written', KILLED, path, ago(4).isoformat())
    assert path.read_bytes() == old
    assert perflogs.perflogs(tmp_path) == [path]
    assert perflogs.remove_before(path, ago(4)) == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == ['.Ring.lock', 'Ring.log']


# The command --------------------------------------------------------------------------------------


@pytest.fixture
def history(tmp_path, made, monkeypatch):
    """Runs of 1, 3 and 9 days ago, with perflogs; ``assay history`` finds them."""
    database = tmp_path / 'perflogs' / 'results.db'
    put(database, made(1, days=9), made(2, days=3), made(3, days=1))
    write(database.parent / 'toy' / 'node' / 'Ring.log', HEADER, line(9), line(3), line(1))
    write(database.parent / 'toy' / 'node' / 'Ring.log.h0', HEADER, line(30), line(20))
    monkeypatch.setattr('assay.results.history.load_history', lambda: load_history(database))
    return database


def assay(*options):
    ended = call('forget', *options)
    assert ended.exit_code == 0
    return ended.output


def contents(database):
    found = {path: path.read_bytes() for path in perflogs.perflogs(database.parent)}
    return found, [run.name for run in load_history(database).runs]


def test_what_is_older_than_some_days_is_removed(history):
    before = contents(history)
    told = assay('--keep', '5d', '--dry-run')
    assert contents(history) == before
    folder = history.parent / 'toy' / 'node'
    assert told.splitlines() == [
        f'would remove: {load_history(history).runs[0].uuid} of {ago(9):%Y-%m-%d %H:%M}',
        f'would remove: 1 lines of {folder / "Ring.log"}',
        f'would remove: 2 lines of {folder / "Ring.log.h0"}',
        'would remove in all: runs: 1, lines of perflogs: 3',
    ]
    assert assay('--keep', '5d') == told.replace('would remove', 'removed')
    assert [run.name for run in load_history(history).runs] == ['00000002', '00000003']
    assert (folder / 'Ring.log').read_text().splitlines() == [HEADER, line(3), line(1)]
    assert (folder / 'Ring.log.h0').read_text() == f'{HEADER}\n'
    assert assay('--keep', '5d') == 'removed in all: runs: 0, lines of perflogs: 0\n'
    assay('--keep', f'{ago(1):%Y-%m-%d}')
    assert [run.name for run in load_history(history).runs] == ['00000003']


def test_a_removal_by_words_can_be_seen_before_too(history):
    before = contents(history)
    assert 'would remove: 00000003-' in assay('last', '--dry-run')
    assert contents(history) == before
    assert 'removed: 00000003-' in assay('last')
    assert contents(history) == (before[0], ['00000001', '00000002'])


def test_a_run_without_a_time_is_not_old(history):
    with sqlite3.connect(history) as connection:
        connection.execute("UPDATE sessions SET session_start_unix = 'x' WHERE uuid LIKE '%2'")
    assert [run.name for run in old_runs(load_history(history), ago(2))] == ['00000001']


@pytest.mark.parametrize(
    ('options', 'sentence'),
    [
        (['--keep', '0d'], 'write days such as 365d'),
        (['--keep', '12m'], 'write days such as 365d'),
        (['--keep', '20260329'], 'or YEAR-MONTH-DAY'),
        (['--keep', '2026-W10'], 'or YEAR-MONTH-DAY'),
        (['--keep', '2026-13-01'], 'or YEAR-MONTH-DAY'),
        (['--keep', 'last'], 'write days such as 365d'),
        (['--keep', '99999d', 'last'], 'one of both'),
        (['--keep', '5d', '--system', 'toy'], "leave out '--system'"),
        (['--keep', '2999-01-01'], 'is in the future: nothing would be kept'),
        (['--dry-run'], 'name RUNS to remove, or how long to --keep runs'),
    ],
)
def test_what_makes_no_sense_removes_nothing(history, options, sentence):
    before = contents(history)
    with pytest.raises(AssayError, match=sentence):
        assay(*options)
    assert contents(history) == before


def test_a_file_that_cannot_be_written_is_told(history, monkeypatch):
    def refuse(*_):
        raise OSError(28, 'No space left on device')

    before = contents(history)
    monkeypatch.setattr(Path, 'replace', refuse)
    with pytest.raises(AssayError, match=r'Ring\.log stays as it is: No space left on device'):
        assay('--keep', '5d')
    monkeypatch.undo()
    assert contents(history) == before


def test_days_are_counted_back_from_now():
    assert timedelta(0) < ago(364) - kept_since('365d') < timedelta(days=1, minutes=1)
    assert kept_since('2026-01-01') == datetime(2026, 1, 1).astimezone()


# While ReFrame writes, and where a process is killed ----------------------------------------------

CONFIGURATION = """
site_configuration = {
    'systems': [{'name': 'toy', 'hostnames': ['.*'], 'partitions': [{
        'name': 'node', 'scheduler': 'local', 'launcher': 'local', 'environs': ['gnu']}]}],
    'environments': [{'name': 'gnu'}],
}
"""

CHECK = """
import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, sanity_function
from assay.checks.judged import Attributed

@rfm.simple_test
class Toy(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'sleep 0.2'  # so that lines are removed between

    @sanity_function
    def validate(self):
        return True

    @performance_function('s')
    def seconds(self):
        return 1.5
"""


def reframe(folder, name):
    """ReFrame, in a process of its own, in a configuration of ours: four runs of one check."""
    own = folder / name
    own.mkdir()
    program = Path(sys.executable).with_name('reframe')
    environment = {
        'ASSAY_RUN': str(own),
        'RFM_PREFIX': str(own),
        'RFM_REPORT_FILE': str(own / 'report.json'),
        'RFM_CONFIG_FILES': f'{paths.ROOT / "config" / "common.py"}:{folder / "system.py"}',
        'RFM_PERFLOG_DIR': str(folder / 'perflogs'),
        'RFM_ENABLE_RESULTS_STORAGE': 'yes',
        'RFM_SQLITE_DB_FILE': str(folder / 'perflogs' / 'results.db'),
    }
    return subprocess.Popen(
        [program, '-c', folder / 'toy.py', '-r', '--reruns=3'],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        cwd=own,
    )


def test_nothing_is_lost_while_two_reframes_write(tmp_path):
    (tmp_path / 'system.py').write_text(CONFIGURATION)
    (tmp_path / 'toy.py').write_text(CHECK)
    path = tmp_path / 'perflogs' / 'toy' / 'node' / 'Toy.log'
    database = tmp_path / 'perflogs' / 'results.db'
    with reframe(tmp_path, 'one') as one, reframe(tmp_path, 'other') as other:
        while one.poll() is None or other.poll() is None:
            if not path.exists() or b'\n' not in path.read_bytes():
                continue
            with path.with_name('.Toy.lock').open('a') as lock:
                fcntl.lockf(lock, fcntl.LOCK_EX)
                with path.open('a') as file:  # as ReFrame does, and so there is one to remove
                    file.write(f'{line(9)}\n')
            assert perflogs.remove_before(path, ago(4)) == 1
            if database.exists():
                load_history(database)
            time.sleep(0.02)
        assert (one.returncode, other.returncode) == (0, 0), one.stdout.read()
    lines = path.read_text().splitlines()
    assert lines[0].startswith('job_completion_time|')
    assert len([one for one in lines if '|seconds|1.5|' in one]) == 8
    history = load_history(database)
    assert len(history.runs) == 2
    stored_figures = history.figures(history.runs)
    assert stored_figures.height == 8
    # What perflogs alone tell is the same, as far as they tell it.
    told = history.figures(choose_runs(history, f'{tmp_path}/perflogs/'))
    same = ['system', 'partition', 'environment', 'case', 'figure', 'value', 'unit', 'verdict']
    assert told.select(same).equals(stored_figures.select(same))
    assert told['run'].n_unique() == 8  # of two runs at once each line begins a new one


WRITES = """
import json, sqlite3, sys, time
database, place, what, *uuids = sys.argv[1:]
connect = sqlite3.connect
def stop():
    print('there', flush=True)
    time.sleep(600)
def slow(*arguments, **options):
    connection = connect(*arguments, **options)
    connection.execute('PRAGMA cache_size = 1')  # what is changed goes to the disk before the end
    steps = iter(range(300, 0, -1))
    def look(statement):
        if statement == place == 'COMMIT':
            stop()
        elif statement == place == 'VACUUM':
            connection.set_progress_handler(lambda: next(steps) == 1 and stop(), 1)
    connection.set_trace_callback(look)
    return connection
from pathlib import Path
from assay.results import store
import stored
sqlite3.connect = slow
if what == 'reframe':
    stored.put(database, json.loads(sys.stdin.read()))
elif what == 'verdict':
    store.keep_verdict(uuids[0], 'FAILED', ['a' * 10_000], Path(database))
else:
    store.remove(uuids, Path(database))
"""


@pytest.mark.parametrize(
    ('what', 'place', 'left'),
    [
        ('reframe', 'COMMIT', 40),
        ('verdict', 'COMMIT', 40),
        ('remove', 'COMMIT', 40),
        ('remove', 'VACUUM', 3),
    ],
)
def test_a_killed_writer_of_the_database_has_written_all_or_nothing(
    tmp_path, made, what, place, left
):
    database = tmp_path / 'perflogs' / 'results.db'
    put(database, *(made(number) for number in range(40)))
    uuids = [one.uuid for one in store.sessions(database)]
    store.keep_verdict(uuids[0], 'PASSED', [], database)
    arguments = (WRITES, database, place, what, *uuids[3 * (what == 'remove') :])
    kill_when_it_says('there', *arguments, given=json.dumps(made(99)))
    assert database.with_name('results.db-journal').exists() is (place == 'COMMIT')
    assert [one.uuid for one in store.sessions(database)] == uuids[:left]
    assert store.set_aside_if_damaged(database) is None
    history = load_history(database)
    assert (len(history.runs), history.runs[0].verdict) == (left, 'PASSED')
    put(database, made(99))
    assert len(load_history(database).runs) == left + 1
