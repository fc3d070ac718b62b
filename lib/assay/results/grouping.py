"""Figures that changed, grouped by what they share and the others do not: one cause shows once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

#: What figures can have in common, as kind and value, such as ``('fabric', 'ofi-tcp')``.
Attribute = tuple[str, str]

#: Of two kinds that explain the same figures equally well, the first is named: what an upgrade
#: changes, then where it ran, then how, then what was measured.
KINDS = (
    *('environment', 'fabric', 'partition', 'nodes', 'node', 'reach', 'scale', 'layout'),
    *('quantity', 'check', 'figure'),
)
#: So many of the decided figures have changed where something is the cause of it: two of ten may
#: be bound by something else.
NEARLY_ALL = 0.8
#: Likewise of all, with those that are not decided: fewer are too few to speak for the others.
ENOUGH = 0.5
FEWEST = 2


@dataclass(frozen=True)
class Member:
    """A figure, as one of those to be grouped.

    :param key: by which the caller knows it.
    :param attributes: what it may have in common with others.
    :param has_changed: whether it changed in the direction that is looked at.
    :param could_be_told: whether it is known to have changed, or not to have.
    """

    key: int
    attributes: frozenset[Attribute]
    has_changed: bool
    could_be_told: bool


@dataclass(frozen=True)
class Group:
    """Figures that changed, and what they share.

    :param shared: at most two attributes, in the order of ``KINDS``; none if it is all figures.
    :param changed: keys of the figures that changed.
    :param others: keys of those that share it and did not, or are not decided.
    :param likewise: further attributes of these very figures, and of no others.
    """

    shared: tuple[Attribute, ...]
    changed: tuple[int, ...]
    others: tuple[int, ...]
    likewise: tuple[Attribute, ...] = ()


def group_changes(members: Sequence[Member]) -> tuple[list[Group], list[int]]:
    """Groups of figures that changed, and the keys of those that stand alone.

    The group that explains most comes first; the next ones are looked for in what it leaves. It is
    one or two attributes, or all figures, if nearly all of these changed. It explains as many as
    changed, less those that did not. Among several that explain as much, the one with most changes
    comes first, then with fewest figures beside them, then with fewest attributes.
    """
    found, left = [], list(members)
    while group := _greatest(left):
        found.append(group)
        explained = {*group.changed}
        left = [one for one in left if one.key not in explained]
    return found, [one.key for one in left if one.has_changed]


def _greatest(members: Sequence[Member]) -> Group | None:
    """The group that explains most of what changed; None if nothing explains two."""
    changed, told, size = (Counter[frozenset[Attribute]]() for _ in range(3))
    for one in members:
        if one.has_changed:
            changed.update(_conjunctions(one.attributes))
    for one in members:
        for shared in _conjunctions(one.attributes):
            if changed[shared] >= FEWEST:
                size[shared] += 1
                told[shared] += one.could_be_told
    fits = [
        shared
        for shared, n in size.items()
        if changed[shared] >= max(FEWEST, NEARLY_ALL * told[shared], ENOUGH * n)
    ]
    if not fits:
        return None

    def merit(shared: frozenset[Attribute]) -> tuple[object, ...]:
        explained = 2 * changed[shared] - told[shared]
        return -explained, -changed[shared], size[shared], len(shared), _in_order(shared)

    best = min(fits, key=merit)
    inside = [one for one in members if best <= one.attributes]
    return Group(
        tuple(attribute for *_, attribute in _in_order(best)),
        tuple(one.key for one in inside if one.has_changed),
        tuple(one.key for one in inside if not one.has_changed),
        _likewise(best, inside, size),
    )


def _conjunctions(attributes: Collection[Attribute]) -> Iterator[frozenset[Attribute]]:
    """None, each, and each two of different kinds."""
    yield frozenset()
    for one in attributes:
        yield frozenset([one])
    for one, other in combinations(attributes, 2):
        if one[0] != other[0]:
            yield frozenset([one, other])


def _in_order(shared: frozenset[Attribute]) -> list[tuple[int, Attribute]]:
    return sorted((KINDS.index(attribute[0]), attribute) for attribute in shared)


def _likewise(
    shared: frozenset[Attribute], inside: Sequence[Member], size: Counter[frozenset[Attribute]]
) -> tuple[Attribute, ...]:
    """Attributes beside those that name a group which all in it have, and nobody else."""
    if not shared:
        return ()
    common = frozenset.intersection(*(one.attributes for one in inside)) - shared
    alone = frozenset(one for one in common if size[frozenset([one])] == len(inside))
    return tuple(attribute for *_, attribute in _in_order(alone))
