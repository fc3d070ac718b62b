"""Series of runs: which points there are, and what their rates say."""

import pytest

from assay.programs.series import (
    Point,
    balance_figures,
    factorisations,
    scaling_figures,
    scaling_points,
    sizes_up_to,
)
from assay.programs.sizes import SIZES, NodeMemory, last_level_caches, working_set

GIB = 1 << 30


def test_strong_points_keep_the_problem_of_one_node():
    points = scaling_points(cores=6, nodes=4, size='memory', weak=False)
    assert [(p.ranks, p.nodes) for p in points] == [
        (1, 1),
        (2, 1),
        (4, 1),
        (6, 1),
        (12, 2),
        (24, 4),
    ]
    assert {p.worth for p in points} == {1.0}
    assert len({p.name for p in points}) == len(points)


def test_weak_points_grow_with_the_ranks():
    points = scaling_points(cores=4, nodes=2, size='cache', weak=True)
    assert [p.worth / p.ranks for p in points] == [0.25] * 4
    assert points[-1] == Point(8, 1, 2, 'cache', 2.0)


def test_a_node_is_filled_in_every_way():
    points = factorisations(cores=12, nodes=2, size='memory')
    assert [(p.ranks, p.threads) for p in points] == [
        *((24, 1), (12, 2), (8, 3), (6, 4), (4, 6), (2, 12))
    ]
    assert {p.worth for p in points} == {2.0}


def test_sizes_end_at_the_one_asked_for():
    assert [p.size for p in sizes_up_to(4, 1, 'cache')] == ['starved', 'cache']
    assert [p.size for p in sizes_up_to(4, 1, 'largest')] == list(SIZES)


def test_figures_of_a_series():
    figures = scaling_figures([1, 2, 4, 8], [10.0, 19.0, 30.0, 33.0])
    assert figures['speedup_4'].value == pytest.approx(3.0)
    assert figures['efficiency_4'].value == pytest.approx(0.75)
    assert figures['efficiency'].value == figures['efficiency_8'].value
    # From 4 to 8 ranks a tenth is won of what could be doubled.
    assert figures['knee'].value == 4


def test_no_knee_before_the_end_of_a_perfect_series():
    assert scaling_figures([1, 2, 6], [1.0, 2.0, 6.0])['knee'].value == 6
    assert scaling_figures([1, 2, 6], [1.0, 1.2, 6.0])['knee'].value == 1


def test_balance():
    figures = balance_figures([3.0, 4.0, 2.0], 'Mflop/s')
    assert (figures['best'].value, figures['worst'].value) == (4.0, 2.0)
    assert figures['worst_over_best'].value == 0.5


def test_sizes_against_caches_and_memory():
    memory = NodeMemory(caches=64 << 20, total=100 * GIB)
    sizes = [working_set(size, memory) for size in SIZES]
    assert sizes == [4 << 20, 32 << 20, 10 * GIB, 80 * GIB]
    # Where there is little memory, the caches still do not hold it.
    assert working_set('memory', NodeMemory(caches=GIB, total=8 * GIB)) == 4 * GIB


def test_an_unknown_size():
    with pytest.raises(ValueError, match="unknown size 'huge': choose from starved, cache"):
        working_set('huge', NodeMemory(1, 1))


def test_last_level_caches():
    topology = {
        'caches': [
            {'type': 'L1', 'size': 32 << 10, 'cpusets': ['0x1', '0x2']},
            {'type': 'L3', 'size': 16 << 20, 'cpusets': ['0x1', '0x2']},
            {'type': 'L2', 'size': 1 << 20, 'cpusets': ['0x1', '0x2']},
        ]
    }
    assert last_level_caches(topology) == 32 << 20
    assert last_level_caches({}) == 64 << 20
