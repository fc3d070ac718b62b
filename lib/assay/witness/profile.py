"""Where the time of a job went, from its start to its end, and who sent to whom.

Pure functions over the witness's report; ``docs/witness.md`` explains the method. Times are in
seconds, sizes in bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from assay.programs.figure import Figure
from assay.witness.report import Collectives, Partner, Process, Report

# Calls whose bytes are those posted for arrival, or go to or from a file. Those of all other calls
# are sent to other ranks.
_NOT_SENT = re.compile(r'MPI_(I?m?recv|R?get|File_\w+)', re.IGNORECASE)


@dataclass(frozen=True)
class CallSummary:
    """One MPI call over all ranks; a rank that never called it counts as 0 in ``time_min``.

    ``waiting`` is the part of ``time`` spent waiting for other ranks.
    """

    name: str
    count: int
    time: float
    time_min: float
    time_mean: float
    time_max: float
    bytes: int
    share_of_mpi: float
    share_of_wall: float
    waiting: float


def summarise_calls(report: Report) -> list[CallSummary]:
    """The profile that users of IPM know, the longest first."""
    in_mpi = sum(p.mpi_time for p in report.processes)
    found = []
    for name in {name for process in report.processes for name in process.calls}:
        calls = [p.calls[name] for p in report.processes if name in p.calls]
        times = [call.time for call in calls]
        idle = len(calls) < len(report.processes)
        found.append(
            CallSummary(
                name=name,
                count=sum(call.count for call in calls),
                time=sum(times),
                time_min=0.0 if idle else min(times),
                time_mean=sum(times) / len(report.processes),
                time_max=max(times),
                bytes=sum(call.bytes for call in calls),
                share_of_mpi=_share(sum(times), in_mpi),
                share_of_wall=_share(sum(times), report.thread_time),
                waiting=sum(sum(waits_of(p, name)) for p in report.processes),
            )
        )
    return sorted(found, key=lambda one: (-one.time, one.name))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def waits_of(process: Process, call: str) -> tuple[float, float, float]:
    """Imbalance, late sender and late receiver of a call, from what was analysed of it."""
    wait = process.waits.get(call)
    if wait is None or wait.analysed <= 0:
        return 0.0, 0.0, 0.0
    scale = process.calls[call].time / wait.analysed
    return wait.imbalance * scale, wait.late_sender * scale, wait.late_receiver * scale


@dataclass(frozen=True)
class TimeSplit:
    """The parts of a rank's wall time, in seconds; the mean of those of its threads that call MPI.

    ``transfer`` is all time in MPI that is not known to be waiting.
    """

    rank: int
    host: str
    wall: float
    computation: float
    transfer: float
    imbalance: float
    late_sender: float
    late_receiver: float

    @property
    def waiting(self) -> float:
        return self.imbalance + self.late_sender + self.late_receiver


def split(process: Process) -> TimeSplit:
    """Divide the wall time of a rank."""
    threads = max(1, process.mpi_threads)
    in_mpi = min(process.mpi_time / threads, process.wall)
    by_call = [waits_of(process, call) for call in process.waits]
    waits = [sum(column) / threads for column in zip(*by_call, strict=True)] or [0.0] * 3
    # The waits are estimates: they are no more than what they are a part of.
    scale = min(1.0, _share(in_mpi, sum(waits)))
    imbalance, late_sender, late_receiver = (wait * scale for wait in waits)
    return TimeSplit(
        rank=process.rank,
        host=process.host,
        wall=process.wall,
        computation=process.wall - in_mpi,
        transfer=max(0.0, in_mpi - imbalance - late_sender - late_receiver),
        imbalance=imbalance,
        late_sender=late_sender,
        late_receiver=late_receiver,
    )


# The parts of a rank's wall time, which make it up.
PARTS = ('computation', 'transfer', 'imbalance', 'late_sender', 'late_receiver')


def mean_shares(splits: list[TimeSplit]) -> dict[str, float]:
    """Each part of the wall time as a share of it: the mean of the ranks."""
    return {part: fmean(_share(getattr(one, part), one.wall) for one in splits) for part in PARTS}


@dataclass(frozen=True)
class Figures:
    """The figures of a job. Shares are fractions.

    :param wall: seconds from the end of MPI_Init to the start of MPI_Finalize, of the last rank.
    :param comm_share: time in MPI, of the wall time of all threads that called it (``%comm``).
    :param imbalance_share: time that a rank waited for others, of its wall time; mean of the ranks.
        Also the most that perfect balance can save: ranks that do not wait have the same
        computation and transfers to do, and no distribution ends them all before their mean.
    :param transfer_share: other time in MPI, of the wall time; mean of the ranks.
    :param messages: messages to partners, without those of collectives that have none; exact.
    :param bytes: bytes of all calls that send, collectives included; exact.
    :param load_balance: mean computation over the largest of any rank.
    :param network_bound: the most that an infinitely fast network can save, of the wall time: the
        rank with the most computation still has that to do.
    :param analysed: how much of the time in MPI was analysed for wait states.
    """

    wall: float
    comm_share: float
    imbalance_share: float
    transfer_share: float
    messages: int
    bytes: int
    load_balance: float
    network_bound: float
    analysed: float


def figures(report: Report) -> Figures:
    """The figures of a complete report; those of times are 0 without the section profile."""
    processes = report.processes
    splits = [split(process) for process in processes]
    wall = max(one.wall for one in splits)
    most = max(one.computation for one in splits)
    shares = mean_shares(splits)
    in_mpi = sum(p.mpi_time for p in processes)
    return Figures(
        wall=wall,
        comm_share=_share(in_mpi, report.thread_time),
        imbalance_share=shares['imbalance'] + shares['late_sender'] + shares['late_receiver'],
        transfer_share=shares['transfer'],
        messages=sum(partner.messages for p in processes for partner in p.partners),
        bytes=sum(
            call.bytes
            for p in processes
            for name, call in p.calls.items()
            if not _NOT_SENT.fullmatch(name)
        ),
        load_balance=_share(fmean(one.computation for one in splits), most),
        network_bound=1 - most / wall if wall > 0 else 0.0,
        analysed=min(
            1.0, _share(sum(w.analysed for p in processes for w in p.waits.values()), in_mpi)
        ),
    )


def slowest(report: Report, count: int) -> list[TimeSplit]:
    """The ranks with the most computation, for which the others wait."""
    splits = map(split, report.processes)
    return sorted(splits, key=lambda one: -one.computation)[:count]


#: What a matrix is of, and by which kind of partner.
MESSAGES, COLLECTIVES, ONE_SIDED = 'point-to-point messages', 'collectives', 'one-sided calls'
KINDS = {'': MESSAGES, 'one_sided': ONE_SIDED, 'neighbours': COLLECTIVES}
#: What the only matrix of a report is of that does not tell them apart.
OF_ALL = 'messages'
#: And that of what Open MPI's monitoring counted beside the program's own messages.
AS_SENT = f'{COLLECTIVES}, as Open MPI sent them'


@dataclass(frozen=True)
class Messages:
    """Messages of one rank to another, -1 for all outside MPI_COMM_WORLD, or to each of several."""

    sender: int
    receivers: Sequence[range]
    messages: int
    bytes: int

    @property
    def to(self) -> str:
        """The receiver, or ``each of 0-3``."""
        names = [f'{one[0]}-{one[-1]}' if len(one) > 1 else str(one[0]) for one in self.receivers]
        if names == ['-1']:
            return 'outside'
        several = 'each of ' if self.count > 1 else ''
        return several + ','.join(names)

    @property
    def count(self) -> int:
        """How many receivers there are."""
        return sum(map(len, self.receivers))


@dataclass
class Matrix:
    """The messages of one kind: the heaviest pairs first, and how many there are of each size.

    Of ``sizes`` key k counts those of k to 2k - 1 bytes, key 0 the empty ones.
    """

    pairs: list[Messages]
    sizes: dict[int, int]


def matrices(report: Report) -> dict[str, Matrix]:
    """Point-to-point messages, collectives and one-sided calls, as far as there are any."""
    found: dict[str, tuple[list[Messages], Counter[int]]] = {}
    for process in report.processes:
        sent: list[tuple[str, Sequence[range], Partner | Collectives]] = [
            (KINDS[one.kind] if report.has_kinds else OF_ALL, [range(one.rank, one.rank + 1)], one)
            for one in process.partners
        ]
        sent += [(COLLECTIVES, one.spans, one) for one in process.collectives]
        sent += [(AS_SENT, [range(one.rank, one.rank + 1)], one) for one in _by_mpi(process)]
        for kind, receivers, one in sent:
            pairs, sizes = found.setdefault(kind, ([], Counter()))
            pair = Messages(process.rank, receivers, one.messages, one.bytes)
            pairs.append(pair)
            sizes.update({size: number * pair.count for size, number in one.sizes.items()})
    return {
        kind: Matrix(sorted(found[kind][0], key=_heaviest), dict(sorted(found[kind][1].items())))
        for kind in (MESSAGES, COLLECTIVES, AS_SENT, ONE_SIDED, OF_ALL)
        if kind in found
    }


def _by_mpi(process: Process) -> Iterator[Partner]:
    """The messages that Open MPI sent to each rank beyond the program's own."""
    own = {one.rank: one for one in process.partners if not one.kind}
    for one in process.sent_by_mpi or []:
        messages, size = one.messages, one.bytes
        if program := own.get(one.rank):
            messages, size = messages - program.messages, size - program.bytes
        if messages > 0:
            yield Partner(rank=one.rank, messages=messages, bytes=max(0, size))


def _heaviest(pair: Messages) -> tuple[int, ...]:
    return -pair.bytes * pair.count, -pair.messages, pair.sender, pair.receivers[0][0]


# Start and end ------------------------------------------------------------------------------------


#: Names of the figures, and where a rank was meanwhile.
STARTUP = {
    'startup': 'from the launcher to main',
    'mpi_init': 'in MPI_Init',
    'mpi_finalize': 'in MPI_Finalize',
}


#: Seconds below which nobody waits for a start or an end: such ones are not compared.
LEAST_STARTUP = 1.0


def _slowest(report: Report) -> dict[str, tuple[float, int]]:
    """The seconds of the slowest rank for each reported figure, and its number."""
    starts = [(one.startup, one.rank) for one in report.processes if one.startup]
    begun = {rank: one.main for one, rank in starts if one.main is not None}
    # Ranks wait in MPI_Init for the last one: how late that began is of the start.
    last = max(begun.values(), default=0.0)
    waited = {rank: last - main for rank, main in begun.items()}
    taken = {
        'startup': [(main, rank) for rank, main in begun.items()],
        'mpi_init': [(max(0.0, one.init - waited.get(rank, 0.0)), rank) for one, rank in starts],
        'mpi_finalize': [
            (one.finalize, one.rank) for one in report.finalized if one.rank < report.ranks
        ],
    }
    return {name: max(some) for name, some in taken.items() if some}


def startup_figures(report: Report) -> dict[str, Figure]:
    """Seconds of the slowest rank."""
    return {name: Figure(taken, 's', 'lower') for name, (taken, _) in _slowest(report).items()}


def slowest_ranks(reports: Iterable[Report]) -> dict[str, str]:
    """The slowest rank of all starts of a job, and its host, in words, by figure."""
    found: dict[str, tuple[float, str]] = {}
    for report in reports:
        for name, (taken, rank) in _slowest(report).items():
            who = f'rank {rank} on {report.processes[rank].host} took {taken:.1f} s {STARTUP[name]}'
            found[name] = max(found.get(name, (0.0, '')), (taken, who))
    return {name: who for name, (_, who) in found.items()}
