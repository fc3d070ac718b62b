"""``matching``: its report, and that messages that match wrongly or never are found."""

import pytest

from assay.programs.benchmarks import check_matching
from families import on_one_mpi
from measured import check_head, check_samples

FEW = ('--large', '8K', '--lines', '4,40', '--budget', '0.01')


def test_report(run):
    done = run('matching', *FEW, ranks=3)
    assert done.code == 0, done.err
    check_head(done.report, 'matching', 3)
    check_matching(done.report)
    results = done.report['results']
    for entry in results:
        check_samples(entry)
    lines = [(one['measure'], one['size'], one['waiting']) for one in results[:6]]
    assert lines == [
        *(('ping-pong', 8, 0), ('ping-pong', 8192, 0)),
        *(('posted', 8, 4), ('posted', 8, 40), ('unexpected', 8, 4), ('unexpected', 8, 40)),
    ]
    incasts = [(one['source'], one['size'], one['senders'], one['messages']) for one in results[6:]]
    assert incasts == [
        *(('named', 8, 2, 64), ('named', 8192, 2, 16), ('any', 8, 2, 64), ('any', 8192, 2, 16)),
    ]


@on_one_mpi
@pytest.mark.parametrize(
    ('wrong', 'words'),
    [
        ('order', 'message from rank 1 of 8 bytes arrived wrong'),
        ('source', 'a receive from rank 1 took the message of rank 2'),
        ('later source', '0 messages came from rank 1, which sent 32'),
    ],
)
def test_what_matches_wrongly_is_found(run, fault, wrong, words):
    done = run('matching', *FEW, ranks=3, preload=fault('wrong_match'), env={'WRONG_MATCH': wrong})
    assert done.code != 0
    assert f'matching: rank 0: {words}' in done.err
    assert not list(done.files.glob('report.json'))


@on_one_mpi
def test_of_two_senders_either_message_may_come_first(run, fault):
    done = run('matching', *FEW, preload=fault('wrong_match'), env={'WRONG_MATCH': 'late'})
    assert done.code == 0, done.err


@on_one_mpi
def test_receives_from_any_source_that_hang_are_ended_and_named(run, fault):
    arguments = (*FEW, '--patience', '1')
    hang = {'preload': fault('wrong_match'), 'env': {'WRONG_MATCH': 'hang'}}
    done = run('matching', *arguments, **hang)
    assert done.code != 0
    assert 'incast from MPI_ANY_SOURCE of 8 bytes did not come to an end within 1 s' in done.err
    named = run('matching', *arguments, '--source', 'named', '--patience', '60', **hang)
    assert named.code == 0, named.err
