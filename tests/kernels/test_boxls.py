"""box_least_norm against scipy's bounded least squares."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from reluflow.kernels.boxls import box_least_norm, box_least_norm_from


def slow_twin(base, Z, lo):
    if len(Z) == 0:
        return base
    # a shifted copy in a tall, regularised-free form; BVLS needs more rows than columns, trf not
    fit = lsq_linear(Z.T, -base, bounds=(lo, 1.0), method="trf", tol=1e-15, lsq_solver="exact")
    return base + fit.x @ Z


def optimality(base, Z, lo, slopes, D):
    """KKT residual: gradients point out of the box at bounds and vanish inside."""
    g = Z @ D
    inside = (slopes > lo) & (slopes < 1)
    bad = np.where(inside, np.abs(g), np.where(slopes <= lo, -g, g))
    return np.max(bad, initial=0.0)


@pytest.mark.parametrize("lo", [0.0, 0.2, -1.0])
def test_random_rows_dependent_or_not(lo):
    rng = np.random.default_rng(5)
    for trial in range(300):
        d, k = rng.integers(1, 7), rng.integers(0, 14)
        Z = rng.normal(size=(k, d))
        if trial % 3 == 0 and k > 1:  # dependent, repeated, opposite and zero rows
            Z[1] = Z[0]
            Z[-1] = -2.0 * Z[0]
            Z[k // 2] = 0.0
        if trial % 5 == 0:
            Z = np.round(Z)
        base = np.round(rng.normal(size=d), 1) if trial % 2 else rng.normal(size=d)
        slopes, D = np.empty(k), np.empty(d)
        box_least_norm(base, Z, lo, slopes, D)
        assert ((slopes >= lo) & (slopes <= 1)).all()
        np.testing.assert_allclose(D, base + slopes @ Z, atol=1e-13)
        assert optimality(base, Z, lo, slopes, D) <= 1e-11 * (1 + np.abs(Z).sum()) ** 2
        twin = slow_twin(base, Z, lo)
        assert np.linalg.norm(D) <= np.linalg.norm(twin) * (1 + 1e-9) + 1e-10
        np.testing.assert_allclose(D, twin, atol=2e-5)


def test_zero_inside_the_box_image_is_found():
    rng = np.random.default_rng(0)
    for _ in range(100):
        d = rng.integers(1, 6)
        Z = rng.normal(size=(2 * d + 1, d))
        base = -rng.uniform(0.1, 0.9, size=len(Z)) @ Z
        slopes, D = np.empty(len(Z)), np.empty(d)
        box_least_norm(base, Z, 0.0, slopes, D)
        assert np.linalg.norm(D) < 1e-12 * np.abs(Z).sum()


def test_start_does_not_matter():
    rng = np.random.default_rng(1)
    for _ in range(100):
        k, d = rng.integers(1, 40), rng.integers(1, 5)
        Z, base = rng.normal(size=(k, d)), 10 * rng.normal(size=d)
        one, two = np.empty(d), np.empty(d)
        slopes = np.empty(k)
        box_least_norm(base, Z, -1.0, slopes, one)
        state = rng.choice(np.array([-1, 1], np.int8), size=k)
        box_least_norm_from(base, Z, -1.0, state, slopes, two)
        np.testing.assert_allclose(one, two, atol=1e-11)


def test_widely_different_scales():
    base = np.array([1e-8, -1e-8])
    Z = np.array([[-2e-8, 0.0], [0.0, 1e-3]])
    slopes, D = np.empty(2), np.empty(2)
    box_least_norm(base, Z, 0.0, slopes, D)
    np.testing.assert_allclose(slopes, [0.5, 1e-5], rtol=1e-10)
    np.testing.assert_allclose(D, 0.0, atol=1e-20)


def test_a_slope_that_rounds_past_its_bound():
    Z = np.array([[1.0, 0.0, -1.0], [-4.0, 0.0, -4.0]]) / 14
    slopes, D = np.empty(2), np.empty(3)
    box_least_norm(np.array([-3.0, 0.0, -1.0]) / 14, Z, -1.0, slopes, D)
    np.testing.assert_allclose(slopes, [1.0, -0.5], atol=1e-14)
    np.testing.assert_allclose(D, 0.0, atol=1e-15)


def test_products_with_free_rows_vanish_to_full_precision():
    """A gain of relative size 1e-20 in the squared norm is a 1e-10 in the gradient: not lost."""
    for small in (1e-6, 1e-9, 1e-11):
        base, Z = np.array([1.0, 2.0, small]), np.array([[0.0, 0.0, -1.0]])
        slopes, D = np.empty(1), np.empty(3)
        box_least_norm(base, Z, 0.0, slopes, D)
        assert slopes[0] == pytest.approx(small, rel=1e-4)
        assert abs(D[2]) < 1e-15


@pytest.mark.parametrize("power", [-900, -700, -540, 500])
def test_the_unit_of_the_rows_does_not_matter(power):
    """The pulls of a margin loss become as small as one likes; their squares are no floats."""
    rng = np.random.default_rng(2)
    unit = 2.0**power
    for lo in (0.0, 0.2, -1.0):
        for _ in range(30):
            k, d = rng.integers(1, 8), rng.integers(1, 5)
            Z, base = rng.normal(size=(k, d)), rng.normal(size=d)
            slopes, D, scaled, E = np.empty(k), np.empty(d), np.empty(k), np.empty(d)
            box_least_norm(base, Z, lo, slopes, D)
            box_least_norm(unit * base, unit * Z, lo, scaled, E)
            np.testing.assert_allclose(E / unit, D, atol=1e-12)
            if k <= d:  # independent rows: slopes are unique
                np.testing.assert_allclose(scaled, slopes, atol=1e-10)


@pytest.mark.parametrize("size", [1e-100, 1e-170, 1e-300])
def test_a_row_whose_square_is_no_float(size):
    """It is judged at its own size: beside a large base it goes to the bound that helps."""
    base, D = np.array([1.0, 1.0]), np.empty(2)
    for side, bound in ((-size, 1.0), (size, 0.2)):
        slopes = np.empty(1)
        box_least_norm(base, np.array([[side, 0.0]]), 0.2, slopes, D)
        assert slopes[0] == bound
        np.testing.assert_array_equal(D, base)
    slopes = np.empty(2)
    rows = np.array([[-2.0 * size, 0.0], [0.0, 1.0]])
    box_least_norm(np.array([size, -0.5]), rows, 0.0, slopes, D)
    assert slopes[1] == pytest.approx(0.5, rel=1e-12)
    np.testing.assert_allclose(D, 0.0, atol=1e-15)
