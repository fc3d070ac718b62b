"""`assay init` on a real Slurm that is made to be awkward: no field that it writes may be wrong."""

import os
import re
import runpy
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from assay import paths
from assay.vcluster import cluster as vcluster
from assay.vcluster import slurm
from command import assay, heed_signals

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(vcluster.what_is_missing()),
        reason=f'a virtual cluster needs more: {"; ".join(vcluster.what_is_missing())}',
    ),
]

NAME = 'init-test'
# Which the nodes have as well, unlike /tmp.
FOLDER = paths.INIT.parent / 'test-init'
SYSTEMS = FOLDER / 'systems'
FILE = SYSTEMS / f'{NAME}.py'
PLUGINS = FOLDER / 'plugins'

NODES = 'NodeName={names} NodeAddr={addresses} CPUs={cpus} RealMemory={memory} State=UNKNOWN\n'
TWO_TYPES = """\
NodeName=n[1-3] NodeAddr=198.18.0.[11-13] CPUs=1 RealMemory=4000 Feature=rack1,thin State=UNKNOWN
NodeName=n4 NodeAddr=198.18.0.14 CPUs=1 RealMemory=8000 Feature=rack1,fat State=UNKNOWN
"""
PARTITION = 'PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n'
NO_DEFAULT = """\
PartitionName=work Nodes=ALL MaxNodes=2 State=UP
PartitionName=debug Nodes=n1 MaxTime=10 State=UP
PartitionName=old Nodes=n4 State=DOWN
"""


@pytest.fixture(scope='module')
def awkward():
    """Types of nodes, no default partition, memory to be asked for, no PMI-2, and two networks."""
    there = next(iter(sorted(Path('/usr/lib').rglob('mpi_pmix.so'))), None)
    if there is None:
        pytest.skip('Slurm has no plugin for PMIx')
    assay('cluster', 'down')
    PLUGINS.mkdir(parents=True)
    SYSTEMS.mkdir()
    for plugin in there.parent.glob('*.so'):
        if plugin.name != 'mpi_pmi2.so':
            (PLUGINS / plugin.name).symlink_to(plugin)
    other = slurm.CONFIGURATION.replace(NODES, TWO_TYPES).replace(PARTITION, NO_DEFAULT)
    other = other.replace('=CR_Core', '=CR_Core_Memory')
    other += f'PluginDir={PLUGINS}\n'
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(paths.SYSTEMS_VARIABLE, str(SYSTEMS))
        patch.setattr(slurm, 'CONFIGURATION', other)
        vcluster.Cluster().up()
        for number in range(1, 5):
            # It leads nowhere, and is listed before the one that does.
            link = 'ip link add adm0 type veth peer name adm1 && ip link set adm0 up'
            on(f'n{number}', 'sh', '-c', f'{link} && ip addr add 198.19.7.{number}/24 dev adm0')
        yield
        assert assay('cluster', 'down').returncode == 0
    shutil.rmtree(FOLDER)


@pytest.fixture(scope='module')
def written(awkward):
    """What the first `init` printed, and the text that it wrote."""
    ended = init('--mpi', 'openmpi', '--mpi', 'mpich')
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended, FILE.read_text()


def on(node, *command):
    ended = assay('cluster', 'exec', node, *command)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def init(*options):
    return assay('cluster', 'exec', 'head', './assay', 'init', NAME, *options)


def system():
    return runpy.run_path(str(FILE))['site_configuration']


def test_every_field(written):
    ended, _ = written
    # One job for each type of nodes, before those that confirm.
    assert len(re.findall(r'job \d+ asks', ended.stderr)) == 2, ended.stderr
    configuration = system()
    by_mpirun, by_srun = configuration['systems'][0]['partitions']
    for one, name in ((by_srun, 'work-thin'), (by_mpirun, 'work-thin-mpirun')):
        assert one['name'] == name
        assert one['scheduler'] == 'slurm'
        assert one['access'] == [
            *('--partition=work', '--constraint=thin', '--exclusive', '--mem=0'),
        ]
        assert [word for word in one['features'] if word.startswith('scale')] == [
            *('scale_1_node', 'scale_2_nodes'),
        ]
        assert one['extras'] == {'memory_gib': 3, 'on_this_machine': True}
        interfaces = dict(one['env_vars'])
        assert interfaces['FI_TCP_IFACE'] == interfaces['OMPI_MCA_btl_tcp_if_include'] == 'eth0'
        # Whether the core has other threads depends on the machine.
        topology = one['processor']['topology']
        assert len(topology['cores']) == len(topology['numa_nodes']) == 1
    assert (by_srun['launcher'], by_srun['environs']) == ('srun', ['openmpi'])
    assert (by_mpirun['launcher'], by_mpirun['environs']) == ('mpirun', ['mpich'])
    # Whether there is an IMB depends on the machine, not on the cluster.
    features = {
        one['name']: [word for word in one['features'] if word != 'imb']
        for one in configuration['environments']
        if one['target_systems'] != [NAME]
    }
    assert features == {
        'openmpi': ['mpi', 'openmpi', 'tcp', 'ucx-tcp', 'ofi-tcp'],
        'mpich': ['mpi', 'mpich', 'ucx-tcp', 'ofi-tcp'],
    }
    assert 'partition debug: its nodes are in those above as well' in ended.stdout
    assert 'partition old: it is down' in ended.stdout
    assert re.search(
        r'work-fat\S* mpich ucx-tcp: no case can show it here: a network', ended.stdout
    )


def test_a_second_look_finds_no_change_though_less_may_be_used(written):
    _, text = written
    # What a login node may use, and what a user prefers, is nothing that the nodes have.
    ended = assay(
        *('cluster', 'exec', 'head', 'env', 'SBATCH_PARTITION=debug', 'PIP_NO_INDEX=1'),
        *('taskset', '--cpu-list', str(min(os.sched_getaffinity(0))), './assay', 'init', NAME),
    )
    assert (ended.returncode, ended.stdout) == (0, ''), ended.stdout + ended.stderr
    assert f'nothing has changed since {FILE} was written' in ended.stderr
    assert 'ignored: SBATCH_PARTITION' in ended.stderr
    assert FILE.read_text() == text


def test_the_doctor_finds_what_is_wrong_in_a_file(written):
    _, text = written
    doctor = ['./assay', 'doctor', '--system', NAME]
    ended = assay('cluster', 'exec', 'head', *doctor)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert 'ok       srun knows SLURM_MPI_TYPE=pmix' in ended.stdout
    assert 'ok       sbatch takes a job with --partition=work --constraint=thin' in ended.stdout
    wrong = text.replace("'pmix'", "'pmi2'").replace('=thin', '=tihn').replace('5.0.', '5.9.')
    FILE.write_text(wrong.replace("'memory_gib': 3", "'memory_gib': 30"))
    try:
        ended = assay('cluster', 'exec', 'head', *doctor)
    finally:
        FILE.write_text(text)
    assert ended.returncode == 1
    problems = [line for line in ended.stdout.splitlines() if line.startswith('  PROBLEM')]
    for words in ('Invalid feature', "extras have the version '5.9.", 'SLURM_MPI_TYPE=pmi2'):
        assert any(words in line for line in problems), ended.stdout


@pytest.fixture
def taken(awkward):
    """No job starts: others have all nodes."""
    hold = ('sbatch', '--exclusive', '--mem=0', '--output=/dev/null', '--wrap=sleep 3600')
    for number in range(1, 5):
        on('head', *hold, '--partition=work', f'--nodelist=n{number}')
    yield
    on('head', 'scancel', '--name=wrap')
    assert_no_job_is_left()


OTHER = ['./assay', 'init', f'{NAME}-2', '--mpi=mpich']


def test_an_init_that_is_stopped_leaves_no_job_and_no_file(taken):
    command = [paths.ROOT / 'assay', 'cluster', 'exec', 'head', *OTHER]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=heed_signals
    ) as ended:
        said = ''
        for line in ended.stderr:
            said += line
            if re.search(r'job \d+: pending', line):
                break
        ended.send_signal(signal.SIGTERM)
        said += ended.stderr.read()
    assert ended.returncode == 143, said
    assert_no_job_is_left('assay-init')
    assert not (SYSTEMS / f'{NAME}-2.py').exists()


def test_a_job_that_waits_too_long_is_cancelled(taken):
    ended = assay('cluster', 'exec', 'head', *OTHER, '--wait=1s')
    assert ended.returncode == 1
    assert re.search(r'has not ended in 1s, .*: PENDING', ended.stderr), ended.stderr
    assert_no_job_is_left('assay-init')


@pytest.fixture
def drained(awkward):
    on('head', 'scontrol', 'update', 'nodename=n[1-4]', 'state=drain', 'reason=test')
    yield
    on('head', 'scontrol', 'update', 'nodename=n[1-4]', 'state=resume')


def test_nodes_that_nobody_can_have_are_not_waited_for(drained):
    ended = assay('cluster', 'exec', 'head', *OTHER)
    assert ended.returncode == 1
    assert 'no job can have a node of it now: n[1-3] IDLE+DRAIN' in ended.stderr, ended.stderr


def assert_no_job_is_left(name=''):
    """Slurm may take a while to forget one that was cancelled; only what hangs reaches the end.

    :param name: as the names of the jobs begin.
    """
    deadline = time.monotonic() + 300
    while left := [
        job
        for job in on('head', 'squeue', '--noheader', '--format=%j').split()
        if job.startswith(name)
    ]:
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
