"""Tables of whole numbers: kinks meet in one point, and forces along samples vanish exactly."""

import numpy as np
import pytest

from reluflow import Problem, early, flow, initialize


def table(seed):
    """Features in a few whole numbers, as counts and ratings have them."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 20)), int(rng.integers(2, 7))
    X = np.round(rng.standard_normal((n, d))) if seed % 2 else rng.integers(0, 3, (n, d))
    loss = "logistic" if seed % 3 else "half_square"
    return Problem(X.astype(float), np.sign(rng.standard_normal(n)), loss=loss, bias=1.0)


def imbalance(net):
    """|a^2 - |w|^2| over the larger of both, neuron by neuron."""
    return np.abs(np.expm1(-2.0 * np.abs(net.log_outer - net.log_norms)))


@pytest.mark.parametrize("seed", range(16))
def test_both_roads_agree_and_keep_the_balance(seed):
    """Flow from weights too small to be felt against closed-form pieces of another solver."""
    problem = table(seed)
    net = initialize(problem, 20, log_scale=-200.0, rng=seed)
    t = 6.0 / float(np.abs(problem.pull * problem.norms).sum())
    run = flow(problem, net, t_end=t)
    assert imbalance(run.final).max() < 1e-9
    gap = np.linalg.norm(run.final.directions - early(problem, net, t).directions, axis=1)
    assert gap.max() < 1e-7


def test_a_slope_at_its_bound_beside_a_kink_that_is_crossed():
    """One of these neurons slides on a kink while it crosses another one.

    At that moment its slope is 1 exactly as long as the crossed sample has no side; settled first,
    it was sent to a side that pushes it back, and fell through the kink in the next step.
    """
    rng = np.random.default_rng(203)
    n, d = int(rng.integers(4, 40)), int(rng.integers(1, 8))
    X = np.round(rng.standard_normal((n, d)))
    rng.integers(5), rng.choice(4)
    y = np.sign(X @ rng.standard_normal(d))
    y[y == 0] = 1.0
    problem = Problem(X, y, loss="logistic", bias=1.0)
    net = initialize(problem, 200, log_scale=-30.0, rng=0)
    run = flow(problem, net, t_end=12.0, save=np.linspace(0.0, 12.0, 25))
    assert max(imbalance(state).max() for state in run.networks) < 1e-9
