"""The estimate of the first jump that follows a drag, held to the limit process and to the run."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.studio.first_jump import estimate_first_jump


def both(problem, scale):
    """(estimate, limit) of the first jump's time."""
    net = rf.initialize(problem, 60, scale=scale, rng=0)
    process = rf.limit(problem, net, max_jumps=1)
    found = estimate_first_jump(problem, rf.align(problem, net, paths=False))
    return found.time, process.jump_times(log_scale=float(net.log_norms.max()))[0]


@pytest.mark.parametrize(
    ("name", "close"), [("three-points", 2e-3), ("golden", 0.02), ("a3c", 0.02)]
)
def test_the_estimate_is_near_the_first_jump_of_the_limit(name, close):
    estimate, time = both(rf.datasets.load(name), 1e-12)
    assert estimate == pytest.approx(time, rel=close)


@pytest.mark.parametrize("name", ["three-points", "xor-orbit"])
def test_the_error_of_the_estimate_does_not_grow_with_the_scale(name):
    """Right at leading order: what is missed is a constant, whatever the scale."""
    problem = rf.datasets.load(name)
    large, small = both(problem, 1e-12), both(problem, 1e-24)
    assert small[1] > 1.8 * large[1]
    assert small[0] - small[1] == pytest.approx(large[0] - large[1], abs=1e-6 * small[1])


def test_one_neuron_that_cannot_turn_is_exact():
    """One feature: b' = 2b(G - Hb) for the square loss, a closed form."""
    problem = rf.Problem(np.array([[1.0]]), np.array([2.0]))
    net = rf.Network(np.array([[1e-6]]), np.array([1e-6]))
    found = estimate_first_jump(problem, rf.align(problem, net, paths=False))
    G, target, share = 2.0, 2.0, 1.0 - 1.0 / np.sqrt(2.0)
    exact = np.log(share / (1.0 - share) * target / 1e-12) / (2.0 * G)
    assert found.time == pytest.approx(exact, rel=1e-9)
    assert found.loss == pytest.approx(0.0, abs=1e-20)


def test_no_estimate_where_nothing_grows():
    problem = rf.Problem(np.array([[1.0]]), np.array([2.0]))
    net = rf.Network(np.array([[-1e-3]]), np.array([1e-3]))
    assert estimate_first_jump(problem, rf.align(problem, net, paths=False)) is None
