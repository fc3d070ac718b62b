"""People are notified, by a command of theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress

from assay import AssayError
from assay.running import runs

#: Seconds that the command has.
PATIENCE = 120

#: Characters of what it says that are passed on.
MOST = 400


def notify(command: str, word: str, subject: str, message: str) -> None:
    """Run a command of the shell with a message on its standard input.

    It finds the verdict in ``ASSAY_VERDICT`` and the subject in ``ASSAY_SUBJECT``.

    :raises AssayError: if it fails, or takes too long: then nobody can be taken to know.
    """
    # It is no job of the run: what it leaves behind is not stopped with those.
    ours = {name: value for name, value in os.environ.items() if name != runs.VARIABLE}
    try:
        problem = _run(command, {**ours, 'ASSAY_VERDICT': word, 'ASSAY_SUBJECT': subject}, message)
    except OSError as error:
        problem = f'cannot be started: {error}'
    if problem:
        raise AssayError(f'nobody was told: --notify {command!r} {problem}')


def _run(command: str, environment: Mapping[str, str], message: str) -> str:
    """Why it is no good, in words; empty if it is."""
    # Files, not pipes: it need not read, and what it leaves behind may go on writing.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(message.encode())
        given.seek(0)
        process = subprocess.Popen(
            ['sh', '-c', command],
            stdin=given,
            stdout=said,
            stderr=said,
            env=environment,
            start_new_session=True,
        )
        try:
            code = process.wait(PATIENCE)
            ended = f'ended with exit code {code}'
        except subprocess.TimeoutExpired:
            code, ended = 1, f'was stopped after {PATIENCE} s'
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        words = said.read(MOST).decode(errors='replace').strip()
    return f'{ended}{": " * bool(words)}{words}' if code else ''
