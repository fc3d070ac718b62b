"""The MPIs that tests run on: one of each family of this machine."""

from __future__ import annotations

import pytest

from assay.machine.mpi import Mpi, find_mpis


def _one_of_each_family() -> dict[str, Mpi]:
    chosen: dict[str, Mpi] = {}
    for mpi in find_mpis():
        if not mpi.fault:
            chosen.setdefault(mpi.family, mpi)
    return {mpi.name: mpi for mpi in chosen.values()}


MPIS = _one_of_each_family()

#: For tests whose outcome does not depend on the MPI.
on_one_mpi = pytest.mark.parametrize(
    'mpi', [name for name in MPIS if name == 'openmpi'] or [*MPIS][:1], indirect=True
)
