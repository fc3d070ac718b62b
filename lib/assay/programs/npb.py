"""The NAS Parallel Benchmarks 3.4: six programs, their classes of problems, and what they print.

Sizes, iterations and operations of a class are those of the specification and of NPB's own count of
operations (``sys/setparams.c`` and the end of each program), computed here once more: a rate is a
figure only if it is these operations over the time that was printed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from assay.programs.application import Application, Problem, WrongAnswerError, as_number
from assay.programs.figure import Figure, Quantity, figures_of

#: In two decimals, as is the rate.
_HALF_DIGIT = 0.005 * (1 + 1e-9)

#: Random pairs that a rank of EP makes at most: some seconds, as it has no data to be sized by.
_PAIRS_OF_RANK = 1 << 28

#: Points along an edge of what a rank of LU has at least; NPB takes 3.
_EDGE_OF_LU = 4


@dataclass(frozen=True)
class Class:
    """The problem of a class.

    :param size: as NPB prints it, without spaces.
    :param iterations: as NPB prints them.
    :param operations: that NPB counts, all iterations together.
    :param bytes: of memory on all ranks together, beside the MPI's; seen of classes W and A.
    """

    size: str
    iterations: int
    operations: float
    bytes: float


def _cg(rows: int, nonzeros: int, iterations: int) -> Class:
    of_row = nonzeros * (nonzeros + 1)
    operations = 2 * iterations * rows * (3 + of_row + 25 * (5 + of_row) + 3)
    return Class(str(rows), iterations, operations, 24 * rows * (nonzeros + 1) ** 2)


def _ft(x: int, y: int, z: int, iterations: int) -> Class:
    points = x * y * z
    log = math.log(points)
    operations = points * (14.8157 + 7.19641 * log + (5.23518 + 7.21113 * log) * iterations)
    return Class(f'{x}x{y}x{z}', iterations, operations, 56 * points)


def _is(log_keys: int) -> Class:
    keys = 1 << log_keys
    return Class(str(keys), 10, 10 * keys, 12 * keys)


def _lu(edge: int, iterations: int) -> Class:
    of_step = 1984.77 * edge**3 - 10923.3 * edge**2 + 27770.9 * edge - 144010
    return Class(f'{edge}x{edge}x{edge}', iterations, iterations * of_step, 200 * edge**3)


def _mg(edge: int, iterations: int) -> Class:
    points = edge**3
    return Class(f'{edge}x{edge}x{edge}', iterations, 58 * iterations * points, 27 * points)


def _ep(log_pairs: int) -> Class:
    numbers = 1 << (log_pairs + 1)
    return Class(str(numbers), 0, numbers, 0)


#: The classes of each program.
CLASSES: Mapping[str, Mapping[str, Class]] = {
    'cg': {
        'S': _cg(1400, 7, 15),
        'W': _cg(7000, 8, 15),
        'A': _cg(14000, 11, 15),
        'B': _cg(75000, 13, 75),
        'C': _cg(150000, 15, 75),
        'D': _cg(1500000, 21, 100),
        'E': _cg(9000000, 26, 100),
        'F': _cg(54000000, 31, 100),
    },
    'ft': {
        'S': _ft(64, 64, 64, 6),
        'W': _ft(128, 128, 32, 6),
        'A': _ft(256, 256, 128, 6),
        'B': _ft(512, 256, 256, 20),
        'C': _ft(512, 512, 512, 20),
        'D': _ft(2048, 1024, 1024, 25),
        'E': _ft(4096, 2048, 2048, 25),
        'F': _ft(8192, 4096, 4096, 25),
    },
    'is': {
        'S': _is(16),
        'W': _is(20),
        'A': _is(23),
        'B': _is(25),
        'C': _is(27),
        'D': _is(31),
        'E': _is(35),
    },
    'lu': {
        'S': _lu(12, 50),
        'W': _lu(33, 300),
        'A': _lu(64, 250),
        'B': _lu(102, 250),
        'C': _lu(162, 250),
        'D': _lu(408, 300),
        'E': _lu(1020, 300),
        'F': _lu(2560, 300),
    },
    'mg': {
        'S': _mg(32, 4),
        'W': _mg(128, 4),
        'A': _mg(256, 4),
        'B': _mg(256, 20),
        'C': _mg(512, 20),
        'D': _mg(1024, 50),
        'E': _mg(2048, 50),
        'F': _mg(4096, 50),
    },
    'ep': {
        'S': _ep(24),
        'W': _ep(25),
        'A': _ep(28),
        'B': _ep(30),
        'C': _ep(32),
        'D': _ep(36),
        'E': _ep(40),
        'F': _ep(44),
    },
}


def _grid(ranks: int) -> tuple[int, int] | None:
    """Ranks along two edges, neither more than twice the other; None if there is no such grid."""
    shorter = max(n for n in range(1, math.isqrt(ranks) + 1) if ranks % n == 0)
    longer = ranks // shorter
    return (shorter, longer) if longer <= 2 * shorter else None


class Npb(Application):
    """One program, in the largest class that fits."""

    name = 'npb'
    rate = 'rate'
    time = 'time'
    headline = 'rate'
    measures = {
        'rate': Quantity('Gop/s', 'higher'),
        'time': Quantity('s', 'lower'),
    }

    def __init__(self, kernel: str, classes: str) -> None:
        """Take a program by its name, and the letters of the classes to choose from."""
        self.program = kernel
        self.classes = {
            name: one for name, one in CLASSES[kernel].items() if name in classes.upper()
        }

    def allows(self, ranks: int) -> bool:
        """Whether it runs with so many ranks."""
        if self.program == 'lu':
            return _grid(ranks) is not None
        return self.program == 'ep' or ranks & (ranks - 1) == 0

    def problem(self, size: float, ranks: int, threads: int) -> Problem:
        kernel = self.program.upper()
        if not self.allows(ranks):
            takes = 'a nearly square grid' if self.program == 'lu' else 'a power of two'
            raise ValueError(f'NPB {kernel} takes {takes} of ranks, not {ranks}')
        fitting = {name: one for name, one in self.classes.items() if self._fits(one, size, ranks)}
        if not fitting:
            raise ValueError(
                f'no class of NPB {kernel} ({", ".join(self.classes)}) fits {size:.3g} bytes on '
                f'{ranks} ranks'
            )
        # Two classes of a size differ in iterations: the one with more.
        name = max(fitting, key=lambda one: (fitting[one].bytes, fitting[one].operations))
        return Problem([], facts={'class': name})

    def _fits(self, one: Class, size: float, ranks: int) -> bool:
        if self.program == 'ep':
            return one.operations <= 2 * ranks * _PAIRS_OF_RANK
        if self.program == 'lu' and (grid := _grid(ranks)):
            edge = int(one.size.partition('x')[0])
            return one.bytes <= size and edge >= _EDGE_OF_LU * max(grid)
        return one.bytes <= size

    def read(
        self, output: str, folder: Path, problem: Problem, ranks: int, threads: int
    ) -> dict[str, Figure]:
        del folder, threads
        kernel, name = self.program.upper(), problem.facts['class']
        asked = CLASSES[self.program][name]
        text = _summary(output, kernel)
        expected = {
            'Class': name,
            'Size': asked.size,
            'Iterations': str(asked.iterations),
            'Total processes': str(ranks),
            'Active processes': str(ranks),
            'Verification': 'SUCCESSFUL',
        }
        for what, value in expected.items():
            if (said := text.get(what, 'nothing')) != value:
                raise WrongAnswerError(f'NPB {kernel} printed {what} = {said}, not {value}')
        seconds, rate = _number(text, 'Time in seconds'), _number(text, 'Mop/s total')
        if not rate > 0:
            raise WrongAnswerError(f'NPB {kernel} printed a rate of {rate:g} Mop/s')
        time = asked.operations / (rate * 1e6)
        if not abs(time - seconds) <= _HALF_DIGIT * (1 + time / rate):
            raise WrongAnswerError(
                f'NPB {kernel} printed {rate} Mop/s in {seconds} s, but the operations of class '
                f'{name} would take {time:.6g} s at that rate'
            )
        return figures_of(self.measures, {'rate': rate / 1e3, 'time': time})


def _summary(output: str, kernel: str) -> dict[str, str]:
    """The lines that a program prints at its end, without the spaces in their values.

    :raises WrongAnswerError: if there is no such end, or more than one.
    """
    _, *ends = re.split(rf'^ *{kernel} Benchmark Completed\.?$', output, flags=re.MULTILINE)
    if len(ends) != 1:
        raise WrongAnswerError(f'NPB {kernel} came to its end {len(ends)} times, not once')
    lines = re.findall(r'^ *(\w[\w/ ]*?) *= *(.*?) *$', ends[0], re.MULTILINE)
    return {name: value.replace(' ', '') for name, value in reversed(lines)}


def _number(lines: Mapping[str, str], name: str) -> float:
    """:raises WrongAnswerError: if there is no finite number of that name, from zero on."""
    value = as_number(lines.get(name))
    if not 0 <= value < math.inf:
        raise WrongAnswerError(f'NPB printed {name} = {lines.get(name, "nothing")}, not a number')
    return value
