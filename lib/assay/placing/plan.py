"""The plan for a job's ranks, its gain, and whether they sat so: of the witness's reports alone.

A plan saves a share of the time that ranks spent transferring messages. No more than that is
expected: waiting for a rank that computes longer is no transfer, and collectives go other ways.
Waiting for one whose messages take longer may shrink with them, so that it can be more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from statistics import fmean
from typing import Literal

import numpy as np

from assay import AssayError
from assay.placing.costs import Costs
from assay.placing.mapping import best_seats
from assay.placing.problem import (
    Floats,
    Numbers,
    PlacingProblem,
    Seats,
    number_labels,
    seats_of,
)
from assay.text import many
from assay.witness.disturbance import disturbances, taken_by_others
from assay.witness.placement import DISTANCES
from assay.witness.profile import TimeSplit, mean_shares, split, waits_of
from assay.witness.report import Process, Report
from assay.witness.traffic import COLLECTIVE

#: A gain below this is not worth a plan: pairs of runs hardly decide it.
LEAST = 0.02
#: Of the wall time, what no model of messages knows: start, jitter, what the calls themselves take.
UNKNOWN = 0.01
#: By how much costs may be off, either way: those that were measured here, and those assumed.
MEASURED, ASSUMED = 1.25, 3.0
#: The node, by the levels of :class:`assay.placing.problem.Seats`.
NODE = 2

#: Calls that end when messages between two ranks have come and gone, which the matrix counts.
_MESSAGES = re.compile(
    r'MPI_(I?[bsr]?send(recv)?(_\w+)?|I?m?recv|I?m?probe|[bsr]?send_init|(wait|test)(all|any|some)?'
    r'|request_get_status(_all|_any|_some)?|start(all)?|r?(put|get)|r?(get_)?accumulate|fetch_and_op|compare_and_swap|win_\w+'
    r'|I?neighbor_\w+)',
    re.IGNORECASE,
)

#: Those that start requests, and those that wait for them.
_STARTS = re.compile(r'MPI_I(?!m?probe)\w+')
_WAITS = re.compile(r'MPI_(Wait|Test|Request_get_status)')
#: Of those the ones that end several messages.
_AT_ONCE = re.compile(
    r'MPI_((wait|test|request_get_status_)(all|some|any)|win_\w+|I?neighbor_\w+)', re.IGNORECASE
)

#: Collectives without bytes.
_BARRIERS = {'MPI_Barrier', 'MPI_Ibarrier'}

Word = Literal['place', 'leave it', 'cannot tell']


@dataclass(frozen=True)
class Gain:
    """The share of the wall time that a plan saves, as fractions.

    :param most: the share of the time that was transfer of messages between two ranks.
    """

    expected: float
    low: float
    high: float
    most: float


@dataclass(frozen=True, eq=False)
class SeatPlan:
    """Which rank sits on which seat.

    :param seat: shape (n,): of each rank, the number of the rank that has that seat now.
    :param now: the share of the messages' time at each distance, as ranks sit now; then planned.
    :param notes: what a reader has to know of it, a sentence each.
    """

    word: Word
    why: str
    seats: Seats
    seat: Numbers
    gain: Gain
    now: tuple[float, ...]
    then: tuple[float, ...]
    costs: Costs
    notes: tuple[str, ...]

    @property
    def moved(self) -> int:
        """How many ranks change their seats."""
        return int((self.seat != np.arange(len(self.seat))).sum())


def plan_seats(
    report: Report, costs: Costs, stay: Iterable[int] = (), by_node: bool = False
) -> SeatPlan:
    """Where the ranks of a job should sit.

    :param stay: ranks that keep their seats.
    :param by_node: whether the launcher can choose nodes alone: it fills each in order of ranks.
    :raises AssayError: if the report does not say who sent to whom, or where the time went.
    """
    if not (report.has_matrix and report.has_profile):
        raise AssayError(
            'the report does not say who sent to whom and where the time went: it takes a job that '
            'came to MPI_Finalize, and a witness with all sections (ASSAY_WITNESS unset)'
        )
    stay = {*stay}
    if strangers := sorted(stay - {*range(report.ranks)}):
        raise AssayError(f'--stay: there is no rank {strangers[0]} of {report.ranks}')
    seats = seats_of(report, costs.switches)
    problem = problem_of(report, seats, costs, stay)
    seat = _in_order(_of_nodes(problem), problem) if by_node else best_seats(problem)
    if problem.cost(seat) >= problem.cost(np.arange(report.ranks)):
        seat = np.arange(report.ranks)
    distances = _distances(problem)
    is_known = all(costs.by_distance[one].source for one in distances)
    gain = gain_of(report, problem, seat, MEASURED if is_known else ASSUMED)
    word, why = _verdict(report, problem, seat, gain, distances)
    notes = [*_notes(report, costs, distances)]
    now, then = (_shares(problem, one) for one in (np.arange(report.ranks), seat))
    return SeatPlan(word, why, seats, seat, gain, now, then, costs, tuple(notes))


def problem_of(report: Report, seats: Seats, costs: Costs, stay: Iterable[int]) -> PlacingProblem:
    """The messages of a job on its seats."""
    from scipy.sparse import coo_array

    n = report.ranks
    sent = [
        (process.rank, partner.rank, partner.messages, partner.bytes)
        for process in report.processes
        for partner in process.partners
        if partner.rank not in (-1, process.rank)
    ]
    one, other, messages, size = np.array(sent, dtype=np.float64).reshape(-1, 4).T
    ends = np.array([[*one, *other], [*other, *one]], dtype=np.int64)
    counted, sized = (
        coo_array((np.tile(what, 2), tuple(ends)), (n, n)).tocsr() for what in (messages, size)
    )
    latency, per_byte = map(np.array, costs.curves)
    fixed = np.zeros(n, dtype=np.bool_)
    fixed[sorted(stay)] = True
    return PlacingProblem(counted, sized, seats.groups, latency, per_byte, seats.kinds, fixed)


def _of_nodes(problem: PlacingProblem) -> Numbers:
    """The seats of the best plan that looks at nodes and switches alone."""
    return best_seats(
        replace(
            problem,
            groups=problem.groups[NODE:],
            latency=problem.latency[NODE:],
            per_byte=problem.per_byte[NODE:],
        )
    )


def _in_order(seat: Numbers, problem: PlacingProblem) -> Numbers:
    """The seats that ranks get whose launcher chooses nodes alone.

    It deals those of a node to the node's ranks in their order, as it did before.
    """
    node = problem.groups[NODE]
    found = np.empty_like(seat)
    for one in np.unique(node):
        ranks = np.flatnonzero(node[seat] == one)
        found[ranks] = np.flatnonzero(node == one)
    return found


# What it gains -----------------------------------------------------------------------------------


def gain_of(report: Report, problem: PlacingProblem, seat: Numbers, off: float) -> Gain:
    """The share of the wall time that a plan saves, with an interval.

    Expected is that the transfer of messages shrinks as the model says of the rank that has most of
    it, for which the others wait, and with it the waiting that computation cannot be the cause of:
    together no more than that transfer. The interval reaches from the least that the model says, of
    that rank or of all together, with costs that are wrong, of the transfer alone, and as if all
    waited for the messages that go farther, to the most that it says of any rank, of the waiting
    for messages as well.

    Where collectives were started that do not block, waiting for requests may be for those alone,
    or for messages alone.

    :param off: by what factor costs may be wrong.
    """
    splits = [*map(split, report.processes)]
    both = [_gain_if(report, splits, problem, seat, off, share) for share in (0.0, 1.0)]
    expected, low, high, most = zip(*map(astuple, both), strict=True)
    return Gain(min(expected), min(low), max(high), min(most))


def _gain_if(
    report: Report,
    splits: list[TimeSplit],
    problem: PlacingProblem,
    seat: Numbers,
    off: float,
    share: float,
) -> Gain:
    """The same if such a share of the waiting is for messages."""
    now = np.arange(report.ranks)
    each = [*zip(report.processes, splits, strict=True)]
    most, late = (fmean(of(*one, share) for one in each) for of in (_transfer, _late))
    if (seat == now).all() or not problem.cost(now):
        return Gain(0.0, 0.0, 0.0, most)
    # A rank waits for what another one computes no longer than that computes.
    shares = mean_shares(splits)
    computing = shares['computation']
    at_once = _share_at_once(report, share)
    models = [_saved(one, seat, at_once) for one in (problem, *_if_wrong(problem, off))]
    least = min(min(busiest, whole) for busiest, whole, _ in models)
    # Of messages in turn each may wait for the one before. Of those at once the longest counts, of
    # whichever rank computation has made late.
    highest = max(
        at_once * (busiest + computing * max(0.0, whole - busiest))
        + (1 - at_once) * max(busiest, whole, best)
        for busiest, whole, best in models
    )
    by_pairs, by_steps = _saved_in_collectives(
        report, problem, seat, max(0.0, shares['transfer'] - most)
    )
    low = (most if least > 0 else most + late) * least + min(by_pairs, by_steps) - UNKNOWN
    low -= (1 - at_once) * (most + late) * _slowed(problem, seat)
    high = (most if highest < 0 else most + late) * highest + max(by_pairs, by_steps) + UNKNOWN
    expected = min(most, (most + max(0.0, late - computing)) * models[0][0]) + by_steps
    return Gain(min(max(expected, low), high), low, high, most)


def _of_messages(process: Process, share: float) -> dict[str, float]:
    """The share of the time of each call that is for messages between two ranks.

    :param share: of waiting for requests, if some are of collectives.
    """
    started = {bool(_MESSAGES.fullmatch(name)) for name in filter(_STARTS.match, process.calls)}
    return {
        name: share if _WAITS.match(name) and False in started else 1.0
        for name in process.calls
        if _MESSAGES.fullmatch(name)
    }


def _share_at_once(report: Report, share: float) -> float:
    """The share of the messages' time in calls that end several of them: those travel at once."""
    times = [
        (part * process.calls[name].time, bool(_AT_ONCE.fullmatch(name)))
        for process in report.processes
        for name, part in _of_messages(process, share).items()
    ]
    whole = sum(time for time, _ in times)
    return sum(time for time, at_once in times if at_once) / whole if whole else 0.0


def _transfer(process: Process, its: TimeSplit, share: float) -> float:
    """The share of a rank's wall time that was transfer of messages between two ranks."""
    shares = _of_messages(process, share)
    # Of each call, what is not known to be waiting.
    left = {
        name: max(0.0, call.time - sum(waits_of(process, name)))
        for name, call in process.calls.items()
    }
    whole = sum(left.values())
    own = sum(part * left[name] for name, part in shares.items())
    return its.transfer / its.wall * own / whole if its.wall and whole else 0.0


def _late(process: Process, its: TimeSplit, share: float) -> float:
    """The share of a rank's wall time in which it waited for messages to be sent or taken."""
    shares, late = _of_messages(process, share), 0.0
    for name, part in shares.items():
        _, late_sender, late_receiver = waits_of(process, name)
        late += part * min(process.calls[name].time, late_sender + late_receiver)
    return min(its.waiting, late / max(1, process.mpi_threads)) / its.wall if its.wall else 0.0


def _saved(problem: PlacingProblem, seat: Numbers, at_once: float) -> tuple[float, float, float]:
    """The share of the messages' time that is saved: of the busiest rank's, of that of all, and the
    most that a rank saves.
    """
    before, after = (_of_ranks(problem, one, at_once) for one in (np.arange(len(seat)), seat))
    some = before > 0
    ratios = (
        after.max() / before.max(),
        after.sum() / before.sum(),
        (after[some] / before[some]).min(),
    )
    busiest, whole, best = (1 - float(ratio) for ratio in ratios)
    return busiest, whole, best


def _slowed(problem: PlacingProblem, seat: Numbers) -> float:
    """The extra time of messages that go farther as planned, as a share of the time of all now."""
    now, then = map(problem.of_pairs, (np.arange(len(seat)), seat))
    return float(np.maximum(0.0, then - now).sum() / now.sum())


def _of_ranks(problem: PlacingProblem, seat: Numbers, at_once: float) -> Floats:
    """Seconds of each rank's messages, sent and received: shape (n,).

    :param at_once: the share of them whose latencies pass at once, so that the longest counts;
        their bytes share the way, and count all.
    """
    one, other, messages, size = problem.pairs
    far = problem.distances(seat)
    latency, transfer = messages * problem.latency[far], size * problem.per_byte[far]
    longest, sums = np.zeros(problem.ranks), np.zeros(problem.ranks)
    for ends in (one, other):
        np.maximum.at(longest, ends, latency)
        np.add.at(sums, ends, latency)
    bytes_of = np.bincount(one, transfer, problem.ranks) + np.bincount(
        other, transfer, problem.ranks
    )
    return np.asarray(at_once * longest + (1 - at_once) * sums + bytes_of)


def _if_wrong(problem: PlacingProblem, off: float) -> list[PlacingProblem]:
    """The same with distances that differ more in their costs, and less."""
    return [
        replace(
            problem,
            latency=_stretched(problem.latency, factor),
            per_byte=_stretched(problem.per_byte, factor),
        )
        for factor in (off, 1 / off)
    ]


def _stretched(curve: Floats, factor: float) -> Floats:
    """Multiply the extra cost of each longer distance by a factor."""
    return np.asarray(curve[0] + (curve - curve[0]) * factor)


def _saved_in_collectives(
    report: Report, problem: PlacingProblem, seat: Numbers, share: float
) -> tuple[float, float]:
    """The share of the wall time that collectives save, if they send as binomial trees do: to ranks
    whose number differs in one bit, bit after bit. Negative if they lose. No saving is promised.

    :param share: of the wall time, that was their transfer.
    :returns: of all pairs together, and where each bit takes as long as its longest pair.
    """
    rank, bits = np.arange(report.ranks), (report.ranks - 1).bit_length()
    calls = [
        call
        for process in report.processes
        for name, call in process.calls.items()
        if (call.bytes and COLLECTIVE.fullmatch(name)) or name in _BARRIERS
    ]
    if not bits or not (count := sum(call.count for call in calls)):
        return 0.0, 0.0
    costs = problem.latency + problem.per_byte * (sum(call.bytes for call in calls) / count)
    pairs = [rank[(rank ^ 1 << bit < len(rank)) & (rank < rank ^ 1 << bit)] for bit in range(bits)]

    def steps(seat: Numbers) -> list[Floats]:
        far = [
            (problem.groups[:, seat[one]] != problem.groups[:, seat[one ^ 1 << bit]]).sum(axis=0)
            for bit, one in enumerate(pairs)
        ]
        return [np.asarray(costs[one]) for one in far]

    before, after = steps(rank), steps(seat)
    by_pairs = 1 - sum(float(one.sum()) for one in after) / sum(float(one.sum()) for one in before)
    by_steps = 1 - sum(float(one.max()) for one in after) / sum(float(one.max()) for one in before)
    return share * min(0.0, by_pairs), share * min(0.0, by_steps)


# Words --------------------------------------------------------------------------------------------


def _verdict(
    report: Report, problem: PlacingProblem, seat: Numbers, gain: Gain, distances: list[int]
) -> tuple[Word, str]:
    if report.ranks == 1:
        return 'leave it', 'there is one rank'
    if not problem.messages.nnz:
        return 'leave it', 'no rank sent a message to another one'
    if len(distances) < 2:
        return 'leave it', f'all seats are equally far apart: {DISTANCES[distances[0]]}'
    if (seat == np.arange(report.ranks)).all():
        return 'leave it', 'no better way to seat the ranks was found'
    if max(gain.most, gain.high) < LEAST:
        return 'leave it', f'messages between ranks took {gain.most:.1%} of the time'
    if gain.high < LEAST:
        return 'leave it', f'less than {LEAST:.0%} would be gained, which runs hardly show'
    if taken_by_others([report]):
        return 'cannot tell', 'others disturbed this job: measure it again'
    if gain.low < LEAST:
        return 'cannot tell', f'the gain may be below {LEAST:.0%}: try it, before and after in turn'
    return 'place', f'{many(int((seat != np.arange(report.ranks)).sum()), "rank")} should move'


def _distances(problem: PlacingProblem) -> list[int]:
    """The distances that two seats of the job have."""
    found = {0} if problem.ranks == 1 else set()
    reduced = [len(np.unique(one)) for one in problem.groups]
    n = problem.ranks
    # Two seats are at a distance if a group of that level holds groups of the level below.
    for distance in range(len(DISTANCES)):
        inner = reduced[distance - 1] if distance else n
        outer = reduced[distance] if distance < len(reduced) else 1
        if inner > outer:
            found.add(distance)
    return sorted(found)


def _shares(problem: PlacingProblem, seat: Numbers) -> tuple[float, ...]:
    """The share of the messages' time at each distance."""
    sums = np.bincount(problem.distances(seat), problem.of_pairs(seat), len(DISTANCES))
    return tuple((sums / (sums.sum() or 1.0)).tolist())


def _notes(report: Report, costs: Costs, distances: list[int]) -> Iterable[str]:
    unknown = [DISTANCES[one] for one in distances if not costs.by_distance[one].source]
    if unknown and len(distances) > 1:
        yield (
            f'costs {", ".join(unknown)} were not measured here: those of other machines are '
            'assumed; `assay run -n PointToPoint` and `assay screen` measure them'
        )
    outside = sum(one.messages for p in report.processes for one in p.partners if one.rank == -1)
    if outside:
        yield f'{many(outside, "message")} to ranks outside MPI_COMM_WORLD do not count'
    yield from disturbances([report])


# Whether ranks sat so -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Sat:
    """How ranks sat, and how long the job took.

    :param elsewhere: the ranks that did not sit as planned.
    :param change: wall time of this run over that before, less 1: one run of each.
    """

    elsewhere: tuple[int, ...]
    change: float


def hold_against_plan(
    plan: SeatPlan, before: Report, after: Report, is_split: bool, by_node: bool
) -> Sat:
    """Hold a run against a plan.

    On other nodes than before ranks sit as planned if those are together that should be: which
    node is which does not matter then.

    :param is_split: whether the program itself deals the roles: then ranks stay where they were.
    :param by_node: whether the launcher chose nodes alone.
    :raises AssayError: if it is not of as many ranks.
    """
    if after.ranks != before.ranks:
        raise AssayError(
            f'the run after has {after.ranks} ranks, the one before {before.ranks}: a plan is for '
            'the same number of ranks'
        )
    wanted = np.arange(before.ranks) if is_split else plan.seat
    seats = seats_of(after, plan.costs.switches)
    same = {*seats.hosts} == {*plan.seats.hosts}
    hosts = [plan.seats.hosts[seat] for seat in wanted]
    elsewhere = set()
    if same:
        elsewhere |= {i for i, host in enumerate(hosts) if host != seats.hosts[i]}
    else:
        elsewhere |= {*np.flatnonzero(number_labels(hosts) != number_labels(seats.hosts)).tolist()}
    if not by_node:
        elsewhere |= {
            i for i, seat in enumerate(wanted) if plan.seats.cores[seat] != seats.cores[i]
        }
    walls = [max(one.wall for one in report.processes) for report in (before, after)]
    change = walls[1] / walls[0] - 1 if walls[0] else 0.0
    return Sat(tuple(sorted(elsewhere)), change)
