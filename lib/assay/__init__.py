"""Assay: regression tests for HPC systems, built on ReFrame."""

import sys

from assay.text import plain

__version__ = '0.2.0'


class AssayError(Exception):
    """Something foreseeable is wrong; the message says what, where, and what to do."""


def error_text(error: AssayError) -> str:
    """An error as a command tells it: no line quoted in it can be taken for one of ours."""
    lines = (line.removeprefix('assay: ') for line in str(error).splitlines())
    return '\n'.join(f'assay: {plain(line)}' for line in lines)


def say(text: str) -> None:
    """A line of progress."""
    print(f'Assay: {plain(text)}', file=sys.stderr, flush=True)
