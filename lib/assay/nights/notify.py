"""People are told, by a command of theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from contextlib import suppress

from assay import AssayError

#: Seconds that the command has.
PATIENCE = 120

#: Characters of what it says that are passed on.
MOST = 400


def notify(command: str, word: str, subject: str, message: str) -> None:
    """Run a command of the shell with a message on its standard input.

    It finds the verdict in ``ASSAY_VERDICT`` and the subject in ``ASSAY_SUBJECT``.

    :raises AssayError: if it fails, or takes too long: then nobody can be taken to know.
    """
    environment = {**os.environ, 'ASSAY_VERDICT': word, 'ASSAY_SUBJECT': subject}
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
    if code:
        raise AssayError(
            f'nobody was told: --notify {command!r} {ended}{": " * bool(words)}{words}'
        )
