"""HPL's random system, generated and solved apart from any program.

The elements of [A | b] are numbers of a linear congruential generator modulo 2^64, which runs down
the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

_MULTIPLIER, _INCREMENT, _SEED = 6364136223846793005, 1, 100
_MASK = 2**64 - 1

#: To this order all elements are generated; above, those at the corners.
LARGEST_WHOLE = 6000


@dataclass(frozen=True)
class Solution:
    """Norms of the solution, and of the inverse.

    :param greatest: the maximum norm.
    :param sum: the sum of magnitudes.
    :param of_inverse: the maximum norm of the inverse of A.
    """

    greatest: float
    sum: float
    of_inverse: float


@cache
def norms(n: int) -> tuple[dict[str, float], dict[str, float]]:
    """Norms and corners of the system of order ``n``, by their names.

    :returns: those that every program has to the last bit, and sums, which differ by rounding.
    """
    corners = {'first': _element(_jump(1)), 'last': _element(_jump(n * (n + 1)))}
    if n > LARGEST_WHOLE:
        return corners, {}
    row_sums, column_sums, b = np.zeros(n), np.zeros(n), np.zeros(n)
    for row, line in enumerate(_rows(n)):
        size = np.abs(line[:n])
        row_sums[row] = size.sum()
        column_sums += size
        b[row] = line[n]
    sums = {'A_oo': row_sums.max(), 'A_1': column_sums.max()}
    sums |= {'A by rows': row_sums.sum(), 'A by columns': row_sums.sum()}
    exact = corners | {'b_oo': float(np.abs(b).max())}
    return exact, {key: float(value) for key, value in sums.items()}


@cache
def solve_system(n: int) -> Solution:
    """Solve the system of order ``n``, which takes 2 n^3 operations and 16 n^2 bytes."""
    system = np.array(list(_rows(n)))
    a, b = system[:, :n], system[:, n]
    inverse = np.linalg.inv(a)
    x = inverse @ b
    for _ in range(2):
        x += inverse @ (b - a @ x)
    of_inverse = np.abs(inverse).sum(axis=1).max()
    return Solution(float(np.abs(x).max()), float(np.abs(x).sum()), float(of_inverse))


def _rows(n: int) -> Iterator[NDArray[np.float64]]:
    """The rows of [A | b], one after the other."""
    states = np.array([_jump(1 + column * n) for column in range(n + 1)], dtype=np.uint64)
    multiplier, increment = np.uint64(_MULTIPLIER), np.uint64(_INCREMENT)
    for _ in range(n):
        yield 0.5 - states.astype(np.float64) * 2.0**-64
        states = states * multiplier + increment


def _element(state: int) -> float:
    return 0.5 - float(state) * 2.0**-64


def _jump(times: int) -> int:
    """The state of the generator after some steps."""
    state, multiplier, increment = _SEED, _MULTIPLIER, _INCREMENT
    while times:
        if times & 1:
            state = (multiplier * state + increment) & _MASK
        increment = (multiplier * increment + increment) & _MASK
        multiplier = multiplier * multiplier & _MASK
        times >>= 1
    return state
