"""Who else uses this machine: real processes, that are of this run or not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.running import others, runs
from assay.running.others import Others

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


@pytest.fixture
def start(monkeypatch, tmp_path):
    """A function that starts a process, of this run or not, that can be made to compute."""
    monkeypatch.setenv(runs.VARIABLE, str(tmp_path))
    started = []

    def begin(code=SPIN, **variables):
        surroundings = {name: value for name, value in os.environ.items() if name != runs.VARIABLE}
        process = subprocess.Popen(
            [sys.executable, '-c', code],
            env=surroundings | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        with process:
            process.kill()


def compute(process):
    process.stdin.write('\n')
    process.stdin.flush()
    process.stdout.readline()


def named(use, process):
    return any(f'(process {process.pid})' in one for one in use.busiest)


def test_others_are_named_and_what_is_of_this_run_is_not(start, tmp_path, monkeypatch):
    monkeypatch.setattr(others, 'WORTH_NAMING', 0.0)
    monkeypatch.setattr(others, 'MOST', 1000)
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


def test_of_a_process_that_has_ended_its_parent_has_what_it_used_since(start, monkeypatch):
    monkeypatch.setattr(others, 'WORTH_NAMING', 0.0)
    monkeypatch.setattr(others, 'MOST', 1000)
    parent = start(PARENT)
    compute(parent)  # the child, whose input it is
    look = Others()
    compute(parent)
    parent.stdin.close()
    parent.stdout.readline()
    (words,) = (one for one in look.use().busiest if f'(process {parent.pid})' in one)
    assert 0.1 <= float(words.split()[-2]) < 0.35


def test_who_has_ended_does_not_say_whose_it_was(start, tmp_path, monkeypatch):
    """As what a job leaves, where nobody asks for it."""
    monkeypatch.setattr(others, 'WORTH_NAMING', 0.0)
    monkeypatch.setattr(others, 'MOST', 1000)
    own = start(**{runs.VARIABLE: str(tmp_path)})
    look = Others()
    compute(own)
    own.kill()
    os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
    assert state(own.pid) == 'Z'
    assert not named(look.use(), own)
    # What this process is given in the end is no others' either.
    assert os.getppid() in set(others._ancestors())


def state(pid):
    return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]


def test_what_others_call_themselves_obeys_no_terminal(start, monkeypatch):
    monkeypatch.setattr(others, 'WORTH_NAMING', 0.0)
    monkeypatch.setattr(others, 'MOST', 1000)
    process = start(HOSTILE)
    look = Others()
    compute(process)
    use = look.use()
    assert named(use, process)
    assert ''.join(use.busiest).isprintable()
