"""The hardest wrong kernels of the benchmarks; ``measurements/mutants.py`` tries them all."""

import pytest
from wrong_kernels import hardest, mpi, node

from families import on_one_mpi


@on_one_mpi
@pytest.mark.parametrize('kind', [mpi, node], ids=['mpi', 'node'])
def test_wrong_kernels_are_noticed(complaint, kind):
    """In one test, as each worker that runs a part of it would configure a build of its own."""
    name = kind.__name__.rpartition('.')[2]
    assert [one.name for one in hardest(kind.MUTANTS) if not complaint(name, one)] == []
