"""A plan, whether ranks sat as planned, and what it gained, as text and as JSON."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from assay.files import json_text
from assay.placing.plan import Sat, SeatPlan
from assay.report.console import as_change, as_interval, percent, print_line, print_table
from assay.text import as_list, many, plain
from assay.witness.placement import DISTANCES

if TYPE_CHECKING:
    from rich.console import Console

    from assay.placing.turns import Turns
    from assay.witness import Report


def show_seat_plan(plan: SeatPlan, out: Console) -> None:
    """The answer, what it gains, and where the messages go."""
    print_line(out, f'{plan.word}: {plan.why}')
    if plan.moved:
        gain = plan.gain
        print_line(
            out,
            f'expected gain: {percent(gain.expected)} of the wall time ({percent(gain.low)} to '
            f'{percent(gain.high)}); messages between ranks take {percent(gain.most)} of it',
        )
        costs = plan.costs.by_distance
        print_table(
            out,
            'Time of the messages by distance',
            '<distance|now|planned|latency us|bandwidth GB/s|~<cost from',
            (
                (
                    name,
                    *(percent(plan.now[n]), percent(plan.then[n])),
                    *(f'{costs[n].latency * 1e6:.2f}', f'{costs[n].bandwidth / 1e9:.2f}'),
                    costs[n].source or 'assumed',
                )
                for n, name in enumerate(DISTANCES)
                if plan.now[n] or plan.then[n]
            ),
        )
        print_table(
            out,
            'Ranks that move',
            'rank|<from|<to',
            (
                (rank, _seat(plan, rank), _seat(plan, seat))
                for rank, seat in enumerate(plan.seat.tolist())
                if rank != seat
            ),
        )
        out.print()
    for note in plan.notes:
        print_line(out, plain(f'note: {note}', 400))


def _seat(plan: SeatPlan, seat: int) -> str:
    return f'{plan.seats.hosts[seat]} {as_list(plan.seats.cores[seat])}'


def sat_in_words(plan: SeatPlan, sat: Sat) -> str:
    """Whether ranks sat as planned, and what became of the time."""
    ranks = len(plan.seat)
    if sat.elsewhere:
        told = f'not as planned: {many(len(sat.elsewhere), "rank")} of {ranks} sat elsewhere: '
        told += as_list([*sat.elsewhere])
    else:
        told = f'as planned: all {many(ranks, "rank")} sat where they should'
    expected = as_change(1 - plan.gain.expected)
    return f'{told}\nwall time: {as_change(1 + sat.change)} in one run of each, {expected} expected'


def turns_in_words(plan: SeatPlan, turns: Turns) -> str:
    """Which of the two is faster."""
    one = turns.decision
    word = (one and one.word) or 'cannot tell'
    if one is None:
        return f'{word}: {many(len(turns.seconds[1]), "pair")} of runs are too few'
    before, after = map(median, turns.seconds)
    return (
        f'{word}: {before:.3g} s before, {after:.3g} s as planned: {as_change(one.ratio)} '
        f'({as_interval(*one.interval)}), {one.pairs} pairs; '
        f'{as_change(1 - plan.gain.expected)} expected'
    )


def plan_json(plan: SeatPlan, before: Report, sat: Sat | None, turns: Turns | None) -> str:
    """All that is known; also what the same plan gained that was kept of this job.

    :param before: of the job that was planned for.
    """
    seats, kept = plan.seat.tolist(), before.plan
    found: dict[str, Any] = {
        'started': before.started,
        'verdict': plan.word,
        'why': plan.why,
        'gain': {
            'expected': plan.gain.expected,
            'low': plan.gain.low,
            'high': plan.gain.high,
            'share_of_messages': plan.gain.most,
        },
        'distances': [
            {
                'distance': name,
                'now': plan.now[n],
                'planned': plan.then[n],
                'latency': one.latency,
                'bandwidth': one.bandwidth,
                'source': one.source or None,
            }
            for n, (name, one) in enumerate(zip(DISTANCES, plan.costs.by_distance, strict=True))
        ],
        'ranks': [
            {
                'rank': rank,
                'host': plan.seats.hosts[seat],
                'seat_of': seat,
                'switch': int(plan.seats.groups[-1][seat]),
            }
            for rank, seat in enumerate(seats)
        ],
        'notes': plan.notes,
    }
    if sat:
        found['check'] = {'elsewhere': sat.elsewhere, 'change': sat.change}
    if turns:
        one = turns.decision
        found['turns'] = {
            'verdict': (one and one.word) or 'cannot tell',
            'seconds': turns.seconds,
            'ratio': one.ratio if one else None,
        }
    elif kept and kept.turns and [one.seat_of for one in kept.ranks] == seats:
        found['turns'] = kept.turns.model_dump()
    return json_text(found, indent=2)
