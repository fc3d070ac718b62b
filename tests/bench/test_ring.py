"""``ring``: its table, and that what goes round is what was sent."""

import pytest

from measured import check_head, check_samples

pytestmark = pytest.mark.differs_by_mpi


@pytest.mark.parametrize('ranks', [2, 4])
def test_table(run, ranks):
    done = run('ring', '--max-words', '20', '--budget', '0.01', '--limits', ranks=ranks)
    assert done.code == 0, done.err
    check_head(done.report, 'ring', ranks)
    limits = done.report['limits']
    assert set(limits) == {'memcpy', 'cacheline', 'socket', 'measured'}
    latencies = [one['cacheline_latency'] for one in limits['measured']]
    assert limits['cacheline']['latency'] == sorted(latencies)[2]
    results = done.report['results']
    assert [r['words'] for r in results] == [0, 1, 2, 3, 4, 7, 8, 15, 16]
    for entry in results:
        check_samples(entry)
        assert entry['size'] == 8 * entry['words']
        bandwidth = entry['size'] / entry['time']['best']
        assert entry['bandwidth'] == pytest.approx(bandwidth, rel=1e-6)
        assert f'{entry["words"]:10d} {entry["size"]:12d}' in done.out


def test_sizes_in_focus_have_the_whole_budget(run):
    done = run('ring', '--max-words', '2', '--focus', '8', '--budget', '0.02')
    assert done.code == 0, done.err
    budgets = {entry['words']: entry['budget'] for entry in done.report['results']}
    assert budgets == {0: 0.0025, 1: 0.02, 2: 0.0025}


def test_a_flipped_byte_is_found(run, fault):
    done = run(
        'ring', '--max-words', '4', ranks=3, preload=fault('flip_byte'), env={'FLIP_OFFSET': '7'}
    )
    assert done.code != 0
    assert 'message from rank 0 of 8 bytes arrived wrong at offset 7' in done.err
    assert not list(done.files.glob('report.json'))


def test_a_late_first_message_does_not_shorten_the_batches(run, fault):
    """One operation to a batch would time the barrier before it as well."""
    done = run('ring', '--max-words', '1', '--budget', '0.5', preload=fault('late_message'))
    assert done.code == 0, done.err
    entry = done.report['results'][0]
    assert entry['size'] == 0
    # Rank 0 times laps of two hops in batches of at least 0.25 ms.
    assert 2 * entry['iterations_per_sample'] * entry['time']['p95'] > 100e-6
