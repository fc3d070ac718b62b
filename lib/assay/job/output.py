"""The output of a job, read in pieces, and the words of it that say best why it failed.

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
        """The program's own output, without the lines that an MPI logs.

        :raises TooMuchError: if that is more than :data:`MOST`.
        """
        own, length = [], 0
        for piece in self:
            own.append(without_log_lines(piece))
            length += len(own[-1])
            if length > MOST:
                names = ' and '.join(path.name for path in self.files)
                raise TooMuchError(
                    f'{names} hold more than {MOST >> 20} MiB that no MPI logged: is it the '
                    f'program that was asked for?'
                )
        return ''.join(own)


def without_log_lines(text: str) -> str:
    """Without the lines that MPIs and their libraries log."""
    return _LOGGED.sub('', text)


def first_match(expression: re.Pattern[str], pieces: Iterable[Piece]) -> re.Match[str] | None:
    """The first match within one line."""
    return next((match for piece in pieces if (match := expression.search(piece))), None)


#: Characters of an answer.
LONGEST = 300

# Open MPI frames its messages by such lines, and breaks their sentences.
_RULE = re.compile(r'-{20,}')
_LINES_OF_FRAME = 40
_FACT = re.compile(r'^(?:[A-Z][a-z]\w*(?: \w+)?|HNP daemon|#\w+) *: +\S.*|^--> .*', re.MULTILINE)
# A table of a program may stand between such lines, too.
_PROSE = re.compile(r'(?:[A-Z]|\w*(?:run|exec)\b)\S*(?:.*? [a-z]+\b){4}')
# A message by which no program ended.
_WARNING = re.compile(r'WARNING|By default,')
# Characters of a sentence that says too little, so the next one is reported as well.
_SHORT = 45

# Outside of frames a broken sentence is known by its length, and by how it goes on.
_BROKEN = re.compile(r'(?=.{40})[A-Z].*[^.:;!?]')
_GOES_ON = re.compile(r'[a-z]+,? [a-z]')

# Where Open MPI was moved, it does not find the files with its messages.
_TOPIC = re.compile(r'supposed to get help about:\s+(\S+)')

# Lines of MPICH's error stack, the innermost last.
_STACK = re.compile(r'\w+\(\d+\)\.*: ?(.*)')

# Open MPI gives its own code for that, OMPI_ERR_UNREACH (ompi/constants.h), and no words.
_UNREACHABLE = re.compile(r'^Error in (MPI_\w+)\(.*\) \(-12\)$')

# PRRTE says no more where it cannot write the files by which others find it.
_NO_LISTENER = re.compile(r"^The PMIx server's listener thread failed to start\.")
_WHY_NONE = (
    "The PMIx server's listener thread failed to start, as it does where TMPDIR (/tmp) is full or "
    'has a folder ompi.NUMBER that a killed launcher of the same process number left: remove those '
    'of processes that are gone.'
)

# What fails without harm, or only looks like it.
_HARMLESS = re.compile(
    r'^.*(?:UCX +(?:INFO|DIAG|DEBUG)|<info>|mca: base: |bml: Using |check:select: |CVAR: ).*\n?',
    re.MULTILINE,
)

# What explains other failures comes before what follows from it.
_TELLING = tuple(
    re.compile(words)
    for words in (
        # The system's words for what ended a program, or kept it from starting.
        r'oom[_-]kill|[Oo]ut [Oo]f [Mm]emory|No space left|Disk quota|Bus error|Cannot allocate'
        r'|Read-only file system|Too many open files|File too large|File size limit|launch failed'
        r'|File name too long|path that is too long'
        r'|error while loading shared libraries|undefined symbol|symbol lookup error'
        r'|execv\w* error|unable to launch|unable to find the specified|could not execute'
        r'|Permission denied|not enough slots',
        # An MPI's for what it lacks.
        r'UCX +ERROR|component was not found|No components were able|unable to reach each other'
        r'|whose text is not installed|unreachable|No network interfaces|not compatible'
        r'|Connection (?:closed|refused|reset|timed out)|No route to host|Host key verification'
        r'|MPI_ERR_|Fatal error in|Error in MPI_|no transport reaches',
        r'Caught signal|[Ss]egmentation fault|Assertion|terminate called',
        r'init of component \w+ returned failure|init returned failure for component',
        # The first of several: what srun and the others do follows from it.
        r'(?<!were )[Kk]illed|signal \d+|Exited with exit code',
        r'MPI_ABORT was invoked|Abort\(',
        r'UCX +FATAL|[Ff]atal|cannot|[Cc]ould not|not found|No such file|[Ee]rror:',
    )
)
# What a launcher says of any failure; its other messages come before.
_GENERAL = re.compile(r'An error occurred|non-zero|has exited due to|EXIT STRING|[Ee]xit code')


def reason_in_output(program: str, output: Iterable[Piece]) -> str:
    """The words that say best why a program failed.

    :param program: as it begins its error messages, which come before all others.
    :param output: what was written, in pieces of whole lines.
    """
    telling = (re.compile(re.escape(f'{program}: ')).match, *(one.search for one in _TELLING))
    message, general, last, warning, nothing = range(len(telling), len(telling) + 5)
    best, rank = 'it printed nothing', nothing
    for words, is_message in _said(output):
        told = next((number for number, tells in enumerate(telling) if tells(words)), nothing)
        if is_message and _WARNING.match(words):
            told = warning
        elif told == nothing and _GENERAL.search(words):
            told = general
        elif told == nothing and is_message:
            told = message
        if told == nothing and rank >= last and without_log_lines(words):
            best, rank = words, last  # the last words, if none are telling
        elif told < rank:
            best, rank = words, told
        if rank == 0:
            break
    return best if len(best) <= LONGEST else f'{best[:LONGEST]} ...'


def _said(output: Iterable[Piece]) -> Iterator[tuple[str, bool]]:
    """Each line with a word in it, and whether it is a message of a launcher.

    A framed message, an error with its stack, and a sentence of several lines come as one.
    """
    frame: list[str] | None = None
    error = cause = sentence = ''
    for line in _lines(output):
        if frame is not None:
            if not _RULE.fullmatch(line) and len(frame) < _LINES_OF_FRAME:
                frame.append(line)
                continue
            if frame:
                yield from _unframed(frame)
            frame, closes = None, bool(frame)
            if closes and _RULE.fullmatch(line):
                continue
        if error:
            if of_stack := _STACK.match(line):
                cause = of_stack[1] or cause
                continue
            if not cause and line.endswith(', error stack:'):
                continue  # of another rank at the same time
            yield f'{error}: {cause}', False
            error = cause = ''
        if sentence and _GOES_ON.match(line) and _BROKEN.fullmatch(sentence):
            sentence += f' {line}'
            continue
        if sentence:
            yield sentence, False
            sentence = ''
        if _RULE.fullmatch(line):
            frame = []
        elif line.endswith(', error stack:'):
            error = line.removesuffix(', error stack:')
        elif re.search(r'\w', line):
            sentence = line
    if sentence:
        yield sentence, False
    yield from _unframed(frame or [])
    if error:
        yield f'{error}: {cause}', False


def _unframed(frame: list[str]) -> Iterator[tuple[str, bool]]:
    """The first sentence of a message with the facts that it lists; of all else each line."""
    text = '\n'.join(frame).strip()
    if topic := _TOPIC.search(text):
        words = f'Open MPI stopped with its message {topic[1]}, whose text is not installed'
        yield words, True
    first, _, rest = text.partition('\n\n')
    said = ' '.join(first.split())
    if _NO_LISTENER.match(said):
        yield _WHY_NONE, True
    elif _PROSE.match(said):
        sentences = re.findall(r'.+?(?:\.(?= |$)|$)', said)
        facts = [' '.join(fact.split()) for fact in _FACT.findall(rest)]
        sentence = sentences[0]
        if facts:
            sentence = f'{sentence.rstrip(":")} ({"; ".join(facts)})'
        elif len(sentence) < _SHORT:
            sentence = ''.join(sentences[:2])
        yield sentence, True
    else:
        yield from ((line, False) for line in frame if re.search(r'\w', line))


def _lines(output: Iterable[Piece]) -> Iterator[str]:
    for piece in output:
        for line in _HARMLESS.sub('', piece).splitlines():
            yield _UNREACHABLE.sub(r'\1: no transport reaches the other process', line.strip())
