"""``collectives``: its report, and that every operation's wrong result is found."""

import pytest

from assay.programs.guidelines import guidelines
from families import dealt, on_one_mpi
from measured import check_head, check_samples
from quiet import measured

OPS = [
    'barrier',
    'bcast',
    'reduce',
    'allreduce',
    'allgather',
    'alltoall',
    'reduce_scatter',
    'scatter',
    'gather',
]
GUIDELINES = ('--op', 'barrier', '--budget', '0.002', '--guidelines')
AT_THE_ROOT = ('reduce', 'gather')


@dealt('ranks', [2, 3])
def test_all_operations(run, ranks):
    arguments = ['--min', '8', '--max', '40', '--budget', '0.01', '--limits']
    done = run('collectives', *arguments, ranks=ranks)
    assert done.code == 0, done.err
    check_head(done.report, 'collectives', ranks)
    expected = [('barrier', 0)] + [(op, size) for op in OPS[1:] for size in (8, 16, 32, 40)]
    results = done.report['results']
    assert [(r['op'], r['size']) for r in results] == expected
    for entry in results:
        check_samples(entry)
        assert entry['call'] == 'blocking'
        assert f'{entry["op"]:18s} {entry["size"]:10d} ' in done.out
    ping_pong = done.report['limits']['ping_pong']
    assert ping_pong['size'] == 40
    assert ping_pong['latency'] > 0
    assert ping_pong['bandwidth'] > 0


OTHERS = (
    *('scan', 'exscan', 'allgatherv', 'alltoallv', 'scatterv', 'gatherv'),
    *('neighbor_allgather', 'neighbor_alltoall'),
)


def test_other_operations_and_calls(run):
    """Persistent calls are left out where the MPI has none.

    Not of scatter: Intel MPI 2021.16 ends the job in MPI_Wait of one between three ranks.
    """
    makers = ('comm_dup', 'comm_split')
    ops = [op for op in OPS if op != 'scatter'] + [*OTHERS]
    names = ','.join((*ops, *makers))
    arguments = ['--op', names, '--call', 'blocking,nonblocking,persistent']
    done = run('collectives', *arguments, '--max', '16', '--budget', '0.002', ranks=3)
    assert done.code == 0, done.err
    results = done.report['results']
    found = {call: [] for call in ('blocking', 'nonblocking', 'persistent')}
    for entry in results:
        check_samples(entry)
        found[entry['call']].append((entry['op'], entry['size']))
    expected = [('barrier', 0)] + [(op, size) for op in ops[1:] for size in (8, 16)]
    assert found['nonblocking'] == expected
    assert found['blocking'] == [*expected, *((op, 0) for op in makers)]
    assert found['persistent'] in ([], expected)


def test_calls_that_all_ranks_begin_at_the_same_moment(run):
    arguments = ['--op', 'barrier,bcast', '--start', 'usual,barrier,window', '--max', '8']
    done = run('collectives', *arguments, '--budget', '0.004')
    assert done.code == 0, done.err
    results = done.report['results']
    starts = ['usual', 'barrier', 'window']
    assert [(one['op'], one['start']) for one in results] == [
        (op, start) for op in ('barrier', 'bcast') for start in starts
    ]
    for one in results:
        check_samples(one)
        assert ('late_share' in one) == (one['start'] == 'window')
        assert 0 <= one.get('late_share', 0) <= 1
    assert done.report['clock_error'] == 0  # of one host


@on_one_mpi
def test_operations_in_focus_have_the_whole_budget(run):
    """A barrier has the size 0."""
    sizes = ['--min', '8', '--max', '16', '--focus', '0,8', '--budget', '0.02']
    done = run('collectives', '--op', 'barrier,bcast', *sizes)
    assert done.code == 0, done.err
    found = [(one['op'], one['size'], one['budget']) for one in done.report['results']]
    assert found == [('barrier', 0, 0.02), ('bcast', 8, 0.02), ('bcast', 16, 0.0025)]


@pytest.mark.alone
@on_one_mpi
def test_slow_barriers_before_each_call_fit_into_the_budget(run, fault):
    """They are not timed: batches long enough by the clock alone would take seconds each."""
    arguments = ['--op', 'bcast', '--min', '8', '--max', '8', '--budget', '0.4']
    slow = fault('slow_barrier')

    def iterations():
        done = run('collectives', *arguments, preload=slow)
        assert done.code == 0, done.err
        # Some 10 batches of 10 barriers fill it, or of fewer that take longer.
        found = done.report['results'][0]['iterations_per_sample']
        assert found < 20
        return found

    def check(found):
        assert found > 1

    measured(iterations, check)


@on_one_mpi
@pytest.mark.parametrize(('op', 'rank'), [('exscan', 2), ('neighbor_alltoall', 0)])
def test_a_wrong_result_of_other_operations_is_found(run, fault, op, rank):
    done = run(
        'collectives',
        *('--op', op, '--min', '4K', '--max', '4K', '--budget', '0.002'),
        ranks=3,
        preload=fault('flip_result'),
        env={'FLIP_RANK': str(rank)},
    )
    assert done.code != 0
    assert f'collectives: rank {rank}: ' in done.err
    assert 'arrived wrong' in done.err or 'gave a wrong sum' in done.err


@dealt('op', OPS[1:])
def test_a_wrong_result_is_found(run, fault, op):
    rank = 0 if op in AT_THE_ROOT else 1
    done = run(
        'collectives',
        *('--op', op, '--min', '4K', '--max', '4K', '--budget', '0.01'),
        preload=fault('flip_result'),
        env={'FLIP_RANK': str(rank)},
    )
    assert done.code != 0
    assert f'collectives: rank {rank}: ' in done.err
    assert 'wrong' in done.err
    assert not list(done.files.glob('report.json'))


@dealt('ranks', [2, 3])
def test_guidelines(run, ranks):
    """Each way to the same result is gone, and gives it; a sum of three ranks is padded."""
    done = run('collectives', *GUIDELINES, '--max', '512', ranks=ranks)
    assert done.code == 0, done.err
    found = done.report['guidelines']
    assert {one['op'] for one in found} == {*OPS}
    for one in found:
        assert len(one['factors']) == 4 and min(one['factors']) >= 0
        assert one['clocks']['least'] <= one['clocks']['own'] <= one['clocks']['most']
    assert min(found[0]['factors']) > 0  # no round leaves out the first
    others = {one['other'] for one in found if (one['op'], one['size']) == ('allreduce', 64)}
    assert others == {
        'messages that do the same',
        'reduce and bcast',
        'reduce_scatter and allgather',
        'itself with twice the bytes',
        'itself twice with half the bytes',
    }
    others = {one['other'] for one in found if (one['op'], one['size']) == ('allreduce', 0)}
    assert others == {'three barriers'}
    sizes = {one['size'] for one in found if one['op'] == 'alltoall'}
    assert sizes >= {size for size in (8, 64, 512) if size * ranks <= 512}


@on_one_mpi
def test_a_rank_that_leaves_the_barrier_late_does_not_hide_the_time_of_others(run, fault):
    """It would find the root's message there, and the root would not wait for it."""
    arguments = ['--op', 'bcast', '--max', '16', '--budget', '0.002']
    arguments += ['--until-all-end', '--guidelines']
    done = run('collectives', *arguments, preload=fault('slow_barrier'), env={'LATE_RANK': '1'})
    assert done.code == 0, done.err
    assert done.report['results'][0]['time']['best'] >= 4e-3
    own = {one['op']: one['clocks']['own'] for one in done.report['guidelines']}
    assert own['scatter'] >= 4e-3  # of bcast one of the other ways waits for that rank anyway


@on_one_mpi
def test_guidelines_of_a_size_at_which_a_slow_way_begins(run, fault):
    """It is none of those that all operations have."""
    arguments = ['--op', 'bcast', '--min', '32K', '--max', '64K', '--budget', '0.002']
    done = run('collectives', *arguments, '--guidelines', preload=fault('segmented_bcast'))
    assert done.code == 0, done.err
    sizes = [one['size'] for one in done.report['guidelines'] if one['op'] == 'bcast']
    assert 64 << 10 in sizes
    slow = [one for one in guidelines(done.report['guidelines'], 2) if one.excess >= 1]
    assert ('bcast', 64 << 10) in {(one.operation, one.size) for one in slow}


@on_one_mpi
def test_memory_that_an_mpi_takes_for_each_call_stays(run, fault):
    """The time of its pages' faults depends on what else lies in the heap."""
    done = run(
        'collectives',
        *('--op', 'reduce', '--min', '8', '--max', '8', '--budget', '0.002'),
        preload=fault('takes_memory'),
        env={'FEWEST_FAULTS': '100'},
    )
    assert done.code == 0, done.err


@on_one_mpi
def test_a_wrong_result_on_the_way_is_found(run, fault):
    done = run('collectives', *GUIDELINES, '--max', '64', preload=fault('flip_result'))
    assert done.code != 0
    assert 'gave a wrong element' in done.err


@on_one_mpi
def test_sizes_that_hold_no_doubles_are_refused(run):
    done = run('collectives', '--min', '12')
    assert done.code == 2
    assert 'must be multiples of 8' in done.err


@on_one_mpi
def test_the_mpi_tells_its_algorithms(run):
    done = run('collectives', '--op', 'barrier', '--algorithms', '--budget', '0.01')
    assert done.code == 0, done.err
    variables = {one['name']: one for one in done.report['control_variables']}
    assert all(one['text'] for one in variables.values())
    chosen = [one for name, one in variables.items() if name.lower().endswith('_algorithm')]
    assert chosen and all(isinstance(one['value'], int | str) for one in chosen)


@on_one_mpi
@pytest.mark.parametrize('op', ['reduce', 'allreduce', 'reduce_scatter'])
def test_an_order_of_ranks_that_is_not_kept_is_found(run, fault, op):
    arguments = ['--op', op, '--min', '4K', '--max', '4K']
    good = run('noncommutative', *arguments, ranks=3)
    assert good.code == 0, good.err
    assert 'in the order of ranks' in good.out
    done = run(
        'noncommutative',
        *arguments,
        preload=fault('flip_result'),
        env={'FLIP_RANK': '0' if op in AT_THE_ROOT else '1'},
    )
    assert done.code != 0
    assert 'the order of ranks was not kept' in done.err
