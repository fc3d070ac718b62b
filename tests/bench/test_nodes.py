"""``nodes``: each node's report, what the host has, and that wrong answers are told."""

import os

import pytest

from families import on_one_mpi
from measured import check_head

SHORT = ('--sweeps', '2', '--budget', '0.002', '--size', '1M', '--n', '100')
TEAMS = [(2, 1), (1, 2)]
"""Ranks and threads."""


@pytest.mark.parametrize(('ranks', 'threads'), TEAMS)
def test_nodes(run, ranks, threads):
    done = run('nodes', *SHORT, ranks=ranks, env={'OMP_NUM_THREADS': str(threads)})
    assert done.code == 0, done.err
    report = done.report
    check_head(report, 'nodes', ranks)
    (node,) = report['results']
    assert node['node'] == report['hosts'][0]
    for mode in ('alone', 'together'):
        assert {*node[mode]} == {'triad', 'dgemm', 'frequency', 'taken'}
        for name in ('triad', 'dgemm', 'frequency'):
            assert len(node[mode][name]) == 2
            assert all(1e6 < value < 1e14 for value in node[mode][name])
        assert all(0 <= share <= 2 for share in node[mode]['taken'])
    assert {*node['noise']} == {'share', 'longest'}
    for name, most in (('share', 1), ('longest', 60)):
        assert len(node['noise'][name]) == 2
        assert all(0 <= value < most for value in node['noise'][name])
    facts = node['facts']
    assert facts['cpus'] == os.cpu_count()
    assert facts['memory'] == os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    assert 'wrong' not in node
    assert node['node'] in done.out


@on_one_mpi
@pytest.mark.parametrize(
    'wrong', [('--sweeps', '0'), ('--sweeps', '65'), ('--waves', '0'), ('--n', '0')]
)
def test_wrong_use(run, wrong):
    done = run('nodes', *wrong, ranks=1)
    assert done.code == 2
    assert wrong[0] in done.err


@on_one_mpi
def test_too_much_memory_is_refused(run):
    done = run('nodes', '--size', '100000G', ranks=1)
    assert done.code == 2
    assert 'use a smaller --size or --n' in done.err


@on_one_mpi
def test_a_wrong_answer_is_told_and_ends_nothing(run, fault):
    # Of the array in the middle, which the triad reads.
    env = {'OMP_NUM_THREADS': '1', 'FLIP_RANK': '1', 'FLIP_SIXTHS': '3'}
    done = run('nodes', *SHORT, '--size', '64M', preload=fault('flip_memory'), env=env)
    assert done.code == 0, done.err
    (node,) = done.report['results']
    assert node['wrong'] == 'an array in memory'
