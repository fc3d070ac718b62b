"""Open MPI, as of version 4."""

from __future__ import annotations

from assay.mpis import transports
from assay.mpis.family import Family, Recipe, Words
from assay.mpis.openmpi_algorithms import ALGORITHMS


def _bind(layout: str, ranks: int, threads: int) -> Words:
    if layout == 'default':  # slots say how many ranks a node has
        return [], {}
    place, bind = {
        'packed': (f'slot:PE={threads}', 'core'),
        'spread': (f'numa:PE={threads}', 'core'),
        'one-per-numa': ('ppr:1:numa', 'numa'),
        'one-per-node': ('ppr:1:node', 'none'),
        'mixed': (f'ppr:{ranks}:node', 'none'),
        'threads': ('hwthread', 'hwthread'),
        'cyclic': (f'node:PE={threads}', 'core'),
        'hybrid': (f'ppr:{ranks}:node:PE={threads}', 'core'),
    }[layout]
    # Or cores were its slots. As of version 5 it is a word for --map-by :hwtcpus, which 4 has not.
    counts = ['--use-hwthread-cpus'] if layout == 'threads' else []
    return [*counts, f'--map-by {place}', f'--bind-to {bind}'], {}


_UCX = r'MCA pml: ucx\b'
_OFI = r'MCA mtl: ofi\b'

# Transports (BTLs) of Open MPI's own, which it opens beside UCX and libfabric for one-sided
# messages. Version 5 sleeps for a second when it closes `ofi` again.
_NO_RDMA_BTL = {'OMPI_MCA_btl': '^ofi,openib,uct'}


def _ucx(tls: str) -> dict[str, str]:
    return {
        'OMPI_MCA_pml': 'ucx',
        **_NO_RDMA_BTL,
        'OMPI_MCA_opal_common_ucx_tls': 'any',
        'OMPI_MCA_opal_common_ucx_devices': 'any',
        'UCX_TLS': tls,
    }


def _ofi(provider: str) -> dict[str, str]:
    return {
        'OMPI_MCA_pml': 'cm',
        'OMPI_MCA_mtl': 'ofi',
        'OMPI_MCA_opal_common_ofi_provider_include': provider,
        'FI_PROVIDER': provider,
    }


# One-sided operations by ob1's BTLs, and not by UCX. Version 4.1 takes its `rdma` first, which
# fails where no BTL has RDMA (open-mpi/ompi issues 9871 and 11466); its `pt2pt` sends messages.
_ONE_SIDED = {'OMPI_MCA_osc': '^ucx', 'OMPI_MCA_osc_rdma_priority': '1'}
#: Version 4 prefers its BTLs for them, within a node by memory, whatever messages take.
_BY_UCX = {'OMPI_MCA_osc': 'ucx'}

_OFF_HOST_NOT_OFI = 'off-host: +(?! |all connections are (?:ofi|n/a))'

_RECIPES = {
    'shm': Recipe(
        requires=r'MCA btl: (?:sm|vader)\b',
        env={'OMPI_MCA_pml': 'ob1', 'OMPI_MCA_btl': 'self,vader'},  # version 4's name for sm
        expect=['on-host: +all connections are sm|bml: Using (?:sm|vader) btl for send'],
        forbid=[
            'o(?:n|ff)-host: +(?! |all connections are (?:sm|n/a))',
            r'bml: Using (?!self|sm|vader)\w+ btl for send',
        ],
    ),
    'tcp': Recipe(
        requires=r'MCA btl: tcp\b',
        env={'OMPI_MCA_pml': 'ob1', 'OMPI_MCA_btl': 'self,tcp'},
        expect=['o(?:n|ff)-host: +all connections are tcp|bml: Using tcp btl for send'],
        forbid=[
            'o(?:n|ff)-host: +(?! |all connections are (?:tcp|self|n/a))',
            r'bml: Using (?!self|tcp)\w+ btl for send',
        ],
        one_sided=_ONE_SIDED,
    ),
    'ucx-shm': Recipe(
        requires=_UCX,
        env=_ucx('self,sm'),
        expect=[
            'on-host: +all connections are ucx=|select: component ucx selected',
            transports.UCX_IS_SHM,
        ],
        forbid=transports.UCX_NOT_SHM,
        one_sided=_BY_UCX,
    ),
    'ucx-tcp': Recipe(
        requires=_UCX,
        env=_ucx('self,tcp'),
        expect=[
            'o(?:n|ff)-host: +all connections are ucx=|select: component ucx selected',
            transports.UCX_IS_TCP,
        ],
        forbid=transports.UCX_NOT_TCP,
        one_sided=_BY_UCX,
    ),
    'ucx-ib': Recipe(
        requires=_UCX,
        env=_ucx('self,sm,ib'),
        expect=[
            'off-host: +all connections are ucx=|select: component ucx selected',
            transports.UCX_IS_IB,
        ],
        forbid=transports.UCX_NOT_IB,
        one_sided=_BY_UCX,
    ),
    'ofi-tcp': Recipe(
        requires=_OFI,
        env=_ofi('tcp;ofi_rxm') | _NO_RDMA_BTL,
        expect=[
            'o(?:n|ff)-host: +all connections are ofi|select: component cm selected',
            '::ofi_rxm:ep_ctrl:',
        ],
        forbid=[
            transports.OFI_NOT_TCP,
            'o(?:n|ff)-host: +(?! |all connections are (?:ofi|self|n/a))',
        ],
        one_sided=None,  # they go by BTLs, within a node by memory
    ),
    'ofi-cxi': Recipe(
        requires=_OFI,
        env=_ofi('cxi'),
        expect=['off-host: +all connections are ofi', '::cxi:'],
        forbid=[transports.OFI_OTHERS, _OFF_HOST_NOT_OFI],
    ),
    'ofi-psm': Recipe(
        requires=_OFI,
        env=_ofi('psm2'),
        expect=['off-host: +all connections are ofi', '::psm2:'],
        forbid=[transports.OFI_OTHERS, _OFF_HOST_NOT_OFI],
    ),
}

# Version 4's launcher hands its options on, and what it found out for all ranks.
_SETS = (
    'OMPI_MCA_(?:rmaps_base_mapping_policy|hwloc_base_binding_policy|mpi_oversubscribe|pmix'
    '|shmem_RUNTIME_QUERY_hint)|PMIX_MCA_mca_base_component_show_load_errors'
)

FAMILY = Family(
    key='openmpi',
    name='Open MPI',
    launcher_says=r'(?:Open MPI|OpenRTE)\)? v?(\d\S*)',
    wrapper_says=r'^(?:\S*/)?mpi\S+: Open MPI v?(\d\S*)',
    wrapper_option='--showme:version',
    hints=r'(?i)open-?mpi|\bompi|opal|orte|open-rte|prte',
    # HPC-X and NVIDIA's HPC SDK bring it under their own names.
    modules='open-?mpi|ompi|hpc-?x',
    in_debian=True,
    description=('ompi_info',),
    needs_description=True,
    compiler_variable='OMPI_CC',
    is_needed=True,
    spack='openmpi',
    bind=_bind,
    srun_pmi='pmix',
    interface=('OMPI_MCA_btl_tcp_if_include', *transports.INTERFACE),
    # In a container root is the usual user.
    as_root={'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'},
    own_variables=('OMPI_MCA_', 'PRTE_MCA_', 'PMIX_MCA_'),
    set_by_launcher=_SETS,
    library='^Open MPI',
    refusal="OMPI was not built with SLURM's PMI support",
    statement={
        'OMPI_MCA_ompi_display_comm': 'mpi_finalize',  # Open MPI 5: a table per pair of hosts
        'OMPI_MCA_btl_base_verbose': '20',  # Open MPI 4: the transport (BTL) of each peer
        'OMPI_MCA_pml_base_verbose': '10',  # Open MPI 4: the point-to-point layer (PML)
        **transports.STATEMENT,
    },
    quote=r'o(?:n|ff)-host: .*|bml: Using (?!self).* btl for send|select: component \w+ selected'
    rf'|{transports.UCX_QUOTE}',
    algorithms=ALGORITHMS,
    recipes=_RECIPES,
    soname='libmpi.so.40',
)
