"""HPL's input, and what its output says: upstream's recorded output by the parser of ours."""

from pathlib import Path

import pytest
import yaml

from assay import paths
from assay.programs.application import Problem, WrongAnswerError
from assay.programs.hpl import Hpl, operations
from assay.programs.linear_system import norms, solve_system

GOLDEN = paths.ROOT / 'tests' / 'golden' / 'hpl'
HPL = Hpl()


VARIANT = 'WR11C2R4'  # of the outputs that were recorded


def golden(name):
    return (GOLDEN / name).read_text()


def asked(q, **changes):
    facts = {'n': 2000, 'nb': 128, 'p': 1, 'q': q, 'runs': 1, 'variant': VARIANT}
    return Problem([], facts={**facts, **changes})


def read(output, q=2, ranks=2, threads=1, **changes):
    return HPL.read(output, Path(), asked(q, **changes), ranks, threads)


@pytest.mark.parametrize(
    ('mpi', 'rate'), [('openmpi', 20.258), ('mpich', None)], ids=['openmpi', 'mpich']
)
def test_upstream(mpi, rate):
    figures = read(golden(f'hpl-n2000-{mpi}-np2.out'))
    assert list(figures) == ['rate', 'time']
    assert figures['rate'].unit == 'Gflop/s' and figures['rate'].better == 'higher'
    if rate:
        assert figures['rate'].value == rate
        assert figures['time'].value == pytest.approx(0.26, abs=0.005)


@pytest.mark.parametrize(
    ('name', 'q', 'sentence'),
    [
        ('fail-hpl-failresid-openmpi-np1.out', 1, 'scaled residual is 3.84120262e-03'),
        ('fail-hpl-thresh-openmpi-np1.out', 1, 'did not check its answer'),
        ('fail-hpl-badN-openmpi-np1.err', 1, 'refused: Value of N less than 0'),
        ('fail-hpl-pq-gt-np-mpich-np1.err', 2, 'refused: Need at least 2 processes'),
        ('fail-hpl-nodat-openmpi-np2.err', 2, 'refused: cannot open file HPL.dat'),
    ],
)
def test_upstream_failures(name, q, sentence):
    with pytest.raises(WrongAnswerError, match=sentence):
        read(golden(name), q=q, ranks=q)


EXACT, SUMS = norms(2000)
MARKS = {
    **EXACT,
    **SUMS,
    'x_oo': 10.0,
    'x_1': 5000.0,
    'Ax-b_oo': 4.270162184700403e-12,
    'again': 4.270162184700403e-12,
    'multiplier': 1.0,
}
FINGERPRINT = 'Fingerprint: ' + '; '.join(f'{key} {value!r}' for key, value in MARKS.items())
WINDOWS = 'Windows of factorisation: 15; best 21 Gflop/s of 0.004 s; '
WINDOWS += 'whole of best 0.9; all 0.07 s; 1 shorter, 1 equal'
OURS = f"""\
Implementation: assay 0.2.0
RANKS  : 2
THREADS: 1 a rank
T/V                N    NB     P     Q               Time                 Gflops
{VARIANT}        2000   128     1     2               0.30             1.7000e+01
Max aggregated wall time rfact . . . :               0.05
Max aggregated wall time wait  . . . :               0.01
Max aggregated wall time update  . . :               0.23
Max aggregated wall time up tr sv  . :               0.02
Clock: 0.314078 s; system's 0.314078 to 0.314078 s
Clock of rfact: 0.05 s; system's 0.05 to 0.05 s
Clock of wait: 0.01 s; system's 0.01 to 0.01 s
Clock of update: 0.23 s; system's 0.23 to 0.23 s
Clock of up tr sv: 0.02 s; system's 0.02 to 0.02 s
Phases: 0.24 s
Ways: rank 1 in row 0 and column 1; messages of broadcasts 15 0
{FINGERPRINT}
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   3.67900133e-03 ...... PASSED
{VARIANT}        2000   128     1     2               0.26             2.0000e+01
Max aggregated wall time rfact . . . :               0.04
Max aggregated wall time wait  . . . :               0.01
Max aggregated wall time update  . . :               0.20
Max aggregated wall time up tr sv  . :               0.01
Clock: 0.266967 s; system's 0.266967 to 0.266967 s
Clock of rfact: 0.04 s; system's 0.04 to 0.04 s
Clock of wait: 0.01 s; system's 0.01 to 0.01 s
Clock of update: 0.2 s; system's 0.2 to 0.2 s
Clock of up tr sv: 0.01 s; system's 0.01 to 0.01 s
Phases: 0.24 s
Ways: rank 1 in row 0 and column 1; messages of broadcasts 15 0
{FINGERPRINT}
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   3.67900133e-03 ...... PASSED

Finished      2 tests with the following results:
              2 tests completed and passed residual checks,
              0 tests completed and failed residual checks,
              0 tests skipped because of illegal input values.
End of Tests.
{WINDOWS}
Limit of HPL: DGEMM 25 Gflop/s; achieved 20 Gflop/s; fraction 0.8
"""


def test_ours():
    figures = read(OURS, runs=2)
    values = {name: figure.value for name, figure in figures.items()}
    assert values.pop('time') == pytest.approx(0.26697, rel=1e-4)
    assert values == {
        **{'rate': 20, 'hpl_of_limit': 0.8},
        **{'factorisation_rate': 21, 'factorisation_whole_of_best': 0.9},
        **{'panel_time': 0.04, 'wait_time': 0.01, 'update_time': 0.2, 'substitution_time': 0.01},
    }


@pytest.mark.parametrize(
    ('old', 'new', 'sentence'),
    [
        ('End of Tests.', '', 'did not get to its end'),
        ('Limit of HPL', '', 'before the limit'),
        ('Windows of', 'Windows', 'no windows of factorisation'),
        ('; all 0.07 s', '', 'a line of windows is not whole'),
        ('fraction 0.8', 'fraction nan', 'no number above zero'),
        ('fraction 0.8', 'fraction inf', 'no number above zero'),
        ('fraction 0.8', 'fraction ?', 'no number above zero'),
        ('2.0000e+01', 'nan', '"nan" as its rate'),
        ('2.0000e+01', '0.0000e+00', 'as its rate'),
        ('3.67900133e-03', 'nan', '"nan" as its scaled residual'),
        ('2 tests completed and passed', '1 tests completed and passed', 'of which 1 passed'),
        ("system's 0.314078 to 0.314078", "system's 0.32 to 0.33", "by the system's clock"),
        ('Phases: 0.24 s', 'Phases: 0.32 s', 'the phases of HPL took 0.32'),
        ('Phases: 0.24 s', 'Phases: 0.2 s', 'the phases of HPL took 0.2 of'),
        ("system's 0.23 to 0.23", "system's 0.24 to 0.25", 'update of HPL took 0.23 s, but'),
        ('update  . . :               0.23', 'update  . . :  0.22', 'prints 0.22 s for update'),
        ("of rfact: 0.05 s; system's 0.05", "of rfact: 0.00 s; system's 0.00", 'by the|not timed'),
        ('Clock of wait', 'Clock of weight', 'the clocks of each test'),
        ('multiplier 1.0', 'multiplier 1.00001', 'a pivot that is not the greatest'),
        ('multiplier 1.0', 'multiplier nan', 'no number'),
        ('Clock: 0.314078', 'Clock: 0.3', 'was 17.8|by the system'),
        ('first -', 'first ', 'HPL has first'),
        ('A by rows ', 'A by rows 2', 'HPL has A by rows'),
        ('Ax-b_oo 4.270162184700403e-12', 'Ax-b_oo 8e-9', 'and always less'),
        ('again 4.270162184700403e-12', 'again 9e-12', 'HPL has again'),
        ('Fingerprint', 'Print', 'did not print the fingerprint'),
        (VARIANT, 'WC11C2R4', 'the variant WC11C2R4, not WR11C2R4'),
        ('row 0 and column 1', 'row 1 and column 0', 'in row 1 and column 0, not in 0 and 1'),
        ('broadcasts 15 0', 'broadcasts 0 15', r'sent \[0, 15\] messages'),
        ('RANKS  : 2', 'RANKS  : 4', 'on 4 ranks with 1 threads each instead of 2 with 1'),
        ('THREADS: 1', 'THREADS: 2', 'on 2 ranks with 2 threads'),
        ('2000   128', '2000   256', 'NB = 256, not 128'),
        ('2000   128', '1000   128', 'N = 1000, not 2000'),
        ('128     1     2', '128     2     1', 'P = 2, not 1'),
        ('PASSED', 'FAILED', 'solved the system wrong'),
        # Passed by the threshold of another input file.
        ('3.67900133e-03', '1.67900133e+01', 'let the scaled residual 1.67900133e.01 pass'),
        ('3.67900133e-03', '-1.0', 'let the scaled residual -1.0 pass'),
    ],
)
def test_wrong_output(old, new, sentence):
    assert old in OURS
    with pytest.raises(WrongAnswerError, match=sentence):
        read(OURS.replace(old, new), runs=2)


def test_other_number_of_runs_or_ranks():
    with pytest.raises(WrongAnswerError, match='2 tests instead of 3'):
        read(OURS, runs=3)
    with pytest.raises(WrongAnswerError, match='on 1 x 2 ranks instead of 4'):
        read(OURS, runs=2, ranks=4)


@pytest.mark.parametrize(
    ('ranks', 'grid'), [(1, (1, 1)), (2, (1, 2)), (6, (2, 3)), (7, (1, 7)), (16, (4, 4))]
)
def test_problem(ranks, grid):
    size = 64 * 2**20
    problem = HPL.problem(size, ranks, 1)
    facts = problem.facts
    assert (facts['p'], facts['q']) == grid
    assert facts['n'] % facts['nb'] == 0
    assert size * 0.8 < 8 * facts['n'] ** 2 <= size
    lines = problem.files['HPL.dat'].splitlines()
    assert int(lines[4].split()[0]) == facts['runs'] == lines[5].split().count(str(facts['n']))
    assert [int(lines[i].split()[0]) for i in (7, 10, 11)] == [facts['nb'], *grid]


@pytest.mark.parametrize(('nodes', 'in_all'), [(1, True), (8, True), (64, False), (1000, False)])
def test_the_largest_takes_no_longer_at_scale(nodes, in_all):
    """Nodes of 128 cores, 4 Gflop/s each at least, and 256 GB."""
    size = nodes * 0.8 * 256e9
    n = HPL.problem(size, 128 * nodes, 1).facts['n']
    assert operations(n) / (nodes * 128 * 4e9) < 5.01 * 3600
    assert (8 * n**2 > 0.99 * size) is in_all


def test_too_small():
    with pytest.raises(ValueError, match='2048 bytes at least'):
        HPL.problem(100, 1, 1)


UPSTREAM = yaml.safe_load(golden('upstream.yaml'))['runs']


@pytest.mark.parametrize('run', UPSTREAM, ids=lambda run: str(run['n']))
def test_the_system_is_upstream_s(run):
    (exact, sums), x = norms(run['n']), solve_system(run['n'])
    values = {'a_oo': sums['A_oo'], 'a_1': sums['A_1'], 'b_oo': exact['b_oo']}
    values |= {'x_oo': x.greatest, 'x_1': x.sum}
    assert values == pytest.approx({key: run[key] for key in values}, rel=0, abs=6e-7)
