"""Any single machine: no scheduler, one job at a time, all TCP on the loopback interface.

Its environments are the MPIs that are there: the wheels that `assay run` installs, `mpicc` on
PATH, Debian's, and environment modules. An MPI that does not answer fails; one that cannot be
driven here is left out (`assay run` and `assay doctor` say so).
"""

import os

from assay.config.environments import (
    AS_ROOT,
    environment,
    environs,
    spack_specs,
    stand_in_for,
    tcp_over,
)
from assay.config.fabrics import load_catalogue
from assay.machine.modules import modules_tool
from assay.machine.topology import names, this_machine
from assay.running.prepare import mpis_of_run

# ReFrame has a system of this name, for machines without a configuration.
stand_in_for('generic')

mpis = [mpi for mpi in mpis_of_run() if not mpi.left_out]
specs = spack_specs(mpis)

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
                    # ReFrame's own description has CPUs that are offline, and memory as domains.
                    'processor': names() | this_machine().for_reframe(),
                    'extras': {'core_kinds': this_machine().core_kinds},
                    # Two jobs at once would measure each other.
                    'max_jobs': 1,
                    'environs': environs(mpis),
                    # Fabrics that need a device are for clusters: here nothing crosses a network.
                    'features': ['scale_1_node']
                    + [name for name, f in load_catalogue().fabrics.items() if not f.needs_device],
                    # Also what keeps MPI working on a laptop with a VPN. Open MPI 5's launcher
                    # refuses this interface for itself; on one machine it makes no connection.
                    'env_vars': tcp_over('lo') + (AS_ROOT if os.geteuid() == 0 else []),
                }
            ],
        }
    ],
    'environments': [environment(mpi, specs.get(mpi.name)) for mpi in mpis],
}
