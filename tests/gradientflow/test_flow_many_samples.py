"""Many samples: neurons meet hundreds of kinks, often two at a time, and the flow goes on.

Each problem is held to plain descent, which shares no code with the flow. Its error is of first
order in the step, so it lies about as far from the flow as from itself at twice the step.
"""

import numpy as np
import pytest

from reluflow import Problem, descend, initialize
from reluflow.gradientflow import flow

QUICK = (5, 28, 37)
TIME, LONG = 4.0, 20.0  # descent and flow are compared at the first; the flow goes on to the second


def random_problem(seed):
    """100 to 200 samples, 2 to 6 features, with and without bias, two losses; 30 neurons."""
    rng = np.random.default_rng([17, seed])
    n, d = int(rng.integers(100, 201)), int(rng.integers(2, 7))
    loss = ("half_square", "logistic")[seed % 2]
    X, y = rng.standard_normal((n, d)), rng.choice([-1.0, 1.0], n)
    if loss == "half_square":
        y = y * rng.uniform(0.3, 2.0, n)
    problem = Problem(X, y, loss=loss, bias=1.0 if seed % 4 >= 2 else None)
    return problem, initialize(problem, 30, scale=10.0 ** -rng.uniform(0, 3), rng=seed)


def shaped_problem(name, loss):
    """Two rings or two moons of 300 points, with bias."""
    shapes = pytest.importorskip("sklearn.datasets")
    if name == "circles":
        X, y = shapes.make_circles(300, noise=0.05, factor=0.5, random_state=0)
    else:
        X, y = shapes.make_moons(300, noise=0.1, random_state=0)
    problem = Problem(X, 2.0 * y - 1.0, loss=loss, bias=1.0)
    return problem, initialize(problem, 30, scale=0.1, rng=0)


def compare(problem, net, time, end, lr=2e-3):
    """Status of the flow to ``end``; its gap to descent at ``time``, and that of descent to itself.

    Gaps are the largest over the outputs, in units of the largest output.
    """
    run = flow(problem, net, t_end=end, save=[time])
    there = problem.outputs(run.networks[0])
    coarse, fine = (
        problem.outputs(descend(problem, net, lr=rate, steps=round(time / rate)).final)
        for rate in (lr, 0.5 * lr)
    )
    size = np.max(np.abs(there))
    gap, own = np.max(np.abs(there - fine)) / size, np.max(np.abs(coarse - fine)) / size
    return run.status, gap, own


def check(problem, net, time=TIME, end=LONG):
    status, gap, own = compare(problem, net, time, end)
    assert status.code == "finished", status
    assert gap < 2.0 * own + 1e-9


@pytest.mark.parametrize("seed", QUICK)
def test_random_problems(seed):
    check(*random_problem(seed), end=TIME)


@pytest.mark.nightly
def test_many_random_problems():
    for seed in range(100):
        check(*random_problem(seed))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["half_square", "logistic"])
@pytest.mark.parametrize("name", ["circles", "moons"])
def test_rings_and_moons(name, loss):
    check(*shaped_problem(name, loss))
