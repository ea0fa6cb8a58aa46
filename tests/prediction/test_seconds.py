"""The process first, then proofs within a budget: what is not proved is called found."""

import numpy as np
import pytest

from reluflow import Problem, initialize, limit, max_G
from reluflow.prediction.infinity import limit_direction


def draw(seed, n, d, loss="half_square"):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    problem = Problem(rng.normal(size=(n, d)), y if loss == "half_square" else np.sign(y), loss)
    return problem, initialize(problem, 12, scale=1e-3, rng=seed)


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_with_time_enough_the_result_is_that_without_a_budget(seed):
    problem, net = draw(seed, 6, 3)
    whole, timed = limit(problem, net), limit(problem, net, seconds=1e6)
    assert timed.found == ()
    assert timed.status == whole.status
    np.testing.assert_array_equal(timed.times, whole.times)
    np.testing.assert_array_equal(timed.losses, whole.losses)
    assert timed.gain == whole.gain
    # the bound is that of another number of nodes, and as sharp
    assert timed.gain_bound == pytest.approx(whole.gain_bound, rel=1e-8)


def test_without_time_the_process_is_whole_and_the_gain_is_found():
    problem, net = draw(0, 60, 9)
    process = limit(problem, net, seconds=0.0)
    assert process.ending == "spurious"
    assert np.diff(process.losses).max() < 0.0
    assert process.found == ("gain",)
    assert "the largest found" in process.status
    assert process.to_dict()["found"] == ["gain"]
    # what was found is reached, and the bound holds all the same
    pull = problem.pull_at(problem.outputs(process.final))
    better = max_G(problem, pull, budget=500)
    assert process.gain <= better.value * (1.0 + 1e-9)
    assert process.gain_bound >= better.value


def test_a_direction_at_infinity_that_was_not_followed_is_found():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 3))
    problem = Problem(X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0.0, 1.0, -1.0), "logistic")
    last = limit(problem, initialize(problem, 12, scale=1e-3, rng=3)).networks[-1]
    full, first = limit_direction(problem, last), limit_direction(problem, last, lambda: True)

    def margin(found):
        return float((problem.y * found.network(problem.X)).min()) / found.network.norm2

    assert full.settled
    assert margin(full) == pytest.approx(float(full.words.split()[-1].rstrip(".")), rel=1e-7)
    assert margin(first) <= margin(full) * (1.0 + 1e-9)
    assert first.settled or "found in the time given" in first.words


def test_a_neuron_diverges_beside_one_that_rests():
    # the first neuron reads two samples of opposite labels and rests between them, the second
    # reads a sample alone and grows for ever
    X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    problem = Problem(X, np.array([1.0, -1.0, -1.0]), "logistic")
    process = limit(problem, directions=[[1.0, -1.0], [-1.0, 1.0]], signs=[-1, -1])
    assert process.ending not in ("budget", "unresolved")
    rest = problem.outputs(process.networks[-1])[:2]
    # (x, 1) and (2x, -1): log(1 + e^-f) + log(1 + e^{2f}) is least where its slope is 0
    slope = -1.0 / (1.0 + np.exp(rest[0])) + 2.0 / (1.0 + np.exp(-rest[1]))
    assert abs(slope) < 1e-9
    assert process.losses[-1] == pytest.approx(
        (np.log1p(np.exp(-rest[0])) + np.log1p(np.exp(rest[1]))) / 3.0, rel=1e-9
    )


@pytest.mark.parametrize("seed", [0, 2, 3, 7, 8])
def test_neurons_left_at_infinity_change_no_plateau(seed):
    """With a budget neurons whose samples are fitted for good, and those samples, are left out of
    later phases; without one they are followed until nothing pulls on them."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((14, 2)), np.ones(14)])
    problem = Problem(
        X, np.where(X[:, 0] + 0.4 * rng.standard_normal(14) > 0, 1.0, -1.0), "logistic"
    )
    net = initialize(problem, 10, scale=1e-3, rng=seed)
    whole, timed = limit(problem, net), limit(problem, net, seconds=1e6)
    assert timed.ending == whole.ending
    np.testing.assert_allclose(timed.times, whole.times, rtol=1e-6)
    np.testing.assert_allclose(timed.losses, whole.losses, atol=1e-6)
    for one, other in zip(timed.neurons, whole.neurons, strict=True):
        np.testing.assert_array_equal(one, other)


def test_doubts_name_a_gap_a_short_plateau_and_growing_margins():
    # two orthonormal samples of nearly equal pull, then one at a third of it
    problem = Problem(np.eye(3), np.array([3.0, 2.97, 1.0]))
    process = limit(problem, directions=1.1 * np.eye(3) - 0.1, signs=[1, 1, 1])
    first, second, third = process.doubts_at(log_scale=-500.0)
    assert "the next candidate" in first
    assert "relaxation times only" in second
    assert third == "jump 2 is in doubt"
    assert process.doubts_at(log_scale=-1e6)[2] != ""  # the gap does not depend on the scale

    apart = Problem(np.eye(2), np.array([1.0, -1.0]), "logistic")
    alone = limit(apart, directions=[[1.0, -0.1], [-0.1, 1.0]], signs=[1, -1])
    assert alone.n_jumps == 1  # both at once
    wide = Problem(np.diag([2.0, 1.0]), np.array([1.0, -1.0]), "logistic")
    later = limit(wide, directions=[[1.0, -0.1], [-0.1, 1.0]], signs=[1, -1])
    assert "margins grow for ever" in later.doubts_at(scale=1e-30)[1]
    assert "Plateau 1 never rests" in later.status
