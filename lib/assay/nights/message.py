"""What is said of a night: to people by a message, and in its last line."""

from __future__ import annotations

from datetime import datetime

from assay.nights.folder import Told
from assay.nights.outcome import Outcome
from assay.text import plain

#: Sentences of a message.
MOST = 20


def subject(which: str, outcome: Outcome, before: Told) -> str:
    """One line: what it is now, and what people took it for.

    :param which: system and mode.
    """
    was = f'was {before.word}' if before.word != outcome.word else 'not as before'
    return f'Assay: {which} {outcome.word}, {was}'


def message(headline: str, outcome: Outcome, before: Told, run: str) -> str:
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
    more = [f'  and {len(words) - MOST} more'] if len(words) > MOST else []
    return [*(f'  {plain(one)}' for one in words[:MOST]), *more]


def last_line(which: str, outcome: Outcome, told: Told) -> str:
    """What a night ends with."""
    as_before = f', as since {day(told.since)}' if told.since and told.is_of(outcome) else ''
    return f'NIGHT {outcome.word}: {which}{as_before}'


def day(when: datetime) -> str:
    return f'{when.astimezone():%Y-%m-%d %H:%M}'
