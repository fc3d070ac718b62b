"""Whether commitments are met: of the values of their runs alone, in order.

Nothing is picked. The first n values count, whatever they are; a run without a value is followed
by another one, and its failure counts against the share of cases that must pass.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from assay.acceptance.contract import Commitment, Contract
from assay.acceptance.screenings import ScreeningStatus
from assay.results.rows import number
from assay.text import many

Word = Literal['met', 'missed', 'undecided', 'waived']

#: A figure beyond this is no measurement.
GREATEST = 1e30


@dataclass(frozen=True)
class FigureOutcome:
    """The value that a run gave for a figure, or why there is none.

    :param run: its number.
    :param value: None if there is none that counts.
    :param why: there is none; empty if there is.
    """

    run: int
    value: float | None
    why: str = ''


@dataclass(frozen=True)
class CommitmentDecision:
    """Whether a commitment is met.

    :param word: a commitment that is given up is ``waived``, whatever its runs say.
    :param says: the word that its runs would have.
    :param value: of the statistic, in the unit of the commitment; None before all runs are there.
    :param spread: the largest value over the smallest, less 1; None where there is none.
    :param runs: the runs whose values count, in order.
    :param values: theirs.
    :param without: the runs that gave no value, with the reason of each.
    :param is_final: whether more runs would change nothing.
    :param reason: a sentence.
    """

    commitment: Commitment
    word: Word
    says: Literal['met', 'missed', 'undecided']
    value: float | None
    spread: float | None
    runs: tuple[int, ...]
    values: tuple[float, ...]
    without: tuple[tuple[int, str], ...]
    is_final: bool
    reason: str


def decide_commitment(
    commitment: Commitment, outcomes: Sequence[FigureOutcome], waived_by: str | None = None
) -> CommitmentDecision:
    """Decide on a commitment.

    :param outcomes: of its runs, in order.
    :param waived_by: who gave it up.
    """
    usable = [one for one in outcomes if is_usable(one.value)]
    first = usable[: commitment.runs]
    values = [one.value for one in first if one.value is not None]
    # Only those before the last one that counts: later runs were made for other commitments.
    last = first[-1].run if len(first) == commitment.runs else math.inf
    without = tuple(
        (one.run, one.why or 'its value is no measurement')
        for one in outcomes
        if one not in usable and one.run < last
    )
    spread = _spread(values)
    says, is_final, reason = _say(commitment, values, spread)
    is_complete = len(values) == commitment.runs
    word: Word = says
    if waived_by is not None:
        word, reason = 'waived', f'given up by {waived_by}; its runs say: {says}: {reason}'
    return CommitmentDecision(
        commitment,
        word,
        says,
        statistic(commitment, values) if is_complete else None,
        spread,
        tuple(one.run for one in first),
        tuple(values),
        without,
        is_final,
        reason,
    )


def is_usable(value: float | None) -> bool:
    """Whether it is a value that a figure can have."""
    return value is not None and math.isfinite(value) and 0 <= value <= GREATEST


def statistic(commitment: Commitment, values: Sequence[float]) -> float:
    """The one of the values that is held to the commitment."""
    if commitment.statistic == 'median':
        return statistics.median(values)
    if commitment.statistic == 'mean':
        return math.fsum(values) / len(values)
    return min(values) if commitment.statistic == 'minimum' else max(values)


def holds(commitment: Commitment, value: float) -> bool:
    """Whether a value is as good as what is committed."""
    if commitment.better == 'higher':
        return value >= commitment.value
    return value <= commitment.value


def _spread(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    if min(values) == max(values):
        return 0.0
    return max(values) / min(values) - 1 if min(values) > 0 else math.inf


def _say(
    commitment: Commitment, values: Sequence[float], spread: float | None
) -> tuple[Literal['met', 'missed', 'undecided'], bool, str]:
    """A word, whether it is final, and a sentence."""
    limit, missing = commitment.largest_spread, commitment.runs - len(values)
    # By multiplication: divided, 44 is more than 10% above 40.
    if limit is not None and spread is not None and max(values) > min(values) * (1 + limit):
        told = f'the runs differ by {100 * spread:.3g}%, and at most {100 * limit:g}% was agreed'
        return 'undecided', True, told
    if missing:
        # With the best that the runs to come can bring; they may still be too different.
        best = [GREATEST if commitment.better == 'higher' else 0.0] * missing
        if limit is None and not holds(commitment, statistic(commitment, [*values, *best])):
            so_far = f'{many(len(values), "run")} of {commitment.runs}'
            return 'missed', True, f'{so_far} are enough: whatever follows, {_asked(commitment)}'
        return 'undecided', False, f'{len(values)} of {many(commitment.runs, "run")} have a value'
    value = statistic(commitment, values)
    told = (
        f'the {commitment.statistic} of {many(commitment.runs, "run")} is {_of(commitment, value)}'
    )
    if holds(commitment, value):
        return 'met', True, f'{told}; {_asked(commitment)}'
    return 'missed', True, f'{told}; {_asked(commitment)}'


def _asked(commitment: Commitment) -> str:
    side = 'at least' if commitment.better == 'higher' else 'at most'
    return f'{side} {_of(commitment, commitment.value)} is committed'


def _of(commitment: Commitment, value: float) -> str:
    return number(value) + (f' {commitment.unit}' if commitment.unit != '1' else '')


@dataclass(frozen=True)
class CaseRun:
    """A case in a run, as far as the acceptance counts it.

    :param run: number of its run.
    :param word: ``pass``, ``fail``, ``disturbed`` or ``interrupted``.
    :param nodes: where it was.
    """

    run: int
    case: str
    word: Literal['pass', 'fail', 'disturbed', 'interrupted']
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Condition:
    """A requirement of a contract beside its commitments, and whether the machine meets it.

    :param word: as of a decision.
    """

    name: str
    word: Literal['met', 'missed', 'undecided']
    reason: str


def conditions(
    contract: Contract, ran: Sequence[CaseRun], hours: float, screened: ScreeningStatus | None
) -> list[Condition]:
    """Decide the requirements that concern all cases together.

    :param ran: all cases of all runs that were started.
    :param hours: how long runs went on, in all.
    :param screened: what the screenings of the nodes before any run tell; None if there were none.
    """
    found = [_share(contract, ran), _hours(contract, hours), *_nodes(contract, ran)]
    if contract.screening_first:
        found.append(_screening(ran, screened))
    return found


def _screening(ran: Sequence[CaseRun], screened: ScreeningStatus | None) -> Condition:
    """Decide on the screening; nodes that it could not judge count as unknown, not as sound."""
    before = 'the screening before the first run'
    if screened is None:
        return Condition('screening', 'undecided', f'{before} has not been made')
    if screened.found:
        return Condition('screening', 'undecided', f'{before} found {screened.found}')
    if screened.left_out:
        return Condition('screening', 'undecided', f'{before} left out {screened.left_out}')
    told = f'{before} found nothing'
    if screened.unjudged:
        told += f'; {screened.unjudged}'
    used = {name for one in ran if one.word in ('pass', 'fail') for name in one.nodes}
    if strange := sorted(used - screened.nodes):
        told += f'; cases were run on {", ".join(strange[:5])}, which it left out'
    is_met = screened.is_judged and not strange
    return Condition('screening', 'met' if is_met else 'undecided', told)


def _share(contract: Contract, ran: Sequence[CaseRun]) -> Condition:
    """Disturbed and interrupted ones are no evidence: they are told, and in neither number."""
    passed = sum(one.word == 'pass' for one in ran)
    failed = sum(one.word == 'fail' for one in ran)
    others = len(ran) - passed - failed
    told = f'{passed} of {passed + failed} cases passed'
    if others:
        told += f', and {others} more were disturbed or interrupted'
    asked = contract.stability.share
    if not passed + failed:
        return Condition('share', 'undecided', f'{told}; nothing was measured')
    told += f'; at least {100 * asked:g}% have to'
    is_enough = passed >= least_passed(contract, passed + failed)
    return Condition('share', 'met' if is_enough else 'missed', told)


def least_passed(contract: Contract, cases: int) -> int:
    """How many of so many cases have to pass."""
    # As it is written: 0.07 of 100 are 7.
    return math.ceil(Fraction(repr(contract.stability.share)) * cases)


def _hours(contract: Contract, hours: float) -> Condition:
    asked = contract.stability.hours
    told = f'runs went on for {hours:.2f} hours of {asked:g}'
    return Condition('hours', 'met' if hours >= asked else 'undecided', told)


def _nodes(contract: Contract, ran: Iterable[CaseRun]) -> list[Condition]:
    seen: set[str] = set()
    failed: set[str] = set()
    for one in ran:
        if one.word in ('pass', 'fail'):
            seen.update(one.nodes)
        if one.word == 'fail':
            failed.update(one.nodes)
    asked = contract.nodes
    strange: list[str] = []
    if asked.names is not None:
        strange = sorted(seen - {*asked.names})
        absent = len({*asked.names} - seen)
    else:
        absent = max(0, asked.count - len(seen))
    told = f'{asked.count - absent} of {many(asked.count, "node")} took part'
    word: Literal['met', 'missed', 'undecided']
    if strange:
        word = 'missed'
        told = f'the contract does not name {", ".join(strange[:5])}, where cases were run'
    else:
        word = 'met' if absent <= asked.may_be_missing else 'undecided'
        told += f'; at most {asked.may_be_missing} may be missing'
    most = contract.stability.most_failed_nodes
    at_most = f'cases failed on {many(len(failed), "node")}; at most {most} was agreed'
    return [
        Condition('nodes', word, told),
        Condition('failed nodes', 'met' if len(failed) <= most else 'missed', at_most),
    ]


@dataclass(frozen=True)
class AcceptanceVerdict:
    """Whether a machine is accepted.

    :param reasons: what was missed, or is not decided; a sentence each.
    """

    word: Literal['ACCEPTED', 'NOT MET', 'NOT DECIDED']
    reasons: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        return {'ACCEPTED': 0, 'NOT MET': 1, 'NOT DECIDED': 3}[self.word]


def conclude(
    decisions: Sequence[CommitmentDecision], others: Sequence[Condition]
) -> AcceptanceVerdict:
    """The verdict: accepted if all is met that was not given up, and something is."""
    told = [(one.commitment.id, one.word, one.reason) for one in decisions]
    told += [(one.name, one.word, one.reason) for one in others]
    missed = tuple(f'{name}: {reason}' for name, word, reason in told if word == 'missed')
    if missed:
        return AcceptanceVerdict('NOT MET', missed)
    unknown = tuple(f'{name}: {reason}' for name, word, reason in told if word == 'undecided')
    if unknown or not any(one.word == 'met' for one in decisions):
        return AcceptanceVerdict('NOT DECIDED', unknown or ('no commitment is met',))
    return AcceptanceVerdict('ACCEPTED', ())
