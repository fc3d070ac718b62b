"""What makes something really slower: the changes that real_changes.py makes and measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Change:
    """Something that makes figures worse.

    :param name: the label of its sessions.
    :param says: what it is, for the tables.
    :param aimed_at: the figure that it is to make worse, as ``check figure``.
    :param touches: an expression for all those that it can change, likewise.
    :param variables: of the jobs.
    :param flags: of the compilers; empty for the usual ones.
    :param beside: whether another process copies memory (or computes), and in which share of time.
    :param rounds: how many rounds it is measured in; None for all.
    """

    name: str
    says: str
    aimed_at: str = ''
    touches: str = ''
    variables: Mapping[str, str] = field(default_factory=dict)
    flags: str = ''
    beside: tuple[bool, float] | None = None
    rounds: int | None = None


UNCHANGED = Change('unchanged', 'nothing', touches='(?!)')
#: What a change of the collectives can touch, of messages, and of everything.
REDUCTIONS, MESSAGES, ANY = '^Collectives .*allreduce', '^Collectives ', ''
CHANGES = (
    Change(
        'allreduce',
        'another algorithm of `MPI_Allreduce`: reduce, then broadcast',
        'Collectives allreduce_large_time',
        REDUCTIONS,
        {
            'OMPI_MCA_coll_tuned_use_dynamic_rules': '1',
            'OMPI_MCA_coll_tuned_allreduce_algorithm': '2',
        },
    ),
    Change(
        'blas',
        'a BLAS without FMA: `OPENBLAS_CORETYPE=Sandybridge`',
        'Dgemm rate',
        '^Dgemm ',
        {'OPENBLAS_CORETYPE': 'Sandybridge'},
    ),
    Change(
        'flags',
        '`-O1 -fno-tree-vectorize` instead of `-O3` and `-O2`',
        'Stream triad',
        ANY,
        flags='-march=native -O1 -fno-tree-vectorize',
    ),
    Change(
        'eager',
        'an eager limit of 512 B instead of 4 KiB',
        'Collectives allreduce_large_time',
        MESSAGES,
        {'OMPI_MCA_btl_sm_eager_limit': '512'},
    ),
    Change(
        'logging',
        'debug logging left on: `OMPI_MCA_coll_base_verbose=100` and all parameters printed',
        'Collectives allreduce_time',
        MESSAGES,
        {'OMPI_MCA_coll_base_verbose': '100', 'OMPI_MCA_mpi_show_mca_params': 'all'},
    ),
    Change(
        'spin-1', 'a process that computes 1% of the time', 'Dgemm rate', ANY, beside=(False, 0.01)
    ),
    Change(
        'spin-10',
        'a process that computes 10% of the time',
        'Dgemm rate',
        ANY,
        beside=(False, 0.1),
        rounds=1,
    ),
    Change(
        'copy-20',
        'a process that copies memory 20% of the time',
        'Stream triad',
        ANY,
        beside=(True, 0.2),
        rounds=1,
    ),
)
