"""Whether ranks sat as planned, and how long the job took."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay import AssayError
from assay.placing.plan import SeatPlan
from assay.placing.problem import number_labels, seats_of
from assay.witness.report import Report


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
