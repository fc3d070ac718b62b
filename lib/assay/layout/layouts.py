"""Layouts: where ranks and threads sit, in the words of each launcher.

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
"""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.mpis import FAMILIES, Words

LAYOUTS = ('packed', 'spread', 'one-per-numa', 'one-per-node', 'hybrid', 'mixed')


class DoesNotFitError(ValueError):
    """A node has too few cores for the ranks."""


@dataclass(frozen=True)
class Node:
    """What a layout needs to know of a node.

    :param cores: physical cores.
    :param numa_domains: NUMA domains.
    """

    cores: int
    numa_domains: int


@dataclass(frozen=True)
class Placement:
    """Ranks and threads of a node, and how the launcher is told.

    :param ranks: ranks on each node.
    :param threads: threads (and cores) of each rank.
    :param options: options for the launcher.
    :param env: environment variables for the job.
    :param widths: threads (and cores) of each rank of a node in turn, where they differ;
        ``threads`` is the least of them.
    :param cpus: CPUs that the scheduler must give each rank, which may use more than it has threads
        for; None where they differ.
    """

    ranks: int
    threads: int
    options: list[str]
    env: dict[str, str] = field(default_factory=dict)
    widths: tuple[int, ...] = ()
    cpus: int | None = None


def place(
    layout: str, launcher: str, node: Node, ranks: int | None = None, cores_per_rank: int = 1
) -> Placement:
    """Translate a layout for a launcher.

    :param layout: one of :data:`LAYOUTS`.
    :param launcher: ``srun``, or the MPI family whose own launcher starts the job.
    :param node: the topology of the nodes.
    :param ranks: ranks on each node for ``packed`` and ``spread``; one for each core if None. The
        other layouts set their number themselves.
    :param cores_per_rank: cores that ``packed`` and ``spread`` bind a rank to.
    :raises DoesNotFitError: if the node has too few cores.
    :raises ValueError: if the layout or the launcher is unknown.
    """
    if layout not in LAYOUTS:
        raise ValueError(f'unknown layout {layout!r}: choose from {", ".join(LAYOUTS)}')
    if launcher not in _LAUNCHERS:
        raise ValueError(f'no layouts for launcher {launcher!r}: only {", ".join(_LAUNCHERS)}')
    threads, cpus, widths = 1, None, ()
    if layout in ('packed', 'spread'):
        threads = cpus = cores_per_rank
        ranks = node.cores // threads if ranks is None else ranks
        if ranks * threads > node.cores:
            raise DoesNotFitError(
                f'{ranks} ranks of {threads} core(s) do not fit on the {node.cores} core(s) of a '
                f'node'
            )
    elif layout == 'one-per-node':
        ranks, cpus = 1, node.cores
    elif layout == 'mixed':
        if node.cores < 2:
            raise DoesNotFitError('ranks that differ do not fit on the 1 core of a node')
        wide = node.cores // 2
        widths = (wide, *[1] * (node.cores - wide))
        ranks = len(widths)
    else:
        ranks, cpus = node.numa_domains, node.cores // node.numa_domains
        if layout == 'hybrid':
            threads = cpus
    env = {'OMP_NUM_THREADS': str(threads)}
    if threads > 1:
        env |= {'OMP_PLACES': 'cores', 'OMP_PROC_BIND': 'close'}
    options, launcher_env = _LAUNCHERS[launcher](layout, ranks, threads)
    return Placement(ranks, threads, options, env | launcher_env, widths, cpus)


def _srun(layout: str, ranks: int, threads: int) -> Words:
    options = {
        'packed': ['--distribution=block:block', '--cpu-bind=cores'],
        'spread': ['--distribution=block:cyclic', '--cpu-bind=cores'],
        'one-per-numa': ['--distribution=block:cyclic', '--cpu-bind=ldoms'],
        'one-per-node': ['--cpu-bind=none'],
        'mixed': ['--distribution=block:block', '--cpu-bind=none'],
        'hybrid': ['--distribution=block:block', '--cpu-bind=cores'],
    }[layout]
    # ReFrame itself gives srun the number of CPUs per task, and then a rank is kept to so many:
    # Placement.cpus must be all those that the layout leaves it.
    return [f'--ntasks-per-node={ranks}', *options], {}


_LAUNCHERS = {'srun': _srun, **{key: family.bind for key, family in FAMILIES.items()}}
