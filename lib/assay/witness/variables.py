"""Variables that steer a job and that nobody set for it: what a module or a profile has left.

``docs/witness.md`` says which variables the witness records, and what is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from assay.mpis import FAMILIES
from assay.text import plain
from assay.witness.report import Report

#: What variables begin with that steer an MPI, its transports, threads, libraries or memory; the
#: witness records these, and which modules are loaded (sources/witness/variables.c).
STEERING = (
    *('OMPI_MCA_', 'PRTE_MCA_', 'PMIX_MCA_', 'MPIR_CVAR_', 'MPICH_', 'I_MPI_', 'HYDRA_', 'MV2_'),
    *('MVP_', 'UCX_', 'UCC_', 'HCOLL_', 'SHARP_', 'FI_', 'PSM_', 'PSM2_', 'PSM3_'),
    *('OMP_', 'GOMP_', 'KMP_', 'OPENBLAS_', 'GOTO_', 'MKL_', 'BLIS_'),
    *('MALLOC_', 'GLIBC_TUNABLES', 'LD_PRELOAD', 'LD_AUDIT'),
)

#: Those that steer how ranks are started, and nothing afterwards.
OF_THE_START = ('PRTE_MCA_', 'PMIX_MCA_', 'HYDRA_', 'I_MPI_HYDRA_', 'OMPI_MCA_plm_')

#: Of these, those that steer how ranks find each other: they explain nothing once ranks have.
OF_THE_MEETING = ('PMIX_MCA_',)

#: What Slurm puts into each allocation, as of 23.11, for the launchers of all MPIs; and what
#: Assay's virtual cluster has for its daemons, whichever system's file is used there.
OF_THE_SCHEDULER = {
    'PMIX_MCA_psec': 'native',
    'HYDRA_BOOTSTRAP': 'slurm',
    'HYDRA_LAUNCHER_EXTRA_ARGS': '--external-launcher',
    'I_MPI_HYDRA_BOOTSTRAP': 'slurm',
    'I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS': '--external-launcher',
    'OMPI_MCA_plm_slurm_args': '--external-launcher',
    'PRTE_MCA_plm_slurm_args': '--external-launcher',
}

#: Leftovers of a job that are kept, and characters of each: they are what others wrote.
MOST, LONGEST = 100, 120


def steering(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that steer jobs."""
    return {name: value for name, value in environment.items() if name.startswith(STEERING)}


def is_steering(name: str) -> bool:
    """Whether a variable steers jobs."""
    return name.startswith(STEERING)


def of_ranks(report: Report) -> dict[str, set[str]]:
    """The steering variables of ranks in MPI_Init, each with its values."""
    found = report.values_of_variables().items()
    return {name: values - {'-'} for name, values in found if name.startswith(STEERING)}


def leftovers(
    found: Mapping[str, Iterable[str]],
    set_for_it: Collection[str],
    asked_for: Mapping[str, str],
    family: str,
) -> list[str]:
    """Variables that may matter to a job and that were not set for it: ``NAME=VALUE``, as text.

    What steers only the start of ranks comes last: not all of many are kept, and fewer shown.

    :param found: the values of each.
    :param set_for_it: names of those that the suite and the system's file set.
    :param asked_for: those that the user set for the job in place of these, or besides.
    :param family: of the job's MPI.
    """
    mpi = FAMILIES[family]
    of_others = tuple(
        prefix
        for other in FAMILIES.values()
        for prefix in other.own_variables
        if prefix not in mpi.own_variables
    )
    launcher = re.compile(mpi.set_by_launcher or '(?!)')
    left = []
    by_weight = sorted(found, key=lambda name: (name.startswith(OF_THE_START), name))
    for name in by_weight:
        if name.startswith(of_others):
            continue
        for value in sorted({*found[name]} - {OF_THE_SCHEDULER.get(name)}):
            is_set = name in set_for_it or launcher.fullmatch(name)
            if not is_set or asked_for.get(name) == value:
                left.append(plain(f'{name}={value}', LONGEST))
    return left[:MOST]
