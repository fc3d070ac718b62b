"""Any single machine: no scheduler, one job at a time, all TCP on the loopback interface.

Its environments are the MPIs that are there: the wheels that `assay run` installs, `mpicc` on
PATH, Debian's, and environment modules.
"""

import os

from reframe.utility.cpuinfo import cpuinfo

from assay.fabrics import load_catalogue
from assay.imb import find_imb
from assay.mpi import find_mpis, modules_tool

catalogue = load_catalogue()
mpis = find_mpis()


def usable(mpi):
    """The fabrics that this build of the MPI can use; reasons for the others: `assay doctor`."""
    return [name for name in catalogue.fabrics if catalogue.no_recipe(name, mpi) is None]


def imb_of(mpi):
    """Features and extras that let IMB-MPI1 run on the MPI, where there is one for it."""
    if (imb := find_imb(mpi)) is None:
        return [], {}
    return ['imb'], {'imb': str(imb.program), 'imb_libraries': str(imb.libraries)}


# Also what keeps MPI working on a laptop with a VPN. Open MPI 5's launcher refuses the loopback
# interface for itself; on one machine it makes no connection.
loopback_only = [
    ['OMPI_MCA_btl_tcp_if_include', 'lo'],
    ['HYDRA_IFACE', 'lo'],
    ['FI_TCP_IFACE', 'lo'],
    ['UCX_NET_DEVICES', 'lo'],
]

# Open MPI refuses to start as root without these; in a container root is the usual user.
as_root = [
    ['OMPI_ALLOW_RUN_AS_ROOT', '1'],
    ['OMPI_ALLOW_RUN_AS_ROOT_CONFIRM', '1'],
]

site_configuration = {
    'systems': [
        {
            'name': 'generic',
            'descr': 'any single machine',
            'hostnames': ['.*'],
            'modules_system': modules_tool(),
            'partitions': [
                {
                    'name': 'node',
                    'descr': 'this machine',
                    'scheduler': 'local',
                    'launcher': 'mpirun',
                    # ReFrame asks by itself only where the launcher is local as well.
                    'processor': cpuinfo(),
                    # Two jobs at once would measure each other.
                    'max_jobs': 1,
                    'environs': [mpi.name for mpi in mpis] or ['builtin'],
                    # Fabrics that need a device are for clusters: here nothing crosses a network.
                    'features': ['scale_1_node']
                    + [name for name, f in catalogue.fabrics.items() if f.device is None],
                    'env_vars': loopback_only + (as_root if os.geteuid() == 0 else []),
                }
            ],
        }
    ],
    'environments': [
        {
            'name': mpi.name,
            'cc': mpi.cc,
            'cxx': mpi.cxx or '',
            'ftn': '',
            # The machine that builds is the machine that runs.
            'cflags': ['-march=native'],
            'cxxflags': ['-march=native'],
            'modules': list(mpi.modules),
            'env_vars': [['PATH', f'{mpi.bindir}:$PATH'], *map(list, mpi.env.items())],
            'features': ['mpi', mpi.family, *usable(mpi), *imb_of(mpi)[0]],
            'extras': {'family': mpi.family, 'version': mpi.version} | imb_of(mpi)[1],
        }
        for mpi in mpis
    ],
}
