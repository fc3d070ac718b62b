"""The virtual Slurm cluster that `assay cluster up` starts on this machine (docs/vcluster.md).

Its two partitions have the same nodes and start MPI programs in two ways: Slurm's srun, and each
MPI's own launcher inside the allocation.
"""

from assay.config.environments import AS_ROOT, environment, environs, spack_specs, tcp_over
from assay.config.fabrics import load_catalogue
from assay.config.scales import SCALES
from assay.machine.candidates import wheels
from assay.machine.mpi import examine_mpi
from assay.mpis import FAMILIES
from assay.vcluster.cluster import size
from assay.vcluster.node import ENVIRONMENT

nodes, cpus = size()

# How srun and each MPI find each other.
pmis = {key: family.srun_pmi for key, family in FAMILIES.items() if family.srun_pmi}

# The same on every machine. Debian 12's MPICH 4.0.2 hangs in MPI_Finalize in one job of ten here.
mpis = [mpi for mpi in map(examine_mpi, wheels()) if mpi and mpi.family in pmis]
specs = spack_specs(mpis)

# All that need no device, each by one launcher at least: by both they would take twice the time.
NETWORKS = {'srun': ['tcp', 'ucx-tcp'], 'mpirun': ['tcp', 'ofi-tcp']}
# Where they are no scale by their number.
parts = (
    [] if nodes in SCALES.values() else ['scale_all'] if nodes < 4 else ['scale_half', 'scale_all']
)
# Nothing goes on within a node of one CPU.
within = [
    name
    for name, fabric in load_catalogue().fabrics.items()
    if not fabric.needs_device and not fabric.crosses_nodes and cpus > 1
]


def partition(launcher):
    return {
        'name': launcher,
        'descr': f'nodes of {cpus} CPU(s), programs started by {launcher}',
        'scheduler': 'slurm',
        # Nobody comes to mend a node: a job that waits for one is cancelled.
        'sched_options': {
            'slurm_job_cancel_reasons': [
                'ReqNodeNotAvail',
                'Nodes required for job are DOWN',
                'PartitionDown',
                'PartitionInactive',
            ],
        },
        'launcher': launcher,
        'environs': environs(mpis),
        'features': [
            *(f'scale_{name}' for name, count in SCALES.items() if count <= nodes),
            *parts,
            *NETWORKS[launcher],
            *within,
        ],
        # Memory of each: they share the machine's, and its CPUs.
        'extras': {'memory_gib': 2, 'on_this_machine': True, 'nodes': nodes},
        'processor': {
            'num_cpus': cpus,
            'num_cpus_per_core': 1,
            'num_cpus_per_socket': cpus,
            'num_sockets': 1,
            'topology': {'numa_nodes': [hex((1 << cpus) - 1)]},
        },
        # All nodes are the same few CPUs: two jobs at once would measure each other. The licence
        # keeps those of the other partition apart.
        'max_jobs': 1,
        'access': ['--licenses=machine'],
        # The last is what its own daemons have as well.
        'env_vars': [*tcp_over('eth0'), *AS_ROOT, *map(list, ENVIRONMENT.items())],
    }


site_configuration = {
    'systems': [
        {
            'name': 'vcluster',
            'descr': f'a virtual Slurm cluster of {nodes} nodes',
            'hostnames': ['head'],
            'partitions': [partition('srun'), partition('mpirun')],
        }
    ],
    # ReFrame runs on the CPUs that are measured: it asks Slurm for the state of jobs twice a
    # second, not ten times.
    'general': [{'poll_rate_max': 2, 'target_systems': ['vcluster']}],
    'environments': [
        own | {'target_systems': [where], 'env_vars': own['env_vars'] + more}
        for mpi in mpis
        for own in [environment(mpi, specs[mpi.name])]
        for where, more in [
            ('vcluster', []),
            ('vcluster:srun', [['SLURM_MPI_TYPE', pmis[mpi.family]]]),
        ]
    ],
}
