"""Nodes that are not what the others are, or not set as they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from assay.screening.findings import Evidence
from assay.screening.measured import Screening
from assay.screening.nodes import kinds
from assay.witness.settings import OF_MEMORY, label, size

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
    return size(value) if isinstance(value, int) and fact in MEMORY else str(value)
