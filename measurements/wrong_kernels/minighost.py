"""Wrong kernels of miniGhost, each at the suite's problem: on 1 rank, 2 with 2 threads, and 4."""

from __future__ import annotations

from assay.programs.application import Problem
from assay.programs.minighost import MiniGhost
from wrong_kernels import Built, complaint_of_application, read_mutants

_SIZE = 1e6  # bytes
_STEPS = 40
_RUNS = ((1, 1), (2, 2), (4, 1))


def complaint(built: Built, program: str) -> str:
    application = MiniGhost()
    for ranks, threads in _RUNS:
        problem = _shorter(application.problem(_SIZE, ranks, threads))
        if said := complaint_of_application(built, application, problem, ranks, threads):
            return said
    return ''


def _shorter(problem: Problem) -> Problem:
    """The same with fewer steps: those that follow show nothing more."""
    words = list(problem.arguments)
    words[words.index('--num_tsteps') + 1] = words[words.index('--report_diffusion') + 1] = str(
        _STEPS
    )
    return Problem(words, problem.files, {**problem.facts, 'the number of time steps': _STEPS})


MUTANTS = read_mutants('minighost')
