"""The files of the checks that a command line names.

ReFrame makes every variant of every check in the files that it reads, and then chooses by name: of
the suite's that takes most of the time until the first job starts.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from assay.config.lint import check_classes
from assay.running.reframe_options import Given

#: `^Ring`, `^(Ring|Halo) %fabric=(shm|tcp)`: what names of checks begin with; what follows is about
#: their parameters. Of any other expression nobody can tell whose names it matches.
_BEGINS = re.compile(r'\^(?:(\w+)|\((\w+(?:\|\w+)*)\))(?:[ %@$](?:[^|()\[\\]|\([^()\[\\]*\))*)?')


def files_of(given: Given, checks: Path) -> list[Path]:
    """The files below the folder that hold every check that ``-n`` and ``-S`` name.

    :returns: none where all are to be read: the options name no checks, or leave open which.
    """
    beginnings: list[str] = []
    for expression in given.names:
        if not (match := _BEGINS.fullmatch(expression)):
            return []
        beginnings += (match[1] or match[2]).split('|')
    if not beginnings or '--checkpath' in given.names_of_options:
        return []
    # ReFrame warns of a variable whose class it has not read.
    setting = (one.partition('=')[0] for one in given.variables)
    beginnings += [name.partition('.')[0] for name in setting if '.' in name]
    found = []
    for path in sorted(checks.rglob('*.py')):
        with suppress(SyntaxError):  # which the lint tells
            if any(name.startswith(tuple(beginnings)) for name in check_classes(path)):
                found.append(path)
    return found
