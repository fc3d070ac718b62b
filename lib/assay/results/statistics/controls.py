"""Negative controls: did the machine move, so that the software is not to blame?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from assay.results.statistics.comparison import Comparison, FigureVerdict
from assay.results.statistics.multiplicity import SUITE_RATE, holm


def moved_controls(controls: Iterable[Comparison]) -> list[Comparison]:
    """The controls that changed, the one that changed most first.

    :param controls: of figures that the change cannot have touched, taken in the same jobs.
    """
    usable = [one for one in controls if not one.reason]
    adjusted = holm([one.proven_p for one in usable])
    found = [one for one, p in zip(usable, adjusted, strict=True) if p <= SUITE_RATE]
    return sorted(found, key=lambda one: -abs(one.change))


def doubt_if_machine_moved(
    verdict: FigureVerdict, controls: Iterable[Comparison], alone: float, is_fraction: bool
) -> FigureVerdict:
    """The verdict on a figure, or `cannot tell` if the machine may be to blame.

    A figure may follow the machine, by as much as any control moved, as none is of the same kind.
    So it stays worse only if it got worse by more than each control that got worse, as sure as its
    own verdict is; and better likewise. A figure that got worse on a machine that got better did
    not follow it, unless it is a fraction: of a limit, which a better machine raises, or of a time,
    which it shortens. A verdict of `same` or `cannot tell` stays.

    :param controls: those that moved, the one that moved most first.
    :param alone: the error rate of this figure alone, two-sided.
    :param is_fraction: whether the machine may have moved what the figure is divided by.
    """
    if verdict.word not in ('worse', 'better'):
        return verdict
    for control in controls:
        if may_follow(verdict.comparison, control, alone, is_fraction):
            percent = abs(control.ratio - 1)
            told = 'the machine moved: a figure that the change cannot touch moved by'
            return replace(verdict, word='cannot tell', reason=f'{told} {percent:.1%}')
    return verdict


def may_follow(one: Comparison, control: Comparison, alone: float, is_fraction: bool) -> bool:
    """Whether a figure may have changed because the machine did.

    The parameters are those of :func:`doubt_if_machine_moved`.
    """
    if one.better == 'exact':
        return False  # no machine's state changes it
    if not is_fraction and one.slowdown * control.slowdown < 0:
        return False
    left = abs(one.change) - abs(control.change)
    return left <= one.quantile(alone / 2) * math.hypot(one.error, control.error)
