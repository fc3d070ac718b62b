"""Reports of MPI benchmarks, held against the calls that the witness counted in the same jobs."""

import json
from dataclasses import dataclass

import pytest

from assay.config.defects import load_defects
from assay.programs.application import WrongAnswerError
from assay.programs.calls import check_calls, check_reproducer
from assay.witness import read_witness
from golden_jobs import JOBS


@dataclass(frozen=True)
class Counted:
    """Of a call on a rank."""

    count: int
    bytes: int


#: Jobs, with those of their calls that were made for what is reported.
RECORDED = {
    'PointToPoint/openmpi-shm': ('Send', 'Recv', 'Isend', 'Irecv', 'Waitall'),
    'Ring/mpich-shm': ('Send', 'Recv'),
    'CollectivesOverlap/mpich-shm': ('Iallreduce', 'Waitall', 'Testall'),
    'Collectives/mpich-ofi-tcp': ('Bcast', 'Reduce', 'Allgather', 'Barrier'),
    'CollectivesMore/mpich-shm/calls': ('Iallreduce', 'Start', 'Wait'),
    'Matching/mpich-shm': ('Send', 'Recv', 'Irecv', 'Wait'),
    'OneSided/mpich-shm': ('Put', 'Get', 'Accumulate', 'Fetch_and_op', 'Win_flush'),
    'OneSided/mpich-shm/others': ('Win_fence', 'Win_start', 'Win_complete', 'Win_unlock'),
    'Datatypes/mpich-shm': ('Send', 'Recv'),
    'Partitioned/mpich-shm': ('Start', 'Startall', 'Pready', 'Parrived', 'Waitall'),
    'Congestion/openmpi-tcp': ('Send', 'Recv', 'Allreduce'),
    'Threads/mpich-shm': ('Isend', 'Waitall', 'Recv'),
    'Files/mpich-shm': ('File_write_at', 'File_read_at_all', 'File_sync'),
    'Halo/mpich-ucx-shm': ('Sendrecv', 'Isend', 'Irecv', 'Waitall'),
    'HaloProgress/mpich-ucx-tcp': ('Isend', 'Waitall', 'Iprobe'),
    'Pairs/mpich-shm': (),
}


def recorded(job):
    """The report of a job, and what was counted on each rank."""
    seen = read_witness(JOBS / job / 'witness.json')
    counted = [
        {name: Counted(call.count, call.bytes) for name, call in one.calls.items()}
        for one in seen.processes
    ]
    return json.loads((JOBS / job / 'result.json').read_text()), counted


@pytest.mark.parametrize('job', RECORDED)
def test_calls_that_were_not_made(job):
    report, counted = recorded(job)
    assert check_calls(report, counted) == ''
    for call in RECORDED[job]:
        name = f'MPI_{call}'
        without = [{**counted[0], name: Counted(0, 0)}, *counted[1:]]
        with pytest.raises(WrongAnswerError, match=f'of {name} follow from the report'):
            check_calls(report, without)


@pytest.mark.parametrize(
    ('call', 'words'),
    [
        ('Sendrecv', 'on rank 3'),
        ('Alltoall', 'on rank 3'),
        ('Send', 'on rank 3'),
        ('Irecv', 'on rank 1'),
    ],
)
def test_a_load_that_was_not_sent(call, words):
    report, counted = recorded('Congestion/openmpi-tcp')
    assert report['victims'] == [0, 2]
    rank = int(words[-1])
    sent = counted[rank][f'MPI_{call}']
    counted[rank][f'MPI_{call}'] = Counted(sent.count // 2, sent.bytes)
    with pytest.raises(WrongAnswerError, match=f'{words} of MPI_{call} follow from the report'):
        check_calls(report, counted)


def test_messages_of_fewer_bytes():
    report, counted = recorded('PointToPoint/openmpi-shm')
    sent = counted[1]['MPI_Isend']
    counted[1]['MPI_Isend'] = Counted(sent.count, sent.bytes // 8)
    with pytest.raises(WrongAnswerError, match='bytes on rank 1 of MPI_Isend'):
        check_calls(report, counted)


def ring(operations):
    """A report of one point, and what the witness counted of 1000 laps."""
    clocks = {'batches': 3, 'operations': operations}
    lap = {'size': 8, 'samples': 2, 'iterations_per_sample': 10, 'clocks': clocks}
    calls = {'MPI_Send': Counted(1000, 8000), 'MPI_Recv': Counted(1000, 8000)}
    every = {**calls, 'MPI_Allreduce': Counted(3, 48)}
    return {'program': 'ring', 'ranks': 2, 'results': [lap]}, [every, every]


def test_one_of_all_operations_was_left_out():
    """The warm-up counts: samples alone are fewer than the operations that were made."""
    assert check_calls(*ring(1000)) == ''
    with pytest.raises(WrongAnswerError, match=r'^1001 calls on rank 0 of MPI_Send'):
        check_calls(*ring(1001))


def test_pairs_are_held_by_the_calls_of_all_ranks_together():
    clocks = {'exchange': {'batches': 4, 'operations': 10}}
    report = {'program': 'pairs', 'ranks': 2, 'clocks': clocks}
    report['results'] = [{'measure': 'bandwidth', 'window': 4, 'size': 8}]

    def calls(messages, size=8):
        names = {'Isend': messages, 'Irecv': 20, 'Waitall': 5, 'Allreduce': 4}
        found = {f'MPI_{name}': Counted(count, 0) for name, count in names.items()}
        return found | {'MPI_Isend': Counted(messages, size * messages)}

    assert check_calls(report, [calls(30), calls(10)]) == ''
    with pytest.raises(WrongAnswerError, match=r'^40 calls of MPI_Isend'):
        check_calls(report, [calls(29), calls(10)])
    with pytest.raises(WrongAnswerError, match=r'^320 bytes of MPI_Isend'):
        check_calls(report, [calls(30), calls(10, size=4)])


def test_where_another_tool_takes_the_calls_it_is_told():
    """Who preloads a library of its own before the witness is not refused, but warned."""
    report, _ = ring(1000)
    elsewhere = {'MPI_Comm_dup': Counted(1, 0)}
    assert 'it counted no MPI_Allreduce on rank 0' in check_calls(report, [elsewhere, elsewhere])
    report, counted = recorded('Files/mpich-shm')
    counted[0] = {name: call for name, call in counted[0].items() if '_File_' not in name}
    assert 'it counted no MPI_File_open on rank 0' in check_calls(report, counted)


@pytest.mark.parametrize('defect', load_defects())
def test_a_reproducer_that_did_nothing_proves_nothing(defect):
    surely = {'MPI_Allreduce': Counted(1, 4)}
    call = load_defects()[defect].call
    check_reproducer(defect, call, [surely, {**surely, call: Counted(1, 0)}])
    check_reproducer(defect, call, [{}, {}])  # another tool took the calls
    with pytest.raises(WrongAnswerError, match=f'{defect} is said not to show'):
        check_reproducer(defect, call, [surely, surely])


def test_another_number_of_ranks():
    report, counted = ring(1000)
    with pytest.raises(WrongAnswerError, match='ran on 2 ranks, and the witness counted the calls'):
        check_calls(report, counted[:1])


def test_files_that_move_fewer_bytes_than_reported():
    report, counted = recorded('Files/mpich-shm')
    for name in ('MPI_File_write_all', 'MPI_File_read_all'):
        of = counted[0][name]
        less = [{**counted[0], name: Counted(of.count, of.bytes // 2)}, *counted[1:]]
        with pytest.raises(WrongAnswerError, match=f'bytes on rank 0 of {name} follow'):
            check_calls(report, less)


def test_what_counts_no_calls_is_not_held():
    report, counted = ring(1001)
    assert check_calls({**report, 'program': 'stream'}, counted) == ''
