"""Made-up clusters, each with a network or a scheduler that no test machine has.

Only job scripts are written for them. ``docs/schedulers.md`` says why their ``access`` is as it is.
"""


def processor(sockets, cores_per_socket, domains, threads_per_core=1):
    """A node's processors, whose NUMA domains have a last-level cache of 32 MiB each."""
    cores = sockets * cores_per_socket
    width = cores // domains
    threads = range(threads_per_core)
    masks = [
        hex(sum(((1 << width) - 1) << domain * width + thread * cores for thread in threads))
        for domain in range(domains)
    ]
    return {
        'num_cpus': cores * threads_per_core,
        'num_cpus_per_core': threads_per_core,
        'num_cpus_per_socket': cores_per_socket * threads_per_core,
        'num_sockets': sockets,
        'topology': {
            'numa_nodes': masks,
            'caches': [{'type': 'L3', 'size': 32 << 20, 'cpusets': masks}],
        },
    }


BY_SRUN = ['clusters:infiniband', 'clusters:slingshot']
SCALES = ['scale_1_node', 'scale_2_nodes', 'scale_4_nodes']

site_configuration = {
    'systems': [
        {
            'name': 'clusters',
            'hostnames': ['nowhere'],
            'partitions': [
                {
                    'name': 'infiniband',
                    'descr': 'nodes with GPUs, in a reservation',
                    'scheduler': 'slurm',
                    'sched_options': {'use_nodes_option': True},
                    'launcher': 'srun',
                    'access': [
                        '--partition=gpu',
                        '--account=staff',
                        '--reservation=maintenance',
                        '--constraint=hdr&a100',
                        '--gres=gpu:4',
                        '--exclusive',
                        '--mem=0',
                    ],
                    'environs': ['openmpi', 'mpich'],
                    'features': [*SCALES, 'ucx-ib'],
                    'env_vars': [['UCX_NET_DEVICES', 'mlx5_0:1']],
                    'processor': processor(sockets=2, cores_per_socket=32, domains=2),
                    'extras': {'memory_gib': 512, 'ports': {'mlx5_0': 200}},
                },
                {
                    'name': 'slingshot',
                    'descr': 'two threads a core, four NUMA domains a socket',
                    'scheduler': 'slurm',
                    'launcher': 'srun',
                    'access': [
                        '--partition=standard',
                        '--account=staff',
                        '--exclusive',
                        '--mem=0',
                        '--threads-per-core=1',
                        '--network=single_node_vni',
                    ],
                    'environs': ['openmpi', 'mpich'],
                    'features': [*SCALES, 'ofi-cxi'],
                    'processor': processor(
                        sockets=2, cores_per_socket=64, domains=8, threads_per_core=2
                    ),
                    'extras': {'memory_gib': 256},
                },
                {
                    'name': 'omnipath',
                    'descr': "programs started by each MPI's own launcher",
                    'scheduler': 'slurm',
                    'launcher': 'mpirun',
                    'access': ['--partition=batch', '--account=staff', '--exclusive', '--mem=0'],
                    'environs': ['openmpi', 'intelmpi'],
                    'features': [*SCALES, 'ofi-psm'],
                    'processor': processor(sockets=2, cores_per_socket=24, domains=2),
                    'extras': {'memory_gib': 192},
                },
                {
                    'name': 'pbs',
                    'descr': 'PBS Professional and InfiniBand',
                    'scheduler': 'pbspro',
                    'launcher': 'mpirun',
                    # What does not begin with a hyphen becomes part of each chunk.
                    'access': ['-A staff', '-q workq', '-l place=scatter:exclhost', 'mem=500gb'],
                    'environs': ['openmpi', 'mpich', 'contained'],
                    'features': [*SCALES, 'ucx-ib'],
                    'env_vars': [['UCX_NET_DEVICES', 'mlx5_0:1']],
                    'processor': processor(sockets=2, cores_per_socket=32, domains=2),
                    'extras': {'memory_gib': 512},
                },
            ],
        }
    ],
    'environments': [
        {
            'name': family,
            'features': ['mpi', family, 'ucx-ib', 'ofi-cxi', 'ofi-psm'],
            'extras': {'family': family},
            'target_systems': [where],
            'env_vars': [['SLURM_MPI_TYPE', pmi]] if pmi else [],
        }
        for where, family, pmi in [
            ('clusters', 'openmpi', None),
            ('clusters', 'mpich', None),
            ('clusters', 'intelmpi', None),
            *((name, 'openmpi', 'pmix') for name in BY_SRUN),
            *((name, 'mpich', 'pmi2') for name in BY_SRUN),
        ]
    ]
    + [
        {
            'name': 'contained',
            'features': ['mpi', 'openmpi', 'ucx-ib'],
            'extras': {
                'family': 'openmpi',
                'container': ['apptainer', 'exec', '--bind', '$PWD', '/images/mpi.sif'],
            },
        }
    ],
}
