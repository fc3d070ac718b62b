"""An example to copy: a Slurm cluster with two partitions.

Copy it to config/systems/<your system>.py, change what is marked, and try it with

    ./assay doctor --system <your system>
    ./assay run --system <your system> -l

On a Slurm cluster `./assay init` writes such a file by itself (docs/init.md).

Where ReFrame runs, on a login node, it builds and waits: nothing is measured there. The checkout
has to be in a folder that the compute nodes have as well. For root, as in a container,
add what Open MPI requires to the partitions' env_vars: ['OMPI_ALLOW_RUN_AS_ROOT', '1'] and
['OMPI_ALLOW_RUN_AS_ROOT_CONFIRM', '1'].
"""

# The benchmarks are built where ReFrame runs: name the compute nodes' architecture.
flags = ['-march=x86-64-v3']  # change

# An environment is a compiler and an MPI. The features name the MPI's family and the fabrics that
# this build of it can use (config/fabrics.yaml says what each fabric is).
openmpi = {
    'name': 'openmpi',
    'modules': ['gcc/13.2', 'openmpi/5.0.8'],  # change: what `module load` needs
    'cc': 'mpicc',
    'cxx': 'mpicxx',
    'ftn': '',
    'cflags': flags,
    'cxxflags': flags,
    'features': ['mpi', 'openmpi', 'shm', 'ucx-shm', 'ucx-ib'],
    'extras': {'family': 'openmpi', 'version': '5.0.8'},
    'env_vars': [['SLURM_MPI_TYPE', 'pmix']],  # how srun and this MPI find each other
}
mpich = {
    'name': 'mpich',
    'modules': ['gcc/13.2', 'mpich/4.3.2'],  # change
    'cc': 'mpicc',
    'cxx': 'mpicxx',
    'ftn': '',
    'cflags': flags,
    'cxxflags': flags,
    'features': ['mpi', 'mpich', 'shm', 'ofi-tcp', 'ucx-ib'],
    'extras': {'family': 'mpich', 'version': '4.3.2'},
    'env_vars': [['SLURM_MPI_TYPE', 'pmi2']],
}

site_configuration = {
    'systems': [
        {
            'name': 'example-slurm',  # change: the name of this file, without .py
            'descr': 'a Slurm cluster with an InfiniBand and an Ethernet partition',
            'hostnames': [r'login\d+'],  # change: expression for the hosts where ReFrame runs
            'modules_system': 'lmod',
            'partitions': [
                {
                    'name': 'compute',
                    'descr': 'two sockets, InfiniBand',
                    'scheduler': 'slurm',
                    'launcher': 'srun',
                    # change: options that every job needs
                    'access': ['--partition=compute', '--account=staff', '--exclusive'],
                    'environs': ['openmpi', 'mpich'],
                    # The scales it may be measured at (any number of nodes, and scale_half and
                    # scale_all of the 'nodes' in the extras), and the fabrics its nodes have.
                    'features': [
                        *('scale_1_node', 'scale_2_nodes', 'scale_4_nodes'),
                        *('shm', 'ucx-shm', 'ucx-ib'),
                    ],
                    'max_jobs': 4,
                    'extras': {'memory_gib': 256},  # change: of a node, for sizes of problems
                    # Leave this out and ReFrame asks a node (RFM_REMOTE_DETECT=1).
                    'processor': {
                        'num_cpus': 64,
                        'num_cpus_per_core': 1,
                        'num_cpus_per_socket': 32,
                        'num_sockets': 2,
                        'topology': {
                            'numa_nodes': ['0x00000000ffffffff', '0xffffffff00000000'],
                        },
                    },
                },
                {
                    'name': 'small',
                    'descr': 'one socket, Ethernet only',
                    'scheduler': 'slurm',
                    'launcher': 'mpiexec',
                    'access': ['--partition=small', '--exclusive'],
                    'environs': ['mpich'],
                    'features': ['scale_1_node', 'scale_2_nodes', 'scale_all', 'shm', 'ofi-tcp'],
                    'max_jobs': 4,
                    'extras': {'memory_gib': 64, 'nodes': 12},  # change: all of the partition
                    # change: the interface that MPI may use between nodes
                    'env_vars': [['FI_TCP_IFACE', 'eth0'], ['HYDRA_IFACE', 'eth0']],
                    'processor': {
                        'num_cpus': 16,
                        'num_cpus_per_core': 1,
                        'num_cpus_per_socket': 16,
                        'num_sockets': 1,
                        'topology': {'numa_nodes': ['0xffff']},
                    },
                },
            ],
        }
    ],
    'environments': [openmpi, mpich],
}
