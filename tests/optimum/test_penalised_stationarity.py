"""Stationarity under weight decay: at optima, at spurious ends, and off them."""

import numpy as np
import pytest

from reluflow import Problem, ReluflowError, limit, ridge
from reluflow.network import Network
from reluflow.optimum import min_norm, penalised_stationarity


def random_problem(seed, loss="half_square"):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], 5) if loss != "half_square" else rng.normal(size=5)
    return Problem(rng.normal(size=(5, 3)), y, loss=loss)


@pytest.mark.parametrize("loss", ["half_square", "logistic"])
def test_the_best_network_is_a_global_minimum(loss):
    problem = random_problem(3, loss)
    best = ridge(problem, 0.05)
    found = penalised_stationarity(problem, best.network, 0.05)
    assert found.kind == "global minimum"
    assert found.relative < 1e-8
    assert found.gain == 0.0
    assert found.value == pytest.approx(best.value, rel=1e-12)
    assert best.lower_bound <= found.value
    assert found.lower_bound == pytest.approx(best.value, rel=1e-8)
    assert found.escape_bound / 0.05 == pytest.approx(1.0, rel=1e-8)
    assert str(found).startswith("global minimum: penalised loss")


@pytest.mark.parametrize("loss", ["half_square", "logistic"])
def test_what_one_more_neuron_gains(loss):
    problem = Problem(np.eye(2), np.array([1.0, 1.0]), loss=loss)
    one = limit(problem, directions=[[1.0, -1.0]], signs=[1], weight_decay=0.1)
    assert one.ending == "spurious"
    found = penalised_stationarity(problem, one.final, 0.1)
    assert found.kind == "stationary, not global"
    assert found.escape == pytest.approx(one.gain + 0.1)
    W, a = one.final.weights()
    root = np.sqrt(found.size)
    wider = Network(np.vstack([W, root * found.vector]), np.append(a, found.sign * root))
    value = problem.loss_of(wider) + 0.05 * (np.sum(wider.W**2) + np.sum(wider.a**2))
    assert found.gain > 0.0
    assert found.value - value == pytest.approx(found.gain, rel=1e-6)
    for other in (0.9 * found.size, 1.1 * found.size):  # the best size along this line
        net = Network(np.vstack([W, np.sqrt(other) * found.vector]), np.append(a, np.sqrt(other)))
        assert problem.loss_of(net) + 0.05 * (np.sum(net.W**2) + np.sum(net.a**2)) > value
    assert "one more neuron would lower the penalised loss by" in str(found)


def test_multipliers_tend_to_those_of_the_least_norm():
    problem = random_problem(3)
    best = ridge(problem, 1e-7)
    found = penalised_stationarity(problem, best.network, 1e-7, tol=1e-4)
    least = min_norm(problem)
    assert 2.0 * float(found.multipliers @ problem.y) == pytest.approx(least.norm2, rel=1e-4)


def test_off_a_critical_point():
    problem = random_problem(4)
    net = Network(np.eye(3), np.array([1.0, -0.5, 0.2]))
    found = penalised_stationarity(problem, net, 0.1)
    assert found.kind == "not stationary"
    h = 1e-6  # the residual is the norm of the gradient here, off all kinks
    W, a = net.weights()

    def value(W, a):
        near = Network(W, a)
        return problem.loss_of(near) + 0.05 * (np.sum(W**2) + np.sum(a**2))

    squares = 0.0
    for j in range(3):
        for i in range(3):
            step = np.zeros((3, 3))
            step[j, i] = h
            squares += ((value(W + step, a) - value(W - step, a)) / (2 * h)) ** 2
        step = h * np.eye(3)[j]
        squares += ((value(W, a + step) - value(W, a - step)) / (2 * h)) ** 2
    assert found.residual == pytest.approx(np.sqrt(squares), rel=1e-6)


def test_refusal():
    problem = random_problem(0)
    with pytest.raises(ReluflowError, match="needs weight_decay > 0: use stationarity"):
        penalised_stationarity(problem, Network(np.eye(3), np.ones(3)), 0.0)
