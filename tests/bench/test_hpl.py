"""``hpl``: the answers of upstream, its report, and that no wrong answer passes."""

import itertools
import re
from pathlib import Path

import pytest
import yaml
from wrong_kernels import hardest
from wrong_kernels.hpl import MUTANTS

from assay import paths
from assay.machine import provenance
from assay.programs.application import WrongAnswerError
from assay.programs.hpl import Hpl
from building import configure, make
from families import dealt, on_one_mpi
from running import Run

UPSTREAM = yaml.safe_load((paths.ROOT / 'tests' / 'golden' / 'hpl' / 'upstream.yaml').read_text())

NORMS = {'a_oo': '||A||_oo', 'a_1': '||A||_1', 'x_oo': '||x||_oo', 'x_1': '||x||_1'}
NORMS['b_oo'] = '||b||_oo'

# The lines of HPL.dat in their order; lists are preceded by the number of their values.
LINES = {
    'comment': 'a test',
    'author': 'of Assay',
    'file': 'HPL.out',
    'device': 6,
    'n': [100],
    'nb': [16],
    'pmap': 0,
    'grids': [(1, 1)],
    'threshold': 16.0,
    'pfact': [2],
    'nbmin': [4],
    'ndiv': [2],
    'rfact': [1],
    'bcast': [1],
    'depth': [1],
    'swap': 1,
    'swap_threshold': 64,
    'l1': 1,
    'u': 1,
    'equil': 0,
    'align': 8,
}


def write_input(folder, **changes):
    lines = []
    for key, value in {**LINES, **changes}.items():
        if key == 'grids':
            lines += [len(value), *(' '.join(map(str, side)) for side in zip(*value, strict=True))]
        elif isinstance(value, list):
            lines += [len(value), ' '.join(map(str, value))]
        else:
            lines.append(value)
    (folder / 'HPL.dat').write_text(''.join(f'{line}   what it is\n' for line in lines))


@dealt('run', UPSTREAM['runs'], ids=lambda run: f'{run["n"]}-{run["p"]}x{run["q"]}')
def test_same_problem_and_answer_as_upstream(launch, tmp_path, run):
    """Norms of matrix and solution to the last printed digit; the residual is rounding error."""
    write_input(
        tmp_path, n=[run['n']], nb=[run['nb']], grids=[(run['p'], run['q'])], threshold='1e-30'
    )
    done = launch('hpl', ranks=run['p'] * run['q'])
    assert done.code == 1, done.err
    assert '...... FAILED' in done.out
    for key, printed in NORMS.items():
        value = re.search(rf'^{re.escape(printed)}[ .]*= +(\S+)$', done.out, re.MULTILINE)[1]
        assert value == f'{run[key]:.6f}', printed
    residual = float(re.search(r'\*N\)= +(\S+)', done.out)[1])
    assert run['residual'] / 3 < residual < run['residual'] * 3


# Few and small: each message of four ranks on two cores may take a time slice.
COMBINATIONS = {
    'broadcasts': (4, 1, {'grids': [(1, 4)], 'bcast': [0, 1, 2, 3, 4, 5], 'depth': [0, 1, 3]}),
    'grids': (3, 1, {'grids': [(3, 1), (1, 3), (1, 1)], 'n': [20, 33], 'nb': [8, 200]}),
    # Tiles of 32 columns: each thread has several.
    'threads': (2, 2, {'grids': [(1, 2), (2, 1)], 'n': [150], 'depth': [0, 1], 'nbmin': [1, 6]}),
}
SMALL = {'n': [41], 'nb': [8]}


@dealt('combination', COMBINATIONS)
def test_every_combination(launch, tmp_path, combination):
    ranks, threads, changes = COMBINATIONS[combination]
    lists = {**SMALL, **changes}
    write_input(tmp_path, pmap=1, **lists)
    # More threads than cores: those that wait must not be in the way of others.
    done = launch('hpl', ranks=ranks, threads=threads, env={'OMP_WAIT_POLICY': 'passive'})
    assert done.code == 0, done.err
    found = re.findall(r'^WC(\d)(\d)C2R(\d) +(\d+) +(\d+) +(\d+) +(\d+) ', done.out, re.MULTILINE)
    order = ('grids', 'n', 'nb', 'depth', 'bcast', 'nbmin')
    expected = [
        (depth, bcast, nbmin, n, nb, p, q)
        for (p, q), n, nb, depth, bcast, nbmin in itertools.product(
            *(lists.get(key, LINES[key]) for key in order)
        )
    ]
    assert [tuple(map(int, row)) for row in found] == expected
    assert done.out.count('...... PASSED') == len(expected)
    assert f'{len(expected)} tests completed and passed residual checks,' in done.out


@pytest.mark.parametrize('ranks', [1, 2])
def test_report_is_read(launch, tmp_path, ranks):
    application = Hpl()
    problem = application.problem(8 * 300 * 300, ranks, 2)
    for name, content in problem.files.items():
        (tmp_path / name).write_text(content)
    done = launch(
        application.program,
        *problem.arguments,
        ranks=ranks,
        threads=2,
        env={'OMP_WAIT_POLICY': 'passive'},
    )
    assert done.code == 0, done.err
    assert 'Implementation: assay' in done.out.splitlines()[0]
    figures = application.read(done.out + done.err, tmp_path, problem, ranks, 2)
    assert figures['rate'].value > 0
    assert figures['hpl_of_limit'].value > 0
    with pytest.raises(WrongAnswerError, match=f'on {ranks} ranks|x {ranks} ranks'):
        application.read(done.out, tmp_path, problem, ranks + 1, 2)


@on_one_mpi
def test_output_file(launch, tmp_path):
    write_input(tmp_path, device=8)
    done = launch('hpl')
    assert done.code == 0, done.err
    assert 'End of Tests.' in (tmp_path / 'HPL.out').read_text()
    assert 'End of Tests.' not in done.out


@on_one_mpi
def test_more_ranks_than_the_grid(launch, tmp_path):
    write_input(tmp_path)
    done = launch('hpl', ranks=3)
    assert done.code == 0, done.err
    assert 'RANKS  : 3' in done.out


@on_one_mpi
def test_ranks_with_different_threads(launch, build, tmp_path):
    """All have to agree on how many products the limit is of."""
    write_input(tmp_path, n=[1200], nb=[128], grids=[(1, 2)])
    program = str(build('hpl') / 'hpl')
    wide = ['env', 'OMP_NUM_THREADS=4', 'OMP_WAIT_POLICY=passive', program]
    done = launch('hpl', ':', '-n', '1', *wide, sanitize=False)
    assert done.code == 0, done.out + done.err
    assert '1 tests completed and passed' in done.out
    assert re.search(r'^Limit of HPL: DGEMM ', done.out, re.MULTILINE)


# Panels of 16 columns; rank 1 receives the first, the third, ... The rows of the first: all 100.
LEADING = 13 * 8  # an odd number of cache lines
IN_LOWER = 8 * 20 + 6  # the first column's row 20, below the diagonal block
IN_PIVOTS = 8 * 16 * (LEADING + 16) + 6
DAMAGE = {
    'a multiplier': ('flip_byte', IN_LOWER, 0, 1, 'FAILED'),
    'a multiplier, later': ('flip_byte', IN_LOWER, 2, 1, 'FAILED'),
    'a pivot': ('flip_byte', IN_PIVOTS, 0, 4, 'panel of column 0 arrived damaged'),
    'lost': ('drop_message', 0, 0, 4, 'panel of column 0 arrived damaged'),
    'lost, later': ('drop_message', 0, 1, 4, 'panel of column 32 arrived damaged'),
}


@dealt('damage', DAMAGE)
def test_damaged_panel(launch, fault, tmp_path, damage):
    name, offset, message, code, sentence = DAMAGE[damage]
    write_input(tmp_path, grids=[(1, 2)])
    env = {'FLIP_OFFSET': str(offset), 'FLIP_MESSAGE': str(message), 'DROP_MESSAGE': str(message)}
    done = launch('hpl', ranks=2, env=env, preload=fault(name))
    assert done.err.count(f'{name}: ') == 1  # it happened
    assert done.code == code, done.err
    assert sentence in done.out + done.err


@on_one_mpi
def test_no_product(launch, fault, tmp_path):
    write_input(tmp_path)
    done = launch('hpl', preload=fault('no_product'))
    assert done.code == 1, done.err
    assert '...... FAILED' in done.out


WRONG_SOURCES = {
    'a pivot that is not told': (
        'panel.cpp',
        'p.pivots[column] = global;',
        'p.pivots[column] = p.first + column;',
    ),
    'a row that goes to the wrong place': (
        'interchange.cpp',
        'push_back({ row - panel.first,',
        'push_back({ 0 * row,',
    ),
}


@on_one_mpi
@pytest.mark.parametrize('change', WRONG_SOURCES)
def test_wrong_interchange(launch, changed, tmp_path, change):
    name, right, wrong = WRONG_SOURCES[change]
    program = changed(f'hpl/{name}', right, wrong)
    write_input(tmp_path, grids=[(2, 1)])
    done = launch(program, ranks=2, sanitize=False)
    assert done.code == 1, done.err
    assert '...... FAILED' in done.out


@pytest.mark.parametrize(
    ('changes', 'sentence'),
    [
        ({'n': ['abc']}, 'line 6: N is "abc" but must be a whole number from 1 to'),
        ({'n': [0]}, 'line 6: N is "0" but must be'),
        ({'n': [-5]}, 'line 6: N is "-5" but must be'),
        ({'n': ['99999999999']}, 'line 6: N is "99999999999" but must be'),
        ({'n': [400000]}, 'use an N smaller than 400000 in line 6 of HPL.dat'),
        ({'n': [100] * 21}, 'line 5: the number of problem sizes is "21"'),
        ({'nb': [0]}, 'line 8: NB is "0" but must be a whole number of at least 1'),
        ({'pmap': 2}, 'line 9: PMAP is "2"'),
        ({'grids': [(1, 2)]}, 'lines 11 and 12: P x Q is 1 x 2, but there is only 1 rank'),
        ({'grids': [(0, 1)]}, 'line 11: P is "0"'),
        ({'threshold': 'x'}, 'line 13: the threshold is "x" but must be a number'),
        ({'pfact': [3]}, 'line 15: PFACT is "3"'),
        ({'ndiv': [1]}, 'line 19: NDIV is "1"'),
        ({'bcast': [6]}, 'line 23: BCAST is "6"'),
        ({'device': 8, 'file': 'none/HPL.out'}, 'cannot write the output file none/HPL.out'),
    ],
)
@on_one_mpi
def test_wrong_input(launch, tmp_path, changes, sentence):
    write_input(tmp_path, **changes)
    check_refused(launch('hpl', sanitize=False), sentence)


def check_refused(done: Run, sentence: str) -> None:
    assert done.code == 2
    assert sentence in done.err
    assert done.err.count('hpl: ') == 1
    assert 'T/V' not in done.out


@on_one_mpi
def test_unreadable_input(launch, tmp_path):
    check_refused(launch('hpl', ranks=2), 'cannot read HPL.dat in the working directory: No such')
    write_input(tmp_path)
    text = (tmp_path / 'HPL.dat').read_text()
    (tmp_path / 'HPL.dat').write_text('\n'.join(text.splitlines()[:7]))
    check_refused(launch('hpl'), 'HPL.dat ends before line 8, which should give NB')
    (tmp_path / 'HPL.dat').write_text('')
    check_refused(launch('hpl'), 'HPL.dat ends before line 1')
    (tmp_path / 'HPL.dat').unlink()
    (tmp_path / 'HPL.dat').mkdir()
    check_refused(launch('hpl'), 'cannot read HPL.dat')
    check_refused(launch('hpl', '-n', '5'), 'unknown argument -n')


@on_one_mpi
def test_help(launch):
    done = launch('hpl', '--help')
    assert done.code == 0
    assert 'mpirun -n 4 hpl' in done.out


# Where Debian has the one of libopenblas0-serial, which no threads may share.
SERIAL = sorted(Path('/usr/lib').glob('*/openblas-serial/libopenblas.so.0'))
with_serial_blas = pytest.mark.skipif(not SERIAL, reason='needs libopenblas0-serial')


@with_serial_blas
@on_one_mpi
def test_threads_do_not_share_a_blas_for_one(launch, mpi, surroundings, tmp_path):
    built = tmp_path / 'built'
    # It computes for a moment, and the compiler is done sooner.
    flags = [f'-DCMAKE_{language}_FLAGS=-O0' for language in ('C', 'CXX')]
    configure(mpi, surroundings, built, f'-DBLAS_LIBRARIES={SERIAL[0]}', *flags)
    make(built, 'hpl', surroundings)
    write_input(tmp_path)
    assert launch(built / 'hpl').code == 0
    done = launch(built / 'hpl', threads=2)
    assert done.code == 4
    assert 'hpl: rank 0: the BLAS (OpenBLAS ' in done.err
    assert ' is built for a single thread:' in done.err


@with_serial_blas
@on_one_mpi
def test_blas_for_one_thread_is_not_chosen(mpi, surroundings, tmp_path):
    (tmp_path / 'libopenblas.so').symlink_to(SERIAL[0])
    configure(mpi, surroundings, tmp_path / 'built', f'-DCMAKE_LIBRARY_PATH={tmp_path}')
    chosen = provenance.of_cmake(tmp_path / 'built', mpi.name, '').blas
    assert 'scipy_openblas' in chosen


@on_one_mpi
@pytest.mark.parametrize('mutant', hardest(MUTANTS), ids=lambda mutant: mutant.name)
def test_wrong_kernels_are_noticed(complaint, mutant):
    """The few hardest; ``measurements/mutants.py`` tries them all."""
    said = complaint('hpl', mutant)
    assert said
    assert 'exit code' not in said  # it ran, and its output was refused
