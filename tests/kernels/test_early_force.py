"""Gradients kept up to date kink by kink, against sums over all samples."""

import numpy as np
import pytest
from numba import njit

from reluflow.kernels import early_face, early_force
from reluflow.kernels.codes import CROSS, EXIT, SLIDE
from reluflow.kernels.early import align_all, early_all, ride_all

MOST = 50_000


@njit
def _walk(X, c, leak, K, u, order, D, P, out):
    """Change the sides of samples one by one, then write force, products and speeds."""
    n, d = X.shape
    frozen = early_face.Frozen(X, c, leak, np.ones(n), 1.0, K, np.empty((d, 0)))
    force = early_force.Force(np.empty(d), np.empty(n), np.zeros(d), np.zeros(n))
    early_force.renew(force, frozen, u)
    for k in order:
        before = early_force.slope_of(u[k], leak)
        u[k] = -u[k]
        early_force.add_sample(force, frozen, k, early_force.slope_of(u[k], leak) - before)
    face, slope = order[:2].copy(), np.zeros(n)
    for k in face:  # two samples come to lie on the face with slopes in between
        early_force.add_sample(force, frozen, k, -early_force.slope_of(u[k], leak))
        u[k], slope[k] = 0, 0.3
    early_force.speeds(force, frozen, 2.0, u, face, 2, slope, out)
    for i in range(d):
        D[i] = force.D[i]
    for k in range(n):
        P[k] = force.P[k]


@pytest.mark.parametrize("leak", [0.0, 0.2])
def test_force_after_many_changes(leak):
    """Thirty thousand changes of sides leave the sums as exact as they were."""
    rng = np.random.default_rng(0)
    n, d = 40, 9
    X, c = rng.normal(size=(n, d)), rng.normal(size=n)
    u, order = rng.choice([-1, 1], n), rng.integers(0, n, 30_001)
    order[1] = (order[0] + 1) % n
    D, P, out = np.empty(d), np.empty(n), np.empty(n)
    _walk(X, c, leak, X @ X.T, u, order, D, P, out)
    slopes = np.where(u > 0, 1.0, np.where(u < 0, leak, 0.0))
    twin = (slopes * c) @ X
    np.testing.assert_allclose(D, twin, atol=1e-13)
    np.testing.assert_allclose(P, X @ twin, atol=1e-12)
    slopes[order[:2]] = 0.3
    np.testing.assert_allclose(out, 2.0 * X @ ((slopes * c) @ X), atol=1e-12)


def middle_case(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 12)) + 0.5
    c = np.sign(rng.normal(size=150) + X[:, 0]) / 150
    W = rng.normal(size=(10, 12))
    a = rng.choice([-1.0, 1.0], 10) * np.linalg.norm(W, axis=1)
    a[5:] *= rng.uniform(0.0, 3.0, 5)  # some pass a = 0 or w = 0 on their way
    return X, c, W, a


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("leak", [0.0, 0.1])
def test_paths_are_the_same_event_by_event(seed, leak):
    X, c, W, a = middle_case(seed)
    plain = align_all(W, a, X, c, leak, True, 0.99, True, MOST)
    kept = align_all(W, a, X, c, leak, True, 0.99, True, MOST, X @ X.T)
    for i in (0, 1, 4):  # ends, signs, counts of events
        np.testing.assert_array_equal(kept[i], plain[i])
    counts = plain[4].sum(axis=0)
    assert counts[CROSS] > 300  # on the edge of what the test shows
    assert counts[SLIDE] > 20
    assert counts[EXIT] > 5
    np.testing.assert_allclose(kept[2], plain[2], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(kept[3], plain[3], atol=1e-12)
    np.testing.assert_array_equal(kept[5][2], plain[5][2])  # samples met, in order
    np.testing.assert_allclose(kept[5][1], plain[5][1], atol=1e-10)


def test_states_and_rides_with_products():
    X, c, W, a = middle_case(3)
    K, times = X @ X.T, np.array([0.0, 0.4, 3.0])
    for plain, kept in zip(
        early_all(W, a, X, c, 0.0, True, times, MOST),
        early_all(W, a, X, c, 0.0, True, times, MOST, K),
        strict=True,
    ):
        np.testing.assert_allclose(kept, plain, atol=1e-11)
    V = W / np.linalg.norm(W, axis=1, keepdims=True)
    s, sides, hold = np.sign(a), np.full((10, 150), 2, np.int8), np.ones(10, bool)
    plain = ride_all(V, s, sides, X, c, 0.0, hold, 0.0, 2.0, MOST)
    first = ride_all(V, s, sides, X, c, 0.0, hold, 0.0, 0.7, MOST, K)
    np.testing.assert_allclose(first[6], first[2] @ X.T, atol=1e-13)
    rest = ride_all(first[2], s, first[4], X, c, 0.0, hold, 0.0, 1.3, MOST, K, first[6])
    np.testing.assert_allclose(rest[2], plain[2], atol=1e-11)
    np.testing.assert_allclose(first[3] + rest[3], plain[3], atol=1e-11)
    np.testing.assert_array_equal(rest[4], plain[4])
    assert plain[6] is None
