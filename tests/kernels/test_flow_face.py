"""flow_face: forces on faces against least squares, bounded or not."""

import numpy as np
import pytest
from flow_twins import LEAKS, force_of, random_problem
from numba import njit
from scipy.optimize import lsq_linear

from reluflow import Problem
from reluflow.gradientflow.terms import data_of
from reluflow.kernels import flow_face


@njit
def faces(data, u, c, floor):
    """face_force with its multipliers, box_force with its slopes, outside, tie."""
    n, d = data.X.shape
    D, tau, best, slopes = np.empty(d), np.empty(n), np.empty(d), np.empty(n)
    v, e = np.empty(n, np.int8), np.empty(n)
    gap = flow_face.face_force(data, u, c, D, tau)
    flow_face.tie(data, u, c, v, e)
    flow_face.box_force(data, v, e, best, slopes)
    k = flow_face.outside(data, u, c, np.empty(d), np.empty(n), floor)
    return D, tau, gap, best, slopes, k, v, e


@njit
def put(data, u, k, side):
    """put."""
    flow_face.put(data, u, k, side)
    return u


def least_norm(data, u, c):
    """min |D_rest + sum s_k c_k x_k| over slopes in [leak, 1] of the faces, by scipy."""
    rest = (np.where(u > 0, 1.0, np.where(u < 0, data.leak, 0.0)) * c) @ data.X
    face = np.flatnonzero(u == 0)
    if not len(face):
        return rest, np.empty(0)
    A = (c[face, None] * data.X[face]).T
    found = lsq_linear(A, -rest, (data.leak, 1.0), method="bvls", tol=1e-15)
    return rest + A @ found.x, found.x


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("held", [0, 1, 2])
def test_forces_of_random_faces(leak, seed, held):
    problem = random_problem(seed, n=7, d=4, leak=leak)
    data = data_of(problem, "time")
    rng = np.random.default_rng(seed)
    u = rng.choice([-1, 1], size=7).astype(np.int8)
    u[rng.permutation(7)[:held]] = 0
    c = rng.normal(size=7)
    D, tau, gap, best, slopes, k, *_ = faces(data, u, c, 1e-12)
    np.testing.assert_allclose(D, force_of(data, u, c), atol=1e-13)
    rest = (np.where(u > 0, 1.0, np.where(u < 0, leak, 0.0)) * c) @ data.X
    np.testing.assert_allclose(rest + tau @ data.X, D, atol=1e-13)  # tau is what cancels
    assert gap == 0
    exact, s = least_norm(data, u, c)
    np.testing.assert_allclose(best, exact, atol=1e-9)
    np.testing.assert_allclose(slopes[u == 0], s, atol=1e-9)
    inside = (tau / c)[u == 0]
    holds = bool(((inside >= leak) & (inside <= 1.0)).all())
    assert (k < 0) == holds
    if holds:
        np.testing.assert_allclose(D, exact, atol=1e-9)  # sliding is the least force
    else:
        assert u[k] == 0


def test_samples_on_one_hyperplane_share_a_slope():
    """x_1 = -2 x_0: slopes add up to 1 + leak, so the force is affine in one of them."""
    x = np.array([1.0, 0.5])
    leak, c = 0.2, np.array([0.7, 0.4, -0.3, 0.9])
    X = np.array([x, -2.0 * x, 3.0 * x, [0.0, 1.0]])
    data = data_of(Problem(X, np.ones(4), leak=leak), "time")
    u = np.array([0, 0, 0, 1], np.int8)
    D, _, gap, best, slopes, _, v, e = faces(data, u, c, 1e-12)
    assert v.tolist() == [0, -2, 2, 1]
    assert e[0] == pytest.approx(c[0] + 2.0 * c[1] + 3.0 * c[2])
    assert gap == 0
    grid = np.linspace(leak, 1.0, 200_001)
    forces = (
        np.outer(grid * c[0], X[0])
        + np.outer((1.0 + leak - grid) * c[1], X[1])
        + np.outer(grid * c[2], X[2])
        + c[3] * X[3]
    )
    least = np.linalg.norm(forces, axis=1).argmin()
    np.testing.assert_allclose(best, forces[least], atol=1e-5)
    assert slopes[0] == pytest.approx(grid[least], abs=1e-5)
    assert D @ x == pytest.approx(0.0, abs=1e-14)
    assert put(data, u.copy(), 0, 1).tolist() == [1, -1, 1, 1]
    assert put(data, u.copy(), 1, 1).tolist() == [-1, 1, -1, 1]


def test_dependent_faces_are_counted_and_forces_unique():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0]])
    data = data_of(Problem(X, np.ones(4), leak=0.1), "time")
    u, c = np.array([0, 0, 0, 1], np.int8), np.array([-0.8, 0.9, -0.4, 0.2])
    D, _, gap, best, *_ = faces(data, u, c, 1e-12)
    assert gap == 1
    np.testing.assert_allclose(D, 0.0, atol=1e-15)  # three samples span the plane
    np.testing.assert_allclose(best, least_norm(data, u, c)[0], atol=1e-9)


def test_a_sample_without_pull_and_a_zero_sample():
    X = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    data = data_of(Problem(X, np.ones(3)), "time")
    D, tau, *_ = faces(data, np.array([0, -1, 1], np.int8), np.array([0.0, 1.0, 0.5]), 1e-12)
    np.testing.assert_allclose(D, [0.0, 1.0])
    assert tau[0] == pytest.approx(-0.5)
