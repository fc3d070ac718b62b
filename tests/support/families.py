"""The MPIs of this machine, and those that tests run on: one of each family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import Any

import pytest

from assay.machine.mpi import Mpi, find_mpis

#: All, by their names: they are asked once for all tests.
FOUND = {mpi.name: mpi for mpi in find_mpis()}


def _one_of_each_family() -> dict[str, Mpi]:
    chosen: dict[str, Mpi] = {}
    for mpi in FOUND.values():
        if not mpi.fault:
            chosen.setdefault(mpi.family, mpi)
    return {mpi.name: mpi for mpi in chosen.values()}


MPIS = _one_of_each_family()

#: The MPI whose jobs start in the shortest time.
QUICKEST = 'mpich' if 'mpich' in MPIS else next(iter(MPIS), '')

#: The MPIs that run programs of ours: Intel MPI is made from MPICH.
_OURS = [name for name, mpi in MPIS.items() if mpi.family != 'intelmpi'] or [*MPIS] or ['none']

#: For tests whose outcome does not depend on the MPI.
on_one_mpi = pytest.mark.parametrize('mpi', [QUICKEST] if QUICKEST else [], indirect=True)


def dealt(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Callable[[Any], str] | None = None,
) -> pytest.MarkDecorator:
    """Parametrize a test by values, each on one MPI: they are dealt out to the MPIs in turn.

    For programs of ours: what an MPI does in another way, it does with any of the values.

    :param names: as pytest has them; several, if a value is several.
    :param ids: names a value.
    """
    is_one = isinstance(names, str)
    both = zip(cycle(_OURS), values, strict=False)
    return pytest.mark.parametrize(
        ('mpi', names) if is_one else ('mpi', *names),
        [(mpi, value) if is_one else (mpi, *value) for mpi, value in both],
        indirect=['mpi'],
        ids=ids and (lambda one: None if isinstance(one, str) else ids(one)),
    )
