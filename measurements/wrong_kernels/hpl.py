"""Wrong HPLs: other systems, wrong factors and solutions, wrong norms, wrong times."""

from __future__ import annotations

from dataclasses import replace

from assay.programs.application import Problem
from assay.programs.hpl import Hpl
from wrong_kernels import Built, complaint_of_application, read_mutants

#: Order, ranks and threads. Of some the greatest element of x is in the first half, of some not.
#: Two process columns have one way to broadcast, three have two.
_RUNS = ((160, 2, 1), (224, 4, 1), (96, 1, 2), (96, 3, 1))


def complaint(built: Built, program: str) -> str:
    """What the check says of the first run that it refuses."""
    application = Hpl()
    for order, ranks, threads in _RUNS:
        problem = _of_two_tests(application.problem(8.0 * order * order, ranks, threads))
        if said := complaint_of_application(built, application, problem, ranks, threads):
            return said
    return ''


def _of_two_tests(problem: Problem) -> Problem:
    lines = problem.files['HPL.dat'].splitlines()
    lines[4:6] = ['2 sizes', f'{problem.facts["n"]} {problem.facts["n"]}']
    facts = {**problem.facts, 'runs': 2}
    return replace(problem, files={'HPL.dat': '\n'.join(lines) + '\n'}, facts=facts)


MUTANTS = read_mutants('hpl')
