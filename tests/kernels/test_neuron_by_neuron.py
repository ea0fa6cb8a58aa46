"""Steps, outputs and velocities neuron by neuron, against the formula written in NumPy.

f_k = sum_j a_j phi(<w_j, x_k>), D_j = sum_k phi'_jk c_k x_k, w_j' = a_j D_j, a_j' = <w_j, D_j>.
"""

import numpy as np
import pytest

from reluflow.kernels.blas import backward, forward
from reluflow.kernels.codes import DIVERGED, DONE
from reluflow.kernels.dense import dense_steps
from reluflow.kernels.planar import planar_outputs, planar_velocity
from reluflow.kernels.pull import Targets


def outputs(W, a, X, leak):
    S = X @ W.T
    return np.where(S > 0, S, leak * S) @ a


def gradients(W, X, c, leak):
    """D_j = sum_k phi'_jk c_k x_k; on the kink phi' = leak."""
    slope = np.where(W @ X.T > 0, 1.0, leak)
    return (slope * c) @ X


def pull(kind, f, y):
    """-dl/df of (f - y)^2/2, log(1 + e^{-yf}) and e^{-yf}."""
    return (y - f, y / (1 + np.exp(y * f)), y * np.exp(-y * f))[kind]


def descend_slowly(W, a, X, y, leak, kind, lrs, both=True, batches=None):
    W, a = W.copy(), a.copy()
    for t, lr in enumerate(lrs):
        c = pull(kind, outputs(W, a, X, leak), y)
        share = np.full(len(y), 1 / len(y))
        if batches is not None:
            batch = batches[t][batches[t] >= 0]
            share = np.bincount(batch, minlength=len(y)) / len(batch)
        D = gradients(W, X, share * c, leak)
        W, a = W + lr * a[:, None] * D, a + both * lr * np.sum(W * D, axis=1)
    return W, a


def edge_cases(rng, d, m=9, n=6):
    """Random neurons and samples with a zero neuron, equal and opposite ones, one on a kink."""
    W, a, X = 0.3 * rng.normal(size=(m, d)), 0.3 * rng.normal(size=m), rng.normal(size=(n, d))
    W[0], a[0] = 0.0, 0.0
    W[2], a[2] = W[1], a[1]
    W[3], a[3] = -W[1], -a[1]
    X[0] = 0.0
    X[1, 0] = 0.0
    W[4] = np.eye(d)[0]  # <w_4, x_1> = 0 exactly
    W[5], a[5] = 1e-200 * W[5], 1e-200 * a[5]
    return W, a, X


def run_dense(W, a, X, y, leak, kind, lrs, both=True, batches=None, scale2=None, limit=1e10):
    W, a = W.copy(), a.copy()
    if scale2 is None:
        scale2 = np.ones(len(a))
    slope = np.where(W @ X.T > 0, 1.0, leak)
    weight = np.full(len(y), 1 / len(y)) if batches is None else np.ones(len(y))
    batches = np.zeros((len(lrs), 0), np.int64) if batches is None else batches
    code, taken = dense_steps(
        W,
        a,
        scale2,
        np.ascontiguousarray(X.T),
        Targets(y, weight, kind, 1.0, True),
        leak,
        both,
        lrs,
        batches,
        limit,
        outputs(W, a * scale2, X, leak),
        slope,
    )
    return W, a, code, taken


@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_dense_steps(d, kind):
    rng = np.random.default_rng(10 * d + kind)
    for leak in (0.0, 0.3):
        W, a, X = edge_cases(rng, d)
        y = rng.choice([-1.0, 1.0], len(X))
        lrs = rng.uniform(0.01, 0.1, size=40)
        for both in (True, False):
            slow = descend_slowly(W, a, X, y, leak, kind, lrs, both)
            *fast, code, taken = run_dense(W, a, X, y, leak, kind, lrs, both)
            assert (code, taken) == (DONE, 40)
            np.testing.assert_allclose(fast[0], slow[0], rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(fast[1], slow[1], rtol=1e-12, atol=1e-14)
            if kind == 0:
                assert not fast[0][0].any()  # zero weights stay zero
                np.testing.assert_array_equal(fast[0][1], fast[0][2])


@pytest.mark.parametrize("d", [2, 3])
def test_dense_steps_of_mini_batches_and_scaled_neurons(d):
    rng = np.random.default_rng(d)
    W, a, X = edge_cases(rng, d)
    y, lrs = rng.normal(size=len(X)), np.full(30, 0.1)
    batches = rng.integers(0, len(X), size=(30, 3))
    batches[::3, 2] = -1
    slow = descend_slowly(W, a, X, y, 0.2, 0, lrs, True, batches)
    W1, a1, *_ = run_dense(W, a, X, y, 0.2, 0, lrs, True, batches)
    np.testing.assert_allclose(W1, slow[0], rtol=1e-12, atol=1e-14)
    unit = 2.0 ** rng.integers(-40, 40, size=len(a))  # a neuron in another unit takes the same path
    W2, a2, *_ = run_dense(W / unit[:, None], a / unit, X, y, 0.2, 0, lrs, True, batches, unit**2)
    np.testing.assert_array_equal(W2 * unit[:, None], W1)
    np.testing.assert_array_equal(a2 * unit, a1)


def test_dense_steps_stop_where_outputs_leave_the_numbers():
    """A negative rate climbs the loss f^2/2: w and a grow doubly exponentially."""
    one, lrs = np.ones(1), np.full(50, -1.0)
    *_, code, taken = run_dense(one[None], one, one[None], 0.0 * one, 0.0, 0, lrs)
    assert code == DIVERGED
    assert taken < 10


@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize("leak", [0.0, 0.25])
def test_passes_between_matrix_products(d, leak):
    rng = np.random.default_rng(d)
    W, a, X = edge_cases(rng, d)
    c = rng.normal(size=len(X))
    H, f, inner = X @ W.T, np.empty(len(X)), np.empty(len(a))
    forward(H, a, leak, f)
    np.testing.assert_allclose(f, outputs(W, a, X, leak), rtol=1e-13, atol=1e-14)
    backward(H, c, leak, inner)
    D = gradients(W, X, c, leak)
    np.testing.assert_allclose(inner, np.sum(W * D, axis=1), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(H.T @ X, D, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("leak", [0.0, 0.25])
def test_two_features(leak):
    rng = np.random.default_rng(2)
    W, a, X = edge_cases(rng, 2)
    Z, XT, f = np.column_stack([W, a]), np.ascontiguousarray(X.T), np.empty(len(X))
    planar_outputs(Z, a, XT, leak, f)
    np.testing.assert_allclose(f, outputs(W, a, X, leak), rtol=1e-13, atol=1e-14)
    c, V = rng.normal(size=len(X)), np.empty_like(Z)
    planar_velocity(Z, c, XT, leak, V)
    D = gradients(W, X, c, leak)
    slow = np.column_stack([a[:, None] * D, np.sum(W * D, axis=1)])
    np.testing.assert_allclose(V, slow, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("leak", [0.0, 0.25])
def test_velocity_is_minus_the_gradient_of_the_loss(leak):
    """The property it is for: sum_k |f_k - y_k|^2/2 falls at the rate |velocity|^2."""
    rng = np.random.default_rng(3)
    W, a, X = rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=(7, 2))
    y, V = rng.normal(size=7), np.empty((5, 3))
    Z = np.column_stack([W, a])
    planar_velocity(Z, y - outputs(W, a, X, leak), np.ascontiguousarray(X.T), leak, V)

    def loss(step):
        moved = Z + step * V
        return 0.5 * np.sum((outputs(moved[:, :2], moved[:, 2], X, leak) - y) ** 2)

    slope = (loss(1e-6) - loss(-1e-6)) / 2e-6
    assert slope == pytest.approx(-np.sum(V**2), rel=1e-7)
