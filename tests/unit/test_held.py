"""What `assay doctor --system` says of a file that is right, and of each mistake in one."""

import os

import pytest

from assay import AssayError, paths
from assay.config.environments import environment
from assay.config.fabrics import load_catalogue
from assay.discovery.check_config import check_system_file
from assay.running.doctor import Findings
from changing import changing
from families import FOUND
from slurms import commands_of_slurm, node, partition

MPI = next((one for one in FOUND.values() if not one.fault), None)

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
        check_system_file(file.stem, found)
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


@changing
def change(one, own, where, key, value):
    {'partition': one, 'environment': own}[where][key] = value


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
            'srun does not know SLURM_MPI_TYPE=pmi1: it has none, pmi2, cray_shasta, pmix',
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
        check_system_file('nowhere', Findings())


def types(one, own):
    """Two types of nodes, of which the file names one."""
    one['access'] = ['--partition=all', '--constraint fat']
    one['processor'] = {'num_cpus': 128}
    one['extras'] = {'memory_gib': 500}
    one['features'] = ['scale_1_node']


@pytest.fixture
def mixed(said, tmp_path):
    """Makes one of four nodes a large one, of which Slurm keeps two cores and some memory."""
    fat = node('n4', cores=65, features='fat', memory=522000)
    fat = fat.replace('Boards=1', 'Boards=1 CoreSpecCount=2 MemSpecLimit=10000')
    thin = [node(f'n{i}', features='thin') for i in (1, 2, 3)]
    (tmp_path / 'node').write_text('\n'.join([*thin, fat]) + '\n')


def test_only_nodes_that_access_names_are_asked(said, mixed):
    text, is_good = said(types)
    assert is_good, text
    assert 'ok       the processor has 128 core(s)' in text and 'ok       500 GiB' in text

    def thin(one, own):
        types(one, own)
        one['access'] = ['--partition=all', '--exclude=n4']

    text, is_good = said(thin)
    assert 'PROBLEM  the processor has 128 core(s), Slurm has nodes of 64\n' in text
    assert 'PROBLEM  extras have 500 GiB of memory, Slurm has nodes of 250 GiB' in text


def test_a_file_holds_for_each_of_its_nodes(said, mixed):
    text, is_good = said()
    assert not is_good
    assert 'PROBLEM  the processor has 64 core(s), Slurm has nodes of 64, 128' in text
    text, _ = said(change('partition', 'extras', {'memory_gib': 400}))
    assert 'PROBLEM  extras have 400 GiB of memory, Slurm has nodes of 250 GiB' in text


def test_choices_of_nodes_that_only_slurm_can_read(said, mixed):
    text, is_good = said(change('partition', 'access', ['--partition=all', '-C "fat*2"']))
    assert is_good, text
    words = 'cores and memory are not asked: which nodes --constraint=fat*2 takes is for Slurm'
    assert words in text


def test_constraints_of_several_features(said, mixed):
    text, _ = said(change('partition', 'access', ['--partition=all', '-C "fat|thin"']))
    assert 'PROBLEM  the processor has 64 core(s), Slurm has nodes of 64, 128' in text
    text, _ = said(change('partition', 'access', ['--partition=all', '--constraint=fat&thin']))
    assert 'PROBLEM  --partition=all --constraint=fat&thin: there are no such nodes' in text


def test_a_choice_of_no_node(said):
    text, is_good = said(change('partition', 'access', ['--partition=all', '--constraint=fat']))
    assert not is_good
    assert 'PROBLEM  --partition=all --constraint=fat: there are no such nodes' in text


def test_a_version_that_srun_has_not(said):
    text, is_good = said(change('partition', 'env_vars', [['SLURM_MPI_TYPE', 'pmix_v9']]))
    assert not is_good and 'srun does not know SLURM_MPI_TYPE=pmix_v9' in text
    for way in ('pmix_v4', 'none'):
        text, is_good = said(change('partition', 'env_vars', [['SLURM_MPI_TYPE', way]]))
        assert is_good and f'ok       srun knows SLURM_MPI_TYPE={way}' in text


def test_jobs_that_ask_for_more_time_than_slurm_gives(said, tmp_path):
    """Slurm may let them wait for ever; `assay init` writes the limit."""
    parts = (tmp_path / 'partition').read_text()
    (tmp_path / 'partition').write_text(parts.replace('MaxTime=UNLIMITED', 'MaxTime=00:20:00'))
    text, is_good = said()
    assert not is_good
    assert (
        'PROBLEM  jobs may ask for 360 min, and MaxTime of all is 20 min: give the partition '
        "'time_limit': '20m'"
    ) in text
    text, is_good = said(change('partition', 'time_limit', '15m'))
    assert is_good, text


def test_a_partition_that_is_hidden(said, tmp_path):
    text, is_good = said(change('partition', 'access', ['--partition=staff']))
    assert not is_good and 'Slurm has no partition staff' in text
    listed = (tmp_path / 'partition').read_text()
    (tmp_path / 'hidden').write_text(listed.replace('=all', '=staff'))
    (tmp_path / 'scontrol').write_text(
        f'#!/bin/sh\nfor what; do :; done\ncd {tmp_path}\ncat $what\n'
        'case "$*" in *--all*partition) cat hidden; esac\n'
    )
    text, is_good = said(change('partition', 'access', ['--partition=staff']))
    assert is_good, text


def test_quotes_that_do_not_end(said):
    text, is_good = said(change('partition', 'access', ['--comment="x']))
    assert not is_good and 'No closing quotation' in text


def test_what_sbatch_cannot_tell_is_no_pass(said, tmp_path):
    # The words of a real one, of jobs that are impossible and of nodes that are drained.
    words = 'allocation failure: Requested node configuration is not available'
    (tmp_path / 'sbatch').write_text(f'#!/bin/sh\necho "{words}" >&2; exit 1\n')
    text, is_good = said(change('partition', 'access', ['--partition=all', '--mem=1T']))
    assert not is_good
    assert (
        'PROBLEM  sbatch refuses a job with --partition=all --mem=1T: '
        'Requested node configuration is not available'
    ) in text
    nodes = (tmp_path / 'node').read_text()
    (tmp_path / 'node').write_text(nodes.replace('State=IDLE', 'State=IDLE+DRAIN'))
    text, _ = said(change('partition', 'features', ['scale_2_nodes', *FABRICS]))
    assert '-        --partition=all: sbatch does not tell while its nodes are not up' in text
    assert '-        scale_2_nodes: sbatch does not tell while its nodes are not up' in text
    # Nor can anybody tell who does not know which nodes are meant.
    (tmp_path / 'node').write_text(nodes)
    text, _ = said(change('partition', 'access', ['--partition=all', '-C "x|y"']))
    assert '-        --partition=all -C "x|y": sbatch does not tell' in text
