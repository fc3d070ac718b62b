"""Guidelines of collectives: what was measured of each, and what is told of those violated."""

import json
import math

import pytest

from assay.programs.guidelines import (
    FACTOR,
    FACTOR_OF_SIZES,
    FEWEST_ROUNDS,
    IN_ONE_STEP,
    guidelines,
    violations,
)
from golden_jobs import JOBS


def entry(factors, op='bcast', other='messages that do the same', size=4096):
    return {'op': op, 'other': other, 'size': size, 'factors': factors}


def test_the_least_of_all_rounds_counts():
    held = guidelines([entry([1.5, 1.2, 9.0, 2.0]), entry([3.0, 4.0, 5.0, 6.0], op='reduce')], 2)
    assert [(one.operation, one.factor) for one in held] == [('reduce', 3.0), ('bcast', 1.2)]


@pytest.mark.parametrize('known', range(5))
def test_enough_rounds_have_to_be_known(known):
    held = guidelines([entry([3.0] * known + [0] * (4 - known))], 2)
    assert [one.factor for one in held] == [3.0] * (known >= FEWEST_ROUNDS)


def test_a_round_without_violation_is_no_finding():
    bad = [FACTOR] * 4
    assert violations(guidelines([entry(bad)], 2)) != []
    assert violations(guidelines([entry([*bad[1:], 0.99 * FACTOR])], 2)) == []


def test_other_sizes_may_have_other_protocols():
    factors = [0.99 * FACTOR_OF_SIZES] * 4
    assert violations(guidelines([entry(factors, other='itself with twice the bytes')], 2)) == []
    assert violations(guidelines([entry(factors)], 2)) != []


@pytest.mark.parametrize(('ranks', 'factor'), [(2, 2), (3, 2 * math.log2(3)), (4, 4), (64, 4)])
@pytest.mark.parametrize('pair', sorted(IN_ONE_STEP))
def test_to_all_in_one_step(pair, ranks, factor):
    operation, other = pair
    for measured, is_bad in ((1.01 * factor, True), (0.99 * factor, False)):
        held = guidelines([entry([measured] * 4, op=operation, other=other)], ranks)
        assert bool(violations(held)) == is_bad


def test_an_operation_is_told_once_with_all_sizes_of_its_worst_guideline():
    held = guidelines(
        [
            entry([3.0] * 4, size=32768),
            entry([5.0] * 4, size=4096),
            entry([1.0] * 4, size=8),
            entry([4.0] * 4, other='allreduce'),
            entry([6.0] * 4, op='barrier', size=0),
        ],
        2,
    )
    assert violations(held) == [
        'barrier takes 6.0 times as long as messages that do the same',
        'bcast takes 5.0 times as long as messages that do the same, at 4096, 32768 bytes',
    ]


@pytest.mark.parametrize('run', ['openmpi-tcp', 'mpich-ofi-tcp'])
def test_real_jobs_keep_them(run):
    report = json.loads((JOBS / 'Collectives' / run / 'result.json').read_text())
    held = guidelines(report['guidelines'], 2)
    assert {one.operation for one in held} >= {'barrier', 'allreduce', 'alltoall', 'scatter'}
    assert violations(held) == []
