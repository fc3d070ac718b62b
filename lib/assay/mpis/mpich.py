"""MPICH, as of version 4 (the device ch4)."""

from __future__ import annotations

from assay.mpis import hydra, transports
from assay.mpis.family import AsyncProgress, Family, Recipe
from assay.mpis.mpich_algorithms import ALGORITHMS

_UCX = r'ch4:.*\bucx\b'
_OFI = r'ch4:.*\bofi\b'
_IS_UCX = ['CVAR: MPIR_CVAR_NOLOCAL = 1', 'CVAR: MPIR_CVAR_CH4_NETMOD = ucx']

_RECIPES = {
    'shm': Recipe(
        # The OFI netmod carries the messages that shared memory does not, and logs its first one.
        requires=_OFI,
        env={'MPIR_CVAR_NOLOCAL': '0', 'MPIR_CVAR_CH4_NETMOD': 'ofi', 'FI_PROVIDER': 'tcp'},
        expect=['CVAR: MPIR_CVAR_NOLOCAL = 0', 'libfabric provider: ', '::tcp:ep_ctrl:'],
        forbid=['CVAR: MPIR_CVAR_NOLOCAL = 1', 'ep_ctrl:.*FI_CONNECTED'],
    ),
    'ucx-shm': Recipe(
        requires=_UCX,
        env={'MPIR_CVAR_NOLOCAL': '1', 'MPIR_CVAR_CH4_NETMOD': 'ucx', 'UCX_TLS': 'self,sm'},
        expect=[*_IS_UCX, transports.UCX_IS_SHM],
        forbid=transports.UCX_NOT_SHM,
    ),
    'ucx-tcp': Recipe(
        requires=_UCX,
        env={'MPIR_CVAR_NOLOCAL': '1', 'MPIR_CVAR_CH4_NETMOD': 'ucx', 'UCX_TLS': 'self,tcp'},
        expect=[*_IS_UCX, transports.UCX_IS_TCP],
        forbid=transports.UCX_NOT_TCP,
    ),
    'ucx-ib': Recipe(
        requires=_UCX,
        env={'MPIR_CVAR_CH4_NETMOD': 'ucx', 'UCX_TLS': 'self,sm,ib'},
        expect=['CVAR: MPIR_CVAR_CH4_NETMOD = ucx', transports.UCX_IS_IB],
        forbid=transports.UCX_NOT_IB,
    ),
    'ofi-tcp': Recipe(
        requires=_OFI,
        env={'MPIR_CVAR_NOLOCAL': '1', 'MPIR_CVAR_CH4_NETMOD': 'ofi', 'FI_PROVIDER': 'tcp'},
        expect=[
            'CVAR: MPIR_CVAR_NOLOCAL = 1',
            'libfabric provider: tcp',
            '::tcp:ep_ctrl:.*FI_CONNECTED',
        ],
        forbid=[transports.OFI_NOT_TCP, 'libfabric provider: (?!tcp)'],
    ),
    'ofi-cxi': Recipe(
        requires=_OFI,
        # Without the last one it leaves this provider alone where all ranks are on one host, and
        # has no other.
        env={
            'MPIR_CVAR_CH4_NETMOD': 'ofi',
            'FI_PROVIDER': 'cxi',
            'MPIR_CVAR_SINGLE_HOST_ENABLED': '0',
        },
        expect=['libfabric provider: cxi'],
        forbid=['libfabric provider: (?!cxi)'],
    ),
    'ofi-psm': Recipe(
        requires=_OFI,
        env={'MPIR_CVAR_CH4_NETMOD': 'ofi', 'FI_PROVIDER': 'psm2'},
        expect=['libfabric provider: psm2'],
        forbid=['libfabric provider: (?!psm2)'],
    ),
}

FAMILY = Family(
    key='mpich',
    name='MPICH',
    launcher_says=hydra.SAYS + hydra.VERSION,
    wrapper_says=r'^mpi\S+ for MPICH version (\d\S*)',
    hints=r'(?i)mpich|mpiexec\.hydra|hydra_pmi',
    modules='mpich',
    in_debian=True,
    beside_launcher=(hydra.PROXY,),
    description=('mpichversion',),
    compiler_variable='MPICH_CC',
    is_needed=True,
    spack='mpich',
    bind=hydra.bind,
    srun_pmi='pmi2',
    interface=(hydra.INTERFACE, *transports.INTERFACE),
    own_variables=hydra.VARIABLES,
    set_by_launcher=hydra.SETS,
    library='^MPICH',
    refusal=r'launcher not compatible with PMI\w* client',
    statement={
        'MPIR_CVAR_DEBUG_SUMMARY': '1',
        'MPIR_CVAR_DEBUG_CVARS': '1',
        **transports.STATEMENT,
    },
    quote=r'CVAR: MPIR_CVAR_(?:NOLOCAL|CH4_NETMOD) = .*|libfabric provider: .*'
    rf'|ep_ctrl:.*FI_CONNECTED|{transports.UCX_QUOTE}',
    async_progress=AsyncProgress(
        env={'MPIR_CVAR_ASYNC_PROGRESS': '1'}, expect='CVAR: MPIR_CVAR_ASYNC_PROGRESS = 1'
    ),
    algorithms=ALGORITHMS,
    recipes=_RECIPES,
    # Of the common ABI, which Intel MPI and others have as well.
    soname='libmpi.so.12',
)
