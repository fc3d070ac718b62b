"""What `assay init` may find: MPIs, and a node that tells of itself."""

from pathlib import Path

from assay.discovery.node import NodeFacts
from assay.machine.mpi import Mpi

MPICH = Mpi(
    name='mpich',
    family='mpich',
    version='4.3.2',
    prefix=Path('/opt/mpich'),
    cc='/opt/mpich/bin/mpicc',
    cxx='/opt/mpich/bin/mpicxx',
    bindir=Path('/opt/mpich/bin'),
    launcher='/opt/mpich/bin/mpiexec',
    description='MPICH Device: ch4:ucx',
    source='PATH',
    compiler='/usr/bin/gcc',
)
OPENMPI = Mpi(
    name='openmpi-module-openmpi-5_0_8',
    family='openmpi',
    version='5.0.8',
    prefix=Path('/opt/openmpi'),
    cc='/opt/openmpi/bin/mpicc',
    cxx=None,
    bindir=Path('/opt/openmpi/bin'),
    launcher='/opt/openmpi/bin/mpirun',
    description='MCA btl: tcp (MCA v2.1.0)\nMCA pml: ucx (MCA v2.1.0)',
    source='module',
    modules=('openmpi/5.0.8',),
    compiler='/usr/bin/gcc',
)


def facts(name='n1', allowed=range(64), **changed):
    processor = {
        'arch': 'zen3',
        'vendor': 'AuthenticAMD',
        'model': 'AMD EPYC 7543',
        'platform': 'x86_64',
        'num_cpus': 64,
        'num_cpus_per_core': 1,
        'num_cpus_per_socket': 32,
        'num_sockets': 2,
        'topology': {
            'numa_nodes': ['0xffffffff00000000', '0xffffffff'],
            'sockets': ['0xffffffff00000000', '0xffffffff'],
            'cores': [hex(1 << cpu) for cpu in range(64)],
            'caches': [
                {
                    'type': 'L3',
                    'size': 32 << 20,
                    'linesize': 64,
                    'associativity': 16,
                    'num_cpus': 8,
                    'cpusets': [hex(0xFF << 8 * i) for i in range(8)],
                }
            ],
        },
    }
    told = {'boot': name, 'processor': processor, 'allowed': [*allowed], 'memory': 257000}
    told |= {'interface': 'eth0', 'interfaces': ['eth0'], 'devices': []}
    return NodeFacts(name=name, **(told | changed))
