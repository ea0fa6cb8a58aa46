"""Whole paths under a frozen pull, against small steps of w' = a D(w), a' = <w, D(w)>."""

import numpy as np
import pytest

from reluflow.kernels.early import align_all, early_all, ride_all
from reluflow.kernels.early_path import BRANCH, CROSS, GROWS, SLIDE, STILL, UNRESOLVED

MOST = 2000


def small_steps(W, a, X, c, leak, t, steps):
    """Explicit Euler: first order, also where a neuron slides (it then jumps to and fro)."""
    W, a, h = W.copy(), a.copy(), t / steps
    for _ in range(steps):
        D = (np.where(W @ X.T > 0, 1.0, leak) * c) @ X
        W, a = W + h * a[:, None] * D, a + h * np.sum(W * D, axis=1)
    return W, a


def state(W, a, X, c, leak, t):
    """The network at one time, from the kernel."""
    w, b, log, _ = early_all(W, a, X, c, leak, True, np.array([t]), MOST)
    return np.exp(log[0])[:, None] * w[0], np.exp(log[0]) * b[0]


def random_case(rng, d):
    n = int(rng.integers(2, 7))
    X, c = rng.normal(size=(n, d)), rng.normal(size=n) / n
    W = rng.normal(size=(12, d))
    a = rng.choice([-1.0, 1.0], 12) * np.linalg.norm(W, axis=1)
    a[6:] *= rng.uniform(0.0, 3.0, size=6)  # not balanced: the sign of a, or w, may pass zero
    W[1], a[1] = W[0], a[0]
    W[2], a[2] = W[0], -a[0]
    W[3] = -W[0]
    return X, c, W, a


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("leak", [0.0, 0.2])
def test_against_small_steps(d, leak):
    rng = np.random.default_rng(d)
    for _ in range(3):
        X, c, W, a = random_case(rng, d)
        W1, a1 = state(W, a, X, c, leak, 3.0)
        gaps = []
        for steps in (2000, 8000):
            W2, a2 = small_steps(W, a, X, c, leak, 3.0, steps)
            size = np.linalg.norm(W2, axis=1) + np.abs(a2) + 1.0
            gaps.append(np.max((np.linalg.norm(W1 - W2, axis=1) + np.abs(a1 - a2)) / size))
        assert gaps[1] <= 0.02
        assert gaps[1] <= 0.5 * gaps[0] + 1e-9  # it is the steps that err: four times shorter ones
        np.testing.assert_array_equal(W1[0], W1[1])


def test_kinks_are_met_in_every_way():
    """The cases above would show nothing if no neuron crossed or slid."""
    rng = np.random.default_rng(0)
    X, c, W, a = random_case(rng, 3)
    ends, _, _, _, counts, (first, times, _, kinds) = align_all(
        W, a, X, c, 0.0, True, 0.99, True, MOST
    )
    assert counts[:, CROSS].sum() > 0
    assert counts[:, SLIDE].sum() > 0
    assert not (ends == UNRESOLVED).any()
    assert len(kinds) == counts.sum() == first[-1]
    for j in range(12):
        assert (np.diff(times[first[j] : first[j + 1]]) >= 0).all()


def test_growth_at_the_end_is_the_value_of_G():
    """What a path is for: log|w| - growth t tends to the offset, growth = s G(v) and D = G(v) v."""
    rng = np.random.default_rng(2)
    for d in (1, 2, 4):
        X, c, W, a = random_case(rng, d)
        ends, sign, (growth, offset, hit, last), V, *_ = align_all(
            W, a, X, c, 0.1, True, 0.9, False, MOST
        )
        p = V @ X.T
        G = np.where(p > 0, p, 0.1 * p) @ c
        grows = ends == GROWS
        assert grows.any()
        np.testing.assert_allclose(growth[grows], (sign * G)[grows], rtol=1e-9)
        t = float(np.max(last[grows])) + 30.0 / growth[grows].min()
        w, _, log, _ = early_all(W, a, X, c, 0.1, True, np.array([t]), MOST)
        size = log[0] + np.log(np.linalg.norm(w[0], axis=1))
        np.testing.assert_allclose((size - growth * t)[grows], offset[grows], atol=1e-9)
        # from the time of the cosine on it stays above the value, before it does not
        for j in np.flatnonzero(grows & (hit > 0.0)):
            times = hit[j] + np.array([-1e-6, 1e-6, 1.0])
            w, *_ = early_all(W[j : j + 1], a[j : j + 1], X, c, 0.1, True, times, MOST)
            cosine = w[:, 0] @ V[j] / np.linalg.norm(w[:, 0], axis=1)
            assert cosine[0] < 0.9 <= cosine[1] + 1e-12
            assert cosine[2] >= 0.9


def test_the_scale_of_the_start_is_a_shift_of_its_logarithm():
    rng = np.random.default_rng(3)
    X, c, W, a = random_case(rng, 3)
    times = np.array([0.0, 1.0, 40.0])
    plain = early_all(W, a, X, c, 0.0, True, times, MOST)
    tiny = early_all(2.0**-600 * W, 2.0**-600 * a, X, c, 0.0, True, times, MOST)
    for i in (0, 1, 3):
        np.testing.assert_array_equal(tiny[i], plain[i])
    np.testing.assert_allclose(tiny[2], plain[2] - 600 * np.log(2.0), rtol=1e-13)


def test_zero_weights_and_starts_on_a_kink():
    X, c = np.eye(2), np.array([1.0, -1.0])
    W, a = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, -1.0]]), np.array([0.0, 1.0, 1.0])
    ends, sign, *_, counts, _ = align_all(W, a, X, c, 0.0, True, 0.99, False, MOST)
    assert sign[0] == 0
    assert ends[2] == STILL  # no active sample
    assert ends[1] == GROWS
    W1, a1 = state(W, a, X, c, 0.0, 2.0)
    np.testing.assert_array_equal(W1[[0, 2]], W[[0, 2]])
    np.testing.assert_allclose(W1[1], [np.exp(2.0), 0.0], rtol=1e-14)  # held on the second kink
    np.testing.assert_allclose(a1[1], np.exp(2.0), rtol=1e-14)
    # a repelling hyperplane: stay or leave
    c = np.array([1.0, 1.0])
    _, _, _, stay, counts, _ = align_all(W[1:2], a[1:2], X, c, 0.0, True, 0.99, False, MOST)
    assert counts[0, BRANCH] == 1
    np.testing.assert_allclose(stay[0], [1.0, 0.0])
    _, _, _, leave, *_ = align_all(W[1:2], a[1:2], X, c, 0.0, False, 0.99, False, MOST)
    np.testing.assert_allclose(leave[0], np.sqrt([0.5, 0.5]))


@pytest.mark.parametrize("d", [1, 3])
def test_a_ride_in_two_steps_is_a_ride_in_one(d):
    """And it is the path of `early_all`: balanced neurons, sides remembered in between."""
    rng = np.random.default_rng(d)
    X, c, W, _ = random_case(rng, d)
    V = W / np.linalg.norm(W, axis=1, keepdims=True)
    s = rng.choice([-1.0, 1.0], len(V))
    unknown, hold = np.full((len(V), len(c)), 2, np.int8), np.ones(len(V), bool)
    _, _, whole, log, *_ = ride_all(V, s, unknown, X, c, 0.1, hold, 0.0, 2.5, MOST)
    w, _, size, _ = early_all(V, s, X, c, 0.1, True, np.array([2.5]), MOST)
    np.testing.assert_allclose(
        whole, w[0] / np.linalg.norm(w[0], axis=1, keepdims=True), atol=1e-14
    )
    np.testing.assert_allclose(log, size[0] + np.log(np.linalg.norm(w[0], axis=1)), atol=1e-13)
    _, _, half, first, sides, *_ = ride_all(V, s, unknown, X, c, 0.1, hold, 0.0, 1.0, MOST)
    _, _, rest, second, *_ = ride_all(half, s, sides, X, c, 0.1, hold, 0.0, 1.5, MOST)
    np.testing.assert_allclose(rest, whole, atol=1e-10)
    np.testing.assert_allclose(first + second, log, atol=1e-10)
