"""ReFrame wakes when a local job ends, and sleeps as it does by itself for all others."""

import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
from reframe.core.warnings import ReframeDeprecationWarning

from assay import paths
from assay.running import events, reframe_plugin

#: Longer than any test: who sleeps so long was not woken.
FOR_EVER = 600


class Slept:
    """Stands for ReFrame's own sleep, and counts it."""

    def __init__(self):
        self.times = 0

    def reset_poll_rate(self):
        pass

    def snooze(self):
        self.times += 1


@pytest.fixture
def sleeper(monkeypatch):
    """What sleeps for tasks, with ReFrame's own way to sleep taken out."""
    monkeypatch.setattr(reframe_plugin, 'SECONDS', FOR_EVER)
    own = Slept()
    for name in ('snooze', 'reset_poll_rate'):
        by_itself = getattr(own, name)
        monkeypatch.setattr(reframe_plugin._PollController, name, lambda _, call=by_itself: call())
    monkeypatch.setattr(reframe_plugin._PollController, '__init__', lambda _: None)
    made = reframe_plugin._Awake([])
    made.own = own
    return made


@pytest.fixture
def held():
    """A process that ends when its input is closed."""
    process = subprocess.Popen(['cat'], stdin=subprocess.PIPE)
    yield process
    process.stdin.close()
    process.wait()


def under_way(process, state):
    """A task with a local job in a state, and with another that is not started."""
    job, none = SimpleNamespace(proc=process, cancel_time=None), None
    jobs = (job, none) if state == 'compiling' else (none, job)
    return SimpleNamespace(state=state, check=SimpleNamespace(build_job=jobs[0], job=jobs[1]))


@pytest.mark.parametrize('state', ['running', 'compiling'])
def test_the_end_of_a_job_wakes(sleeper, held, state):
    others = [under_way(None, 'startup'), under_way(None, 'ready_run')]
    sleeper._tasks = [*others, under_way(held, state)]
    asleep = threading.Thread(target=sleeper.snooze)
    asleep.start()
    assert asleep.is_alive()
    held.stdin.close()
    asleep.join(FOR_EVER / 2)
    assert not asleep.is_alive()
    assert sleeper.own.times == 0


def test_a_job_that_goes_on_is_looked_at(sleeper, held, monkeypatch):
    waited = []

    def end_of_time(handles, seconds):
        waited.append((len(handles), seconds))

    monkeypatch.setattr(reframe_plugin, '_wait', end_of_time)
    sleeper._tasks = [under_way(held, 'running')]
    sleeper.snooze()
    assert waited == [(1, reframe_plugin.SECONDS)]
    assert sleeper.own.times == 0


def test_what_has_ended_is_judged_before_anything_is_waited_for(sleeper, held, monkeypatch):
    waited = []
    monkeypatch.setattr(reframe_plugin, '_wait', lambda *given: waited.append(given))
    sleeper._tasks = [under_way(held, 'running')]
    sleeper.reset_poll_rate()
    sleeper.snooze()
    assert not waited
    sleeper.snooze()
    assert len(waited) == 1


def test_without_a_job_nothing_is_waited_for(sleeper):
    sleeper._tasks = [under_way(None, 'ready_run')]
    sleeper.snooze()


def test_of_other_jobs_reframe_asks_at_times_of_its_own(sleeper, held):
    """Those of schedulers, and one that has ended and waits to be measured again."""
    ended = subprocess.Popen(['true'])
    ended.wait()
    of_a_scheduler = SimpleNamespace(state='running', check=SimpleNamespace(job=object()))
    for task in (of_a_scheduler, under_way(ended, 'running')):
        sleeper._tasks = [under_way(held, 'running'), task]
        sleeper.snooze()
    assert sleeper.own.times == 2


def test_steps_that_wait_for_nodes(sleeper, held, monkeypatch):
    """The end of another one wakes; a new one is looked at at once, since nodes may be free."""
    waited = []
    monkeypatch.setattr(reframe_plugin, '_wait', lambda *given: waited.append(given))
    waits = under_way(None, 'running')
    sleeper._tasks = [waits]
    sleeper.snooze()
    assert (sleeper.own.times, len(waited)) == (1, 0)
    sleeper._tasks = [waits, under_way(held, 'running')]
    sleeper.snooze()
    assert (sleeper.own.times, len(waited)) == (1, 1)
    waits.check.job.is_new = True
    sleeper.snooze()
    assert (sleeper.own.times, len(waited)) == (1, 1)


# Its script ends at once, and what it started tells of the signal and takes its time to end. The
# script must not read what the other waits for: a process that is about to end by a signal may.
SLOW_TO_END = """
exec 3<&0
(trap 'echo stopped; read -r <&3; echo ended; exit' TERM
echo begun; while :; do sleep 0.05; done) &
wait
"""


@pytest.fixture
def stopped():
    """A job in a session of its own that was told to stop, and has not ended altogether."""
    process = subprocess.Popen(
        ['bash', '-c', SLOW_TO_END],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == 'begun\n'
    os.killpg(process.pid, signal.SIGTERM)
    assert process.stdout.readline() == 'stopped\n'
    task = under_way(process, 'running')
    task.check.job.cancel_time = time.time()
    yield task
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize('has_work', [True, False])
def test_what_a_stopped_job_started_ends_before_it_is_looked_at(
    sleeper, stopped, has_work, monkeypatch
):
    """Whatever else there is to be done, or it would be killed and not tell how it ended."""
    monkeypatch.setattr(reframe_plugin, 'GRACE', FOR_EVER)
    process = stopped.check.job.proc
    sleeper._tasks = [stopped]
    sleeper._has_work = has_work
    asleep = threading.Thread(target=sleeper.snooze)
    asleep.start()
    assert asleep.is_alive()
    process.stdin.write('\n')
    process.stdin.flush()
    asleep.join(FOR_EVER / 2)
    assert not asleep.is_alive()
    assert process.stdout.readline() == 'ended\n'


@pytest.mark.parametrize('already', [0.1, FOR_EVER, -FOR_EVER])
def test_a_stopped_job_that_does_not_end_is_looked_at(sleeper, stopped, already, monkeypatch):
    """Also where the clock of the day was set meanwhile."""
    monkeypatch.setattr(reframe_plugin, 'GRACE', 0.2)
    stopped.check.job.cancel_time -= already
    sleeper._tasks = [stopped]
    sleeper.snooze()
    assert reframe_plugin._goes_on(stopped.check.job.proc.pid)


def test_a_kernel_that_cannot_tell_of_an_end(sleeper, held, monkeypatch):
    def refuse(_):
        raise OSError('Function not implemented')

    monkeypatch.setattr(reframe_plugin.os, 'pidfd_open', refuse)
    sleeper._tasks = [under_way(held, 'running')]
    sleeper.snooze()
    assert sleeper.own.times == 1


def test_no_handle_is_left_open(sleeper, held, monkeypatch):
    opened, closed = [], []
    monkeypatch.setattr(
        reframe_plugin.os, 'pidfd_open', lambda _: opened.append(0) or held.stdin.fileno()
    )
    monkeypatch.setattr(reframe_plugin.os, 'close', closed.append)
    scheduled = SimpleNamespace(state='running', check=SimpleNamespace(job=object()))
    sleeper._tasks = [under_way(held, 'running'), scheduled]
    sleeper.snooze()
    assert len(opened) == len(closed) == 1


def test_the_configuration_of_a_run_that_is_told_of_begins_it(tmp_path):
    script = (
        'import runpy, sys; runpy.run_path(sys.argv[1]); from reframe.frontend import cli; '
        'print(cli.AsynchronousExecutionPolicy.__module__)'
    )
    read, write = os.pipe()
    environment = {**os.environ, 'ASSAY_RUN': str(tmp_path)}
    command = [sys.executable, '-c', script, str(paths.CONFIG / 'common.py')]

    def policy(**more):
        answer = subprocess.run(
            command,
            env=environment | more,
            pass_fds=[write],
            check=True,
            capture_output=True,
            text=True,
        )
        return answer.stdout.strip()

    assert policy(**{events.VARIABLE: str(write)}) == reframe_plugin.__name__
    assert policy() != reframe_plugin.__name__
    os.close(read)
    os.close(write)


def test_a_handle_may_have_any_number(held):
    """Those of a process with many files open are beyond what select() takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip(f'a process may have {hard} files open here, and needs 2048')
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    own = os.pidfd_open(held.pid)
    high = fcntl.fcntl(own, fcntl.F_DUPFD, 1500)
    try:
        held.stdin.close()
        reframe_plugin._wait([high], FOR_EVER)
    finally:
        os.close(own)
        os.close(high)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize('names', [[], ['reframe.core.variables', 'reframe']])
def test_what_is_deprecated_is_reported_where_it_is_used(names):
    call = reframe_plugin._warn
    for name in names:
        scope = {'__name__': name, 'inner': call}
        exec('def call(text): inner(text)', scope)
        call = scope['call']
    with pytest.warns(ReframeDeprecationWarning, match='old') as reported:
        call('old')
    assert reported[0].filename == __file__
