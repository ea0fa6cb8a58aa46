"""Crossing, sliding, ridges: known examples, and what a flow must keep."""

import numpy as np
import pytest
from scipy.integrate import quad

from reluflow import Network, Problem, datasets, descend, initialize, limit
from reluflow.gradientflow import flow
from reluflow.gradientflow.cones import begin
from reluflow.gradientflow.landing import land
from reluflow.gradientflow.solver import Solver
from reluflow.gradientflow.terms import data_of
from reluflow.kernels.codes import BRANCH, CROSS, EXIT, SLIDE, STAY
from reluflow.trajectory.observables import velocity

TINY = -400.0  # log-scale at which f is 0


def kinds(run):
    return run.events["kind"].tolist()


@pytest.mark.parametrize("leak", [0.0, 0.3])
def test_valley_slides_with_least_norm(leak):
    """[LLWA21]_ Fig. 3, [BF24]_ attracting face: D = base projected off x_2, then cosh, sinh."""
    problem = Problem([[1.0, 0.5], [0.0, 1.0]], [1.0, -1.0], leak=leak)
    net = Network([[1.0, 0.3]], [2.0], log_scale=TINY)
    run = flow(problem, net, t_end=3.0)
    assert kinds(run) == [SLIDE]
    # before: D = (1/2, -1/4); w_2 + ... reaches 0 when 0.3 - (p(t) - p_0) / (2 |D|) * 1/2 = 0
    D = np.array([0.5, -0.25])
    size = np.linalg.norm(D)
    p0, a0 = np.array([1.0, 0.3]) @ D / size, 2.0
    t = run.events["time"][0]
    p = p0 * np.cosh(size * t) + a0 * np.sinh(size * t)
    a = a0 * np.cosh(size * t) + p0 * np.sinh(size * t)
    w = np.array([1.0, 0.3]) + (p - p0) * D / size
    assert abs(w[1]) < 1e-12
    rest = 0.5 * (3.0 - t)
    weights = np.exp(run.final.log_scale - TINY) * np.append(run.final.W[0], run.final.a)
    exact = [
        w[0] * np.cosh(rest) + a * np.sinh(rest),
        0.0,
        a * np.cosh(rest) + w[0] * np.sinh(rest),
    ]
    assert np.allclose(weights, exact, rtol=1e-9, atol=1e-9)


def test_valley_too_steep_is_crossed():
    problem = Problem([[1.0, -0.5], [0.0, 1.0]], [1.0, -1.0])
    run = flow(problem, Network([[1.0, 0.3]], [2.0], log_scale=TINY), t_end=3.0)
    assert kinds(run) == [CROSS]


def test_refraction_changes_the_velocity_by_the_sample():
    """a c_k > 0: crossing downwards loses the sample, the velocity drops by a c_k x_k."""
    problem = Problem([[1.0, -2.0], [0.0, 1.0]], [1.0, 1.0])
    run = flow(problem, Network([[1.0, 0.3]], [2.0], log_scale=TINY), t_end=2.0)
    assert kinds(run) == [CROSS]
    t = run.events["time"][0]
    near = flow(
        problem, Network([[1.0, 0.3]], [2.0], log_scale=TINY), t_end=2.0, save=[t - 1e-7, t + 1e-7]
    )
    before, after = (velocity(problem, net)[0][0] / net.a for net in near.networks)
    assert np.allclose(before - after, 0.5 * problem.X[1], atol=1e-5)


def test_slide_ends_when_its_slope_leaves_the_box():
    """Neuron 1 fits sample 1, so |c_1| falls and the slope s = c_0 / (2 |c_1|) rises to 1."""
    problem = Problem([[1.0, 0.5], [0.0, 1.0]], [1.0, -1.0])
    net = Network([[1e-3, 1e-5], [-0.3, 0.3]], [1.5e-3, -0.45])
    run = flow(problem, net, t_end=8.0, save=np.linspace(0, 8, 81))
    assert np.all(np.diff(run.loss) <= 1e-14)
    assert kinds(run) == [SLIDE, SLIDE, EXIT]
    assert run.events["neuron"].tolist() == [0, 1, 0]
    there = flow(problem, net, t_end=run.events["time"][-1]).final
    c = problem.pull_at(problem.outputs(there))
    assert -0.5 * c[0] / c[1] == pytest.approx(1.0, abs=1e-9)
    steps = descend(problem, net, lr=1e-4, steps=80_000).final
    assert np.allclose(run.final.weights()[0], steps.weights()[0], atol=1e-3)


@pytest.mark.parametrize("y", [-1.0])
def test_mmv24_e3_does_not_move(y):
    problem = Problem([[1.0, 0.0]], [y], loss="exponential", reduction="sum")
    run = flow(problem, Network([[0.0, 1.0]], [1.0]), t_end=2.0)
    assert np.allclose(run.final.weights()[0], [[0.0, 1.0]], atol=1e-15)


def test_mmv24_e4_waits_or_leaves():
    """[MMV24]_ E4: leaving, a = cosh th, w = (sinh th, 1), th' = exp(-sinh(2 th) / 2)."""
    problem = Problem([[1.0, 0.0]], [1.0], loss="exponential", reduction="sum")
    net = Network([[0.0, 1.0]], [1.0])
    stay = flow(problem, net, t_end=2.0)
    assert np.allclose(stay.final.weights()[0], [[0.0, 1.0]], rtol=0, atol=1e-15)
    assert kinds(stay) == [BRANCH]
    leave = flow(problem, net, t_end=2.0, on_branch="leave", rtol=1e-10)
    assert kinds(leave) == [BRANCH]
    W, a = leave.final.weights()
    theta = np.arcsinh(W[0, 0])
    time = quad(lambda v: np.exp(np.sinh(2 * v) / 2), 0, theta, epsabs=1e-13)[0]
    assert abs(time - 2.0) < 1e-8
    assert np.allclose([W[0, 1], a[0]], [1.0, np.cosh(theta)], atol=1e-10)


def test_bf24_x1_zero_weight():
    """[BF24]_ Example 1: n = 1, x = y = 1, w = 0."""
    problem = Problem([[1.0]], [1.0])
    stay = flow(problem, Network([[0.0]], [0.5]), t_end=5.0)
    leave = flow(problem, Network([[0.0]], [0.5]), t_end=5.0, on_branch="leave")
    assert stay.final.weights()[0][0, 0] == 0.0
    assert leave.final.weights()[0][0, 0] > 0.1


def test_dead_neurons_are_frozen_exactly():
    problem = Problem([[1.0, 0.2], [0.5, 1.0]], [1.0, 1.0])
    net = Network([[-1e-3, -1e-3], [1e-3, 1e-3]], [1e-3, 1e-3])
    run = flow(problem, net, t_end=40.0)
    W, a = run.final.weights()
    assert np.allclose(W[0], [-1e-3, -1e-3], rtol=1e-15)
    assert np.isclose(a[0], 1e-3, rtol=1e-15)


@pytest.mark.parametrize("seed", range(12))
def test_invariants(seed):
    """a^2 - |w|^2 is kept to 1e-10 of a^2 + |w|^2, the loss never rises, events alternate."""
    rng = np.random.default_rng(seed)
    loss = ("half_square", "logistic", "exponential", "square")[seed % 4]
    n, d, m = int(rng.integers(2, 8)), int(rng.integers(1, 4)), int(rng.integers(1, 30))
    y = rng.choice([-1.0, 1.0], n)
    problem = Problem(rng.standard_normal((n, d)), y, loss=loss, leak=(0.0, 0.1)[seed % 2])
    net = initialize(problem, m, scale=0.3 if seed % 3 else 1e-4, kind="gaussian", rng=seed)
    run = flow(problem, net, t_end=60.0, save=np.linspace(0, 60, 121), max_seconds=60)
    assert run.status.code == "finished"
    assert np.all(np.diff(run.loss) <= 1e-13 * run.loss[0])
    first = net.a**2 - np.sum(net.W**2, axis=1)
    for state in run.networks[::20]:
        W, a = state.weights()
        size = a**2 + np.sum(W**2, axis=1)
        drift = np.abs(a**2 - np.sum(W**2, axis=1) - first) / size
        assert drift.max() < 1e-10


def test_lumped_equals_single():
    """Doubling each neuron at 1/sqrt 2 the size keeps f and every direction."""
    problem = Problem(np.random.default_rng(0).standard_normal((4, 2)), [1.0, -1.0, 2.0, -0.5])
    net = initialize(problem, 30, scale=0.05, rng=1)
    copies = Network(np.repeat(net.W, 4, axis=0) / 2, np.repeat(net.a, 4) / 2)
    one = flow(problem, net, t_end=25.0)
    four = flow(problem, copies, t_end=25.0)
    assert np.allclose(problem.outputs(one.final), problem.outputs(four.final), atol=1e-8)
    assert np.allclose(one.final.directions, four.final.directions[::4], atol=1e-7)
    assert len(four.events["time"]) == 4 * len(one.events["time"])


def test_a_neuron_at_rest_on_a_kink_leaves_when_the_pull_returns():
    """Its sample is fitted to rounding when another group arrives there: no pull decides a side.

    The prediction, which shares no solver, has the same end.
    """
    rng = np.random.default_rng(41)
    d, n, m = int(rng.integers(2, 6)), int(rng.integers(3, 13)), int(rng.integers(4, 31))
    problem = Problem(rng.standard_normal((n, d)), rng.standard_normal(n))
    net = initialize(problem, m, scale=1.0, rng=rng)
    run = flow(problem, net.scaled(-100 * np.log(10.0) - net.log_norms.max()), t_end=5000.0)
    assert run.status.startswith("The flow reached")
    assert run.loss[-1] == pytest.approx(limit(problem, net).losses[-1], abs=1e-7)


@pytest.mark.parametrize(("accepted", "first"), [(1.2, 1.1), (0.8, 0.75)])
def test_a_landing_ends_on_the_kink_but_not_beyond_the_accepted_step(accepted, first):
    """w_2 falls through 0 at a known time; Newton's method from 3/4 of it would leave the step."""
    problem = Problem(np.eye(2), [1.0, -1.0])
    net = Network([[1.0, 0.3]], [2.0], log_scale=TINY)
    when = flow(problem, net, t_end=3.0).events["time"][0]
    state, _ = begin(problem, net, data_of(problem, "time"), STAY)
    trial = Solver(state, 1e-8, STAY).trial
    trial.attempt(accepted * when)
    trial.dense()
    landed = land(trial, 0, 1, first * when)
    assert landed == pytest.approx(when if accepted > 1.0 else first * when, rel=1e-12)


def test_a_neuron_on_a_kink_that_nothing_pulls_on_yet_does_not_stop_the_clock():
    """Sample 0 is fitted to rounding, and the second neuron, which reads it alone, stands on the
    kink of sample 1: the sign of a rounding error must not send it to and fro by tiny steps."""
    W = [[-0.2289091043827539, 2.39400752422443], [-1.2115289999520633, -0.6057644999760317]]
    net = Network(W, [2.404926486218976, 1.3545306003025763], [-1.0955959227175516, 0.0], bias=1.0)
    problem = datasets.three_points()
    run = flow(problem, net, max_steps=2000, progress=False)
    assert run.status.code == "stationary", run.status
    np.testing.assert_allclose(run.final(problem.X), problem.y, atol=1e-8)
    assert kinds(run)[0] == 2  # it slides from the start
