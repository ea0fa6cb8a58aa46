"""flow_path: unit vectors, the exponential of a frame, dense output."""

import numpy as np
import pytest
from flow_twins import matrix_of
from numba import njit
from numpy.polynomial import Polynomial
from scipy.linalg import expm

from reluflow.gradientflow.terms import method
from reluflow.kernels import flow_path


@njit
def values(h, x):
    """polynomial and reach_of of scalar coefficients, basis and point of the same."""
    phi, z = np.empty(8), np.empty(1)
    flow_path.basis(x, phi)
    flow_path.point(h.reshape(8, 1), x, z)
    return flow_path.polynomial(h, x), flow_path.reach_of(h, 0), phi, z[0]


@njit
def in_frame(F, unit, grow, x):
    """point_in_frame."""
    z = np.empty(F.shape[1])
    flow_path.point_in_frame(F, unit, grow, x, z)
    return z


def basis_by_hand(x):
    """1, x, x (1 - x), x^2 (1 - x), ..."""
    return [x ** ((i + 1) // 2) * (1 - x) ** (i // 2) for i in range(8)]


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200, 1e-300, 5e-324])
def test_normalise(scale):
    z = np.random.default_rng(0).normal(size=5) * scale
    out = z.copy()
    log = flow_path.normalise(out)
    exact = z.astype(np.longdouble)
    size = np.sqrt(np.sum((exact / np.abs(exact).max()) ** 2)) * np.abs(exact).max()
    assert log == pytest.approx(float(np.log(size)), rel=1e-15)
    np.testing.assert_allclose(out, (exact / size).astype(float), rtol=1e-14)


def test_normalise_leaves_a_zero_vector():
    z = np.zeros(3)
    assert flow_path.normalise(z) == 0.0
    assert not z.any()


@pytest.mark.parametrize("grow", [0.0, 1e-9, 0.7, 5.0])
def test_a_path_in_its_frame_is_the_matrix_exponential_of_dense_output(grow):
    rng = np.random.default_rng(1)
    F, unit = rng.normal(size=(8, 4)), rng.normal(size=3)
    unit /= np.linalg.norm(unit)
    for x in (0.0, 0.3, 1.0):
        exact = expm(grow * x * matrix_of(unit)) @ (np.array(basis_by_hand(x)) @ F)
        np.testing.assert_allclose(
            in_frame(F, unit, grow, x), exact, rtol=0, atol=1e-13 * np.exp(grow)
        )


def test_polynomial_basis_and_point_are_one_function():
    rng = np.random.default_rng(2)
    for x in (0.0, 1.0, *rng.uniform(size=5)):
        h = rng.normal(size=8)
        value, _, phi, z = values(h, x)
        np.testing.assert_allclose(phi, basis_by_hand(x), rtol=1e-14)
        assert value == pytest.approx(np.dot(basis_by_hand(x), h), abs=1e-14)
        assert z == value


def test_reach_bounds_every_path():
    x = np.linspace(0.0, 1.0, 100_001)
    for i, values_of_basis in enumerate(basis_by_hand(x)):
        largest = np.max(values_of_basis)
        assert largest * (1.0 - 1e-15) <= flow_path.REACH[i] <= 1.001 * largest
        assert values(np.eye(8)[i], 0.5)[1] == flow_path.REACH[i]


def test_coefficients_are_dense_output_of_order_seven():
    """v' = x^q is integrated exactly for q < 7: ends, velocities there, and all between."""
    table = method()
    h, q = 0.7, np.arange(7)
    K = h**q * table.c[:, None] ** q  # v' at the stages, time in units of the step
    end = h ** (q + 1) / (q + 1)
    F = np.empty((8, 7))
    flow_path.coefficients(np.zeros(7), end, K, table.D, h, F)
    for x in np.linspace(0.0, 1.0, 9):
        exact = (h * x) ** (q + 1) / (q + 1)
        np.testing.assert_allclose(np.array(basis_by_hand(x)) @ F, exact, atol=1e-14)


def test_coefficients_from_the_table():
    rng = np.random.default_rng(3)
    z, v, K = rng.normal(size=4), rng.normal(size=4), rng.normal(size=(16, 4))
    F, table = np.empty((8, 4)), method().D
    flow_path.coefficients(z, v, K, table, 0.3, F)
    np.testing.assert_allclose(F[4:], 0.3 * table @ K, rtol=1e-13, atol=1e-14)
    x = Polynomial([0.0, 1.0])
    for e in range(4):
        path = sum(F[i, e] * basis for i, basis in enumerate(basis_by_hand(x)))
        assert path(0.0) == pytest.approx(z[e])
        assert path(1.0) == pytest.approx(v[e])
        assert path.deriv()(0.0) == pytest.approx(0.3 * K[0, e])
        assert path.deriv()(1.0) == pytest.approx(0.3 * K[12, e])
