"""HPCG: conjugate gradients with a multigrid preconditioner; the report of version 3.1.

The matrix is that of a 27-point stencil on a grid, so its sizes and the operations of an iteration
are known; so are the bytes that HPCG counts for them. Both are computed here, as rates are figures
only if they are these over the time that was taken.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from assay.programs import application
from assay.programs.application import Application, Problem, WrongAnswerError
from assay.programs.figure import Figure, Quantity, figures_of
from assay.programs.sizes import process_grid

#: The report, and the log, in which HPCG tells why it refuses.
_REPORTS, _LOGS = 'HPCG-Benchmark*.txt', 'hpcg*.txt'

#: Of memory for each equation, seen of version 3.1 with all of its coarse grids.
_BYTES_OF_EQUATION = 900

#: Of the grid of each rank: what HPCG takes at least, and what four grids need that halve.
_LEAST_EDGE, _MULTIPLE = 16, 8

#: Of the edges of a rank's grid, and of the grid of ranks, shortest to longest: less is refused.
_LEAST_RATIO = 0.125

#: Grids, the finest first.
_LEVELS = 4

#: Seconds of measuring; an official result takes 1800.
_SECONDS = 10

#: Iterations of the reference, which sets how far others must reduce the residual.
_ITERATIONS = 50

#: Six digits are printed of each number of those that make a rate.
_PRINTED = 2e-5

_SYMMETRY = "Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon"
_TESTS = (
    'Spectral Convergence Tests',
    _SYMMETRY,
    'Iteration Count Information',
    'Reproducibility Information',
)
_KERNELS = ('DDOT', 'WAXPBY', 'SpMV', 'MG')
_STEPS = 'Iteration Count Information::Total number of optimized iterations'
_TOTAL = 'Benchmark Time Summary::Total'
_SETUP = 'Setup Information::Setup Time'
#: Of MPI; another build may add up without waiting.
_REDUCTIONS = ('MPI_Allreduce', 'MPI_Iallreduce')
_RATING = 'Final Summary::HPCG result is VALID with a GFLOP/s rating of'


class Hpcg(Application):
    """A box of equations for each rank."""

    name = 'hpcg'
    program = 'xhpcg'
    rate = 'rating'
    time = 'set_time'
    headline = 'rating'
    measures = {
        'rating': Quantity('Gflop/s', 'higher'),
        'bandwidth': Quantity('GB/s', 'higher'),
        'set_time': Quantity('s', 'lower'),
        'setup_time': Quantity('s', 'lower'),
        **{f'{kernel.lower()}_rate': Quantity('Gflop/s', 'higher') for kernel in _KERNELS},
    }
    leaves = (_REPORTS, _LOGS)

    def problem(self, size: float, ranks: int, threads: int) -> Problem:
        processes = process_grid(ranks)
        if min(processes) < _LEAST_RATIO * max(processes):
            raise ValueError(
                f'HPCG refuses {ranks} ranks: {"x".join(map(str, processes))} is far from a cube'
            )
        equations = size / (_BYTES_OF_EQUATION * ranks)
        # The third root of a cube may come out just below.
        edge = math.floor(equations ** (1 / 3) + 1e-9) // _MULTIPLE * _MULTIPLE
        if edge < _LEAST_EDGE:
            raise ValueError(
                f'HPCG on {ranks} ranks needs {_BYTES_OF_EQUATION * ranks * _LEAST_EDGE**3} bytes '
                f'at least: {_LEAST_EDGE}^3 equations for each'
            )
        height = math.floor(equations / edge**2 + 1e-9) // _MULTIPLE * _MULTIPLE
        local = (edge, edge, height)
        arguments = [f'--n{axis}={n}' for axis, n in zip('xyz', local, strict=True)]
        arguments += [f'--np{axis}={n}' for axis, n in zip('xyz', processes, strict=True)]
        return Problem(
            [*arguments, f'--rt={_SECONDS}'], facts={'local': local, 'processes': processes}
        )

    def read(
        self, output: str, folder: Path, problem: Problem, ranks: int, threads: int
    ) -> dict[str, Figure]:
        report = _Report(folder)
        report.check_verdict()
        grids = _check_problem(report, problem, ranks, threads)
        return _figures(report, grids)

    def check_witnessed(self, folder: Path, wall: float, calls: Mapping[str, int]) -> None:
        """Hold a report against what the witness saw of a rank: HPCG reads one clock only.

        :param wall: seconds from the rank's start to its end.
        :param calls: how often it called what of MPI.
        :raises WrongAnswerError: if more was reported than was done, or a longer time than passed.
        """
        report = _Report(folder)
        # A sum over the ranks for each of the three scalar products of an iteration.
        steps, made = report.number(_STEPS), sum(calls.get(name, 0) for name in _REDUCTIONS)
        if made < 3 * steps:
            raise WrongAnswerError(
                f'HPCG reported {steps:g} iterations, but added up over the ranks {made} times'
            )
        said = report.number(_TOTAL) + report.number(_SETUP)
        if said > wall * (1 + application.CLOCK_RATE):
            raise WrongAnswerError(f'HPCG reported {said:g} s, but took {wall:g} s')


class _Report:
    """The report of HPCG: lines of a name, which includes the section, and a value."""

    def __init__(self, folder: Path) -> None:
        """Read the one report of a folder.

        :raises WrongAnswerError: if there is none, or several, or it is not whole.
        """
        found = sorted(folder.glob(_REPORTS))
        if len(found) != 1:
            logs = [path.read_text(errors='replace') for path in sorted(folder.glob(_LOGS))]
            said = ' '.join(' '.join(logs).split())[:300]
            raise WrongAnswerError(f'HPCG left {len(found)} reports, not 1 ({said or "no word"})')
        text = found[0].read_text(errors='replace')
        self.entries = defaultdict(list)
        for line in text.splitlines():
            name, _, value = line.partition('=')
            self.entries[name].append(value)
        if not text.endswith('\n') or 'Final Summary' not in self.entries:
            raise WrongAnswerError('the report of HPCG is not whole')

    def single_value(self, name: str) -> str:
        """The value of a line that there is once.

        :raises WrongAnswerError: if there is none, or several.
        """
        values = self.entries.get(name, [])
        if len(values) != 1:
            raise WrongAnswerError(f'the report of HPCG has {len(values)} lines {name!r}, not 1')
        return values[0]

    def numbers(self, name: str) -> list[float]:
        """The values of all lines of a name.

        :raises WrongAnswerError: if one is no finite number from zero on.
        """
        values = [*map(application.as_number, self.entries.get(name, []))]
        if not all(0 <= value < math.inf for value in values):
            raise WrongAnswerError(f'{name!r} in the report of HPCG is not a number from 0 on')
        return values

    def number(self, name: str) -> float:
        """As :meth:`numbers`, of a name that there is once."""
        self.single_value(name)
        return self.numbers(name)[0]

    def check_verdict(self) -> None:
        """Hold what HPCG found out itself.

        :raises WrongAnswerError: if it found anything wrong, or what it measured shows that.
        """
        for test in _TESTS:
            if (result := self.single_value(f'{test}::Result')) != 'PASSED':
                raise WrongAnswerError(f"HPCG's own test {test.partition(' |')[0]!r}: {result}")
        if _RATING not in self.entries:
            raise WrongAnswerError('HPCG does not call its result valid')
        # No number passes these tests of its own.
        for kernel in ('SpMV', 'MG'):
            if (departure := self.number(f'{_SYMMETRY}::Departure for {kernel}')) > 1:
                raise WrongAnswerError(f'{kernel} of HPCG departs from symmetry: {departure:g}')
        if (residual := self.number('Reproducibility Information::Scaled residual mean')) >= 1:
            raise WrongAnswerError(f'HPCG reduced its residual to {residual:g} of what it was')


class _Grid:
    """One of the grids: all ranks' equations, and entries of their matrix."""

    def __init__(self, edges: tuple[int, ...]) -> None:
        self.rows = math.prod(edges)
        self.nonzeros = math.prod(3 * edge - 2 for edge in edges)


def _check_problem(report: _Report, problem: Problem, ranks: int, threads: int) -> list[_Grid]:
    """Check that the right problem was run; return its grids, the finest first."""
    local, processes = problem.facts['local'], problem.facts['processes']
    edges = [n * count for n, count in zip(local, processes, strict=True)]
    grids = [_Grid(tuple(edge >> level for edge in edges)) for level in range(_LEVELS)]
    linear, coarse = 'Linear System Information', 'Multigrid Information::Coarse Grids'
    asked = {
        'Machine Summary::Distributed Processes': [ranks],
        'Machine Summary::Threads per processes': [threads],
        **{
            f'Global Problem Dimensions::Global n{axis}': [edge]
            for axis, edge in zip('xyz', edges, strict=True)
        },
        f'{linear}::Number of Equations': [grids[0].rows],
        f'{linear}::Number of Nonzero Terms': [grids[0].nonzeros],
        f'{coarse}::Number of Equations': [grid.rows for grid in grids[1:]],
        f'{coarse}::Number of Nonzero Terms': [grid.nonzeros for grid in grids[1:]],
        f'{coarse}::Number of Presmoother Steps': [1] * (_LEVELS - 1),
        f'{coarse}::Number of Postsmoother Steps': [1] * (_LEVELS - 1),
        'Iteration Count Information::Reference CG iterations per set': [_ITERATIONS],
    }
    for name, values in asked.items():
        if (said := report.numbers(name)) != values:
            raise WrongAnswerError(
                f'HPCG ran with {name}: {", ".join(f"{one:.0f}" for one in said) or "none"}; not '
                f'{", ".join(map(str, values))}'
            )
    return grids


def _operations(grids: list[_Grid], sets: float, steps: float) -> dict[str, float]:
    """Floating-point operations of each kernel.

    :param steps: iterations of all sets together.
    """
    *finer, coarsest = grids
    return {
        'DDOT': (3 * steps + sets) * 2 * grids[0].rows,
        'WAXPBY': (3 * steps + sets) * 2 * grids[0].rows,
        'SpMV': (steps + sets) * 2 * grids[0].nonzeros,
        # A sweep forth and back before and after, and a residual in between.
        'MG': steps * (sum(10 * grid.nonzeros for grid in finer) + 4 * coarsest.nonzeros),
    }


def _bytes(grids: list[_Grid], sets: float, steps: float) -> float:
    """Read and written, as HPCG counts it: as if caches kept nothing.

    It counts 12 bytes for a value and its index, and a fifth too many in the multigrid: a write
    for each entry of the matrix, not for each equation, in the residual and in the last sweep.
    """
    *finer, coarsest = grids
    vectors = (3 * steps + sets) * (16 * grids[0].rows + 8)  # DDOT
    vectors += (3 * steps + sets) * 24 * grids[0].rows  # WAXPBY
    product = (steps + sets) * (12 * grids[0].nonzeros + 16 * grids[0].rows)
    multigrid = sum(5 * 12 * grid.nonzeros + 4 * 8 * grid.rows for grid in finer)
    multigrid += sum(2 * 8 * grid.nonzeros for grid in finer)
    multigrid += 24 * coarsest.nonzeros + 16 * coarsest.rows
    return vectors + product + steps * multigrid


def _figures(report: _Report, grids: list[_Grid]) -> dict[str, Figure]:
    """Rates by what was computed and the times of the report, which must say the same."""
    of_set = report.number('Iteration Count Information::Optimized CG iterations per set')
    steps = report.number(_STEPS)
    if of_set < _ITERATIONS or steps < of_set or steps % of_set:
        raise WrongAnswerError(f'HPCG made {steps:g} iterations in sets of {of_set:g}')
    sets = steps / of_set
    times = {
        kernel: report.number(f'Benchmark Time Summary::{kernel}')
        for kernel in (*_KERNELS, 'Total')
    }
    if not 0 < sum(times[kernel] for kernel in _KERNELS) <= times['Total'] * (1 + _PRINTED):
        raise WrongAnswerError(f'the parts of HPCG took longer than {times["Total"]:g} s, or none')
    setup = report.number(_SETUP)
    optimization = report.number('Benchmark Time Summary::Optimization phase')

    operations = _operations(grids, sets, steps)
    for kernel, count in operations.items():
        _hold(report, f'Floating Point Operations Summary::Raw {kernel}', count)
    # Iterations that the reference does not need count for nothing; a tenth of what it took to
    # begin counts for each set.
    counted = sum(operations.values()) * _ITERATIONS / of_set
    rating = 1e-9 * counted / (times['Total'] + sets * (optimization + setup) / 10)
    _hold(report, _RATING, rating)
    bandwidth = 1e-9 * _bytes(grids, sets, steps) / times['Total']
    _hold(report, 'GB/s Summary::Raw Total B/W', bandwidth)
    values = {
        'rating': rating,
        'bandwidth': bandwidth,
        'set_time': times['Total'] / sets,
        'setup_time': setup,
    }
    for kernel in _KERNELS:
        if times[kernel]:  # of a small problem a kernel may take less than the clock tells
            values[f'{kernel.lower()}_rate'] = 1e-9 * operations[kernel] / times[kernel]
    return figures_of(Hpcg.measures, values)


def _hold(report: _Report, name: str, expected: float) -> None:
    """Check that a number of the report follows from others."""
    if not abs(report.number(name) - expected) <= _PRINTED * expected:
        raise WrongAnswerError(
            f'{name!r} of HPCG is {report.number(name):g}, which is to be {expected:g}'
        )
