"""The virtual Slurm cluster that `assay cluster up` starts on this machine (docs/vcluster.md).

Its two partitions have the same nodes and start MPI programs in two ways: Slurm's srun, and each
MPI's own launcher inside the allocation.
"""

from assay.environments import AS_ROOT, environment
from assay.fabrics import load_catalogue
from assay.mpi import find_mpis
from assay.scales import SCALES
from assay.vcluster.cluster import size

mpis = find_mpis()
nodes, cpus = size()

# How srun and the MPI find each other.
PMI = {'openmpi': 'pmix', 'mpich': 'pmi2'}

interface = [
    ['OMPI_MCA_btl_tcp_if_include', 'eth0'],
    ['HYDRA_IFACE', 'eth0'],
    ['FI_TCP_IFACE', 'eth0'],
    ['UCX_NET_DEVICES', 'eth0'],
]


def partition(launcher):
    return {
        'name': launcher,
        'descr': f'nodes of {cpus} CPU(s), programs started by {launcher}',
        'scheduler': 'slurm',
        'launcher': launcher,
        'environs': [mpi.name for mpi in mpis if mpi.family in PMI] or ['builtin'],
        'features': [
            *(f'scale_{name}' for name, count in SCALES.items() if count <= nodes),
            *(name for name, fabric in load_catalogue().fabrics.items() if fabric.device is None),
        ],
        'processor': {
            'num_cpus': cpus,
            'num_cpus_per_core': 1,
            'num_cpus_per_socket': cpus,
            'num_sockets': 1,
            'topology': {'numa_nodes': [hex((1 << cpus) - 1)]},
        },
        # All nodes are the same few CPUs: two jobs at once would measure each other.
        'max_jobs': 1,
        'env_vars': interface + AS_ROOT,
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
    'environments': [
        own | {'target_systems': [where], 'env_vars': own['env_vars'] + more}
        for mpi in mpis
        if mpi.family in PMI
        for own in [environment(mpi)]
        for where, more in [
            ('vcluster', []),
            ('vcluster:srun', [['SLURM_MPI_TYPE', PMI[mpi.family]]]),
        ]
    ],
}
