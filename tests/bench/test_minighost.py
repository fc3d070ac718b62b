"""``minighost``: the answers of upstream, whatever the ranks and the exchange; no fault passes."""

import re
import shlex

import pytest
import yaml
from wrong_kernels import hardest
from wrong_kernels.minighost import MUTANTS

from assay import paths
from assay.programs.minighost import MiniGhost
from families import dealt, on_one_mpi

UPSTREAM = yaml.safe_load((paths.ROOT / 'tests/golden/minighost/upstream.yaml').read_text())[
    'cases'
]
# 4 ranks in a square, and heat that has reached the boundary.
SMALL = '--scaling 1 --ndim 12 --num_vars 2 --num_tsteps 12 --debug_grid 1'
# Threads that share cores must not spin while they wait.
PATIENT = {'OMP_WAIT_POLICY': 'passive'}

_VARIABLE = re.compile(
    r'^ Variable +\d+: source (\S+), in the mesh (\S+), flux (\S+), weighted (\S+);', re.MULTILINE
)


def variables(done):
    """Source, heat in the mesh, flux and weighted heat of each variable."""
    assert done.code == 0, done.out + done.err
    return [[float(word) for word in found.groups()] for found in _VARIABLE.finditer(done.out)]


def shares(row):
    """What does not depend on how much heat was put in."""
    return [value / row[0] for value in row[1:]]


def upstream(stencil, method, ranks):
    words = f'--stencil {stencil} --comm_method {method} '
    return next(c for c in UPSTREAM if c['ranks'] == ranks and words in c['arguments'])


@dealt(
    ('stencil', 'method', 'ranks', 'exchange', 'threads'),
    [
        (21, 10, 2, 'sendrecv', 1),
        (22, 11, 1, 'waitany', 3),
        (24, 10, 1, 'waitany', 2),
        (21, 11, 4, 'datatype', 1),
        (22, 11, 4, 'sendrecv', 1),
        (23, 10, 4, 'datatype', 1),
        (23, 10, 2, 'waitall', 2),
        (24, 10, 4, 'waitany', 1),
        (24, 11, 2, 'waitall', 1),
        (24, 10, 4, 'datatype', 1),
    ],
)
def test_equals_upstream(launch, stencil, method, ranks, exchange, threads):
    case = upstream(stencil, method, ranks)
    arguments = [*shlex.split(case['arguments']), '--exchange', exchange]
    done = launch('minighost', *arguments, ranks=ranks, threads=threads, env=PATIENT)
    found = variables(done)
    assert len(found) == len(case['variables'])
    for ours, theirs in zip(found, case['variables'], strict=True):
        # Theirs put in more heat if there are more ranks; except in the first variable.
        assert shares(ours) == pytest.approx(shares(theirs), abs=2e-13)
        if ranks == 1:
            assert ours[0] == pytest.approx(theirs[0], rel=1e-15)

    report = yaml.safe_load((done.files / 'results.yaml').read_text())
    assert report['processes'] == ranks
    assert report['threads'] == threads
    # Theirs has four digits.
    assert float(report['FLOPS_Total']) == pytest.approx(float(case['FLOPS_Total']), rel=5e-4)
    assert report['Number_gridsum'] == case['Number_gridsum']
    in_place = exchange == 'datatype' and stencil in (21, 23)  # such faces have no edges
    for key in [k for k in case if k.startswith(('Send_', 'Recv_'))]:
        assert report[key] == case[key] or in_place


@dealt(('mesh', 'ranks', 'grid'), [((7, 11, 5), 3, (1, 3, 1)), ((3, 2, 5), 4, (2, 2, 1))])
def test_ranks_that_do_not_divide_the_mesh(launch, mesh, ranks, grid):
    options = '--scaling 1 --nx {} --ny {} --nz {} --num_tsteps 9 --num_spikes 2 --stencil 24'
    arguments = options.format(*mesh).split()
    alone = variables(launch('minighost', *arguments, threads=4, env=PATIENT))
    places = '--npx {} --npy {} --npz {}'.format(*grid).split()
    found = variables(launch('minighost', *arguments, *places, ranks=ranks))
    for ours, theirs in zip(found, alone, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-12)


@on_one_mpi
def test_a_run_that_is_judged(launch):
    """The problem of a check, as its check reads it."""
    problem = MiniGhost().problem(1 << 20, 2, 1)
    arguments = [*problem.arguments, '--num_tsteps', '20', '--report_perf', '2']
    problem.facts['the number of time steps'] = 20
    done = launch('minighost', *arguments, ranks=2)
    assert done.code == 0, done.err
    figures = MiniGhost().read(done.out + done.err, done.files, problem, 2, 1)
    assert figures['stencil_of_limit'].value > 0
    assert figures['stencil_in_caches_rate'].unit == 'GB/s'
    assert figures['stencil_in_caches_of_control'].value > 0
    assert 'Per process communication time' in done.out
    assert done.out.startswith('miniGhost, Implementation: assay ')


@dealt(
    ('message', 'options'),
    [
        # Of rank 1 of 4 in a square, which has two neighbours: in the last step, and before.
        (23, '--stencil 24 --npx 2 --npz 2'),
        (20, '--stencil 23 --npx 2 --npy 2 --comm_method 11'),
        (15, '--stencil 22 --npx 2 --npy 2 --exchange sendrecv'),
    ],
)
def test_a_lost_message_is_found(launch, fault, message, options):
    done = launch(
        'minighost',
        *f'{SMALL} {options}'.split(),
        ranks=4,
        preload=fault('drop_message'),
        env={'DROP_MESSAGE': str(message)},
    )
    assert 'drop_message: dropped' in done.err
    assert done.code == 1
    assert 'FAILED: heat of variable' in done.out
    assert 'within error tolerance' not in done.out


@on_one_mpi
@pytest.mark.parametrize(
    ('change', 'sentence'),
    [
        (
            ('stencil.cpp', '1.0 / Kind::POINTS', '1.000001 / Kind::POINTS', 1),
            'was lost or made in time step 1',
        ),
        # All heat is kept, and drifts to the east.
        (
            ('rows.hpp', 'from_east(here, after)', 'from_west(before, here)', 2),
            'was lost, made or misplaced',
        ),
    ],
)
def test_a_changed_stencil_is_found(launch, changed, change, sentence):
    name, *edit = change
    program = changed(f'minighost/{name}', *edit)
    # So early that no heat has left the mesh.
    arguments = SMALL.replace('--num_tsteps 12', '--num_tsteps 4').split()
    done = launch(program, *arguments, '--stencil', '24', sanitize=False)
    assert done.code == 1
    assert sentence in done.out


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        ('--nvar 5', '--nvar is no option; --help lists them'),
        ('--nx 0', '--nx 0 is wrong; give a whole number from 1'),
        ('--num_tsteps 2.5', '--num_tsteps 2.5 is wrong'),
        ('--stencil 20', '--stencil 20 is wrong; give a whole number from 21 to 24'),
        ('--npx 1', 'is a grid of 1 processes, but 2 are running'),
        ('--npx 4000000 --npy 4000000 --npz 4000000', 'whose product is 2'),
        ('--scaling 1 --nx 1', '--nx 1 is too small for --npx 2'),
        ('--ndim 1000000', 'GiB are available'),
    ],
)
@on_one_mpi
def test_wrong_use(launch, arguments, sentence):
    done = launch('minighost', *arguments.split(), ranks=2)
    assert done.code == 2
    assert sentence in done.err
    assert done.err.count('minighost: ') == 1
    assert 'Variable' not in done.out


@on_one_mpi
def test_help_and_version(launch):
    done = launch('minighost', '--help')
    assert done.code == 0
    assert 'mpirun -n 2 minighost' in done.out
    assert launch('minighost', '--version').out.startswith('minighost ')


@on_one_mpi
@pytest.mark.parametrize('mutant', hardest(MUTANTS), ids=lambda mutant: mutant.name)
def test_wrong_kernels_are_noticed(complaint, mutant):
    """The few hardest; ``measurements/mutants.py`` tries them all."""
    said = complaint('minighost', mutant)
    assert said
    assert 'exit code' not in said  # it ran, and its output was refused
