"""HPCG's problems and its report: a real one, those of runs that went wrong, and wrong numbers."""

import json
import re
from pathlib import Path

import pytest

from assay.programs.application import Problem, WrongAnswerError
from assay.programs.hpcg import Hpcg

GOLDEN = Path(__file__).parents[1] / 'golden' / 'jobs' / 'HPCG' / 'openmpi-shm'
(REPORT,) = GOLDEN.glob('HPCG-Benchmark*')
TEXT = REPORT.read_text()
ASKED = {'local': (16, 16, 32), 'processes': (1, 1, 2)}


def read(folder, text=TEXT, ranks=2, threads=1, **asked):
    (folder / REPORT.name).write_text(text)
    return Hpcg().read('', folder, Problem([], facts=ASKED | asked), ranks, threads)


def line(name):
    """The line of the report that begins so."""
    return re.search(rf'^{re.escape(name)}.*\n', TEXT, re.MULTILINE)[0]


def test_a_real_report(tmp_path):
    values = {name: figure.value for name, figure in read(tmp_path).items()}
    printed = dict(re.findall('(.*?)=(.*)', TEXT))
    rates = 'GFLOP/s Summary::Raw'
    for name, said in {
        'rating': 'Final Summary::HPCG result is VALID with a GFLOP/s rating of',
        'bandwidth': 'GB/s Summary::Raw Total B/W',
        'setup_time': 'Setup Information::Setup Time',
        'ddot_rate': f'{rates} DDOT',
        'waxpby_rate': f'{rates} WAXPBY',
        'spmv_rate': f'{rates} SpMV',
        'mg_rate': f'{rates} MG',
    }.items():
        assert values.pop(name) == pytest.approx(float(printed[said]), rel=1e-5)
    sets = int(printed['Iteration Count Information::Total number of optimized iterations']) // 50
    total = float(printed['Benchmark Time Summary::Total'])
    assert values == {'set_time': total / sets}


def edited(name, value):
    """The report with another value in one line."""
    old = line(name)
    return TEXT.replace(old, f'{old.partition("=")[0]}={value}\n')


SYMMETRY = "Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon::"
VALID = 'Final Summary::HPCG result is VALID with a GFLOP/s rating of'
TIMES = 'Benchmark Time Summary::'
COUNTS = 'Floating Point Operations Summary::Raw '
WRONG = {
    'spectral': (edited('Spectral Convergence Tests::Result', 'FAILED'), 'own test'),
    'symmetry': (edited(f'{SYMMETRY}Result', 'FAILED'), "own test 'Departure from Symmetry'"),
    'symmetry nan': (edited(f'{SYMMETRY}Departure for MG', '-nan'), 'not a number from 0 on'),
    'symmetry far': (edited(f'{SYMMETRY}Departure for SpMV', '1.5'), 'SpMV of HPCG departs'),
    'iterations': (edited('Iteration Count Information::Result', 'FAILED'), 'own test'),
    'reproducible': (edited('Reproducibility Information::Result', 'FAILED'), 'own test'),
    'residual': (edited('Reproducibility Information::Scaled residual mean', '1'), 'to 1 of what'),
    'residual nan': (edited('Reproducibility Information::Scaled residual mean', 'nan'), 'not a n'),
    'invalid': (
        TEXT.replace(line(VALID), 'Final Summary::HPCG result is=INVALID.\n'),
        'does not call its result valid',
    ),
    'fewer': (edited('Iteration Count Information::Optimized', '40'), 'made .* in sets of 40'),
    'no set': (
        edited('Iteration Count Information::Total number of opt', '0'),
        'made 0 iterations',
    ),
    'part of a set': (edited('Iteration Count Information::Total number of opt', '75'), 'made 75'),
    'reference': (edited('Iteration Count Information::Reference', '25'), '25; not 50'),
    'easier': (edited('Linear System Information::Number of Nonzero', '200000'), '200000; not '),
    'coarse': (TEXT.replace('Equations=2048\n', 'Equations=2000\n'), '; not 2048, 256, 32'),
    'a level less': (TEXT.replace('Coarse Grids::Number of Equations=32\n', ''), '; not 2048, 256'),
    'no smoothing': (TEXT.replace('Presmoother Steps=1', 'Presmoother Steps=0'), 'Presmoother'),
    'rating': (edited(VALID, '99.9'), 'which is to be'),
    'rating nan': (edited(VALID, 'nan'), 'not a number from 0 on'),
    'rating inf': (edited(VALID, 'inf'), 'not a number from 0 on'),
    'bandwidth': (edited('GB/s Summary::Raw Total B/W', '50'), 'which is to be'),
    'total': (edited(f'{TIMES}Total', '0.5'), 'the parts of HPCG took longer'),
    'no time': (re.sub(f'({TIMES}.*=).*', r'\g<1>0', TEXT), 'or none'),
    'flops': (edited(f'{COUNTS}MG', '1e+12'), 'which is to be'),
    'twice': (TEXT + TEXT, '2 lines'),
    'empty': ('', 'not whole'),
    'cut in its last line': (TEXT[:-3], 'not whole'),
    'cut before its end': (TEXT[: TEXT.index(VALID)], 'does not call its result valid'),
    'cut in the middle': (TEXT[: TEXT.index(TIMES)], 'not whole'),
}


@pytest.mark.parametrize('name', WRONG)
def test_a_report_that_is_not_right(name, tmp_path):
    text, words = WRONG[name]
    assert text != TEXT
    with pytest.raises(WrongAnswerError, match=words):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ('name', 'value', 'words'),
    [
        (
            'Iteration Count Information::Total number of optimized',
            3250,
            'reported 3250 iterations',
        ),
        (f'{TIMES}Total', 24, 'reported 24.0348 s, but took 23.78'),
        ('Setup Information::Setup Time', 1, 'reported 24.342 s, but took 23.78'),
    ],
)
def test_a_report_that_is_not_what_the_witness_saw(name, value, words, tmp_path):
    (process, _) = json.loads((GOLDEN / 'witness.json').read_text())['processes']
    seen = process['wall'], {name: call['count'] for name, call in process['calls'].items()}
    (tmp_path / REPORT.name).write_text(TEXT)
    Hpcg().check_witnessed(tmp_path, *seen)
    (tmp_path / REPORT.name).write_text(edited(name, value))
    with pytest.raises(WrongAnswerError, match=words):
        Hpcg().check_witnessed(tmp_path, *seen)


@pytest.mark.parametrize(
    ('asked', 'words'),
    [
        ({'ranks': 4}, 'Distributed Processes: 2; not 4'),
        ({'threads': 2}, 'Threads per processes: 1; not 2'),
        ({'local': (16, 16, 40)}, 'Global nz: 64; not 80'),
        ({'processes': (1, 2, 1)}, 'Global ny: 16; not 32'),
    ],
)
def test_another_problem_than_was_asked_for(asked, words, tmp_path):
    with pytest.raises(WrongAnswerError, match=words):
        read(tmp_path, **asked)


def test_a_job_without_a_report_of_its_own(tmp_path):
    (tmp_path / 'hpcg20261126T121608.txt').write_text('The process grid sizes are invalid\n')
    problem = Problem([], facts=ASKED)
    with pytest.raises(WrongAnswerError, match=r'0 reports, not 1 \(The process grid sizes are in'):
        Hpcg().read('', tmp_path, problem, 2, 1)
    (tmp_path / 'HPCG-Benchmark_3.1_of_before.txt').write_text(TEXT)
    with pytest.raises(WrongAnswerError, match='2 reports, not 1'):
        read(tmp_path)


@pytest.mark.parametrize('ranks', [1, 2, 3, 6, 64, 96, 128, 192])
@pytest.mark.parametrize('each', [16**3, 20**3, 33**3, 100**3])
def test_a_problem_is_of_the_size_that_was_asked_for(ranks, each):
    """HPCG takes multiples of 8 from 16 on, and nothing that is far from a cube."""
    problem = Hpcg().problem(900 * each * ranks, ranks, 1)
    local, processes = problem.facts['local'], problem.facts['processes']
    x, y, z = local
    assert all(edge % 8 == 0 and edge >= 16 for edge in local)
    assert each / 2.2 < x * y * z <= each
    assert min(local) >= max(local) / 8
    assert processes[0] * processes[1] * processes[2] == ranks
    assert problem.arguments[:3] == [f'--nx={x}', f'--ny={y}', f'--nz={z}']


@pytest.mark.parametrize('ranks', [11, 38, 46])
def test_ranks_of_which_hpcg_makes_no_grid(ranks):
    with pytest.raises(ValueError, match=f'HPCG refuses {ranks} ranks: 1x.* is far from a cube'):
        Hpcg().problem(1e12, ranks, 1)


def test_a_problem_that_is_too_small():
    with pytest.raises(ValueError, match=r'on 4 ranks needs 14745600 bytes at least: 16\^3'):
        Hpcg().problem(14745599, 4, 1)
