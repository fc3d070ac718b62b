"""What is behind failures: classified, listed, shown with their runs, and gone with them."""

import json

import pytest

import stored
from assay import AssayError
from assay.report.history import history_json, show_history
from assay.report.html.page import write_stored
from assay.results import history as histories
from assay.results import store
from assay.results.history import load_history, of_file, remove_runs
from assay.results.triage import CLASSES, classify, triaged_failures
from command import call
from pages import HOSTILE, Seen
from stored import put

TCP = 'FailedSanity %fabric=tcp %layout=packed @toy:node+gnu'


@pytest.fixture
def database(golden_report, tmp_path):
    """Two runs in which two cases failed, between them one that passed."""
    database = tmp_path / 'perflogs' / 'results.db'
    for number in (1, 3):
        report = golden_report('FailedSanity')
        report['session_info'] |= stored.made(golden_report, number, 9 - number)['session_info']
        put(database, report)
    put(database, stored.made(golden_report, 2, 7))
    return database


def runs_of(database, number):
    history = load_history(database)
    return history, [run for run in history.runs if run.uuid.startswith(f'{number:08x}')]


def test_each_failure_is_open_until_somebody_says_what_is_behind_it(database):
    history = load_history(database)
    every = [*triaged_failures(history, history.runs)]
    assert [(one.run.name, one.case.split()[1]) for one in every] == [
        ('00000001', '%fabric=shm'),
        ('00000001', '%fabric=tcp'),
        ('00000003', '%fabric=shm'),
        ('00000003', '%fabric=tcp'),
    ]
    assert not any(one.cause for one in every)
    classify(*runs_of(database, 1), 'fabric=tcp', 'network', ' switch 3,\nticket 12 ')
    history = load_history(database)
    causes = [one.cause for one in triaged_failures(history, history.runs)]
    assert causes == [None, store.TriageCause(TCP, 'network', 'switch 3, ticket 12'), None, None]
    # A second word takes the place of the first.
    classify(*runs_of(database, 1), TCP, 'hardware', '')
    assert store.causes(database) == {
        history.runs[0].uuid: (store.TriageCause(TCP, 'hardware', ''),),
    }


@pytest.mark.parametrize(
    ('words', 'kind', 'says'),
    [
        ('fabric', 'network', "2 failures of run 00000001 have 'fabric' in their names"),
        ('Ring', 'network', "0 failures of run 00000001 have 'Ring' in their names"),
        ('fabric=tcp', 'netwrok', 'no class has this name; did you mean network?'),
        ('fabric=tcp', '', 'no class has this name'),
    ],
)
def test_words_that_are_not_clear_change_nothing(database, words, kind, says):
    with pytest.raises(AssayError) as error:
        classify(*runs_of(database, 1), words, kind, '')
    assert says in str(error.value)
    assert store.causes(database) == {}


def test_only_failures_of_one_stored_run_are_classified(database, golden_report, tmp_path):
    history = load_history(database)
    with pytest.raises(AssayError, match='3 runs are meant'):
        classify(history, history.runs, TCP, 'network', '')
    with pytest.raises(AssayError, match='nothing failed in it'):
        classify(*runs_of(database, 2), TCP, 'network', '')
    path = tmp_path / 'report.json'
    path.write_text(json.dumps(golden_report('FailedSanity')))
    with pytest.raises(AssayError, match=r'report\.json is not stored here'):
        classify(history, of_file(path), TCP, 'network', '')


def test_what_was_never_run_is_no_failure_to_look_into(golden_report, tmp_path):
    database = tmp_path / 'perflogs' / 'results.db'
    put(database, golden_report('FailedBuild'))
    history = load_history(database)
    assert [one.case.split()[0] for one in triaged_failures(history, history.runs)] == [
        'BrokenBuild'
    ]


def test_it_goes_with_its_run(database):
    classify(*runs_of(database, 1), TCP, 'mpi', '')
    classify(*runs_of(database, 3), TCP, 'suite', '')
    history, runs = runs_of(database, 1)
    remove_runs(history, runs)
    assert [cause.kind for causes in store.causes(database).values() for cause in causes] == [
        'suite'
    ]


def test_the_history_and_the_page_show_it(database, tmp_path, capsys):
    show_history(load_history(database).runs, 20)
    assert 'behind it' not in capsys.readouterr().out
    for text in HOSTILE:
        classify(*runs_of(database, 3), TCP, 'network', text)
        write_stored(tmp_path / 'page.html', *runs_of(database, 3))
        seen = Seen((tmp_path / 'page.html').read_text())
        assert 'behind it: network: ' in seen.text
        assert 'img' not in seen.tags and seen.tags.count('script') == 4
    show_history(load_history(database).runs, 20)
    out = capsys.readouterr().out
    assert 'behind it' in out and 'network 1' in out
    (run,) = json.loads(history_json(runs_of(database, 3)[1]))
    assert run['triage'][0]['kind'] == 'network'


def test_the_command(database, monkeypatch):
    monkeypatch.setattr(histories, 'load_history', lambda: load_history(database))

    assert '4 failures, 4 without a class' in call('triage').output
    assert 'nothing failed in these runs' in call('triage', '00000002').output
    words = ('00000001', '-n', TCP, '--class', 'scheduler', '--note', 'node drained')
    said = call('triage', *words).output
    assert 'scheduler' in said and 'node drained' in said
    assert '4 failures, 3 without a class' in call('triage').output
    assert '2 failures, 1 without a class' in call('triage', '-n', 'fabric=tcp').output
    (last,) = json.loads(call('triage', 'last', '-n', TCP, '--json').output)
    assert (last['failed'], last['class'], last['note']) == (TCP, None, None)
    for words, says in (
        (['--class', 'mpi'], '3 runs are meant'),
        (['last', '--class', 'mpi'], "have '' in their names"),
        (['last', '--note', 'x'], '--note is for a failure with --class'),
    ):
        with pytest.raises(AssayError, match=says):
            call('triage', *words)


def test_the_help_names_every_class():
    said = ' '.join(call('triage', '--help').output.split())
    assert f'{", ".join(CLASSES[:-1])} or {CLASSES[-1]}.' in said
