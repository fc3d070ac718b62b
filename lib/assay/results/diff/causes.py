"""Figures that changed for one cause, and what else differs between before and after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.results.diff.compared import Compared, worst_first
from assay.results.grouping import Group, Member, group_changes
from assay.results.provenance import both_tell
from assay.results.statistics.comparison import Word
from assay.results.time_spent import TimeSpent

#: Names of facts that only follow from others.
FOLLOWING = frozenset({'hash', 'by', 'spec'})


@dataclass(frozen=True, eq=False)
class Fact:
    """Something that differs between before and after, beside the figures.

    :param figures: positions of the figures that were measured with it.
    """

    name: str
    before: str
    after: str
    figures: frozenset[int]

    @property
    def follows(self) -> bool:
        """Whether it only follows from others, which stand before it."""
        return self.name in FOLLOWING


@dataclass(frozen=True, eq=False)
class Cause:
    """Figures that changed in one direction, and share something that the others do not.

    :param figures: that changed, the one that changed most first.
    :param group: what they share; None of one that stands alone.
    :param facts: what changed for all of them, with the fewest other figures first.
    :param time: where the time went of the case that changed most, of those that still tell.
    """

    word: Word
    figures: tuple[Compared, ...]
    group: Group | None
    facts: tuple[Fact, ...]
    time: TimeSpent | None = None


def facts_that_differ(compared: Sequence[Compared]) -> list[Fact]:
    """The facts in which the two sides of figures differ, where both sides report them."""
    found: dict[tuple[str, str, str], set[int]] = {}
    for number, one in enumerate(compared):
        old, new = both_tell(one.before.facts, one.after.facts)
        both_told = len(old.keys() - {'nodes'}) and len(new.keys() - {'nodes'})
        names = old.keys() | new.keys() if both_told else {'nodes'} & old.keys() & new.keys()
        for name in names:
            then, now = old.get(name) or '-', new.get(name) or '-'
            if then != now:
                found.setdefault((name, then, now), set()).add(number)
    return [Fact(*change, frozenset(figures)) for change, figures in found.items()]


def facts_with(
    facts: Iterable[Fact], changed: Iterable[int], of_it: Iterable[int]
) -> tuple[Fact, ...]:
    """The facts that differ for all changed figures; those with the fewest other figures first.

    :param of_it: the figures that it is looked at for.
    """
    found = [fact for fact in facts if fact.figures >= {*changed}]
    inside = {*of_it}
    return tuple(
        sorted(found, key=lambda fact: (fact.follows, len(fact.figures - inside), fact.name))
    )


def causes_of(word: Word, compared: Sequence[Compared], facts: Sequence[Fact]) -> Iterable[Cause]:
    """The causes of figures that got worse, or better: groups first, then single figures."""
    if not any(one.word == word for one in compared):
        return
    members = [
        Member(number, one.attributes, one.word == word, one.word != 'cannot tell')
        for number, one in enumerate(compared)
        # What cannot change for the same cause says nothing against it.
        if one.word == word or not (one.why_not or one.is_exact or one.is_of)
    ]
    groups, alone = group_changes(members)
    for group in groups:
        changed = facts_with(facts, group.changed, (*group.changed, *group.others))
        figures = worst_first(compared[key] for key in group.changed)
        yield Cause(word, figures, group, changed)
    if alone:
        yield Cause(word, worst_first(compared[key] for key in alone), None, ())
