"""``minimd``: the digits of upstream, its own verdict, and that no damaged run passes."""

import itertools
import math
from pathlib import Path

import pytest
import yaml
from wrong_kernels import hardest
from wrong_kernels.minimd import MUTANTS

from assay import paths
from assay.programs.application import Problem
from assay.programs.minimd import MiniMD
from families import dealt, on_one_mpi
from minimd_inputs import INPUTS, potential

UPSTREAM = yaml.safe_load((paths.ROOT / 'tests/golden/minimd/upstream.yaml').read_text())['runs']

# Threads that wait for each other on cores they share would burn them.
PATIENT = {'OMP_WAIT_POLICY': 'passive'}

# What has nothing to do with the MPI is shown on one of them.


def states(output):
    """The rows of the table without the time, as they are printed."""
    rows = [line.split() for line in output.splitlines() if line[:1].isdigit()]
    return [' '.join(row[:4]) for row in rows if len(row) == 5]


def prepare(folder: Path, name: str) -> list[str]:
    (folder / 'in').write_text(INPUTS[name])
    if name != 'eam':
        return ['-i', 'in']
    (folder / 'powers.eam').write_text(potential())
    return ['-i', 'in', '--potential', 'powers.eam']


def title(run):
    return f'{run["input"]} {run["arguments"]} on {run["ranks"]}x{run["threads"]}'


@dealt('upstream', UPSTREAM, ids=title)
def test_digits_of_upstream(launch, tmp_path, upstream):
    done = launch(
        'minimd',
        *prepare(tmp_path, upstream['input']),
        *upstream['arguments'].split(),
        ranks=upstream['ranks'],
        threads=upstream['threads'],
        env=PATIENT,
        sanitize=False,
    )
    assert done.code == 0, done.out + done.err
    assert states(done.out) == upstream['states']
    assert '\t# All: PASSED' in done.out


@on_one_mpi
@pytest.mark.parametrize(
    ('arguments', 'ranks', 'threads'),
    [
        (['-i', 'in', '--potential', 'powers.eam', '-s', '3', '-n', '25'], 2, 1),
        (['-s', '2', '-n', '25'], 4, 1),  # more ranks than planes of atoms along some axes
        (['-nx', '1', '-ny', '2', '-nz', '5', '-n', '45', '--half_neigh', '0'], 3, 1),
        (['-s', '3', '-n', '25', '-gn', '0', '--sort', '0', '-b', '1'], 1, 2),
    ],
)
def test_sanitized(launch, tmp_path, arguments, ranks, threads):
    prepare(tmp_path, 'eam')
    done = launch('minimd', *arguments, ranks=ranks, threads=threads, env=PATIENT)
    assert done.code == 0, done.out + done.err
    assert '\t# All: PASSED' in done.out
    assert done.err == ''


@on_one_mpi
def test_report_of_the_problem_that_is_asked_for(launch, tmp_path):
    problem = MiniMD().problem(2e6, ranks=2, threads=1)
    for name, text in problem.files.items():
        (tmp_path / name).write_text(text)
    # Lists are made anew in every 20th step, and were not in the last one.
    done = launch('minimd', *problem.arguments, '-n', '110', ranks=2, sanitize=False)
    short = Problem(problem.arguments, problem.files, {**problem.facts, 'steps': 110})
    figures = MiniMD().read(done.out + done.err, tmp_path, short, ranks=2, threads=1)
    assert done.out.startswith('# miniMD Implementation: assay ')
    assert {'performance', 'force_rate', 'force_of_limit', 'force_imbalance'} < figures.keys()


@on_one_mpi
def test_no_step_without_sums_has_no_limit(launch):
    """The sums are more work, so that a last step is held against nothing."""
    done = launch('minimd', '-s', '4', '-n', '1', sanitize=False)
    assert done.code == 0, done.out + done.err
    assert 'PERF_SUMMARY' in done.out
    assert 'Limit of' not in done.out
    assert 'Windows of force' not in done.out


def shifted_power(r, power, a=3.61, cut=4.95):
    slope = -power * (a / cut) ** power / cut
    return (a / r) ** power - (a / cut) ** power - (r - cut) * slope


@on_one_mpi
def test_computed_copper(launch, tmp_path):
    """The energy of the crystal, by the formula of Sutton and Chen, shifted at the cut-off."""
    prepare(tmp_path, 'eam')
    done = launch('minimd', '-i', 'in', '-s', '4', '-n', '1', sanitize=False)
    assert done.code == 0, done.out + done.err
    assert 'Potential: Sutton-Chen copper (computed)' in done.out
    half = 0.5 * (4 / 0.07041125) ** (1 / 3)
    sites = [s for s in itertools.product(range(-4, 5), repeat=3) if sum(s) % 2 == 0]
    distances = [half * math.hypot(*site) for site in sites]
    near = [r for r in distances if 0 < r < 4.95]
    pairs = 0.5 * sum(shifted_power(r, 9) for r in near)
    density = sum(shifted_power(r, 6) for r in near)
    energy = 1.2382e-2 * (pairs - 39.432 * math.sqrt(density))
    printed = float(states(done.out)[0].split()[2]) / (2 * 524287.985533)
    assert printed == pytest.approx(energy, rel=1e-5)


@on_one_mpi
def test_ranks_with_different_threads(launch, build):
    program = str(build('minimd') / 'minimd')
    arguments = ['-s', '8', '--half_neigh', '0', '-t']
    done = launch(
        *('minimd', *arguments, '1', ':', '-n', '1', program, *arguments, '2'),
        env=PATIENT,
        sanitize=False,
    )
    assert done.code == 0, done.out + done.err
    assert '# MPI processes: 2\n\t# OpenMP threads: 2 (least 1, of all ranks 3)\n' in done.out
    assert '100 7.202854e-01 -5.698504e+00 6.538913e-01' in done.out


@on_one_mpi
def test_ranks_with_different_problems(launch, build):
    program = str(build('minimd') / 'minimd')
    done = launch('minimd', '-s', '4', ':', '-n', '1', program, '-s', '5', sanitize=False)
    assert done.code == 2
    assert 'not all ranks have the same options as rank 0' in done.err


# Rank 1 of 2 receives, before the first step: 4 messages of atoms that move on (a count and the
# atoms, from below and from above), 4 of borders, 6 of positions and 2 of forces; then 2 of
# positions and 2 of forces in each step.
LOST = {
    'count of atoms': (0, 4, 'the message from rank 0 that says how many atoms follow'),
    'atoms': (1, 1, 'Messages that did not arrive: 1: FAILED'),
    'borders': (5, 4, 'the message with ghost atoms from rank 0 did not arrive'),
    'positions': (21, 1, 'Messages that did not arrive: 1: FAILED'),
    'forces': (22, 1, 'Messages that did not arrive: 1: FAILED'),
}


@dealt('which', LOST)
def test_lost_messages_are_found(launch, fault, which):
    message, code, sentence = LOST[which]
    done = launch(
        *('minimd', '-s', '4', '-n', '10'),
        ranks=2,
        preload=fault('drop_message'),
        env={'DROP_MESSAGE': str(message)},
    )
    assert 'drop_message' in done.err
    assert sentence in done.out + done.err
    assert done.code == code
    assert 'All: PASSED' not in done.out


CHANGES = {
    'force constant': (
        ('force_lj.cpp', 'all(48 * epsilon)', 'all(48.01 * epsilon)'),
        ['Forces against the gradient of the energy', 'Energy and virial'],
    ),
    'energy constant': (
        ('force_lj.cpp', '{ 4 * epsilon * energies', '{ 4.000001 * epsilon * energies'),
        ['Crystal energy per atom'],
    ),
    'pairs out of reach': (
        ('neighbours.cpp', 'per_length[d]) + 1;', 'per_length[d]);'),
        ['Pairs within the cut-off at the end'],
    ),
    'forces of ghosts': (
        ('ghosts.cpp', 'at[c] += in[c];', 'at[c] += c == 2 ? 0 : in[c];'),
        ['Momentum per atom'],
    ),
    'integrator': (
        ('simulation.cpp', 'x[c] += step * v[c];', 'x[c] += 1.02 * step * v[c];'),
        ['Energy per atom', 'First and last steps against a plain implementation'],
    ),
    'atoms that change ranks': (
        (
            'ghosts.cpp',
            '                    x[c] = in[c];\n',
            '                    x[c] = (float)in[c];\n',
        ),
        ['First and last steps against a plain implementation'],
    ),
    'temperature of a row': (
        ('simulation.cpp', 'double t = temperature', 'double t = (step ? 1.001 : 1) * temperature'),
        ['Energy and virial'],
    ),
}


@on_one_mpi
@pytest.mark.parametrize('change', CHANGES)
def test_wrong_physics_is_found(launch, changed, change):
    (name, right, wrong), oracles = CHANGES[change]
    program = changed(f'minimd/{name}', right, wrong)
    done = launch(program, '-s', '5', ranks=2, sanitize=False)
    failed = [line for line in done.out.splitlines() if line.endswith(': FAILED')]
    for oracle in oracles:
        assert any(oracle in line for line in failed), done.out + done.err
    assert '\t# All: FAILED' in failed
    assert done.code == 1


@on_one_mpi
@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['-s', '0'], "-s: '0' is wrong; give a whole number from 1"),
        (['-n', 'ten'], "-n: 'ten' is wrong"),
        (['--bogus'], "unknown option '--bogus'"),
        (['-nx'], '-nx: its value is missing'),
        (['-s', '20000'], 'GiB are available; use a smaller --size'),
        (['-b', '1000000'], 'GiB are available'),
        (['-i', 'absent'], "cannot read the input file 'absent'"),
        (['-i', 'in'], 'in line 7 (size): 3 values are wanted, 2 are there'),
        (['-p', 'eam', '--potential', 'in'], "'in' is no whole file in the format funcfl"),
        (['--potential', 'in'], '--potential is of EAM'),
    ],
)
def test_wrong_use(launch, tmp_path, arguments, sentence):
    (tmp_path / 'in').write_text(INPUTS['lj'].replace('8 8 8', '8 8'))
    done = launch('minimd', *arguments, ranks=2, sanitize=False)
    assert done.code == 2
    assert sentence in done.err
    assert done.err.count('minimd: ') == 1
    assert 'PERF_SUMMARY' not in done.out


@on_one_mpi
def test_lost_atoms(launch, tmp_path):
    (tmp_path / 'in').write_text(INPUTS['lj'].replace('0.005', '0.5'))
    done = launch('minimd', '-i', 'in', '-s', '4', sanitize=False)
    assert done.code == 4
    assert 'and are lost; use a smaller time step' in done.err


@on_one_mpi
def test_help(launch):
    done = launch('minimd', '--help', sanitize=False)
    assert done.code == 0
    assert 'mpirun -n 2 minimd -s 20 -n 100' in done.out


@on_one_mpi
@pytest.mark.parametrize('mutant', hardest(MUTANTS), ids=lambda mutant: mutant.name)
def test_wrong_kernels_are_noticed(complaint, mutant):
    """The few hardest; ``measurements/mutants.py`` tries them all."""
    said = complaint('minimd', mutant)
    assert said
    assert 'exit code' not in said  # it ran, and its output was refused
