"""Symmetries and conserved quantities of gradient descent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Network, Problem, descend, initialize


@st.composite
def problems(draw, margin=False):
    n, d = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    loss = draw(st.sampled_from(["half_square", "square", "logistic", "exponential"]))
    leak = draw(st.sampled_from([0.0, 0.2]))
    y = rng.choice([-1.0, 1.0], n) if loss in ("logistic", "exponential") else rng.normal(size=n)
    return Problem(rng.normal(size=(n, d)), y, loss=loss, leak=leak)


seeds = st.integers(0, 10_000)
backends = st.sampled_from(["lumped", "dense"])
LR, STEPS = 0.02, 300


def run(problem, net, backend):
    return descend(problem, net, lr=LR, steps=STEPS, backend=backend).final


def close(a, b, tol=1e-9):
    size = max(np.max(np.abs(a)), np.max(np.abs(b)))
    return np.max(np.abs(a - b)) <= tol * size


@settings(max_examples=40)
@given(problems(), seeds, backends)
def test_permuting_neurons_permutes_the_result(problem, seed, backend):
    net = initialize(problem, 8, scale=0.2, rng=seed)
    order = np.random.default_rng(seed).permutation(8)
    moved = run(problem, net.subset(order), backend)
    straight = run(problem, net, backend)
    assert close(moved.W, straight.W[order])
    assert close(moved.a, straight.a[order])


@settings(max_examples=40)
@given(problems(), seeds, backends)
def test_rotating_data_rotates_the_result(problem, seed, backend):
    net = initialize(problem, 8, scale=0.2, rng=seed)
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(problem.d, problem.d)))
    turned = run(problem.replace(X=problem.X @ Q), Network(net.W @ Q, net.a), backend)
    assert close(turned.W @ Q.T, run(problem, net, backend).W, 1e-8)


@settings(max_examples=40)
@given(problems(), seeds, backends)
def test_flipping_labels_and_outer_weights(problem, seed, backend):
    net = initialize(problem, 8, scale=0.2, rng=seed)
    flipped = run(problem.replace(y=-problem.y), Network(net.W, -net.a), backend)
    straight = run(problem, net, backend)
    assert close(flipped.W, straight.W)
    assert close(flipped.a, -straight.a)


@settings(max_examples=40)
@given(problems(), seeds, backends)
def test_balancedness_drifts_by_the_second_order_term(problem, seed, backend):
    """One step changes a^2 - |w|^2 by exactly lr^2 (<w,D>^2 - a^2 |D|^2) ([BF24]_ L1, Euler)."""
    net = initialize(problem, 8, scale=0.5, rng=seed)
    f = problem.outputs(net)
    slope = np.where(problem.X @ net.W.T > 0, 1.0, problem.leak)
    D = (slope * problem.pull_at(f)[:, None]).T @ problem.X
    expected = LR**2 * (np.sum(net.W * D, axis=1) ** 2 - net.a**2 * np.sum(D**2, axis=1))
    after = descend(problem, net, lr=LR, steps=1, backend=backend).final
    gap = after.a**2 - np.sum(after.W**2, axis=1)
    start = net.a**2 - np.sum(net.W**2, axis=1)
    size = np.max(after.a**2)
    assert np.max(np.abs(gap - start - expected)) <= 1e-14 * size


@settings(max_examples=30)
@given(problems(), seeds)
def test_one_step_is_minus_the_gradient(problem, seed):
    """Central differences of the loss, wherever no hyperplane is near."""
    net = initialize(problem, 3, scale=1.0, rng=seed)
    S = problem.X @ net.W.T
    if np.min(np.abs(S)) < 1e-3:
        return
    after = descend(problem, net, lr=1e-3, steps=1).final

    def loss(W, a):
        return float(problem.value(problem.outputs(Network(W, a))))

    h = 1e-6
    for j in range(3):
        up, down = net.a.copy(), net.a.copy()
        up[j] += h
        down[j] -= h
        slope = (loss(net.W, up) - loss(net.W, down)) / (2 * h)
        assert (after.a[j] - net.a[j]) / 1e-3 == pytest.approx(-slope, rel=1e-4, abs=1e-6)
        for i in range(problem.d):
            up, down = net.W.copy(), net.W.copy()
            up[j, i] += h
            down[j, i] -= h
            slope = (loss(up, net.a) - loss(down, net.a)) / (2 * h)
            assert (after.W[j, i] - net.W[j, i]) / 1e-3 == pytest.approx(-slope, rel=1e-4, abs=1e-6)


@settings(max_examples=30)
@given(problems(), seeds)
def test_recorded_states_do_not_change_the_run(problem, seed):
    net = initialize(problem, 6, scale=0.2, rng=seed)
    plain = descend(problem, net, lr=LR, steps=STEPS, backend="lumped")
    recorded = descend(problem, net, lr=LR, steps=STEPS, backend="lumped", save=[0, 7, 133, 300])
    assert np.array_equal(plain.final.W, recorded.final.W)
    assert np.array_equal(recorded.networks[-1].W, plain.final.W)


def test_neurons_on_hyperplanes_count_as_inactive():
    """phi'(0) = leak: an axis start on ideal XOR sees only its own cluster."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    problem = Problem(X, [1.0, -1.0, 1.0, -1.0], loss="logistic")
    net = Network([[0.1, 0.0]], [0.1])
    for backend in ("lumped", "dense"):
        final = run(problem, net, backend)
        assert final.W[0, 1] == 0.0
        assert final.W[0, 0] > 0.1


def test_dead_neurons_never_move():
    problem = Problem([[1.0, 0.2], [0.8, -0.1]], [1.0, 2.0])
    net = Network([[-1.0, 0.0], [1.0, 0.0]], [0.5, 0.5])
    for backend in ("lumped", "dense"):
        final = run(problem, net, backend)
        assert np.array_equal(final.W[0], net.W[0])
        assert final.a[0] == net.a[0]
