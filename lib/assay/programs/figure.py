"""A value that a job is judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

Direction = Literal['higher', 'lower', 'exact']


@dataclass(frozen=True)
class Figure:
    """A performance value.

    :param value: the number measured.
    :param unit: its unit; ``1`` for a fraction of a limit.
    :param better: the direction in which the figure improves; ``exact`` for one that must not
        change at all.
    :param must_be_held: whether a figure that no reference bounds is a failure: its limit was
        measured in the same job, so that it can be held on any machine.
    :param among_cores: whether it compares cores of a node, which differ where they are of several
        kinds: it is then held to no reference for any machine.
    :param headline: whether people ask for it first: it is shown whether it is held or not.
    """

    value: float
    unit: str
    better: Direction
    must_be_held: bool = False
    among_cores: bool = False
    headline: bool = False


@dataclass(frozen=True)
class Quantity:
    """A figure before it is measured: all fields of a :class:`Figure` but its value."""

    unit: str
    better: Direction
    must_be_held: bool = False
    among_cores: bool = False
    headline: bool = False

    def figure(self, value: float) -> Figure:
        """A figure of this quantity."""
        return Figure(value, **vars(self))


def figures_of(measures: Mapping[str, Quantity], values: Mapping[str, float]) -> dict[str, Figure]:
    """Figures by their names.

    :raises KeyError: if one is not declared.
    """
    return {name: measures[name].figure(value) for name, value in values.items()}


def quantity_of(measures: Mapping[str, Quantity], name: str) -> Quantity | None:
    """The quantity of a figure, by its name; None if it has none.

    :param measures: by names, in which ``*`` stands for any text.
    """
    matching = (one for known, one in measures.items() if fnmatchcase(name, known))
    return measures.get(name) or next(matching, None)
