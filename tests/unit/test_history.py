"""Stored runs: the database, the table of figures, its cache, and the words that choose runs."""

import json
import math
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

import polars as pl
import pytest
from reframe.frontend.reporting import storage

from assay import AssayError
from assay.report.history import history_json
from assay.results import figures, store
from assay.results.figures import SCHEMA, plain_rows, table
from assay.results.history import load_history, of_file, remove_runs
from assay.results.reframe_report import as_run
from assay.results.rows import rows
from assay.results.run_selectors import assert_label, choose_runs, removable
from assay.results.verdict import summary
from assay.running import session_extras
from changing import changing
from command import call
from reports import cases, disturbed, run_of, then
from stored import NOW, put, reframes

# The database -------------------------------------------------------------------------------------


def test_the_form_is_reframes():
    assert storage._SqliteStorage.SCHEMA_VERSION == store.SCHEMA


def test_nothing_is_stored_yet(database):
    assert (store.sessions(database), store.verdicts(database)) == ([], {})
    assert store.set_aside_if_damaged(database) is None
    assert load_history(database).runs == ()
    assert load_history(database).figures([]).schema == SCHEMA


def test_verdicts_go_with_reframes_sessions(database, made):
    put(database, made(1), made(2))
    one, other = (session.uuid for session in store.sessions(database))
    store.keep_verdict(one, 'PASSED', [], database)
    store.keep_verdict(one, 'FAILED', ['a', 'b'], database)
    store.keep_verdict(other, 'PASSED', [], database)
    store.keep_verdict('of no session', 'PASSED', [], database)
    assert store.verdicts(database)[one] == ('FAILED', ('a', 'b'))
    assert load_history(database).runs[0].verdict == 'FAILED'
    with reframes(database):
        backend = storage.StorageBackend.default()
        backend.remove_sessions(storage.QuerySelectorTestcase(uuid=one))
    assert [*store.verdicts(database)] == [other]


@changing
def broken(database, content):
    database.write_bytes(content(database.read_bytes()))


def without_tables(database):
    database.unlink()
    sqlite3.connect(database).close()
    database.touch()


DAMAGES = {
    'text': broken(lambda _: b'no database at all' * 100),
    'cut': broken(lambda old: old[: len(old) // 2]),
    'overwritten': broken(lambda old: old[:8192] + b'\xff' * (len(old) - 8192)),
    'empty': without_tables,
}


@pytest.mark.parametrize('damage', DAMAGES)
def test_a_damaged_database_is_named_and_set_aside(database, made, damage):
    put(database, *(made(number) for number in range(20)))
    DAMAGES[damage](database)
    content = database.read_bytes()
    if damage != 'overwritten':  # of which a list does not come by the damage
        with pytest.raises(AssayError, match=r'results\.db is damaged .*`assay run` sets it aside'):
            load_history(database)
    aside = store.set_aside_if_damaged(database)
    assert aside.read_bytes() == content
    assert not database.exists()
    put(database, made(99))
    history = load_history(database)
    assert [run.uuid[:8] for run in history.runs] == ['00000063']
    assert str(aside) in history.notices()[0]
    assert store.set_aside_if_damaged(database) is None


def test_a_database_of_another_form_is_left_alone(database, made):
    put(database, made(1))
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE metadata SET schema_version = '9.9'")
    for use in (load_history, store.set_aside_if_damaged):
        with pytest.raises(AssayError, match=r'results\.db has the form 9\.9, .* reads 1\.0'):
            use(database)
    assert database.exists()


def test_a_locked_database_is_named(database, made, monkeypatch):
    put(database, made(1))
    monkeypatch.setattr(store, 'PATIENCE', 0.1)
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute('BEGIN EXCLUSIVE')
    for use in (load_history, store.set_aside_if_damaged):
        with pytest.raises(AssayError, match=r'results\.db is locked by another process'):
            use(database)
    connection.close()


MAKES_A_DATABASE = """
import fcntl, sqlite3, sys, time
from pathlib import Path
database = Path(sys.argv[1])
lock = open(database.with_name('.db.lock'), 'a')
fcntl.lockf(lock, fcntl.LOCK_EX)
database.touch()
print('begun', flush=True)
time.sleep(0.5)
with sqlite3.connect(database) as connection:
    connection.execute('CREATE TABLE sessions(uuid, session_start_unix, session_end_unix)')
"""


def test_a_database_that_is_just_being_made_is_waited_for(database):
    database.parent.mkdir()
    command = [sys.executable, '-c', MAKES_A_DATABASE, database]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == 'begun\n'
        assert store.sessions(database) == []


@pytest.mark.parametrize('text', ['', '{"runs": []', b'{"\xff": 1}', '[' * 100_000, '{"runs": 1}'])
def test_one_damaged_session_is_named_among_good_ones(database, made, text):
    put(database, made(1, days=2), made(2, days=1), made(3))
    bad = made(2)['session_info']['uuid']
    with sqlite3.connect(database) as connection:
        connection.execute('UPDATE sessions SET json_blob = ? WHERE uuid = ?', [text, bad])
    history = load_history(database)
    (notice,) = history.notices()
    assert bad in notice
    assert '`assay forget 00000002` drops it' in notice
    assert [run.summary.passed for run in history.runs] == [2, 0, 2]
    assert history.figures(history.runs)['run'].n_unique() == 2
    with pytest.raises(AssayError, match='means a run that cannot be read'):
        choose_runs(history, 'last~1')
    remove_runs(history, removable(history, '00000002'))
    assert load_history(database).notices() == []


@pytest.mark.parametrize(
    ('column', 'value'),
    [
        *(('session_start_unix', value) for value in (None, 'soon', 1e20, b'\xff', -1e12)),
        ('session_end_unix', None),
        *(('uuid', value) for value in (None, b'\xff\xfe', '', 'a\nb', 7)),
        *(('problems', value) for value in ('no JSON', '3', '"a"', b'\xff', '[' * 100_000)),
        ('verdict', b'\xff'),
    ],
)
def test_one_damaged_row_is_named_among_good_ones(database, made, column, value):
    put(database, made(1, days=2), made(2, days=1), made(3))
    uuid = made(2)['session_info']['uuid']
    store.keep_verdict(uuid, 'PASSED', [], database)
    ours = column in ('problems', 'verdict')
    where = (
        'assay_verdicts SET {} = ? WHERE session_uuid' if ours else 'sessions SET {} = ? WHERE uuid'
    )
    with sqlite3.connect(database) as connection:
        connection.execute(f'UPDATE {where.format(column)} = ?', [value, uuid])
    history = load_history(database)
    (notice,) = history.notices()
    assert '`assay forget 00000002` drops it' in notice
    assert '\n' not in notice
    assert history.figures(history.runs)['run'].n_unique() == 2
    assert json.loads(history_json(history.runs))
    assert names(choose_runs(history, 'last')) == ['00000003']
    with pytest.raises(AssayError, match='means a run that cannot be read'):
        choose_runs(history, '00000002')
    remove_runs(history, removable(history, '00000002'))
    assert load_history(database).notices() == []
    assert names(load_history(database).runs) == ['00000001', '00000003']


@pytest.mark.parametrize(
    'change',
    [
        {'perfvalues': {'toy:node:latency': ['many', 1, 2, 3, 'us', 'pass']}},
        {'job_completion_time_unix': 1e20},
        *(
            {'perfvalues': {'toy:node:latency': [1.0, 1, 2, 3, unit, 'pass']}}
            for unit in (7, ['us'], '\ud800')
        ),
        *({'directions': {'latency': better}} for better in (3, 0, ['lower'], '\ud800')),
        *(
            {name: word}
            for name in ('built_mpi', 'ran_on_kernel', 'ran_variables', 'suite_commit')
            for word in (None, 7, ['mpich'])
            if word or name != 'ran_on_kernel'  # of which nothing is known
        ),
        *(
            {name: word}
            for name in ('system', 'partition', 'environ', 'result', 'display_name')
            for word in (None, 7, ['toy'], '\ud800')
        ),
        {'taken_by_others': ['\ud800']},
    ],
)
def test_a_report_of_another_shape_is_none(made, change):
    odd = made(1)
    cases(odd)[1] |= change
    with pytest.raises(AssayError, match=r'^the text: not as ReFrame writes it'):
        as_run(json.dumps(odd), 'the text')


def test_a_session_of_another_shape_counts_for_nothing(database, made, tmp_path):
    put(database, made(1), made(2))
    odd = made(1)
    cases(odd)[1]['perfvalues'] = {'toy:node:latency': ['many', 1, 2, 3, 'us', 'pass']}
    with sqlite3.connect(database) as connection:
        where = 'UPDATE sessions SET json_blob = ? WHERE uuid = ?'
        connection.execute(where, [json.dumps(odd), odd['session_info']['uuid']])
    history = load_history(database)
    (notice,) = history.notices()
    assert 'not as ReFrame writes it' in notice
    assert '`assay forget 00000001` drops it' in notice
    assert history.figures(history.runs)['run'].unique().to_list() == [
        made(2)['session_info']['uuid']
    ]
    report = tmp_path / 'report.json'
    report.write_text(json.dumps(odd))
    with pytest.raises(AssayError, match=r'report\.json: .*not as ReFrame writes it'):
        history.figures(choose_runs(history, str(report)))
    remove_runs(history, removable(history, '00000001'))
    assert load_history(database).notices() == []


@pytest.mark.parametrize('system', [None, 7])
def test_a_report_of_no_system_is_none(made, tmp_path, system):
    odd = made(1)
    cases(odd)[0]['system'] = system  # of a fixture, which has no figures
    report = tmp_path / 'report.json'
    report.write_text(json.dumps(odd))
    words = r'report\.json: not as ReFrame writes it: runs\[0\]\.testcases\[0\]: system is '
    with pytest.raises(AssayError, match=words):
        of_file(report)


def stores(database, numbers, report):
    for number in numbers:
        report['session_info']['uuid'] = f'{number:08x}-0000-4000-8000-{number:012x}'
        put(database, report)
        store.keep_verdict(report['session_info']['uuid'], 'PASSED', [], database)


LOADS = """
import sys
import time
from pathlib import Path
from assay.results.history import load_history
load_history(Path(sys.argv[1]))
print('there', flush=True)
deadline = time.monotonic() + 600  # a test that was killed tells nobody
while not Path(sys.argv[2]).exists() and time.monotonic() < deadline:
    history = load_history(Path(sys.argv[1]))
    assert history.figures(history.runs).height == 2 * len(history.runs)
"""


def test_two_processes_store_at_once_while_others_read(database, made):
    put(database, made(99))
    store.remove([made(99)['session_info']['uuid']], database)
    # Programs of their own: Polars hangs in a fork of a process that has used it.
    end = database.with_name('end')
    command = [sys.executable, '-c', LOADS, database, end]
    with ExitStack() as stack:
        stack.callback(end.touch)
        both = stack.enter_context(ProcessPoolExecutor(2, mp_context=get_context('spawn')))
        # They load what they need, and nobody reads in vain meanwhile.
        for one in [both.submit(stores, database, (), {}) for _ in range(2)]:
            one.result()
        readers = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            for _ in range(2)
        ]
        assert [one.stdout.readline() for one in readers] == ['there\n'] * 2
        writers = [both.submit(stores, database, range(n, 20, 2), made(1)) for n in (0, 1)]
        for one in writers:
            one.result()
        end.touch()
        assert [(one.communicate()[0], one.returncode) for one in readers] == [('', 0)] * 2
    history = load_history(database)
    assert [run.verdict for run in history.runs] == ['PASSED'] * 20
    assert history.figures(history.runs).height == 40


def test_the_newest_sessions_of_a_check(made, database):
    for number in (1, 2, 3):
        put(database, made(number))
    uuids = [one.uuid for one in store.sessions(database)]
    assert store.newest_with('Passed', 2, database) == uuids[:0:-1]
    assert store.newest_with('Pass', 2, database) == []


# The table ----------------------------------------------------------------------------------------


def test_the_columns_of_a_figure(made, golden_report):
    report = made(7, label='before')
    case = cases(report)[1]
    case |= {
        'job_completion_time_unix': NOW.timestamp(),
        'job_nodelist': ['n1', 'n2'],
        'directions': {'latency': 'lower'},
        'taken_by_others': ['one', 'two'],
        'scale': '2_nodes',
        'built_mpi': 'openmpi@5',
        'ran_variables': "A=1 B='x y'",
        'suite_commit': 'abc',
    }
    first, second = table(plain_rows(run_of(report))).rows(named=True)
    assert json.loads(first.pop('provenance')) == {
        'mpi': 'openmpi@5',
        'suite_commit': 'abc',
        'A': '1',
        'B': 'x y',
    }
    assert first.pop('lower') == pytest.approx(37.8)
    assert first.pop('upper') == pytest.approx(46.2)
    assert first == {
        'run': report['session_info']['uuid'],
        'begun': NOW,
        'measured': NOW,
        'label': 'before',
        'mode': 'smoke',
        'system': 'toy',
        'partition': 'node',
        'environment': 'gnu',
        'check': 'Passed',
        'case': 'Passed %fabric=shm %layout=packed',
        'fabric': 'shm',
        'layout': 'packed',
        'scale': '2_nodes',
        'figure': 'latency',
        'value': 42.5,
        'unit': 'us',
        'better': 'lower',
        'reference': 42.0,
        'verdict': 'pass',
        'result': 'pass',
        'attempt': 1,
        'repeat': 1,
        'nodes': 'n[1-2]',
        'disturbances': 'one; two',
    }
    assert (second['better'], second['disturbances'], second['scale']) == (None, None, '-')


def test_values_are_as_they_were_measured(made):
    report = made(1)
    first, second = cases(report)[1:]
    first['perfvalues']['toy:node:latency'][0] = math.nan
    second['perfvalues']['toy:node:latency'][0] = math.inf
    second['perfvalues']['toy:node:latency'][4] = 'ms'
    frame = table(plain_rows(run_of(report)))
    assert frame['value'].to_list() == [pytest.approx(math.nan, nan_ok=True), math.inf]
    assert frame['unit'].to_list() == ['us', 'ms']


def test_a_case_that_failed_is_a_row_without_a_value(golden_report):
    found = table(plain_rows(run_of(golden_report('FailedSanity')))).rows(named=True)
    assert [(row['figure'], row['value'], row['verdict']) for row in found] == [
        ('-', None, 'fail')
    ] * 2


def test_repetitions_and_attempts_are_numbered(made, golden_report):
    again = table(plain_rows(run_of(then(made(1), made(1), made(1), only_failed=False))))
    assert again['repeat'].to_list() == [1, 1, 2, 2, 3, 3]
    retried = table(
        plain_rows(run_of(then(golden_report('FailedSanity'), made(1), only_failed=True)))
    )
    assert 1 in retried['attempt'].to_list()


def test_the_figures_are_those_of_the_attempt_that_the_verdict_is_about(golden_report):
    report = golden_report('FailedReference')
    for case in cases(report):
        case['replaced'] = ['one']
    both = then(report, disturbed(golden_report('FailedReference')), only_failed=True)
    for case in cases(both):
        for values in (case['perfvalues'] or {}).values():
            values[0] = 1.0 if case.get('no_evidence') else 2.0
    found = table(plain_rows(run_of(both))).rows(named=True)
    assert {(row['value'], row['verdict'], row['attempt']) for row in found} == {(2.0, 'fail', 3)}
    assert {row.verdict for row in rows(run_of(both))} == {'fail'}


# The cache ----------------------------------------------------------------------------------------


def cached(database):
    return database.with_name('figures-cache')


def test_the_cache_follows_the_database(database, made, monkeypatch):
    put(database, made(1), made(2))
    fresh = load_history(database).figures(load_history(database).runs)
    monkeypatch.setattr(store, 'runs', None)  # nothing is read of the database now
    assert load_history(database).figures(load_history(database).runs).equals(fresh)
    monkeypatch.undo()
    put(database, made(3))
    store.remove([made(1)['session_info']['uuid']], database)
    history = load_history(database)
    found = history.figures(history.runs)
    assert found['run'].unique(maintain_order=True).to_list() == [run.uuid for run in history.runs]
    assert history.figures(history.runs[1:])['run'].n_unique() == 1
    cached(database).unlink()
    assert load_history(database).figures(history.runs).equals(found)


@pytest.mark.parametrize('content', ['', 'cut', 'foreign'])
def test_a_cache_that_is_none_is_made_again(database, made, content):
    put(database, made(1))
    whole = load_history(database).figures(load_history(database).runs)
    if content == 'foreign':
        pl.DataFrame({'run': [1]}).write_parquet(cached(database))
    else:
        half = cached(database).read_bytes()[: 2000 if content == 'cut' else 0]
        cached(database).write_bytes(half)
    assert load_history(database).figures(load_history(database).runs).equals(whole)


def test_a_damaged_byte_of_a_cache_does_not_come_to_polars(database, made, monkeypatch):
    """Which takes it for other values, or aborts the process."""
    put(database, made(1))
    whole = load_history(database).figures(load_history(database).runs)
    good = cached(database).read_bytes()
    for place in (0, 40, len(good) // 2, len(good) - 1):
        bad = bytearray(good)
        bad[place] ^= 1
        cached(database).write_bytes(bad)
        with monkeypatch.context() as patch:
            for name in ('read_parquet_metadata', 'read_parquet'):
                patch.setattr(pl, name, mock.Mock(side_effect=AssertionError))
            history = load_history(database)
        assert history.figures(history.runs).equals(whole)
        assert cached(database).read_bytes() == good


def test_a_cache_of_other_code_is_made_again(database, made, monkeypatch):
    put(database, made(1))
    load_history(database)
    before = cached(database).stat().st_ino
    monkeypatch.setattr(figures, '_code', lambda: 'another')
    load_history(database)
    assert cached(database).stat().st_ino != before


def test_a_folder_that_cannot_be_written_needs_no_cache(database, made, monkeypatch):
    put(database, made(1))

    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr(figures.os, 'open', refuse)
    monkeypatch.setattr(Path, 'open', refuse)
    assert load_history(database).figures(load_history(database).runs).height == 2


KILLED = """
import sys, time
from pathlib import Path
from assay.results.history import load_history
def replace(draft, path):
    print('written', flush=True)
    time.sleep(600)
Path.replace = replace
load_history(Path(sys.argv[1]))
"""


def test_a_killed_writer_leaves_the_old_cache(database, made):
    put(database, made(1))
    load_history(database)
    old = cached(database).read_bytes()
    put(database, made(2))
    with subprocess.Popen(
        [sys.executable, '-c', KILLED, database], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == 'written\n'
        process.send_signal(signal.SIGKILL)
    assert cached(database).read_bytes() == old
    assert len([*database.parent.glob('.figures-cache.*')]) == 1
    history = load_history(database)
    assert history.figures(history.runs).height == 4
    assert not [*database.parent.glob('.figures-cache.*')]


WITHOUT_REFRAME = """
import sys
from pathlib import Path
from assay.results.history import load_history
assert load_history(Path(sys.argv[1]))._figures['nodes'].drop_nulls().len()
assert 'reframe' not in sys.modules
"""


def test_a_history_is_read_without_reframe_which_takes_longer_to_load(database, made):
    put(database, made(1))
    subprocess.run([sys.executable, '-c', WITHOUT_REFRAME, database], check=True)


# Words --------------------------------------------------------------------------------------------


@pytest.fixture
def history(database, made):
    put(
        database,
        made(0xAAAA1111, days=3, label='before'),
        made(0xAAAA2222, days=2, label='before'),
        made(0xBEEF3333, days=1, label='after', system='other'),
        made(0xCCCC4444, label='beef'),
    )
    return load_history(database)


def names(runs):
    return [run.name for run in runs]


def day(days):
    return f'{(NOW - timedelta(days=days)).astimezone():%Y-%m-%d}'


def test_words_choose_runs_oldest_first(history, tmp_path, made):
    assert names(choose_runs(history, 'last')) == ['cccc4444']
    assert names(choose_runs(history, 'last~2')) == ['aaaa2222']
    assert names(choose_runs(history, 'last~1', 'toy:node')) == ['aaaa2222']
    assert names(choose_runs(history, 'before')) == ['aaaa1111', 'aaaa2222']
    assert names(choose_runs(history, day(2))) == ['aaaa2222']
    assert names(choose_runs(history, f'{day(3)}..{day(1)}')) == [
        'aaaa1111',
        'aaaa2222',
        'beef3333',
    ]
    assert names(choose_runs(history, 'AAAA2')) == ['aaaa2222']
    assert names(choose_runs(history, history.runs[2].uuid)) == ['beef3333']
    own = made(0xDDDD5555, days=-0.001, purpose='culprit')
    put(history.database, own)
    more = load_history(history.database)
    assert names(choose_runs(more, 'last', uncounted='culprit')) == ['cccc4444']
    assert names(choose_runs(more, 'dddd5', uncounted='culprit')) == ['dddd5555']
    report = tmp_path / 'report.json'
    report.write_text(json.dumps(made(0xEEEE, system='far')))
    (run,) = choose_runs(history, str(report))
    assert (run.name, run.summary.system, run.file) == ('0000eeee', 'far', report)
    assert history.figures([run, history.runs[0]])['system'].unique().sort().to_list() == [
        'far',
        'toy',
    ]


@pytest.mark.parametrize(
    ('words', 'sentence'),
    [
        ('last~4', 'stored is no more than 4 runs'),
        ('befor', 'did you mean before'),
        ('xyz', "stored: 4 runs from .*, with the labels 'beef', 'after', 'before'"),
        ('aaaa', 'begins the identifiers of 2 runs: aaaa1111-0000, aaaa2222-0000'),
        ('beef', "'beef' is a label of 1 run and begins the identifier beef3333-"),
        ('2026-13-01', '2026-13-01 is no date'),
        ('2025-02-02..2025-02-01', 'ends before it begins'),
        ('2001-01-01', 'no run began on 2001-01-01: stored: 4 runs from'),
        ('9999-01-01', 'is in the future: no run can have begun then'),
        ('./none.json', 'none.json: not a report of ReFrame'),
    ],
)
def test_words_that_mean_nothing_are_told(history, words, sentence):
    with pytest.raises(AssayError, match=sentence) as caught:
        choose_runs(history, words)
    assert '\n' not in str(caught.value)


def test_an_empty_history_and_an_unknown_system(history, tmp_path):
    with pytest.raises(AssayError, match=r'no run is stored in .*: `assay run` stores one'):
        choose_runs(load_history(tmp_path / 'results.db'), 'last')
    for use in (choose_runs, removable):
        with pytest.raises(AssayError, match='no run of the system nowhere is stored'):
            use(history, 'last', 'nowhere')


def test_a_list_is_of_the_runs_that_words_would_choose_from(history, tmp_path, monkeypatch):
    def listed(*options, stored=history):
        monkeypatch.setattr('assay.results.history.load_history', lambda: stored)
        return call('history', *options)

    for system in ('other', 'other:node'):
        assert '1 of 1 runs' in listed('--system', system).output
    with pytest.raises(AssayError, match='no run of the system nowhere is stored'):
        listed('--system', 'nowhere')
    nothing = listed('--system', 'nowhere', stored=load_history(tmp_path / 'results.db'))
    assert (nothing.exit_code, nothing.output) == (0, 'no run is stored\n')


def test_a_run_of_the_future_is_not_the_last(history, database, made):
    put(database, made(0xFFFF, days=-400))
    later = load_history(database)
    assert names(later.runs)[-1] == '0000ffff'
    assert names(choose_runs(later, 'last')) == ['cccc4444']
    assert 'which is in the future: a clock was wrong' in later.notices()[0]


@pytest.mark.parametrize(
    'label',
    [
        '',
        '  ',
        'last',
        'last~2',
        '2026-11-01',
        '2026-11-01..2026-11-02',
        'aaaa1111',
        'beef',
        '2026',
        'x/y',
        'a\nb',
    ],
)
def test_labels_that_are_other_words_are_refused(label):
    with pytest.raises(AssayError, match=r'^--label '):
        assert_label(label)


def stored_fields(options):
    """The fields of a session, as ReFrame reads them from its options."""
    fields = (one for option in options for one in option.split('=', maxsplit=1)[1].split(','))
    return dict(one.split('=', maxsplit=1) for one in fields)


@pytest.mark.parametrize('label', ['before', 'ünï, 50% = {a}', 'abc', 'defaced beef', 'a=b,c=d'])
def test_labels_are_stored_in_reframes_fields(label):
    assert_label(label)
    fields = stored_fields(session_extras.options(label, 'smoke'))
    found = [session_extras.text_of(fields, name) for name in ('label', 'mode', 'purpose')]
    assert found == [label, 'smoke', None]


def test_what_a_run_is_for_is_stored_and_in_its_summary(golden_report):
    fields = stored_fields(session_extras.options('a label', 'smoke', 'compare'))
    report = golden_report('Passed')
    report['session_info'] |= fields
    assert summary(run_of(report)).purpose == 'compare'


def test_reports_that_are_none(tmp_path):
    path = tmp_path / 'report.json'
    path.write_text('{"session_info": {}, "runs": []}')
    words = r'report\.json: not as ReFrame writes it: session_info: uuid is missing'
    with pytest.raises(AssayError, match=words):
        of_file(path)
