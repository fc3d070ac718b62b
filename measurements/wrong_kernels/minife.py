"""Wrong miniFEs: other equations, wrong conjugate gradients, stale halos, wrong times."""

from __future__ import annotations

from assay.programs.minife import MiniFE
from wrong_kernels import Built, complaint_of_application, read_mutants

#: Bytes of the problem, ranks and threads: 13 and 16 elements an edge.
_RUNS = ((1.1e6, 1, 3), (1.9e6, 3, 1))


def complaint(built: Built, program: str) -> str:
    """What the check says of the first run that it refuses."""
    application = MiniFE()
    for size, ranks, threads in _RUNS:
        problem = application.problem(size, ranks, threads)
        if said := complaint_of_application(built, application, problem, ranks, threads):
            return said
    return ''


MUTANTS = read_mutants('minife')
