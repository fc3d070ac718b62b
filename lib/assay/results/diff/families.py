"""Families of figures: what can change together, fixed beforehand, and what of it did."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from assay.programs.application import OF_CONTROL
from assay.results.diff.causes import Fact, facts_with
from assay.results.diff.compared import Compared, worst_first
from assay.results.figure_series import Measured
from assay.results.statistics.comparison import Word
from assay.results.statistics.families import FigureFamily, benjamini_hochberg
from assay.results.statistics.series import Floats, Series, trimmed_mean
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
#: Losses that nobody overlooks, and in how many comparisons chance may make as much of a figure: so
#: much is enough for doubt. The smaller a loss is, the rarer it has to be. What two sessions of a
#: side show is one in 6 or 10 at best, what one shows is one in 3 or 4.
GREAT_LOSSES = ((0.2, 0.01), (0.4, 0.05), (0.6, 0.2), (0.8, 0.35))
#: A p-value above this is no evidence, and an order without room is none, however great the loss
#: is: what varies by as much loses as much each night. By p-values of 20% 13 of 37 unchanged pairs
#: on a busy machine would be in doubt.
BY_SPREAD = BY_RANK = 0.01
#: Sessions after are apart from those before by more than this share of what these differ by: then
#: their order alone is evidence, which a change that makes a figure vary hides from a p-value.
APART = 1 / 3
#: A value of 0 counts as this share of the least other value of its side.
NEARLY_NOTHING = 0.1
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
    """The quantity it measures, in whatever case and unit: such as ``MiniGhost stencil``."""
    name = one.figure.figure
    if name in STARTUP:
        return name
    for ending in _UNITS:
        name = name.removesuffix(ending)
    return f'{one.check} {name}'


@dataclass(frozen=True, eq=False)
class Finding:
    """The result for a family.

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


def family_findings(
    families: Sequence[FigureFamily], compared: Sequence[Compared], facts: Sequence[Fact]
) -> tuple[Finding, ...]:
    """The result for each family: worse ones first, and of these the one that lost most in all.

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
    """By how much a figure got worse, as a logarithm; 0 where nothing says."""
    if one.is_without_ratio and (sides := _slowness(one)):
        return float(trimmed_mean(sides[1]) - trimmed_mean(sides[0]))
    loss = one.verdict.comparison.slowdown if one.verdict else 0.0
    return loss if math.isfinite(loss) else 0.0


def _slowness(one: Compared) -> tuple[Floats, Floats] | None:
    """How bad each session before and after was, as a logarithm, sorted; None if nothing says."""
    sides = [side for side in (one.before.series, one.after.series) if side]
    if one.verdict is None or one.is_exact:
        return None
    signs = -1 if one.verdict.comparison.better == 'higher' else 1
    if one.is_without_ratio:
        least = max((_in_place_of_zero(side) for side in sides if side.values.any()), default=0.0)
        if not least:
            return None
        sides = [replace(side, values=np.maximum(side.values, least)) for side in sides]
    before, after = (np.sort(signs * side.locations) for side in sides)
    return before, after


def _in_place_of_zero(side: Series) -> float:
    """The value that replaces 0, which may be a rounded one."""
    step = side.step * float(np.median(side.values))
    return max(step, NEARLY_NOTHING * float(side.values[side.values > 0].min()))


def has_lost_beside_zeros(one: Compared) -> bool:
    """Whether a figure that has no ratio, as it is 0 at times, lost so much that it is in doubt."""
    is_near_nothing = any(part in one.figure.figure for part in _NEAR_NOTHING)
    return one.is_without_ratio and not is_near_nothing and _is_great(one, _by_order)


def _is_apart(before: Floats, after: Floats) -> bool:
    return bool(after[0] - before[-1] > APART * np.ptp(before))


def _by_order(one: Compared) -> float:
    """In how many orders of its sessions chance puts those after last; 1 if they are not last.

    Of three sessions and three that are exchangeable one in 20 orders has all of those after last,
    whatever their distribution is. With the room between them (:data:`APART`) it is 2% to 3%
    (normal, Student's t with 3 degrees of freedom, uniform, exponential, two modes). One session of
    a side may be an outlier: that is so in 6 of 20. Where no history shows how far occasions are
    apart, an order that is rarer is evidence without such room (Mann and Whitney, Annals of
    Mathematical Statistics 18, 1947): heavy tails do not hide a loss from it.
    """
    sides = _slowness(one)
    if sides is None or one.verdict is None:
        return 1.0
    before, after = sides
    orders = math.comb(len(before) + len(after), len(before))
    if _is_apart(before, after):
        return 1 / orders
    found = 1.0
    fewer, more = sorted((len(before), len(after)))
    if (len(before) > 2 and _is_apart(before[:-1], after)) or (
        len(after) > 2 and _is_apart(before, after[1:])
    ):
        found = (fewer + more if fewer > 2 else 1 + fewer) / orders
    is_alone = one.verdict.comparison.floor or one.is_without_ratio
    if is_alone and 1 / orders <= BY_RANK:
        from scipy.stats import mannwhitneyu

        by_rank = float(mannwhitneyu(before, after, alternative='less').pvalue)
        found = min(found, by_rank) if by_rank <= BY_RANK else found
    return found


def _beside_one_bad(one: Compared) -> float:
    """The chance of such an order if one session before may have been as bad: for a whole kind.

    That each session after is worse than the median before is so in one of 5 orders of three
    sessions and three.
    """
    sides = _slowness(one)
    is_beyond = sides and min(map(len, sides)) > 2 and sides[1][0] > np.median(sides[0])
    return 0.2 if is_beyond else 1.0


def _by_chance(one: Compared) -> float:
    """In how many comparisons chance makes as much of a figure, by its p-values and its order."""
    if one.verdict is None:
        return 1.0
    comparison = one.verdict.comparison
    if not comparison.is_seen:  # of one run each nothing says that it is by chance
        return 0.0
    by_spread = min(comparison.p_value, comparison.short_sighted_p)
    return min(by_spread if by_spread <= BY_SPREAD else 1.0, _by_order(one))


def _is_great(one: Compared, by_chance: Callable[[Compared], float]) -> bool:
    """Whether it lost so much that with this evidence it is enough for doubt."""
    lost = _loss(one)
    enough = [often for least, often in GREAT_LOSSES if lost > -math.log1p(-least)]
    return bool(enough) and by_chance(one) <= max(enough)


def suspect_figures(
    families: Sequence[FigureFamily], compared: Sequence[Compared], margin: float
) -> tuple[Compared, ...]:
    """The figures that look worse by more than the margin and are not decided, worst first.

    A figure that got worse by no more than the machine itself in these runs is no suspect.

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
        are_great = len(members) > 1 and all(_is_great(one, _beside_one_bad) for one in members)
        found += [one for one in members if is_of_kind or are_great or _is_great(one, _by_chance)]
    jitter = [
        compared[number]
        for family in families
        if family.tested.name == JITTER
        for number in family.tested.members
    ]
    found += [
        one
        for one in jitter
        if _is_great(one, _by_order)
        and not any(part in one.figure.figure for part in _NEAR_NOTHING)
    ]

    def machine(one: Compared) -> float:
        of_network = by_itself['network'] if one.reach != 'within a node' else 0.0
        return max(0.0, by_itself['node'], of_network)

    return worst_first(
        one
        for one in found
        if one.word == 'cannot tell' and _loss(one) > machine(one) + math.log1p(margin)
    )
