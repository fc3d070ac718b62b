"""Guidelines of collectives: kept by what a good MPI measures, violated by each bad algorithm."""

import json
import math

import pytest

from assay.programs.guidelines import FACTOR, OPERATIONS, guidelines
from golden_jobs import JOBS

SIZES = [8 << power for power in range(18)]
RANKS = 4


def good(operation, size):
    """Seconds: steps of 1 us, and 10 GB/s for what the busiest rank sends or receives."""
    blocks = 1 if operation in ('bcast', 'reduce', 'allreduce') else RANKS
    twice = 2 if operation in ('allreduce', 'reduce_scatter') else 1
    return twice * (math.log2(RANKS) * 1e-6 + blocks * size / 1e10)


def results(spoil=lambda operation, size: 1.0, spread=1.0, bouts=2):
    """What a job measured, of an MPI that is good but for the factors of ``spoil``."""
    barrier = {'op': 'barrier', 'size': 0, 'time': {'best': 1e-6, 'median': 1e-6 * spread}}
    return [barrier] + [
        {
            'op': operation,
            'size': size,
            'bouts': [1.0] * bouts,
            'time': {'best': seconds, 'median': seconds * spread},
        }
        for operation in OPERATIONS
        for size in SIZES
        for seconds in [good(operation, size) * spoil(operation, size)]
    ]


def said(measured):
    return [violation for one in guidelines(measured, RANKS) for violation in one.violations()]


def test_a_good_mpi_keeps_them():
    assert said(results()) == []
    assert 0.9 < guidelines(results(), RANKS)[0].worst < FACTOR


@pytest.mark.parametrize('operation', OPERATIONS)
def test_one_slow_operation_is_named_with_its_sizes(operation):
    def spoil(one, size):
        return 20.0 if one == operation and 1 << 10 <= size <= 64 << 10 else 1.0

    found = said(results(spoil))
    assert found
    assert any(one.startswith(f'{operation} takes ') for one in found)
    # What is made of it is no slower than it.
    assert {one.split()[0] for one in found} == {operation}


@pytest.mark.parametrize('ranks', [3, 6])
def test_blocks_that_were_not_measured_are_padded(ranks):
    def spoil(one, size):
        return 20.0 if one in ('bcast', 'allreduce') and size >= 1 << 10 else 1.0

    measured = [one for one in results(spoil) if one['op'] != 'reduce']
    found = [line for one in guidelines(measured, ranks) for line in one.violations()]
    assert any('as long as scatter and allgather' in one for one in found)
    assert any('as long as reduce_scatter and allgather' in one for one in found)


def test_a_finding_has_the_least_factor_and_the_range_of_its_sizes():
    def spoil(one, size):
        return {2048: 30.0, 4096: 20.0}.get(size, 1.0) if one == 'allreduce' else 1.0

    expected = 20 * good('allreduce', 4096) / (good('reduce', 4096) + good('bcast', 4096))
    words = f'allreduce takes {expected:.1f} times as long as reduce and bcast, or longer, '
    assert f'{words}from 2048 to 4096 bytes' in said(results(spoil))


def test_a_single_size_is_no_finding():
    def spoil(one, size):
        return 20.0 if (one, size) == ('bcast', 4096) else 1.0

    assert said(results(spoil)) == []


def test_samples_that_others_slowed_down_are_no_finding():
    """Of the slow operation the best sample counts, of its parts the median."""

    def spoil(one, size):
        return 8.0 if one == 'allreduce' else 1.0

    assert said(results(spoil)) != []
    assert said(results(spoil, spread=4.0)) == []


def test_sizes_that_were_measured_in_one_bout_each_are_no_finding():
    """Neighbours are then measured within milliseconds, and meet the same disturbance."""

    def spoil(one, size):
        return 20.0 if one == 'bcast' and 1 << 10 <= size <= 64 << 10 else 1.0

    assert said(results(spoil)) != []
    assert said(results(spoil, bouts=1)) == []
    assert guidelines(results(spoil, bouts=1), RANKS)[0].worst == 0
    measured = results(spoil, bouts=1)
    for one in measured:
        if one['size'] == 8 << 10:
            one['bouts'] = [1.0, 1.0]
    assert any('from 1024 to 65536 bytes' in one for one in said(measured))


def test_sizes_that_were_measured_in_some_of_the_rounds_are_no_finding():
    def spoil(one, size):
        return 20.0 if one == 'bcast' and 16 << 10 <= size <= 32 << 10 else 1.0

    measured = results(spoil, bouts=2)
    assert said(measured) != []
    for one in measured:
        if one['size'] in (8 << 10, 64 << 10):
            one['bouts'] = 4 * [1.0]
    assert said(measured) == []


def test_what_was_not_measured_is_left_out():
    measured = [one for one in results() if one['op'] in ('bcast', 'allreduce')]
    held = guidelines(measured, RANKS)
    assert {one.operation for one in held if one.factors} == {'bcast', 'allreduce'}
    assert guidelines([], RANKS)[0].worst == 0


@pytest.mark.parametrize('run', ['openmpi-tcp', 'mpich-ofi-tcp'])
def test_real_jobs_keep_them(run):
    report = json.loads((JOBS / 'Collectives' / run / 'result.json').read_text())
    held = guidelines(report['results'], report['ranks'])
    assert [violation for one in held for violation in one.violations()] == []
    assert held[0].worst < 1.2


def test_a_real_job_whose_slow_sizes_had_a_bout_each():
    """bcast of 128 and 256 KiB takes 2.6 times as long as its parts, of 64 and of 512 KiB less."""
    report = json.loads((JOBS / 'Collectives' / 'intelmpi-shm' / 'result.json').read_text())
    held = guidelines(report['results'], report['ranks'])[0]
    assert (held.operation, held.parts, round(held.worst, 1)) == ('scatter', 'bcast', 2.3)
    for one in report['results']:
        one.setdefault('bouts', 4 * [one['time']['best']])
    held = guidelines(report['results'], report['ranks'])[0]
    assert (held.operation, round(held.worst, 1)) == ('bcast', 2.6)
