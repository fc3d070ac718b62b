"""The example of a cluster: valid, and turned into the job scripts that its comments promise."""

import re
import runpy

import pytest
import reframe.core.runtime as rt

from assay import paths
from assay.config import settings
from assay.config.fabrics import load_catalogue
from assay.mpis import FAMILIES
from checks import check_on, job_script

EXAMPLE = paths.SYSTEMS / 'example-slurm.py'


@pytest.fixture
def script(tmp_path):
    """A function that returns the script of the job in which a check would run on a partition."""

    def write(partition, environment, file='mpi/pt2pt', name='PointToPoint', **parameters):
        system = f'example-slurm:{partition}'
        return job_script(EXAMPLE, system, tmp_path, file, name, environment, **parameters)

    return write


def test_fabrics_and_families_are_known():
    settings.load_system('example-slurm')
    catalogue = load_catalogue()
    configuration = runpy.run_path(str(EXAMPLE))['site_configuration']
    environments = configuration['environments']
    assert {e['extras']['family'] for e in environments} <= set(FAMILIES)
    for partition in configuration['systems'][0]['partitions']:
        fabrics = [f for f in partition['features'] if not f.startswith('scale_')]
        assert set(fabrics) <= set(catalogue.fabrics)


def test_a_job_between_two_nodes_over_infiniband(script):
    text = script('compute', 'openmpi', fabric='ucx-ib', layout='packed', scale='2_nodes')
    for line in (
        '#SBATCH --ntasks=2',
        '#SBATCH --ntasks-per-node=1',
        '#SBATCH --partition=compute',
        'export SLURM_MPI_TYPE=pmix',
        'export UCX_TLS=self,sm,ib',
        'export OMPI_MCA_pml=ucx',
        'export LD_PRELOAD=/built/build/libassay_witness.so',
        'export ASSAY_WITNESS_REPORT=witness.json',
    ):
        assert line in text
    launch = '--cpus-per-task=1 --ntasks-per-node=1 --distribution=block:block --cpu-bind=cores'
    assert f'srun {launch} /built/build/pt2pt --limits' in text


@pytest.mark.parametrize(
    ('partition', 'environment', 'fabric', 'is_there'),
    [
        ('compute', 'openmpi', 'ucx-ib', True),
        ('compute', 'openmpi', 'tcp', False),
        ('small', 'mpich', 'ofi-tcp', True),
        ('small', 'mpich', 'ucx-ib', False),
    ],
)
def test_the_binding_of_a_launcher_on_the_best_network(
    tmp_path, partition, environment, fabric, is_there
):
    where = (EXAMPLE, f'example-slurm:{partition}', tmp_path, 'mpi/ring', 'Ring', environment)
    chosen = {'fabric': fabric, 'layout': 'default', 'scale': '2_nodes'}
    with check_on(*where, **chosen) as (check, found, environ):
        able = rt.valid_sysenv_comb(check.valid_systems, check.valid_prog_environs)
        assert (environ in able.get(found, [])) == is_there


def test_a_job_with_the_launcher_of_mpich(script):
    text = script('small', 'mpich', fabric='ofi-tcp', layout='spread', scale='2_nodes')
    assert 'export FI_TCP_IFACE=eth0' in text
    assert 'export MPIR_CVAR_NOLOCAL=1' in text
    assert 'mpiexec -n 2 -ppn 1 -bind-to core:1 -map-by numa /built/build/pt2pt' in text


def test_a_job_on_all_nodes(script):
    about = {'fabric': 'ofi-tcp', 'layout': 'packed', 'scale': 'all'}
    text = script('small', 'mpich', 'mpi/ring', 'Ring', **about)
    assert '#SBATCH --ntasks=192' in text and '#SBATCH --ntasks-per-node=16' in text


def test_a_series_takes_its_nodes_from_one_job(script):
    text = script(
        *('compute', 'openmpi', 'apps/minife', 'MiniFESweep'),
        **{'fabric': 'ucx-ib', 'scale': '2_nodes', 'sweep': 'strong', 'size': 'memory'},
    )
    assert '#SBATCH --ntasks=128' in text
    runs = re.findall(r'srun .*--nodes=(\d) --ntasks=(\d+) --cpus-per-task=1 .*minife', text)
    within = [('1', str(1 << doubled)) for doubled in range(7)]
    assert runs == [*within, ('2', '128')]


def test_ranks_that_differ(script):
    text = script(
        *('compute', 'openmpi', 'apps/minimd', 'MiniMDMixed'),
        **{'fabric': 'ucx-ib', 'scale': '2_nodes', 'size': 'memory'},
    )
    widths = ','.join(['32', *['1'] * 32])
    assert f'bash part anywhere {widths} /built/build/minimd /built/build/minimd ' in text
    assert '--cpu-bind=none' in text
