"""Whether the runs of one side of a comparison are all of one state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.results.figure_series import FigureKey, Measured, Past
from assay.results.statistics.changes import EDGE, find_changes
from assay.results.statistics.series import Series, series


@dataclass(frozen=True)
class TwoStates:
    """Steps within the runs of a side: the comparison matches neither of its two states.

    :param run: identifier of the run with which most figures are in the later state.
    :param figures: all that have a step, sorted.
    """

    run: str
    figures: tuple[FigureKey, ...]


def two_states(side: Iterable[Measured], past: Past) -> TwoStates | None:
    """The steps of figures within some runs; None if there are none.

    The runs of a side are few. So steps are looked for in the past and them together, and those
    count that are as plausible (95%) nowhere but between two runs of the side.

    :param past: what runs before them teach; none of them is of the side.
    """
    searched = [
        (one, own, past.unchanged.get(one.figure))
        for one in side
        if (own := one.series) and own.size > EDGE
    ]
    joined = [_joined(known, own) for _, own, known in searched]
    found: dict[FigureKey, str] = {}
    for (one, _, known), whole, changes in zip(searched, joined, find_changes(joined), strict=True):
        places = _places(whole, known.size if known else 0)
        within = (
            int(np.searchsorted(places, step.first))
            for step in changes
            if step.form == 'step' and places[0] < step.earliest and step.latest <= places[-1]
        )
        if first := next(within, 0):
            found[one.figure] = one.runs.unique(maintain_order=True).cast(str)[first]
    if not found:
        return None
    ((run, _),) = Counter(found.values()).most_common(1)
    return TwoStates(run, tuple(sorted(found)))


def _joined(known: Series | None, own: Series) -> Series:
    """Both in order of time; the sessions of the second have the greater numbers."""
    if known is None:
        return own
    return series(
        np.concatenate([known.values, own.values]),
        np.concatenate([known.times, own.times]),
        np.concatenate([known.sessions, own.sessions + known.sessions.max() + 1]),
    )


def _places(whole: Series, known: int) -> NDArray[np.int64]:
    """Where in both the sessions of the second stand; of the first there are so many."""
    numbers, first = np.unique(whole.sessions, return_index=True)
    in_order = numbers[np.argsort(first)]
    return np.flatnonzero(in_order >= known)
