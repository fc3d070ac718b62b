"""The job scripts that checks write for networks and schedulers which no test machine has.

``tests/golden/scripts`` has them whole. After a change that is meant, delete a script and run the
test again: it writes the new one, and fails so that somebody reviews it.
"""

import difflib
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
import reframe.core.runtime as rt
from reframe.core.schedulers.slurm import SlurmJobScheduler

from assay import paths
from assay.checks.build import BuildSources
from assay.running import slurm_jobs
from checks import job_script

CLUSTERS = Path(__file__).parents[1] / 'support' / 'clusters.py'
GOLDEN = Path(__file__).parents[1] / 'golden' / 'scripts'
FILES = {
    'PointToPoint': 'mpi/pt2pt',
    'Ring': 'mpi/ring',
    'MiniFE': 'apps/minife',
    'MiniFESweep': 'apps/minife',
    'MiniMDMixed': 'apps/minimd',
}
FABRICS = {
    'infiniband': 'ucx-ib',
    'slingshot': 'ofi-cxi',
    'omnipath': 'ofi-psm',
    'pbs': 'ucx-ib',
}
SMALL = {'size': 'cache', 'scale': '2_nodes'}
SCRIPTS = {
    # Account, reservation, constraint and GRES; --nodes.
    'infiniband-openmpi-PointToPoint': {'layout': 'packed', 'scale': '2_nodes'},
    'infiniband-mpich-Ring': {'layout': 'spread', 'scale': '4_nodes'},
    'infiniband-openmpi-MiniFE': SMALL | {'layout': 'hybrid'},
    # Ranks that may use more CPUs than they have threads for.
    'infiniband-mpich-MiniMDMixed': SMALL | {'layout': 'mixed'},
    # Ranks that find the cores beside the ports that the partition names.
    'infiniband-mpich-PointToPoint': {'layout': 'near', 'scale': '2_nodes'},
    'slingshot-mpich-Ring': {'layout': 'one-per-numa', 'scale': '4_nodes'},
    'slingshot-openmpi-Ring': {'layout': 'one-per-node', 'scale': '4_nodes'},
    'slingshot-openmpi-PointToPoint': {'layout': 'spread', 'scale': '2_nodes'},
    # Steps on one node of a job that has two.
    'slingshot-mpich-MiniFESweep': SMALL | {'layout': 'packed', 'sweep': 'strong'},
    # The MPIs' own launchers inside a Slurm job.
    'omnipath-openmpi-PointToPoint': {'layout': 'packed', 'scale': '2_nodes'},
    'omnipath-intelmpi-Ring': {'layout': 'packed', 'scale': '4_nodes'},
    'omnipath-intelmpi-MiniFE': SMALL | {'layout': 'hybrid'},
    # The MPIs' own launchers inside a PBS job.
    'pbs-openmpi-PointToPoint': {'layout': 'packed', 'scale': '2_nodes'},
    'pbs-openmpi-MiniFE': SMALL | {'layout': 'hybrid'},
    # Each rank in a container: of a program that the job starts before its own, and of that.
    'pbs-contained-MiniFESweep': SMALL | {'layout': 'packed', 'sweep': 'strong'},
    'pbs-mpich-Ring': {'layout': 'spread', 'scale': '4_nodes'},
}


@pytest.mark.parametrize('stem', SCRIPTS)
def test_is_the_golden_script(stem, tmp_path):
    partition, environment, name = stem.split('-')
    where = (CLUSTERS, f'clusters:{partition}', tmp_path, FILES[name], name, environment)
    written = job_script(*where, fabric=FABRICS[partition], **SCRIPTS[stem])
    golden = GOLDEN / f'{stem}.sh'
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(written)
        pytest.fail(f'{golden} was missing; it has been written: review it')
    lines = difflib.unified_diff(
        golden.read_text().splitlines(),
        written.splitlines(),
        golden.name,
        'written now',
        n=1,
        lineterm='',
    )
    if difference := '\n'.join(lines):
        pytest.fail(difference, pytrace=False)


def test_each_golden_script_is_tested():
    assert {path.stem for path in GOLDEN.iterdir()} == set(SCRIPTS)


@pytest.mark.parametrize('stem', SCRIPTS)
def test_is_a_script_for_any_machine(stem):
    golden = GOLDEN / f'{stem}.sh'
    subprocess.run(['bash', '-n', golden], check=True)
    assert str(paths.ROOT) not in golden.read_text()


def test_the_documentation_shows_a_golden_script():
    text = (paths.ROOT / 'docs' / 'schedulers.md').read_text()
    quoted = re.search(r'`tests/golden/scripts/([^`]+)\.sh`.*?```sh\n(.*?)```', text, re.DOTALL)
    stem, shown = quoted.groups()
    parts = re.split(r'[ \n]\.\.\.\n', shown)
    whole = (GOLDEN / f'{stem}.sh').read_text()
    assert len(parts) > 1 and all(part in whole for part in parts)


@pytest.mark.parametrize(('limit', 'asked'), [('3m', '0:3:0'), ('10m', '0:5:0')])
def test_no_job_asks_for_more_time_than_its_partition_has(limit, asked, tmp_path):
    """A scheduler may take such a job, and let it wait for ever."""
    with limited(limit, tmp_path) as configuration:
        where = (configuration, 'clusters:infiniband', tmp_path, FILES['Ring'], 'Ring', 'mpich')
        script = job_script(*where, fabric='ucx-ib', layout='spread', scale='4_nodes')
    assert f'#SBATCH --time={asked}\n' in script


def test_no_build_asks_for_more_time_than_its_partition_has(tmp_path):
    """Nor for fewer nodes: 'infiniband' has jobs of two nodes and more here."""
    with limited('20m', tmp_path) as configuration:
        options = {'systems/prefix': str(tmp_path), 'systems/modules_system': 'nomod'}
        with rt.temp_runtime(str(configuration), 'clusters:infiniband', options):
            (partition,) = rt.runtime().system.partitions
            check = BuildSources()
            check._rfm_dry_run = True
            check.build_locally = False
            check.setup(partition, next(one for one in partition.environs if one.name == 'mpich'))
            check.compile()
            script = (Path(check.stagedir) / check.build_job.script_filename).read_text()
    options = slurm_jobs.options_in(script)
    assert '--time=0:20:0' in options
    assert {'--ntasks=2', '--ntasks-per-node=1'} <= {*options}


@contextmanager
def limited(limit, tmp_path):
    """The clusters, whose partitions have a time limit and no jobs of one node."""
    change = f"""
for partition in site_configuration['systems'][0]['partitions']:
    partition['time_limit'] = {limit!r}
    partition['features'].remove('scale_1_node')
"""
    configuration = tmp_path / 'limited.py'
    configuration.write_text(CLUSTERS.read_text() + change)
    yield configuration


def test_sbatch_is_told_what_the_script_says(tmp_path, monkeypatch):
    """A site's wrapper of sbatch may look at the command line alone."""
    told = []
    monkeypatch.setattr(SlurmJobScheduler, 'sbatch', lambda scheduler, args: told.append(args))
    script = tmp_path / 'rfm_job.sh'
    script.write_text(
        '#!/bin/bash\n#SBATCH --job-name="a b"\n\n# A remark.\n#SBATCH --time=0:5:0 # short\n'
        'true\n#SBATCH --time=1\n'
    )
    with rt.temp_runtime(str(CLUSTERS), 'clusters:infiniband'):
        slurm_jobs.WithDatabase().sbatch(['--parsable', str(script)])
    assert told == [['--parsable', "'--job-name=a b'", '--time=0:5:0', str(script)]]


def test_hardware_threads_are_asked_for_and_cores_beside_them(tmp_path):
    """Though the partition's access keeps jobs off them."""
    where = (CLUSTERS, 'clusters:slingshot', tmp_path, 'mpi/halo', 'Halo', 'mpich')
    text = job_script(*where, fabric='ofi-cxi', layout='threads', scale='1_node')
    assert text.index('--threads-per-core=1\n') < text.index('#SBATCH --threads-per-core=2\n')
    packed, threads = re.findall(r'srun (.*?) /built/build/halo', text)
    assert '--threads-per-core=1 ' in packed and '--ntasks=128 ' in packed
    assert '--cpu-bind=threads' in threads and '--ntasks-per-node=256 ' in threads
    assert '--threads-per-core' not in threads


def test_nothing_is_forced_but_beside_it(tmp_path):
    where = (CLUSTERS, 'clusters:infiniband', tmp_path, 'mpi/pt2pt', 'AsUsersGetIt', 'openmpi')
    text = job_script(*where, fabric='default', layout='default', scale='2_nodes')
    forced = re.search(r'^\(cd forced && .*\)$', text, re.MULTILINE)[0]
    free = text.replace(forced, '')
    for word in ('OMPI_MCA_pml=', 'UCX_TLS=', '--cpu-bind=', '--distribution='):
        assert word in forced and word not in free
    assert 'srun --cpus-per-task=1 --ntasks-per-node=1 /built/build/pt2pt' in free
