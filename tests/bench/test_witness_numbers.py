"""The witness's counts, bytes and partners, against programs whose calls are counted by hand."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from assay import paths
from assay.machine.mpi import Mpi
from counted import Expected, recorded
from documents import DOCS, code
from families import on_one_mpi
from quiet import measured
from running import POLLING, Run

RANKS = range(4)
ROOM = 4 * 64  # bytes that most receives post


@pytest.fixture
def expected() -> Expected:
    return Expected()


@pytest.fixture
def counted(witnessed: Callable[..., Run], compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a part of a program, and compares it with what is expected of it; returns the report.

    ``standard``: the version of MPI that the part needs.
    """

    def counted(
        program: str, part: str, expected: Expected, ranks: int = 4, standard: float = 3
    ) -> dict[str, Any]:
        run = witnessed(compiled(program), part, ranks=ranks)
        processes = recorded(run)
        if float(run.report['mpi']['standard']) < standard:
            pytest.skip(f'needs MPI {standard}: forms of calls that end in _c')
        expected.count(run.out)
        assert processes == expected.processes()
        return run.report

    return counted


def after(rank: int) -> int:
    return (rank + 1) % 4


def before(rank: int) -> int:
    return (rank + 3) % 4


# What communicates nothing, or is counted when it is started.
LOCAL = re.compile(
    r'T_.*|(Type|Info|Group|Op|Errhandler|Error|Add|Status|Session|Attr|Keyval|Grequest|Cart'
    r'|Cartdim|Graph|Graphdims|Topo|Dims|Dist_graph_neighbors)_?.*|Get_(address|count|elements.*'
    r'|library_version|processor_name|version|hw_resource_info)|.*_(init|attach|errhandler|attr'
    r'|keyval|info|name|c2f|f2c|f2f|c2f08|f082c|f082f|f2f08|toint|fromint|attach_buffer|get_group'
    r'|get_amode|get_position.*|get_size|get_view|get_byte_offset|get_type_extent|get_atomicity'
    r'|set_atomicity|detach|sync|shared_query|iflush|iflush_buffer)|Comm_(compare|group|rank|size'
    r'|remote_group|remote_size|test_inter|get_parent|failure_.*|revoke|shrink|agree|iagree'
    r'|ishrink|is_revoked|get_failed|ack_failed)|Request_free|Test_cancelled|Cancel|Pcontrol|Pack.*'
    r'|Unpack.*|Address|Alloc_mem|Free_mem|Reduce_local|Abort|Init.*|Finalized?|Initialized'
    r'|Is_thread_main|Query_thread|Wtick|Wtime|Register_datarep.*|(Open|Close)_port|Aint_.*|[A-Z_]+|Abi_.*|.*fn'
    r'|(Comm|Win)_call_errhandler|.*_(copy|delete)_.*|File_get_.*|Remove_error_.*'
)


def test_all_calls_that_communicate_are_counted(mpi: Mpi) -> None:
    command = [mpi.cc, '-E', '-include', 'mpi.h', '-x', 'c', '/dev/null']
    header = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = {name.removesuffix('_c') for name in re.findall(r'\bPMPI_(\w+)(?=\s*\()', header)}
    declared = {name for name in names if not LOCAL.fullmatch(name)}
    calls = (paths.SOURCES / 'witness/calls.h').read_text()
    assert len(declared) > 100
    assert declared - set(re.findall(r'X\((\w+)\)', calls)) == set()


# Point-to-point


def test_blocking_sends(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Send', after(rank), 4 * 16)
        expected.send(rank, 'MPI_Ssend', after(rank), 4 * 10)
        expected.send(rank, 'MPI_Bsend', after(rank), 4 * 3)
        expected.send(rank, 'MPI_Rsend', after(rank), 4)
    expected.call(RANKS, 'MPI_Recv', ROOM, times=3)
    expected.call(RANKS, 'MPI_Irecv', ROOM)
    expected.plain(RANKS, Barrier=1, Wait=1)
    counted('messages', 'blocking', expected)


def test_nonblocking_sends(counted, expected):
    for rank in RANKS:
        for other in set(RANKS) - {rank}:
            for kind, name in enumerate(('Isend', 'Ibsend', 'Issend', 'Irsend')):
                expected.send(rank, f'MPI_{name}', other, 4 * 2**kind)
    expected.call(RANKS, 'MPI_Irecv', 4 * 8, times=4 * 3)
    expected.plain(RANKS, Barrier=1, Waitall=1)
    counted('messages', 'nonblocking', expected)


def test_ways_to_complete(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Isend', after(rank), 4 * 5, times=8)
    expected.call(RANKS, 'MPI_Irecv', 4 * 5, times=8)
    expected.plain(RANKS, Wait=3, Waitall=1, Waitany=3)
    counted('messages', 'complete', expected)


def test_wildcards(counted, expected):
    for rank in (1, 2, 3):
        expected.send(rank, 'MPI_Send', 0, 4, times=2 * 40)
    expected.call(0, 'MPI_Recv', 4 * 2, times=3 * 40)
    expected.call(0, 'MPI_Irecv', 4, times=3 * 40)
    expected.call(0, 'MPI_Waitall')
    expected.call(RANKS, 'MPI_Barrier')
    counted('messages', 'wildcards', expected)


def test_exchanges(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Sendrecv', after(rank), 4 * 7)
        expected.send(rank, 'MPI_Sendrecv', after(rank), 4 * 2, times=2)
        if rank < 3:
            expected.put(rank, 'MPI_Sendrecv', after(rank), 4 * 3)
        expected.send(rank, 'MPI_Sendrecv_replace', before(rank), 4 * 9)
    expected.plain(RANKS, Sendrecv=1, Sendrecv_replace=1)
    counted('messages', 'exchange', expected)


def test_probes(counted, expected):
    others = (1, 2, 3)
    for other in others:
        for tag in range(6):
            expected.send(0, 'MPI_Send', other, 4 * (10 + tag))
    expected.call(others, 'MPI_Probe', times=2)
    expected.call(others, 'MPI_Mprobe', times=2)
    expected.call(others, 'MPI_Imrecv', ROOM)
    expected.call(others, 'MPI_Wait')
    for bytes in (4 * 12, ROOM):
        expected.call(others, 'MPI_Mrecv', bytes)
    for bytes in (4 * 10, ROOM, 4 * 15):
        expected.call(others, 'MPI_Recv', bytes)
    counted('messages', 'probes', expected)


def test_persistent_requests(counted, expected):
    for rank in RANKS:
        for bytes in (4, 8, 16):
            expected.put(rank, 'MPI_Startall', after(rank), bytes, times=5)
        expected.send(rank, 'MPI_Start', after(rank), 4, times=2)
        expected.send(rank, 'MPI_Start', after(rank), 4 * 8)
    # What they start is counted, and receives send nothing.
    expected.plain(RANKS, Startall=5, Start=3, Waitall=5 + 1 + 1, Wait=4, Barrier=1)
    counted('messages', 'persistent', expected)


def test_messages_to_nobody_to_itself_and_of_nothing(counted, expected):
    expected.plain(
        RANKS, Send=1, Recv=1, Isend=1, Irecv=1, Probe=1, Mprobe=1, Improbe=1, Mrecv=1, Imrecv=1
    )
    for rank in RANKS:
        expected.send(rank, 'MPI_Send', rank, 4 * 6)
        expected.send(rank, 'MPI_Send', rank, 4 * 3)
        expected.send(rank, 'MPI_Sendrecv', after(rank), 0)
        expected.send(rank, 'MPI_Isend', after(rank), 0)
    for bytes in (4 * 6, 4 * 3, 0):
        expected.call(RANKS, 'MPI_Irecv', bytes)
    expected.plain(RANKS, Waitall=2, Wait=3)
    counted('messages', 'special', expected)


def test_datatypes(counted, expected):
    for rank in RANKS:
        for bytes in (2 * 24, 9, *(2 * 4 * length for length in range(1, 21))):
            expected.send(rank, 'MPI_Sendrecv', after(rank), bytes)
    counted('messages', 'datatypes', expected)


def test_large_counts_of_messages(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Isend', after(rank), 4 * 8)
        expected.send(rank, 'MPI_Send', after(rank), 4 * 7)
        expected.send(rank, 'MPI_Issend', after(rank), 4 * 6)
        expected.send(rank, 'MPI_Sendrecv', after(rank), 4 * 5)
        expected.send(rank, 'MPI_Sendrecv_replace', after(rank), 4 * 4)
        expected.send(rank, 'MPI_Isend', after(rank), 4 * 3)
        expected.put(rank, 'MPI_Startall', after(rank), 4 * 2)
    expected.call(RANKS, 'MPI_Irecv', 4 * 8, times=2)
    expected.call(RANKS, 'MPI_Recv', 4 * 8)
    expected.call(RANKS, 'MPI_Mprobe')
    expected.call(RANKS, 'MPI_Mrecv', 4 * 8)
    expected.plain(RANKS, Startall=1, Waitall=2, Wait=3)
    counted('messages', 'large', expected, standard=4)


def test_requests_out_of_order_freed_and_cancelled(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Isend', after(rank), 4, times=2 * 50)
    expected.call(RANKS, 'MPI_Irecv', 4, times=2 * 50 + 1)
    expected.plain(RANKS, Wait=2 * 50 + 1, Waitall=1)
    counted('messages', 'requests', expected)


def test_requests_outlive_their_communicator(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Isend', after(rank), 4 * 4, times=3)
        expected.put(rank, 'MPI_Startall', after(rank), 4 * 2, times=2 * 3)
    expected.call(RANKS, 'MPI_Irecv', 4 * 4, times=3)
    expected.plain(
        RANKS, Startall=2 * 3, Waitall=3 * 3, Comm_dup=3, Comm_split=3 * 3, Comm_free=4 * 3
    )
    counted('messages', 'orphans', expected)


# MPI 4, and MPI-IO


def test_exchanges_that_are_requests(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Isendrecv', after(rank), 4 * 4, times=2)
        expected.send(rank, 'MPI_Isendrecv_replace', after(rank), 4)
    expected.call(RANKS, 'MPI_Wait', times=3)
    counted('later', 'exchange', expected, standard=4)


def test_partitioned_messages(counted, expected):
    for rank in RANKS:
        expected.put(rank, 'MPI_Startall', after(rank), 4 * 8, times=3)
    expected.plain(RANKS, Startall=3, Pready=3, Pready_range=3, Waitall=3)
    counted('later', 'partitioned', expected, standard=4)


def test_persistent_collectives(counted, expected):
    expected.call(RANKS, 'MPI_Startall', 4 * 8, times=2)
    expected.call(RANKS, 'MPI_Waitall', times=2)
    report = counted('later', 'persistent', expected, standard=4)
    # A barrier sends no data.
    assert [one['collectives'] for one in report['processes']] == [
        [{'ranks': others, 'messages': 2, 'bytes': 2 * 4 * 8, 'sizes': {'32': 2}}]
        for others in ('1-3', '0,2-3', '0-1,3', '0-2')
    ]


def test_persistent_collectives_of_neighbours(counted, expected):
    expected.plain(RANKS, Cart_create=1, Comm_free=1, Start=2, Wait=2)
    for rank in RANKS:
        for to in (before(rank), after(rank)):
            expected.put(rank, 'MPI_Start', to, 4 * 3, times=2, kind='neighbours')
    counted('later', 'neighbours', expected, standard=4)


def test_files(counted, expected):
    for name in ('open', 'sync', 'seek', 'read_all_end', 'close'):
        expected.call(RANKS, f'MPI_File_{name}')
    for name in ('write_at_all', 'iread_at', 'read_all_begin'):
        expected.call(RANKS, f'MPI_File_{name}', 4 * 4)
    expected.call(RANKS, 'MPI_Wait')
    counted('later', 'files', expected)


# Communicators


def around(expected: Expected, order: list[int], count: int) -> None:
    """Messages in the program: each rank's of ``count`` integers to the next one."""
    for rank, to in zip(order, order[1:] + order[:1], strict=True):
        expected.send(rank, 'MPI_Sendrecv', to, 4 * count)


def test_communicators_split_and_duplicated(counted, expected):
    around(expected, [3, 2, 1, 0], 1)
    around(expected, [0, 2], 2)
    around(expected, [1, 3], 2)
    around(expected, [3, 2, 1, 0], 3)
    around(expected, [0, 1, 2, 3], 4)
    around(expected, [2], 5)
    around(expected, [3], 5)
    around(expected, [0, 1, 2, 3], 6)
    around(expected, [3, 2, 1, 0], 7)
    expected.plain(RANKS, Comm_dup=1, Comm_dup_with_info=1, Comm_split_type=1)
    expected.plain(RANKS, Comm_disconnect=1, Comm_split=3, Comm_free=4)
    expected.call((2, 3), 'MPI_Comm_free')
    counted('communicators', 'split', expected)


def test_communicators_from_groups(counted, expected, mpi):
    members = [3, 0, 1]
    around(expected, members, 9)
    expected.call(RANKS, 'MPI_Comm_create')
    expected.call(members, 'MPI_Comm_free')
    if mpi.family != 'mpich':  # which crashes in it
        around(expected, members, 10)
        expected.call(members, 'MPI_Comm_create_group')
        expected.call(members, 'MPI_Comm_free')
    counted('communicators', 'groups', expected)


def test_intercommunicators(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Sendrecv', 3 - rank, 4 * 4)
        expected.send(rank, 'MPI_Sendrecv', (rank + 2) % 4, 4 * 5)
    around(expected, [2, 3, 0, 1], 6)
    expected.call(RANKS, 'MPI_Allreduce', 4)
    expected.call(RANKS, 'MPI_Barrier')
    expected.call(RANKS, 'MPI_Allgather', 4)
    expected.call(RANKS, 'MPI_Alltoall', 2 * 4 * 2)
    # Rank 1 is the root of 2 and 3, and 0 has no part in it.
    others, leaves = (0, 2, 3), (2, 3)
    expected.call(1, 'MPI_Bcast', 4 * 8)
    expected.call(others, 'MPI_Bcast')
    expected.call(1, 'MPI_Scatter', 2 * 4 * 5)
    expected.call(others, 'MPI_Scatter')
    for name, bytes in (('MPI_Reduce', 4), ('MPI_Gather', 4 * 3)):
        expected.call(leaves, name, bytes)
        expected.call((0, 1), name)
    expected.plain(
        RANKS, Comm_split=1, Intercomm_create=1, Comm_dup=1, Intercomm_merge=1, Comm_free=4
    )
    counted('communicators', 'inter', expected)


def test_grids(counted, expected, mpi):
    """Ranks 0 1 over 2 3: rows are rings, columns are lines."""
    for rank in RANKS:
        across, down = rank ^ 1, rank ^ 2
        for name, far, near in (
            ('MPI_Neighbor_allgather', 4 * 2, 4 * 2),
            ('MPI_Neighbor_alltoall', 4 * 3, 4 * 3),
            ('MPI_Neighbor_alltoallv', 4 * 2, 4 * 3),
            ('MPI_Ineighbor_alltoallw', 2 * 2, 4 * 3),
            ('MPI_Ineighbor_allgather', 4, 4),
        ):
            expected.call(rank, name)
            expected.put(rank, name, down, far)
            expected.put(rank, name, across, near, times=2)
        expected.call(rank, 'MPI_Neighbor_allgather')
        expected.put(rank, 'MPI_Neighbor_allgather', across, 4 * 4, times=2)
        expected.send(rank, 'MPI_Sendrecv', across, 4 * 11)
    # In a point there are no neighbours.
    points = (0,) if mpi.family != 'openmpi' else RANKS
    expected.call(points, 'MPI_Neighbor_allgather')
    expected.call(points, 'MPI_Comm_free')
    expected.plain(RANKS, Cart_create=1, Cart_sub=2, Wait=2, Comm_free=2)
    counted('communicators', 'grid', expected)


def test_graphs(counted, expected):
    for rank, others in enumerate(((1, 2, 3), (0, 2), (0, 1, 3), (0, 2))):
        for other in others:
            expected.put(rank, 'MPI_Neighbor_allgather', other, 4 * 3)
            expected.put(rank, 'MPI_Ineighbor_alltoall', other, 4)
    expected.plain(
        RANKS, Neighbor_allgather=1, Ineighbor_alltoall=1, Wait=1, Graph_create=1, Comm_free=1
    )
    counted('communicators', 'graph', expected)


def test_distributed_graphs(counted, expected):
    """The first of reversed ranks sends to all of them; rank 3 of the world."""
    for to in RANKS:
        for name in ('Neighbor_allgather', 'Neighbor_allgatherv', 'Ineighbor_allgatherv'):
            expected.put(3, f'MPI_{name}', to, 4 * 2)
    for count, to in enumerate((0, 2, 1, 3), start=1):
        for name in ('Neighbor_alltoallv', 'Ineighbor_alltoallv', 'Neighbor_alltoallw'):
            expected.put(3, f'MPI_{name}', to, 4 * count)
    for name in (
        *('Neighbor_allgather', 'Neighbor_allgatherv', 'Ineighbor_allgatherv'),
        *('Neighbor_alltoallv', 'Ineighbor_alltoallv', 'Neighbor_alltoallw'),
        *('Comm_split', 'Dist_graph_create', 'Dist_graph_create_adjacent'),
    ):
        expected.call(RANKS, f'MPI_{name}')
    expected.plain(RANKS, Wait=2, Comm_free=3)
    counted('communicators', 'star', expected)


def made_and_freed(times: int) -> Expected:
    """Communicators of 2 ranks: all send to rank 0 and rank 1 in turn."""
    expected = Expected(ranks=2)
    for rank in range(2):
        for to in range(2):
            expected.send(rank, 'MPI_Isend', to, 4, times=times // 2)
            expected.call(rank, 'MPI_Recv', 4, times=times // 2)
    for name in ('Comm_split', 'Comm_free', 'Wait'):
        expected.call(range(2), f'MPI_{name}', times=times)
    return expected


def test_communicators_made_and_freed_again_and_again(counted):
    counted('communicators', 'many', made_and_freed(300), ranks=2)


def test_communicators_that_are_used_while_they_are_freed(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Sendrecv', after(rank), 4 * 3, times=3)
        expected.send(rank, 'MPI_Sendrecv', rank, 4, times=3)
    expected.plain(RANKS, Comm_dup=3, Comm_idup=3, Wait=3, Comm_free=6)
    counted('communicators', 'callbacks', expected)


def test_freed_communicators_take_no_memory(witnessed, compiled):
    """Without the logs of the section profile, which have bounds of their own."""
    env = {'ASSAY_WITNESS': 'matrix'}
    few, many = (
        witnessed(compiled('communicators'), part, ranks=2, env=env).report['processes']
        for part in ('few', 'many')
    )
    assert [rank['calls']['MPI_Comm_split']['count'] for rank in few + many] == [30, 30, 300, 300]
    for before, afterwards in zip(few, many, strict=True):
        # Some that are gone may be there, but not 270.
        assert afterwards['state_bytes'] < before['state_bytes'] + 270 * 64


# Collectives


def test_collectives_with_a_root(counted, expected):
    """Rank 2 is the root; blocks are of 1, 2, 3 and 4 integers where they differ."""
    others = (0, 1, 3)
    own = {rank: 4 * (rank + 1) for rank in RANKS}
    of_others = sum(own[rank] for rank in others)
    for name, bytes in (
        ('Bcast', 4 * 10),
        ('Ibcast', 4 * 3),
        ('Scatter', 3 * 4 * 4),
        ('Scatter', 3 * 4 * 4),
        ('Scatterv', of_others),
        ('Iscatter', 3 * 4),
        ('Iscatterv', of_others),
    ):
        expected.call(2, f'MPI_{name}', bytes)
        expected.call(others, f'MPI_{name}')
    for name, bytes in (
        ('Gather', 4 * 2),
        ('Gather', 4 * 2),
        ('Igather', 4 * 5),
        ('Reduce', 4 * 6),
        ('Reduce', 4 * 7),
        ('Ireduce', 4 * 2),
    ):
        expected.call(2, f'MPI_{name}')
        expected.call(others, f'MPI_{name}', bytes)
    for name in ('Gatherv', 'Igatherv'):
        expected.call(2, f'MPI_{name}')
        for rank in others:
            expected.call(rank, f'MPI_{name}', own[rank])
    expected.call(RANKS, 'MPI_Wait', times=6)
    counted('collectives', 'rooted', expected)


def test_collectives_without_a_root(counted, expected):
    """To rank i go blocks of i + 1 elements where they differ."""
    width = (4, 1, 2, 4)  # bytes of an element of MPI_Alltoallw for each rank
    for rank in RANKS:
        others = set(RANKS) - {rank}
        blocks = 4 * sum(other + 1 for other in others)
        for name, bytes in (
            ('Barrier', 0),
            ('Allgather', 4 * 3),
            ('Allgather', 4 * 3),
            ('Allgatherv', 4 * (rank + 1)),
            ('Allgatherv', 4 * (rank + 1)),
            ('Alltoall', 3 * 4 * 5),
            ('Alltoall', 3 * 4 * 5),
            ('Alltoallv', blocks),
            ('Alltoallv', 3 * 4 * 2),
            ('Alltoallw', sum(width[other] * (other + 1) for other in others)),
            ('Alltoallw', 3 * 4 * 2),
            ('Allreduce', 4 * 10),
            ('Allreduce', 8),
            ('Reduce_scatter', blocks),
            ('Reduce_scatter_block', 3 * 4 * 2),
            ('Scan', 4 * 3 if rank < 3 else 0),
            ('Exscan', 4 * 4 if rank < 3 else 0),
        ):
            expected.call(rank, f'MPI_{name}', bytes)
    counted('collectives', 'unrooted', expected)


def test_nonblocking_collectives(counted, expected):
    for rank in RANKS:
        blocks = 4 * sum(other + 1 for other in RANKS if other != rank)
        for name, bytes in (
            ('Ibarrier', 0),
            ('Iallgather', 4 * 3),
            ('Iallgatherv', 4 * (rank + 1)),
            ('Ialltoall', 3 * 4 * 5),
            ('Ialltoallv', blocks),
            ('Ialltoallw', blocks),
            ('Iallreduce', 4 * 10),
            ('Ireduce_scatter', blocks),
            ('Ireduce_scatter_block', 3 * 4 * 2),
            ('Iscan', 4 * 3 if rank < 3 else 0),
            ('Iexscan', 4 * 4 if rank < 3 else 0),
            ('Ibcast', 4 * 2 if rank == 3 else 0),
            ('Waitall', 0),
        ):
            expected.call(rank, f'MPI_{name}', bytes)
    counted('collectives', 'nonblocking', expected)


def test_collectives_of_one_rank_send_nothing(counted, expected):
    expected.plain(RANKS, Bcast=1, Allreduce=1, Gather=1, Alltoall=1, Barrier=1)
    counted('collectives', 'alone', expected)


def test_collectives_in_pairs(counted, expected):
    """Of 3 0 and of 2 1: the first is the root of the broadcast, the second that of the scatter."""
    expected.call(RANKS, 'MPI_Allreduce', 4 * 8)
    expected.call((2, 3), 'MPI_Bcast', 4 * 8)
    expected.call((0, 1), 'MPI_Bcast')
    expected.call((0, 1), 'MPI_Scatter', 4 * 3)
    expected.call((2, 3), 'MPI_Scatter')
    expected.plain(RANKS, Comm_split=1, Comm_free=1)
    counted('collectives', 'pairs', expected)


def test_large_counts_of_collectives(counted, expected):
    for rank in RANKS:
        blocks = 4 * sum(other + 1 for other in RANKS if other != rank)
        for name, bytes in (
            ('Bcast', 4 * 5 if rank == 1 else 0),
            ('Allgatherv', 4 * (rank + 1)),
            ('Alltoallv', blocks),
            ('Scatterv', blocks if rank == 0 else 0),
            ('Reduce_scatter', blocks),
            ('Iallreduce', 4 * 6),
            ('Wait', 0),
        ):
            expected.call(rank, f'MPI_{name}', bytes)
    counted('collectives', 'large', expected, standard=4)


# One-sided


def windows(expected: Expected, calls: str) -> None:
    """Calls of all ranks that carry nothing, each once."""
    for name in calls.split():
        expected.call(RANKS, f'MPI_Win_{name}')


def test_one_sided_with_fences(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Put', after(rank), 4 * 5)
        expected.call(rank, 'MPI_Put')  # to nobody
        expected.send(rank, 'MPI_Put', after(rank), 0)
        expected.send(rank, 'MPI_Put', rank, 4 * 2)
        expected.send(rank, 'MPI_Accumulate', 0, 4 * 4)
    expected.call(RANKS, 'MPI_Get', 4 * 3)
    expected.call(RANKS, 'MPI_Get')
    windows(expected, 'create fence fence fence fence fence free')
    counted('one_sided', 'fence', expected)


def test_one_sided_with_locks(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Rput', after(rank), 4 * 6)
        expected.send(rank, 'MPI_Get_accumulate', after(rank), 4 * 2)
        expected.send(rank, 'MPI_Fetch_and_op', 3, 4)
        expected.send(rank, 'MPI_Compare_and_swap', after(rank), 4)
        expected.send(rank, 'MPI_Raccumulate', after(rank), 4 * 3)
        expected.send(rank, 'MPI_Rget_accumulate', after(rank), 4)
    # With MPI_NO_OP nothing leaves the rank.
    expected.plain(RANKS, Get_accumulate=1, Fetch_and_op=1)
    expected.call(RANKS, 'MPI_Rget', 4 * 6)
    expected.plain(RANKS, Wait=4, Barrier=1)
    windows(expected, 'create lock flush flush_local unlock lock_all flush_all flush_local_all')
    windows(expected, 'unlock_all lock unlock free')
    counted('one_sided', 'lock', expected)


def test_one_sided_with_posts(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Put', after(rank), 4 * 7)
        expected.send(rank, 'MPI_Put', after(rank), 4 * 8)
    windows(expected, 'create post start complete wait post start complete free')
    counted('one_sided', 'post', expected)


def test_windows_outlive_their_communicator(counted, expected, mpi):
    if mpi.family == 'intelmpi':
        pytest.skip('Intel MPI itself crashes when a communicator is freed before its window')
    for rank in RANKS:
        expected.send(rank, 'MPI_Put', after(rank), 4 * 3, times=3)
        expected.send(rank, 'MPI_Put', before(rank), 4, times=3)
    expected.plain(RANKS, Comm_split=2 * 3, Comm_free=2 * 3)
    windows(expected, 3 * 'create allocate fence fence free fence fence free ')
    counted('one_sided', 'orphan', expected)


def test_other_windows(counted, expected):
    for rank in RANKS:
        expected.send(rank, 'MPI_Put', after(rank), 4 * 8)
        expected.send(rank, 'MPI_Put', after(rank), 4 * 9)
    expected.call(RANKS, 'MPI_Allgather', 8)
    windows(expected, 'create free allocate_shared fence fence free')
    windows(expected, 'create_dynamic fence fence free')
    counted('one_sided', 'windows', expected)


# Bursts


def seconds_in_library(run: Run) -> list[float]:
    """How long each rank was in the MPI, as the program timed it below the witness."""
    told = dict(line.split() for line in run.out.splitlines())
    return [float(told[str(rank)]) for rank in range(len(told))]


@pytest.fixture
def bursts(witnessed: Callable[..., Run], compiled: Callable[..., Any]) -> Callable[..., Run]:
    """Runs tests/programs/witness/bursts.c, and checks what is exact."""

    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip('ranks that poll need a CPU each')

    def bursts(messages: int, repeats: int, pause: int, who: str) -> Run:
        program = compiled('bursts', '-ldl')
        run = witnessed(program, str(messages), str(repeats), str(pause), who, env=POLLING)
        assert run.code == 0, run.out + run.err
        times = messages * repeats
        for rank, process in enumerate(run.report['processes']):
            assert list(process['calls']) == ['MPI_Send', 'MPI_Recv']
            for call in process['calls'].values():
                assert (call['count'], call['bytes']) == (times, 8 * times)
            (partner,) = process['partners']
            told = {'rank': 1 - rank, 'messages': times, 'bytes': 8 * times}
            assert partner == told | {'sizes': {'8': times}}
        return run

    return bursts


def assert_times(run: Run, allowed: float) -> None:
    """Hold the time in MPI against the program's own."""
    seen = [process['mpi_time'] for process in run.report['processes']]
    assert seen == pytest.approx(seconds_in_library(run), rel=0.1, abs=allowed)


@pytest.mark.alone
def test_bursts_are_timed_by_samples(bursts):
    # A call that is timed takes longer than the others for which it stands: up to 41 ns were seen,
    # of some 365, and clocks of other machines take longer.
    messages = 200_000

    def sampled():
        run = bursts(messages, 1, 0, 'both')
        for process in run.report['processes']:
            for call in process['calls'].values():
                assert 0 < call['timed'] < call['count']
        return run

    measured(sampled, lambda run: assert_times(run, 2 * messages * 100e-9))


@pytest.mark.alone
@pytest.mark.parametrize('who', ['both', 'one'])
def test_bursts_with_pauses(bursts, who):
    """Pauses of the program are not time in MPI; waiting for a rank that pauses is."""
    # Long beside what the witness's log costs where memory is slow when it is first touched: in a
    # virtual machine that was 74 ms.
    pauses = 25 * 0.060

    def paused():
        run = bursts(4000, 25, 60, who)
        assert all(process['wall'] > pauses for process in run.report['processes'])
        return run

    def check(run):
        assert_times(run, 0.1 * pauses)
        if who == 'one':
            assert seconds_in_library(run)[1] > pauses
        # The pauses are those before the sends that begin the bursts.
        (part,) = run.report['processes'][0]['sites']
        computed = {site['call']: site['computed'] for site in part['calls']}
        assert computed['MPI_Send'] > 0.9 * pauses and computed['MPI_Recv'] < 0.5 * pauses

    measured(paused, check)


# Read by the program


@on_one_mpi
def test_a_program_reads_what_it_has_called(witnessed, compiled):
    program = compiled('reads', '-ldl')
    run = witnessed(program)
    told = 'sends of 3000 bytes, 24 calls, time 1'
    assert (run.code, sorted(run.out.splitlines())) == (0, [f'rank {n}: 3 {told}' for n in (0, 1)])
    alone = witnessed(program, preload='')
    assert sorted(alone.out.splitlines()) == [f'rank {n}: no witness' for n in (0, 1)]


# Read by MPI_T


OWN_VARIABLES = [
    f'assay_{kind}_{what}'
    for kind in ('pt2pt', 'collectives', 'one_sided')
    for what in ('messages', 'bytes')
]


@pytest.mark.parametrize(
    'part', ['list', 'communicators', 'kinds', 'switched', 'sessions', 'wrong', 'mpi', 'categories']
)
def test_performance_variables(witnessed, compiled, part):
    run = witnessed(compiled('performance'), part, 'end', ranks=4)
    assert run.code == 0, run.out + run.err


def test_the_example_in_the_documents(mpi, surroundings, witnessed, tmp_path):
    (source,) = (text for text, _ in code(DOCS / 'programs.md') if 'int main(' in text)
    (tmp_path / 'example.c').write_text(source)
    options = ['-std=c11', '-Wall', '-Wextra', 'example.c', '-o', 'example']
    subprocess.run([mpi.cc, *options], env=surroundings, cwd=tmp_path, check=True)
    program = tmp_path / 'example'
    assert witnessed(program).out.splitlines() == ['300 bytes to rank 1']
    assert witnessed(program, preload='').out.splitlines() == ['no witness']


@on_one_mpi
def test_variables_that_an_mpi_gets_later_move_no_index(witnessed, compiled):
    run = witnessed(compiled('grown', '-rdynamic'), ranks=1)
    assert run.code == 0, run.out + run.err
    told = [tuple(line.split()) for line in run.out.splitlines()]
    first = ['mpi_0', 'mpi_1']
    after = [*first, 'mpi_2', *OWN_VARIABLES]
    later = [*after, 'mpi_3', 'mpi_4']
    assert told == [
        *(('before', str(n), name) for n, name in enumerate(first)),
        *(('after', str(n), name) for n, name in enumerate(after)),
        *(('later', str(n), name) for n, name in enumerate(later)),
        ('fewer', str(len(after))),
    ]


@on_one_mpi
def test_without_the_matrix_there_are_no_variables(witnessed, compiled):
    # Into a file: what a rank says just before MPI_Abort MPICH's launcher loses now and then.
    line = f'exec {compiled("performance")} list 2>>said'
    run = witnessed('sh', '-c', line, env={'ASSAY_WITNESS': 'profile'})
    assert run.code == 3
    assert 'number of variables' in (run.files / 'said').read_text()


# Beside Open MPI's own component


MONITORED = {'OMPI_MCA_pml': 'ob1,monitoring', 'OMPI_MCA_pml_monitoring_enable': '1'}


@pytest.fixture
def monitoring(mpi: Mpi) -> None:
    if mpi.family != 'openmpi' or not re.search(r'MCA pml: monitoring', mpi.description):
        pytest.skip("needs Open MPI's component pml monitoring")
    if int(mpi.version.split('.')[0]) < 5:
        pytest.skip('needs Open MPI 5, whose component has counters to be read')


@pytest.mark.usefixtures('monitoring')
@pytest.mark.parametrize(
    ('enable', 'member', 'how'),
    [('2', 'partners', ()), ('2', 'partners', ('both',)), ('1', 'sent_by_mpi', ())],
)
def test_messages_are_those_that_open_mpi_counts(witnessed, compiled, enable, member, how):
    """With 1 also those that it sends for collectives; with ``both`` its own variables too."""
    env = MONITORED | {'OMPI_MCA_pml_monitoring_enable': enable}
    run = witnessed(compiled('irregular'), *how, ranks=4, env=env)
    assert run.code == 0, run.out + run.err
    told = {tuple(map(int, line.split())) for line in run.out.splitlines()}
    assert len(told) == 4 * 4
    assert told == {
        (process['rank'], partner['rank'], partner['messages'], partner['bytes'])
        for process in run.report['processes']
        for partner in process[member]
    }
    assert all(('sent_by_mpi' in one) == (enable == '1') for one in run.report['processes'])


@pytest.mark.usefixtures('monitoring')
@pytest.mark.parametrize('how', ['stop', 'flush'])
def test_counters_that_the_program_changes_are_not_told(witnessed, compiled, how):
    run = witnessed(compiled('irregular'), how, ranks=4, env=MONITORED)
    assert run.code == 0, run.out + run.err
    assert not any('sent_by_mpi' in process for process in run.report['processes'])
