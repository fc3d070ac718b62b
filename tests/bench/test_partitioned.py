"""``partitioned``: its report, and that partitions which have not arrived are found."""

import pytest

from assay.programs.benchmarks import check_partitioned
from families import on_one_mpi
from measured import check_head, check_samples

FEW = ('--budget', '0.01')
LACKS = 'this MPI has no MPI_Psend_init'


@pytest.mark.parametrize(
    'more', [(), ('--threads', '2', '--thread-multiple')], ids=['one_thread', 'threads']
)
def test_report(run, more):
    done = run('partitioned', *FEW, *more, '--sizes', '64,4096', '--partitions', '1,4', ranks=2)
    if LACKS in done.err:
        pytest.skip(LACKS)
    assert done.code == 0, done.err
    check_head(done.report, 'partitioned', 2)
    check_partitioned(done.report)
    results = done.report['results']
    for entry in results:
        check_samples(entry)
    assert [(one['size'], one['way'], one['partitions']) for one in results] == [
        (size, way, partitions)
        for size in (64, 4096)
        for way, partitions in (
            ('whole', 1),
            *((way, count) for count in (1, 4) for way in ('messages', 'partitioned')),
        )
    ]


@on_one_mpi
@pytest.mark.parametrize(
    ('wrong', 'words'),
    [
        ('early', 'by partitioned were said to have arrived and had not'),
        ('never', '4096 bytes by partitioned in 4 partitions did not come to an end within 1 s'),
        ('byte', 'partition 2 of 4 of 4096 bytes by partitioned arrived wrong'),
    ],
)
def test_a_wrong_partition_is_found(run, fault, wrong, words):
    one = ('--way', 'partitioned', '--sizes', '4096', '--partitions', '4')
    patience = ('--patience', '1') if wrong == 'never' else ()
    done = run(
        'partitioned',
        *FEW,
        *one,
        *patience,
        preload=fault('wrong_partition'),
        env={'WRONG_PARTITION': wrong},
        ranks=2,
    )
    if LACKS in done.err:
        pytest.skip(LACKS)
    assert done.code != 0
    assert 'partitioned: rank ' in done.err
    assert words in done.err
    assert not list(done.files.glob('report.json'))


@on_one_mpi
@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (('--sizes', '64', '--partitions', '3'), '64 bytes cannot be divided into 3 partitions'),
        (('--threads', '2'), '--threads 2 needs --thread-multiple'),
    ],
)
def test_what_cannot_be_measured_is_refused(run, arguments, words):
    done = run('partitioned', *arguments, ranks=2)
    if LACKS in done.err:
        pytest.skip(LACKS)
    assert done.code == 2
    assert words in done.err
