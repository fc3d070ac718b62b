"""miniMD's report: upstream's real outputs, and what is wrong in them."""

import math
from pathlib import Path

import pytest

from assay.programs.application import Problem, WrongAnswerError
from assay.programs.minimd import MiniMD

GOLDEN = Path(__file__).parents[1] / 'golden' / 'minimd'
FACTS = {'cells': (32, 32, 32), 'atoms': 131072, 'steps': 100}


def read(output, ranks=2, threads=1, **facts):
    return MiniMD().read(output, Path(), Problem([], facts={**FACTS, **facts}), ranks, threads)


def golden(name='upstream-np2'):
    return (GOLDEN / f'{name}.out').read_text()


def read_ours(output, threads=1):
    return read(output, threads=threads, cells=(20, 20, 20), atoms=32000)


def test_upstream():
    figures = read(golden())
    assert figures['performance'].value == pytest.approx(2128525.631035)
    assert figures['force_time'].value == pytest.approx(4.491852)
    assert figures['force_rate'].value == pytest.approx(131072 * 100 / 4.491852)
    assert sorted(figures) == [
        'communication_time',
        'force_rate',
        'force_time',
        'neighbour_time',
        'other_time',
        'performance',
        'total_time',
    ]


def test_upstream_with_threads():
    figures = read(golden('upstream-t2'), 1, 2, cells=(20, 20, 20), atoms=32000)
    assert figures['total_time'].unit == 's'


def test_ours():
    figures = read_ours(golden('ours-np2'))
    assert figures['force_of_limit'].value == pytest.approx(0.129962)
    assert figures['force_imbalance'].value == pytest.approx(0.461185 / 0.422408, rel=1e-4)
    assert figures['force_imbalance'].better == 'lower'


def test_the_best_windows_of_ours():
    figures = read_ours(golden('ours-np2'))
    assert figures['force_rate'].value == 1.95714e7
    assert figures['force_rate'].unit == 'atom-steps/s'
    assert figures['neighbour_rate'].value == 1.85e6
    assert figures['force_whole_of_best'].value == 0.305578
    assert 'neighbour_whole_of_best' not in figures
    assert figures['performance'].value == pytest.approx(3559815.040376)


@pytest.mark.parametrize(
    ('old', 'new'), [('1.95714e+07', 'inf'), ('0.305578', 'nan'), ('1.85e+06', '0')]
)
def test_windows_that_are_no_numbers(old, new):
    with pytest.raises(WrongAnswerError, match='no number above zero'):
        read_ours(golden('ours-np2').replace(old, new))


def test_ranks_with_different_threads():
    said = golden('ours-np2').replace('threads: 1\n', 'threads: 2 (least 1, of all ranks 3)\n')
    assert read_ours(said.replace('\n2 1 100', '\n2 2 100'), threads=2)


LINE = '100 8.200911e-01 -5.852702e+00 -1.873921e-01  6.158'


@pytest.mark.parametrize(
    ('old', 'new', 'sentence'),
    [
        ('MPI processes: 2', 'MPI processes: 1', 'ran with MPI processes: 1, not 2'),
        ('OpenMP threads: 1', 'OpenMP threads: 2', 'ran with OpenMP threads: 2, not 1'),
        ('Atoms: 131072', 'Atoms: 4', 'ran with Atoms: 4, not 131072'),
        ('cells: 32 32 32', 'cells: 32 32 16', r'unit cells: \(32, 32, 16\)'),
        ('ForceStyle: LJ', 'ForceStyle: EAM', 'ran with ForceStyle: EAM, not LJ'),
        ('neighborlists: 1', 'neighborlists: 0', 'ran with Half neighborlists: 0, not 1'),
        ('2 1 100 131072', '4 1 100 131072', 'summary is of 4 ranks, not 2'),
        ('PERF_SUMMARY', '', 'no performance summary'),
        (' 4.491852 ', ' nan ', 'not a performance summary'),
        (' 4.491852 ', ' 4.4\n', 'not a performance summary'),
        (' 4.491852 ', ' 0.000000 ', 'force in the performance summary is 0.0'),
        (LINE, '', 'ended at step 0 of 100'),
        (LINE, LINE.replace('-5.852702e+00', 'nan'), 'is no finite number'),
        (LINE, LINE.replace('-5.852702e+00', '-6.852702e+00'), 'drifts by 1.01 per atom'),
        (LINE, LINE.replace('-5.852702e+00', '-5.85-'), 'is no finite number'),
        ('-6.773368e+00', '-6.773000e+00', 'starts at energy -6.773, not at -6.773368'),
        ('\n0 1.44', '\n5 1.44', 'lacks its first state'),
    ],
)
def test_wrong_answers(old, new, sentence):
    assert old in golden()
    with pytest.raises(WrongAnswerError, match=sentence):
        read(golden().replace(old, new))


@pytest.mark.parametrize(
    ('old', 'new', 'sentence'),
    [
        ('bound 1e-10: PASSED', 'bound 1e-10: FAILED', 'own check failed: Momentum per atom'),
        ('\t# All: PASSED\n', '', 'no verdict'),
        ('\t# All: PASSED\n', '\t# All: FAILED\n', 'own check failed: All'),
        ('fraction 0', 'fraction nan 0', 'printed no limit'),
        ('fraction 0', 'fraction -0', 'no number above zero'),
        ('# Force time of ranks', '# Force', 'printed no limit'),
    ],
)
def test_wrong_answers_of_ours(old, new, sentence):
    with pytest.raises(WrongAnswerError, match=sentence):
        read_ours(golden('ours-np2').replace(old, new))


def test_times_of_the_table():
    """Each row has its time by two clocks."""
    row = "Time of the table to step 100: {} s; by the system's clock {} to {}\n"
    ours = golden('ours-np2') + row.format(0.8983, 0.89829, 0.89831)
    assert read_ours(ours)
    for other, sentence in [
        (ours.replace('  0.898\n', '  0.449\n'), r'is of 0\.449 s, but it took 0\.8983 of'),
        (ours.replace('0.89831', '0.89829').replace('0.89829', '0.9'), "by the system's clock"),
        (golden('ours-np2') + row.format(*3 * [0.89899]), r'took 0\.89899 of 0\.898923 s'),
        (ours.replace('to step 100', 'to step 90'), 'no time of the table to step 100'),
    ]:
        with pytest.raises(WrongAnswerError, match=sentence):
            read_ours(other)


def test_no_input():
    with pytest.raises(WrongAnswerError, match='no performance summary'):
        read(golden('upstream-noinput'))


def test_singletons():
    with pytest.raises(WrongAnswerError, match='2 miniMD ran beside each other'):
        read(golden() * 2)


def test_every_truncation():
    lines = golden('ours-np2').rstrip().splitlines(keepends=True)
    for end in range(len(lines)):
        with pytest.raises(WrongAnswerError):
            read_ours(''.join(lines[:end]))


@pytest.mark.parametrize('size', [2000, 1e5, 1e7, 123456789, 3e9, 1e13])
def test_problem_fills_the_size(size):
    problem = MiniMD().problem(size, ranks=3, threads=2)
    x, y, z = problem.facts['cells']
    assert problem.facts['atoms'] == 4 * x * y * z
    assert 0.8 * size < problem.facts['atoms'] * 500 <= size
    assert x <= y <= z <= 1.5 * x + 2
    assert math.isclose(x, z, rel_tol=0.1) or x < 20
    assert 100 <= problem.facts['steps'] <= 2000
    assert problem.arguments[-6:] == ['-nx', str(x), '-ny', str(y), '-nz', str(z)]
    lines = problem.files['in.lj.miniMD'].splitlines()
    assert len(lines) == 14
    assert lines[6] == f'{x} {y} {z}'


def test_a_cube_stays_one():
    assert MiniMD().problem(64**3 * 2000, 1, 1).facts['cells'] == (64, 64, 64)


def test_the_problem_is_the_same_for_any_number_of_ranks():
    assert MiniMD().problem(1e7, 1, 1).facts == MiniMD().problem(1e7, 64, 2).facts


def test_too_small_a_size():
    with pytest.raises(ValueError, match='needs 2000 bytes at least'):
        MiniMD().problem(1999, 1, 1)
