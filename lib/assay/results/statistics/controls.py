"""Negative controls: did the machine move, so that the software is not to blame?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from assay.results.statistics.comparison import Comparison, Verdict
from assay.results.statistics.multiplicity import SUITE_RATE, holm


def moved(controls: Iterable[Comparison], rate: float = SUITE_RATE) -> list[Comparison]:
    """The controls that changed, the one that changed most first.

    :param controls: of figures that the change cannot have touched, taken in the same jobs.
    :param rate: at which any of them is called changed although none is.
    """
    usable = [one for one in controls if not one.reason]
    adjusted = holm([one.p_value for one in usable])
    found = [one for one, p in zip(usable, adjusted, strict=True) if p <= rate]
    return sorted(found, key=lambda one: -abs(one.change))


def cleared(
    verdicts: Iterable[Verdict], controls: Iterable[Comparison], rate: float = SUITE_RATE
) -> list[Verdict]:
    """The verdicts, without those for which the machine may be to blame.

    A figure may follow the machine, and no control is of the same kind as it. So where a control
    moved, a figure stays worse or better only by what it changed more than the control that moved
    most, either way. What was called the same, or cannot be told, is as before.

    :param rate: of the whole suite, that of ``judge``.
    """
    given = list(verdicts)
    found = moved(controls, rate)
    if not found:
        return given
    most = found[0]
    alone = rate / max(1, len(given))
    percent = abs(math.expm1(most.change))
    reason = f'the machine moved: a figure that the change cannot touch moved by {percent:.1%}'
    return [
        replace(one, word='cannot tell', reason=reason)
        if one.word in ('worse', 'better') and not _is_beyond(one.comparison, most, alone)
        else one
        for one in given
    ]


def _is_beyond(one: Comparison, control: Comparison, alone: float) -> bool:
    if one.better == 'exact':
        return True  # no machine's state changes it
    left = abs(one.change) - abs(control.change)
    return left > one.quantile(alone / 2) * math.hypot(one.error, control.error)
