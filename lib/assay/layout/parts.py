"""Ranks that differ: each takes its own threads, cores and program when it starts.

Launchers bind all ranks alike, or each in other words of its own. So they bind none, and start this
script in place of the program; it knows its place on the node from the launcher's variable.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

#: The script, for bash and taskset.
SOURCE = Path(__file__).with_name('part.sh')

#: Its name in the job's folder.
SCRIPT = 'part'


def add_to(folder: Path) -> None:
    """Put the script into a job's folder."""
    shutil.copyfile(SOURCE, folder / SCRIPT)


def command(widths: Sequence[int], wide: str, narrow: str, *arguments: str) -> list[str]:
    """What the launcher starts in place of a program.

    :param widths: threads of each rank of a node in turn, as its placement has them.
    :param wide: the program of each node's first rank.
    :param narrow: the program of all others.
    :param arguments: of both.
    """
    return ['bash', SCRIPT, ','.join(map(str, widths)), wide, narrow, *arguments]
