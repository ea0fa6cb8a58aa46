"""flow_crossing: first events of a path against the path itself on a fine grid."""

import numpy as np
import pytest
from flow_twins import face_multipliers, matrix_of, random_problem
from numba import njit
from scipy.linalg import expm
from scipy.optimize import brentq

from reluflow import Problem
from reluflow.gradientflow.terms import data_of
from reluflow.kernels import flow_crossing
from reluflow.kernels.flow_path import polynomial


@njit
def first_event(data, u, F, unit, grow, whole, noise):
    """first_event."""
    return flow_crossing.first_event(data, u, F, unit, grow, whole, noise)


@njit
def first_exit(data, u, cn, lo, hi, floor):
    """first_exit."""
    return flow_crossing.first_exit(data, u, cn, lo, hi, floor)


def path_of(F, unit, grow):
    """z(x) = exp(M g x) F(x), by the matrix exponential."""
    M = matrix_of(unit)

    def z(x):
        phi = np.array([x ** ((i + 1) // 2) * (1 - x) ** (i // 2) for i in range(8)])
        return expm(grow * x * M) @ (phi @ F)

    return z


def first_on_grid(data, u, z, whole, points=401):
    """First (x, k) at which u_k <w, x_k> falls through 0, or a changes sign (k = -1)."""
    grid = np.linspace(0.0, 1.0, points)
    path = np.array([z(x) for x in grid])
    values = [(k, u[k] * (path[:, :-1] @ data.X[k])) for k in np.flatnonzero(u)]
    if whole:
        values.append((-1, np.sign(path[0, -1]) * path[:, -1]))
    best, hit = 2.0, -2
    for k, value in values:
        below = np.flatnonzero((value[:-1] > 0) & (value[1:] <= 0))
        if len(below):
            low, high = grid[below[0]], grid[below[0] + 1]
            x = brentq(lambda x, k=k: z(x)[-1] if k < 0 else z(x)[:-1] @ data.X[k], low, high)
            if x < best:
                best, hit = x, k
    return best, hit


@pytest.mark.parametrize("grow", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("whole", [False, True])
def test_first_event_of_random_paths(grow, whole):
    met = 0
    for seed in range(25):
        rng = np.random.default_rng([int(10 * grow), whole, seed])
        data = data_of(random_problem(seed), "time")
        F = rng.normal(size=(8, 4)) * 0.6 ** np.arange(8)[:, None]
        unit = rng.normal(size=3)
        unit /= np.linalg.norm(unit)
        u = np.sign(data.X @ F[0, :3]).astype(np.int8)
        if whole:
            u[0] = 0
        x, k = first_event(data, u, F, unit, grow, whole, 1e-12)
        exact, hit = first_on_grid(data, u, path_of(F, unit, grow), whole)
        assert (x, k) == (pytest.approx(exact, abs=1e-10), hit), seed
        met += hit != -2
    assert met > 10


def test_a_path_that_dips_between_two_nodes():
    """<w, x> = (x - 0.56)^2 - depth lies below 0 for a while shorter than an eighth."""
    data = data_of(Problem(np.array([[1.0, 0.0]]), np.ones(1)), "time")
    for depth in (1e-3, 1e-6):
        F = np.zeros((8, 3))
        F[0, 0], F[1, 0], F[2, 0] = 0.56**2 - depth, 1.0 - 2 * 0.56, -1.0
        x, k = first_event(data, np.array([1], np.int8), F, np.array([0.0, 1.0]), 0.0, False, 1e-12)
        assert k == 0
        assert x == pytest.approx(0.56 - np.sqrt(depth), abs=1e-9)


def test_signs_within_the_tolerance_are_kept():
    data = data_of(Problem(np.array([[2.0, 0.0]]), np.ones(1)), "time")
    F = np.zeros((8, 3))
    F[0], F[1] = [1e-10, 1.0, 0.0], [-2e-10, 0.0, 0.0]
    u, unit = np.array([1], np.int8), np.array([0.0, 1.0])
    assert first_event(data, u, F, unit, 0.0, False, 1e-8) == (2.0, -2)
    x, k = first_event(data, u, F, unit, 0.0, False, 1e-12)
    assert (x, k) == (pytest.approx(0.5), 0)


# ---------------------------------------------------------------------- one path at its kink
FLOOR = 1e-8


@njit
def falls_at(h):
    """First fall through 0 of a path with dense output h."""
    none = np.zeros(8)
    return flow_crossing.first_fall(h, none, none, 0.0, 0.0, 0.0, 0.0, 1.0, FLOOR)


def parabola(start, back):
    """Dense output of start + x (back - x), which is at its start again at x = back."""
    h = np.zeros(8)
    h[0], h[1], h[2] = start, back - 1.0, 1.0
    return h


@njit
def value_of(h, x):
    """The path at x."""
    return polynomial(h, x)


@pytest.mark.parametrize("start", [-7e-18, -1e-30, 0.0, 7e-18])
@pytest.mark.parametrize("back", [0.3, 0.1, 1e-3, 1e-6])
def test_a_path_that_rises_off_its_kink_falls_when_it_comes_back(start, back):
    h = parabola(start, back)
    assert value_of(h, 0.25) == pytest.approx(start + 0.25 * (back - 0.25), rel=1e-14)
    exact = 0.5 * (back + np.sqrt(back**2 + 4.0 * start))
    assert falls_at(h) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("back", [-0.5, -1e-6])
def test_a_path_that_falls_from_its_kink_does_so_at_once(back):
    assert falls_at(parabola(-7e-18, back)) == 0.0
    assert falls_at(parabola(0.0, back)) == 0.0
    exact = 7e-18 / -back  # to first order
    assert falls_at(parabola(7e-18, back)) == pytest.approx(exact, rel=1e-2, abs=1e-16)


def test_a_path_below_its_kink_within_the_tolerance_is_kept_until_it_leaves_that():
    start, back = -2e-9, 1e-5  # rises by back^2 / 4 = 2.5e-11
    x = falls_at(parabola(start, back))
    assert start + x * (back - x) == pytest.approx(-FLOOR, rel=1e-6)
    assert falls_at(parabola(-FLOOR, 2.0)) == 2.0  # comes up and stays


# ---------------------------------------------------------------------- the end of sliding
def test_sliding_ends_where_a_slope_leaves_its_bounds():
    met, stayed = 0, 0
    for seed in range(300):
        rng = np.random.default_rng([3, seed])
        data = data_of(random_problem(seed, leak=0.3), "time")
        u = rng.choice([-1, 1], size=6).astype(np.int8)
        u[: 1 + seed % 2] = 0
        cn = rng.normal(size=(3, 6)) * np.array([[1.0], [0.3], [0.05]])
        grid = np.linspace(0.2, 0.9, 3001)
        c = np.polynomial.chebyshev.chebval(2.0 * grid - 1.0, cn)
        slopes = face_multipliers(data, u) @ c / c[u == 0]
        bad = (slopes < 0.3) | (slopes > 1.0)
        if bad[:, 0].any():  # does not slide at all
            continue
        theta, k = first_exit(data, u, cn, 0.2, 0.9, 1e-14)
        if not bad.any():
            assert (theta, k) == (2.0, -1)
            stayed += 1
            continue
        first = bad.any(axis=0).argmax()
        if not bad[:, first : first + 400].any(axis=0).all():  # out for less than a part of a step
            continue
        assert theta == pytest.approx(grid[first], abs=3e-4)
        assert bad[k, first]
        met += 1
    assert met > 4
    assert stayed > 4
