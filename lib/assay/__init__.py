"""Assay: regression tests for HPC systems, built on ReFrame."""

import sys

from assay.text import plain

__version__ = '0.2.0'


class AssayError(Exception):
    """Something foreseeable is wrong; the message says what, where, and what to do."""


def say(text: str) -> None:
    """A line of progress."""
    print(f'Assay: {plain(text)}', file=sys.stderr, flush=True)
