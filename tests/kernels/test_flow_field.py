"""flow_field: outputs, pull and forces of cones against sums over neurons."""

import numpy as np
import pytest
from flow_twins import (
    LEAKS,
    force_of,
    matrix_of,
    neurons_of,
    random_network,
    random_problem,
    slopes_of,
    state_of,
)
from numba import njit
from scipy.special import expit

from reluflow import Network, Problem
from reluflow.gradientflow.terms import data_of
from reluflow.kernels import flow_field


@njit
def moved(cones, C, D):
    """M_u applied to every column."""
    out = np.empty_like(C)
    flow_field.move(cones, C, D, out)
    return out


def field_of(state):
    n = state.data.y.size
    f, c, D = np.empty(n), np.empty(n), np.empty((state.U.shape[0], state.d))
    log_loss = flow_field.field(state.data, state.cones, state.C, f, c, D)
    return f, c, D, log_loss


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("m", [5, 200])  # single neurons, lumped cones
@pytest.mark.parametrize("scale", [0.5, 1e-120])
def test_outputs_pull_and_forces(leak, m, scale):
    problem = random_problem(m, leak=leak)
    net = random_network(problem, m, scale=scale)
    state = state_of(problem, net)
    f, c, D, _ = field_of(state)
    W, a = net.weights()
    s = W @ problem.X.T
    exact = a @ np.where(s > 0, s, leak * s)
    assert np.abs(exact).max() < 1e4 * m * scale**2
    rounding = 1e-15 * (10.0 - np.log(scale)) * (np.abs(a) @ np.abs(s)).max()  # that of exp(2 ls)
    np.testing.assert_allclose(f, exact, rtol=0, atol=rounding)
    np.testing.assert_allclose(c, (problem.y - f) / problem.n, rtol=1e-14)
    for g, u in enumerate(state.U):
        np.testing.assert_allclose(D[g], force_of(state.data, u, c), rtol=0, atol=1e-13)
    velocity = moved(state.cones, state.C, D)
    for g in range(len(D)):
        rows = slice(state.cones.offset[g], state.cones.offset[g + 1])
        np.testing.assert_allclose(velocity[rows], state.C[rows] @ matrix_of(D[g]), atol=1e-13)


def test_on_a_face_the_force_does_not_push_across():
    X = np.array([[1.0, 0.5, 0.0], [0.3, -1.0, 0.2], [0.2, 0.4, 1.0], [1.0, 1.0, 1.0]])
    problem = Problem(X, np.array([1.0, -1.0, 0.5, -1.0]), leak=0.3)
    w = np.cross(X[0], X[1])
    state = state_of(
        problem, Network(np.array([w, [1.0, 0.0, 0.0]]), np.array([1.0, 0.5]), leak=0.3)
    )
    state.U[0, :2] = 0  # hold the first neuron on both faces, whatever its slopes
    state.rebuild()
    _, c, D, _ = field_of(state)
    g = state.gid[0]
    assert np.linalg.norm(D[g]) > 0.01
    assert np.abs(X[:2] @ D[g]).max() < 1e-14
    np.testing.assert_allclose(D[g], force_of(state.data, state.U[g], c), atol=1e-14)


@pytest.mark.parametrize("m", [5, 200])
def test_contributions_are_half_the_squares(m):
    problem = random_problem(m, leak=0.3)
    state = state_of(problem, random_network(problem, m))
    B = np.empty(state.U.shape[0])
    flow_field.contributions(state.cones, state.C, B)
    z = neurons_of(state)
    exact = [0.5 * np.sum(z[state.gid == g] ** 2) for g in range(B.size)]
    np.testing.assert_allclose(B * np.exp(2.0 * state.log_size), exact, rtol=1e-12)


@pytest.mark.parametrize("loss", ["half_square", "square", "logistic", "exponential"])
def test_pull_and_how_it_bends(loss):
    problem = random_problem(3, n=7, loss=loss)
    data = data_of(problem, "time")
    f, c, bends = np.random.default_rng(5).normal(size=7), np.empty(7), np.empty(7)
    log_loss = flow_field.pull(data, f, c)
    exact = {
        "half_square": problem.y - f,
        "square": 2.0 * (problem.y - f),
        "logistic": problem.y * expit(-problem.y * f),
        "exponential": problem.y * np.exp(-problem.y * f),
    }[loss]
    np.testing.assert_allclose(c, exact / 7, rtol=1e-13)
    if problem.loss.margin:
        assert log_loss == pytest.approx(np.log(problem.value(f)), rel=1e-13)
    stiff = flow_field.stiffness(data, f, c, bends)
    up, down = np.empty(7), np.empty(7)
    flow_field.pull(data, f + 1e-6, up)
    flow_field.pull(data, f - 1e-6, down)
    np.testing.assert_allclose(bends, (down - up) / 2e-6, rtol=1e-7)
    assert stiff == pytest.approx(np.sum(bends * np.sum(problem.X**2, axis=1)), rel=1e-13)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_pull_in_the_clock_of_the_loss_at_margins_of_thousands(loss):
    """c = -l' / L: shares of the losses, which for large margins are those of e^-q."""
    problem = random_problem(4, n=5, loss=loss)
    data = data_of(problem, "loss")
    q = 3000.0 + np.array([0.0, 1.0, 2.5, 0.3, 800.0])
    c = np.empty(5)
    log_loss = flow_field.pull(data, problem.y * q, c)
    share = np.exp(3000.0 - q) / np.sum(np.exp(3000.0 - q))
    np.testing.assert_allclose(c, problem.y * share, rtol=1e-12)
    assert log_loss == pytest.approx(np.log(np.sum(np.exp(3000.0 - q)) / 5) - 3000.0, rel=1e-15)


@pytest.mark.parametrize("clock", ["time", "loss"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 40.0, 599.0, 601.0])
def test_two_forms_of_the_logistic_pull(size, clock):
    """Plain floats up to `PLAIN`, logarithms beyond, where they agree in all digits."""
    problem = random_problem(8, n=9, loss="logistic")
    data = data_of(problem, clock)
    f = size * np.linspace(-1.0, 1.0, 9)
    c, xi = np.empty(9), np.empty(9)
    log_loss = flow_field.pull(data, f, c)
    assert log_loss == pytest.approx(flow_field.log_pull(data, f, xi), rel=1e-14, abs=1e-14)
    np.testing.assert_allclose(c, problem.y * np.exp(xi), rtol=3e-13)


def test_by_loss_stiffness_covers_the_change_through_the_loss():
    problem = random_problem(6, n=5, loss="logistic")
    data = data_of(problem, "loss")
    f, c, bends = np.random.default_rng(7).normal(size=5), np.empty(5), np.empty(5)
    flow_field.pull(data, f, c)
    stiff = flow_field.stiffness(data, f, c, bends)
    J, r = np.empty((5, 5)), problem.norms
    for k in range(5):
        up, down = np.empty(5), np.empty(5)
        flow_field.pull(data, f + 1e-6 * np.eye(5)[k], up)
        flow_field.pull(data, f - 1e-6 * np.eye(5)[k], down)
        J[:, k] = (up - down) / 2e-6
    assert r @ np.abs(J) @ r <= stiff * (1 + 1e-6)


def test_pull_at_is_a_chebyshev_series():
    rng = np.random.default_rng(8)
    for terms in (1, 2, 3, 15):
        cn, c = rng.normal(size=(terms, 4)), np.empty(4)
        for theta in (0.0, 1.0, 0.37):
            flow_field.pull_at(cn, theta, c)
            exact = np.polynomial.chebyshev.chebval(2.0 * theta - 1.0, cn)
            np.testing.assert_allclose(c, exact, atol=1e-13)


def test_slopes_of_cones_are_those_of_the_activation():
    problem = random_problem(9, leak=0.3)
    state = state_of(problem, random_network(problem, 40))
    np.testing.assert_array_equal(state.cones.S, slopes_of(state.U, 0.3))
