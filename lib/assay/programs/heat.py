"""miniFE's equations, solved apart from any program.

-laplacian(u) = 1 on the unit cube of n^3 trilinear elements, u = 1 at the face x = 1 and 0 at the
others. Let T be the matrix of order n - 1 with 2 on its diagonal and -1 beside it. Stiffness is
n T and mass is (6 - T) / 6n in one dimension, so that the matrix of the interior nodes is

    A = (Tx (6 - Ty) (6 - Tz) + (6 - Tx) Ty (6 - Tz) + (6 - Tx) (6 - Ty) Tz) / 36 n

and its right-hand side is

    b = 1 / n^3 + e (x) ((6 - Ty) (6 - Tz) - Ty (6 - Tz) - (6 - Ty) Tz) / 36 n

where e is 1 beside the face. Boundary nodes are equations of their own, of which (n + 1)^2 have the
right-hand side 1. Conjugate gradients depend on nothing but the moments b A^j b, which are sums of
products of moments in one dimension: all of them whole numbers, at any n.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache
from math import comb

import numpy as np

#: Of decimals. Twice as many change no bit of the first six residuals at n = 16, 100 and 1000.
_DIGITS = 200
#: Of the first residual's square: the system of a small mesh is solved by then.
_NOTHING = Decimal('1e-60')


@cache
def residuals(elements: int, steps: int) -> tuple[float, ...]:
    """Norms of the residual before the first iteration, and after each of the first ``steps``.

    Fewer where the system is solved before.

    :param elements: along an edge of the cube, at least 2.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        return _conjugate_gradients(_moments(elements, 2 * steps + 1), steps)


@dataclass(frozen=True)
class HeatSolution:
    """The solution x of A x = b, boundary nodes included.

    :param least_eigenvalue: of A.
    """

    b_x: float
    x_x: float
    least_eigenvalue: float


@cache
def solve_heat(n: int) -> HeatSolution:
    """Solve the equations of n^3 elements in the eigenvectors of T, which are sines.

    The time goes with n^3.
    """
    angle = np.arange(1, n) * (np.pi / n)
    t = 4 * np.sin(angle / 2) ** 2
    of_ones = np.sqrt(2 / n) * np.where(np.arange(1, n) % 2, 1 / np.tan(angle / 2), 0.0)
    beside = np.sqrt(2 / n) * np.sin(angle * (n - 1))
    ty, tz = t[:, None], t[None, :]
    ones = of_ones[:, None] * of_ones[None, :]
    face = ones * ((6 - ty) * (6 - tz) - ty * (6 - tz) - (6 - ty) * tz) / (36 * n)
    both = (6 - ty) * (6 - tz)
    mixed = ty * (6 - tz) + (6 - ty) * tz
    b_x = x_x = 0.0
    for i in range(n - 1):
        b = of_ones[i] * ones / n**3 + beside[i] * face
        x = b / ((t[i] * both + (6 - t[i]) * mixed) / (36 * n))
        b_x += float((b * x).sum())
        x_x += float((x * x).sum())
    least = float(3 * t[0] * (6 - t[0]) ** 2 / (36 * n))
    nodes = (n + 1) ** 2
    return HeatSolution(b_x + nodes, x_x + nodes, min(least, 1.0))


def _conjugate_gradients(moments: list[Decimal], steps: int) -> tuple[float, ...]:
    """CG on polynomials of A times b, whose inner products are the moments'."""

    def product(left: list[Decimal], right: list[Decimal], shift: int) -> Decimal:
        return sum(
            (
                a * b * moments[i + j + shift]
                for i, a in enumerate(left)
                for j, b in enumerate(right)
            ),
            Decimal(0),
        )

    r = p = [Decimal(1)]
    squares = [product(r, r, 0)]
    for _ in range(steps):
        alpha = squares[-1] / product(p, p, 1)
        length = len(p)
        shifted = [Decimal(0), *p]
        r = [a - alpha * b for a, b in zip([*r, Decimal(0)], shifted, strict=True)]
        squares.append(product(r, r, 0))
        if squares[-1] < squares[0] * _NOTHING:
            break
        beta = squares[-1] / squares[-2]
        p = [r[i] + beta * p[i] for i in range(length)] + [r[length]]
    return tuple(float(max(square, Decimal(0)).sqrt()) for square in squares)


def _moments(n: int, count: int) -> list[Decimal]:
    """b A^j b for j below ``count``, boundary nodes included."""
    ones, beside = [1] * (n - 1), [0] * (n - 2) + [1]
    # One more power for each of the two factors of the right-hand side.
    plain = _line_moments(ones, ones, count + 2)
    mixed = _line_moments(beside, ones, count)
    twice = _line_moments(beside, beside, count)

    scale, result = Decimal(36 * n), []
    for j in range(count):
        volume = face = both = 0
        for a in range(j + 1):
            for b in range(j + 1 - a):
                c = j - a - b
                times = comb(j, a) * comb(j - a, b)
                # T^a (6 - T)^(j - a) along each axis, with the right-hand side's own factors.
                y, z = (b, j - b), (c, j - c)
                volume += times * plain[a, j - a] * plain[y] * plain[z]
                once = squared = 0
                for dy, dz, weight in _FACE:
                    once += weight * _raised(plain, y, dy) * _raised(plain, z, dz)
                for dy, dz, weight in _FACE_TWICE:
                    squared += weight * _raised(plain, y, dy) * _raised(plain, z, dz)
                face += times * mixed[a, j - a] * once
                both += times * twice[a, j - a] * squared
        h3, of_face = Decimal(1) / n**3, 1 / scale
        inner = h3 * h3 * volume + 2 * h3 * of_face * face + of_face * of_face * both
        result.append(inner / scale**j + (n + 1) ** 2)
    return result


Power = tuple[int, int]
# The right-hand side at the face as powers of T and 6 - T in y and in z, and its square.
_FACE: list[tuple[Power, Power, int]] = [
    ((0, 1), (0, 1), 1),
    ((1, 0), (0, 1), -1),
    ((0, 1), (1, 0), -1),
]
_FACE_TWICE = [
    ((y[0] + v[0], y[1] + v[1]), (z[0] + w[0], z[1] + w[1]), s * t)
    for y, z, s in _FACE
    for v, w, t in _FACE
]


def _raised(moments: dict[Power, int], power: Power, by: Power) -> int:
    return moments[power[0] + by[0], power[1] + by[1]]


def _line_moments(left: list[int], right: list[int], count: int) -> dict[Power, int]:
    """left T^a (6 - T)^b right for all a + b below ``count``."""
    powers, vector = [], right
    for _ in range(count):
        powers.append(sum(x * y for x, y in zip(left, vector, strict=True)))
        padded = [0, *vector, 0]
        vector = [2 * padded[i] - padded[i - 1] - padded[i + 1] for i in range(1, len(padded) - 1)]
    return {
        (a, b): sum(comb(b, k) * 6 ** (b - k) * (-1) ** k * powers[a + k] for k in range(b + 1))
        for a in range(count)
        for b in range(count - a)
    }
