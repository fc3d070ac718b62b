"""What a job wrote, gone through in pieces each time that something is looked for in it.

MPIs that say which way messages go write a line for each pair of ranks: a gigabyte for two
thousand. The program's own output is short.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from assay.text import Piece

#: Characters of a piece; a line that is longer is cut.
PIECE = 1 << 20

#: Characters that a program may write itself.
MOST = 1 << 24

# Lines that Open MPI, UCX, libfabric and Intel MPI log.
_LOGGED = re.compile(
    r'^(?:\[[\w.-]+:\d+\] |\[\d+\.\d+\] \[|libfabric:\d+:|\[\d+\] MPI startup\(\)).*\n?',
    re.MULTILINE,
)


class TooMuchError(Exception):
    """A program wrote more than can be read; the message is one sentence."""


@dataclass(frozen=True)
class Output:
    """Files of a job, one after the other: iterating gives pieces of whole lines."""

    files: tuple[Path, ...]

    def __iter__(self) -> Iterator[Piece]:
        for number, path in enumerate(self.files):
            if number:
                yield Piece('\n')  # a file may end within a line
            with path.open(errors='replace') as file:
                while piece := file.read(PIECE):
                    yield Piece(piece + file.readline(PIECE))

    @property
    def text(self) -> str:
        """What the program wrote itself.

        :raises TooMuchError: if that is more than :data:`MOST`.
        """
        own, length = [], 0
        for piece in self:
            own.append(unlogged(piece))
            length += len(own[-1])
            if length > MOST:
                names = ' and '.join(path.name for path in self.files)
                raise TooMuchError(
                    f'{names} hold more than {MOST >> 20} MiB that no MPI logged: is it the '
                    f'program that was asked for?'
                )
        return ''.join(own)


def unlogged(text: str) -> str:
    """Without the lines that MPIs and their libraries log."""
    return _LOGGED.sub('', text)


def found(expression: re.Pattern[str], pieces: Iterable[Piece]) -> re.Match[str] | None:
    """The first match within one line."""
    return next((match for piece in pieces if (match := expression.search(piece))), None)
