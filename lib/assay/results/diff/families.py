"""Families of figures: what can change together, fixed beforehand, and what of it did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from assay.programs.application import OF_CONTROL
from assay.results.diff.causes import Fact, facts_with
from assay.results.diff.compared import Compared, worst_first
from assay.results.figure_series import Measured
from assay.results.statistics.comparison import Word
from assay.results.statistics.families import FigureFamily, benjamini_hochberg, slowness
from assay.results.statistics.series import Floats
from assay.witness.profile import STARTUP

#: Checks of the nodes, which no MPI touches.
_OF_NODES = {'Clock': 'clock frequency', 'Stream': 'memory bandwidth', 'Dgemm': 'DGEMM'}
_APPLICATIONS = ('MiniFE', 'MiniMD', 'MiniGhost', 'HPL')
#: In names of figures of applications: of what lies between their kernels.
_COMMUNICATION = ('communication', 'comm_', 'pack', 'send', 'recv', 'wait', 'sum_time')
#: Of a program as a whole: all that happened meanwhile is in them.
_WHOLE = frozenset(
    {
        *('total_time', 'rate', 'time', 'performance', 'other_time', 'hpl_of_limit'),
        *('cg_time', 'cg_rate', 'structure_time'),
    }
)
#: In names of figures of kernels on so few data that they stay in the caches of the cores.
_IN_CACHES = 'in_caches'
#: What names of figures begin with whose kernels send nothing. A dot product adds up over ranks, a
#: product waits for the halo, HPL's panels and updates for pivots and rows.
_SENDS_NOTHING = ('waxpy', 'assembly', 'stencil', 'force', 'neighbour')
#: The family of figures that say how quiet it was, and what is in their names.
JITTER = 'jitter'
_JITTER = ('whole_of_best', 'slowest_', 'cycles_kept', 'imbalance', 'longest_interruption')
#: Those that are differences near 0, which double by themselves: a loss of them is no great one.
_NEAR_NOTHING = ('imbalance', 'longest_interruption')
_MESSAGES = ('PointToPoint', 'Ring', 'Pairs', 'IntelMpi', 'Osu')
_BANDWIDTH = ('bandwidth', 'bisection', 'bidirectional')
_HALO = ('Halo', 'Overlap')
#: Of the kinds of figures that look worse and are not decided, so many may not be.
DOUBT = 0.2
#: A loss that nobody overlooks: one figure that lost so much is enough for doubt, if chance makes
#: as much of a figure in so few comparisons.
GREAT_LOSS, BY_CHANCE = 0.25, 0.01
#: A figure that lost so much needs no p-value, which a change that makes it vary would hide behind:
#: each of so many sessions after is worse than each before, and between them lies more than this
#: share of what those before differ by.
PLAIN_LOSS, PLAIN_SESSIONS, PLAIN_APART = 0.4, 3, 1 / 3
#: Nor does a kind of figures all of which lost so much, each session after being worse than the
#: median before: one before may have been as bad.
PLAIN_LOSS_OF_KIND = 0.55
#: Endings of names of figures that are the same measurement in another unit.
_UNITS = ('_time', '_rate', OF_CONTROL, '_of_limit', '_over_limit', '_of_link', '_over_ping_pong')


def family_of(compared: Compared) -> str:
    """Such as ``latency over tcp between nodes of openmpi``."""
    one = compared.after
    figure, check = one.figure.figure, one.check
    if compared.is_of == 'network':
        return 'network of the nodes'
    where = f' of {one.figure.environment}'
    if figure in STARTUP:
        return f'start-up{where}'
    if any(part in figure for part in _JITTER):
        return JITTER
    if check in _OF_NODES:
        return _OF_NODES[check]
    over = f' over {one.fabric}' if one.fabric not in ('', '-') else ''
    reach = f' {one.reach}' if one.reach == 'between nodes' else ''
    over += f'{reach}{where}'
    if check.startswith(_APPLICATIONS):
        if any(part in figure for part in _COMMUNICATION):
            return f'communication of applications{over}'
        if _IN_CACHES in figure:
            return f'application kernels in caches{where}'
        return f'applications{where}' if figure in _WHOLE else f'application kernels{where}'
    if check.startswith('Collectives'):
        return f'collectives{over}'
    if check.startswith(_HALO):
        return f'halo exchange{over}'
    if check.startswith(_MESSAGES):
        is_of_bandwidth = any(part in figure for part in _BANDWIDTH)
        return f'bandwidth{over}' if is_of_bandwidth else f'latency{over}'
    return f'{check}{over}'


def is_without_messages(check: str, figure: str) -> bool:
    """Whether it is of the clock, DGEMM or a kernel of an application that sends nothing."""
    if figure in STARTUP or any(part in figure for part in _JITTER):
        return False
    if check.startswith(_APPLICATIONS):
        return _IN_CACHES in figure or figure.startswith(_SENDS_NOTHING)
    return check.startswith(('Clock', 'Dgemm'))


def kind_of(one: Measured) -> str:
    """What it measures, in whatever case and unit: such as ``MiniGhost stencil``."""
    name = one.figure.figure
    if name in STARTUP:
        return name
    for ending in _UNITS:
        name = name.removesuffix(ending)
    return f'{one.check} {name}'


@dataclass(frozen=True, eq=False)
class Finding:
    """What is said of a family.

    :param members: all its figures, in the order of the suite.
    :param changed: those that have the family's word, the one that changed most first.
    :param change: by how much sessions got slower over all members: natural logarithm, above 0 is
        worse.
    :param p_value: adjusted for all families.
    :param facts: what changed for all that changed, with the fewest other figures first.
    """

    name: str
    word: Word
    members: tuple[Compared, ...]
    changed: tuple[Compared, ...]
    change: float
    p_value: float
    facts: tuple[Fact, ...]


def findings(
    families: Sequence[FigureFamily], compared: Sequence[Compared], facts: Sequence[Fact]
) -> tuple[Finding, ...]:
    """What is said of each family, what is worse first, and of these what lost most in all.

    :param families: their members are positions in ``compared``.
    """
    found = []
    for one in families:
        members = [compared[number] for number in one.tested.members]
        word = _word(one, members)
        changed = [
            number for number in one.tested.members if compared[number].word == word != 'same'
        ]
        found.append(
            Finding(
                one.tested.name,
                word,
                tuple(members),
                worst_first(compared[number] for number in changed) if changed else (),
                one.tested.index.change,
                one.p_value,
                facts_with(facts, changed, one.tested.members) if changed else (),
            )
        )
    order: list[Word] = ['worse', 'better', 'cannot tell', 'same']
    return tuple(
        sorted(
            found,
            key=lambda one: (order.index(one.word), -sum(abs(each.change) for each in one.changed)),
        )
    )


def _word(family: FigureFamily, members: Sequence[Compared]) -> Word:
    words = {one.word for one in members}
    for word in ('worse', 'better'):
        if word in words:
            return word
    return 'same' if words == {'same'} else 'cannot tell'


def _loss(one: Compared) -> float:
    """By how much a figure got worse, as a logarithm; 0 where there is no ratio."""
    loss = slowness(one.verdict.comparison) if one.verdict else 0.0
    return loss if math.isfinite(loss) else 0.0


def _slowness(one: Compared) -> tuple[Floats, Floats] | None:
    """How bad each session before and after was, as a logarithm; None of too few of them."""
    sides = one.before.series, one.after.series
    if one.verdict is None or one.verdict.comparison.reason or one.is_exact:
        return None
    before, after = (side.locations for side in sides if side)
    if min(len(before), len(after)) < PLAIN_SESSIONS:
        return None
    return (-before, -after) if one.verdict.comparison.better == 'higher' else (before, after)


def _is_plain(one: Compared) -> bool:
    """Whether it lost two fifths, in whatever sessions of both sides one looks at.

    Of three sessions and three that are exchangeable one in 20 orders is so, whatever their
    distribution is. With the room between them it is 2% to 3% (normal, Student's t with 3 degrees
    of freedom, uniform, exponential, two modes), of figures that vary so much that medians of three
    are two fifths apart: none of 130 unchanged pairs of sessions that no other rule doubted
    (docs/measurements.md).
    """
    sides = _slowness(one)
    if sides is None or _loss(one) <= -math.log1p(-PLAIN_LOSS):
        return False
    before, after = sides
    return bool(after.min() - before.max() > PLAIN_APART * np.ptp(before))


def _are_plain(members: Sequence[Compared]) -> bool:
    """Whether all figures of a kind lost more than half, beside one bad session before.

    Of three sessions and three that are exchangeable one in 5 orders is so. It met 1 of 130
    unchanged pairs of sessions that no other rule doubted.
    """

    def is_beyond(one: Compared) -> bool:
        sides = _slowness(one)
        return sides is not None and bool(sides[1].min() > np.median(sides[0]))

    enough = -math.log1p(-PLAIN_LOSS_OF_KIND)
    return len(members) > 1 and all(_loss(one) > enough and is_beyond(one) for one in members)


def suspects(
    families: Sequence[FigureFamily], compared: Sequence[Compared], margin: float
) -> tuple[Compared, ...]:
    """What looks worse by more than the margin and could not be decided, worst first.

    What got worse by no more than the machine itself, as far as these runs show it, is none.

    :param families: their members are positions in ``compared``.
    """
    by_itself = {
        part: median([_loss(one) for one in compared if one.is_of == part] or [0.0])
        for part in ('node', 'network')
    }
    # How quiet it was says nothing by chance alone.
    kinds = [
        kind for family in families if family.tested.name != JITTER for kind in family.tested.kinds
    ]
    in_doubt = benjamini_hochberg([kind.index.p_value for kind in kinds]) if kinds else []
    found = []
    for kind, p in zip(kinds, in_doubt, strict=True):
        members = [compared[number] for number in kind.members]
        is_of_kind = p <= DOUBT and kind.index.change > 0
        are_plain = _are_plain(members)
        found += [one for one in members if is_of_kind or are_plain or _is_great(one)]
    jitter = [
        compared[number]
        for family in families
        if family.tested.name == JITTER
        for number in family.tested.members
    ]
    found += [
        one
        for one in jitter
        if _is_plain(one) and not any(part in one.figure.figure for part in _NEAR_NOTHING)
    ]

    def machine(one: Compared) -> float:
        of_network = by_itself['network'] if one.reach != 'within a node' else 0.0
        return max(0.0, by_itself['node'], of_network)

    return worst_first(
        one
        for one in found
        if one.word == 'cannot tell' and _loss(one) > machine(one) + math.log1p(margin)
    )


def _is_great(one: Compared) -> bool:
    """Whether it lost so much that by itself it is enough for doubt."""
    if one.verdict is None:
        return False
    comparison = one.verdict.comparison
    # Of one run each nothing says that it is by chance.
    by_chance = min(comparison.p_value, comparison.short_sighted_p)
    is_rare = by_chance <= BY_CHANCE or not comparison.is_seen
    is_loss = _loss(one) > math.log1p(GREAT_LOSS) and (is_rare or _is_worse_in_order(one))
    return is_loss or _is_plain(one)


def _is_worse_in_order(one: Compared) -> bool:
    """Whether sessions after are so much more often the worse ones that it is hardly by chance.

    Where no history shows how far occasions are apart. Neither what is assumed of them nor heavy
    tails hide a loss from an order (Mann and Whitney, Annals of Mathematical Statistics 18, 1947).
    """
    sides = _slowness(one)
    if sides is None or one.verdict is None or not one.verdict.comparison.floor:
        return False
    from scipy.stats import mannwhitneyu

    return bool(mannwhitneyu(*sides, alternative='less').pvalue <= BY_CHANCE)
