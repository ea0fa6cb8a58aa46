"""Descent by cones against plain descent in NumPy, and what its state promises after every step."""

import numpy as np
import pytest

from reluflow import Network, Problem
from reluflow.descent.lumped import Lumped
from reluflow.descent.samples import samples_of
from reluflow.kernels import loose
from reluflow.kernels.lumped import GROWTH_LIMIT
from reluflow.kernels.lumps import CONES, LOOKS, LOOSE, MOVES, N_COUNTS
from reluflow.kernels.wheel import NONE


def slopes_of(X, W, leak):
    return np.where(W @ X.T > 0, 1.0, leak)


def descend_slowly(problem, W, a, lrs, both):
    """W += lr a D, a += lr <W, D> with c = (y - f)/n and f = sum_j a_j phi(<w_j, x_k>)."""
    X, y, leak = problem.X, problem.y, problem.leak
    for lr in lrs:
        slope = slopes_of(X, W, leak)
        c = (y - (slope * (W @ X.T)).T @ a) / len(y)
        D = (slope * c) @ X
        W, a = W + lr * a[:, None] * D, a + both * lr * np.sum(W * D, axis=1)
    return W, a


def lumped(problem, net, both=True):
    return Lumped(samples_of(problem, False), net, both, 1e10, np.inf)


def step(run, lrs):
    return run.advance(np.asarray(lrs), np.zeros((len(lrs), 0), np.int64))


def edge_net(rng, d, X):
    """Zero, equal, opposite and tiny neurons, and one on a kink, among random ones."""
    W, a = 0.3 * rng.normal(size=(40, d)), 0.3 * rng.normal(size=40)
    W[0], a[0] = 0.0, 0.0
    W[2], a[2] = W[1], a[1]
    W[3], a[3] = -W[1], -a[1]
    W[4], a[4] = 1e-200 * W[4], 1e-200 * a[4]
    W[5] = np.linalg.svd(X[:1])[2][-1] if d > 1 else 0.0
    return W, a


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("leak", [0.0, 0.2])
@pytest.mark.parametrize("both", [True, False])
def test_against_plain_descent(d, leak, both):
    rng = np.random.default_rng(d)
    problem = Problem(rng.normal(size=(7, d)), rng.normal(size=7), leak=leak)
    W, a = edge_net(rng, d, problem.X)
    run, lrs = lumped(problem, Network(W, a), both), np.full(150, 0.2)
    step(run, lrs)
    slow = descend_slowly(problem, W, a, lrs, both)
    W1, a1, _ = run.weights()
    np.testing.assert_allclose(W1, slow[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(a1, slow[1], rtol=1e-9, atol=1e-12)
    assert run.lumps.counts.size == N_COUNTS
    assert run.lumps.counts[MOVES] > 0 or d == 1


@pytest.mark.parametrize("d", [2, 4])
def test_state_after_each_step(d):
    """S_u = sum z z^T over the lump of u, patterns are those of the members, f and D follow."""
    rng = np.random.default_rng(7 + d)
    problem = Problem(rng.normal(size=(6, d)), rng.normal(size=6), leak=0.1)
    W, a = edge_net(rng, d, problem.X)
    run, some_loose = lumped(problem, Network(W, a)), False
    for _ in range(80):
        before, cones, size = run.weights(), int(run.lumps.counts[CONES]), len(run.lumps.D)
        step(run, [0.3])
        L, (W1, a1, _) = run.lumps, run.weights()
        alone = L.loose[: L.counts[LOOSE]]
        some_loose |= alone.size > 0
        np.testing.assert_array_equal(np.flatnonzero(L.calm != NONE), np.sort(alone))
        assert (L.calm[alone] <= loose.CALM).all()
        # the pattern of a cone is that of its neurons, unless they lie on a hyperplane
        p = W1 @ L.X.T
        clear = np.abs(p) > 1e-12 * np.linalg.norm(W1, axis=1)[:, None] * L.size
        assert (np.where(clear, p > 0, L.pattern[L.cone]) == L.pattern[L.cone]).all()
        Z = np.column_stack([W1, a1])
        for u in range(L.counts[CONES]):
            members = np.setdiff1d(np.flatnonzero(L.cone == u), alone)
            assert len(members) == L.inside[u]
            S = Z[members].T @ Z[members]
            np.testing.assert_allclose(L.unit[u] * L.S[u] * (L.inside[u] > 0), S, atol=1e-13)
            assert L.growth[u] <= GROWTH_LIMIT * 1.5
        # f and D are those at the start of the step
        slope = slopes_of(L.X, before[0], problem.leak)
        np.testing.assert_allclose(L.f, (slope * (before[0] @ L.X.T)).T @ before[1], atol=1e-13)
        if len(L.D) == size:  # cones are renumbered when their arrays grow
            D = (problem.leak + (1 - problem.leak) * L.pattern[:cones]) * L.c @ L.X
            np.testing.assert_allclose(L.D[:cones], D, atol=1e-13)
    assert some_loose
    assert run.lumps.counts[LOOKS] > 0


def test_neurons_that_jump_to_and_fro_stay_loose():
    """One sample attracts from both sides: w_1 changes its side at every other step or so."""
    problem = Problem(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([-1.0, 2.0]), leak=0.5)
    W, a = np.array([[0.01, 1.0]]), np.array([1.0])
    run, lrs = lumped(problem, Network(W, a)), np.full(400, 0.3)
    step(run, lrs)
    slow = descend_slowly(problem, W, a, lrs, True)
    np.testing.assert_allclose(run.weights()[0], slow[0], rtol=1e-9)


def test_scales_beyond_floats():
    """A start at e^-1000 times the weights moves like the tangent flow: exact powers of two."""
    rng = np.random.default_rng(1)
    problem = Problem(rng.normal(size=(6, 3)), rng.normal(size=6))
    W, a, lrs = rng.normal(size=(20, 3)), rng.normal(size=20), np.full(60, 0.1)
    run = lumped(problem, Network(W, a, log_scale=np.full(20, -1000.0)))
    step(run, lrs)
    silent = Problem(problem.X, problem.y)
    slope_free = 2.0**-300  # outputs below one unit of the last place of the labels
    slow = descend_slowly(silent, slope_free * W, slope_free * a, lrs, True)
    W1, a1, log_scale = run.weights()
    factor = np.exp(log_scale + 1000.0)
    np.testing.assert_allclose(factor[:, None] * W1, slow[0] / slope_free, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(factor * a1, slow[1] / slope_free, rtol=1e-10, atol=1e-12)
