"""KKT conditions of margin maximisation: known points, any scale, kinks, trained networks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import Network, Problem, ReluflowError, datasets
from reluflow.optimum import kkt, margin_bound, max_margin


def curved(leak):
    """The nonlinear KKT point of LLWA21 I.1 (leak 0: I1a; else I1b)."""
    problem = datasets.figure1_left(leak=leak)
    return problem, Network(problem.known["kkt_W"], problem.known["kkt_a"], leak=leak)


@pytest.mark.parametrize("leak", [0.0, 0.1, 0.5, 0.9])
def test_curved_kkt_points(leak):
    problem, net = curved(leak)
    found = kkt(problem, net)
    assert found.residual < 1e-12
    assert found.margin == pytest.approx(problem.known["kkt_margin"], rel=1e-12)
    # samples 3 and 5 together act on the network as sample 4 does: only their sum is determined
    known = problem.known["kkt_multipliers"]
    np.testing.assert_allclose(found.multipliers[:3], known[:3], atol=1e-9)
    assert found.multipliers.sum() == pytest.approx(1 / (2 * found.margin), rel=1e-9)
    assert abs(found.complementarity) < 1e-12
    assert found.imbalance < 1e-12
    used = ~np.isnan(found.slopes)
    np.testing.assert_allclose(found.slopes[used], leak, atol=1e-9)
    # and yet not the best: the multipliers themselves bound the gap
    assert problem.known["max_margin"] > found.margin * 1.005
    assert margin_bound(problem, found.multipliers) >= problem.known["max_margin"] - 1e-12


def test_printed_values():
    assert kkt(*curved(0.0)).margin == pytest.approx(0.207107, abs=5e-7)
    assert kkt(*curved(0.5)).margin == pytest.approx(0.356107, abs=5e-7)


@pytest.mark.parametrize("log_scale", [-1000.0, -300.0, 300.0, 1000.0])
def test_size_plays_no_part(log_scale):
    problem, net = curved(0.5)
    plain, far = kkt(problem, net), kkt(problem, net.scaled(log_scale))
    assert far.residual < 1e-12
    assert far.margin == pytest.approx(plain.margin, rel=1e-12)
    np.testing.assert_allclose(far.multipliers, plain.multipliers, atol=1e-9)
    assert far.log_q_min == pytest.approx(plain.log_q_min + 2 * log_scale, rel=1e-12)
    if log_scale > 0:
        assert far.smoothed_margin == pytest.approx(far.margin, rel=1e-12)
    else:
        assert far.smoothed_margin < -1e200


def test_mixed_sizes():
    """Neurons far below the others change nothing, and neither does where a size is kept."""
    problem, net = curved(0.5)
    W = np.vstack([net.W * np.array([1e-3, 1.0, 1e3])[:, None], [[1.0, 2.0]]])
    a = np.append(net.a * [1e-3, 1.0, 1e3], 1.0)
    mixed = Network(W, a, np.append(np.log([1e3, 1.0, 1e-3]), -900.0), leak=0.5)
    found = kkt(problem, mixed.scaled(800.0))
    assert found.residual < 1e-12
    assert found.margin == pytest.approx(problem.known["kkt_margin"], rel=1e-12)


@pytest.mark.parametrize("leak", [0.2, 0.5])
def test_linear_kkt_points_of_symmetric_data(leak):
    """LLWA21 F.2, F.3: the pair (w*, -w*) and each neuron alone, with their margins."""
    problem = datasets.symmetric_separable(leak=leak)
    w, gamma = problem.known["w_star"], problem.known["gamma_star"]
    for W, a, margin in (
        ([w, -w], [1.0, -1.0], (1 + leak) / 4 * gamma),
        ([w], [1.0], leak / 2 * gamma),
        ([-w], [-1.0], leak / 2 * gamma),
    ):
        found = kkt(problem, Network(W, a, leak=leak))
        assert found.residual < 1e-9
        assert found.margin == pytest.approx(margin, rel=1e-12)


def test_not_kkt():
    problem, net = curved(0.5)
    assert kkt(problem, Network(net.W + [0.0, 0.05], net.a, leak=0.5)).residual > 1e-2
    unbalanced = Network(2 * net.W, net.a, leak=0.5)
    found = kkt(problem, unbalanced)
    assert found.residual > 0.1
    assert found.imbalance > 0.1
    wrong = kkt(problem, Network(net.W, -net.a, leak=0.5))
    assert wrong.residual == np.inf
    assert wrong.margin < 0
    assert not wrong.multipliers.any()


def slow_residual(problem, net, tol, kink_tol=1e-9):
    """The same projection as a quadratic program over multipliers and slopes."""
    import cvxpy

    W, a = net.weights()
    f = problem.outputs(net)
    scale = 1 / np.sqrt((problem.y * f).min())
    W, a = scale * W, scale * a
    q = problem.y * f * scale**2
    active = np.flatnonzero(q <= 1 + tol)
    lam = cvxpy.Variable(len(active), nonneg=True)
    rows, rules = [], []
    for w, out in zip(W, a, strict=True):
        inner, outer = np.zeros(problem.d), 0.0
        for i, k in enumerate(active):
            x, p = problem.X[k], float(w @ problem.X[k])
            if abs(p) <= kink_tol * np.linalg.norm(w) * np.linalg.norm(x):
                slope = cvxpy.Variable()  # multiplier times slope
                rules += [slope >= problem.leak * lam[i], slope <= lam[i]]
                inner = inner + problem.y[k] * out * slope * x
            else:
                h = 1.0 if p > 0 else problem.leak
                inner = inner + problem.y[k] * out * h * lam[i] * x
                outer = outer + problem.y[k] * h * p * lam[i]
        rows += [w - inner, cvxpy.reshape(out - outer, (1,), order="C")]
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(cvxpy.hstack(rows))), rules)
    program.solve(solver="CLARABEL")
    return program.value / np.sqrt((W**2).sum() + (a**2).sum())


@pytest.mark.parametrize("seed", range(6))
def test_against_a_quadratic_program(seed):
    """Random networks, some neurons put on the hyperplanes of samples."""
    rng = np.random.default_rng(seed)
    leak = [0.0, 0.3][seed % 2]
    X = rng.normal(size=(6, 3))
    X[3:] = rng.integers(-1, 2, size=(3, 3)) + np.eye(3)
    W, a = rng.normal(size=(8, 3)), rng.normal(size=8)
    W[0] -= X[0] * (W[0] @ X[0]) / (X[0] @ X[0])
    W[1] = np.cross(X[1], X[2])
    net = Network(W, a, leak=leak)
    labels = np.sign(Problem(X, np.ones(6), leak=leak).outputs(net))
    problem = Problem(X, labels, leak=leak)
    found = kkt(problem, net, tol=1e9)
    assert len(found.kinks) >= 3
    assert found.active.all()
    assert found.residual == pytest.approx(slow_residual(problem, net, 1e9), abs=1e-6)
    free = found.slopes[~np.isnan(found.slopes)]
    assert (free >= leak - 1e-12).all()
    assert (free <= 1 + 1e-12).all()


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.4]))
def test_best_networks_are_kkt(seed, leak):
    rng = np.random.default_rng(seed)
    problem = Problem(rng.normal(size=(5, 2)), np.sign(rng.normal(size=5)), leak=leak)
    best = max_margin(problem)
    if best.status == "optimal":
        found = kkt(problem, best.network)
        assert found.margin == pytest.approx(best.margin, rel=1e-9)
        assert found.residual < 1e-6


def test_active_set_follows_q_min():
    """A trained network has its support equal up to order 1/q_min only."""
    problem, net = curved(0.5)
    rng = np.random.default_rng(0)
    near = Network(net.W * (1 + 1e-4 * rng.normal(size=(3, 1))), net.a, leak=0.5)
    large, exact = kkt(problem, near.scaled(0.5 * np.log(1e4))), kkt(problem, near, tol=1e-9)
    assert exact.residual > 0.1  # one sample alone is active
    assert large.residual < 1e-3
    assert 1e-9 < large.tol <= 10 * np.log(6) / 0.99e4
    assert large.active.sum() >= 3
    assert 0 < large.complementarity < 1e-3


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_smoothed_margin(loss):
    problem, net = curved(0.5)
    problem = problem.replace(loss=loss)
    before = -np.inf
    for size in (-1.0, 0.0, 1.0, 2.0):
        grown = net.scaled(size)
        W, a = grown.weights()
        found = kkt(problem, grown)
        total = problem.n * problem.value(problem.outputs(grown))
        plain = -np.log(np.expm1(total)) if loss == "logistic" else -np.log(total)
        norm2 = (W**2).sum() + (a**2).sum()
        # at size 2 the total loss is 1e-23: the plain formula still holds, in logarithms
        assert found.smoothed_margin == pytest.approx(plain / norm2, rel=1e-9)
        assert before < found.smoothed_margin < found.margin
        before = found.smoothed_margin
    assert np.isnan(kkt(problem.replace(loss="half_square"), net).smoothed_margin)


def test_bad_input():
    problem, net = curved(0.5)
    with pytest.raises(ReluflowError, match="tol must be"):
        kkt(problem, net, tol=-1.0)
    with pytest.raises(ReluflowError, match="all weights are zero"):
        kkt(problem, Network(np.zeros((2, 2)), np.zeros(2)))
    with pytest.raises(ReluflowError, match="W has 3 columns"):
        kkt(problem, Network(np.ones((2, 3)), np.ones(2)))
    with pytest.raises(ReluflowError, match="labels -1 and"):
        kkt(datasets.three_points(), Network(np.ones((2, 2)), np.ones(2)))
    with pytest.raises(ReluflowError, match="nonnegative"):
        margin_bound(problem, -np.ones(6))
