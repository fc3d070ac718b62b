"""miniFE's equations, solved two ways apart from any program."""

import numpy as np
import pytest

from assay.programs import heat


def dense(n):
    """Interior equations from one-dimensional matrices: A and b."""
    t = 2 * np.eye(n - 1) - np.eye(n - 1, k=1) - np.eye(n - 1, k=-1)
    stiffness, mass = n * t, (6 * np.eye(n - 1) - t) / (6 * n)

    def of_axes(*factors):
        return np.kron(np.kron(factors[0], factors[1]), factors[2])

    a = of_axes(stiffness, mass, mass) + of_axes(mass, stiffness, mass)
    a += of_axes(mass, mass, stiffness)
    ones = np.ones(n - 1)
    plane = n * np.outer(mass @ ones, mass @ ones)
    for one, other in ((stiffness, mass), (mass, stiffness)):
        plane -= np.outer(one @ ones, other @ ones) / (6 * n)
    b = np.full((n - 1,) * 3, 1 / n**3)
    b[-1] += plane
    return a, b.ravel()


@pytest.mark.parametrize('n', [2, 3, 7])
def test_solution(n):
    a, b = dense(n)
    x, found = np.linalg.solve(a, b), heat.solve_heat(n)
    nodes = (n + 1) ** 2
    assert found.b_x == pytest.approx(b @ x + nodes, rel=1e-13)
    assert found.x_x == pytest.approx(x @ x + nodes, rel=1e-13)
    assert found.least_eigenvalue == pytest.approx(min(np.linalg.eigvalsh(a)[0], 1), rel=1e-12)


def test_residuals():
    a, b = dense(7)
    nodes = 64
    # The boundary's equations are one more, of eigenvalue 1.
    a = np.block([[a, np.zeros((len(b), 1))], [np.zeros((1, len(b))), np.ones((1, 1))]])
    b = np.append(b, np.sqrt(nodes))
    r, p = b.copy(), b.copy()
    expected = [np.sqrt(r @ r)]
    for _ in range(5):
        q, before = a @ p, r @ r
        r = r - before / (p @ q) * q
        p = r + r @ r / before * p
        expected.append(np.sqrt(r @ r))
    assert heat.residuals(7, 5) == pytest.approx(expected, rel=1e-9)
