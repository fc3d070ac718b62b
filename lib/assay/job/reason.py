"""Of all that a program, its MPI and its launcher wrote, the words that say best why it failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from assay.job.output import unlogged
from assay.text import Piece

#: Characters of an answer.
LONGEST = 300

# Open MPI frames its messages by such lines, and breaks their sentences.
_RULE = re.compile(r'-{20,}')
_LINES_OF_FRAME = 16
_FACT = re.compile(r'^[A-Z][a-z]\w*(?: \w+)?: +\S.*', re.MULTILINE)

# Where Open MPI was moved, it does not find the files with its messages.
_TOPIC = re.compile(r'supposed to get help about:\s+(\S+)')

# Lines of MPICH's error stack, the innermost last.
_STACK = re.compile(r'\w+\(\d+\)\.*: ?(.*)')

# Open MPI gives its own code for that, OMPI_ERR_UNREACH (ompi/constants.h), and no words.
_UNREACHABLE = re.compile(r'^Error in (MPI_\w+)\(.*\) \(-12\)$')

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
        r'|error while loading shared libraries|undefined symbol|symbol lookup error'
        r'|execv\w* error|unable to launch|unable to find the specified|could not execute'
        r'|Permission denied|not enough slots',
        # An MPI's for what it lacks.
        r'UCX +ERROR|component was not found|No components were able|unable to reach each other'
        r'|the text of which is not installed|unreachable|No network interfaces|not compatible'
        r'|MPI_ERR_|Fatal error in|Error in MPI_|no transport reaches',
        r'Caught signal|[Ss]egmentation fault|Assertion|terminate called',
        r'init of component \w+ returned failure|init returned failure for component',
        # The first of several: what srun and the others do follows from it.
        r'[Kk]illed|signal \d+|Exited with exit code',
        r'MPI_ABORT was invoked|Abort\(',
        r'UCX +FATAL|[Ff]atal|cannot|[Cc]ould not|not found|No such file|[Ee]rror:',
        # What a launcher says of any failure.
        r'An error occurred|non-zero|has exited due to|EXIT STRING|[Ee]xit code',
    )
)


def reason(program: str, output: Iterable[Piece]) -> str:
    """The words that say best why a program failed.

    :param program: as it begins its error messages, which come before all others.
    :param output: what was written, in pieces of whole lines.
    """
    telling = (re.compile(re.escape(f'{program}: ')).match, *(one.search for one in _TELLING))
    best, rank = 'it printed nothing', len(telling) + 1
    for words in _said(output):
        if rank >= len(telling) and unlogged(words):
            best, rank = words, len(telling)  # the last words, if none are telling
        for number, tells in enumerate(telling[:rank]):
            if tells(words):
                best, rank = words, number
                break
        if rank == 0:
            break
    return best if len(best) <= LONGEST else f'{best[:LONGEST]} ...'


def _said(output: Iterable[Piece]) -> Iterator[str]:
    """Each line with a word in it. A framed message, and an error with its stack, come as one."""
    frame: list[str] | None = None
    error = cause = ''
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
            yield f'{error}: {cause}'
            error = cause = ''
        if _RULE.fullmatch(line):
            frame = []
        elif line.endswith(', error stack:'):
            error = line.removesuffix(', error stack:')
        elif re.search(r'\w', line):
            yield line
    yield from _unframed(frame or [])
    if error:
        yield f'{error}: {cause}'


def _unframed(frame: list[str]) -> Iterator[str]:
    """The first sentence of a message with the facts that it lists, and then each line."""
    text = '\n'.join(frame).strip()
    if topic := _TOPIC.search(text):
        yield f'Open MPI stopped with its message {topic[1]}, the text of which is not installed'
    first, _, rest = text.partition('\n\n')
    said = ' '.join(first.split())
    sentence = ended[0] if (ended := re.match(r'.*?\.(?= |$)', said)) else said
    facts = [' '.join(fact.split()) for fact in _FACT.findall(rest)]
    yield f'{sentence.rstrip(":")} ({"; ".join(facts)})' if facts else sentence
    yield from (line for line in frame if re.search(r'\w', line))


def _lines(output: Iterable[Piece]) -> Iterator[str]:
    for piece in output:
        for line in _HARMLESS.sub('', piece).splitlines():
            yield _UNREACHABLE.sub(r'\1: no transport reaches the other process', line.strip())
