"""mpiP: its report of a program's calls of MPI, and whether another tool counted the same.

The report is that of version 3.5 with ``-e``, without which bytes are rounded to four digits.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.programs.application import WrongAnswerError
from assay.programs.calls import Counted

#: For the variable ``MPIP``: with all digits, and without where each call was made from.
OPTIONS = '-e,-k0'

_COMMAND = re.compile(r'^@ Command : (\S+)', re.MULTILINE)
_SECTION = re.compile('@--- (.+?) -+')
_RANK = re.compile(r'\d+')

_SENDS = re.compile('MPI_(I?[bsr]?send|Sendrecv(_replace)?)', re.IGNORECASE)
_RECEIVES = re.compile('MPI_I?recv', re.IGNORECASE)


@dataclass(frozen=True)
class Profile:
    """The profile of a program that mpiP wrote.

    :param counts: how often each call was made, of the ranks in their order.
    :param sent: the bytes that were sent by it.
    :param seconds: from the end of MPI_Init to the start of MPI_Finalize, of all ranks together.
    :param in_mpi: of these in MPI.
    """

    counts: list[Counter[str]]
    sent: list[Counter[str]]
    seconds: float
    in_mpi: float


def read_profile(folder: Path, program: str) -> Profile:
    """The report of a program that ran in a folder.

    :raises WrongAnswerError: if there is none, or several, or it is of another program or not
        whole.
    """
    reports = [*folder.glob('*.mpiP')]
    if len(reports) != 1:
        raise WrongAnswerError(f'mpiP left {len(reports)} reports, not 1')
    text = reports[0].read_text(errors='replace')
    command = _COMMAND.search(text)
    if not command or os.path.basename(command[1]) != program:
        ran = command[1] if command else 'nothing'
        raise WrongAnswerError(f'the report of mpiP is of {ran}, and not of {program}')
    try:
        times = [row for row in _rows(text, 'MPI Time (') if _RANK.fullmatch(row[0])]
        counts, sent = [Counter[str]() for _ in times], [Counter[str]() for _ in times]
        for name, _, rank, count, *_ in _rows(text, 'Callsite Time statistics ('):
            if _RANK.fullmatch(rank):
                counts[int(rank)][f'MPI_{name}'] += int(count)
        for name, _, rank, *_, total in _rows(text, 'Callsite Message Sent statistics ('):
            if _RANK.fullmatch(rank):
                sent[int(rank)][f'MPI_{name}'] += round(float(total))
        seconds, in_mpi = (sum(float(row[column]) for row in times) for column in (1, 2))
    except (IndexError, ValueError) as error:
        raise WrongAnswerError(f'the report of mpiP is not whole: {error}') from None
    return Profile(counts, sent, seconds, in_mpi)


def _rows(text: str, section: str) -> Iterator[list[str]]:
    """The words of each line of a table, its head among them."""
    name = ''
    for line in text.splitlines():
        if heading := _SECTION.fullmatch(line):
            name = heading[1]
        elif name.startswith(section) and line.strip('-'):
            yield line.split()


def check_counts(
    profile: Profile, seen: Sequence[Mapping[str, Counted]], with_collectives: bool
) -> None:
    """Hold what mpiP counted against what the witness did in another start of the same program.

    Compared are the calls that send or receive a message, and of those that send the bytes. Of
    collectives only the counts are: mpiP takes the bytes from the arguments of each rank, whatever
    it has to send, and says itself that they are wrong where MPI_IN_PLACE is one.

    :param seen: by the witness, of the ranks in their order, by the names of calls.
    :param with_collectives: whether each start makes as many collectives that send something.
    :raises WrongAnswerError: if they counted otherwise.
    """
    if len(profile.counts) != len(seen):
        raise WrongAnswerError(f'mpiP saw {len(profile.counts)} ranks, the witness {len(seen)}')
    sending = {
        *(name for rank in seen for name, call in rank.items() if call.bytes),
        *(name for rank in profile.sent for name, size in rank.items() if size),
    }
    for rank, calls in enumerate(seen):
        counts, sent = profile.counts[rank], profile.sent[rank]
        names = [
            name
            for name in sorted({*counts, *calls})
            if _SENDS.fullmatch(name)
            or _RECEIVES.fullmatch(name)
            or (with_collectives and name in sending)
        ]
        if not names:
            raise WrongAnswerError(f'mpiP and the witness saw no message of rank {rank}')
        for name in names:
            call = calls.get(name)
            mine = [counts[name], sent[name]]
            other = [call.count, call.bytes] if call else [0, 0]
            if not _SENDS.fullmatch(name):
                mine, other = mine[:1], other[:1]
            if mine != other:
                raise WrongAnswerError(
                    f'{name} on rank {rank}: mpiP counted {_in_words(*mine)}, the witness '
                    f'{_in_words(*other)}'
                )


def _in_words(count: int, size: int | None = None) -> str:
    return f'{count} calls' if size is None else f'{count} calls of {size} bytes'
