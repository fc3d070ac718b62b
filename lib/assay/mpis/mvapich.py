"""MVAPICH as of version 3, which is made from MPICH's device ch4. It was never run.

What its user guides (launchers, Hydra, CVARs) and Spack's package of it say: the launcher is Hydra,
with its options and variables, and srun's PMI is pmi2; CVARs have MPICH's names; ``mpichversion``
begins with `MVAPICH Version:`, as MPI_Get_library_version does. The words of its C wrapper are
MPICH's, with its own name. Version 2 is another MPI (:mod:`assay.mpis.strangers`).
"""

from __future__ import annotations

from assay.mpis import hydra, mpich, transports
from assay.mpis.family import Family, Recipe

_RECIPES = {
    'ucx-tcp': Recipe(
        requires=r'ch4:.*\bucx\b',
        env={'MPIR_CVAR_NOLOCAL': '1', 'MPIR_CVAR_CH4_NETMOD': 'ucx', 'UCX_TLS': 'self,tcp'},
        expect=[transports.UCX_IS_TCP],
        forbid=transports.UCX_NOT_TCP,
    ),
    'ucx-ib': Recipe(
        requires=r'ch4:.*\bucx\b',
        env={'MPIR_CVAR_CH4_NETMOD': 'ucx', 'UCX_TLS': 'self,sm,ib'},
        expect=[transports.UCX_IS_IB],
        forbid=transports.UCX_NOT_IB,
    ),
    'ofi-psm': Recipe(
        requires=r'ch4:.*\bofi\b',
        env={'MPIR_CVAR_CH4_NETMOD': 'ofi', 'FI_PROVIDER': 'psm2'},
        expect=['libfabric provider: psm2'],
        forbid=['libfabric provider: (?!psm2)'],
    ),
}

# Launcher, PMI, variables and words are MPICH's, but for these.
FAMILY = Family.model_validate(
    dict(mpich.FAMILY)
    | {
        'key': 'mvapich',
        'name': 'MVAPICH',
        # Hydra's own version is that of the MPICH that it was made from.
        'launcher_says': hydra.SAYS,
        'wrapper_says': r'^mpi\S+ for MVAPICH version (\d\S*)',
        'hints': '(?i)mvapich(?!2)',
        'modules': 'mvapich[34]?(?:-plus)?',
        'in_debian': False,
        'was_run': False,
        'is_needed': False,
        'spack': 'mvapich',
        'library': '^MVAPICH Version:',
        'statement': {'MPIR_CVAR_DEBUG_SUMMARY': '1', **transports.STATEMENT},
        'quote': rf'libfabric provider: .*|{transports.UCX_QUOTE}',
        'async_progress': None,
        'recipes': _RECIPES,
    }
)
