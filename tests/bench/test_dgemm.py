"""``dgemm``: its figures, and that wrong products do not pass."""

import pytest

from families import dealt, on_one_mpi
from measured import check_head, check_samples


@dealt('ranks', [1, 3])
def test_figures(run, ranks):
    done = run('dgemm', '--n', '150', '--budget', '0.05', ranks=ranks)
    assert done.code == 0, done.err
    report = done.report
    check_head(report, 'dgemm', ranks)
    assert report['blas'] and report['threads_per_rank'] >= 1
    (entry,) = report['results']
    check_samples(entry)
    assert entry['n'] == 150
    assert entry['rate'] == pytest.approx(2 * 150**3 * ranks / entry['time']['median'], rel=1e-6)
    assert entry['rate_best'] >= entry['rate']
    assert entry['rate_best'] == pytest.approx(2 * 150**3 * ranks / entry['time']['best'], rel=1e-6)
    # Before, between and after the bouts.
    assert len(entry['limits']) == len(entry['bouts']) + 1 == 5
    assert entry['limit'] == sorted(entry['limits'])[2] > 1e9 * ranks
    rates = entry['per_rank']
    assert len(rates) == ranks
    spread = entry['rank_rates']
    assert spread['min'] == min(rates) <= spread['median'] <= spread['max'] == max(rates)
    assert entry['slowest']['rate'] == rates[entry['slowest']['rank']] == min(rates)
    assert entry['slowest']['host'] == report['hosts'][0]


@on_one_mpi
def test_wrong_product(run, fault):
    done = run('dgemm', '--n', '50', '--budget', '0.01', preload=fault('no_product'))
    assert done.code == 3
    assert 'the product on host' in done.err and 'is wrong in column 0' in done.err
    assert not (done.files / 'report.json').exists()


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['--n', '0'], '--n 0 is wrong'),
        (['--n', 'x'], '--n x is wrong'),
        (['--n', '150000'], 'GiB are available; use a smaller --n'),
    ],
)
@on_one_mpi
def test_wrong_use(run, arguments, sentence):
    done = run('dgemm', *arguments, ranks=1)
    assert done.code == 2
    assert sentence in done.err
