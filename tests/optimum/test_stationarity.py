"""Stationarity, escape, gain, and local minimum against saddle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import (
    Network,
    Problem,
    ReluflowError,
    datasets,
    descend,
    flow,
    initialize,
    stationary,
)
from reluflow.landscape import G, max_G
from reluflow.optimum import stationarity
from reluflow.optimum.escape import reachable_part
from reluflow.optimum.second_order import Kinks, best_move


def loss(problem, W, a):
    return float(problem.value(problem.outputs(Network(W, a))))


def line_of(problem):
    """One neuron on the least-squares line, active on all samples."""
    return Network([problem.known["beta_star"]], [1.0])


@pytest.mark.parametrize("make", [datasets.three_points, datasets.a3c])
@pytest.mark.parametrize("name", ["half_square", "square"])
def test_least_squares_line_is_a_local_minimum_and_not_global(make, name):
    problem = make(loss=name)
    found = stationarity(problem, line_of(problem))
    assert found.kind == "stationary, not global"
    assert found.local == "minimum"
    assert found.residual < 1e-15
    assert found.loss == pytest.approx(problem.known["limit_loss"], rel=1e-13)
    assert found.excess == pytest.approx(found.loss)  # three distinct directions: some net fits all
    assert 0.0 < found.gain <= found.excess
    assert loss(problem, *found.widened().weights()) == pytest.approx(found.loss - found.gain)
    assert found.escape <= found.escape_bound <= found.escape * (1 + 1e-6)
    assert abs(G(problem, found.vector, problem.pull_at(problem.outputs(found.network)))) == (
        pytest.approx(found.escape)
    )
    assert "a local minimum" in str(found)


def test_gain_is_the_minimum_along_the_line():
    problem = datasets.three_points()
    found = stationarity(problem, line_of(problem))
    f = problem.outputs(found.network)
    p = np.maximum(problem.X @ found.vector, 0.0)
    sizes = np.linspace(0.0, 3 * found.size, 3001)
    values = [float(problem.value(f + found.sign * size * p)) for size in sizes]
    assert min(values) == pytest.approx(found.loss - found.gain, abs=1e-6)
    assert min(values) >= found.loss - found.gain - 1e-15


def test_end_of_the_three_point_run():
    problem = datasets.three_points(loss="square")
    net = initialize(problem, 400, 1e-3, rng=0)
    end = descend(problem, net, lr=1e-3, steps=2_000_000, save=[0]).final
    found = stationarity(problem, end)
    assert found.kind == "stationary, not global"
    assert found.local == "minimum"
    assert found.relative < 1e-7
    assert found.loss == pytest.approx(0.17504274, abs=1e-8)
    best = stationarity(problem, line_of(problem))
    assert found.gain == pytest.approx(best.gain, rel=1e-5)
    assert found.gain > 0.05


def test_dormant_neurons_turn_the_minimum_into_a_saddle():
    problem = datasets.three_points()
    line = line_of(problem)
    for scale in (-900.0, -40.0):
        net = Network([line.W[0], [-0.8, -0.5]], [1.0, 1.1], log_scale=[0.0, scale])
        found = stationarity(problem, net)
        assert found.kind == "stationary, not global"
        assert found.local == "saddle"
        assert found.states.tolist() == [0, 3]
        assert found.descent.neuron == 1
        assert found.descent.order == 2
        eps = 1e-3
        W = np.vstack([line.W[0], eps * found.descent.direction])
        fall = found.loss - loss(problem, W, [1.0, eps * found.descent.sign])
        assert fall == pytest.approx(found.descent.rate * eps**2, rel=1e-4)
    awake = Network([line.W[0], [-0.8, -0.5]], [1.0, 1.1], log_scale=[0.0, -6.0])
    assert stationarity(problem, awake).kind == "not stationary"
    dead = Network([line.W[0], [0.0, -1.0]], [1.0, 1.1], log_scale=[0.0, -40.0])
    assert stationarity(problem, dead).local == "minimum"


def test_a_dead_neuron_keeps_the_local_minimum():
    problem = datasets.three_points()
    net = Network([problem.known["beta_star"], [0.0, -1.0]], [1.0, 2.0])  # inactive on all samples
    found = stationarity(problem, net)
    assert (problem.X @ net.W[1] < 0).all()
    assert found.local == "minimum"
    assert found.states.tolist() == [0, 0]


@pytest.mark.parametrize(("label", "local"), [(1.0, "saddle"), (-1.0, "minimum")])
def test_a_kink_is_a_ridge_or_a_valley(label, local):
    """The neuron e2 on the hyperplane of e1: slope 0 balances, and one side may still descend."""
    problem = Problem([[1.0, 0.0]], [label])
    found = stationarity(problem, Network([[0.0, 1.0]], [1.0]))
    assert found.kind == "stationary, not global"
    assert found.residual == 0.0
    assert found.slopes == pytest.approx(np.array([[0.0]]))
    assert found.kinked.all()
    assert found.local == local
    if local == "saddle":
        assert found.descent.order == 1
        W = np.array([[0.0, 1.0]]) + 1e-3 * found.descent.direction
        fall = found.loss - loss(problem, W, [1.0])
        assert fall == pytest.approx(1e-3 * found.descent.rate, rel=1e-2)


def test_zero_weights_of_either_layer():
    problem = Problem(np.eye(2), [1.0, -1.0])
    # w = 0, a > 0: growing along e1 descends at first order
    found = stationarity(problem, Network([[0.0, 0.0]], [1.0]))
    assert (found.kind, found.local, found.descent.order) == ("stationary, not global", "saddle", 1)
    # w = 0, a > 0 with nothing to gain for a positive neuron: a local minimum
    low = Problem(np.eye(2), [-1.0, -1.0])
    found = stationarity(low, Network([[0.0, 0.0]], [1.0]))
    assert (found.kind, found.local) == ("stationary, not global", "minimum")
    # a = 0, G(w) = 0: both weights move, second order
    found = stationarity(problem, Network([[1.0, 1.0]], [0.0]))
    assert (found.kind, found.local, found.descent.order) == ("stationary, not global", "saddle", 2)
    assert found.states.tolist() == [1]
    # a = 0, dead: nothing moves
    found = stationarity(problem, Network([[-1.0, -1.0]], [0.0]))
    assert (found.kind, found.local) == ("stationary, not global", "minimum")
    # a = 0, G(w) not 0
    assert stationarity(problem, Network([[1.0, 0.0]], [0.0])).kind == "not stationary"


def test_global_minima():
    X, y = np.eye(3), np.array([4.0, 0.0, -9.0])
    problem = Problem(X, y)
    net = Network([[2.0, 0, 0], [0, 0, 3.0]], [2.0, -3.0])
    found = stationarity(problem, net)
    assert found.kind == "global minimum"
    assert found.gain == 0.0
    assert found.excess <= 1e-28
    # duplicates with different labels: the mean is optimal although the loss is 1/2
    twice = Problem([[1.0, 0.0], [1.0, 0.0]], [0.0, 2.0], reduction="sum", loss="half_square")
    found = stationarity(twice, Network([[1.0, 0.0]], [1.0]))
    assert found.kind == "global minimum"
    assert found.loss == pytest.approx(1.0)
    # contradictory labels under a margin loss, at the odds 2 : 1
    odds = Problem([[1.0], [1.0], [1.0]], [1.0, 1.0, -1.0], loss="logistic")
    assert stationarity(odds, Network([[1.0]], [np.log(2.0)])).kind == "global minimum"
    assert stationarity(odds, Network([[1.0]], [0.5])).kind == "not stationary"


def test_separable_margin_loss_is_never_stationary():
    problem = datasets.symmetric_separable(4, 2, rng=0)
    w = problem.known["w_star"]
    for size in (0.0, 2.0, 4.0):  # margins far beyond the underflow of the loss
        net = Network([w, -w], [1.0, -1.0]).scaled(size)
        found = stationarity(problem, net)
        assert found.kind == "not stationary"
        assert found.relative > 1e-3
    assert found.loss == 0.0


def test_symmetric_pairs_have_no_kink():
    """x with label 1 and -x with label -1: G is linear, so a neuron on the hyperplane is free of
    kinks, and slopes chosen for each sample by itself would call it stationary."""
    problem = Problem([[1.0, 0.0], [-1.0, 0.0]], [1.0, -1.0])
    found = stationarity(problem, Network([[0.0, 1.0]], [1.0]))
    assert found.kind == "not stationary"
    assert found.residual == pytest.approx(0.5)
    assert found.slopes.sum() == pytest.approx(1.0)


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_residual_is_the_least_over_slopes(seed):
    """Against a fine random search over the tied slopes of one neuron on one or two kinks."""
    rng = np.random.default_rng(seed)
    d = 3
    X = rng.normal(size=(5, d))
    problem = Problem(X, rng.normal(size=5), leak=(0.0, 0.4)[seed % 2])
    on = X[: 1 + seed % 2]
    w = np.linalg.svd(on)[2][-1]
    net = Network([w], [0.7])
    found = stationarity(problem, net)
    c = problem.pull_at(problem.outputs(net))
    assert found.kinked[0, : len(on)].all()
    slopes = np.where(X @ w > 0, 1.0, problem.leak)
    rate = float(G(problem, w, c))
    best = np.inf
    for _ in range(300):
        slopes[: len(on)] = rng.uniform(problem.leak, 1.0, size=len(on))
        best = min(best, np.hypot(0.7 * np.linalg.norm((slopes * c) @ X), rate))
    assert found.residual <= best + 1e-12
    chosen = found.slopes[0]
    assert (chosen >= problem.leak - 1e-12).all()
    assert (chosen <= 1.0 + 1e-12).all()
    reached = np.hypot(0.7 * np.linalg.norm((chosen * c) @ X), rate)
    assert found.residual == pytest.approx(reached, abs=1e-9)


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_best_move_is_the_steepest_directional_derivative(seed):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 4)), 6
    X = rng.normal(size=(n, d))
    problem = Problem(X, rng.normal(size=n), leak=(0.0, 0.3)[seed % 2])
    w = np.linalg.svd(X[: 1 + seed % (d - 1)] if d > 2 else X[:1])[2][-1]
    W, a = np.array([w, rng.normal(size=d)]), np.array([rng.choice([-1.0, 1.0]), 0.5])
    c = problem.pull_at(problem.outputs(Network(W, a)))
    kinks = Kinks.of(problem, c)
    u = kinks.patterns(w[None], 1e-9)[0]
    move = best_move(kinks, u, int(a[0]), None)
    eps, now = 1e-7, loss(problem, W, a)

    def rate(delta):
        return (now - loss(problem, W + eps * np.array([delta, np.zeros(d)]), a)) / eps

    assert rate(move.vector) == pytest.approx(move.value, abs=1e-5)
    deltas = rng.normal(size=(200, d))
    deltas /= np.linalg.norm(deltas, axis=1, keepdims=True)
    assert max(rate(delta) for delta in deltas) <= move.upper_bound + 1e-5


@given(st.integers(0, 10**6))
def test_reachable_outputs(seed):
    """The projection, against the span of many random neurons."""
    rng = np.random.default_rng(seed)
    n, d = 7, int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    X[1], X[2], X[3] = -2.0 * X[0], 3.0 * X[0], -X[4]
    X[5] = 0.0 if seed % 3 == 0 else X[5]
    problem = Problem(X, rng.normal(size=n), leak=(0.0, 0.3)[seed % 2])
    p = X @ rng.normal(size=(d, 200))
    span = np.maximum(p, problem.leak * p)
    U, sizes, _ = np.linalg.svd(span, full_matrices=False)
    U = U[:, sizes > 1e-9 * sizes[0]]
    part = reachable_part(problem, Kinks.of(problem, problem.pull), problem.y)
    assert part == pytest.approx(U @ (U.T @ problem.y), abs=1e-9)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(0, 59))
def test_ends_of_flow_are_what_they_are_called(seed):
    check_end_of_flow(seed)


def check_end_of_flow(seed):
    """Random perturbations of a minimum do not lower the loss; the descent of a saddle does."""
    rng = np.random.default_rng(seed)
    n, d, m = int(rng.integers(2, 7)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    problem = Problem(rng.normal(size=(n, d)), rng.normal(size=n), leak=(0.0, 0.2)[seed % 2])
    start = initialize(problem, m, 0.3, rng=rng)
    end = flow(problem, start, t_end=5e3, stop=stationary(1e-11), max_steps=20_000).final
    W, a = end.weights()
    for w, on in zip(W, stationarity(problem, end).kinked, strict=True):  # exactly on its kinks
        if on.any():
            w -= np.linalg.pinv(problem.X[on]) @ (problem.X[on] @ w)
    found = stationarity(problem, Network(W, a))
    if found.local == "minimum":
        noise = 20.0 * found.residual
        sizes = np.hypot(np.linalg.norm(W, axis=1), a)
        for eps in (1e-3, 1e-5):
            for _ in range(200):
                V = W + eps * sizes[:, None] * rng.normal(size=W.shape)
                change = loss(problem, V, a + eps * sizes * rng.normal(size=m)) - found.loss
                assert change > -(noise * eps + 1e-15)
    if found.local == "saddle":
        move, eps = found.descent, 1e-4
        V, b = W.copy(), a.copy()
        if found.states[move.neuron] == 3:
            V[move.neuron], b[move.neuron] = eps * move.direction, eps * move.sign
        else:
            V[move.neuron] += eps * move.direction
            b[move.neuron] += 0.0 if move.order == 1 else eps**2 * move.sign
        assert loss(problem, V, b) < found.loss
    return found


@pytest.mark.parametrize("seed", [4, 22, 59])
def test_ends_of_flow_with_a_zero_neuron_a_ridge_and_valleys(seed):
    kinds = {4: "saddle", 22: "saddle", 59: "minimum"}
    assert check_end_of_flow(seed).local == kinds[seed]


def test_large_data_get_an_ascent_and_a_valid_bound():
    rng = np.random.default_rng(0)
    problem = Problem(rng.normal(size=(300, 20)), rng.normal(size=300))
    found = stationarity(problem, Network(np.zeros((2, 20)), np.zeros(2)))
    assert (found.kind, found.local) == ("stationary, not global", "saddle")
    W = rng.normal(size=(2000, 20))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    sampled = np.abs(G(problem, W)).max()
    assert sampled < found.escape < found.escape_bound
    assert loss(problem, *found.widened().weights()) == pytest.approx(found.loss - found.gain)


def test_odd_data():
    still = Problem(np.zeros((2, 2)), [1.0, 2.0])
    assert stationarity(still, Network([[1.0, 0.0]], [1.0])).kind == "global minimum"
    one = stationarity(Problem([[2.0]], [3.0]), Network([[1.0]], [1.5]))
    assert one.kind == "global minimum"
    with_zero = Problem([[0.0, 0.0], [1.0, 0.0]], [5.0, 1.0])
    found = stationarity(with_zero, Network([[1.0, 0.0]], [1.0]))
    assert found.kind == "global minimum"  # the label at 0 is out of reach
    assert found.loss == pytest.approx(6.25)


def test_messages():
    problem = Problem(np.eye(2), [1.0, 1.0])
    with pytest.raises(ReluflowError, match="W has 3 columns"):
        stationarity(problem, Network(np.eye(3), np.ones(3)))
    with pytest.raises(ReluflowError, match="outputs of the network overflow"):
        stationarity(problem, Network(np.eye(2), np.ones(2)).scaled(500.0))
    with pytest.raises(ReluflowError, match="tol must be"):
        stationarity(problem, Network(np.eye(2), np.ones(2)), tol=0.0)


@pytest.mark.parametrize("size", [1e-160, 1e-200, 1e-300])
def test_pulls_whose_squares_underflow(size):
    # label 0 and an output of 1e-200: the pull is no zero, but its square is
    X = np.array([[1.0, -0.1, 1.4], [-0.7, 0.4, 0.9], [0.1, -0.7, -0.9], [-0.5, 0.2, -1.0]])
    problem = Problem(X, np.array([0.0, 1.0, 0.0, -1.0]))
    W = np.array([[-0.7, -0.1, 0.8], [1.5, -1.3, 1.5]])
    found = stationarity(problem, Network(size * W, np.array([-1.0, -1.0])))
    silent = max_G(problem)  # the pull of the silent network, up to 1e-160
    assert found.kind == "not stationary"
    assert found.escape == pytest.approx(silent.value, rel=1e-12)
    assert found.escape_bound >= silent.value * (1.0 - 1e-15)
