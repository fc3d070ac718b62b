"""miniFE: finite elements and conjugate gradients; ours and upstream's write the same report."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from assay.programs import application, heat
from assay.programs.application import Application, Problem, WorkInCaches, WrongAnswerError
from assay.programs.figure import Figure, Quantity, figures_of

# Of a node: 27 entries of 8 + 4 bytes, where its row starts, five vectors and its number.
_BYTES_OF_NODE = 27 * 12 + 8 + 5 * 8 + 4

# Up to here the 200 iterations bring the centre near enough to the analytic solution.
_LARGEST_VERIFIED = 200
_MOST_ITERATIONS = 200
_PRINTED_EVERY = 20
# Where conjugate gradients end before: everybody's.
_SOLVED = 2.0**-52

# To here the solution is computed once more.
_LARGEST_SOLVED = 256
_MOST_STEPS = 9
# Relative. Sums over the nodes, in any order; and of the steps, which CG rounds one by one: 2e-11
# was the most from 2^3 to 200^3 elements.
_OF_SUMS = 1e-10
_OF_STEPS = 1e-9
_OF_COURSE = 1e-7
# Of two directions that A makes orthogonal: at most 5e-14 at 10^3 elements, 3e-11 at 40^3 and 7e-10
# at 90^3, on one rank and two, and 1e-9 at 150^3: it grows with the fourth power of the edge.
_LEAST_OVERLAP, _OVERLAP_AT_200 = 1e-9, 1e-6
_FINGERPRINT = re.compile(
    r'^Fingerprint: b\.b (\S+); b\.x (\S+); x\.x (\S+); r\.x (\S+); (\d+) steps (\S+)$',
    re.MULTILINE,
)
_OVERLAP_SAID = re.compile(r'^Overlap of directions: (\S+)$', re.MULTILINE)
_LAST = re.compile(r'^Last residual: (\S+)$', re.MULTILINE)
_FIRST = re.compile(r'^First residuals: (.+)$', re.MULTILINE)

_INITIAL = re.compile(r'Initial Residual = (\S+)')
_ITERATION = re.compile(r'^Iteration = (\d+)   Residual = (\S+)$', re.MULTILINE)
_FAILED = re.compile(r'^(.+): FAILED$', re.MULTILINE)
# Its checks: ours of each solution, both of one whose analytic values are near enough.
_RESIDUAL_RIGHT = re.compile(r'^True residual .*: PASSED$', re.MULTILINE)
_CENTRE_RIGHT = re.compile(
    r'^Solution at the centre, .*: PASSED$|^solution matches analytic solution to within',
    re.MULTILINE,
)
_PARAMETERS = 'Global Run Parameters'
_KERNELS = ('WAXPY', 'DOT', 'MATVEC')
# Where the report has the times.
_TIMES = {
    'total': ('Total Program Time',),
    'structure': ('Matrix structure generation', 'Mat-struc-gen Time'),
    'assembly': ('FE assembly', 'FE assembly Time'),
    **{name: ('CG solve', f'{name} Time') for name in _KERNELS},
    'CG': ('CG solve', 'Total', 'Total CG Time'),
}
_VERIFY = 'verify_solution=1'
_REPORTS = 'miniFE.*.yaml'
_COMPLAINT = re.compile(
    r'^miniFE: (?P<ours>.+)$|^(?P<upstream>One or more processors have 0 equations)|'
    r'^miniFE::cg_solve ERROR, (?P<broken>.+)!$',
    re.MULTILINE,
)


class MiniFE(Application):
    """A cube of hexahedra."""

    name = 'minife'
    program = 'minife'
    rate = 'cg_rate'
    time = 'cg_time'
    headline = 'cg_rate'
    measures = {
        **{f'{what.lower()}_time': Quantity('s', 'lower') for what in _TIMES},
        **{f'{name.lower()}_rate': Quantity('Gflop/s', 'higher') for name in (*_KERNELS, 'CG')},
        **{f'{name.lower()}_in_caches_rate': Quantity('Gflop/s', 'higher') for name in _KERNELS},
        'assembly_in_caches_rate': Quantity('Melement/s', 'higher'),
        **{
            f'{name.lower()}_in_caches{application.OF_CONTROL}': Quantity('1', 'higher')
            for name in (*_KERNELS, 'assembly')
        },
        'matvec_whole_of_best': application.WHOLE_OF_BEST,
        'matvec_of_limit': Quantity('1', 'higher'),
    }
    leaves = (_REPORTS,)

    def problem(self, size: float, ranks: int, threads: int) -> Problem:
        # The third root of a cube may come out just below.
        edge = math.floor((size / _BYTES_OF_NODE) ** (1 / 3) + 1e-9) - 1
        if edge < (least := _least_edge(ranks)):
            need = _BYTES_OF_NODE * (least + 1) ** 3
            raise ValueError(
                f'miniFE on {ranks} ranks needs {need} bytes at least: {least}^3 elements'
            )
        arguments = [f'{axis}={edge}' for axis in ('nx', 'ny', 'nz')]
        if edge <= _LARGEST_VERIFIED:
            arguments.append(_VERIFY)
        return Problem(arguments, facts={'elements': (edge, edge, edge)})

    def read(
        self, output: str, folder: Path, problem: Problem, ranks: int, threads: int
    ) -> dict[str, Figure]:
        _check_course(output)
        report = _report(folder, problem, ranks)
        # Both say so: ours is held to all that it prints if either is lost.
        ours = application.is_ours(output) or report.get('Implementation') == 'assay'
        _check_run(report, problem, ranks, threads)
        _check_residuals(output, report)
        if ours and report.get('Verdict') != 'PASSED':
            raise WrongAnswerError('the report of miniFE has no verdict that it passed')
        if ours and not _RESIDUAL_RIGHT.search(output):
            raise WrongAnswerError('miniFE did not check its residual')
        if ours:
            _check_fingerprint(output, report, problem)
            _check_parts(report, ranks)
            _check_windows(output, report, ranks)
            application.check_in_caches(output, _work_in_caches(ranks, threads))
            application.check_times(
                output, {what: _number(report, *keys) for what, keys in _TIMES.items()}
            )
        if _VERIFY in problem.arguments and not _CENTRE_RIGHT.search(output):
            raise WrongAnswerError('miniFE did not hold its solution against the analytic one')

        figures = _figures(report)
        if ours:
            figures |= application.window_figures(output, 'matvec')
            figures |= application.limit_figures(output)
            if 'matvec_of_limit' not in figures:
                raise WrongAnswerError('miniFE printed no limit: its output is not whole')
        wrong = [name for name, figure in figures.items() if not 0 < figure.value < math.inf]
        if wrong:
            raise WrongAnswerError(f'{wrong[0]} of miniFE is no number above zero')
        return figures


def _least_edge(ranks: int) -> int:
    """The least edge of a cube whose bisection leaves every rank two layers in each direction."""
    halvings = math.ceil(math.ceil(math.log2(ranks)) / 3)
    return 1 << (halvings + 1)


def _check_course(output: str) -> None:
    """Check that one miniFE ran to its end, and found nothing wrong itself."""
    if failed := _FAILED.search(output):
        raise WrongAnswerError(f"miniFE's own check failed: {failed[1]}")
    if 'max absolute error is' in output:
        raise WrongAnswerError("miniFE's solution is not the analytic one")
    if complaint := _COMPLAINT.search(output):
        raise WrongAnswerError(f'miniFE says: {complaint[complaint.lastgroup or 0]}')
    application.check_once('miniFE', len(_INITIAL.findall(output)), 'residual')


def _report(folder: Path, problem: Problem, ranks: int) -> dict[str, Any]:
    """The report file of this mesh and number of ranks."""
    found = sorted(folder.glob(_REPORTS))
    mesh = 'x'.join(map(str, problem.facts['elements']))
    mine = [path for path in found if path.name.startswith(f'miniFE.{mesh}.P{ranks}.')]
    if len(mine) != 1 or len(found) > 1:
        names = ', '.join(path.name for path in found) or 'none'
        raise WrongAnswerError(f'miniFE left not one report of {mesh} on {ranks} ranks but {names}')
    try:
        report = yaml.safe_load(mine[0].read_bytes())
    except yaml.YAMLError:
        report = None
    if not isinstance(report, dict) or 'Total Program Time' not in report:
        raise WrongAnswerError(f'the report {mine[0].name} is not whole')
    return report


def _entry(report: Mapping[str, Any], *keys: str) -> Any:
    value: Any = report
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            raise WrongAnswerError(f'the report of miniFE lacks {": ".join(keys)}')
        value = value[key]
    return value


def _number(report: Mapping[str, Any], *keys: str) -> float:
    value = _entry(report, *keys)
    try:
        # As text: YAML takes 7e-08 for a string.
        return float(str(value))
    except ValueError:
        raise WrongAnswerError(f'{": ".join(keys)} in the report of miniFE is no number') from None


def _check_run(report: Mapping[str, Any], problem: Problem, ranks: int, threads: int) -> None:
    elements = problem.facts['elements']
    asked = {
        'number of processors': ranks,
        **{f'dimensions: {axis}': n for axis, n in zip(('nx', 'ny', 'nz'), elements, strict=True)},
    }
    if 'OpenMP Max Threads:' in _entry(report, _PARAMETERS):
        asked['OpenMP Max Threads:'] = threads
    said = {name: _number(report, _PARAMETERS, *name.split(': ')) for name in asked}
    said['Global Nrows'] = _number(report, 'Matrix attributes', 'Global Nrows')
    asked['Global Nrows'] = math.prod(n + 1 for n in elements)
    said['Global NNZ'] = _number(report, 'Matrix attributes', 'Global NNZ')
    asked['Global NNZ'] = math.prod(3 * n + 1 for n in elements)
    for name, value in asked.items():
        if said[name] != value:
            raise WrongAnswerError(f'miniFE ran with {name}: {said[name]:.0f}, not {value}')


def _check_residuals(output: str, report: Mapping[str, Any]) -> None:
    iterations = int(_number(report, 'CG solve', 'Iterations'))
    final = _number(report, 'CG solve', 'Final Resid Norm')
    printed = dict(_ITERATION.findall(output))
    # The next iteration may have begun, and have found nothing left to do.
    needed = {str(k) for k in range(_PRINTED_EVERY, iterations + 1, _PRINTED_EVERY)}
    if missing := sorted(needed - printed.keys(), key=int):
        raise WrongAnswerError(f'miniFE printed no residual of iteration {missing[0]}')
    initial = application.as_number(_INITIAL.findall(output)[0])
    residuals = [initial, *map(application.as_number, printed.values()), final]
    if 0 < iterations < _MOST_ITERATIONS and final > _SOLVED:
        raise WrongAnswerError(
            f'miniFE stopped after {iterations} iterations at the residual {final:g}'
        )
    if not all(map(math.isfinite, residuals)):
        raise WrongAnswerError('a residual of miniFE is no finite number')
    if not (0 < iterations <= _MOST_ITERATIONS and final < initial):
        raise WrongAnswerError(
            f'miniFE went from residual {initial:g} to {final:g} in {iterations} iterations'
        )


def _check_fingerprint(output: str, report: Mapping[str, Any], problem: Problem) -> None:
    """Hold the solution and the course of ours against what is computed here.

    :raises WrongAnswerError: if something differs by more than rounding explains.
    """
    found = _FINGERPRINT.findall(output)
    try:
        b_b, b_x, x_x, r_x, steps_made, of_steps = map(float, found[0])
        first = [float(value) for value in _FIRST.findall(output)[0].split()]
        overlap = float(_OVERLAP_SAID.findall(output)[0])
    except (ValueError, IndexError):
        raise WrongAnswerError('miniFE printed no fingerprint') from None
    n = problem.facts['elements'][0]
    _hold('number of iterations', _number(report, 'CG solve', 'Iterations'), steps_made, 0)
    final = _number(report, 'CG solve', 'Final Resid Norm')
    if final and application.tells_bouts(output):
        if not (last := _LAST.search(output)):
            raise WrongAnswerError('miniFE printed no last residual')
        _hold('Final Resid Norm', final, float(last[1]), application.SIX_DIGITS)
    _hold('b.b', b_b, heat.residuals(n, 0)[0] ** 2, _OF_SUMS)
    # By how much the error's energy fell, 2 b x - x A x: each step adds its part, and that needs no
    # orthogonality to the steps long before, which rounding takes.
    _hold('b.x + r.x by its steps', of_steps, b_x + r_x, _OF_STEPS)
    # What the steps do not tell is whether each direction was the best one.
    if not overlap <= max(_LEAST_OVERLAP, _OVERLAP_AT_200 * (n / 200) ** 4):
        raise WrongAnswerError(f'the directions of CG in miniFE overlap by {overlap:.3g}')

    # Boundary nodes have the eigenvalue 1, n / 4 times the largest other one. Rounding in what is
    # left of the residual there grows by less than n in an iteration: the course is compared until
    # that is 1e-7.
    steps = max(int(math.log(1e-7 / (2**-52 * (n + 1))) / math.log(n + 1)), 1)
    expected = heat.residuals(n, min(steps, _MOST_STEPS))
    if len(first) < min(len(expected), int(_number(report, 'CG solve', 'Iterations'))):
        raise WrongAnswerError('miniFE did not print its first residuals')
    for k, (here, there) in enumerate(zip(first, expected, strict=False)):
        if there < 1e-9 * expected[0]:  # solved, and rounding is left
            break
        _hold(f'residual {k}', here, there, _OF_COURSE)

    # b (x - x') = x' r, and x - x' is the inverse of A, whose least eigenvalue is known, times r.
    residual = _number(report, 'Residual check', 'True Resid Norm')
    if n <= _LARGEST_SOLVED:
        exact = heat.solve_heat(n)
        near = residual / exact.least_eigenvalue
        size = math.sqrt(exact.x_x)
        _hold('b.x', b_x, exact.b_x, _OF_SUMS + size * residual / exact.b_x)
        _hold('x.x', x_x, exact.x_x, _OF_SUMS + (2 * size + near) * near / exact.x_x)


def _check_parts(report: Mapping[str, Any], ranks: int) -> None:
    """Check that no part took longer than the whole; of one rank, nor all parts together."""
    kernels = [_number(report, *_TIMES[name]) for name in _KERNELS]
    whole = _number(report, *_TIMES['CG'])
    # Each is the time of the rank that it took longest.
    parts = sum(kernels) if ranks == 1 else max(kernels)
    if not parts <= whole * (1 + application.SIX_DIGITS):
        raise WrongAnswerError(f"the parts of miniFE's CG took {parts:g} s, all of it {whole:g} s")
    phases = [
        _number(report, *_TIMES['structure']),
        _number(report, *_TIMES['assembly']),
        whole,
    ]
    total = _number(report, *_TIMES['total'])
    parts = sum(phases) if ranks == 1 else max(phases)
    # Each has six digits.
    if not parts <= total * (1 + application.SIX_DIGITS):
        raise WrongAnswerError(f'the phases of miniFE took {parts:g} s, all of it {total:g} s')


def _check_windows(output: str, report: Mapping[str, Any], ranks: int) -> None:
    """Check that all iterations were timed, kernel by kernel: in windows, or before them."""
    iterations = int(_number(report, 'CG solve', 'Iterations'))
    count = application.steady_windows(_MOST_ITERATIONS, range(iterations))
    # Where nothing at all was left to solve a scalar product found that out after the last one.
    solved = _number(report, 'CG solve', 'Final Resid Norm') == 0
    for name, work in _operations_of_iteration(report).items():
        seconds = _number(report, *_TIMES[name])
        least = 0 if solved else seconds - application.printed_time(output, f'first {name}')
        application.check_windows(output, name, count, 1e-9 * work, least, ranks * seconds)
    application.check_limit(output, 'MATVEC', 1e-9 * _traffic(report, ranks))
    if application.tells_bouts(output):
        whole = application.printed_time(output, 'iterations')
        work = sum(_operations_of_iteration(report).values())
        application.check_windows(output, 'CG', count, 1e-9 * work, whole, ranks * whole)
        application.check_times(output, {'iterations': whole})


def _traffic(report: Mapping[str, Any], ranks: int) -> float:
    """Bytes of a product of matrix and vector: both once, and the vector that comes out of it."""
    rows = _number(report, 'Matrix attributes', 'Global Nrows')
    nonzeros = _number(report, 'Matrix attributes', 'Global NNZ')
    # Of a place that is sent its number is kept, and its value is copied.
    ghosts = _number(report, 'Matrix attributes', 'Pll Memory Overhead (MB)') * 2**20 / 12
    return 12 * nonzeros + 8 * (rows + ranks) + 8 * (2 * rows + ghosts)


def _work_in_caches(ranks: int, threads: int) -> dict[str, WorkInCaches]:
    """The work of each kernel on a mesh of each rank; for the assembly, additions of an element."""
    mesh = (8, 8, 8 * threads)
    nodes, nonzeros = (math.prod(a * n + 1 for n in mesh) for a in (1, 3))
    operations = {'MATVEC': 2 * nonzeros, 'DOT': 2 * nodes, 'WAXPY': 4 * nodes}
    works = {
        f'{name} in caches': WorkInCaches(1e-9 * ranks * work, 1e-9 * work)
        for name, work in operations.items()
    }
    elements = math.prod(mesh)
    assembly = WorkInCaches(1e-6 * ranks * elements, 1e-9 * 64 * elements)
    return works | {'assembly in caches': assembly}


def _hold(name: str, value: float, expected: float, relative: float) -> None:
    if not abs(value - expected) <= relative * abs(expected):
        raise WrongAnswerError(f'{name} of miniFE is {value:.17g}, which is to be {expected:.17g}')


def _figures(report: Mapping[str, Any]) -> dict[str, Figure]:
    values = {f'{what.lower()}_time': _number(report, *keys) for what, keys in _TIMES.items()}
    # Not the rates in the report: what takes less than 0.1 ms has none there.
    for name, flops in _operations(report).items():
        time = values[f'{name.lower()}_time']
        values[f'{name.lower()}_rate'] = 1e-9 * flops / time if time else 0.0
    return figures_of(MiniFE.measures, values)


def _operations(report: Mapping[str, Any]) -> dict[str, float]:
    """Floating-point operations of each kernel and of all, as miniFE counts them.

    :raises WrongAnswerError: if the report has others.
    """
    iterations = _number(report, 'CG solve', 'Iterations')
    once = _operations_of_iteration(report)
    counted = {
        'WAXPY': once['WAXPY'] / 3 * (3 * iterations + 2),
        'DOT': once['DOT'] * iterations,
        'MATVEC': once['MATVEC'] * (iterations + 1),
    }
    counted['CG'] = sum(counted.values())
    for name, flops in counted.items():
        *place, key = _TIMES[name]
        said = _number(report, *place, key.replace('Time', 'Flops'))
        _hold(f'{name} Flops', said, flops, application.SIX_DIGITS)
    return counted


def _operations_of_iteration(report: Mapping[str, Any]) -> dict[str, float]:
    elements = math.prod(_number(report, _PARAMETERS, 'dimensions', f'n{axis}') for axis in 'xyz')
    nonzeros = _number(report, 'Matrix attributes', 'Global NNZ')
    return {'WAXPY': 9 * elements, 'DOT': 4 * elements, 'MATVEC': 2 * nonzeros}
