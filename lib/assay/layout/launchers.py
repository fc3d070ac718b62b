"""The options of launchers for a layout, and the program that they start where ranks differ.

An MPI's own launcher speaks the MPI's words (:mod:`assay.mpis`), srun those here. Launchers bind
all ranks alike, or each in other words of its own. So where ranks differ in threads, cores and
program they bind none, and start a script in place of the program, which knows its place on the
node from the launcher's variable.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from assay.mpis import FAMILIES, Words

SRUN = 'srun'


def is_srun(launcher: str) -> bool:
    """Whether a launcher is srun, by ReFrame's name of it: there is also srunalloc."""
    return launcher.startswith(SRUN)


def _srun(layout: str, ranks: int, threads: int) -> Words:
    options: list[str] = {
        'default': [],
        'packed': ['--distribution=block:block', '--cpu-bind=cores'],
        'spread': ['--distribution=block:cyclic', '--cpu-bind=cores'],
        'one-per-numa': ['--distribution=block:cyclic', '--cpu-bind=ldoms'],
        'one-per-node': ['--cpu-bind=none'],
        'mixed': ['--distribution=block:block', '--cpu-bind=none'],
        'threads': ['--distribution=block:block:block', '--cpu-bind=threads'],
        'cyclic': ['--distribution=cyclic:block', '--cpu-bind=cores'],
        'hybrid': ['--distribution=block:block', '--cpu-bind=cores'],
    }[layout]
    # ReFrame itself gives srun the number of CPUs per task, and then a rank is kept to so many:
    # Placement.cpus must be all those that the layout leaves it.
    return [f'--ntasks-per-node={ranks}', *options], {}


def srun_step(nodes: int, ranks: int, cpus: int) -> list[str]:
    """Further options of srun, to start ranks of so many CPUs on some of the job's nodes."""
    return [f'--nodes={nodes}', f'--ntasks={ranks}', f'--cpus-per-task={cpus}']


#: The words for a layout of ``srun``, and of each MPI family's own launcher: given the layout, and
#: ranks and threads of :class:`assay.layout.layouts.Placement`.
WORDS: dict[str, Callable[[str, int, int], Words]] = {
    SRUN: _srun,
    **{key: family.bind for key, family in FAMILIES.items()},
}


def leave_unbound(words: str, ranks: int) -> Words:
    """Options and variables for ranks on a node that are bound to nothing and may outnumber cores.

    :param words: a key of :data:`WORDS`.
    """
    options, env = WORDS[words]('mixed', ranks, 1)
    more = {SRUN: ['--overcommit'], 'openmpi': ['--oversubscribe']}.get(words, [])
    return [*options, *more], env


# Ranks that find their cores themselves: they differ, or go by network ports ----------------------


#: The script, for bash and taskset.
SOURCE = Path(__file__).with_name('part.sh')

#: Its name in the job's folder.
SCRIPT = 'part'


def add_part_script(folder: Path) -> None:
    """Put the script into a job's folder."""
    shutil.copyfile(SOURCE, folder / SCRIPT)


def command_of_parts(widths: Sequence[int], wide: str, narrow: str, *arguments: str) -> list[str]:
    """The command that the launcher starts in place of a program.

    :param widths: threads of each rank of a node in turn, as its placement has them.
    :param wide: the program of each node's first rank.
    :param narrow: the program of all others.
    :param arguments: of both.
    """
    return [*_part('anywhere', widths), wide, narrow, *arguments]


def words_of_side(
    side: str, carrier: str, ports: Iterable[str], widths: Sequence[int]
) -> list[str]:
    """The words before the program that put ranks on one side of the network ports.

    :param side: a layout that has one.
    :param carrier: of the fabric.
    :param ports: those of the partition; none for those that the node has.
    :param widths: as of :func:`command_of_parts`.
    """
    where = shlex.quote(f'{side}:{carrier}:{",".join(ports)}')
    return [*_part(where, widths), "''"]


def _part(where: str, widths: Sequence[int]) -> list[str]:
    return ['bash', SCRIPT, where, ','.join(map(str, widths))]
