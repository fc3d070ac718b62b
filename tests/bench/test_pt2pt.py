"""``pt2pt``: its report, and that wrong data and dead ranks never pass for a result."""

import re

import pytest

from families import dealt, on_one_mpi
from measured import check_head, check_samples

pytestmark = pytest.mark.differs_by_mpi

# Messages that a rank's reported bandwidth counts for each reported time.
COUNTED = {'ping-pong': 1, 'ping-ping': 1, 'sendrecv': 2, 'exchange': 4, 'bidirectional': 2}
SIZES = [0, 1, 2, 4, 8, 16, 32, 64, 100]


@pytest.mark.parametrize(
    ('ranks', 'cache', 'sizes'),
    [
        pytest.param(2, 'on', SIZES, id='2-on'),
        # Of sizes two: three ranks on two cores wait for each other.
        pytest.param(3, 'off', [64, 100], id='3-off'),
    ],
)
def test_all_patterns(run, ranks, cache, sizes):
    limits = ['--min', str(sizes[0]), '--max', str(sizes[-1])]
    done = run('pt2pt', *limits, '--cache', cache, '--budget', '0.01', ranks=ranks)
    assert done.code == 0, done.err
    check_head(done.report, 'pt2pt', ranks)
    assert 'limits' not in done.report
    assert '--focus' not in done.out
    results = done.report['results']
    assert [(r['pattern'], r['size']) for r in results] == [(p, s) for p in COUNTED for s in sizes]
    for entry in results:
        check_samples(entry)
        assert (entry['cache'], entry['budget']) == (cache, 0.01)
        # To fill the pool of buffers without the caches takes longer than a bout.
        assert len(entry.get('bouts', ['one'])) == (4 if cache == 'on' else 1)
        bandwidth = COUNTED[entry['pattern']] * entry['size'] / entry['time']['best']
        assert entry['bandwidth'] == pytest.approx(bandwidth, rel=1e-6)
        assert f' {entry["size"]:9d} ' in done.out


def test_sizes_in_focus_have_the_whole_budget(run):
    sizes = ['--min', '8', '--max', '64K', '--focus', '8,65536', '--budget', '0.02']
    done = run('pt2pt', '--pattern', 'ping-pong', *sizes)
    assert done.code == 0, done.err
    assert ' --focus 8,65536' in done.out
    assert done.report['arguments']['focus'] == [8, 65536]
    for entry in done.report['results']:
        check_samples(entry)
        in_focus = entry['size'] in (8, 65536)
        assert entry['budget'] == (0.02 if in_focus else 0.0025)
        assert len(entry.get('bouts', ['one'])) == (4 if in_focus else 1)


def test_large_messages_and_limits(run):
    done = run('pt2pt', '--min', '1M', '--max', '3M', '--budget', '0.01', '--limits')
    assert done.code == 0, done.err
    report = done.report
    assert report['arguments']['min'] == 1 << 20
    assert report['arguments']['limits'] is True
    assert set(report['limits']) == {'memcpy', 'cacheline', 'socket', 'measured'}
    assert len(report['limits']['measured']) == 5
    sizes = [r['size'] for r in report['results'] if r['pattern'] == 'bidirectional']
    assert sizes == [1 << 20, 2 << 20, 3 << 20]
    assert [r['window'] for r in report['results'] if 'window' in r] == [4, 2, 2]


@dealt('pattern', COUNTED)
def test_a_flipped_byte_is_found(run, fault, pattern):
    done = run(
        'pt2pt',
        *('--pattern', pattern, '--min', '4K', '--max', '4K', '--budget', '0.01'),
        preload=fault('flip_byte'),
        env={'FLIP_MESSAGE': '0', 'FLIP_OFFSET': '1234'},
    )
    assert done.code != 0
    assert 'pt2pt: rank 1: message from rank 0 of 4096 bytes arrived wrong at offset 1234' in (
        done.err
    )
    assert not list(done.files.glob('report.json'))


@on_one_mpi
def test_old_content_before_the_last_message_is_found(run, fault):
    """Of the sixth message: a batch of more has only its last one checked whole."""
    zeros = {'ZERO_RANK': '0', 'ZERO_MESSAGE': '5'}
    sizes = ('--min', '4K', '--max', '4K', '--budget', '0.01')
    done = run('pt2pt', '--pattern', 'ping-pong', *sizes, preload=fault('zero_message'), env=zeros)
    assert done.code != 0
    assert re.search('pt2pt: rank 1: .* 4096 bytes arrived w(rong|ith old content)', done.err)


def test_a_killed_rank_leaves_no_report(run, fault, tmp_path):
    (tmp_path / 'report.json').write_text('an earlier report')
    done = run(
        'pt2pt',
        *('--pattern', 'ping-pong', '--budget', '1'),
        preload=fault('kill_rank'),
        env={'KILL_SEND': '300'},
        timeout=300,
    )
    assert done.code != 0
    assert '--pattern ping-pong' in done.out
    assert 'ping-pong, cache on' not in done.out
    assert not (tmp_path / 'report.json').exists()
