"""Gradient flow with weight decay: against an integrator of scipy, closed forms and itself."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from reluflow import Problem, ReluflowError, datasets, flow, initialize
from reluflow.gradientflow.cones import begin
from reluflow.gradientflow.solver import Solver
from reluflow.gradientflow.terms import data_of
from reluflow.kernels.codes import STAY
from reluflow.landscape.alignment import D
from reluflow.network import Network
from reluflow.optimum import stationarity

LAMBDAS = (0.0, 1e-3, 1e-1)
CROSSING = (3, 5, 9, 11, 13, 14, 15, 18, 22, 23, 24, 25)  # cases in which no neuron slides


def velocity(problem, decay, m, slopes=None):
    """The equation of the weights, one row (w, a) for each neuron, as a function for scipy.

    With ``slopes`` (m, n) those hold, whatever the signs.
    """

    def rate(_, z):
        Z = z.reshape(m, -1)
        W, a = Z[:, :-1], Z[:, -1]
        s = W @ problem.X.T
        slope = np.where(s > 0, 1.0, problem.leak) if slopes is None else slopes
        D = (slope * problem.pull_at(a @ (slope * s))) @ problem.X
        return (np.column_stack([a[:, None] * D, np.sum(W * D, axis=1)]) - decay * Z).ravel()

    return rate


def reference(problem, net, decay, t_end):
    """All neurons at t_end by a generic integrator, from one crossing of a kink to the next.

    Slopes are held between crossings, so every piece is smooth. None where a neuron would slide.
    """
    z, t = np.column_stack(net.weights()).ravel(), 0.0
    X, m = problem.X, net.m
    side = np.sign(z.reshape(m, -1)[:, :-1] @ X.T)
    while t < t_end:
        rate = velocity(problem, decay, m, np.where(side > 0, 1.0, problem.leak))

        def inside(_, z, side=side):
            # a little beyond the kink: a neuron that has just crossed is not on the wrong side
            return (side * (z.reshape(m, -1)[:, :-1] @ X.T)).min() + 1e-13

        inside.terminal, inside.direction = True, -1
        how = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-14, "max_step": 0.05, "events": inside}
        found = solve_ivp(rate, (t, t_end), z, **how)
        t, z = found.t[-1], found.y[:, -1]
        if found.status == 1:
            at = side * (z.reshape(m, -1)[:, :-1] @ X.T)
            j, k = np.unravel_index(at.argmin(), at.shape)
            side[j, k] *= -1
            after = velocity(problem, decay, m, np.where(side > 0, 1.0, problem.leak))(t, z)
            if side[j, k] * (after.reshape(m, -1)[j, :-1] @ X[k]) <= 0.0:
                return None
    return z.reshape(m, -1)


def random_case(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 7)), int(rng.integers(2, 4))
    X = rng.normal(size=(n, d))
    loss = ("half_square", "logistic", "square")[seed % 3]
    y = rng.normal(size=n) if loss != "logistic" else rng.choice([-1.0, 1.0], n)
    problem = Problem(X, y, loss=loss, leak=0.3)
    return problem, initialize(problem, 5, scale=0.1, kind="gaussian", rng=seed)


def compare(Z, R):
    """Largest differences of directions and of log-norms."""
    z, r = np.linalg.norm(Z, axis=1), np.linalg.norm(R, axis=1)
    return np.abs(Z / z[:, None] - R / r[:, None]).max(), np.abs(np.log(z / r)).max()


@pytest.mark.parametrize("decay", LAMBDAS)
@pytest.mark.parametrize("seed", CROSSING)
def test_against_a_generic_integrator(seed, decay):
    problem, net = random_case(seed)
    run = flow(problem, net, t_end=6.0, weight_decay=decay, save=[3.0, 6.0])
    for i, t in enumerate(run.times):
        W, a = run.networks[i].weights()
        turn, log = compare(np.column_stack([W, a]), reference(problem, net, decay, t))
        assert turn < 1e-6
        assert log < 1e-6


@pytest.mark.parametrize("decay", [1e-3, 1e-1])
def test_kinks_not_located(decay):
    problem, net = random_case(5)
    run = flow(problem, net, t_end=6.0, weight_decay=decay, kinks=False, rtol=1e-7)
    turn, log = compare(np.column_stack(run.final.weights()), reference(problem, net, decay, 6.0))
    assert turn < 1e-4
    assert log < 1e-4


def test_smoothed_activation():
    problem, net = random_case(2)
    smooth = Problem(problem.X, problem.y, loss="square", leak=0.3, smoothing=0.05)
    start = Network(net.W, net.a, net.log_scale, 0.3, smoothing=0.05)
    plain, decayed = (flow(smooth, start, t_end=1e-3, weight_decay=v) for v in (0.0, 0.5))
    lost = np.log(plain.final.W / decayed.final.W)  # at first nothing but decay differs
    assert np.allclose(lost, 0.5e-3, rtol=1e-2)


def test_small_weights_leap_and_lose_lambda_t():
    problem = datasets.load("three-points")
    net = initialize(problem, 12, scale=1e-100, rng=1)
    ends = {v: flow(problem, net, t_end=20.0, weight_decay=v) for v in (0.0, 0.3)}
    plain, decayed = ends[0.0].final, ends[0.3].final
    assert ends[0.3].cost["leaps"] > 0
    # as long as weights are not felt the pull is that of the silent network for both
    assert np.allclose(plain.log_factors - decayed.log_factors, 0.3 * 20.0, atol=1e-7)
    assert np.allclose(plain.W, decayed.W, atol=1e-7)


def test_the_end_of_a_step_has_faded():
    problem, net = random_case(5)
    state, _ = begin(problem, net, data_of(problem, "time"), STAY)
    trial = Solver(state, 1e-8, STAY, decay=0.5).trial
    trial.attempt(0.1)
    trial.dense()
    Z, ls = state.neurons(trial.new)  # columns are free of the decay
    f = np.exp(-2 * 0.5 * 0.1) * problem.outputs(Network(Z[:, :-1], Z[:, -1], ls, problem.leak))
    assert np.allclose(trial.outputs_at(1.0), f, rtol=1e-8)
    assert np.allclose(trial.field_at_end()[0], problem.pull_at(f), rtol=1e-8)
    trial.sample()
    last = np.polynomial.chebyshev.chebval(1.0, trial.cn)
    assert np.allclose(last, problem.pull_at(f), rtol=1e-8)


def test_balance_decays():
    problem, net = random_case(5)
    run = flow(problem, net, t_end=8.0, weight_decay=0.1, save=np.linspace(0.0, 8.0, 9))
    gaps = []
    for each in run.networks:
        W, a = each.weights()
        gaps.append(np.sum(W**2, axis=1) - a**2)
    law = np.exp(-0.2 * run.times)[:, None] * gaps[0]
    assert np.abs(np.array(gaps) - law).max() < 1e-8 * np.abs(gaps[0]).max()


def test_dead_neurons_only_decay():
    problem = Problem(np.eye(2), np.array([1.0, 1.0]))
    net = Network(np.array([[-1.0, -2.0]]), np.array([0.5]))
    run = flow(problem, net, t_end=3.0, weight_decay=0.7)
    W, a = run.final.weights()
    assert np.allclose(W, net.W * np.exp(-2.1), rtol=1e-9)
    assert np.allclose(a, net.a * np.exp(-2.1), rtol=1e-9)


def test_one_neuron_ends_where_force_and_decay_balance():
    # one sample x = 1, y = 1, loss (f - 1)^2/2: a w = f with c = 1 - f = lambda at rest
    problem = Problem(np.ones((1, 1)), np.ones(1))
    run = flow(problem, Network([[0.1]], [0.1]), weight_decay=0.25)
    assert run.status.code == "stationary"
    assert run.final(problem.X) == pytest.approx([0.75], abs=1e-8)


def test_the_end_is_a_critical_point_of_the_penalised_loss():
    problem, net = random_case(0)
    run = flow(problem, net, weight_decay=0.05)
    assert run.status.code == "stationary"
    W, a = run.final.weights()
    sizes = np.linalg.norm(W, axis=1)[:, None]
    c = problem.pull_at(problem.outputs(run.final))
    force = D(problem, W / sizes, c, tol=1e-7)  # neurons end on kinks, where slopes are free
    assert np.abs(a[:, None] * force - 0.05 * W).max() < 1e-8
    assert np.abs(np.sum(W * force, axis=1) - 0.05 * a).max() < 1e-8
    assert stationarity(problem, run.final).kind == "not stationary"  # of the loss alone


def test_a_checkpoint_goes_on_bit_for_bit(tmp_path):
    problem, net = random_case(3)
    how = {"t_end": 6.0, "weight_decay": 0.1}
    whole = flow(problem, net, **how)
    path = tmp_path / "flow.ckpt"
    cut = {"checkpoint": path, "checkpoint_seconds": 0.0}
    first = flow(problem, net, max_seconds=1e-9, **cut, **how)
    assert not first.status.ok
    resumed = flow(problem, net, **cut, **how)
    assert np.array_equal(whole.final.W, resumed.final.W)


def test_refusals():
    problem, net = random_case(1)
    with pytest.raises(ReluflowError, match="weight_decay must be finite and not negative"):
        flow(problem, net, t_end=1.0, weight_decay=-1.0)
    with pytest.raises(ReluflowError, match="clock='loss' is for weights that grow for ever"):
        flow(problem, net, t_end=1.0, clock="loss", weight_decay=0.1)
