"""Layouts on the real launchers: the affinity that the ranks then really have."""

import json
import os
import subprocess
import sys

import pytest
from reframe.utility.cpuinfo import cpuinfo

from assay.layout.layouts import LAYOUTS, NodeShape
from families import FOUND

TELL = 'import os; print(sorted(os.sched_getaffinity(0)), flush=True)'
LOOPBACK = {'HYDRA_IFACE': 'lo', 'OMPI_MCA_btl_tcp_if_include': 'lo', 'I_MPI_FABRICS': 'shm'}
AS_ROOT = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}


@pytest.fixture(scope='module')
def node():
    topology = cpuinfo()
    cores = topology['num_cpus'] // topology['num_cpus_per_core']
    if cores < 2:
        pytest.skip('needs a machine with two cores: this one has 1')
    if len(os.sched_getaffinity(0)) < topology['num_cpus']:
        pytest.skip('needs all CPUs of the machine: this process may use only some of them')
    return NodeShape(cores, len(topology['topology']['numa_nodes']), topology['num_cpus_per_core'])


@pytest.mark.parametrize(
    'layout', [name for name, one in LAYOUTS.items() if name != 'default' and not one.side]
)
@pytest.mark.parametrize('name', FOUND)
def test_affinity(name, layout, node, tmp_path):
    mpi = FOUND[name]
    placement = LAYOUTS[layout].place(mpi.family, node, ranks=2)
    path = f'{mpi.bindir}:{os.environ["PATH"]}'  # Intel's mpirun takes its helpers from PATH
    launch = ' '.join([mpi.launcher, '-np', str(placement.ranks), *placement.options]).split()
    # Open MPI 5 does not start where a launcher of the same number was killed: its folder is left.
    own = {'PATH': path, 'TMPDIR': str(tmp_path)}
    run = subprocess.run(
        [*launch, sys.executable, '-c', TELL],
        env={**os.environ, **own, **LOOPBACK, **AS_ROOT, **mpi.env, **placement.env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout
    # Ranks may share a line: their output is not ordered.
    affinities = [json.loads(f'[{part}') for part in run.stdout.replace('\n', '').split('[')[1:]]
    assert len(affinities) == placement.ranks
    if layout in ('packed', 'spread', 'cyclic'):
        assert all(len(cpus) <= os.cpu_count() // node.cores for cpus in affinities)
        assert not set(affinities[0]) & set(affinities[1])
    else:
        assert all(len(cpus) >= placement.threads for cpus in affinities)
        assert set().union(*affinities) == set(range(os.cpu_count()))
