"""``halo``: the answer of the heat equation, its figures, and that no damaged halo passes."""

import math
import os
import shutil

import pytest

from assay.machine.topology import usable_cores
from assay.witness import read_witness
from assay.witness.placement import misplaced_progress_thread
from families import dealt, on_one_mpi
from measured import check_head, check_samples
from running import UNDER_THREAD_SANITIZER

DIFFUSION_NUMBER = 0.125
WAVES = (2, 3, 1)


def phases(points, boundary):
    """Phase of the mode from one point to the next in each direction."""
    if boundary == 'fixed':
        return [math.pi * w / (n + 1) for w, n in zip(WAVES, points, strict=True)]
    return [2 * math.pi * w / n for w, n in zip(WAVES, points, strict=True)]


@pytest.mark.parametrize('boundary', ['fixed', 'periodic'])
@dealt('ranks', [1, 2, 3, 4])
def test_answer_and_figures(run, ranks, boundary):
    points, steps = (17, 23, 11), 6  # no number of ranks divides them
    mesh = ','.join(map(str, points))
    done = run(
        'halo',
        *('--n', mesh, '--steps', str(steps), '--boundary', boundary, '--budget', '0.05'),
        ranks=ranks,
    )
    assert done.code == 0, done.err
    report = done.report
    check_head(report, 'halo', ranks)
    assert math.prod(report['rank_grid']) == ranks
    assert report['arguments']['n'] == list(points)

    checks = report['checks']
    theta = phases(points, boundary)
    discrete = (1 - 2 * DIFFUSION_NUMBER * sum(1 - math.cos(t) for t in theta)) ** steps
    analytic = math.exp(-DIFFUSION_NUMBER * steps * sum(t * t for t in theta))
    assert checks['decay'] == pytest.approx(discrete, rel=1e-8)
    assert checks['decay_discrete'] == pytest.approx(discrete, rel=1e-8)
    assert checks['decay_analytic'] == pytest.approx(analytic, rel=1e-8)
    assert abs(checks['decay'] - analytic) <= checks['decay_tolerance'] < 1
    assert checks['error'] <= checks['error_tolerance'] == pytest.approx(7.1e-15, rel=0.01)

    results = {r['method']: r for r in report['results']}
    assert list(results) == ['compute_only', 'blocking', 'overlapped']
    limit = results['compute_only']
    for entry in results.values():
        check_samples(entry)
        rate = entry['iterations_per_second']
        assert rate == pytest.approx(steps / entry['time']['median'], rel=1e-6)
        assert entry['iterations_per_second_low'] <= rate <= entry['iterations_per_second_high']
        best = steps / entry['time']['best'] * math.prod(points)
        assert entry['points_per_second'] == pytest.approx(best, rel=1e-6)
        row = next(line.split() for line in done.out.splitlines() if entry['method'] in line)
        assert float(row[1]) == pytest.approx(rate, abs=0.051)  # printed with one decimal
    for entry in (results['blocking'], results['overlapped']):
        share = entry['communication_share']
        assert 0 <= share['min'] <= share['avg'] <= share['max'] < 1
        ratio = entry['iterations_per_second'] / limit['iterations_per_second']
        assert entry['efficiency'] == pytest.approx(ratio, rel=1e-6)


@dealt('points', ['2,2,3', '3,9,2', '100,2,1'])
def test_thin_meshes(run, points):
    done = run('halo', '--n', points, '--steps', '1', '--budget', '0.01', ranks=4)
    assert done.code == 0, done.err


@dealt('method', ['blocking', 'overlapped'])
def test_one_method(run, method):
    done = run('halo', '--n', '8,8,8', '--steps', '2', '--method', method, '--budget', '0.01')
    assert done.code == 0, done.err
    assert [r['method'] for r in done.report['results']] == ['compute_only', method]


#: Intel MPI gives each rank a part of the machine, here of one core, and Open MPI 4 a core each.
WITH_ALL_CORES = {'I_MPI_PIN': 'off', 'OMPI_MCA_hwloc_base_binding_policy': 'none'}

needs_two_cores = pytest.mark.skipif(usable_cores() < 2, reason='needs two cores')


@needs_two_cores
def test_a_progress_thread(run):
    """Three ranks share the machine's cores, so that only its place and its answers are tested."""
    steps = ('--n', '17,23,11', '--steps', '6', '--progress-thread', '--budget', '0.05')
    done = run('halo', *steps, ranks=3, env=WITH_ALL_CORES)
    assert done.code == 0, done.err
    results = {r['method']: r for r in done.report['results']}
    assert list(results) == ['compute_only', 'blocking', 'overlapped', 'threaded']
    check_samples(results['threaded'])
    # At least one in each chunk.
    assert done.report['progress_calls'] >= results['threaded']['clocks']['operations'] / 6


@needs_two_cores
def test_a_progress_thread_sits_on_a_core_of_its_own(witnessed, build):
    """Two ranks that may use all cores would share these: test_placement.py has their faults."""
    program = build('halo') / 'halo'
    done = witnessed(
        program,
        *('--n', '8,8,8', '--steps', '2', '--budget', '0.05', '--progress-thread'),
        ranks=1,
        env=WITH_ALL_CORES,
    )
    assert done.code == 0, done.err
    seen = read_witness(done.files / 'report.json')
    assert misplaced_progress_thread(seen, 'progress') is None


@on_one_mpi
@pytest.mark.skipif(not shutil.which('setarch'), reason='needs setarch, for the sanitizer')
@needs_two_cores
def test_a_progress_thread_does_not_race(witnessed, build):
    done = witnessed(
        *('setarch', '-R', str(build('halo', 'thread') / 'halo')),
        *('--n', '8,8,8', '--steps', '2', '--budget', '0.05', '--progress-thread'),
        env={**WITH_ALL_CORES, **UNDER_THREAD_SANITIZER},
        preload='',
    )
    assert done.code == 0, done.err


def test_a_progress_thread_needs_a_second_core(witnessed, build):
    program = build('halo') / 'halo'
    cpu = str(min(os.sched_getaffinity(0)))
    done = witnessed('taskset', '-c', cpu, str(program), '--progress-thread')
    assert done.code == 2
    assert 'a progress thread needs a core of its own' in done.err


# Rank 1 of 2 receives a message in the exchange before each chunk, and one in each of its 10
# steps: 0 to 10 in the first blocking chunk, 11 to 21 in the first overlapped one, then again.
IN_MESSAGE = 8 * (8 * 16 + 8)  # a value that is not small, by its lowest byte
FAULTS = {
    'flip before blocking': ('flip_byte', 0, 0, 'halo from the west (rank 0) arrived wrong'),
    'flip before overlapped': ('flip_byte', 11, 0, 'halo from the west (rank 0) arrived wrong'),
    'flip in blocking': ('flip_byte', 4, 6, 'field is wrong after 10 blocking steps'),
    'flip in overlapped': ('flip_byte', 15, 6, 'field is wrong after 10 overlapped steps'),
    'low bits in blocking': ('flip_byte', 26, 0, 'differs from that of the first chunk'),
    'low bits in overlapped': ('flip_byte', 37, 0, 'differs from that of the first chunk'),
    'drop before blocking': ('drop_message', 0, 0, 'halo from the west (rank 0) arrived wrong'),
    'drop in blocking': ('drop_message', 1, 0, 'found nan'),
    'late drop in blocking': ('drop_message', 10, 0, 'field is wrong after 10 blocking steps'),
    'drop in overlapped': ('drop_message', 17, 0, 'field is wrong after 10 overlapped steps'),
}


@dealt('case', FAULTS)
def test_damaged_halos_are_found(run, fault, case):
    library, message, byte, sentence = FAULTS[case]
    done = run(
        'halo',
        *('--n', '32,16,16', '--steps', '10', '--budget', '0.2'),
        preload=fault(library),
        env={
            'FLIP_MESSAGE': str(message),
            'FLIP_OFFSET': str(IN_MESSAGE + byte),
            'DROP_MESSAGE': str(message),
        },
    )
    assert done.code != 0
    assert library in done.err
    assert sentence in done.err
    assert not list(done.files.glob('report.json'))


@needs_two_cores
def test_damage_beside_a_progress_thread_is_found(run, fault):
    done = run(
        'halo',
        *('--n', '32,16,16', '--steps', '10', '--budget', '0.05', '--progress-thread'),
        preload=fault('drop_message'),
        # Behind those of blocking and overlapped, in threaded.
        env={**WITH_ALL_CORES, 'DROP_MESSAGE': '27'},
    )
    assert done.code != 0
    assert 'field is wrong after 10 threaded steps' in done.err


@dealt('message', [0, 1, 2, 3])
def test_damage_from_every_neighbour_is_found(run, fault, message):
    done = run(
        'halo',
        *('--n', '9,9,9', '--steps', '2', '--boundary', 'periodic', '--budget', '0.05'),
        ranks=4,
        preload=fault('flip_byte'),
        env={'FLIP_MESSAGE': str(message)},
    )
    side, rank = [('east', 3), ('west', 3), ('north', 0), ('south', 0)][message]
    assert done.code != 0
    assert f'rank 1: the halo from the {side} (rank {rank}) arrived wrong' in done.err


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['--n', '0,8,8'], '--n 0,8,8 is wrong'),
        (['--n', '8,8'], '--n takes three whole numbers'),
        (['--n', '8,8,8.5'], '--n takes three whole numbers'),
        (['--n', '8,8,x'], '--n 8,8,x is wrong'),
        (['--n', '1,8,8'], '--n has 1 points in x for 2 ranks'),
        (['--n', '100000,100000,100000'], 'GiB are available'),
        (['--n', '4,4,4', '--steps', '1000'], 'use fewer --steps or a larger --n'),
        (['--method', 'fast'], '--method fast is wrong'),
        (['--steps', '0'], '--steps 0 is wrong'),
        (['--fast'], '--fast'),
    ],
)
@on_one_mpi
def test_wrong_use(run, arguments, sentence):
    done = run('halo', *arguments)
    assert done.code == 2
    assert sentence in done.err
    assert done.err.count('halo: ') == 1
    assert not list(done.files.glob('report.json*'))
