"""A plan in the words of each launcher."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from assay import AssayError
from assay.placing.plan import SeatPlan
from assay.running.program import read_line
from assay.text import as_list

#: How srun deals ranks, after its option -m.
_WAY = re.compile(r'(?:block|cyclic|plane(?:=\d+)?|arbitrary|\*)((?::.*)?)')
#: Options by which a command deals ranks itself.
_DEALS = {
    *('--map-by', '-map-by', '--rankfile', '-rankfile', '-rf', '--rank-by', '-rank-by'),
    '--distribution',
}

#: The word for a program that deals the roles itself.
SPLIT = 'split'


@dataclass(frozen=True)
class Launcher:
    """The file, options and variables by which a launcher places ranks.

    :param content: of its file.
    :param options: that follow the launcher's name, given the file's, rank 0's MPI library, and
        whether seats overlap.
    :param variables: of its environment, given the file's name.
    :param by_node: whether it chooses nodes alone.
    :param starters: the programs that a command for it begins with.
    """

    content: Callable[[SeatPlan], str]
    options: Callable[[str, str, bool], list[str]] = lambda *_: []
    variables: Callable[[str], dict[str, str]] = lambda _: {}
    by_node: bool = False
    starters: tuple[str, ...] = ('srun', 'aprun')


def rankfile(plan: SeatPlan) -> str:
    """Open MPI's: host and cores of each rank, as hwloc counts them.

    :raises AssayError: if the report does not say which cores a rank had of its host.
    """
    if not all(plan.seats.cores):
        rank = plan.seats.cores.index(frozenset())
        raise AssayError(
            f'rank {rank} sat on cores that are none of the job on {plan.seats.hosts[rank]}, as in '
            'a container of its own: a rankfile cannot name them'
        )
    return ''.join(
        f'rank {rank}={plan.seats.hosts[seat]} slot={as_list(plan.seats.cores[seat])}\n'
        for rank, seat in enumerate(plan.seat.tolist())
    )


def hosts(plan: SeatPlan) -> str:
    """The host of each rank, a line each."""
    return ''.join(f'{plan.seats.hosts[seat]}\n' for seat in plan.seat.tolist())


def cray_order(plan: SeatPlan) -> str:
    """Ranks in the order in which Cray MPICH fills seats: node after node."""
    role, host = role_of_each(plan), plan.seats.hosts
    first = {name: host.index(name) for name in {*host}}
    order = sorted(range(len(role)), key=lambda seat: (first[host[seat]], seat))
    return ','.join(str(role[seat]) for seat in order) + '\n'


def split_keys(plan: SeatPlan) -> str:
    """The key of each rank of MPI_COMM_WORLD, by which MPI_Comm_split makes it its role."""
    return ''.join(f'{role}\n' for role in role_of_each(plan))


def role_of_each(plan: SeatPlan) -> list[int]:
    """The rank that is planned for the seat of each rank."""
    return [int(rank) for rank in np.argsort(plan.seat)]


def _rankfile_option(name: str, library: str, overlap: bool) -> list[str]:
    """The option of mpirun for a rankfile, which differs from Open MPI 5 on.

    Open MPI 5 shares no core unless it is told to.
    """
    if re.match(r'Open MPI v[1-4]\.', library):
        return ['--rankfile', name]
    shares = ['--bind-to', ':overload-allowed'] if overlap else []
    return ['--map-by', f'rankfile:file={name}', *shares]


#: By the words of the option that chooses one.
LAUNCHERS: Final = {
    'openmpi': Launcher(
        rankfile, _rankfile_option, starters=('mpirun', 'mpiexec', 'orterun', 'prterun')
    ),
    'slurm': Launcher(
        hosts,
        lambda *_: ['--distribution=arbitrary'],
        lambda name: {'SLURM_HOSTFILE': name},
        by_node=True,
    ),
    'cray': Launcher(
        cray_order,
        variables=lambda name: {
            'MPICH_RANK_REORDER_METHOD': '3',
            'MPICH_RANK_REORDER_FILE': name,
        },
    ),
    SPLIT: Launcher(split_keys),
}


def use_in_words(launcher: str, name: str, library: str, overlap: bool = False) -> str:
    """How the file of a launcher is used."""
    if launcher == SPLIT:
        return f'MPI_Comm_split(MPI_COMM_WORLD, 0, KEY, ...), KEY being line rank + 1 of {name}'
    one = LAUNCHERS[launcher]
    words = [one.starters[0], *one.options(name, library, overlap), '...']
    return ' '.join([*(f'{key}={value}' for key, value in one.variables(name).items()), *words])


def with_plan(
    launcher: str, name: str, library: str, command: Sequence[str], overlap: bool = False
) -> tuple[dict[str, str], list[str]]:
    """The variables and words of a command that starts a program as planned.

    Options by which the command deals the ranks itself are left out: they would win. How srun deals
    the cores within a node stays.

    :raises AssayError: if the command does not begin with the launcher, or names no program.
    """
    one = LAUNCHERS[launcher]
    if Path(command[0]).name.partition('.')[0] not in one.starters:
        raise AssayError(
            f'{command[0]}: a command that is started as planned begins with the launcher itself, '
            f'{" or ".join(one.starters)}'
        )
    program = min(read_line(command).programs)
    own, within, words = False, '', []
    for word, after in pairwise([*command[1:program], '']):
        name_of, _, value = word.partition('=')
        joined = value if name_of in _DEALS else word[2:] if word.startswith('-m') else ''
        if own:
            own = False
        elif word in _DEALS or (word == '-m' and _WAY.fullmatch(after)):
            own, within = True, _within(after) or within
        elif name_of in _DEALS or _WAY.fullmatch(joined):
            within = _within(joined) or within
        else:
            words.append(word)
    # How the command binds ranks stays.
    binds = any(re.match('--?bind-to(=|$)', word) for word in words)
    options = one.options(name, library, overlap and not binds)
    if options and launcher == 'slurm':
        options = [*options[:-1], options[-1] + within]
    return one.variables(name), [command[0], *options, *words, *command[program:]]


def _within(way: str) -> str:
    """How srun deals cores within a node, behind the colon of a way to deal ranks."""
    found = _WAY.fullmatch(way)
    return found.group(1) if found else ''
