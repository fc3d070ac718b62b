"""Profile, waits, figures and matrix, by hand-made reports whose figures are known."""

import pytest

from assay import witness
from assay.witness import profile
from witnessed import by_mpi, call, halo, host, partner, process, report, sent, wait, write

# Two ranks of 10 s: rank 0 computes 8 s and rank 1 6 s, and each waits for half of the rest.
TWO = report(
    [
        process(
            0,
            wall=10.0,
            mpi_time=2.0,
            calls={
                'MPI_Send': call(10, 0.5, 80),
                'MPI_Allreduce': call(4, 1.5, 32),
            },
            waits={
                'MPI_Send': wait(0.25, late_receiver=0.125),
                'MPI_Allreduce': wait(1.5, imbalance=0.75),
            },
            partners=[partner(1, 10, 80, {8: 10})],
        ),
        process(
            1,
            (1,),
            wall=10.0,
            mpi_time=4.0,
            calls={
                'MPI_Recv': call(10, 3.0, 80),
                'MPI_Allreduce': call(4, 1.0, 32),
            },
            waits={
                'MPI_Recv': wait(3.0, late_sender=1.5),
                'MPI_Allreduce': wait(0.5, imbalance=0.25),
            },
        ),
    ]
)


def test_calls():
    calls = {one.name: one for one in profile.summarise_calls(TWO)}
    assert list(calls) == ['MPI_Recv', 'MPI_Allreduce', 'MPI_Send']
    reduce = calls['MPI_Allreduce']
    assert (reduce.count, reduce.bytes, reduce.time) == (8, 64, 2.5)
    assert (reduce.time_min, reduce.time_mean, reduce.time_max) == (1.0, 1.25, 1.5)
    assert reduce.share_of_mpi == pytest.approx(2.5 / 6)
    assert reduce.share_of_wall == pytest.approx(2.5 / 20)
    # 0.75 s of rank 0, and 0.25 s of the analysed half of rank 1.
    assert reduce.waiting == pytest.approx(0.75 + 0.5)
    # A rank that never called it spent no time in it.
    receive = calls['MPI_Recv']
    assert (receive.time_min, receive.time_mean, receive.time_max) == (0.0, 1.5, 3.0)
    assert receive.waiting == pytest.approx(1.5)
    assert calls['MPI_Send'].waiting == pytest.approx(0.25)


def test_the_split_of_a_rank():
    one = profile.split(TWO.processes[0])
    assert (one.rank, one.host, one.wall, one.computation) == (0, 'n1', 10.0, 8.0)
    # Half of the sends' time was analysed: the estimate for all of it is twice what was found.
    assert one.late_receiver == pytest.approx(0.25)
    assert (one.imbalance, one.late_sender) == (0.75, 0.0)
    assert one.waiting == pytest.approx(1.0)
    assert one.transfer == pytest.approx(1.0)


def test_the_split_of_a_rank_with_threads_is_their_mean():
    one = profile.split(
        report(
            [
                process(
                    wall=10.0,
                    mpi_time=8.0,
                    mpi_threads=4,
                    calls={'MPI_Recv': call(1, 8.0)},
                    waits={'MPI_Recv': wait(4.0, late_sender=2.0)},
                )
            ]
        ).processes[0]
    )
    assert (one.computation, one.late_sender, one.transfer) == (8.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ('calls', 'waits', 'in_mpi'),
    [
        ({}, {}, 0.0),
        ({'MPI_Recv': call(1, 2.0)}, {}, 2.0),
        ({'MPI_Recv': call(1, 2.0)}, {'MPI_Recv': wait(0.0)}, 2.0),
        ({'MPI_Recv': call(1, 2.0)}, {'MPI_Recv': wait(1.0, late_sender=1.5)}, 2.0),
        ({'MPI_Recv': call(1, 12.0)}, {'MPI_Recv': wait(6.0, late_sender=6.0)}, 12.0),
    ],
)
def test_the_parts_make_up_the_wall_time(calls, waits, in_mpi):
    one = profile.split(
        report([process(wall=10.0, mpi_time=in_mpi, calls=calls, waits=waits)]).processes[0]
    )
    parts = (one.computation, one.transfer, one.imbalance, one.late_sender, one.late_receiver)
    assert sum(parts) == pytest.approx(10.0)
    assert all(part >= 0 for part in parts)


def test_figures():
    job = profile.figures(TWO)
    assert job.wall == 10.0
    assert job.comm_share == pytest.approx(6 / 20)
    assert job.imbalance_share == pytest.approx((1.0 + 2.0) / 20)
    assert job.transfer_share == pytest.approx((1.0 + 2.0) / 20)
    assert (job.messages, job.bytes) == (10, 80 + 2 * 32)  # without those that arrive
    assert job.load_balance == pytest.approx(7 / 8)
    assert job.network_bound == pytest.approx(0.2)  # rank 0 has 8 s to compute
    assert job.analysed == pytest.approx((0.25 + 1.5 + 3.0 + 0.5) / 6)
    assert [one.rank for one in profile.slowest(TWO, 1)] == [0]


def test_threads_count_in_the_shares():
    calls = {'MPI_Recv': call(1, 8.0)}
    found = report([process(wall=10.0, mpi_time=8.0, mpi_threads=4, calls=calls)])
    assert profile.figures(found).comm_share == pytest.approx(0.2)
    assert profile.summarise_calls(found)[0].share_of_wall == pytest.approx(0.2)


def test_what_was_not_analysed_counts_as_transfer():
    found = report([process(wall=10.0, mpi_time=2.0, calls={'MPI_Recv': call(1, 2.0)})])
    one = profile.split(found.processes[0])
    assert (one.transfer, one.waiting) == (2.0, 0.0)
    assert profile.figures(found).analysed == 0.0
    assert profile.summarise_calls(found)[0].waiting == 0.0
    # No more than all of it can have been.
    waits = {'MPI_Recv': wait(2.0000001)}
    more = report([process(mpi_time=2.0, calls={'MPI_Recv': call(1, 2.0)}, waits=waits)])
    assert profile.figures(more).analysed == 1.0


@pytest.mark.parametrize('name', ['Recv', 'Irecv', 'Mrecv', 'Imrecv', 'Get', 'Rget'])
def test_bytes_that_arrive_are_not_sent(name):
    one = report([process(calls={f'MPI_{name}': call(1, 0.0, 100)})])
    assert profile.figures(one).bytes == 0


def test_a_job_of_no_time():
    job = profile.figures(report([process(wall=0.0)]))
    assert (job.comm_share, job.network_bound, job.load_balance) == (0.0, 0.0, 0.0)


def told(matrix):
    return [(pair.sender, pair.to, pair.messages, pair.bytes) for pair in matrix.pairs]


def test_pairs_and_sizes(tmp_path):
    found = witness.read_witness(write(tmp_path / 'r.json', halo(4)))
    ((kind, matrix),) = profile.matrices(found).items()
    assert (kind, told(matrix)[0]) == (profile.MESSAGES, (0, '1', 100, 10**6))
    assert (len(matrix.pairs), matrix.sizes) == (8, {8192: 800})


def test_the_heaviest_pair_is_first():
    partners = [partner(0, 5, 10, {0: 4, 8: 1}), partner(1, 1, 4096, {4096: 1}), partner(-1, 2, 20)]
    found = report([process(0, partners=partners), process(1, (1,))], [host()])
    (matrix,) = profile.matrices(found).values()
    assert told(matrix) == [(0, '1', 1, 4096), (0, 'outside', 2, 20), (0, '0', 5, 10)]
    assert matrix.sizes == {0: 4, 8: 1, 4096: 1}


def test_kinds_are_told_apart():
    one_sided = partner(1, 3, 24, {8: 3}) | {'kind': 'one_sided'}
    neighbours = partner(2, 1, 500, {256: 1}) | {'kind': 'neighbours'}
    first = process(
        0,
        partners=[partner(1, 2, 20, {8: 2}), one_sided, neighbours],
        collectives=[sent('1-2', 4, 400, {64: 4}), sent('1', 1, 600, {512: 1})],
        sent_by_mpi=[by_mpi(1, 2, 20), by_mpi(2, 6, 640)],
    )
    found = report([first, process(1, (1,)), process(2, (2,))], [host()])
    matrices = profile.matrices(found)
    assert {kind: told(one) for kind, one in matrices.items()} == {
        profile.MESSAGES: [(0, '1', 2, 20)],
        profile.COLLECTIVES: [
            (0, 'each of 1-2', 4, 400),
            (0, '1', 1, 600),
            (0, '2', 1, 500),
        ],
        profile.AS_SENT: [(0, '2', 6, 640)],
        profile.ONE_SIDED: [(0, '1', 3, 24)],
    }
    # Each rank gets those that go to several.
    assert matrices[profile.COLLECTIVES].sizes == {64: 8, 256: 1, 512: 1}


def test_an_earlier_report_does_not_tell_kinds_apart():
    first = process(0, partners=[partner(1, 2, 20, {8: 2})])
    found = report([first, process(1, (1,))], [host()]).model_copy(update={'schema_': 2})
    assert [*profile.matrices(found)] == [profile.OF_ALL]
