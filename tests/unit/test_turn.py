"""Runs on one machine take turns, whatever becomes of the one that has it."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from assay import AssayError
from assay.running import turn

HOLD = """
import sys
from pathlib import Path
from assay.running import turn
turn._folder = lambda: Path(sys.argv[1])
turn.take(sys.argv[2], lambda words: print(words, flush=True))
print('has it', flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(turn, '_folder', lambda: tmp_path)
    return tmp_path


@pytest.fixture
def taker(folder):
    """Starts a process that takes the turn and keeps it."""
    started = []

    def take(name):
        process = subprocess.Popen(
            [sys.executable, '-c', HOLD, folder, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield take
    for process in started:
        process.kill()
        process.communicate()


def test_the_second_waits_says_for_whom_and_follows_a_killed_first(taker):
    first = taker('first')
    assert first.stdout.readline() == 'has it\n'
    second = taker('second')
    said = second.stdout.readline()
    assert said.startswith('waiting, since jobs at once would disturb each other: first (process')
    first.kill()
    assert second.stdout.readline() == 'has it\n'


def test_what_the_holder_says_is_not_trusted(folder, taker):
    first = taker('\x1b[2K first')
    assert first.stdout.readline() == 'has it\n'
    said = taker('second').stdout.readline()
    assert 'first' in said and '\x1b' not in said


def test_nobody_waits_for_ever(folder, taker, monkeypatch):
    assert taker('first').stdout.readline() == 'has it\n'
    monkeypatch.setattr(turn, 'PATIENCE', 0)
    with pytest.raises(AssayError, match=r'gave up .* first \(process'):
        turn.take('second', lambda words: None)


def test_everybody_may_lock_it(folder):
    before = os.umask(0o077)
    try:
        os.close(turn.take('first', print))
    finally:
        os.umask(before)
    assert (folder / 'assay.turn').stat().st_mode & 0o777 == 0o666


def test_no_link_is_followed(folder):
    target = folder / 'precious'
    target.write_text('content')
    (folder / 'assay.turn').symlink_to(target)
    with pytest.raises(AssayError, match=r'assay.turn: .*could not take turns'):
        turn.take('first', print)
    assert target.read_text() == 'content'


@pytest.mark.parametrize(
    ('partition', 'is_needed'),
    [
        ({'scheduler': 'local'}, True),
        ({'scheduler': 'slurm'}, False),
        ({'scheduler': 'slurm', 'extras': {'on_this_machine': True}}, True),
    ],
)
def test_clusters_have_nodes_for_all(partition, is_needed):
    site = SimpleNamespace(get=lambda name: [partition])
    assert turn.is_needed(site) is is_needed
