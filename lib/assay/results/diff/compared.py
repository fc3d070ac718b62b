"""A figure before and after, what is said of it, and what it may share with others."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from assay.results.figure_series import FigureKey, Measured
from assay.results.grouping import Attribute
from assay.results.statistics.comparison import FigureVerdict, Word
from assay.text import expand_nodes

#: Nodes of a job that may each be the cause: among more, none alone explains much.
FEW_NODES = 8


@dataclass(frozen=True, eq=False)
class Compared:
    """A figure before and after.

    :param before: its values then.
    :param after: its values since; in another unit if the unit changed.
    :param verdict: what is said of it; None where it cannot be compared.
    :param why_not: why it cannot be compared, in words; empty if it can.
    :param is_of: ``network`` or ``node`` of a figure of the machine itself, which no software above
        the kernel touches; empty of others.
    :param is_missing: whether it misses a reference that it met before.
    :param misses: whether it is worse because of that alone.
    :param has_followed: whether it changed, and may only have followed the machine.
    """

    before: Measured
    after: Measured
    verdict: FigureVerdict | None
    why_not: str = ''
    is_of: str = ''
    is_missing: bool = False
    misses: bool = False
    has_followed: bool = False

    def worse_by_missing(self) -> Compared:
        """This figure as worse by its missed reference: anybody who sees the case fail is right."""
        assert self.verdict
        verdict = replace(self.verdict, word='worse', reason='')
        return replace(self, verdict=verdict, is_missing=True, misses=True)

    @property
    def figure(self) -> FigureKey:
        return self.after.figure

    @property
    def word(self) -> Word:
        return self.verdict.word if self.verdict else 'cannot tell'

    @property
    def reason(self) -> str:
        """Why it is not decided; empty if it is."""
        return self.verdict.reason if self.verdict else self.why_not

    @property
    def most_lost(self) -> float:
        """By what fraction it may be worse at most (95%); infinite where nothing is known."""
        if not self.verdict or self.verdict.comparison.better == 'exact':
            return 0.0 if self.verdict else math.inf
        low, high = self.verdict.interval
        loss = 1 - low if self.verdict.comparison.better == 'higher' else high - 1
        return math.inf if math.isnan(loss) else max(0.0, loss)

    @property
    def change(self) -> float:
        """The natural logarithm of after over before; 0 where there is no ratio."""
        change = self.verdict.comparison.change if self.verdict else 0.0
        return change if math.isfinite(change) else 0.0

    @property
    def is_without_ratio(self) -> bool:
        """Whether a value is 0, so that only the order of its sessions says anything."""
        return self.verdict is not None and bool(self.verdict.comparison.reason)

    @property
    def is_exact(self) -> bool:
        return self.verdict is not None and self.verdict.comparison.better == 'exact'

    @property
    def reach(self) -> str:
        return self.after.reach

    @cached_property
    def attributes(self) -> frozenset[Attribute]:
        """The attributes that it may share with other figures."""
        one = self.after
        found = {
            *(('partition', self.figure.partition), ('environment', self.figure.environment)),
            *(('fabric', one.fabric), ('layout', one.layout), ('scale', one.scale)),
            *(('reach', self.reach), ('check', one.check), ('figure', self.figure.figure)),
            ('quantity', _quantity(self.figure)),
        }
        for nodes in {nodes for nodes in one.nodes.unique().to_list() if nodes}:
            names = _names(nodes)
            if len(names) <= FEW_NODES:
                found |= {('node', name) for name in names}
            if len(names) > 1:
                found.add(('nodes', nodes))
        return frozenset((kind, value) for kind, value in found if value not in ('', '-'))


def worst_first(figures: Iterable[Compared]) -> tuple[Compared, ...]:
    """Sorted: the one that changed most first."""
    return tuple(sorted(figures, key=lambda one: -abs(one.change)))


def _quantity(figure: FigureKey) -> str:
    """The quantity that bounds a figure, by its name or unit: latency, bandwidth, or empty."""
    for quantity, unit in (('bandwidth', 'B/s'), ('latency', 'us')):
        if quantity in figure.figure or figure.unit.endswith(unit):
            return quantity
    return ''


@lru_cache(maxsize=1024)
def _names(nodes: str) -> list[str]:
    """The nodes of a list such as ``n[1-4]``; the text itself where it is none."""
    try:
        return expand_nodes(nodes)
    except ValueError:
        return [nodes]
