"""miniGhost: a difference stencil with halo exchange; ours and upstream's print the same report."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

from assay.programs import application
from assay.programs.application import Application, Problem, WorkInCaches, WrongAnswerError
from assay.programs.figure import Figure, Quantity, figures_of
from assay.programs.sizes import process_grid

# As in the run of the Trinity procurement.
_VARIABLES = 40
_STENCIL, _STENCIL_NAME = 24, 'STENCIL_3D27PT'
_METHOD, _METHOD_NAME = 10, 'COMM_METHOD_BSPMA'
_FEWEST_STEPS = 20

# Points times variables times steps: a second on two cores.
_WORK = 1.4e9
_MOST_STEPS = 1000

_VALUE_BYTES = 8
# One read and one write of each point in each step.
_UPDATE_BYTES = 2 * _VALUE_BYTES

# Points of each rank's mesh for the stencil in caches, for each of its threads.
_POINTS_IN_CACHES = 64 * 16 * 8

# Edges of meshes are multiples of the second where they are at least the first: upstream enlarges a
# mesh that the processes do not divide.
_MULTIPLES = ((192, 24), (96, 12), (32, 4), (8, 2), (1, 1))

_NUMBER = r' *([^\s,]+)'
_FAILED = re.compile(r'^FAILED: (.+)$', re.MULTILINE)
_ERROR = re.compile(
    r'^ *Time step .* the error is *(\S+); error tolerance is *(\S+)\.$', re.MULTILINE
)
_COMPLAINT = re.compile(
    r'^(?:minighost: (?P<ours>.+)|\[pe 0\] \*\* Input error \*\*: *(?P<upstream>.+))$', re.MULTILINE
)
_RIGHT = 'Computation within error tolerance.'
# What was checked at the end: ours says it of each variable, upstream once for all.
_DIGITS = 8
_CHECKED = re.compile(
    r'^ Variable *(\d+): source \S+, .*; error (\S+), misplaced (\S+)$', re.MULTILINE
)
_TOLERANCE = re.compile(r'^ Error reported every .* Tolerance is *(\S+)$', re.MULTILINE)
_TOTAL = re.compile(r'^ *Total time for test \(sec\):' + _NUMBER + r';', re.MULTILINE)
_STENCIL_TIME = re.compile(
    r'^ *Time : avg,(?: stddev,)? min, max secs:' + ','.join([_NUMBER] * 4) + '$', re.MULTILINE
)
# Of the sums: those before are of messages.
_NUMBER_OF_SUMS = re.compile(r'^ *GRIDSUM performance\n\n *Number:' + _NUMBER + '$', re.MULTILINE)
_GFLOPS = re.compile(r'^ *Total GFLOPS:' + _NUMBER + '$', re.MULTILINE)
_SUM = re.compile(
    r'^ *Max \(total,compute,reduce secs\):' + ','.join([_NUMBER] * 3) + '$', re.MULTILINE
)
# The first such line is of all directions together.
_WAYS = ('communication', 'pack', 'send', 'wait', 'recv', 'unpack')
_COMM = re.compile(
    r'^ *Max \(total,pack,send,wait,recv,unpack secs\):' + ','.join([_NUMBER] * 6) + '$', re.M
)
# Of ours: what was put into a variable, what is still in the mesh, what left it, the share of the
# slowest mode, and of all points the squares and the worst error.
_VARIABLE = re.compile(
    r'^ Variable *(\d+): source (\S+), in the mesh (\S+), flux (\S+), weighted (\S+); ',
    re.MULTILINE,
)
_FINGERPRINT = re.compile(
    r'^ Fingerprint *(\d+): squares (\S+), error of a point (\S+), no numbers (\d+)$', re.MULTILINE
)

# State of the generator xoshiro256** where all parts of gfortran's seed are 8.
_SEED = (0xBD0C5B6650C2DF41, 0xD46061C546E1DF30, 0xBB4F4D46D610354C, 0x114A58350756AD31)
_WORD = (1 << 64) - 1

_MEAN_COMM = re.compile(
    r'^ *Avg \(total,pack,send,wait,recv,unpack secs\):' + _NUMBER, re.MULTILINE
)
_LAST_OF_SUMS = re.compile(r'^ *Min \(total,compute,reduce secs\):' + ','.join([_NUMBER] * 3), re.M)
_END = 'End report'

_THREE = r' *(\d+), *(\d+), *(\d+)'
_SAID = {
    'the mesh': re.compile(r'Global Grid Dimension *:' + _THREE),
    'the process grid': re.compile(r'Task grid:' + _THREE),
    'the number of processes': re.compile(r'(\d+) process(?:es)? executing(?:,| on machine)'),
    'the number of variables': re.compile(r'Number of variables: *(\d+)'),
    'the number of variables summed': re.compile(r'variables reduced each time step: *(\d+)'),
    'the number of time steps': re.compile(r'Time steps per spike: *(\d+)'),
    'the number of spikes': re.compile(r'Number of spikes: *(\d+)'),
    'the stencil': re.compile(r'\((STENCIL_\w+)\)'),
    'the way to communicate': re.compile(r'\((COMM_METHOD_\w+)\)'),
}


class MiniGhost(Application):
    """The 27-point stencil on many variables, exchanged together."""

    name = 'minighost'
    program = 'minighost'
    rate = 'rate'
    time = 'total_time'
    headline = 'stencil_rate'
    measures = {
        **{
            f'{phase}_time': Quantity('s', 'lower') for phase in ('total', 'stencil', 'sum', *_WAYS)
        },
        'rate': Quantity('Gflop/s', 'higher'),
        'stencil_rate': Quantity('GB/s', 'higher'),
        'stencil_in_caches_rate': Quantity('GB/s', 'higher'),
        f'stencil_in_caches{application.OF_CONTROL}': Quantity('1', 'higher'),
        'stencil_whole_of_best': application.WHOLE_OF_BEST,
        'stencil_of_limit': Quantity('1', 'higher'),
    }

    def __init__(self, work: float = _WORK) -> None:
        """``work``: points times variables times steps, of which there are at least the fewest."""
        self.work = work

    def problem(self, size: float, ranks: int, threads: int) -> Problem:
        """The same mesh for any number of ranks; ``size`` is without the halos between them."""
        grids = _VARIABLES + 1
        # The third root of a cube may come out just below.
        edge = math.floor((size / (_VALUE_BYTES * grids)) ** (1 / 3) + 1e-9) - 2
        processes = process_grid(ranks)
        least = max(processes)
        if edge < least:
            raise ValueError(
                f'miniGhost needs {_VALUE_BYTES * grids * (least + 2) ** 3} bytes at least: a mesh '
                f'of {least} points in each direction for {ranks} ranks'
            )
        multiple = next(m for low, m in _MULTIPLES if edge >= low)
        edge = max(edge // multiple * multiple, least)
        steps = round(self.work / (_VARIABLES * edge**3))
        steps = min(max(steps, _FEWEST_STEPS), _MOST_STEPS)
        options = {
            'scaling': 1,
            **{f'n{d}': edge for d in 'xyz'},
            'num_vars': _VARIABLES,
            'num_spikes': 1,
            'debug_grid': 1,
            'report_diffusion': steps,  # the errors of the last step: NaN passes upstream's check
            'percent_sum': 100,
            'num_tsteps': steps,
            'stencil': _STENCIL,
            'comm_method': _METHOD,
            'report_perf': 1,
            **{f'np{d}': count for d, count in zip('xyz', processes, strict=True)},
            'error_tol': _DIGITS,
        }
        return Problem(
            arguments=[
                word for name, value in options.items() for word in (f'--{name}', f'{value}')
            ],
            facts={
                'the mesh': (edge,) * 3,
                'the process grid': processes,
                'the number of variables': _VARIABLES,
                'the number of variables summed': _VARIABLES,
                'the number of time steps': steps,
                'the number of spikes': 1,
                'the stencil': _STENCIL_NAME,
                'the way to communicate': _METHOD_NAME,
            },
        )

    def read(
        self, output: str, folder: Path, problem: Problem, ranks: int, threads: int
    ) -> dict[str, Figure]:
        _check_verdict(output)
        _check_whole(output, ranks)
        _check_problem(output, problem, ranks, threads)
        _check_checks(output, problem.facts['the number of variables'])

        (total,) = _numbers(_TOTAL, output, 'total time')
        mean_stencil, *_, stencil = _numbers(_STENCIL_TIME, output, 'time of the stencil')
        (rate,) = _numbers(_GFLOPS, output, 'rate')
        if application.is_ours(output):
            _check_fingerprints(output, problem)
            application.check_times(
                output, {'total': total, 'stencil': stencil, **_parts(output, ranks)}
            )
            # As the rank with the most, no rank took less in all than the mean in parts.
            parts = mean_stencil
            if ranks > 1:
                parts += _numbers(_MEAN_COMM, output, 'mean time of the communication')[0]
            if not parts <= total * (1 + application.SIX_DIGITS):
                raise WrongAnswerError(f'parts of miniGhost took {parts} s, all of it {total} s')
        sums = _numbers(_SUM, output, 'time of the sums')
        steps: int = problem.facts['the number of time steps']
        of_step = math.prod(problem.facts['the mesh']) * problem.facts['the number of variables']
        updates = of_step * steps * problem.facts['the number of spikes']
        if application.is_ours(output):
            windows, bytes_of_step = (
                application.steady_windows(steps, range(steps)),
                _UPDATE_BYTES * of_step,
            )
            _check_number_of_sums(output, problem)
            application.check_windows(
                output, 'stencil', windows, 1e-9 * bytes_of_step, stencil, ranks * stencil
            )
            points = 1e-9 * threads * _POINTS_IN_CACHES
            call = WorkInCaches(ranks * points * _UPDATE_BYTES, 27 * points)
            application.check_in_caches(output, {'stencil in caches': call})
            application.check_limit(output, 'stencil', 1e-9 * bytes_of_step)
        if not (total > 0 and stencil > 0):
            raise WrongAnswerError('miniGhost printed a time that is not above zero')
        operations = 27 * updates / total * 1e-9
        if (
            application.is_ours(output) and not abs(rate / operations - 1) < 1e-3
        ):  # it has four digits
            raise WrongAnswerError(f'miniGhost says {rate} Gflop/s, but did {operations:.4g}')
        values = {
            'total_time': total,
            'rate': rate,
            'stencil_time': stencil,
            'stencil_rate': updates * _UPDATE_BYTES / stencil * 1e-9,
            'sum_time': sums[0],
        }
        if not all(value > 0 for value in values.values()):
            raise WrongAnswerError('miniGhost printed a time or a rate that is not above zero')
        if ranks > 1:
            times = _communication(output)
            # What an exchange does without takes no time: derived datatypes need no packing.
            values |= {f'{way}_time': seconds for way, seconds in times.items() if seconds > 0}
        figures = figures_of(self.measures, values)
        if application.is_ours(output):
            figures |= application.window_figures(output, 'stencil') | application.limit_figures(
                output
            )
        return figures


def _communication(output: str) -> dict[str, float]:
    """Seconds of the rank that each way to communicate took longest."""
    times = _numbers(_COMM, output, 'time of the communication')
    return dict(zip(_WAYS, times, strict=True))


def _parts(output: str, ranks: int) -> dict[str, float]:
    """Times that ours reads from two clocks, beside total and stencil."""
    total, points, over_ranks = _numbers(_SUM, output, 'time of the sums')
    if (
        not max(points, over_ranks)
        <= total * (1 + application.SIX_DIGITS)
        <= (points + over_ranks) * (1 + 2 * application.SIX_DIGITS)
    ):
        raise WrongAnswerError(
            f'the sums of miniGhost took {total} s, and their parts {points} and {over_ranks} s'
        )
    return {'sums': total, **(_communication(output) if ranks > 1 else {})}


def _check_number_of_sums(output: str, problem: Problem) -> None:
    """Check that each variable was summed up in each step, and once more at the end."""
    steps = problem.facts['the number of time steps'] * problem.facts['the number of spikes']
    expected = (steps + 1) * problem.facts['the number of variables']
    (number,) = _numbers(_NUMBER_OF_SUMS, output, 'number of sums')
    if not abs(number / expected - 1) < 1e-3:  # it has four digits
        raise WrongAnswerError(f'miniGhost summed up {number:.0f} times instead of {expected}')


def _check_verdict(output: str) -> None:
    if complaint := _COMPLAINT.search(output):
        raise WrongAnswerError(
            f'miniGhost refused: {complaint["ours"] or complaint["upstream"].strip()}'
        )
    if failed := _FAILED.search(output):
        raise WrongAnswerError(f"miniGhost's own check failed: {failed[1]}")
    for error in _ERROR.finditer(output):
        if not application.as_number(error[1]) <= application.as_number(error[2]):
            raise WrongAnswerError(f"miniGhost's own check failed: {error.group()}")
    application.check_once('miniGhost', output.count(_RIGHT), 'verdict')


def _check_whole(output: str, ranks: int) -> None:
    # Upstream's report has no end if there is one rank only.
    needs_end = application.is_ours(output) or ranks > 1
    if not _LAST_OF_SUMS.search(output) or (needs_end and _END not in output):
        raise WrongAnswerError("miniGhost's report is not whole; was it run with --report_perf 1?")
    if application.is_ours(output) and not application.limit_figures(output):
        raise WrongAnswerError("miniGhost's output ends before the machine's limit")


def _check_problem(output: str, problem: Problem, ranks: int, threads: int) -> None:
    asked = {**problem.facts, 'the number of processes': ranks}
    patterns = dict(_SAID)
    if application.is_ours(output):
        asked['the number of threads'] = threads
        patterns['the number of threads'] = re.compile(r'executing, (\d+) threads? each')
    for name, value in asked.items():
        said = {_plain(found.groups()) for found in patterns[name].finditer(output)}
        if said != {value}:
            words = ' and '.join(map(str, said)) or 'nothing'
            raise WrongAnswerError(f'miniGhost says of {name}: {words}, not {value}')


def _check_checks(output: str, variables: int) -> None:
    """Check that each variable was held against the requested tolerance."""
    tolerance = 10.0**-_DIGITS
    if not application.is_ours(output):
        said = _TOLERANCE.search(output)
        if not said or not application.as_number(said[1]) <= tolerance:
            words = said[1] if said else 'nothing'
            raise WrongAnswerError(f'miniGhost says of its tolerance: {words}, not {tolerance:g}')
        return
    checked = {int(found[1]): found for found in _CHECKED.finditer(output)}
    if missing := sorted(set(range(1, variables + 1)) - checked.keys()):
        raise WrongAnswerError(f'miniGhost did not check variable {missing[0]} at the end')
    for found in checked.values():
        if not all(application.as_number(error) <= tolerance for error in found.groups()[1:]):
            raise WrongAnswerError(f"miniGhost's own check failed: {found.group().strip()}")


def _check_fingerprints(output: str, problem: Problem) -> None:
    """The answer of ours, from the problem alone.

    The stencil is the product of what it does along each direction, and the heat begins at one
    point: so all sums over the mesh are products of sums along its directions.
    """
    mesh: tuple[int, int, int] = problem.facts['the mesh']
    steps: int = problem.facts['the number of time steps']
    count: int = problem.facts['the number of variables']
    inside, squares, mode = 1.0, 1.0, 1.0
    for points in mesh:
        along = _spread(points, steps)
        inside *= math.fsum(along)
        squares *= math.fsum(value * value for value in along)
        angle = math.pi / (points + 1)
        mode *= math.fsum(math.sin(angle * (i + 1)) * value for i, value in enumerate(along))
    heats = _heats(count, math.prod(mesh))
    variables = {
        int(m[1]): [float(word) for word in m.groups()[1:]] for m in _VARIABLE.finditer(output)
    }
    prints = {
        int(m[1]): [float(word) for word in m.groups()[1:]] for m in _FINGERPRINT.finditer(output)
    }
    # All terms are positive: 26 additions and a product in each step, and the factors' own.
    bound = 32 * sys.float_info.epsilon * (steps + 8)
    for number, heat in enumerate(heats, 1):
        if number not in variables or number not in prints:
            raise WrongAnswerError(f'miniGhost printed no fingerprint of variable {number}')
        sum_of_squares, worst, no_numbers = prints[number]
        expected = {
            'heat put in': (variables[number][0], heat, heat),
            'heat in the mesh': (variables[number][1], heat * inside, heat),
            'heat that left the mesh': (variables[number][2], heat * (1 - inside), heat),
            'slowest mode': (variables[number][3], heat * mode, heat * mode),
            'sum of squares': (sum_of_squares, heat**2 * squares, heat**2 * squares),
        }
        for name, (found, value, scale) in expected.items():
            # Sums of up to 1e9 terms by pieces; far below the 1e-6 that would matter.
            if not abs(found - value) <= (bound + 1e-11) * scale:
                raise WrongAnswerError(
                    f'the {name} of variable {number} of miniGhost is {found:.15E}, not '
                    f'{value:.15E}'
                )
        if no_numbers or not worst <= bound:
            raise WrongAnswerError(
                f'a point of variable {number} of miniGhost is wrong by {worst:.2E} of itself, and '
                f'rounding leaves {bound:.2E}'
            )


def _spread(points: int, steps: int) -> list[float]:
    """The heat at each point of a line, some steps after one unit was put in its middle."""
    heat = [0.0] * (points + 2)
    heat[(points + 1) // 2] = 1.0
    for _ in range(steps):
        heat = [0.0, *(sum(heat[i : i + 3]) / 3 for i in range(points)), 0.0]
    return heat[1:-1]


def _heats(variables: int, points: int) -> list[float]:
    """The heat that is put into each variable: see ``sources/minighost/source.cpp``."""
    state = list(_SEED)
    heats = []
    for _ in range(variables):
        result = _rotated(state[1] * 5 & _WORD, 7) * 9 & _WORD
        shifted = state[1] << 17 & _WORD
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= shifted
        state[3] = _rotated(state[3], 45)
        heats.append((float(result >> 11) * 2.0**-53 + 1) * points)
    heats[0] = float(points)
    return heats


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _WORD


def _plain(groups: tuple[str, ...]) -> tuple[int | str, ...] | int | str:
    values = tuple(int(word) if word.isdigit() else word for word in groups)
    return values[0] if len(values) == 1 else values


def _numbers(pattern: re.Pattern[str], output: str, name: str) -> list[float]:
    """The numbers in the first line that matches."""
    found = pattern.search(output)
    if not found:
        raise WrongAnswerError(f'miniGhost printed no {name}')
    values = [*map(application.as_number, found.groups())]
    if not all(map(math.isfinite, values)):
        raise WrongAnswerError(f'not a {name}: {found.group().strip()!r}')
    return values
