"""What is said of a night: in its last line, and to people, whom a command of theirs notifies."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from assay import AssayError
from assay.nights.outcome import NightOutcome, Reported
from assay.running import runs
from assay.text import plain

#: Sentences of a message.
MOST_SENTENCES = 20

#: Seconds that the command which notifies people has.
PATIENCE = 120

#: Characters of its output that are passed on.
MOST_OUTPUT = 400


def subject(which: str, outcome: NightOutcome, before: Reported) -> str:
    """One line: what it is now, and what people took it for.

    :param which: system and mode.
    """
    was = f'was {before.word}' if before.word != outcome.word else 'not as before'
    return f'Assay: {which} {outcome.word}, {was}'


def message(headline: str, outcome: NightOutcome, before: Reported, run: str) -> str:
    """The message to people about a night.

    :param headline: its first line.
    :param before: what they know.
    :param run: its last line, where to look.
    """
    lines = [headline, *_list(outcome.sentences)]
    if gone := sorted({*before.culprits} - {*outcome.culprits}):
        lines += ['no longer:', *_list(gone)]
    return '\n'.join([*lines, run, ''])


def _list(words: tuple[str, ...] | list[str]) -> list[str]:
    more = [f'  and {len(words) - MOST_SENTENCES} more'] if len(words) > MOST_SENTENCES else []
    return [*(f'  {plain(one)}' for one in words[:MOST_SENTENCES]), *more]


def last_line(which: str, outcome: NightOutcome, told: Reported) -> str:
    """What a night ends with."""
    as_before = f', as since {as_minute(told.since)}' if told.since and told.is_of(outcome) else ''
    return f'NIGHT {outcome.word}: {which}{as_before}'


def as_minute(when: datetime) -> str:
    return f'{when.astimezone():%Y-%m-%d %H:%M}'


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
        words = said.read(MOST_OUTPUT).decode(errors='replace').strip()
    return f'{ended}{": " * bool(words)}{words}' if code else ''
