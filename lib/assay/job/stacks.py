"""The stacks that the witness takes of a job's ranks by gdb, shortly before the time limit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from assay.job.launch import WITNESS

#: Beside the report, one for each host.
FILES = f'{WITNESS}.stacks-*'

#: What gdb is left of a job's time: so many seconds, but no more than this share.
SECONDS, SHARE = 30, 0.2

#: Ranks whose innermost calls are reported.
MOST = 4

_RANK = re.compile(r'^== (.+), pid \d+$', re.MULTILINE)
# gdb gives the main thread the number 1.
_MAIN = re.compile(r'^Thread 1 .*\n((?:#.*\n?)+)', re.MULTILINE)
# Function, line of the source, library.
_FRAME = re.compile(
    r'^#\d+ +(?:0x[0-9a-f]+ in )?(.+?) \(.*?\)(?: at (.+)| from (.+))?$', re.MULTILINE
)

# What the C library's debug information, where it is installed, calls its sources.
_OF_LIBC = re.compile(r'\./|\.\./sysdeps/')


def taken_after(time_limit: float) -> int:
    """Seconds of a job after which stacks are taken.

    :param time_limit: of the job, in seconds.
    """
    return int(time_limit - min(SECONDS, SHARE * time_limit))


def innermost_calls(folder: Path) -> str | None:
    """Where the first ranks of a hung job were, and the files with all stacks; None if none are."""
    files = sorted(folder.rglob(FILES))
    ranks = (f'{who} was {where}' for file in files for who, where in _read(file))
    found = list(islice(ranks, MOST))
    if not found:
        return None
    whole = files[0] if len(files) == 1 else files[0].parent / FILES
    return f'{"; ".join(found)} (stacks: {whole})'


def _read(file: Path) -> Iterator[tuple[str, str]]:
    """Each rank of a file, and where its main thread was."""
    _, *parts = _RANK.split(file.read_text(errors='replace'))
    for who, text in zip(parts[::2], parts[1::2], strict=True):
        main = _MAIN.search(text)
        if main and (frames := _FRAME.findall(main[1])):
            yield who, _where(frames)


def _where(frames: list[tuple[str, str, str]]) -> str:
    """The MPI call and who made it; outside MPI the program's own innermost function.

    :param frames: innermost first.
    """
    calls = [depth for depth, frame in enumerate(frames) if re.fullmatch(r'MPI_\w+', frame[0])]
    if not calls:
        own = [frame for frame in frames if not frame[2] and not _OF_LIBC.match(frame[1])]
        return f'in {_function((own or frames)[0])}'
    callers = [frame for frame in frames[calls[-1] + 1 :] if frame[0] != '??']
    by = f', called by {_function(callers[0])}' if callers else ''
    return f'in {frames[calls[-1]][0]}{by}'


def _function(frame: tuple[str, str, str]) -> str:
    name, line, _ = frame
    return f'{name} at {line}' if line else name
