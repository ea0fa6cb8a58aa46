"""ridge against the program of all cones, its conditions, closed forms, and its two limits."""

import numpy as np
import pytest
from enumeration import best_penalised

from reluflow import Problem, ReluflowError, datasets, min_norm, ridge, ridge_path
from reluflow.landscape.alignment import G
from reluflow.optimum.ridge import largest_decay

LOSSES = ("half_square", "logistic", "exponential", "square")


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 6)), int(rng.integers(1, 4))
    loss = LOSSES[seed % 4]
    y = rng.normal(size=n) if "square" in loss else rng.choice([-1.0, 1.0], n)
    return Problem(rng.normal(size=(n, d)), y, loss=loss, leak=(0.0, 0.2)[seed % 2])


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(s, marks=pytest.mark.slow) for s in range(4, 30))]
)
def test_against_all_cones(seed):
    problem = random_problem(seed)
    share = (0.5, 0.05, 1e-3)[seed % 3]
    found = ridge(problem, share * largest_decay(problem))
    best = best_penalised(problem, found.weight_decay)
    assert found.value == pytest.approx(best, rel=1e-7)
    assert found.exact
    # equality on its directions, and nowhere more
    W, a = found.network.weights()
    c = problem.pull_at(problem.outputs(found.network))
    gains = np.sign(a) * G(problem, W, c) / np.linalg.norm(W, axis=1)
    assert np.allclose(gains, found.weight_decay, rtol=1e-8, atol=0)
    assert found.largest_gain <= found.weight_decay * (1 + 1e-8)
    assert found.value == pytest.approx(
        found.loss + 0.5 * found.weight_decay * found.norm2, rel=1e-14
    )
    assert found.loss == pytest.approx(problem.loss_of(found.network), rel=1e-12)
    assert found.norm2 == pytest.approx(float(np.sum(W**2) + np.sum(a**2)), rel=1e-12)


def test_the_bound_holds_for_other_networks():
    problem = random_problem(8)
    found = ridge(problem, 0.1 * largest_decay(problem))
    rng = np.random.default_rng(0)
    for _ in range(50):
        W, a = rng.normal(size=(3, problem.d)), 0.3 * rng.normal(size=3)
        f = a @ np.maximum(W @ problem.X.T, problem.leak * (W @ problem.X.T))
        value = float(problem.value(f)) + 0.5 * found.weight_decay * float(
            np.sum(W**2) + np.sum(a**2)
        )
        assert value >= found.lower_bound


def test_orthonormal_samples_of_one_sign():
    # one neuron in the positive cone: f = r y with |y| (1 - r) / n = lambda
    y = np.array([1.0, 2.0, 2.0])
    found = ridge(Problem(np.eye(3), y), 0.25)
    r = 1 - 0.25 * 3 / 3.0  # |y| = 3
    assert found.network.m == 1
    assert np.allclose(found.network(np.eye(3)), r * y, atol=1e-9)
    assert found.norm2 == pytest.approx(2 * r * 3.0)


def test_silence_above_the_largest_gain():
    problem = datasets.load("three-points")
    top = largest_decay(problem)
    silent = ridge(problem, 1.0001 * top)
    assert silent.norm2 == 0.0
    assert silent.value == problem.silent_loss
    assert silent.exact
    assert ridge(problem, 0.999 * top).norm2 > 0.0


XOR = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])


@pytest.mark.parametrize("name", ["three points", "xor"])
def test_the_path_ends_at_the_least_norm(name):
    three = datasets.load("three-points")
    problem = Problem(XOR, XOR[:, 0] * XOR[:, 1]) if name == "xor" else Problem(three.X, three.y)
    path = ridge_path(problem, points=7, tol=1e-2)
    assert path.exact
    assert (np.diff(path.losses) <= 1e-12).all()
    assert (np.diff(path.norms2) >= -1e-9).all()
    assert path.norms2[-1] == pytest.approx(min_norm(problem).norm2, rel=1e-2)
    assert path.weight_decays[-1] == pytest.approx(1e-6 * path.largest)
    assert path.kinks[0].weight_decay == path.largest
    assert "appear" in path.kinks[0].words


def test_kinks_are_where_neurons_change():
    # f = (w y_1, w y_2) of two signs: the neuron of the smaller label appears at |y_2| / n
    problem = Problem(np.eye(2), np.array([3.0, -1.0]))
    path = ridge_path(problem, smallest=0.1, points=4, tol=1e-6)
    assert path.largest == pytest.approx(1.5)
    assert [kink.words for kink in path.kinks] == ["one neuron appears"] * 2
    assert path.kinks[1].weight_decay == pytest.approx(0.5, rel=1e-5)


def test_one_sign_only():
    problem = Problem(np.eye(2), np.array([3.0, -1.0]))
    found = ridge(problem, 0.25, sign=1)
    assert (found.network.a > 0).all()
    assert found.value > ridge(problem, 0.25).value


def test_refusals():
    problem = random_problem(0)
    with pytest.raises(ReluflowError, match="ridge needs weight_decay > 0"):
        ridge(problem, 0.0)
    with pytest.raises(ReluflowError, match="smallest must lie strictly between 0 and 1"):
        ridge_path(problem, smallest=2.0)
    with pytest.raises(ReluflowError, match="points must be at least 2"):
        ridge_path(problem, points=1)
