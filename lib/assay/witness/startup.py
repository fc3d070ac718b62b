"""How long a job took to start and to end: until ``main``, ``MPI_Init`` and ``MPI_Finalize``."""

from __future__ import annotations

from collections.abc import Iterable

from assay.programs.figure import Figure
from assay.witness.report import Report

#: Names of the figures, and where a rank was meanwhile.
STARTUP = {
    'startup': 'from the launcher to main',
    'mpi_init': 'in MPI_Init',
    'mpi_finalize': 'in MPI_Finalize',
}


#: Seconds below which nobody waits for a start or an end: such ones are not compared.
LEAST = 1.0


def _slowest(report: Report) -> dict[str, tuple[float, int]]:
    """Of each figure the seconds of the slowest rank, and which it was; none that nobody told."""
    starts = [(one.startup, one.rank) for one in report.processes if one.startup]
    begun = {rank: one.main for one, rank in starts if one.main is not None}
    # Ranks wait in MPI_Init for the last one: how late that began is of the start.
    last = max(begun.values(), default=0.0)
    waited = {rank: last - main for rank, main in begun.items()}
    taken = {
        'startup': [(main, rank) for rank, main in begun.items()],
        'mpi_init': [(max(0.0, one.init - waited.get(rank, 0.0)), rank) for one, rank in starts],
        'mpi_finalize': [
            (one.finalize, one.rank) for one in report.finalized if one.rank < report.ranks
        ],
    }
    return {name: max(some) for name, some in taken.items() if some}


def startup_figures(report: Report) -> dict[str, Figure]:
    """Seconds of the slowest rank."""
    return {name: Figure(taken, 's', 'lower') for name, (taken, _) in _slowest(report).items()}


def slowest_ranks(reports: Iterable[Report]) -> dict[str, str]:
    """Of each figure the slowest rank of all starts of a job, and where it was, in words."""
    found: dict[str, tuple[float, str]] = {}
    for report in reports:
        for name, (taken, rank) in _slowest(report).items():
            who = f'rank {rank} on {report.processes[rank].host} took {taken:.1f} s {STARTUP[name]}'
            found[name] = max(found.get(name, (0.0, '')), (taken, who))
    return {name: who for name, (_, who) in found.items()}
