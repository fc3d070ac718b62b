"""A run that somebody starts within an interactive job."""

import os
import subprocess
import sys

import pytest

from assay import paths
from assay.machine.job_states import forget_job_around

# As salloc of Slurm 22.05 and an srun within it, and as qsub -I of OpenPBS set them, but for names.
SALLOC = {
    'SLURM_JOB_ID': '4711',
    'SLURM_JOB_NODELIST': 'n[1-2]',
    'SLURM_NTASKS': '2',
    'SLURM_MEM_PER_CPU': '2000',
    'SLURM_CPU_BIND': 'quiet,mask_cpu:0x1',
    'SLURM_TASKS_PER_NODE': '1(x2)',
    'SLURMD_NODENAME': 'n1',
    'SRUN_DEBUG': '3',
    'PMI_RANK': '0',
    'PMIX_NAMESPACE': 'slurm.pmix.4711.0',
}
QSUB = {'PBS_JOBID': '12.pbs', 'PBS_NODEFILE': '/var/spool/pbs/aux/12.pbs', 'PBS_O_HOME': '/home/x'}
QRSH = {'PE_HOSTFILE': '/var/spool/sge/n1/pe_hostfile', 'SGE_TASK_ID': 'undefined'}
#: What stays: it is of the site, of the user, or of an MPI.
OTHERS = {
    'SLURM_CONF': '/etc/slurm/slurm.conf',
    'PBS_SERVER': 'pbs',
    'PMIX_MCA_psec': 'native',
    'OMPI_MCA_btl_tcp_if_include': 'lo',
    'PE_ENV': 'GNU',  # Cray's compilers know by it which they are
    'HOME': '/home/x',
}


@pytest.mark.parametrize(
    ('job', 'name'), [(SALLOC, '4711'), (QSUB, '12.pbs'), (QRSH, QRSH['PE_HOSTFILE'])]
)
def test_variables_of_the_job_are_forgotten(job, name):
    environment = job | OTHERS
    assert forget_job_around(environment) == name
    assert environment == OTHERS


def test_outside_of_a_job_nothing_is_forgotten():
    """What a user sets there is meant."""
    environment = {'SLURM_MPI_TYPE': 'pmix', 'SLURM_CPU_BIND': 'cores'}
    before = dict(environment)
    assert forget_job_around(environment) is None
    assert environment == before


def test_a_plain_reframe_forgets_them_too(tmp_path):
    """Before it knows where to run: sbatch hands on what it has."""
    script = 'import os, runpy, sys; runpy.run_path(sys.argv[1]); print(*os.environ)'
    names = subprocess.run(
        [sys.executable, '-c', script, paths.CONFIG / 'common.py'],
        env={**os.environ, **SALLOC, **OTHERS, 'ASSAY_RUN': str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert not SALLOC.keys() & set(names)
    assert OTHERS.keys() <= set(names)
