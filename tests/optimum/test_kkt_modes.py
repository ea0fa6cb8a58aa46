"""How fast directions settle: the linearisation at the limit against runs."""

import numpy as np
import pytest

from reluflow import Network, Problem, datasets, flow
from reluflow.claims.limits import rate_seen
from reluflow.gradientflow.stops import loss_below
from reluflow.optimum import kkt, max_margin
from reluflow.optimum.kkt import settling_rate


@pytest.mark.parametrize("seed", range(6))
def test_one_neuron_turns_at_rate_one(seed):
    """Nothing to shift size to: what is across the limit stays while |theta| grows."""
    rng = np.random.default_rng(seed)
    problem = datasets.separable(0.4, 8, 3, rng=seed)
    problem = Problem(problem.X, problem.y, loss="logistic", leak=0.3)
    turned = max_margin(problem, "linear", 1).w + 0.01 * rng.normal(size=3)
    net = Network([turned], [np.linalg.norm(turned)], leak=0.3)
    assert settling_rate(problem, net) == pytest.approx(1.0)


def two_neurons(seed):
    """Random samples with random labels, and two neurons of either sign."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    X, y = rng.normal(size=(n, 3)), np.where(rng.random(n) < 0.5, -1.0, 1.0)
    W = rng.normal(size=(2, 3))
    a = np.array([1.0, -1.0]) * np.linalg.norm(W, axis=1)
    return Problem(X, y, loss="logistic", leak=0.2), Network(W, a, leak=0.2)


@pytest.mark.parametrize(("seed", "slow"), [(1, True), (22, True), (31, False)])
def test_runs_settle_at_the_rate_of_the_slowest_mode(seed, slow):
    problem, net = two_neurons(seed)
    margins, residuals, rates = [], [], []
    for goal in (30.0, 300.0, 1500.0):
        stop = loss_below(log=-goal - np.log(problem.n))
        net = flow(problem, net, clock="loss", stop=stop, save=[0.0], progress=False).final
        margins.append(float((problem.y * problem.outputs(net)).min()))
        residuals.append(kkt(problem, net, kink_tol=1e-6).residual)
        rates.append(settling_rate(problem, net))
    seen = 2 * rate_seen(np.array(margins[1:]), np.array(residuals[1:]))[0]
    assert seen == pytest.approx(np.mean(rates[1:]), abs=0.02)
    assert (seen < 0.6) is slow


def test_wrongly_classified_samples_leave_nothing_to_settle():
    problem = Problem(np.eye(2), [1.0, -1.0], loss="logistic")
    assert np.isnan(settling_rate(problem, Network([[1.0, 1.0]], [1.0])))
