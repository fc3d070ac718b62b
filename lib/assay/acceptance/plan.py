"""What a contract asks for before anything is run: cases, time, and the probability of passing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from assay.acceptance.contract import Contract
from assay.acceptance.power import Chance, Held, Spread, chance, held, log_spread
from assay.acceptance.setup import SelectedCase
from assay.results.case_history import CaseHistory
from assay.results.figure_series import FigureKey, learn_past, measured
from assay.results.history import History
from assay.results.statistics.spread import history_variance, moderated
from assay.results.unchanged import mostly_good, unchanged, usual
from assay.spelling import many

#: Sessions of a figure without which its history shows no spread.
FEWEST = 5


def spreads(history: History, selected: Sequence[SelectedCase]) -> list[Spread | None]:
    """How much the figure of each commitment differs between runs; None where nobody knows.

    What was measured comes before what the contract expects.
    """
    table = history.figures(usual(history.runs))
    figures = measured(table)
    kinds = {(one.commitment.check, one.commitment.figure) for one in selected}
    of_kinds = (one for one in figures.values() if one.kind in kinds)
    past = learn_past(unchanged(of_kinds, mostly_good(table)))
    found: list[Spread | None] = []
    for one in selected:
        commitment = one.commitment
        system, _, partition = one.place.partition(':')
        named = (system, partition, one.environment, one.name)
        series = past.unchanged.get(FigureKey(*named, commitment.figure, commitment.unit))
        if series and series.has_logarithms and series.size >= FEWEST:
            kind = past.kinds[commitment.check, commitment.figure]
            own = history_variance(series.locations, kind)
            both = moderated(own, kind.variance) if kind.variance else own
            source = f'{many(series.size, "run")} in the history'
            found.append(Spread(math.sqrt(both.value), source))
        elif commitment.expected_spread is not None:
            found.append(Spread(log_spread(commitment.expected_spread), 'the contract'))
        else:
            found.append(None)
    return found


def seconds(
    known: Mapping[str, CaseHistory], selected: Sequence[SelectedCase]
) -> list[float | None]:
    """How long each case took, the median of the newest times; None where nobody knows.

    :param known: what the history tells of cases, by title.
    """
    times = [known.get(one.title, CaseHistory()).seconds for one in selected]
    return [median(some) if some else None for some in times]


#: Where the curve is told: multiples of how bad a bad machine is, and of how good a good one.
_BELOW, _ABOVE = (-2.0, -1.5, -1.0, -0.5), (0.0, 0.5, 1.0, 1.5, 2.0)
#: No machine is worse or better by more than this.
_FURTHEST = 0.95


@dataclass(frozen=True)
class Asked:
    """A commitment, and what it takes.

    :param seconds: that a run of it takes; None where no history tells.
    :param spread: None where nobody knows.
    """

    case: SelectedCase
    seconds: float | None
    spread: Spread | None
    is_waived: bool


@dataclass(frozen=True)
class Plan:
    """What a contract asks for.

    :param jobs: at least: a run of a case is one, for all commitments on that case.
    :param seconds: of all of them, one after the other; None where that is not known.
    :param node_hours: likewise.
    :param curve: how likely a machine is to pass, by how good it is; none where a spread is not
        known.
    :param held: whether the risks are held; None likewise.
    :param names: of the commitments that curve and risks are about: those not given up.
    """

    contract: Contract
    asked: tuple[Asked, ...]
    jobs: int
    seconds: float | None
    node_hours: float | None
    names: tuple[str, ...]
    curve: tuple[Chance, ...]
    held: Held | None

    @property
    def is_held(self) -> bool:
        """Whether both risks are."""
        risks, found = self.contract.risks, self.held
        return (
            found is not None
            and found.producer <= risks.producer
            and found.consumer <= risks.consumer
            and self.jobs <= self.contract.most_jobs
        )

    @property
    def exit_code(self) -> int:
        """0 if the risks are held, 1 if not, 3 if that is not known."""
        if self.held is None and self.jobs <= self.contract.most_jobs:
            return 3
        return 0 if self.is_held else 1


def plan(
    contract: Contract,
    selected: Sequence[SelectedCase],
    seconds: Sequence[float | None],
    spreads: Sequence[Spread | None],
) -> Plan:
    """Work out what a contract asks for.

    :param selected: the case of each commitment.
    :param seconds: that it takes.
    :param spreads: of its figure between runs.
    """
    asked = tuple(
        Asked(one, time, spread, contract.waiver(one.commitment.id) is not None)
        for one, time, spread in zip(selected, seconds, spreads, strict=True)
    )
    # Of commitments on one case the one with most runs says how often it runs.
    cases: dict[str, Asked] = {}
    kept = [one for one in asked if not one.is_waived]
    for entry in kept:
        other = cases.get(entry.case.title)
        if other is None or other.case.commitment.runs < entry.case.commitment.runs:
            cases[entry.case.title] = entry
    jobs = sum(one.case.commitment.runs for one in cases.values())
    times = [_time(one) for one in cases.values()]
    total = hours = None
    if all(time is not None for time in times):
        total = math.fsum(time or 0 for time in times)
        nodes = [one.case.nodes for one in cases.values()]
        hours = math.fsum((t or 0) * n for t, n in zip(times, nodes, strict=True)) / 3600
    known = [one.spread for one in kept if one.spread is not None]
    commitments = [one.case.commitment for one in kept]
    curve: tuple[Chance, ...] = ()
    found = None
    if len(known) == len(kept):
        curve = tuple(chance(commitments, known, by) for by in _points(contract))
        found = held(commitments, known, contract.risks)
    names = tuple(one.id for one in commitments)
    return Plan(contract, asked, jobs, total, hours, names, curve, found)


def _time(one: Asked) -> float | None:
    return None if one.seconds is None else one.seconds * one.case.commitment.runs


def _points(contract: Contract) -> list[float]:
    risks = contract.risks
    points = [risks.bad * one for one in _BELOW] + [risks.good * one for one in _ABOVE]
    return sorted({max(-_FURTHEST, min(_FURTHEST, one)) for one in points})
