"""Scales: how many nodes the job of a case has.

A partition offers a scale by the feature ``scale_<name>``: ``scale_3_nodes`` for any number, and
``scale_half`` and ``scale_all`` of the nodes that its extras give (``'extras': {'nodes': 64}``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

#: What a feature that offers a scale begins with.
PREFIX = 'scale_'

#: Nodes of the scales that a new system's file offers, as far as its partitions have them.
SCALES = {f'{n}_node' if n == 1 else f'{n}_nodes': n for n in (1, 2, 4, 8, 16)}

#: Scales that are a part of a partition: by what its number of nodes is divided.
PARTS = {'half': 2, 'all': 1}

_NUMBERED = re.compile(r'(?:(1)_node|([2-9]|[1-9]\d+)_nodes)', re.ASCII)


def number_in(scale: str) -> int | None:
    """The nodes of a scale that is the same on every partition; None for any other text."""
    found = _NUMBERED.fullmatch(scale)
    return int(found[1] or found[2]) if found else None


def is_scale(text: str) -> bool:
    """Whether this is the name of a scale."""
    return text in PARTS or number_in(text) is not None


def is_at_most(scale: str, nodes: int) -> bool:
    """Whether a scale has at most so many nodes on every partition."""
    number = number_in(scale)
    return number is not None and number <= nodes


def nodes_of_scale(scale: str, extras: Mapping[str, Any]) -> int:
    """The nodes of a scale on a partition.

    :param extras: of the partition.
    :raises ValueError: if the partition does not have the scale, with a sentence that says why.
    """
    number = number_in(scale)
    if number is not None:
        return number
    nodes = extras.get('nodes')
    if type(nodes) is not int or nodes < 2 * PARTS[scale]:
        told = 'none' if nodes is None else repr(nodes)
        raise ValueError(
            f"needs the number of the partition's nodes in its extras, 'extras': {{'nodes': 64}}, "
            f'at least {2 * PARTS[scale]}, and there is {told}'
        )
    return nodes // PARTS[scale]


def scales_in(features: Iterable[str]) -> list[str]:
    """The scales that features offer, the smallest first."""
    names = {one.removeprefix(PREFIX) for one in features if one.startswith(PREFIX)}
    numbered = sorted((number, name) for name in names if (number := number_in(name)))
    return [*(name for _, name in numbered), *(name for name in PARTS if name in names)]
