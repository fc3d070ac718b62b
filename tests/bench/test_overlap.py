"""``overlap``: its arithmetic, its verdict on networks of known behaviour, and its payload."""

import pytest

from assay.programs.benchmarks import check_overlap
from families import dealt, on_one_mpi
from measured import check_head, check_samples
from quiet import measured


def median(point, series):
    """Seconds."""
    check_samples(point[series])
    return point[series]['time']['median']


@dealt(('ranks', 'progress'), [(2, 'none'), (3, 'test'), (4, 'none')])
def test_report(run, ranks, progress):
    done = run(
        'overlap',
        *('--min', '64K', '--max', '192K', '--ratios', '0.5,2', '--progress', progress),
        *('--test-interval', '1e-5', '--budget', '0.05'),
        ranks=ranks,
    )
    assert done.code == 0, done.err
    report = done.report
    check_head(report, 'overlap', ranks)
    assert report['arguments']['ratios'] == [0.5, 2]
    assert report['arguments']['progress'] == progress
    assert [r['size'] for r in report['results']] == [64 << 10, 128 << 10, 192 << 10]
    for result in report['results']:
        assert [p['ratio'] for p in result['points']] == [0.5, 2]
        could = was = 0.0
        for point in result['points']:
            comm, cpu, total = (median(point, s) for s in ('communication', 'computation', 'total'))
            hidden, hideable = comm + cpu - total, min(comm, cpu)
            assert point['overlap'] == pytest.approx(hidden / hideable, rel=1e-4, abs=1e-4)
            assert point['slowdown'] == pytest.approx(total / max(comm, cpu), rel=1e-6)
            assert point['excess'] == pytest.approx(total / (comm + cpu), rel=1e-6)
            was += hidden
            could += hideable
        overlap = result['overlap']
        assert overlap == pytest.approx(was / could, rel=1e-4, abs=1e-4)
        verdict = 'overlap' if overlap >= 0.75 else 'partial' if overlap > 0.25 else 'none'
        assert result['verdict'] == verdict
        assert f'{result["size"]:10d} verdict: {verdict}' in done.out


COLLECTIVE = ('--min', '4K', '--max', '4K', '--ratios', '1', '--budget', '0.01')


@pytest.mark.parametrize('operation', ['allreduce', 'alltoall'])
def test_collectives(run, operation):
    done = run('overlap', *COLLECTIVE, '--operation', operation, '--progress', 'test', ranks=3)
    assert done.code == 0, done.err
    check_overlap(done.report)
    assert done.report['arguments']['operation'] == operation


@on_one_mpi
@pytest.mark.parametrize(
    ('operation', 'words'),
    [('allreduce', 'MPI_Iallreduce of 4096 bytes gave a wrong sum'), ('alltoall', 'arrived wrong')],
)
def test_a_wrong_result_of_a_collective_is_found(run, fault, operation, words):
    wrong = {'preload': fault('flip_result'), 'env': {'FLIP_RANK': '1'}}
    done = run('overlap', *COLLECTIVE, '--operation', operation, **wrong)
    assert done.code != 0
    assert 'overlap: rank 1: ' in done.err
    assert words in done.err


FLIGHT = 2e-3


@pytest.mark.alone
@dealt(
    ('offloaded', 'progress', 'verdict'),
    [('1', 'none', 'overlap'), ('0', 'none', 'none'), ('0', 'test', 'overlap')],
)
def test_verdict_on_a_network_of_known_speed(run, fault, offloaded, progress, verdict):
    wire = fault('wire')

    def overlapped():
        done = run(
            'overlap',
            *('--min', '16K', '--max', '16K', '--ratios', '0.5,1,2', '--progress', progress),
            preload=wire,
            env={'WIRE_MICROSECONDS': f'{FLIGHT * 1e6:.0f}', 'WIRE_OFFLOADED': offloaded},
        )
        assert done.code == 0, done.err
        (result,) = done.report['results']
        assert [point['ratio'] for point in result['points']] == [0.5, 1, 2]
        return result

    def check(result):
        assert result['verdict'] == verdict
        for point in result['points']:
            comm, cpu = median(point, 'communication'), median(point, 'computation')
            assert comm == pytest.approx(FLIGHT, rel=0.1)
            expected = max(comm, cpu) if verdict == 'overlap' else comm + cpu
            assert median(point, 'total') == pytest.approx(expected, rel=0.1)

    measured(overlapped, check)


def test_thread_multiple(run):
    few = ('--min', '64K', '--max', '64K', '--ratios', '1', '--budget', '0.01')
    done = run('overlap', *few, '--thread-multiple')
    assert done.code == 0, done.err
    assert done.report['mpi']['thread_level'] == 'multiple'
    assert run('overlap', *few).report['mpi']['thread_level'] != 'multiple'


@dealt(('message', 'progress'), [(0, 'none'), (7, 'none'), (7, 'test'), (0, 'test')])
def test_a_flipped_byte_is_found(run, fault, message, progress):
    done = run(
        'overlap',
        *('--min', '64K', '--max', '64K', '--progress', progress, '--budget', '0.1'),
        preload=fault('flip_byte'),
        env={'FLIP_MESSAGE': str(message), 'FLIP_OFFSET': '65535'},
    )
    assert done.code != 0
    sentence = 'rank 1: message from rank 0 of 65536 bytes arrived wrong at offset 65535'
    assert f'overlap: {sentence}' in done.err
    assert not list(done.files.glob('report.json'))


@pytest.mark.parametrize('message', [0, 7])
def test_a_lost_message_is_found(run, fault, message):
    done = run(
        'overlap',
        *('--min', '64K', '--max', '64K', '--budget', '0.1'),
        ranks=3,
        preload=fault('drop_message'),
        env={'DROP_MESSAGE': str(message), 'DROP_RANK': '2'},
    )
    assert done.code != 0
    assert 'rank 2: message from rank 0 of 65536 bytes arrived wrong at offset 0' in done.err


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['--ratios', '0'], '--ratios 0 is wrong'),
        (['--ratios', '1,,2'], '--ratios 1,,2 is wrong'),
        (['--ratios', ','.join(['1'] * 17)], 'at most 16 numbers'),
        (['--min', '2M', '--max', '1M'], '--min 2097152 is greater than --max 1048576'),
        (['--min', '0'], '--min 0 is wrong'),
        (['--progress', 'async'], '--progress async is wrong'),
        (['--test-interval', 'x'], '--test-interval x is wrong'),
    ],
)
@on_one_mpi
def test_wrong_use(run, arguments, sentence):
    done = run('overlap', *arguments)
    assert done.code == 2
    assert sentence in done.err
    assert done.err.count('overlap: ') == 1
    assert not list(done.files.glob('report.json*'))
