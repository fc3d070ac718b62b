"""Tools of others that are asked something: run to their end, and what they print."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay import AssayError


class NoAnswerError(AssayError):
    """A tool cannot be started, or does not end in time; the message says which, and why."""


def ask(
    command: Sequence[str | Path], seconds: float | None = None, given: str = '', **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end, whatever its exit code; what it prints need not be in any encoding.

    Its children are not ended with it; without a limit of time, those that hold its output are
    waited for.

    :param seconds: that it has.
    :param given: its standard input.
    :param options: for :func:`subprocess.run`.
    :raises NoAnswerError: if it cannot be started or takes longer.
    """
    name = Path(command[0]).name
    try:
        return subprocess.run(
            command,
            input=given,
            capture_output=True,
            encoding='utf-8',
            errors='replace',
            timeout=seconds,
            **options,
        )
    except OSError as error:
        raise NoAnswerError(f'{name}: {error.strerror}') from None
    except subprocess.TimeoutExpired:
        asked = ' '.join([name, *map(str, command[1:])])
        raise NoAnswerError(f'{asked}: no answer in {seconds:g} s') from None


def output_of_tool(
    command: Sequence[str | Path], seconds: float | None = None, given: str = '', **options: Any
) -> str:
    """Standard output of such a tool; empty of one that gives no answer."""
    try:
        return ask(command, seconds, given, **options).stdout
    except NoAnswerError:
        return ''


def first_error(log: Path) -> str | None:
    """The first line with the word error of what a build said; None if none has it."""
    with log.open(errors='replace') as lines:
        for line in lines:
            if re.search(r'\berror\b', line, re.IGNORECASE):
                return line.strip()
    return None
