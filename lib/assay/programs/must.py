"""MUST: the report of what it found wrong with a program's use of MPI.

``MUST_Output.html`` is read, and not the JSON that version 1.9 can write too: only the page says
whether MUST came to its end, without which nothing found means nothing. Seen of version 1.9.2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal, get_args

from assay.programs.application import WrongAnswerError
from assay.text import plain

REPORT = 'MUST_Output.html'

_ENDED = 'MUST has completed successfully'
# A cell's class: of what kind the message is, whether its row is even, and the column.
_CELL = re.compile('([ewi])[eo]([1-5])')
# Of that the words of a sentence: what MUST tells of a deadlock has many.
_LONGEST = 400

Kind = Literal['error', 'warning', 'information']


@dataclass(frozen=True)
class Message:
    """A finding of MUST.

    :param ranks: in its words, such as ``0-3``; empty for all together.
    :param place: the call, and where MUST was built to know it the line, of one of the ranks.
    """

    kind: Kind
    ranks: str
    text: str
    place: str

    def __str__(self) -> str:
        ranks = f'rank {self.ranks}: ' if self.ranks else ''
        place = f' ({self.place})' if self.place else ''
        return plain(f'{ranks}{self.text}{place}', _LONGEST)


class _Messages(HTMLParser):
    """The messages of the page, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        #: By columns.
        self.found: list[tuple[Kind, dict[str, str]]] = []
        self._column = ''

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == 'td':
            cell = _CELL.match(dict(attrs).get('class') or '')
            self._column = cell[2] if cell else ''
            if not cell:
                return
            if self._column == '1':
                kind = next(one for one in get_args(Kind) if one.startswith(cell[1]))
                self.found.append((kind, {}))
            # The text stands twice, and may be cut the first time.
            self.found[-1][1][self._column] = ''
        elif tag == 'br':
            self.handle_data(' ')

    def handle_endtag(self, tag: str) -> None:
        if tag == 'td':
            self._column = ''
        elif tag == 'b':  # the call, which the words behind it touch
            self.handle_data(' ')

    def handle_data(self, data: str) -> None:
        if self._column:
            self.found[-1][1][self._column] += data


def read_messages(folder: Path, unended: str = '') -> list[Message]:
    """The findings of MUST on a program that ran in a folder.

    :param unended: what had to end it, in words; empty if it ended by itself.
    :raises WrongAnswerError: if there is no report, or MUST did not come to its end, as where it
        finds a deadlock; with what it found until then.
    """
    try:
        page = (folder / REPORT).read_text(errors='replace')
    except FileNotFoundError:
        raise WrongAnswerError(f'MUST left no {REPORT}') from None
    parser = _Messages()
    try:
        parser.feed(page)
    except IndexError:  # a cell before the first message
        raise WrongAnswerError(f'{REPORT} is not a report of MUST that is known') from None
    messages = [
        Message(kind, *(' '.join(cells.get(column, '').split()) for column in '134'))
        for kind, cells in parser.found
    ]
    if unended or _ENDED not in page:
        errors = [str(one) for one in messages if one.kind == 'error']
        told = '; '.join(filter(None, [*errors, unended]))
        raise WrongAnswerError(f'MUST did not come to its end: {told or "it says not why"}')
    return messages


def check_messages(messages: list[Message]) -> list[str]:
    """The warnings among what MUST found, for people to know of.

    :raises WrongAnswerError: if it found an error, with its words on the first.
    """
    errors = [str(one) for one in messages if one.kind == 'error']
    if errors:
        more = f' (and {len(errors) - 1} more)' if errors[1:] else ''
        raise WrongAnswerError(f'MUST found an error: {errors[0]}{more}')
    return [str(one) for one in messages if one.kind == 'warning']
