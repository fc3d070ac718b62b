"""Choose the trials of a round by the results of the rounds before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from assay.mpis.algorithms import OWN_CHOICE, Algorithm
from assay.tuning.choosing import Trial
from assay.tuning.journal import Starts

#: Operations whose results may depend on the order of ranks.
REDUCTIONS = ('allreduce', 'reduce', 'reduce_scatter')

#: Algorithms between one start of the default and the next.
BETWEEN_DEFAULTS = 3


@dataclass(frozen=True)
class Excluded:
    """An algorithm that is not offered, and why: what it did alone, or that the MPI ignored it."""

    algorithm: Algorithm
    word: str
    why: str


def excluded_algorithms(rounds: Iterable[Starts]) -> list[Excluded]:
    """The algorithms that failed alone, or that the MPI did not use although it was told to."""
    found: dict[tuple[str, str], Excluded] = {}
    for trial, outcome in (start for starts in rounds for start in starts):
        for one in trial.algorithms:
            ignored = [why for name, why in outcome.ignored.items() if name in one.env]
            if ignored:
                found[one.key] = Excluded(one, 'is ignored', ignored[0])
            elif outcome.word != 'good' and len(trial.algorithms) == 1:
                found[one.key] = Excluded(one, outcome.word, outcome.why)
    return [found[key] for key in sorted(found)]


def trials(offered: Sequence[Algorithm], rounds: Sequence[Starts]) -> list[Trial]:
    """The trials of the next round: if possible, one algorithm of each operation in a start.

    Each algorithm of a start that failed is tried alone, until it has been good.
    """
    gone = {one.algorithm.key for one in excluded_algorithms(rounds)}
    left = [one for one in offered if one.key not in gone]
    doubtful: set[tuple[str, str]] = set()
    for trial, outcome in (start for starts in rounds for start in starts):
        if trial.is_of_order:
            continue
        names = {one.key for one in trial.algorithms}
        doubtful = doubtful - names if outcome.word == 'good' else doubtful | names
    alone = [one for one in left if one.key in doubtful]
    by_operation = [
        [*of_it]
        for _, of_it in groupby(
            (one for one in left if one not in alone), lambda one: one.operation
        )
    ]
    columns = zip_longest(*by_operation)
    together = [Trial(tuple(one for one in column if one)) for column in columns]
    return together + [Trial((one,)) for one in alone]


def of_order(offered: Sequence[Algorithm], rounds: Iterable[Starts]) -> list[Trial]:
    """Trials that show whether each algorithm of a reduction keeps the order of ranks.

    An MPI's rules cannot ask for that, so an algorithm that does not is not offered, nor one that
    was not tried.
    """
    tried = [trial for starts in rounds for trial, _ in starts if trial.is_of_order]
    reductions = (one for one in offered if one.operation in REDUCTIONS and one.name != OWN_CHOICE)
    wanted = [Trial((one,), is_of_order=True) for one in reductions]
    return [one for one in wanted if one not in tried]


def with_defaults(wanted: Sequence[Trial], number: int) -> list[Trial]:
    """With the default before, between and, as the job's own program, after them.

    :param number: of the round: each begins with another one, and every other runs backwards.
    """
    if not wanted:
        return []
    first = number * BETWEEN_DEFAULTS % len(wanted)
    turned = [*wanted[first:], *wanted[:first]][:: -1 if number % 2 else 1]
    order: list[Trial] = []
    for place, trial in enumerate(turned):
        order += [Trial()] * (place % BETWEEN_DEFAULTS == 0) + [trial]
    return order
