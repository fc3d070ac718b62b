"""ReFrame's place is taken by scripts that do to their parent what ReFrame may do."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from assay.running import events
from assay.running import supervise as supervision
from assay.running.leftovers import stop_jobs
from assay.running.runs import VARIABLE, RunFolder
from assay.running.supervise import supervise
from processes import ends


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path)


class Listener:
    """Notes events, and says one that is not empty."""

    def __init__(self, hears_all):
        self.hears_all = hears_all
        self.heard = []

    def hear(self, event):
        self.heard.append(event)
        if event:
            print('heard', event)
        return bool(event)


EVERYTHING = Listener(hears_all=True)


def ended(run, script, handles=(), audience=EVERYTHING):
    environment = {**os.environ, VARIABLE: str(run.folder)}
    return supervise([sys.executable, '-uc', script], environment, run, list(handles), audience)


def soon(path, action):
    """Do something as soon as a file is there."""

    def wait():
        for _ in range(3000):
            if path.exists():
                return action()
            threading.Event().wait(0.02)

    threading.Thread(target=wait, daemon=True).start()


# A job is a session of its own, which nothing but its environment joins with the run.
LEAVE_A_JOB = """
import subprocess, sys
job = subprocess.Popen(['sleep', '600'], start_new_session=True)
open('{0}/job.new', 'w').write(str(job.pid))
import os; os.rename('{0}/job.new', '{0}/job')
"""


def test_words_and_exit_code_are_passed_on(run, capfd):
    end = ended(run, 'import sys; print("out"); print("err", file=sys.stderr); sys.exit(7)')
    assert (end.code, end.stopped, end.problems) == (7, None, [])
    assert capfd.readouterr() == ('out\n', 'err\n')


PRINTED = [
    '[==========] Running 1 check(s)',
    'WARNING: skipping all dependent test cases',
    '  - Dependent @toy:node+gnu',
    '[ RUN      ] Passed /1a2b @toy:node+gnu',
    '  P: latency: 1 us',
    'ERROR: run session stopped',
    '[  PASSED  ] Ran 1/1 test case(s)',
]
WARNED = f"""
import sys
print({chr(10).join(PRINTED)!r}, flush=True)
print('no sentence of ours', file=sys.stderr)
"""


@pytest.mark.parametrize(
    ('audience', 'out', 'err'),
    [
        (EVERYTHING, PRINTED, ['no sentence of ours']),
        (Listener(hears_all=False), [*PRINTED[1:3], PRINTED[5]], ['no sentence of ours']),
        (None, [], []),
    ],
)
def test_warnings_and_errors_are_passed_on_to_every_audience(run, capfd, audience, out, err):
    """What the verdict goes by is kept, shown or not."""
    printed = ended(run, WARNED, audience=audience).printed
    assert sorted(printed) == sorted([*PRINTED, 'no sentence of ours'])
    shown = capfd.readouterr()
    assert (shown.out.splitlines(), shown.err.splitlines()) == (out, err)


TELL = """
import os
pipe = int(os.environ['ASSAY_TELLS'])
os.write(pipe, b'{"a": 1}\\n{}\\n')
os.write(pipe, b'{"b": 2}\\n' * 20000)
"""


def test_events_are_heard(run, capfd):
    listener = Listener(hears_all=False)
    assert ended(run, TELL, audience=listener).code == 0
    assert listener.heard[:3] == [{'a': 1}, {}, {'b': 2}]
    assert len(listener.heard) == 20002
    assert capfd.readouterr().out.startswith("heard {'a': 1}\nheard {'b': 2}\n")
    assert ended(run, TELL, audience=None).code == 0


@pytest.mark.parametrize('error', [ValueError('a mistake of ours'), SystemExit(1)])
def test_a_listener_that_fails_changes_nothing_and_is_seen_once(run, capfd, error):
    """More events than a pipe holds; Rich exits where its reader has gone."""

    class Failing(Listener):
        def hear(self, event):
            self.heard.append(event)
            raise error

    script = (
        'import os\n'
        'pipe = int(os.environ["ASSAY_TELLS"])\n'
        'for _ in range(2000): os.write(pipe, b"{}\\n" * 50)\n'
        'print("done")\n'
    )
    listener = Failing(hears_all=True)
    end = ended(run, script, audience=listener)
    assert (end.code, end.printed, len(listener.heard)) == (0, ['done'], 100000)
    shown = capfd.readouterr()
    assert shown.out == 'done\n'
    assert shown.err.count('ValueError: a mistake of ours') == isinstance(error, ValueError)


def test_nobody_who_reads_no_more_keeps_a_line_from_the_verdict(run, monkeypatch):
    """More than pipes hold: a terminal that is stopped, as by a pager, goes on after the run."""
    read, write = os.pipe()
    script = (
        'import sys\n'
        'for n in range(20000): print("a line", n)\n'
        'for n in range(20000): print("WARNING:", n, file=sys.stderr)\n'
        f'open("{run.folder}/ended", "w")\n'
    )
    ended_first = []

    def read_late():
        there = (run.folder / 'ended').exists
        ended_first.append(any(there() or threading.Event().wait(0.02) for _ in range(15000)))
        with open(read) as pipe:
            pipe.read()

    reader = threading.Thread(target=read_late, daemon=True)
    reader.start()
    with open(write, 'w') as paused:
        monkeypatch.setattr(sys, 'stdout', paused)
        end = ended(run, script)
        monkeypatch.undo()
    reader.join()
    assert ended_first == [True]
    assert (end.code, len(end.printed)) == (0, 40000)
    assert end.printed.count('WARNING: 19999') == 1


def test_words_that_have_no_place_in_an_encoding_keep_no_run_waiting(run, monkeypatch, tmp_path):
    with open(tmp_path / 'out', 'w', encoding='ascii') as out:
        monkeypatch.setattr(sys, 'stdout', out)
        end = ended(run, 'for n in range(20000): print("\\xe9", n)')
        monkeypatch.undo()
    assert (end.code, len(end.printed)) == (0, 20000)


@pytest.mark.usefixtures('impatient')
def test_a_process_that_cannot_be_found_and_holds_the_output_is_no_pass(run):
    """It has nothing of the run in its environment."""
    script = (
        'import subprocess\n'
        'job = subprocess.Popen(["sleep", "600"], start_new_session=True, env={})\n'
        f'open("{run.folder}/job", "w").write(str(job.pid))\n'
    )
    end = ended(run, script)
    os.kill(int((run.folder / 'job').read_text()), signal.SIGKILL)
    assert [one[:34] for one in end.problems] == ['a process that ReFrame left behind']


def test_escape_sequences_are_not_passed_on(run, capfd):
    ended(run, r'print("\x1b[1A\x1b[2KPASSED")')
    out = capfd.readouterr().out
    assert 'PASSED' in out and '\x1b' not in out


@pytest.fixture
def impatient(monkeypatch):
    """What a job that is left holds open is waited for first."""
    monkeypatch.setattr(supervision, 'PATIENCE', 0.5)


@pytest.mark.usefixtures('impatient')
def test_a_job_that_is_left_is_stopped_and_said(run):
    end = ended(run, LEAVE_A_JOB.format(run.folder))
    assert ends(int((run.folder / 'job').read_text()))
    assert end.problems == ['ReFrame ended and left 1 process(es) behind, which have been stopped']
    assert stop_jobs(run) == ''


@pytest.mark.usefixtures('impatient')
def test_so_is_that_of_one_that_was_killed(run):
    script = LEAVE_A_JOB.format(run.folder) + 'os.kill(os.getpid(), 9)'
    end = ended(run, script)
    assert end.code == -signal.SIGKILL
    assert ends(int((run.folder / 'job').read_text()))


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_reaches_reframe_which_may_end_in_order(run, number):
    before = signal.signal(number, signal.default_int_handler)  # a test's shell may ignore it
    script = (
        'import signal, sys, time\n'
        'signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n'
        f'open("{run.folder}/ready", "w")\n'
        'time.sleep(600)'
    )
    soon(run.folder / 'ready', lambda: os.kill(os.getpid(), number))
    try:
        end = ended(run, script)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert (end.code, end.stopped) == (3, number)


def test_a_signal_while_it_is_started_reaches_it_too(run, monkeypatch):
    """It would end this command otherwise, and leave ReFrame at work in a session of its own."""
    begun = []

    def start(*args, start=subprocess.Popen, **kwargs):
        begun.append(start(*args, **kwargs))
        if len(begun) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return begun[-1]

    def end_this_command(number, frame):
        raise AssertionError('the signal was not heeded')

    before = signal.signal(signal.SIGTERM, end_this_command)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(subprocess, 'Popen', start)
            end = ended(run, 'import time; time.sleep(600)')
    finally:
        signal.signal(signal.SIGTERM, before)
        begun[0].kill()
    assert (end.code, end.stopped) == (-signal.SIGTERM, signal.SIGTERM)


def test_one_that_does_not_heed_it_is_killed(run, monkeypatch):
    monkeypatch.setattr(supervision, 'GRACE', 0.1)
    script = (
        'import signal, time\n'
        'signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
        f'open("{run.folder}/ready", "w")\n'
        'time.sleep(600)'
    )
    soon(run.folder / 'ready', lambda: os.kill(os.getpid(), signal.SIGTERM))
    end = ended(run, script)
    assert (end.code, end.stopped) == (-signal.SIGKILL, signal.SIGTERM)


@pytest.mark.parametrize('jump', [3600, -3600])
def test_a_clock_that_jumps_ends_the_run(run, monkeypatch, jump):
    """ReFrame waits for a time that comes an hour later."""
    monkeypatch.setattr(
        supervision,
        '_clock_of_the_day',
        lambda: 1e9 + jump * (run.folder / 'ready').exists(),
    )
    script = f'import time; open("{run.folder}/ready", "w"); time.sleep(3600)'
    end = ended(run, script)
    assert (end.code, end.stopped) == (-signal.SIGTERM, None)
    assert end.problems[0].startswith(f'the clock of this machine jumped by {jump} s, by which')


def test_what_is_printed_is_kept_for_the_verdict(run):
    """Of a log that cannot be written Python tells only standard error."""
    script = (
        'import logging\n'
        'handler = logging.FileHandler("/dev/full")\n'
        'logging.getLogger().addHandler(handler)\n'
        'logging.getLogger().warning("lost")\n'
        'print("PASSED")\n'
        'handler.stream = None\n'
    )
    printed = ended(run, script).printed
    assert 'PASSED' in printed and '--- Logging error ---' in printed
    assert 'OSError: [Errno 28] No space left on device' in printed


def test_a_long_silence_is_explained(run, monkeypatch, capfd):
    monkeypatch.setattr(supervision, 'REMINDER', 0.2)
    case = {'display_name': 'Ring %fabric=shm', 'system': 'generic'}
    case |= {'partition': 'node', 'environ': 'mpich'}
    line = json.dumps({events.RUNS: case}) + '\n'
    script = (
        'import os, time\n'
        f'os.write(int(os.environ["{events.VARIABLE}"]), {line.encode()!r})\n'
        f'while not os.path.exists("{run.folder}/heard"): time.sleep(0.05)'
    )

    def heard(words):
        if 'Ring' in words:  # at first the case may not have been told of yet
            (run.folder / 'heard').touch()
        said.append(words)

    said = []
    monkeypatch.setattr(supervision, 'say', heard)
    ended(run, script)
    assert 'Ring %fabric=shm @generic:node+mpich' in said[-1]


def test_the_locks_of_the_run_are_kept_open(run, capfd):
    read, write = os.pipe()
    ended(run, f'import os; os.fstat({read}); print("open")', [read])
    assert capfd.readouterr().out == 'open\n'
    os.close(read), os.close(write)


def test_words_that_cannot_be_written_keep_no_run_waiting(run, monkeypatch):
    """More than a pipe holds, with standard output on a full disk."""
    with open('/dev/full', 'w') as full:
        monkeypatch.setattr(sys, 'stdout', full)
        end = ended(run, 'for n in range(20000): print("a line", n)')
        assert (end.code, len(end.printed)) == (0, 20000)
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # or it could not be closed
