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

#: The MPI whose jobs start in the shortest time.
QUICKEST = 'mpich' if 'mpich' in MPIS else next(iter(MPIS), '')

#: For tests whose outcome does not depend on the MPI.
on_one_mpi = pytest.mark.parametrize('mpi', [QUICKEST] if QUICKEST else [], indirect=True)
