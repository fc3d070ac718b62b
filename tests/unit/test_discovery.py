"""The configuration that `assay init` makes of what Slurm and nodes tell."""

import dataclasses
import os
import runpy
import shutil
import subprocess
import sys

import pytest

from assay import AssayError, paths
from assay.commands.init import _confirm, _show_change
from assay.config import settings
from assay.config.scales import SCALES
from assay.discovery import draft as drafting
from assay.discovery import init as steps
from assay.discovery.draft import InitOptions, draft
from assay.discovery.init import read_again, system_text
from assay.discovery.node import look
from assay.discovery.partitions import _away, see
from assay.discovery.policies import Named, as_minutes
from assay.discovery.probing import Probed
from assay.machine import topology
from assay.machine.slurm import forget_defaults
from found import MPICH, OPENMPI, facts
from slurms import commands_of_slurm, node, partition


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    return commands_of_slurm(tmp_path, monkeypatch)


ALL = partition('all', 'n[1-4]', 4, 'YES')
REFUSED = 'sbatch refuses a job: You must name an account'


def test_one_type_of_nodes(slurm):
    slurm([node(f'n{i}') for i in range(1, 5)], [ALL])
    seen = see([], [])
    (one,) = seen.partitions
    assert one.name == one.slurm == 'all'
    assert one.type.words == '2 sockets of 32 cores, 250 GiB'
    assert one.options == ['--partition=all', '--exclusive']
    assert one.scales == ('1_node', '2_nodes', '4_nodes')
    assert seen.pmis == ('pmi2', 'cray_shasta', 'pmix')
    assert seen.scheduler == 'squeue'
    assert seen.addresses == {}  # a loopback's is no way to another node


def test_where_there_is_no_sacct_squeue_has_to_tell(slurm, tmp_path, monkeypatch):
    slurm([node('n1')], [ALL])
    (tmp_path / 'sacct').unlink()
    monkeypatch.setenv('PATH', str(tmp_path))
    (tmp_path / 'cat').symlink_to(shutil.which('cat', path='/bin:/usr/bin'))
    assert see([], []).scheduler == 'squeue'


def test_a_slurm_that_does_not_answer_once_refuses_nothing(slurm, tmp_path, monkeypatch):
    """Words of a time-out were taken for a limit of time, and jobs were made shorter."""
    monkeypatch.setattr('assay.machine.slurm.AGAIN', (0, 0))
    slurm([node('n1')], [ALL])
    error = 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation'
    times_out = f'echo "{error}" >&2; exit 1'
    for name in ('sbatch', 'scontrol'):
        script = (tmp_path / name).read_text().replace('#!/bin/sh\n', '')
        asked = f'{tmp_path}/asked-{name}-$#-$3'
        once = f'[ -e {asked} ] || {{ touch {asked}; {times_out}; }}'
        (tmp_path / name).write_text(f'#!/bin/sh\n{once}\n{script}')
    seen = see([], [])
    (one,) = seen.partitions
    assert one.minutes is None
    assert one.options == ['--partition=all', '--exclusive']
    assert not seen.left_out
    (tmp_path / 'sbatch').write_text(f'#!/bin/sh\n{times_out}\n')
    with pytest.raises(AssayError, match=f'^Slurm does not answer sbatch: {error}$'):
        see([], [])


def test_types_of_nodes_are_told_apart_by_a_feature(slurm):
    nodes = [node(f'n{i}', features='thin,rack1') for i in (1, 2, 3)]
    slurm([*nodes, node('n4', features='rack1,fat,big', memory=512000)], [ALL])
    thin, fat = see([], []).partitions
    assert (thin.name, fat.name) == ('all-thin', 'all-big')
    assert thin.options[1] == '--constraint=thin' and fat.options[1] == '--constraint=big'
    assert thin.nodes == ('n1', 'n2', 'n3') and fat.scales == ('1_node',)


def test_types_of_nodes_without_a_feature_exclude_each_other(slurm):
    slurm([node('n1', gres='gpu:a100:4(S:0-1)'), *(node(f'n{i}') for i in (2, 3, 4))], [ALL])
    plain, gpus = see([], []).partitions
    assert (plain.name, gpus.name) == ('all-64c250g', 'all-64c250g-gpu_a100_4')
    assert plain.options[1] == '--exclude=n1' and gpus.options[1] == '--exclude=n[2-4]'
    assert gpus.type.words.endswith(', gpu:a100:4')


def test_what_a_job_needs(slurm):
    slurm([node(f'n{i}', threads=2) for i in range(1, 5)], [ALL], memory='CR_CORE_MEMORY')
    (one,) = see([], ['--account=staff']).partitions
    assert one.options == [
        *('--partition=all', '--account=staff'),
        *('--exclusive', '--mem=0', '--threads-per-core=1'),
    ]


def test_partitions_that_are_left_out(slurm):
    parts = [
        partition('debug', 'n[1-2]', 2),
        partition('old', 'n4', 1, state='DOWN'),
        partition('none', '(null)', 0),
        partition('half', 'n[3-4]', 2, most='1'),
        partition('main', 'n[1-3]', 3, 'YES'),
    ]
    slurm([node(f'n{i}') for i in range(1, 5)], parts)
    seen = see([], [])
    assert [one.name for one in seen.partitions] == ['main', 'half']
    assert seen.partitions[1].scales == ('1_node',)
    assert seen.left_out == {
        'debug': 'its nodes are in those above as well: --partition takes it',
        'old': 'it is down',
        'none': 'it has no nodes',
    }
    assert [one.name for one in see(['debug'], []).partitions] == ['debug']
    with pytest.raises(AssayError, match=r'no partition nowhere\. Its partitions: debug, old'):
        see(['nowhere'], [])


def test_scales_that_sbatch_refuses(slurm):
    slurm([node(f'n{i}') for i in range(1, 5)], [ALL], refused='--nodes=4')
    seen = see([], [])
    assert seen.partitions[0].scales == ('1_node', '2_nodes')
    assert seen.left_out == {'all on 4 nodes': REFUSED}


def test_a_partition_that_sbatch_refuses(slurm, monkeypatch):
    slurm([node(f'n{i}') for i in range(1, 5)], [ALL], refused='--partition=all')
    assert see([], []).left_out == {'all': f'{REFUSED} (try --access=--account=NAME)'}
    monkeypatch.setattr(steps, 'find_mpis', lambda: [MPICH])
    with pytest.raises(AssayError, match=r'(?s)You must name an account.*named by --access'):
        steps.find_system('toy', InitOptions(), 1)


@pytest.mark.parametrize(
    ('states', 'scales'),
    [
        (('IDLE', 'MIXED+PLANNED', 'ALLOCATED', 'IDLE+CLOUD'), ('1_node',)),
        (('IDLE', 'IDLE+DRAIN', 'DOWN*', 'IDLE*'), ('1_node', '2_nodes', '4_nodes')),
        (('IDLE', 'IDLE', 'IDLE', 'IDLE+DRAIN'), ('1_node', '4_nodes')),
    ],
)
def test_drained_nodes_are_no_refusal(slurm, tmp_path, states, scales):
    nodes = [node(f'n{i}').replace('=IDLE', f'={state}') for i, state in enumerate(states, 1)]
    slurm(nodes, [ALL])
    # What a real one says of jobs that no nodes could have, and of drained nodes.
    words = 'allocation failure: Requested node configuration is not available'
    script = f'case "$*" in *--nodes=[24]*) echo "{words}" >&2; exit 1;; esac'
    (tmp_path / 'sbatch').write_text(f'#!/bin/sh\n{script}\n')
    assert see([], []).partitions[0].scales == scales


def test_a_node_that_slurm_knows_nothing_of(slurm):
    parts = [ALL, partition('good', 'n[2-4]', 3)]
    slurm([node('n1', memory='x'), *(node(f'n{i}') for i in (2, 3, 4))], parts)
    seen = see([], [])
    assert 'does not tell what its node n1 has' in seen.left_out['all']
    assert [one.name for one in seen.partitions] == ['good']


def test_a_reason_of_a_node_is_no_fact(slurm):
    odd = node('n1').replace('Not responding', 'set ThreadsPerCore=2 in BIOS')
    slurm([odd, *(node(f'n{i}') for i in (2, 3, 4))], [ALL])
    (one,) = see([], []).partitions
    assert one.type.threads_per_core == 1


def test_a_reason_does_not_add_a_fact(slurm):
    odd = node('n1').replace('Not responding', 'set MemSpecLimit=9000')
    slurm([odd, *(node(f'n{i}') for i in (2, 3, 4))], [ALL])
    assert see([], []).partitions[0].type.memory == 256000


def test_memory_that_slurm_keeps_for_itself(slurm):
    slurm([node('n1').replace('Boards=1', 'Boards=1 MemSpecLimit=6000')], [ALL])
    assert see([], []).partitions[0].type.memory == 250000


def test_a_feature_that_nodes_are_started_anew_for(slurm):
    # As a plugin for features of nodes has them: others could get what these have.
    one = node('n1', features='nps1,a4').replace('ActiveFeatures=nps1,a4', 'ActiveFeatures=(null)')
    slurm([one, *(node(f'n{i}', memory=512000) for i in (2, 3, 4))], [ALL])
    assert see([], []).partitions[1].options[1] == '--exclude=n[2-4]'


def test_a_type_that_sbatch_refuses_leaves_the_others(slurm):
    gpus = node('n4', features='gpu', gres='gpu:4')
    parts = [ALL, partition('gpu', 'n4', 1)]
    slurm([*(node(f'n{i}') for i in (1, 2, 3)), gpus], parts, refused='--constraint')
    seen = see([], [])
    # The nodes that it refuses there may be had elsewhere.
    assert [one.slurm for one in seen.partitions] == ['all', 'gpu']
    assert seen.left_out == {'all-gpu': f'{REFUSED} (try --access=--account=NAME)'}


def test_nodes_that_jobs_share_whatever_they_ask(slurm):
    shared = ALL.replace('OverSubscribe=NO', 'OverSubscribe=FORCE:4')
    slurm([node(f'n{i}') for i in range(1, 5)], [shared])
    assert see([], []).left_out == {
        'all, nodes of its own': 'Slurm gives them to several jobs, whatever a job asks for '
        '(OverSubscribe=FORCE)'
    }


def test_what_a_user_prefers_does_not_steer_jobs(slurm, tmp_path, monkeypatch):
    slurm([node('n1')], [ALL])
    (tmp_path / 'sbatch').write_text(f'#!/bin/sh\nenv >{tmp_path}/environment; cat >&2\n')
    for name in ('SBATCH_PARTITION', 'SLURM_MEM_PER_CPU', 'SLURM_CONF'):
        monkeypatch.setenv(name, 'x')
    see([], [])
    heard = (tmp_path / 'environment').read_text().splitlines()
    assert 'SLURM_CONF=x' in heard
    assert not [one for one in heard if one.startswith(('SBATCH_', 'SLURM_MEM'))]
    assert forget_defaults() == ['SBATCH_PARTITION']
    assert {name for name in os.environ if name.startswith(('SBATCH_', 'SLURM_'))} == {'SLURM_CONF'}


def test_a_little_memory_makes_no_type(slurm):
    slurm([node(f'n{i}', memory=256000 + 700 * i) for i in range(1, 5)], [ALL])
    (one,) = see([], []).partitions
    assert one.type.memory == 256700 and one.nodes == ('n1', 'n2', 'n3', 'n4')


def test_names_are_for_one_partition_each(slurm):
    parts = [partition('a.b', 'n[1-2]', 2, 'YES'), partition('a_b', 'n[3-4]', 2)]
    slurm([node(f'n{i}') for i in range(1, 5)], parts)
    assert [one.name for one in see([], []).partitions] == ['a_b', 'a_b_']


@pytest.mark.parametrize(
    ('option', 'instead'),
    [
        ('staff', 'name an option that sbatch needs'),
        ('--account=staff --partition=all', 'name an option that sbatch needs'),
        ('--partition=all', 'where jobs run is chosen by --partition=NAME'),
        ('-pall', 'where jobs run is chosen by --partition=NAME'),
        ('--array=0-3', 'the size of a job is set for each'),
        ('-n4', 'the size of a job is set for each'),
        ('-Mother', 'where jobs run is chosen by --partition or --constraint'),
        ('--output=x', 'each job has files of its own'),
        ('-N', 'name the most nodes of a job'),
        ('--nodes=0', 'name the most nodes of a job'),
        ('--time=soon', 'name the most minutes of a job'),
    ],
)
def test_options_that_are_not_for_the_user(slurm, option, instead):
    slurm([node('n1')], [ALL])
    with pytest.raises(AssayError, match=instead):
        see([], [option])


@pytest.mark.parametrize(
    ('options', 'passed', 'minutes', 'most'),
    [
        (['-A staff', '--qos', '--network=x', '--time-min=1'], 4, None, 4),
        (['--time=10'], 0, 10, 4),
        (['-t1-2'], 0, 1560, 4),
        (['--time 02:00:30'], 0, 120, 4),
        (['--nodes=1', '-t10:00'], 0, 10, 1),
        (['-N1-2'], 0, None, 2),
    ],
)
def test_what_a_user_knows_of_the_site(slurm, options, passed, minutes, most):
    """Options are passed on; times and nodes are the most that a job may ask for."""
    slurm([node(f'n{i}') for i in range(1, 5)], [ALL])
    (one,) = see([], options).partitions
    kept = [option for option, why in one.access if why == 'named by --access']
    assert kept == options[:passed]
    assert one.minutes == minutes and max(SCALES[name] for name in one.scales) == most


def test_limits_of_a_partition(slurm):
    limited = ALL.replace('MaxTime=UNLIMITED', 'MaxTime=1-00:10:00').replace(
        'QoS', 'MinNodes=2 QoS'
    )
    slurm([node(f'n{i}') for i in range(1, 5)], [limited])
    (one,) = see([], []).partitions
    assert one.minutes == 1450 and one.scales == ('2_nodes', '4_nodes')


@pytest.mark.parametrize(
    ('limit', 'minutes'),
    [
        ('10', 10),
        ('10:30', 10),
        ('00:05:00', 5),
        ('1-2', 1560),
        ('1-2:30', 1590),
        ('1-02:03:04', 1563),
        ('UNLIMITED', None),
        ('', None),
    ],
)
def test_times_as_slurm_writes_them(limit, minutes):
    assert as_minutes(limit) == minutes


def test_no_answer_is_no_refusal(slurm, monkeypatch):
    slurm([node('n1')], [partition('all', 'n1', 1, 'YES')])
    run = subprocess.run

    def slow(command, **options):
        if command[0] == 'sbatch':
            raise subprocess.TimeoutExpired(command, 30)
        return run(command, **options)

    monkeypatch.setattr(subprocess, 'run', slow)
    with pytest.raises(AssayError, match=r'sbatch --test-only .*: no answer in 30 s'):
        see([], [])


# The file ---------------------------------------------------------------------------------------


@pytest.fixture
def made(slurm, elsewhere, monkeypatch):
    """A function that returns the draft of a cluster whose jobs found this."""
    slurm([node(f'n{i}') for i in range(1, 5)], [ALL])
    monkeypatch.setattr('os.geteuid', lambda: 1000)

    def make(*told, ways, faults=None, asked=None):
        seen = see([], [])
        (one,) = seen.partitions
        probed = {one.name: Probed([*told], ways, faults or {})}
        return draft('toy', asked or InitOptions(), seen, probed, [MPICH, OPENMPI])

    return make


BOTH = {'mpich': 'pmi2', OPENMPI.name: 'pmix'}


def loaded(text):
    """The partitions of a file."""
    paths.SYSTEMS.joinpath('toy.py').write_text(text)
    file = runpy.run_path(str(paths.SYSTEMS / 'toy.py'))
    return file['site_configuration']['systems'][0]['partitions']


def test_the_file_is_what_was_found(made):
    processor_flags = drafting.flags(['zen3'], MPICH.compiler)
    found = made(facts('n1'), facts('n2'), ways=BOTH)
    (one,) = loaded(system_text(found, {}))
    assert settings.load_system('toy')['systems'][0]['partitions'] == [one]
    assert one['access'] == ['--partition=all', '--exclusive']
    assert one['launcher'] == 'srun' and one['scheduler'] == 'squeue'
    assert one['environs'] == ['mpich', OPENMPI.name]
    fabrics = ['tcp', 'ucx-shm', 'ucx-tcp']
    assert one['features'] == ['scale_1_node', 'scale_2_nodes', 'scale_4_nodes', *fabrics]
    assert one['extras'] == {'memory_gib': 250} and one['max_jobs'] == 1
    assert ['OMPI_MCA_btl_tcp_if_include', 'eth0'] in one['env_vars']
    cpu = one['processor']
    assert cpu['num_cpus'] == 64 and len(cpu['topology']['cores']) == 64
    assert cpu['topology']['numa_nodes'] == ['0xffffffff', '0xffffffff00000000']
    file = runpy.run_path(str(paths.SYSTEMS / 'toy.py'))
    _, base, mpich, openmpi = file['site_configuration']['environments']
    assert base['modules'] == openmpi['modules'] == ['openmpi/5.0.8']
    assert mpich['features'] == ['mpi', 'mpich', 'ucx-shm', 'ucx-tcp']
    assert openmpi['features'] == ['mpi', 'openmpi', *fabrics]
    assert mpich['cflags'] == [*processor_flags]
    assert ['SLURM_MPI_TYPE', 'pmix'] in openmpi['env_vars']
    assert mpich['target_systems'] == ['toy:all']
    assert not found.missing


def test_limits_of_jobs_stand_in_the_file(slurm, made):
    (one,) = loaded(system_text(made(facts('n1'), ways=BOTH), {}))
    assert 'time_limit' not in one and one['sched_options'] == {'use_nodes_option': True}
    short = ALL.replace('MaxTime=UNLIMITED', 'MaxTime=00:20:00 MaxMemPerNode=100000')
    slurm([node(f'n{i}') for i in range(1, 5)], [short], memory='CR_CORE_MEMORY')
    text = system_text(made(facts('n1'), ways=BOTH), {})
    (one,) = loaded(text)
    assert one['time_limit'] == '20m' and one['extras'] == {'memory_gib': 97}
    assert one['access'] == ['--partition=all', '--exclusive', '--mem=100000']
    assert '# No job asks for more: MaxTime of all.' in text
    assert settings.load_system('toy')['systems'][0]['partitions'] == [one]


def test_nodes_that_are_away_are_named_and_not_waited_for(slurm, made):
    away = [node(f'n{i}').replace('=IDLE', '=IDLE+DRAIN') for i in (2, 3, 4)]
    slurm([node('n1'), *away], [ALL])
    found = made(facts('n1'), ways=BOTH)
    assert found.missing == (
        'all: 3 of its 4 nodes can have no job now and were not looked at: n[2-4] IDLE+DRAIN',
    )
    scales = ['scale_1_node', 'scale_2_nodes', 'scale_4_nodes']
    # What confirms has the nodes that are there, and the file has all.
    assert loaded(system_text(found, None))[0]['features'][:2] == ['scale_1_node', 'tcp']
    assert loaded(system_text(found, {}))[0]['features'][:3] == scales


@pytest.mark.parametrize(
    ('state', 'is_away'),
    [
        ('IDLE', False),
        ('ALLOCATED+COMPLETING', False),
        ('IDLE+CLOUD+POWERED_DOWN', False),
        ('MIXED+CLOUD+NOT_RESPONDING+POWERING_UP', False),
        ('IDLE+PLANNED', False),
        ('IDLE*', True),
        ('DOWN', True),
        ('MIXED+DRAIN', True),
        ('IDLE+MAINTENANCE', True),
        ('IDLE+RESERVED', True),
        ('FUTURE', True),
    ],
)
def test_states_of_nodes(state, is_away):
    assert bool(_away({'State': state}, Named())) == is_away
    if 'MAINT' in state or 'RESERVED' in state:
        assert not _away({'State': state}, Named(('--reservation=ours',)))


def test_lines_are_short_enough(made):
    lines = system_text(made(facts(), ways=BOTH), {}).splitlines()
    assert not [line for line in lines if len(line) > steps.WIDTH]


def test_two_launchers_are_two_partitions(made):
    found = made(facts(), ways={'mpich': 'mpirun', OPENMPI.name: 'pmix'})
    by_mpiexec, by_srun = loaded(system_text(found, {}))
    # This MPICH has no mpirun.
    assert (by_mpiexec['name'], by_mpiexec['launcher']) == ('all-mpiexec', 'mpiexec')
    assert (by_srun['name'], by_srun['launcher']) == ('all', 'srun')
    assert by_mpiexec['environs'] == ['mpich'] and by_srun['environs'] == [OPENMPI.name]
    (alone,) = loaded(system_text(made(facts(), ways={OPENMPI.name: 'mpirun'}), {}))
    assert (alone['name'], alone['launcher']) == ('all', 'mpirun')


def test_what_was_not_confirmed_is_left_out(made):
    found = made(facts(), ways=BOTH)
    gone = {'all': {'mpich': {'ucx-tcp': 'shm was used "instead"'}}}
    loaded(system_text(found, gone))
    file = runpy.run_path(str(paths.SYSTEMS / 'toy.py'))
    mpich, openmpi = file['site_configuration']['environments'][2:]
    assert mpich['features'] == ['mpi', 'mpich', 'ucx-shm'] and 'ucx-tcp' in openmpi['features']
    assert read_again(paths.SYSTEMS / 'toy.py') == (InitOptions(), gone)
    gone['all']['mpich']['ucx-shm'] = 'it hung'
    (one,) = loaded(system_text(found, gone))
    assert one['environs'] == [OPENMPI.name]
    assert not found.without(
        {'all': {name: dict.fromkeys(FABRICS, '') for name in BOTH}}
    ).partitions


FABRICS = ('tcp', 'ucx-shm', 'ucx-tcp')


def test_a_device_is_a_fabric_and_ucx_is_left_to_find_it(made):
    has = {'devices': ['ucx-ib']}
    (one,) = loaded(system_text(made(facts('n1', **has), facts('n2', **has), ways=BOTH), {}))
    assert 'ucx-ib' in one['features']
    assert 'UCX_NET_DEVICES' not in dict(one['env_vars'])
    found = made(facts('n1', **has), facts('n2'), ways=BOTH)
    assert 'ucx-ib' not in loaded(system_text(found, {}))[0]['features']
    assert found.missing == ('all: no fabric ucx-ib: n2 has no device for it',)


@pytest.mark.parametrize('allowed', [[0, 1], [0]])
def test_a_core_of_two_threads(slurm, elsewhere, allowed):
    """As such nodes told it in a job: a task got one CPU of a core, or both."""
    told = node('n{}', cores=1, threads=2, memory=4000).replace('Sockets=2', 'Sockets=1')
    slurm([told.replace('{}', str(i)) for i in (1, 2)], [partition('all', 'n[1-2]', 2, 'YES')])
    cache = {'type': 'L2', 'size': 1048576, 'linesize': 64, 'associativity': 8}
    processor = {
        **{'arch': 'x86_64_v4', 'vendor': 'generic', 'model': 'AMD EPYC', 'platform': 'x86_64'},
        'num_cpus': 2,
        'num_cpus_per_core': 2,
        'num_cpus_per_socket': 2,
        'num_sockets': 1,
        'topology': {
            'numa_nodes': ['0x3'],
            'sockets': ['0x3'],
            'cores': ['0x3'],
            'caches': [cache | {'num_cpus': 2, 'cpusets': ['0x3']}],
        },
    }
    job = Probed([facts(allowed=allowed, processor=processor, memory=24105)], BOTH)
    found = draft('toy', InitOptions(), see([], []), {'all': job}, [MPICH, OPENMPI])
    assert not found.missing
    (one,) = loaded(system_text(found, {}))
    assert one['access'][-1] == '--threads-per-core=1'
    assert one['descr'] == '1 socket of 1 core, 4 GiB'
    mask, count = ('0x1', 1) if allowed == [0] else ('0x3', 2)
    counts = dict.fromkeys(['num_cpus', 'num_cpus_per_core', 'num_cpus_per_socket'], count)
    caches = [cache | {'num_cpus': count, 'cpusets': [mask]}]
    places = {key: [mask] for key in ('numa_nodes', 'sockets', 'cores')}
    assert one['processor'] == processor | counts | {'topology': places | {'caches': caches}}


def test_cores_that_a_job_may_not_use(made):
    # Whichever they are, the description is the same: another node may leave out others.
    for allowed in (range(2, 32), [*range(20), *range(22, 32)]):
        found = made(facts(allowed=allowed), ways=BOTH)
        (one,) = loaded(system_text(found, {}))
        cpu = one['processor']
        assert (cpu['num_cpus'], cpu['num_sockets']) == (30, 1)
        assert cpu['topology']['numa_nodes'] == ['0x3fffffff']
        assert len(cpu['topology']['caches'][0]['cpusets']) == 4
        assert found.missing[0] == (
            'all: a job may use 30 core(s) of n1, but Slurm says 2 sockets of 32 cores, 250 GiB'
        )


def test_what_nodes_do_not_agree_on_is_said(made):
    other = facts('n2', interface='ib0')
    other.processor['model'] = 'Xeon'
    found = made(facts('n1'), other, ways=BOTH)
    assert found.missing == (
        'all: n2 has other networks than ib0, where Slurm reaches it: eth0',
        'all: Slurm reaches its nodes on different interfaces, so no variable names one, and each '
        'MPI chooses by itself: n1 eth0, n2 ib0',
        'all: its nodes have different processors: AMD EPYC 7543, Xeon',
    )
    assert loaded(system_text(found, {}))[0]['env_vars'] == []
    found = made(facts(interface=None), ways=BOTH)
    assert found.missing == (
        'all: no interface of n1 has the address that Slurm knows, so each MPI chooses among eth0',
    )


def test_of_two_nodes_the_one_with_fewer_cores_counts(made):
    for first, second in ((64, 60), (60, 64)):
        told = facts('n1', allowed=range(first)), facts('n2', allowed=range(second))
        (one,) = loaded(system_text(made(*told, ways=BOTH), {}))
        assert one['processor']['num_cpus'] == 60


def test_an_mpi_that_does_not_start_is_named(made):
    found = made(facts(), ways={'mpich': 'pmi2'}, faults={OPENMPI.name: 'mpirun: no word in 30 s'})
    assert found.missing == (f'all: no MPI {OPENMPI.name}: mpirun: no word in 30 s',)
    assert [mpi.name for mpi in found.mpis] == ['mpich']


def test_a_second_look_shows_what_has_changed(made, capsys):
    path = paths.SYSTEMS / 'toy.py'
    asked = InitOptions(access=('--account=staff',), mpis=('mpich',))
    path.write_text(system_text(made(facts('n1'), ways=BOTH, asked=asked), {}))
    before, left_out = read_again(path)
    assert before == asked
    again = made(facts('n2'), ways=BOTH, asked=before)
    assert _show_change(path, system_text(again, left_out)) == 0
    assert capsys.readouterr().out == ''
    other = made(facts('n2', memory=200000), ways=BOTH, asked=before)
    assert _show_change(path, system_text(other, left_out)) == 1
    said = capsys.readouterr().out
    assert "-                    'extras': {'memory_gib': 250}," in said
    assert "+                    'extras': {'memory_gib': 195}," in said


def test_nothing_that_was_kept_is_lost(made, monkeypatch):
    path = paths.SYSTEMS / 'toy.py'
    found = made(facts('n1'), ways=BOTH)
    monkeypatch.setattr(paths, 'ROOT', path.parent)
    monkeypatch.setattr('assay.discovery.init.prove', lambda draft: ({}, {}))
    for text in (b'# first', b'# second', b'# second', b'# third'):
        path.write_bytes(text)
        _confirm(path, found, text)
    kept = {one.name: one.read_bytes() for one in path.parent.glob('toy.py.*')}
    assert kept == {
        'toy.py.before': b'# first',
        'toy.py.before-2': b'# second',
        'toy.py.before-3': b'# third',
    }


def test_what_somebody_writes_meanwhile_stays(made, monkeypatch):
    path = paths.SYSTEMS / 'toy.py'
    found = made(facts('n1'), ways=BOTH)

    def prove(draft, ending=None):
        path.write_text('# mine')
        if ending:
            raise ending
        return {}, {}

    monkeypatch.setattr('assay.discovery.init.prove', prove)
    with pytest.raises(AssayError, match='was changed meanwhile, and is left as it is'):
        _confirm(path, found, None)
    assert path.read_text() == '# mine'
    monkeypatch.setattr('assay.discovery.init.prove', lambda _: prove(_, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        _confirm(path, found, b'# before')
    assert path.read_text() == '# mine'


def test_what_nothing_confirmed_is_as_it_was(made, monkeypatch):
    path = paths.SYSTEMS / 'toy.py'
    found = made(facts('n1'), ways=BOTH)
    gone = {'all': {name: dict.fromkeys(FABRICS, 'it hung') for name in BOTH}}
    monkeypatch.setattr('assay.discovery.init.prove', lambda draft: (gone, {}))
    for before in (None, b'# before'):
        with pytest.raises(AssayError, match='no job confirmed anything'):
            _confirm(path, found, before)
        assert (path.read_bytes() if path.exists() else None) == before
        path.write_bytes(b'# before')


def test_a_file_of_somebody_else_is_left_alone():
    with pytest.raises(AssayError, match=r'is not as `assay init` writes it.*another name'):
        read_again(paths.SYSTEMS / 'example-slurm.py')


def test_a_machine_without_slurm(monkeypatch):
    monkeypatch.setenv('PATH', '/nowhere')
    with pytest.raises(AssayError, match=r'no sbatch on PATH.*A single machine needs no'):
        steps.init_file('toy')


def test_the_name_is_slurms_by_default(slurm):
    slurm([node('n1')], [ALL])
    assert steps.init_file(None) == paths.SYSTEMS / 'toy.py'
    with pytest.raises(AssayError, match='cannot be called'):
        steps.init_file('../toy')


def test_an_unknown_mpi(slurm, monkeypatch):
    slurm([node(f'n{i}') for i in range(1, 5)], [ALL])
    monkeypatch.setattr(steps, 'find_mpis', lambda: [MPICH])
    with pytest.raises(AssayError, match=r'--mpi mpihc: .*did you mean mpich'):
        steps.find_system('toy', InitOptions(mpis=('mpihc',)), 1)


def test_a_machine_without_an_mpi(slurm, monkeypatch, capsys):
    """The wheels that `assay run` installs do; where they cannot be had, it says so."""
    slurm([node(f'n{i}') for i in range(1, 5)], [ALL])
    there = []
    monkeypatch.setattr(steps, 'find_mpis', lambda: there)
    monkeypatch.setattr(steps.prepare, 'install_mpis', lambda system, extra: there.append(MPICH))
    assert steps._all() == [MPICH]
    assert 'there is no MPI on PATH, in modules' in capsys.readouterr().err
    cray = dataclasses.replace(MPICH, name='craympich', family=None, is_stranger=True, fault='odd')
    there[:] = [cray]
    assert steps._all() == [cray, MPICH]
    assert 'odd' in capsys.readouterr().err

    def no_index(system, extra):
        raise AssayError('cannot fetch mpich')

    there.clear()
    monkeypatch.setattr(steps.prepare, 'install_mpis', no_index)
    with pytest.raises(AssayError, match=r'there is no MPI on this machine: .*cannot fetch mpich'):
        steps.find_system('toy', InitOptions(), 1)


def test_an_mpi_is_named_by_its_name_or_its_place(monkeypatch):
    monkeypatch.setattr(steps, 'find_mpis', lambda: [MPICH])
    acme = dataclasses.replace(MPICH, name='acme')
    monkeypatch.setattr(steps, 'find_in', {'/opt/acme': acme}.get)
    # In the order in which all commands have them, whatever somebody names first.
    assert steps._chosen(('/opt/acme', MPICH.name)) == [MPICH, acme]
    assert steps._chosen(()) == [MPICH]


def test_a_node_tells_its_facts():
    told = look('127.0.0.1')
    assert told.interface == 'lo' and 'lo' not in told.interfaces
    assert told.processor['num_cpus'] == os.cpu_count()
    assert told.allowed == sorted(os.sched_getaffinity(0))
    assert look('192.0.2.1').interface is None
    assert look(None).interface is None


def test_an_interface_with_two_addresses(tmp_path):
    added = 'ip link set lo up && ip addr add 192.0.2.1/24 dev lo label lo:second && ip addr add'
    ask = 'from assay.discovery.node import look; print([look(f"192.0.2.{i}").interface for i in'
    script = f"{added} 192.0.2.2/24 dev lo && {sys.executable} -c '{ask} (1, 2, 3)])'"
    unshared = ['unshare', '--user', '--map-root-user', '--net', 'sh', '-c']
    if subprocess.run([*unshared, 'ip link'], capture_output=True).returncode:
        pytest.skip('a network namespace cannot be made here')
    said = subprocess.run([*unshared, script], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "['lo', 'lo', None]"


def test_the_memory_of_a_control_group(tmp_path, monkeypatch):
    own, groups = tmp_path / 'cgroup', tmp_path / 'groups'
    for version, name, top in ((1, 'memory.limit_in_bytes', 'memory'), (2, 'memory.max', '')):
        job = groups / top / 'slurm' / 'job_1'
        job.mkdir(parents=True)
        own.write_text(f'1:cpu:/x\n{"5:memory" if version == 1 else "0:"}:/slurm/job_1\n')
        (job / name).write_text('max\n')
        (job.parent / name).write_text(f'{5 << 20}\n')
        monkeypatch.setattr(topology, 'CGROUP', own)
        monkeypatch.setattr(topology, 'CGROUPS', groups)
        assert look(None).memory == 5


def test_the_pmis_of_an_older_slurm(slurm, tmp_path):
    slurm([node('n1')], [ALL])
    older = 'MPI types are...', 'none', 'pmi2', 'openmpi'
    said = '; '.join(f'echo "srun: {line}" >&2' for line in older)
    (tmp_path / 'srun').write_text(f'#!/bin/sh\n{said}\n')
    assert see([], []).pmis == ('pmi2',)


def compiler(folder, said):
    file = folder / 'cc'
    file.write_text(f'#!/bin/sh\necho "{said}"\n')
    file.chmod(0o755)
    drafting._version.cache_clear()
    return str(file)


def test_flags_that_a_compiler_knows(tmp_path):
    new = compiler(tmp_path, 'gcc (Debian 14.2.0-19) 14.2.0')
    assert drafting.flags(['zen4'], new)[0] == '-march=znver4'
    old = compiler(tmp_path, 'gcc (GCC) 8.5.0 20210514 (Red Hat 8.5.0-28)')
    assert {'-march=x86-64', '-mavx2'} <= {*drafting.flags(['zen4'], old)}
    assert drafting.flags(['neoverse_v2'], new)[0].startswith('-march=armv8')
    assert drafting.flags(['zen4'], '/nowhere')[0] == '-march=x86-64'
    assert drafting.flags(['of-tomorrow'], new) == ()


def test_flags_that_all_nodes_can_run(tmp_path):
    new = compiler(tmp_path, 'gcc (Debian 14.2.0-19) 14.2.0')
    assert drafting.flags(['zen4', 'zen2'], new)[0] == '-march=znver2'
    assert drafting.flags(['zen2', 'zen4'], new)[0] == '-march=znver2'
    assert drafting.flags(['zen4', 'skylake_avx512'], new)[0] == '-march=x86-64-v4'
    assert drafting.flags(['zen4', 'neoverse_v2'], new) == ()


def test_a_machine_without_sockets_and_a_cache_of_none(made):
    odd = facts(allowed=range(8))
    odd.processor['topology']['sockets'] = []
    odd.processor['topology']['caches'][0]['cpusets'] = ['0xff00']
    (one,) = loaded(system_text(made(odd, ways=BOTH), {}))
    assert (one['processor']['num_sockets'], one['processor']['num_cpus']) == (1, 8)
    assert one['processor']['topology']['caches'] == []


def test_memory_that_nobody_told_slurm(slurm, made):
    slurm([node(f'n{i}', memory=1) for i in range(1, 5)], [ALL])
    seen = see([], [])
    found = draft('toy', InitOptions(), seen, {'all': Probed([facts()], BOTH)}, [MPICH, OPENMPI])
    (one,) = loaded(system_text(found, {}))
    assert one['extras'] == {'memory_gib': 250} and one['descr'] == '2 sockets of 32 cores'


def test_an_mpi_whose_build_has_no_fabric_is_named(made, monkeypatch):
    bare = dataclasses.replace(MPICH, description='MPICH Device: ch3')
    monkeypatch.setattr('test_discovery.MPICH', bare)
    found = made(facts(), ways=BOTH)
    assert found.missing == ('all: no fabric for mpich: its build has none that nodes have',)


def test_what_was_stopped_says_so_and_is_not_compared(made):
    path = paths.SYSTEMS / 'toy.py'
    path.write_text(system_text(made(facts(), ways=BOTH), None))
    assert read_again(path)[1] is None
    assert 'did not come to confirm: it was stopped' in path.read_text()


def test_two_at_once(elsewhere, monkeypatch):
    monkeypatch.setattr(paths, 'INIT', elsewhere / 'init')
    with (
        steps.lock_out_others('toy'),
        steps.lock_out_others('other'),
        pytest.raises(AssayError, match='another `assay init toy` is under way'),
        steps.lock_out_others('toy'),
    ):
        pass
