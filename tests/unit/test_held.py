"""What `assay doctor --system` says of a file that is right, and of each mistake in one."""

import os

import pytest

from assay import AssayError, paths
from assay.config.environments import environment
from assay.config.fabrics import load_catalogue
from assay.discovery.held import hold
from assay.machine.mpi import find_mpis
from assay.running.doctor import Findings
from slurms import commands_of_slurm, node, partition

MPI = next((one for one in find_mpis() if not one.fault), None)

pytestmark = pytest.mark.skipif(MPI is None, reason='this machine has no MPI')


@pytest.fixture
def said(tmp_path, elsewhere, monkeypatch, capsys):
    """A function that returns what is said of a system with a change, and whether it is good."""
    slurm = commands_of_slurm(tmp_path, monkeypatch)
    slurm([node(f'n{i}') for i in range(1, 5)], [partition('all', 'n[1-4]', 4, 'YES')], 'nobody')

    def say(change=lambda one, own: None):
        one = {
            'name': 'all',
            'scheduler': 'slurm',
            'launcher': 'srun',
            'environs': [MPI.name],
            'access': ['--partition=all'],
            'features': ['scale_1_node', 'scale_2_nodes', *FABRICS],
            'extras': {'memory_gib': 250},
            'processor': {'num_cpus': 64, 'num_cpus_per_core': 1},
            'env_vars': [['SLURM_MPI_TYPE', 'pmix']],
        }
        own = environment(MPI)
        change(one, own)
        system = {'name': 'toy', 'hostnames': ['.*'], 'partitions': [one]}
        text = {'systems': [system], 'environments': [own]}
        file = paths.SYSTEMS / f'toy{len(os.listdir(paths.SYSTEMS))}.py'
        system['name'] = file.stem
        file.write_text(f'site_configuration = {text!r}\n')
        found = Findings()
        hold(file.stem, found)
        return capsys.readouterr().out, found.can_run

    return say


FABRICS = (
    [name for name in load_catalogue().fabrics if name in environment(MPI)['features']]
    if MPI
    else []
)


def test_a_file_that_is_right(said):
    text, is_good = said()
    assert is_good, text
    assert 'ok       sbatch takes a job with --partition=all' in text
    assert 'ok       scale_2_nodes' in text and 'ok       the processor has 64 core(s)' in text
    assert f'ok       {MPI.kind.name} {MPI.version} in {MPI.prefix}' in text
    assert f'ok       fabric {FABRICS[0]}' in text
    assert 'ok       srun knows SLURM_MPI_TYPE=pmix' in text


def change(where, key, value):
    def apply(one, own):
        {'partition': one, 'environment': own}[where][key] = value

    return apply


@pytest.mark.parametrize(
    ('mistake', 'sentence'),
    [
        (change('partition', 'access', ['--account=nobody']), 'sbatch refuses a job with'),
        (change('partition', 'access', ['-p nowhere']), 'Slurm has no partition nowhere'),
        (change('partition', 'features', ['scale_8_nodes']), 'Slurm has 4 node(s) for it'),
        (
            change('partition', 'processor', {'num_cpus': 64, 'num_cpus_per_core': 2}),
            'the processor has 32 core(s), Slurm has nodes of 64',
        ),
        (change('partition', 'extras', {'memory_gib': 300}), 'Slurm has nodes of 250 GiB'),
        (
            change('partition', 'env_vars', [['SLURM_MPI_TYPE', 'pmi1']]),
            'srun does not know SLURM_MPI_TYPE=pmi1: it has pmi2, cray_shasta, pmix',
        ),
        (change('environment', 'cc', '/nowhere/mpicc'), 'there is no /nowhere/mpicc where'),
        (
            change('environment', 'modules', ['openmpi/9']),
            'its modules are not loaded: the system has no modules_system',
        ),
        (change('environment', 'cc', '/usr/bin/cc'), '/usr/bin/cc is not an mpicc'),
    ],
)
def test_a_mistake(said, mistake, sentence):
    text, is_good = said(mistake)
    problems = [line for line in text.splitlines() if line.startswith('  PROBLEM  ')]
    assert not is_good and len(problems) == 1 and sentence in problems[0], text


def test_another_version_of_an_mpi(said):
    other = {'family': MPI.family, 'version': '1.0'}
    text, is_good = said(change('environment', 'extras', other))
    assert not is_good
    assert f"extras have the version '1.0', and there is {MPI.kind.name} {MPI.version}" in text


def test_a_fabric_that_the_build_has_not(said):
    catalogue = load_catalogue()
    lacking = [name for name in catalogue.fabrics if catalogue.no_recipe(name, MPI)]
    if not lacking:
        pytest.skip(f'{MPI.name} has all fabrics')

    def add(one, own):
        own['features'] = [*own['features'], lacking[0]]

    text, is_good = said(add)
    assert not is_good and f'PROBLEM  feature {lacking[0]}: ' in text


def test_a_fabric_that_is_not_used(said):
    def leave_out(one, own):
        own['features'] = [name for name in own['features'] if name != FABRICS[0]]

    text, is_good = said(leave_out)
    assert is_good
    assert f'-        no feature {FABRICS[0]}, which this build has, and the partition' in text


def test_schedulers_that_are_not_asked(said):
    text, is_good = said(change('partition', 'scheduler', 'pbspro'))
    assert is_good and 'the scheduler pbspro is not asked' in text


def test_an_unknown_system(said):
    with pytest.raises(AssayError, match='unknown system'):
        hold('nowhere', Findings())
