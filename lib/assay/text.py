"""Text that a job, a scheduler, a build or a host wrote, made safe for a terminal and for XML.

Escape sequences move the cursor over lines that were printed before and write others in their
place; characters of no width or of another direction show something else than what is there.

Names of nodes are folded and expanded here as well, as schedulers write them; lists of CPUs, as the
kernel does; and words of messages: how many of something, the first of many names, and names that
nothing has, with what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NewType, TextIO

#: Whole lines of what a job wrote, which is gone through in pieces. A type of its own, so that a
#: plain text is not taken for an output: Python would go through its characters.
Piece = NewType('Piece', str)

#: Characters that a sentence quotes at most: what a job prints has no bound.
MOST = 2000

#: What colours text, and what compilers and ReFrame send with it: it says nothing.
COLOURS = re.compile(r'\x1b\[[\d;:]*[mK]')


def visible(text: str) -> str:
    """One line with nothing in it that a terminal obeys or hides: what would be is written out.

    ``\\x1b`` stands for an escape character, ``\\u202e`` for one that turns the direction. Blanks
    of all kinds are spaces, colours are gone.
    """
    if text.isprintable():
        return text
    return ''.join(map(_visible, COLOURS.sub('', text)))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return ' ' if character.isspace() else character.encode('unicode_escape').decode()


def plain(text: object, most: int = MOST) -> str:
    """Foreign text as one line for a sentence: visible, single spaces, cut in its middle."""
    line = str(text)
    if len(line) > 4 * most:  # before any work: it may be the output of thousands of ranks
        line = f'{line[: 2 * most]} ... {line[-most:]}'
    line = ' '.join(visible(line).split())
    if len(line) > most:
        end = most // 4
        line = f'{line[: most - end - 5]} ... {line[-end:]}'
    return line


def visible_lines(text: str) -> str:
    """A text of several lines made :func:`visible`; its line feeds and tabs stay."""
    if text.isprintable():
        return text
    parts = re.split(r'([\n\t])', COLOURS.sub('', text))
    return ''.join(part if part in ('\n', '\t') else visible(part) for part in parts)


class VisibleStream:
    """A text stream that writes nothing but visible lines, in the encoding of the one beneath."""

    def __init__(self, stream: TextIO) -> None:
        self.beneath = stream

    def write(self, text: str) -> int:
        encoding = self.beneath.encoding or 'ascii'
        safe = visible_lines(text).encode(encoding, 'backslashreplace').decode(encoding)
        self.beneath.write(safe)
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self.beneath, name)


def as_field(text: str) -> str:
    """Without what would end a field or a line of the perflog, or steer a terminal."""
    return re.sub(r'[\x00-\x1f\x7f-\x9f|]', lambda found: f'\\x{ord(found[0]):02x}', text)


def from_field(text: str) -> str:
    """Undo :func:`as_field`."""
    return re.sub(r'\\x([01][\da-f]|7c|7f|[89][\da-f])', lambda found: chr(int(found[1], 16)), text)


def fold_nodes(names: Sequence[str]) -> str:
    """Names of nodes as ReFrame and Slurm write them: ``n[1-4]``.

    :raises ValueError: if they are no names of hosts.
    """
    # Here, as few commands need it and it takes a while to load.
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise ValueError(f'{", ".join(names)}: {error}') from None


def expand_nodes(text: str) -> list[str]:
    """The names of nodes such as ``n[1-4]``; none of ``(null)``, as Slurm writes it.

    :raises ValueError: if the text is none of them.
    """
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    try:
        return list(NodeSet(text.replace('(null)', ''), resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise ValueError(f'{text}: {error}') from None


#: Numbers that a list may stand for: no machine has so many.
MOST_CPUS = 1 << 20


@lru_cache(maxsize=4096)
def parse_cpus(text: str) -> frozenset[int]:
    """The numbers of a Linux list such as ``0-3,8``.

    :raises ValueError: if it is not one.
    """
    numbers: set[int] = set()
    listed = 0
    for part in text.split(',') if text else []:
        if not (match := re.fullmatch(r'(\d+)(?:-(\d+))?', part)):
            raise ValueError(f'not a list of numbers such as 0-3,8: {text!r}')
        first, last = int(match[1]), int(match[2] or match[1])
        listed += max(0, last - first + 1)
        if listed > MOST_CPUS:
            raise ValueError(f'more than {MOST_CPUS} numbers: {part}')
        numbers.update(range(first, last + 1))
    return frozenset(numbers)


def as_list(numbers: frozenset[int] | set[int] | list[int]) -> str:
    """Numbers as a Linux list: ``0-3,8``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ','.join('-'.join(map(str, run)) for run in runs)


def many(count: int, what: str) -> str:
    """``1 core``, ``2 cores``."""
    return f'{count} {what}{"s" * (count != 1)}'


def first_few(names: Sequence[str], most: int = 4) -> str:
    """Some names, with dots for more of them; ``nothing`` for none."""
    return ', '.join([*names[:most], *(['...'] if len(names) > most else [])]) or 'nothing'


def similar(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that are spelled much like it, the most similar first."""
    import difflib

    return difflib.get_close_matches(name, known, n=most)


def did_you_mean(names: Iterable[str]) -> str:
    """The question which one was meant; empty if there is none to ask for."""
    return f'did you mean {" or ".join(names)}?' if names else ''


def unknown_name(name: object, what: str, known: Iterable[object]) -> str:
    """A sentence: a name is unknown, and which may have been meant.

    :param what: the kind of thing that it would be the name of.
    """
    known = sorted(map(str, known))
    hint = did_you_mean(similar(str(name), known, most=1)) or f'there are {", ".join(known)}'
    return f'no {what} has this name; {hint}'
