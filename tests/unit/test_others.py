"""Who else uses this machine: real processes, that are of this run or not."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from assay import paths
from assay.running import processes, runs
from assay.running.processes import Others

# 0.2 CPU seconds for each line that it reads; then it says so.
SPIN = """
import sys, time
for _ in sys.stdin:
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    print(flush=True)
"""

# One whose child computes, and that lives on when that has ended.
PARENT = f"""
import subprocess, sys, time
subprocess.run([sys.executable, '-c', {SPIN!r}])
print(flush=True)
time.sleep(600)
"""

HOSTILE = f"""
open('/proc/self/comm', 'w').write(') \x1b[1A\\n (x')
{SPIN}
"""


# One with a child of this run, that it never asks for.
KEEPER = f"""
import os, subprocess, sys, time
own = os.environ | {{{runs.VARIABLE!r}: os.environ['OWN']}}
print(subprocess.Popen([sys.executable, '-c', {SPIN!r}], env=own).pid, flush=True)
time.sleep(600)
"""

# In a session of its own, and no descendant of who starts it.
APART = """
import os, sys
os.setsid()
if pid := os.fork():
    print(pid, flush=True)
    os._exit(0)
os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])
"""


@pytest.fixture
def start(monkeypatch, tmp_path):
    """A function that starts a process that can be made to compute.

    It is another's, or of the run that its variables name; ``below`` this one if it descends from
    it.
    """
    monkeypatch.setenv(runs.VARIABLE, str(tmp_path))
    monkeypatch.setattr(processes, 'WORTH_NAMING', 0.0)
    monkeypatch.setattr(processes, 'MOST', 1000)
    ends = []

    def begin(code=SPIN, below=False, **variables):
        surroundings = {name: value for name, value in os.environ.items() if name != runs.VARIABLE}
        process = subprocess.Popen(
            [sys.executable, '-c', *([] if below else [APART]), code],
            env=surroundings | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        pid = process.pid if below else int(process.stdout.readline())
        ends.append((process, pid))
        return SimpleNamespace(pid=pid, stdin=process.stdin, stdout=process.stdout)

    yield begin
    for process, pid in ends:
        with process:
            os.kill(pid, signal.SIGKILL)


def compute(process):
    process.stdin.write('\n')
    process.stdin.flush()
    process.stdout.readline()
    # It may still be on its way back to sleep, and use a tick of what is looked at next.
    while state(process.pid) != 'S':
        time.sleep(0.001)


def named(use, process):
    return any(f'(process {process.pid})' in one for one in use.busiest)


def test_others_are_named_and_what_is_of_this_run_is_not(start, tmp_path):
    other = start(**{runs.VARIABLE: f'{tmp_path}-another'})
    own = start(**{runs.VARIABLE: str(tmp_path)})
    look = Others()
    compute(other), compute(own)
    use = look.use()
    assert named(use, other) and not named(use, own)
    assert use.cpu >= 0.1
    assert use.share == use.cpu / (use.seconds * len(os.sched_getaffinity(0)))
    # What was used before does not count.
    assert not named(Others().use(), other)


def test_what_a_job_starts_is_of_this_run_though_its_environment_is_cleared(start):
    below, left = start(below=True), start()
    look = Others()
    of_jobs = Others({os.getsid(left.pid)})
    compute(below), compute(left)
    use = look.use()
    assert not named(use, below)
    assert named(use, left)  # but for its session
    assert not named(of_jobs.use(), left)


# Looks at others while its parent computes, and says whom it saw.
LED = """
import sys
from assay.running import processes
processes.WORTH_NAMING, processes.MOST = 0.0, 1000
look = processes.Others()
print(flush=True)
sys.stdin.readline()
print(look.use().busiest, flush=True)
"""


@pytest.mark.parametrize('is_led', [True, False])
def test_who_started_it_for_the_run_is_of_this_run(tmp_path, is_led):
    """The run's own `assay`, unlike a shell in which somebody types."""
    variables = {runs.VARIABLE: str(tmp_path)} if is_led else {}
    pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'text': True}
    environment = {**os.environ, 'PYTHONPATH': str(paths.ROOT / 'lib'), **variables}
    with subprocess.Popen([sys.executable, '-c', LED], env=environment, **pipes) as process:
        process.stdout.readline()
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
        said = process.communicate('\n')[0]
    assert (f'(process {os.getpid()})' in said) is not is_led


def test_others_on_other_cpus_do_not_count(start):
    other = start()
    look = Others()
    compute(other)
    own = os.sched_getaffinity(other.pid)
    assert named(look.use(own), other)
    none = look.use({1 << 20})
    assert (none.cpu, none.busiest) == (0, ())


def test_a_checkout_may_have_any_name(start, monkeypatch):
    name = os.fsdecode(b'/data/\xe9')
    monkeypatch.setenv(runs.VARIABLE, name)
    own = start(**{runs.VARIABLE: name})
    look = Others()
    compute(own)
    assert not named(look.use(), own)


def test_of_a_process_that_has_ended_its_parent_has_what_it_used_since(start):
    parent = start(PARENT)
    compute(parent)  # the child, whose input it is
    look = Others()
    compute(parent)
    parent.stdin.close()
    parent.stdout.readline()
    (words,) = (one for one in look.use().busiest if f'(process {parent.pid})' in one)
    assert 0.1 <= float(words.split()[-2]) < 0.35


def test_who_has_ended_does_not_say_whose_it_was(start, tmp_path):
    """As what a job leaves, where nobody asks for it."""
    keeper = start(KEEPER, OWN=str(tmp_path))
    own = int(keeper.stdout.readline())
    look = Others()
    compute(keeper)  # the child, whose input it is
    assert f'(process {own})' not in ''.join(look.use().busiest)
    os.kill(own, signal.SIGKILL)
    while state(own) != 'Z':
        time.sleep(0.01)
    assert f'(process {own})' not in ''.join(look.use().busiest)
    # What this process is given in the end is no others' either.
    assert os.getppid() in set(processes._ancestors())


def state(pid):
    return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]


def test_what_others_call_themselves_obeys_no_terminal(start):
    process = start(HOSTILE)
    look = Others()
    compute(process)
    use = look.use()
    assert named(use, process)
    assert ''.join(use.busiest).isprintable()
