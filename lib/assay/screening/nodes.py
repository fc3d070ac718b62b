"""Nodes by what each gives: slow against its peers, against its own past, or now and then."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from assay.results.statistics.outliers import (
    EFFICIENCY,
    FEWEST,
    OF_A_MEDIAN,
    good_side,
    outliers,
    robust_rows,
    robust_variance,
    tails,
)
from assay.results.statistics.series import Floats
from assay.results.statistics.spread import FLOOR, Variance, moderate, probability_beyond
from assay.screening.few import FOR_GOOD, Numbers, medians_before, slow_nodes
from assay.screening.findings import (
    FALSE_RATE,
    FEWEST_EARLIER,
    MOST_EARLIER,
    WAYS,
    Evidence,
    ScreeningFinding,
    less_in_words,
)
from assay.screening.measured import Screening, log_slowness, mode_of

#: The spread of sound nodes of one kind that is supposed before any are seen, and its worth.
#: Processors of one model differ by some percent in frequency under load: Rountree et al., "Beyond
#: DVFS" (IPDPSW 2012), and Inadomi et al. (SC 2015), found up to some 10% between the ends.
SUPPOSED = Variance(0.02**2, 4.0)
#: The same of what one node's place among its peers varies by from screening to screening.
SUPPOSED_OF_ONE = Variance(0.01**2, 2.0)
#: What is nearer to its own past than this is as it was.
LEAST = 0.02
#: Without a past it is unknown what is sound: identical parts differ by as much as this. A node
#: that is slower by less is found by its own past.
LEAST_OF_ALL = 0.08
#: Nodes of a kind that are judged: one of three can be distinguished from two.
FEWEST_PEERS = 3
#: By how much a sweep has to be slower than the node's own others to be reported.
LEAST_ONCE = 0.10
#: What others took of a node's CPUs, beyond what they took of its peers': from here on its figures
#: are no evidence.
TAKEN = 0.10
#: Steps that follow each other have a value in common: each tells less than one of its own would.
OVERLAP = 1.5

Found = defaultdict[str, list[Evidence]]


@dataclass(frozen=True)
class Nodes:
    """The findings on nodes, by name.

    :param bad: what shows that a node is.
    :param suspect: what may show that it is, and may be chance.
    :param disturbed: what could not be decided about it.
    :param alone: nodes that have no peers to be held against.
    """

    bad: Found
    suspect: Found
    disturbed: Found
    alone: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Peers:
    """One figure of peers.

    :param numbers: shape (n,), of the nodes.
    :param slow: shape (n, k), natural logarithms of all sweeps, larger where worse.
    :param tests: of each of the ways to find a node, in the whole screening.
    """

    figure: str
    numbers: Numbers
    slow: Floats
    tests: int

    @property
    def places(self) -> Floats:
        """Shape (n,): of each node among the others, by its median."""
        medians = np.median(self.slow, axis=1)
        return np.asarray(medians - np.median(medians))

    @property
    def errors(self) -> Floats:
        """Shape (n,): of those medians, as the sweeps of each node tell."""
        of_sweeps = np.array([one.value for one in self.steadiness])
        return np.asarray((of_sweeps * OF_A_MEDIAN / self.slow.shape[1]) ** 0.5)

    @cached_property
    def off(self) -> Floats:
        """Shape (n, k): of each sweep from the node's own others, by more than all nodes were."""
        off = self.slow - np.median(self.slow, axis=1, keepdims=True)
        return np.asarray(off - np.median(off, axis=0))

    @cached_property
    def steadiness(self) -> list[Variance]:
        """The variance of each node's sweeps, which are few, moderated by those of all nodes."""
        pooled = Variance(
            max(robust_variance(self.off.ravel()).value, FLOOR**2), float(self.off.shape[1])
        )
        return [moderate(own, pooled) for own in robust_rows(self.off)]


def kinds(now: Screening) -> list[Numbers]:
    """Numbers of the nodes that are peers: of one processor, with as many CPUs."""
    groups: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, facts in enumerate(now.facts):
        groups[facts.get('processor'), facts.get('cpus')].append(number)
    return [np.array(one) for one in groups.values()]


def find_nodes(
    now: Screening, earlier: Sequence[Screening], together: Iterable[ScreeningFinding]
) -> Nodes:
    """The nodes that are not like their peers, or not like before.

    :param earlier: older screenings of the same system, newest last.
    :param together: nodes whose links went down together, or which have the same to say of their
        ports, which is none's own fault.
    """
    found = Nodes(defaultdict(list), defaultdict(list), defaultdict(list), _without_peers(now))
    peers = _peers(now)
    told = [*_against_peers(now, peers), *_against_their_past(now, earlier, peers)]
    known = {(number, evidence.figure) for number, evidence, _ in told}
    told += [
        one for one in slow_nodes(now, earlier, kinds(now)) if (one[0], one[1].figure) not in known
    ]
    for number, evidence, is_sure in told:
        name, others = now.nodes[number], _taken(now, evidence.figure)[number]
        if others > TAKEN:
            text = f"others took {others:.0%} more of its CPUs than of its peers'"
            found.disturbed[name].append(Evidence(evidence.figure, text))
        else:
            (found.bad if is_sure else found.suspect)[name].append(evidence)
    shared = {(group.evidence[0].figure, name) for group in together for name in group.members}
    for name, faults in zip(now.nodes, now.faults, strict=True):
        if counted := [one for one in _counted(faults) if (one.figure, name) not in shared]:
            found.bad[name] += counted
    _add_lapses(now, earlier, peers, found)
    return found


def off_peers(now: Screening) -> dict[str, Floats]:
    """How far each node is from the median of its peers: of each figure, shape (n,).

    -0.2 is 20% less. NaN of nodes that have no peers.
    """
    found = {figure: np.full(len(now.nodes), np.nan) for figure in now.values}
    for one in _peers(now):
        found[one.figure][one.numbers] = np.exp(-one.places) - 1
    return found


def _peers(now: Screening) -> list[_Peers]:
    tests = WAYS * len(now.nodes) * len(now.values)
    return [
        _Peers(figure, numbers, log_slowness(values[numbers]), tests)
        for numbers in kinds(now)
        if len(numbers) >= FEWEST
        for figure, values in now.values.items()
    ]


def _add_lapses(
    now: Screening, earlier: Sequence[Screening], peers: list[_Peers], found: Nodes
) -> None:
    """Nodes that are slow now and then.

    Sound ones are so as well, as often as all the others show, now and before: a node that is no
    more often slow than by chance is a suspect.
    """
    own: defaultdict[str, list[_Lapse]] = defaultdict(list)
    lapses_now = [*_lapses(now, peers)]
    for lapse in lapses_now:
        own[now.nodes[lapse.number]].append(lapse)
    if not own:
        return
    lapsed: Counter[str] = Counter()
    looked: Counter[str] = Counter()
    before = ((one, _lapses(one, _peers(one))) for one in earlier[-MOST_EARLIER:])
    for one, its_lapses in ((now, lapses_now), *before):
        moments = {
            (lapse.number, mode_of(lapse.evidence.figure), sweep)
            for lapse in its_lapses
            for sweep in lapse.sweeps
        }
        lapsed.update(one.nodes[number] for number, *_ in moments)
        modes = {mode_of(figure) for figure in one.values}
        looked.update({name: len(modes) * one.sweeps for name in one.nodes})
    for name, lapses in own.items():
        others = lapsed.total() - lapsed[name], looked.total() - looked[name]
        chance = WAYS * len(now.nodes) * _as_often(lapsed[name], looked[name], *others)
        is_bad = chance < FALSE_RATE or name in found.bad
        into = found.bad if is_bad else found.suspect
        often = f'; {lapsed[name]} times in {looked[name]}, others {others[0]} in {others[1]}'
        into[name] += [
            replace(one.evidence, text=f'{one.evidence.text}{often}', chance=chance)
            for one in lapses
        ]


def _as_often(times: int, of: int, others: int, of_others: int) -> float:
    """The probability of so many lapses or more of one that has them as often as the others.

    Their rate is uncertain: it has a gamma distribution with Jeffreys' prior, and so the times are
    negative binomial.
    """
    from scipy.special import betainc

    return float(betainc(times, others + 0.5, of / (of + of_others)))


def _without_peers(now: Screening) -> tuple[str, ...]:
    few = (kind for kind in kinds(now) if len(kind) < FEWEST_PEERS)
    return tuple(now.nodes[number] for kind in few for number in kind)


def _taken(now: Screening, figure: str) -> Floats:
    """By how much others took more of each node's CPUs than of its peers': shape (n,).

    Half of a few nodes may be disturbed, so a quarter of them that is not is enough.
    """
    taken = np.median(now.taken[mode_of(figure)], axis=1)
    return np.asarray(taken - np.quantile(taken, 0.25, method='lower'))


def _against_peers(now: Screening, peers: list[_Peers]) -> Iterator[tuple[int, Evidence, bool]]:
    if not peers:
        return
    tail = tails(np.concatenate([good_side(one.places) for one in peers]))
    for one in peers:
        about = one.places, SUPPOSED, one.tests, LEAST_OF_ALL, tail
        found = outliers(*about)
        half = np.median(one.slow, axis=0) + found.far[:, None] / 2
        often = (one.slow > half).sum(axis=1)
        out = np.flatnonzero((found.chance < FALSE_RATE) & (often > now.sweeps / 2))
        if not out.size:
            continue
        sure = outliers(*about, one.errors)
        for i in out:
            text = (
                f'{less_in_words(found.far[i])} than its {len(one.numbers) - 1} peers, whose '
                f'spread is {found.spread:.1%}, in {often[i]} of {now.sweeps} sweeps'
            )
            # Of one that is slow in little more than half of them, it may be chance which half.
            is_sure = often[i] >= FOR_GOOD * now.sweeps or sure.chance[i] < FALSE_RATE
            evidence = Evidence.by_distance(one.figure, text, found.far[i], found.chance[i])
            yield int(one.numbers[i]), evidence, bool(is_sure)


@dataclass(frozen=True, eq=False)
class _Past:
    """How one figure of peers has changed.

    :param numbers: shape (n,), of the nodes that were there often enough.
    :param change: shape (n,), of their places among each other.
    :param times: shape (n,), in how many screenings each was there.
    :param steps: of all nodes' places from each earlier screening to the next.
    :param usual: what such a change varies by, as those tell.
    """

    peers: _Peers
    numbers: Numbers
    change: Floats
    times: Numbers
    steps: Floats
    usual: Variance


def _past(now: Screening, earlier: Sequence[Screening], peers: _Peers) -> _Past | None:
    """None where too few were there often enough."""
    before = medians_before(now, earlier, peers.figure, peers.numbers)
    # A node is compared with those of its kind that were there both times.
    is_enough = (~np.isnan(before)).sum(axis=0) >= FEWEST
    before[:, is_enough] -= np.nanmedian(before[:, is_enough], axis=0)
    before[:, ~is_enough] = np.nan
    times = (~np.isnan(before)).sum(axis=1)
    known = np.flatnonzero(times >= FEWEST_EARLIER)
    if len(known) < FEWEST:
        return None
    middles = np.nanmedian(before[known], axis=1)
    # Not what they are around their own middles: of a few values one is the middle.
    steps = np.diff(before[known], axis=1).ravel()
    steps = steps[~np.isnan(steps)]
    if len(steps) < FEWEST:
        return None
    single, m = robust_variance(steps).value / 2, float(times[known].mean())
    usual = Variance(
        max(single * (1 + OF_A_MEDIAN / m), FLOOR**2), EFFICIENCY * len(steps) / OVERLAP
    )
    change = peers.places[known] - middles
    return _Past(peers, peers.numbers[known], change, times[known], steps, usual)


def _against_their_past(
    now: Screening, earlier: Sequence[Screening], peers: list[_Peers]
) -> Iterator[tuple[int, Evidence, bool]]:
    pasts = [past for one in peers if (past := _past(now, earlier, one))]
    if not pasts:
        return
    # To both sides: a node that has become bad was mended, or was so the next time.
    steps = [past.steps / max(robust_variance(past.steps).value ** 0.5, FLOOR) for past in pasts]
    tail = tails(np.concatenate(steps))
    for past in pasts:
        one = past.peers
        prior = moderate(past.usual, SUPPOSED_OF_ONE)
        found = outliers(past.change, prior, one.tests, LEAST, tail)
        for i in np.flatnonzero(found.chance < FALSE_RATE):
            text = (
                f'{less_in_words(found.far[i])} than in {past.times[i]} earlier screenings, '
                f'against its peers, which varies by {found.spread:.1%}'
            )
            evidence = Evidence.by_distance(one.figure, text, found.far[i], found.chance[i])
            yield int(past.numbers[i]), evidence, True


@dataclass(frozen=True)
class _Lapse:
    """Sweeps in which a node was far slower than in its own others, in one figure."""

    number: int
    sweeps: tuple[int, ...]
    evidence: Evidence


def _lapses(now: Screening, peers: list[_Peers]) -> Iterator[_Lapse]:
    if now.sweeps < FEWEST_EARLIER or not peers:
        return
    tail = tails(np.concatenate([good_side(one.off.ravel()) for one in peers]))
    for one in peers:
        far = one.off
        taken = now.taken[mode_of(one.figure)][one.numbers]
        told = (far > LEAST_ONCE) & (taken - np.median(taken, axis=0) <= TAKEN)
        for i in np.flatnonzero(told.any(axis=1)):
            # A node that is never steady is found by its place: its own spread counts as well.
            spread = one.steadiness[i]
            tests = one.tests * now.sweeps
            chances = {
                int(sweep): tests
                * probability_beyond(float(far[i][sweep]) / spread.value**0.5, spread.freedom, tail)
                for sweep in np.flatnonzero(told[i])
            }
            sweeps = tuple(sweep for sweep, chance in chances.items() if chance < FALSE_RATE)
            if sweeps:
                worst = float(far[i][list(sweeps)].max())
                less = less_in_words(worst)
                text = f'{less} in {len(sweeps)} of {now.sweeps} sweeps than in its others'
                found = Evidence.by_distance(one.figure, text, worst, min(chances.values()))
                yield _Lapse(int(one.numbers[i]), sweeps, found)


def _counted(faults: Mapping[str, str | int]) -> Iterator[Evidence]:
    """Errors that nobody need compare with others'."""
    if wrong := faults.get('wrong'):
        yield Evidence('answers', f'{wrong} came out wrong')
    if where := faults.get('placement'):
        yield Evidence('placement', str(where))
    if links := faults.get('link'):
        yield Evidence('link', str(links))
    if ports := faults.get('ports'):
        yield Evidence('ports', str(ports))
    if count := faults.get('uncorrected'):
        yield Evidence('memory', f'its memory had {count} uncorrected errors since it was started')
    if count := faults.get('new'):
        yield Evidence('memory', f'its memory had {count} errors during the screening')
