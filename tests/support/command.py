"""Calling the command as a user does."""

import os
import re
import signal
import subprocess
from unittest.mock import patch

import typer
from typer.testing import CliRunner

from assay import paths
from assay.commands.main import app

#: To make it of the application takes a third of the time of a call, which makes it anew each time.
COMMAND = typer.main.get_command(app)


def assay(*arguments, root=paths.ROOT, env=None, seconds=900):
    """Run ``./assay`` of a checkout; returns the ended process with its output."""
    return subprocess.run(
        [root / 'assay', *arguments],
        env={**as_of_a_user(root), **(env or {})},
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def invoke(*words, **env):
    """Call the command in this process; the result has what it raised."""
    with patch('typer.testing._get_command', lambda _: COMMAND):
        return CliRunner().invoke(app, [*map(str, words)], env=env, prog_name='assay')


def call(*words, **env):
    """Likewise, but what it raises is raised, except for its exit."""
    ended = invoke(*words, **env)
    if ended.exception and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended


def as_of_a_user(root):
    """The environment variables of who calls the command in a checkout.

    A copy of this checkout has folders of its own.
    """
    if (root / 'assay').resolve() == paths.ROOT / 'assay':
        return {**os.environ}
    not_there = (paths.RESULTS_VARIABLE, paths.SYSTEMS_VARIABLE)
    return {name: value for name, value in os.environ.items() if name not in not_there}


def heed_signals():
    """For a process that is about to start, which else ignores what the tests' own shell does."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def assert_good(ended):
    """All passed, but for references that were missed while others used the node: no evidence.

    Of nodes that share the CPUs of this machine that is not told, and such a case has failed.
    """
    missed = re.findall(r'^(?:failed|disturbed): .*$', ended.stdout, re.MULTILINE)
    said = ended.stdout[-4000:] + ended.stderr
    assert ended.returncode in ((1, 3) if missed else (0,)), said
    assert all(' disturbed: ' in one for one in missed), said


def counts(ended):
    """Cases that passed, that failed or were disturbed, and all of a run, by its last line."""
    last = r'^(?:PASSED|FAILED|DISTURBED): .* of \d+ cases'
    (line,) = re.findall(last, ended.stdout, re.MULTILINE)
    found = {word: int(count) for count, word in re.findall(r'(\d+) ([a-z]+)', line)}
    return found['passed'], found['failed'] + found.get('disturbed', 0), found['cases']


TOYS = paths.ROOT / 'tests' / 'golden' / 'reports' / 'toys.py'


def run_toy(name, *arguments):
    return assay('run', '-c', str(TOYS), '-n', f'^{name}', '-p', '^openmpi$', *arguments)
