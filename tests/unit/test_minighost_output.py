"""miniGhost: the problem of a size, and what its output says; upstream's by the parser of ours."""

import math
from pathlib import Path

import pytest

from assay import paths
from assay.programs.application import Problem, WrongAnswerError
from assay.programs.minighost import MiniGhost

GOLDEN = paths.ROOT / 'tests' / 'golden' / 'minighost'
MINIGHOST = MiniGhost()


def golden(name):
    return (GOLDEN / name).read_text()


def asked(processes, **changes):
    facts = {
        'the mesh': (100, 100, 100),
        'the process grid': processes,
        'the number of variables': 5,
        'the number of variables summed': 5,
        'the number of time steps': 20,
        'the number of spikes': 1,
        'the stencil': 'STENCIL_3D27PT',
        'the way to communicate': 'COMM_METHOD_BSPMA',
    }
    return Problem([], facts={**facts, **changes})


def read(output, ranks=2, threads=1, **changes):
    return MINIGHOST.read(output, Path(), asked((1, 1, ranks), **changes), ranks, threads)


def test_upstream_with_two_ranks():
    figures = read(golden('upstream-2-ranks.out'))
    assert figures['total_time'].value == 4.135363e-01
    assert figures['rate'].value == 6.529
    assert figures['stencil_time'].value == 3.411875e-01
    assert figures['stencil_rate'].value == pytest.approx(16 * 1e8 / 3.411875e-01 * 1e-9)
    assert figures['communication_time'].value == 9.298164e-03
    assert figures['wait_time'].value == 3.899708e-03
    assert figures['sum_time'].value == 8.139579e-02
    assert not [name for name in figures if name.endswith('of_limit')]


def test_upstream_with_one_rank():
    figures = read(golden('upstream-1-rank.out'), ranks=1)
    assert list(figures) == ['total_time', 'rate', 'stencil_time', 'stencil_rate', 'sum_time']
    assert figures['rate'].value == 3.103


def test_ours():
    figures = read(golden('assay-2-ranks.out'))
    assert {'total_time', 'rate', 'communication_time', 'stencil_of_limit'} <= set(figures)
    assert figures['stencil_of_limit'].value > 0


@pytest.mark.parametrize('name', ['upstream-2-ranks.out', 'assay-2-ranks.out'])
def test_nothing_may_be_missing(name):
    """Wherever the output is cut off, it is no answer."""
    lines = golden(name).rstrip().splitlines()
    # Of upstream's last part, reductions, nothing is read but its end.
    for count in range(0, len(lines) - 1, 3):
        with pytest.raises(WrongAnswerError):
            read('\n'.join(lines[:count]))
    read('\n'.join(lines))


@pytest.mark.parametrize(
    ('changes', 'sentence'),
    [
        ({'the mesh': (100, 100, 102)}, r'the mesh: \(100, 100, 100\), not \(100, 100, 102\)'),
        ({'the process grid': (2, 1, 1)}, 'the process grid'),
        ({'the number of variables': 40}, 'the number of variables: 5, not 40'),
        ({'the number of time steps': 21}, 'the number of time steps: 20, not 21'),
        ({'the number of spikes': 2}, 'the number of spikes'),
        ({'the stencil': 'STENCIL_3D7PT'}, 'the stencil: STENCIL_3D27PT'),
        ({'the way to communicate': 'COMM_METHOD_SVAF'}, 'the way to communicate'),
    ],
)
@pytest.mark.parametrize('name', ['upstream-2-ranks.out', 'assay-2-ranks.out'])
def test_another_problem(name, changes, sentence):
    with pytest.raises(WrongAnswerError, match=sentence):
        read(golden(name), **changes)


@pytest.mark.parametrize(
    ('name', 'old', 'new', 'sentence'),
    [
        # As with --percent_sum 0, and without --debug_grid 1.
        (
            'upstream-2-ranks.out',
            'time step:  5;',
            'time step:  0;',
            'variables summed: .*0.*, not',
        ),
        ('assay-2-ranks.out', 'time step:  5;', 'time step:  0;', 'variables summed: 0, not 5'),
        (
            'upstream-2-ranks.out',
            'Tolerance is  1.00E-08',
            'Tolerance is  1.00E+00',
            '1.00E.00, not',
        ),
        (
            'upstream-2-ranks.out',
            ' Error reported every',
            ' Nothing',
            'its tolerance: nothing, not',
        ),
        ('assay-2-ranks.out', ' Variable    3: source', ' Variable', 'did not check variable 3'),
        ('assay-2-ranks.out', 'misplaced 2.83E-15', 'misplaced 2.83E-01', 'own check failed: Var'),
        ('assay-2-ranks.out', 'error 3.78E-15', 'error nan', 'own check failed: Variable    3'),
    ],
)
def test_nothing_checked(name, old, new, sentence):
    output = golden(name)
    assert old in output
    with pytest.raises(WrongAnswerError, match=sentence):
        read(output.replace(old, new))


FAILED = '\nFAILED: heat of variable 3 was lost\n'


@pytest.mark.parametrize(
    ('output', 'asked', 'sentence'),
    [
        *(
            (golden(name), {'ranks': 4}, r'says of the (process grid|number of processes)')
            for name in ('upstream-2-ranks.out', 'assay-2-ranks.out')
        ),
        (golden('assay-2-ranks.out'), {'threads': 2}, 'the number of threads: 1, not 2'),
        # A program under the launcher of another MPI: each rank is alone.
        (2 * golden('upstream-1-rank.out'), {'ranks': 2}, '2 miniGhost ran beside each other'),
        (golden('upstream-failed.out'), {}, r'own check failed: .* error is  1\.00000E\+00'),
        (
            golden('assay-2-ranks.out') + FAILED,
            {},
            'own check failed: heat of variable 3 was lost',
        ),
        ('minighost: --nx 0 is wrong; give 1', {}, 'refused: --nx 0 is wrong'),
        (
            '[pe 0] ** Input error **: Unknown stencil option (99). ',
            {},
            'Unknown stencil option',
        ),
    ],
)
def test_no_answer(output, asked, sentence):
    with pytest.raises(WrongAnswerError, match=sentence):
        read(output, **asked)


@pytest.mark.parametrize('error', ['1.00000E+00', 'NaN', '************'])
def test_upstream_whose_last_errors_are_wrong(error):
    """Upstream itself takes what is no number for right."""
    line = 'Time step   20 for spike   1 for variable    3 the error is {}; '
    line += 'error tolerance is  1.00000E-08.'
    output = golden('upstream-2-ranks.out')
    read(output.replace(' Computation', f'{line.format("1.0E-15")}\n Computation', 1))
    with pytest.raises(WrongAnswerError, match='own check failed: Time step'):
        read(output.replace(' Computation', f'{line.format(error)}\n Computation', 1))


@pytest.mark.parametrize('word', ['NaN', 'Infinity', '*************', '0.000000E+00'])
def test_times_that_are_no_numbers(word):
    output = golden('upstream-2-ranks.out').replace('4.135363E-01', word)
    with pytest.raises(WrongAnswerError):
        read(output)


@pytest.mark.parametrize('ranks', [1, 2, 3, 4, 8, 12, 64])
@pytest.mark.parametrize('size', [2**22, 2**28, 2**34, 2**40])
def test_problem(size, ranks):
    problem = MINIGHOST.problem(size, ranks, 1)
    mesh, processes = problem.facts['the mesh'], problem.facts['the process grid']
    grids = problem.facts['the number of variables'] + 1
    assert size / 3 < 8 * grids * math.prod(n + 2 for n in mesh) <= size
    assert math.prod(processes) == ranks
    assert all(n >= p for n, p in zip(mesh, processes, strict=True))
    assert MINIGHOST.problem(size, 1, 1).facts['the mesh'] == mesh
    assert problem.arguments[:2] == ['--scaling', '1']


def test_too_small():
    with pytest.raises(ValueError, match='miniGhost needs'):
        MINIGHOST.problem(1000, 1, 1)
