"""The system on which checks look at golden jobs: nothing is run on it."""

from assay.config.environments import tcp_over
from assay.config.fabrics import load_catalogue

FABRICS = list(load_catalogue().fabrics)

site_configuration = {
    'systems': [
        {
            'name': 'golden',
            'hostnames': ['.*'],
            'partitions': [
                {
                    'name': 'node',
                    'scheduler': 'local',
                    'max_jobs': 1,
                    'launcher': 'mpirun',
                    'environs': ['openmpi', 'mpich', 'intelmpi'],
                    'features': ['scale_1_node', *FABRICS],
                    'env_vars': tcp_over('lo'),  # as where the jobs were run
                    'processor': {
                        'arch': 'zen3',
                        'num_cpus': 2,
                        'num_cpus_per_core': 1,
                        'num_cpus_per_socket': 2,
                        'num_sockets': 1,
                        'topology': {
                            'numa_nodes': ['0x3'],
                            'caches': [{'type': 'L3', 'size': 32 << 20, 'cpusets': ['0x3']}],
                        },
                    },
                }
            ],
        }
    ],
    'environments': [
        {
            'name': family,
            'features': ['mpi', 'imb', family, *FABRICS],
            'extras': {'family': family, 'imb': 'IMB-MPI1', 'imb_libraries': '/nowhere'},
        }
        for family in ('openmpi', 'mpich', 'intelmpi')
    ],
}
