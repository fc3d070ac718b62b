"""The job around this process, by ``salloc`` or ``qsub -I``: what of its environment is its alone.

sbatch hands its whole environment to the jobs that it submits. There srun obeys SLURM_CPU_BIND,
SLURM_MEM_PER_CPU or SLURM_NTASKS of the job around, which nothing else sets, and an MPI's launcher
takes the nodes of SLURM_JOB_ID or PBS_NODEFILE for its own.
"""

from __future__ import annotations

from collections.abc import MutableMapping

#: By one of these a process knows that it is in a job.
_JOBS = ('SLURM_JOB_ID', 'SLURM_JOBID', 'PBS_JOBID', 'LSB_JOBID', 'PE_HOSTFILE')

#: What the variables of a job and of its steps begin with: of schedulers, and of those who start
#: processes in a job, by which an MPI program takes itself for one of theirs.
_OF_JOBS = (
    *('SLURM_', 'SLURMD_', 'SBATCH_', 'SRUN_', 'PBS_', 'LSB_', 'PE_HOSTFILE', 'SGE_'),
    *('PMI_', 'PMIX_', 'PALS_', 'MPI_LOCAL', 'HYDI_', 'OMPI_COMM_WORLD_'),
)

#: Of these what does not belong to a job: which Slurm or PBS is meant, and settings of PMIx.
_NOT_OF_JOBS = (
    *('SLURM_CONF', 'SLURM_CLUSTERS', 'SLURM_JWT'),
    *('PBS_CONF', 'PBS_SERVER', 'PBS_DEFAULT', 'PBS_EXEC', 'PBS_HOME', 'SGE_ROOT', 'SGE_CELL'),
    'PMIX_MCA_',
)


def forget(environment: MutableMapping[str, str]) -> str | None:
    """Take the variables of a job around out of the environment.

    :returns: which job that is; None if there is none, and nothing is taken out.
    """
    job = next((environment[name] for name in _JOBS if environment.get(name)), None)
    if job is None:
        return None
    for name in [*environment]:
        if name.startswith(_OF_JOBS) and not name.startswith(_NOT_OF_JOBS):
            del environment[name]
    return job
