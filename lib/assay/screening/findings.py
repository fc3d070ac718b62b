"""The findings that a screening can have, each with its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

#: ``node``: a bad node, to be drained. ``pair``: the cable or path between two nodes. ``group``:
#: what several nodes share, a switch or its uplink. ``either``: a node or a link, and which of them
#: so few nodes do not tell. ``uplinks``: what joins the switches, against the past.
#: ``machine``: everything, likewise.
#: ``different``: a node that is not what the others are. ``suspect``: a node that may be bad, or
#: slow by chance. ``disturbed``: no evidence, others were there.
Kind = Literal[
    'node',
    'group',
    'pair',
    'either',
    'uplinks',
    'machine',
    'different',
    'suspect',
    'disturbed',
]
#: Those that accuse nobody: more measurements would tell.
UNDECIDED: tuple[Kind, ...] = ('suspect', 'disturbed')
KINDS: tuple[Kind, ...] = get_args(Kind)

#: Sound nodes, pairs and so on that a screening accuses, on average.
FALSE_RATE = 0.05
#: Ways in which it may do so, each as often: a node against its peers, against its past and against
#: its other sweeps; a node's links; a pair; the whole machine against its past.
WAYS = 6
#: Earlier screenings that show what a node was like, and the most that are looked at.
FEWEST_EARLIER, MOST_EARLIER = 3, 10


@dataclass(frozen=True)
class Evidence:
    """One thing that shows a fault.

    :param figure: ``triad alone``, ``latency``, ``memory``, ...
    :param text: in words.
    :param change: by how much it is worse, as a fraction of what is usual: 0.2 for 20% less
        bandwidth or 20% more time; None where there is no such number.
    :param chance: how many sound nodes, pairs, ... as far off there are in such a screening, on
        average; None where it was not by chance, as of a counted error.
    """

    figure: str
    text: str
    change: float | None = None
    chance: float | None = None

    @staticmethod
    def by_distance(figure: str, text: str, far: float, chance: float) -> Evidence:
        """The evidence of a figure whose logarithm is off by so much, larger where worse."""
        change = np.exp(far) - 1 if figure.startswith('latency') else 1 - np.exp(-far)
        return Evidence(figure, text, float(change), float(chance))


def less_in_words(far: float) -> str:
    """By how much less a rate is whose logarithm is off by so much."""
    return f'{1 - np.exp(-far):.1%} less'


@dataclass(frozen=True)
class ScreeningFinding:
    """A culprit, and what shows that it is one.

    :param members: names of nodes: one, the two of a pair, or a group's; otherwise none.
    :param name: of a group's switch, where the scheduler knows it, or of all that are joined; of
        ``either``, all that may be it, in words.
    :param reason: what likely made a node slow; empty if nothing is known.
    """

    kind: Kind
    members: tuple[str, ...]
    evidence: tuple[Evidence, ...] = field(default=())
    name: str = ''
    reason: str = ''

    @property
    def chance(self) -> float | None:
        """The chance of the strongest evidence; None if something was not by chance."""
        chances = [one.chance for one in self.evidence if one.chance is not None]
        return min(chances) if len(chances) == len(self.evidence) > 0 else None
