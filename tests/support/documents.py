"""The documents of this checkout, and the code in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from assay import paths

DOCS = paths.ROOT / 'docs'
ARCHITECTURE = DOCS / 'architecture.md'

MARKDOWN = MarkdownIt('commonmark').enable('table')


@cache
def parsed(path: Path) -> list[Token]:
    """A document, which no test changes."""
    return MARKDOWN.parse(path.read_text())


def tokens(path: Path) -> Iterator[Token]:
    for token in parsed(path):
        yield token
        yield from token.children or []


def code(path: Path) -> Iterator[tuple[str, bool]]:
    """The pieces of code of a document, and whether each is a block."""
    for token in tokens(path):
        if token.type in ('fence', 'code_block', 'code_inline'):
            yield token.content, token.type != 'code_inline'


def uses(line: str) -> Iterator[tuple[str, ...]]:
    """The words behind each ``assay`` that a line of code calls."""
    if found := re.search(r'\$\((?:\./)?assay ([^)]*)\)', line):
        yield tuple(shlex.split(found[1]))
        return
    try:
        words = shlex.split(line.strip().removeprefix('$ '), comments=True)
    except ValueError:  # not of a shell
        return
    at = next((n for n, word in enumerate(words) if word in ('./assay', 'assay/assay')), None)
    if at is None and words[:1] == ['assay']:
        at = 0
    if at is not None and len(words) > at + 1 and not words[at + 1].startswith('...'):
        yield tuple(words[at + 1 :])


def rows(path: Path) -> Iterator[list[str]]:
    """The cells of the tables of a document."""
    for line in path.read_text().splitlines():
        if line.startswith('| '):
            yield [cell.strip() for cell in line.strip('|').split('|')]
