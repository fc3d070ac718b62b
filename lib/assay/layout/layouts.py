"""The layouts.

========== ================================================================================
layout     ranks of a node
========== ================================================================================
packed     fill the cores of one NUMA domain after the other, each bound to a core
spread     are dealt round the NUMA domains, each bound to a core
one-per-numa  one for each NUMA domain, bound to it
one-per-node  one, free to use the whole node
hybrid     one for each NUMA domain, with a thread for each of its cores, bound to them
mixed      one with a thread for each of half of the cores, and one for each other core; each binds
           itself (:mod:`assay.layout.parts`), as launchers have no words for ranks that differ
========== ================================================================================

To add one, add it here: that places it and verifies it. Each launcher then needs its words for it:
srun in :mod:`assay.layout.launchers`, and each MPI's own launcher in the MPI's file in
:mod:`assay.mpis`.
"""

from __future__ import annotations

from assay.layout.binding import ToCores, ToDomain, ToNothing
from assay.layout.layout import Layout
from assay.layout.order import AnyOrder, Dealt, Filled, OneEach
from assay.layout.placement import DoesNotFitError, Node, Placement


def _as_asked(node: Node, ranks: int | None, cores_per_rank: int) -> Placement:
    ranks = node.cores // cores_per_rank if ranks is None else ranks
    if ranks * cores_per_rank > node.cores:
        raise DoesNotFitError(
            f'{ranks} ranks of {cores_per_rank} core(s) do not fit on the {node.cores} core(s) of '
            f'a node'
        )
    return Placement(ranks, threads=cores_per_rank, cpus=cores_per_rank)


def _one_per_numa(node: Node, ranks: int | None, cores_per_rank: int) -> Placement:
    return Placement(node.numa_domains, threads=1, cpus=node.cores // node.numa_domains)


def _one_per_node(node: Node, ranks: int | None, cores_per_rank: int) -> Placement:
    return Placement(ranks=1, threads=1, cpus=node.cores)


def _hybrid(node: Node, ranks: int | None, cores_per_rank: int) -> Placement:
    cores = node.cores // node.numa_domains
    return Placement(node.numa_domains, threads=cores, cpus=cores)


def _mixed(node: Node, ranks: int | None, cores_per_rank: int) -> Placement:
    if node.cores < 2:
        raise DoesNotFitError('ranks that differ do not fit on the 1 core of a node')
    wide = node.cores // 2
    widths = (wide, *[1] * (node.cores - wide))
    return Placement(len(widths), threads=1, widths=widths)


#: By name.
LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout('packed', _as_asked, ToCores(), Filled()),
        Layout('spread', _as_asked, ToCores(), Dealt()),
        Layout('one-per-numa', _one_per_numa, ToDomain(), OneEach()),
        Layout('one-per-node', _one_per_node, ToNothing(), AnyOrder()),
        Layout('hybrid', _hybrid, ToCores(), OneEach()),
        Layout('mixed', _mixed, ToCores(), AnyOrder()),
    )
}


def layout_of(name: str) -> Layout:
    """A layout by its name.

    :raises ValueError: if there is none.
    """
    if name not in LAYOUTS:
        raise ValueError(f'unknown layout {name!r}: choose from {", ".join(LAYOUTS)}')
    return LAYOUTS[name]
