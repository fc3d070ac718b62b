"""``threads``: its report, what it refuses, and that each thread's messages are looked at."""

import pytest

from assay.programs.benchmarks import check_threads
from families import on_one_mpi
from measured import check_head, check_samples

FEW = ('--budget', '0.02')
THREADS = ('--threads', '3', '--thread-multiple')


@pytest.mark.parametrize(
    ('arguments', 'ranks', 'measures'),
    [
        (THREADS, 2, [('one', 1), ('communicators', 3), ('shared', 3)]),
        ((), 4, [('one', 1)]),
    ],
)
def test_report(run, arguments, ranks, measures):
    done = run('threads', *FEW, *arguments, ranks=ranks)
    assert done.code == 0, done.err
    check_head(done.report, 'threads', ranks)
    check_threads(done.report, measures[-1][1])
    results = done.report['results']
    assert [(one['measure'], one['threads']) for one in results] == measures
    for entry in results:
        check_samples(entry)


@on_one_mpi
def test_a_wrong_message_is_found(run, fault):
    """The first window of each thread: in later ones the last of the batch is looked at."""
    zeros = {'preload': fault('zero_message'), 'env': {'ZERO_RANK': '0', 'ZERO_MESSAGE': '-1'}}
    done = run('threads', *FEW, *THREADS, **zeros)
    assert done.code != 0
    assert 'threads: rank 1: message from rank 0 of 8 bytes arrived wrong' in done.err


@on_one_mpi
@pytest.mark.parametrize(
    ('arguments', 'ranks', 'words'),
    [
        (('--threads', '2'), 2, '--threads 2 needs --thread-multiple'),
        ((), 3, 'needs an even number of ranks and has 3'),
    ],
)
def test_what_cannot_be_measured_is_refused(run, arguments, ranks, words):
    done = run('threads', *arguments, ranks=ranks)
    assert done.code == 2
    assert words in done.err
