"""Sizes of a problem: how its working set compares with a node's caches and memory.

======= ===============================================================================
size    working set of each node
======= ===============================================================================
starved 1/16 of the last-level caches: what remains is the cost of loops and messages
cache   half of the last-level caches
memory  four times the last-level caches, and at least a tenth of the memory
largest 80% of the memory
======= ===============================================================================
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SIZES = ('starved', 'cache', 'memory', 'largest')

#: Of the memory, what a problem may take: the rest is for the system, the MPI and its buffers.
LARGEST_SHARE = 0.8


@dataclass(frozen=True)
class NodeMemory:
    """The caches and the memory of a node.

    :param caches: bytes of all last-level caches together.
    :param total: bytes of memory.
    """

    caches: float
    total: float


def working_set(size: str, memory: NodeMemory) -> float:
    """Bytes of a node's working set.

    :param size: one of :data:`SIZES`.
    :raises ValueError: if the size is unknown.
    """
    match size:
        case 'starved':
            return memory.caches / 16
        case 'cache':
            return memory.caches / 2
        case 'memory':
            return max(4 * memory.caches, memory.total / 10)
        case 'largest':
            return LARGEST_SHARE * memory.total
    raise ValueError(f'unknown size {size!r}: choose from {", ".join(SIZES)}')


def last_level_caches(topology: Mapping[str, Any]) -> float:
    """Bytes of a node's last-level caches together; 64 MiB where nobody says.

    :param topology: as ReFrame describes a processor's.
    """
    caches = [cache for cache in topology.get('caches', []) if cache['type'].startswith('L')]
    if not caches:
        return 64.0 * (1 << 20)
    last = max(cache['type'] for cache in caches)
    # Those of different kinds of cores differ.
    return float(sum(c['size'] * len(c['cpusets']) for c in caches if c['type'] == last))


def process_grid(ranks: int) -> tuple[int, int, int]:
    """Ranks along x, y and z with the smallest faces between them.

    Most are in z, where faces lie together in memory.
    """
    divisors = [d for d in range(1, ranks + 1) if ranks % d == 0]
    grids = (
        (x, y, ranks // (x * y))
        for x, y in itertools.product(divisors, repeat=2)
        if ranks % (x * y) == 0
    )
    return min((grid for grid in grids if grid[0] <= grid[1] <= grid[2]), key=sum)
