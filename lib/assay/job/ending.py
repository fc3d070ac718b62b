"""Jobs that something else than their program ended: a time limit, or a node that died.

The witness takes the stacks of a job's ranks by gdb, shortly before the time limit.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from assay import witness
from assay.job.launch import WITNESS
from assay.job.output import Output, first_match
from assay.machine.job_states import ENDED_BY_SCHEDULER, NEVER_STARTED


@dataclass(frozen=True)
class EndedJob:
    """A job that has ended, and what it left.

    :param folder: where it ran.
    :param stdout: name of its standard output there, as ``stderr`` is of its standard error.
    :param exit_code: of its script.
    :param state: the scheduler's word for how it ended.
    :param nodes: as the scheduler calls them.
    """

    folder: Path
    stdout: str
    stderr: str
    exit_code: int
    state: str
    nodes: tuple[str, ...]


#: Beside the report, one for each host.
FILES = f'{WITNESS}.stacks-*'

#: What gdb is left of a job's time: so many seconds, but no more than this share.
SECONDS, SHARE = 30, 0.2

_RANK = re.compile(r'^== (.+), pid \d+$', re.MULTILINE)
# gdb gives the main thread the number 1.
_MAIN = re.compile(r'^Thread 1 .*\n((?:#.*\n?)+)', re.MULTILINE)
# Function, line of the source, library.
_FRAME = re.compile(
    r'^#\d+ +(?:0x[0-9a-f]+ in )?(.+?) \(.*?\)(?: at (.+)| from (.+))?$', re.MULTILINE
)

# What the C library's debug information, where it is installed, calls its sources.
_OF_LIBC = re.compile(r'\./|\.\./sysdeps/')


def seconds_until_stacks(time_limit: float) -> int:
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


#: What keeps a scheduler from starting a job again, on other nodes, when one of its own died: then
#: nobody would hear of that node.
ONLY_ONCE = {
    'slurm': '--no-requeue',
    'squeue': '--no-requeue',
    'pbs': '-r n',
    'pbspro': '-r n',
    'torque': '-r n',
}

_NODE_FAILURE = re.compile('node failure', re.IGNORECASE)

#: Ranks whose end, or whose innermost calls, are reported.
MOST = 4


def why_cut_short(state: str, folder: Path, errors: Path, nodes: Sequence[str] = ()) -> str | None:
    """Why a job did not reach its end, and where its ranks were then; None if it did.

    :param state: the scheduler's word for how the job ended.
    :param folder: where the job ran.
    :param errors: the job's standard error, in which Slurm names the node that died.
    :param nodes: the nodes of the job; Slurm runs its script on the first.
    """
    for name, words in ENDED_BY_SCHEDULER.items():
        if state.startswith(name):
            words += _by_whom(state)
            if name in NEVER_STARTED:
                return words
            if not errors.exists():
                return f'{words} before it started'
            output = Output((errors,))
            said = dict.fromkeys(
                host for piece in output for host in re.findall(r'[Nn]ode failure on (\S+)', piece)
            )
            if name == 'NODE_FAIL' and not first_match(_NODE_FAILURE, output):
                said = dict.fromkeys(nodes[:1])  # nobody was left on it to say so
            which = f' ({", ".join(said)})' if said else ''
            seen = filter(None, [last_seen(folder), innermost_calls(folder)])
            return f'{words}{which}; {"; ".join(seen)}'
    return None


def _by_whom(state: str) -> str:
    """The words on who cancelled a job, from ``CANCELLED by 0``."""
    user = state.partition(' by ')[2]
    if not user.isdigit():
        return ''
    if int(user) == os.getuid() != 0:
        return ' by you'
    try:
        return f' by {pwd.getpwuid(int(user)).pw_name}'
    except KeyError:
        return f' by user {user}'


def last_seen(folder: Path) -> str:
    """Where the ranks of the newest program in a job's folder were, by what the witness left."""
    reports = sorted(folder.rglob(WITNESS), key=lambda path: (path.stat().st_mtime, path))
    if not reports:
        return 'its ranks had not come through MPI_Init'
    try:
        report = witness.read_witness(reports[-1])
    except witness.WitnessError as error:
        return str(error)
    if report.complete and report.ranks == 1:
        # Open MPI 5 waits in MPI_Init for a launcher of another user, and goes on alone once that
        # was killed.
        return (
            'the last report is of 1 rank alone, at MPI_Finalize; if there were more, they did not '
            'find each other, as where ranks in containers are not the user of their launcher'
        )
    if report.complete:
        return 'all ranks had come to MPI_Finalize, and one did not come out of it'
    ended = [one.words for one in report.ended[:MOST]]
    return '; '.join(ended) or 'no rank left word of where it was'
