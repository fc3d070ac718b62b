"""``onesided``: its report, and that operations that do not do what they ought to are found."""

import pytest

from assay.programs.benchmarks import check_onesided
from families import on_one_mpi
from measured import check_head, check_samples

FEW = ('--max', '16', '--budget', '0.01')
SYNCS = ('fence', 'pscw', 'lock', 'flush')


def test_report(run):
    done = run('onesided', '--max', '24', '--budget', '0.01', ranks=3)
    assert done.code == 0, done.err
    check_head(done.report, 'onesided', 3)
    check_onesided(done.report)
    results = done.report['results']
    for entry in results:
        check_samples(entry)
    sizes = (8, 16, 24)
    assert [(one['op'], one['sync'], one['size']) for one in results] == [
        *(('ping_pong', 'messages', size) for size in sizes),
        *(
            (op, sync, size)
            for op in ('put', 'get', 'accumulate')
            for sync in SYNCS
            for size in sizes
        ),
        *(('fetch_add', sync, 8) for sync in ('lock', 'flush')),
    ]


@on_one_mpi
@pytest.mark.parametrize(
    ('wrong', 'words'),
    [
        ('put', 'rank 1: message from rank 0 of 8 bytes arrived wrong at offset 7'),
        ('get', 'rank 0: message from rank 1 of 8 bytes arrived wrong at offset 7'),
        ('accumulate', 'rank 1: accumulate of 8 bytes gave a wrong sum in element 0'),
        ('fetch', 'numbers were fetched out of their turn'),
        ('hang', ': put by flush of 8 bytes did not come to an end within 1 s'),
        ('deaf', 'rank 1: a step of the first and the last rank did not come to an end'),
    ],
)
def test_a_wrong_operation_is_found(run, fault, wrong, words):
    patience = ('--patience', '1') if wrong in ('hang', 'deaf') else ()
    access = {'preload': fault('wrong_access'), 'env': {'WRONG_ACCESS': wrong}}
    ranks = 3 if wrong == 'deaf' else 2
    done = run('onesided', *FEW, *patience, ranks=ranks, **access)
    assert done.code != 0
    assert 'onesided: rank ' in done.err
    assert words in done.err
    assert not list(done.files.glob('report.json'))
