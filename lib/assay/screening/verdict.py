"""The verdict on a screening: who is to blame, and what everything is like against the past.

Nothing but what was measured goes into it, so the same files give the same verdict.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assay.machine.slurm import BROKEN
from assay.results.statistics.outliers import OF_A_MEDIAN, UNSEEN_TAIL
from assay.results.statistics.series import Floats
from assay.results.statistics.spread import probability_beyond
from assay.screening.few import spread_of_all
from assay.screening.findings import (
    FALSE_RATE,
    FEWEST_EARLIER,
    KINDS,
    UNDECIDED,
    WAYS,
    Evidence,
    ScreeningFinding,
)
from assay.screening.links import find_links
from assay.screening.measured import Screening, behind_one_switch
from assay.screening.nodes import find_nodes, kinds
from assay.screening.noise import find_noise
from assay.witness.settings import OF_MEMORY, binary_size, label

#: What is nearer to the past than this is as it was.
LEAST = 0.02
#: Figures of pairs of nodes; and the kinds of pairs, where the scheduler knows the switches.
LINKS = ('latency', 'bandwidth')
WITHIN, BETWEEN = ' behind one switch', ' between switches'


@dataclass(frozen=True)
class ScreeningVerdict:
    """The verdict on a screening.

    :param findings: by kind, then by name.
    :param without_peers: nodes that could be held against no others.
    :param earlier: how many screenings before it were looked at.
    :param silent: nodes that could not be measured, and that nobody has taken out.
    :param noise: by node that is interrupted more than its peers and was not found slow, by what;
        it decides nothing.
    """

    findings: tuple[ScreeningFinding, ...]
    without_peers: tuple[str, ...]
    earlier: int
    silent: tuple[str, ...] = ()
    noise: Mapping[str, str] = field(default_factory=dict)

    @property
    def drain(self) -> tuple[ScreeningFinding, ...]:
        """The bad nodes."""
        return tuple(one for one in self.findings if one.kind == 'node')

    @property
    def exit_code(self) -> int:
        """0: nothing was found; 1: something was; 3: more measurements would tell."""
        if not self.findings:
            return 3 if self.silent else 0
        return 3 if all(one.kind in UNDECIDED for one in self.findings) else 1


def judge_screening(now: Screening, earlier: Sequence[Screening] = ()) -> ScreeningVerdict:
    """Find the culprits of a screening.

    On average a screening of sound nodes and links accuses ``FALSE_RATE`` of them.

    :param earlier: screenings of the same system and environment, oldest first.
    """
    together = [one for fault in SHARED for one in faults_of_many(now, fault)]
    nodes, links = find_nodes(now, earlier, together), find_links(now, earlier)
    bad = {
        name: (*nodes.bad.get(name, ()), *links.nodes.get(name, ()))
        for name in {*nodes.bad, *links.nodes}
    }
    findings = [ScreeningFinding('node', (name,), evidence) for name, evidence in bad.items()]
    findings += [*links.others, *together]
    slow = {*bad}.union(
        *(one.members for one in links.others if one.kind == 'group' or len(one.members) == 1)
    )
    accused = _Accused(
        {*nodes.bad, *nodes.suspect},
        slow,
        {one.members for one in links.others if one.kind in ('pair', 'either')},
    )
    findings += _of_everything(now, _against_the_past(now, earlier, accused))
    findings += [
        ScreeningFinding('different', (name,), tuple(found))
        for name, found in find_different(now).items()
    ]
    for kind, undecided in zip(UNDECIDED, (nodes.suspect, nodes.disturbed), strict=True):
        findings += [
            ScreeningFinding(kind, (name,), tuple(found))
            for name, found in undecided.items()
            if name not in bad
        ]
    findings.sort(
        key=lambda one: (KINDS.index(one.kind), *(now.number[name] for name in one.members))
    )
    noise = find_noise(now)
    findings = [
        replace(one, reason=noise.get(one.members[0], '')) if _is_slow_node(one) else one
        for one in findings
    ]
    told = {one.members[0] for one in findings if one.reason}
    others = {name: words for name, words in noise.items() if name not in told}
    silent = tuple(name for name, state in now.left_out.items() if _is_silent(state))
    return ScreeningVerdict(tuple(findings), nodes.alone, len(earlier), silent, others)


def _is_slow_node(one: ScreeningFinding) -> bool:
    """Whether a node gave less, or may have; counted errors alone have other reasons."""
    is_measured = any(why.chance is not None for why in one.evidence)
    return one.kind in UNDECIDED or (one.kind == 'node' and is_measured)


def _is_silent(state: str) -> bool:
    """Whether a node is out of service, and nobody has decided so: Slurm's ``down``, ``idle*``."""
    word = state.partition(':')[0].strip().lower()
    if word.startswith(('drain', 'maint', 'power', 'reserved', 'planned', 'future')):
        return False
    return word.endswith('*') or word.startswith(BROKEN)


def _of_everything(now: Screening, worse: Iterable[Evidence]) -> Iterator[ScreeningFinding]:
    """Blame the links between switches if pairs across them are far worse, or else the machine."""
    left = {one.figure: one for one in worse}
    crossing = []
    for figure in LINKS:
        within, between = left.pop(figure + WITHIN, None), left.pop(figure + BETWEEN, None)
        if between:
            left.pop(figure, None)
            crossing += [one for one in (between, within) if one]
        elif within:
            left.setdefault(figure, within)
    if crossing:
        switches = sorted(name for name, nodes in now.switches.items() if {*nodes} & {*now.nodes})
        yield ScreeningFinding('uplinks', (), tuple(crossing), ', '.join(switches))
    if left:
        yield ScreeningFinding('machine', (), tuple(left.values()))


@dataclass(frozen=True)
class _Accused:
    """Nodes and pairs whose faults are reported already, and which the middle leaves out.

    :param nodes: for what they give.
    :param slow: nodes for their links.
    :param pairs: by the names of both, sorted.
    """

    nodes: set[str]
    slow: set[str]
    pairs: set[tuple[str, ...]]


def _middles(one: Screening, names: set[str], accused: _Accused) -> dict[str, float]:
    """The median of each figure over nodes, larger where worse.

    Of links over all pairs, over those behind one switch, and over those between switches.

    :param names: of the nodes that are looked at.
    """
    left = names - accused.nodes or names
    rows = [number for number, name in enumerate(one.nodes) if name in left]
    found = {
        figure: float(-np.median(np.log(np.median(values[rows], axis=1))))
        for figure, values in one.values.items()
    }
    links, within = one.links, behind_one_switch(one)
    is_left = np.array([name not in accused.slow for name in one.nodes])[links.ends].all(axis=1)
    for pair in accused.pairs:
        is_left &= ~np.isin(links.ends, [one.number.get(name, -1) for name in pair]).all(axis=1)
    for kind, of_kind in {'': is_left, WITHIN: within, BETWEEN: ~within}.items():
        pairs = is_left & of_kind
        if pairs.any() and (within.any() or not kind):
            found[f'latency{kind}'] = float(np.median(np.log(links.latency[pairs])))
            found[f'bandwidth{kind}'] = float(-np.median(np.log(links.bandwidth[pairs])))
    return found


def _against_the_past(
    now: Screening, earlier: Sequence[Screening], accused: _Accused
) -> Iterator[Evidence]:
    """Figures whose middle is worse than before, over nodes that were there each time."""
    names = {*now.nodes}.intersection(*(one.nodes for one in earlier))
    if len(earlier) < FEWEST_EARLIER or not names:
        return
    middles, *before = (_middles(one, names, accused) for one in (now, *earlier))
    pasts = {
        figure: np.array([one[figure] for one in before if figure in one]) for figure in middles
    }
    found = {
        figure: middles[figure] - float(np.median(past))
        for figure, past in pasts.items()
        if len(past) >= FEWEST_EARLIER
    }
    for figure, far in found.items():
        if figure.endswith(BETWEEN):
            # What is slower behind one switch as well is no matter of what joins them.
            within = found.get(figure.removesuffix(BETWEEN) + WITHIN, np.inf)
            if within > far / 2:
                continue
        past: Floats = pasts[figure]
        spread = spread_of_all(now, past)
        error = (spread.value * (1 + OF_A_MEDIAN / len(past))) ** 0.5
        chance = (
            WAYS * len(middles) * probability_beyond(far / error, spread.freedom, UNSEEN_TAIL)
            if far > 0
            else 1.0
        )
        if far > LEAST and chance < FALSE_RATE:
            more = figure.startswith('latency')
            change = np.exp(far) - 1 if more else 1 - np.exp(-far)
            text = (
                f'{change:.1%} {"more" if more else "less"} than in {len(past)} earlier '
                f'screenings, which varied by {spread.value**0.5:.1%}'
            )
            yield Evidence(figure, text, float(change), chance)


#: A value that fewer than this part of the nodes have is an exception, where most have another.
FEW, MOST = 0.25, 0.5
#: With fewer nodes it is unknown which of them is unlike the others.
FEWEST_ALIKE = 3
#: Kernels keep some for themselves, more or less of it: memory is different by more than this part.
LEAST_OF_MEMORY = 0.01
MEMORY = ('memory', label(OF_MEMORY))
GIB = 1 << 30


def find_different(now: Screening) -> dict[str, list[Evidence]]:
    """By node, what it has or is set to unlike most of all nodes.

    Where a machine has several generations of nodes, none of them is an exception as long as each
    has a quarter of the nodes. Of three or four a single one is, if all others are alike.
    """
    found: defaultdict[str, list[Evidence]] = defaultdict(list)
    if len(now.nodes) < FEWEST_ALIKE:
        return {}
    for fact in sorted({name for facts in now.facts for name in facts}):
        for number, text in _exceptions(now, fact):
            found[now.nodes[number]].append(Evidence(_name(fact), text))
    return dict(found)


def _exceptions(now: Screening, fact: str) -> Iterator[tuple[int, str]]:
    values = [facts.get(fact) for facts in now.facts]
    if fact in MEMORY:
        values = _alike(values)
    counts = Counter(values)
    usual, often = counts.most_common(1)[0]
    if often <= MOST * len(values):
        return
    is_single = often == len(values) - 1 and len(kinds(now)) == 1
    for number, value in enumerate(values):
        if value != usual and (is_single or counts[value] < FEW * len(values)):
            yield number, f'{_text(fact, value)}; {often} others have {_text(fact, usual)}'


def _name(fact: str) -> str:
    """A fact in words; what has other signs is a name of a setting, or a file, already."""
    return fact.replace('_', ' ') if fact.replace('_', '').isalpha() else fact


def _alike(sizes: list[str | int | None]) -> list[str | int | None]:
    """Sizes of memory, each as the median of those that differ from it by next to nothing."""
    known = np.array([one if isinstance(one, int) else 0 for one in sizes], dtype=np.float64)
    return [
        None if not one else int(np.median(known[np.abs(known - one) <= LEAST_OF_MEMORY * one]))
        for one in known
    ]


def _text(fact: str, value: str | int | None) -> str:
    if value is None:
        return 'nothing told'
    if fact == 'memory':
        return f'{int(value) / GIB:.1f} GiB'
    return binary_size(value) if isinstance(value, int) and fact in MEMORY else str(value)


#: The part of the nodes beyond which it is not each one's own fault, and what of many nodes is so,
#: in words.
MOST_OWN = 0.25
#: Likewise of network ports: as many may have other cards than the rest, as they were bought.
MOST_OWN_PORTS = 0.05
SHARED = {
    'link': 'links of {} of {} nodes went down',
    'ports': 'network ports of {} of {} nodes are slow, down or idle',
}


def faults_of_many(now: Screening, fault: str) -> Iterator[ScreeningFinding]:
    """The switches whose nodes all have a fault, and the other nodes if many have it.

    A single node's fault is the node's own, however few nodes there are.
    """
    left = {name for name, faults in zip(now.nodes, now.faults, strict=True) if fault in faults}
    # The largest first: where a switch stands above others it is all of them.
    switches = sorted(now.switches.items(), key=lambda one: (-len(one[1]), one[0]))
    for switch, names in switches:
        members = {*names} & {*now.nodes}
        if len(members) > 1 and members <= left:
            left -= members
            yield _group(now, fault, members, switch)
    most = MOST_OWN_PORTS if fault == 'ports' else MOST_OWN
    if len(left) > max(1, most * len(now.nodes)):
        yield _group(now, fault, left)


def _group(now: Screening, fault: str, names: set[str], switch: str = '') -> ScreeningFinding:
    members = tuple(sorted(names))
    first = now.number[members[0]]
    said = SHARED[fault].format(len(members), len(now.nodes))
    text = f'{said}; {members[0]}: {now.faults[first][fault]}'
    return ScreeningFinding('group', members, (Evidence(fault, text),), switch)
