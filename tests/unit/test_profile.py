"""Profile, waits, figures and matrix, by hand-made reports whose figures are known."""

import pytest

from assay import witness
from assay.witness import profile
from witnessed import call, halo, host, partner, process, report, wait, write

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


def test_pairs_and_sizes(tmp_path):
    found = witness.read_witness(write(tmp_path / 'r.json', halo(4)))
    first = profile.pairs(found)[0]
    assert (first.sender, first.receiver, first.messages, first.bytes) == (0, 1, 100, 10**6)
    assert len(profile.pairs(found)) == 8
    assert profile.message_sizes(found) == {8192: 800}


def test_the_heaviest_pair_is_first():
    partners = [partner(0, 5, 10, {0: 4, 8: 1}), partner(1, 1, 4096, {4096: 1}), partner(-1, 2, 20)]
    found = report([process(0, partners=partners), process(1, (1,))], [host()])
    assert [(one.receiver, one.bytes) for one in profile.pairs(found)] == [
        (1, 4096),
        (-1, 20),
        (0, 10),
    ]
    assert profile.message_sizes(found) == {0: 4, 8: 1, 4096: 1}
