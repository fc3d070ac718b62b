"""The file of a system: written from a draft, and read again."""

from __future__ import annotations

import os
import re
import runpy
import socket
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assay import AssayError
from assay.config.environments import AS_ROOT, environment
from assay.config.fabrics import load_catalogue
from assay.discovery.draft import Asked, Draft, LeftOut
from assay.discovery.partitions import unlike
from assay.machine.modules import modules_tool

TEMPLATE = Path(__file__).with_name('system.py.jinja')

#: Columns of the file.
WIDTH = 100


def written(made: Draft, left_out: LeftOut | None) -> str:
    """The text of the file.

    :param left_out: what was not confirmed; None before anything was.
    """
    from jinja2 import Environment, StrictUndefined

    template = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    confirmed = made.without(left_out or {})
    template.filters |= {'py': _python, 'variable': _variables(confirmed).get}
    text = template.from_string(TEMPLATE.read_text()).render(
        draft=confirmed,
        asked=asdict(made.asked),
        left_out=left_out,
        # Login nodes that differ by a number are of one kind.
        host=re.sub(r'\d+', r'\\d+', re.escape(socket.gethostname())),
        modules_system=modules_tool(),
        environments={mpi.name: environment(mpi) for mpi in confirmed.mpis},
        fabrics=set(load_catalogue().fabrics),
        as_root=AS_ROOT if os.geteuid() == 0 else [],
    )
    return f'{text.rstrip()}\n'


def _variables(made: Draft) -> dict[str, str]:
    """A name in Python for each MPI."""
    found: dict[str, str] = {}
    for mpi in made.mpis:
        found[mpi.name] = unlike(re.sub(r'\W', '_', mpi.name), found.values())
    return found


def _python(value: Any, depth: int, beside: int = 24) -> str:
    """A value as Python has it: in one line if there is room, otherwise an item a line.

    :param depth: blanks before the line in which it begins, and before its end.
    :param beside: what else stands in that line.
    """
    short = repr(value)
    if not isinstance(value, dict | list) or len(short) <= WIDTH - depth - beside:
        return short
    inner = depth + 4
    if isinstance(value, dict):
        heads = {key: f'{key!r}: ' for key in value}
        lines = [f'{heads[key]}{_python(value[key], inner, len(heads[key]) + 1)},' for key in value]
    elif all(isinstance(item, str) and ' ' not in item for item in value):
        words = ', '.join(map(repr, value)) + ','
        room = WIDTH - inner
        lines = textwrap.wrap(words, room, break_long_words=False, break_on_hyphens=False)
    else:
        lines = [f'{_python(item, inner, 1)},' for item in value]
    first, last = '{}' if isinstance(value, dict) else '[]'
    return '\n'.join([first, *(f'{" " * inner}{line}' for line in lines), f'{" " * depth}{last}'])


def read_again(path: Path) -> tuple[Asked, LeftOut | None]:
    """The options of an earlier `assay init` and what it did not confirm, from the file it wrote.

    :returns: for the second None where it was stopped before it confirmed anything.
    :raises AssayError: if it did not write it.
    """
    try:
        values = runpy.run_path(str(path))
        asked = {key: tuple(words) for key, words in values['asked'].items()}
        return Asked(**asked), values['left_out']
    except Exception as error:  # a configuration file is a program: it can raise anything
        raise AssayError(
            f'{path} is not as `assay init` writes it, which changes no other file: '
            f'choose another name ({type(error).__name__}: {error})'
        ) from error
