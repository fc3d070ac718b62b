"""A contract before anything is run: its cases, their time, and the probability of passing.

That is told by how good the machine really is: the operating characteristic of the contract. The
logarithms of a figure's values in runs of one machine are taken to be normal and independent,
around that of its true performance, which is the median of all runs that there could be. Then the
statistic and the spread of n runs have one distribution together, which is integrated over the
least of the n logarithms: the others are independent of each other, and above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import bdtrc, ndtr

from assay.acceptance.contract import MOST_RUNS, Commitment, Contract, Risks
from assay.acceptance.run import SelectedCase
from assay.results.case_history import CaseHistory
from assay.results.figure_series import FigureKey, learn_past, measured_figures
from assay.results.history import History
from assay.results.statistics.series import Floats
from assay.results.statistics.spread import history_variance, moderate
from assay.results.unchanged import mostly_good_runs, unchanged_figures, usual_runs
from assay.running.selection import Listed
from assay.text import many

# The probability of passing -----------------------------------------------------------------------


#: Standard deviations beyond which nothing is: 1e-17 of a normal distribution.
FAR = 8.5
#: Of polynomials that are exact up to degree 39, for each piece of two standard deviations.
_NODES, _WEIGHTS = leggauss(20)
_PIECE = 2.0
#: Points of the distribution of the sum of which a mean is made.
_POINTS = 1 << 12


def log_spread(relative: float) -> float:
    """The standard deviation of logarithms of values whose own is this fraction of their mean."""
    return math.sqrt(math.log1p(relative**2))


def passing(commitment: Commitment, spread: float, better_by: float) -> float:
    """The probability that a commitment is met: statistic and spread of its runs hold.

    :param spread: standard deviation of the logarithms of runs, above 0.
    :param better_by: the fraction by which the true performance is better than what is committed;
        below 0 if it is worse.
    """
    runs, is_higher = commitment.runs, commitment.better == 'higher'
    # In standard deviations, and turned so that more is better: what is committed is at 0.
    shift = (math.log1p(better_by) if is_higher else -math.log1p(-better_by)) / spread
    limit = commitment.largest_spread
    width = math.inf if limit is None else math.log1p(limit) / spread
    if commitment.statistic == 'mean':
        return _mean(runs, spread if is_higher else -spread, width, shift)
    return _order(_enough(commitment), runs, width, shift)


def _enough(commitment: Commitment) -> int:
    """How many of the runs have to be as good as the commitment for the statistic to be."""
    if commitment.statistic == 'median':
        return (commitment.runs + 1) // 2
    is_worst = (commitment.statistic == 'minimum') == (commitment.better == 'higher')
    return commitment.runs if is_worst else 1


def _order(enough: int, runs: int, width: float, shift: float) -> float:
    """The probability that so many of the runs are above 0, and all within a width.

    :param shift: the mean of each run; its standard deviation is 1.
    """
    if math.isinf(width):
        return float(bdtrc(enough - 1, runs, ndtr(shift)))

    def of_others(least: Floats) -> Floats:
        """The probability that the others are where they have to be.

        That is in the width above the least, and enough of them above 0.
        """
        top = least + width
        below = ndtr(np.minimum(top, 0) - shift) - ndtr(np.minimum(least, 0) - shift)
        above = ndtr(np.maximum(top, 0) - shift) - ndtr(np.maximum(least, 0) - shift)
        both = np.maximum(below + above, 1e-300)
        still = enough - (least >= 0)
        share = np.clip(above / both, 0, 1)
        found: Floats = both ** (runs - 1) * bdtrc(still - 1, runs - 1, share)
        return found

    return _over_the_least(of_others, runs, width, shift)


def _over_the_least(
    of_others: Callable[[Floats], Floats], runs: int, width: float, shift: float
) -> float:
    """The integral over where the least run may be.

    The function has edges at 0, and where 0 is the end of the width.
    """
    low, high = shift - FAR, shift + FAR
    edges = [low, *sorted(edge for edge in (-width, 0.0) if low < edge < high), high]
    total = 0.0
    for begin, end in pairwise(edges):
        pieces = max(1, math.ceil((end - begin) / _PIECE))
        step = (end - begin) / pieces
        for piece in range(pieces):
            at = begin + step * (piece + (_NODES + 1) / 2)
            density = runs * np.exp(-((at - shift) ** 2) / 2) / math.sqrt(2 * math.pi)
            total += step / 2 * float(np.sum(_WEIGHTS * density * of_others(at)))
    return min(1.0, max(0.0, total))


def _mean(runs: int, spread: float, width: float, shift: float) -> float:
    """The probability that the mean of the runs is good enough, and all are within a width.

    :param spread: of logarithms; below 0 of a figure that is better when it is lower.
    """
    if runs == 1:
        return _order(1, 1, math.inf, shift)
    others = runs - 1
    points = max(64, _POINTS // others)
    size = 1 << (others * points).bit_length()

    def of_others(least: Floats) -> Floats:
        top = np.minimum(least + width, shift + FAR)
        ends = np.exp(spread * least), np.exp(spread * top)
        low, step = np.minimum(*ends), abs(ends[1] - ends[0]) / points
        edges = low[:, None] + step[:, None] * np.arange(points + 1)
        # A rounded edge is not to be outside.
        at = np.clip(np.log(edges) / spread, least[:, None], top[:, None])
        masses = np.abs(np.diff(ndtr(at - shift), axis=1))
        # The sum of independent ones has the product of their transforms.
        sums = np.fft.irfft(np.fft.rfft(masses, size, axis=1) ** others, size, axis=1)
        asked = runs - np.exp(spread * least)
        place = (asked - others * (low + step / 2)) / np.maximum(step, 1e-300)
        return _beyond(sums, place, spread > 0)

    return _over_the_least(of_others, runs, width, shift)


def _beyond(masses: Floats, place: Floats, above: bool) -> Floats:
    """The mass of each row beyond a place.

    Each mass is spread evenly over one point, from half a point before its own.
    """
    size = masses.shape[1]
    so_far = np.concatenate([np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)], axis=1)
    where = np.clip(place + 0.5, 0, size)
    index = np.minimum(where.astype(int), size - 1)
    rows = np.arange(len(masses))
    below = so_far[rows, index] + (where - index) * masses[rows, index]
    found: Floats = so_far[:, -1] - below if above else below
    return found


@dataclass(frozen=True)
class Spread:
    """How much a figure differs between runs, and how that is known.

    :param value: standard deviation of the logarithms.
    :param source: where it is from, in words.
    """

    value: float
    source: str


@dataclass(frozen=True)
class Chance:
    """How likely a machine is to pass.

    :param better_by: the fraction by which its true performance is better than each commitment.
    :param each: of each commitment.
    """

    better_by: float
    each: tuple[float, ...]

    @property
    def independent(self) -> float:
        """The probability that all pass, if they are independent."""
        return math.prod(self.each)

    @property
    def low(self) -> float:
        """The least probability that all pass, however they depend on each other."""
        return max(0.0, 1 - sum(1 - one for one in self.each))

    @property
    def high(self) -> float:
        """The greatest probability that all pass."""
        return min(self.each)


def chance(
    commitments: Sequence[Commitment], spreads: Sequence[Spread], better_by: float
) -> Chance:
    """How likely a machine is to meet all commitments that it is better than by a fraction.

    :param spreads: of the commitments, in their order.
    """
    pairs = zip(commitments, spreads, strict=True)
    return Chance(better_by, tuple(passing(one, spread.value, better_by) for one, spread in pairs))


@dataclass(frozen=True)
class Held:
    """Whether a contract holds its risks.

    :param producer: how often a good machine fails.
    :param consumer: how often one passes that is bad in one commitment; the worst of them.
    :param needed: of commitments whose runs are too few, how many would do; None if no number does.
    """

    producer: float
    consumer: float
    needed: dict[str, int | None]


def check_risks(commitments: Sequence[Commitment], spreads: Sequence[Spread], risks: Risks) -> Held:
    """Hold a contract against its risks.

    Each commitment has an equal part of the producer's risk; the consumer's is that of each, since
    a machine may be bad in one figure and good in all others.
    """
    good = chance(commitments, spreads, risks.good)
    bad = chance(commitments, spreads, -risks.bad)
    producer, consumer = 1 - good.independent, max(bad.each)
    needed: dict[str, int | None] = {}
    if producer > risks.producer or consumer > risks.consumer:
        least = (1 - risks.producer) ** (1 / len(commitments))
        for one, spread, passes, deceives in zip(
            commitments, spreads, good.each, bad.each, strict=True
        ):
            if passes < least or deceives > risks.consumer:
                needed[one.id] = _needed(one, spread.value, least, risks)
    return Held(producer, consumer, needed)


def _needed(commitment: Commitment, spread: float, least: float, risks: Risks) -> int | None:
    """With how many runs a commitment holds its part of both risks.

    The least number, but of many runs of a mean, which takes long: there one that is at most 10%
    above.
    """
    runs = 1
    while runs <= MOST_RUNS:
        one = commitment.model_copy(update={'runs': runs})
        is_safe = passing(one, spread, -risks.bad) <= risks.consumer
        if is_safe and passing(one, spread, risks.good) >= least:
            return runs
        if commitment.statistic == 'median':
            runs += 2
        else:
            runs += max(1, runs // 10) if commitment.statistic == 'mean' else 1
    return None


# What a contract asks for ------------------------------------------------------------------------


#: Sessions of a figure without which its history shows no spread.
FEWEST = 5


def spreads(history: History, selected: Sequence[SelectedCase]) -> list[Spread | None]:
    """How much the figure of each commitment differs between runs; None where nobody knows.

    What was measured comes before what the contract expects.
    """
    table = history.figures(usual_runs(history.runs))
    figures = measured_figures(table)
    kinds = {(one.commitment.check, one.commitment.figure) for one in selected}
    of_kinds = (one for one in figures.values() if one.kind in kinds)
    past = learn_past(unchanged_figures(of_kinds, mostly_good_runs(table)))
    found: list[Spread | None] = []
    for one in selected:
        commitment = one.commitment
        system, _, partition = one.case.partition.partition(':')
        named = (system, partition, one.case.environment, one.case.name)
        series = past.unchanged.get(FigureKey(*named, commitment.figure, commitment.unit))
        if series and series.has_logarithms and series.size >= FEWEST:
            kind = past.kinds[commitment.check, commitment.figure]
            own = history_variance(series.locations, kind)
            both = moderate(own, kind.variance) if kind.variance else own
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
    times = [known.get(one.case.title, CaseHistory()).seconds for one in selected]
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

    commitment: Commitment
    case: Listed
    seconds: float | None
    spread: Spread | None
    is_waived: bool


@dataclass(frozen=True)
class Plan:
    """The cases that a contract requires, their cost, and how likely a machine is to pass.

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


def plan_acceptance(
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
        Asked(one.commitment, one.case, time, spread, bool(contract.waiver(one.commitment.id)))
        for one, time, spread in zip(selected, seconds, spreads, strict=True)
    )
    # Of commitments on one case the one with most runs says how often it runs.
    cases: dict[str, Asked] = {}
    kept = [one for one in asked if not one.is_waived]
    for entry in kept:
        other = cases.get(entry.case.title)
        if other is None or other.commitment.runs < entry.commitment.runs:
            cases[entry.case.title] = entry
    jobs = sum(one.commitment.runs for one in cases.values())
    times = [
        (one.seconds * one.commitment.runs, one.case.nodes)
        for one in cases.values()
        if one.seconds is not None
    ]
    total = hours = None
    if len(times) == len(cases):
        total = math.fsum(time for time, _ in times)
        hours = math.fsum(time * nodes for time, nodes in times) / 3600
    known = [one.spread for one in kept if one.spread is not None]
    commitments = [one.commitment for one in kept]
    curve: tuple[Chance, ...] = ()
    found = None
    if len(known) == len(kept):
        curve = tuple(chance(commitments, known, by) for by in _points(contract))
        found = check_risks(commitments, known, contract.risks)
    names = tuple(one.id for one in commitments)
    return Plan(contract, asked, jobs, total, hours, names, curve, found)


def _points(contract: Contract) -> list[float]:
    risks = contract.risks
    points = [risks.bad * one for one in _BELOW] + [risks.good * one for one in _ABOVE]
    return sorted({max(-_FURTHEST, min(_FURTHEST, one)) for one in points})
