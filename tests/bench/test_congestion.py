"""``congestion``: its report, and that wrong data of victims and aggressors are found."""

import pytest

from assay.programs.benchmarks import check_congestion
from families import on_one_mpi
from measured import check_head

# Two victims and two aggressors: fewer ranks are refused.
RANKS = 4
FEW = ('--budget', '0.004', '--size', '4096')


@on_one_mpi
def test_report(run):
    done = run('congestion', *FEW, ranks=RANKS)
    assert done.code == 0, done.err
    check_head(done.report, 'congestion', RANKS)
    check_congestion(done.report)
    assert done.report['victims'] == [0, 3]
    assert [(one['victim'], one['aggressor']) for one in done.report['results']] == [
        (victim, aggressor)
        for victim in ('latency', 'allreduce')
        for aggressor in ('incast', 'alltoall', 'shift')
    ]


@on_one_mpi
@pytest.mark.parametrize(
    ('aggressor', 'wrong', 'env', 'words'),
    [
        # The last of four before the time, and the fifth of a round.
        (
            'shift',
            'flip_byte',
            {'FLIP_RANK': '0', 'FLIP_MESSAGE': '3'},
            '8 bytes from rank 3 arrived',
        ),
        ('incast', 'flip_byte', {'FLIP_MESSAGE': '4'}, '1 messages of 4096 bytes arrived with old'),
        ('alltoall', 'flip_result', {}, 'of 4088 bytes arrived wrong at offset 4087'),
    ],
)
def test_wrong_data_are_found(run, fault, aggressor, wrong, env, words):
    one = ('--victim', 'latency', '--aggressor', aggressor)
    done = run('congestion', *FEW, *one, preload=fault(wrong), env=env, ranks=RANKS)
    assert done.code != 0
    assert 'congestion: rank ' in done.err
    assert words in done.err
    assert not list(done.files.glob('report.json'))
