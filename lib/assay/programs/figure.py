"""A value that a job is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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
    better: Literal['higher', 'lower', 'exact']
    must_be_held: bool = False
    among_cores: bool = False
    headline: bool = False
