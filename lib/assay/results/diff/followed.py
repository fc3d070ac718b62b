"""The part of the machine in a comparison: what moved of it, and what may only have followed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from assay.results.diff.compared import Compared, worst_first
from assay.results.statistics.comparison import Comparison
from assay.results.statistics.controls import cleared, may_follow, moved
from assay.results.statistics.families import FALSE_SHARE, FigureFamily
from assay.results.statistics.multiplicity import SUITE_RATE


def figures_that_moved(found: Iterable[Compared]) -> tuple[Compared, ...]:
    """The figures of the machine itself that changed, the one that changed most first."""
    controls = {id(one.verdict.comparison): one for one in found if one.is_of and one.verdict}
    comparisons = [one.verdict.comparison for one in controls.values() if one.verdict]
    return tuple(controls[id(one)] for one in moved(comparisons))


def _can_have_followed(one: Compared, control: Compared) -> bool:
    """What stays within a node cannot have followed the network."""
    return control.is_of != 'network' or one.reach != 'within a node'


def not_blamed_on_software(
    found: Sequence[Compared], controls: Sequence[Compared], families: Sequence[FigureFamily]
) -> list[Compared]:
    """Without verdicts on software that may only have followed the machine.

    :param controls: the figures of the machine that moved.
    :param families: of the figures, with positions in ``found``.
    """
    family_of = {number: one for one in families for number in one.tested.members}
    alone = SUITE_RATE / max(1, len(families))

    def bearing_on(one: Compared) -> list[Comparison]:
        return [
            control.verdict.comparison
            for control in controls
            if control.verdict and _can_have_followed(one, control)
        ]

    def beside(number: int, one: Compared) -> Compared:
        # What made a case fail is worse, whatever the reason.
        if one.is_of or one.misses or not one.verdict:
            return one
        family, bearing = family_of.get(number), bearing_on(one)
        # If the family got worse by more than the machine, a figure of it needs less to be sure.
        is_beyond = family is not None and not any(
            may_follow(family.tested.index, control, alone, False) for control in bearing
        )
        rate = FALSE_SHARE if is_beyond else SUITE_RATE / len(found)
        verdict = cleared(one.verdict, bearing, rate, one.figure.unit == '1')
        if one.is_missing and verdict.word != 'worse':
            return one.worse_by_missing()
        return replace(one, verdict=verdict, has_followed=verdict.word != one.verdict.word)

    if not controls:
        return list(found)
    return [beside(number, one) for number, one in enumerate(found)]


def slowed(compared: Iterable[Compared], moved: Sequence[Compared]) -> tuple[Compared, ...]:
    """The figures that the machine may have changed, whether or not it can be told of them."""
    return worst_first(
        one
        for one in compared
        if not one.is_of and any(_can_have_followed(one, control) for control in moved)
    )
