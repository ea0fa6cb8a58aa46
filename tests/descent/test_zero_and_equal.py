"""Lumped, dense and a plain NumPy loop agree where neurons or samples are zero, equal or tiny.

A neuron with w = 0 lies on every hyperplane and in no open cone: its slopes are those of the
activation at 0.
"""

import numpy as np
import pytest

from reluflow import Network, Problem, descend, initialize

STEPS, LR = 200, 0.02
TINY = (1e-12, 1e-120, 1e-300)


def random_problem(rng):
    """1 to 4 features; some samples are 0, repeated, opposite or multiples of others."""
    n, d = int(rng.integers(2, 13)), int(rng.integers(1, 5))
    loss = str(rng.choice(["square", "half_square", "logistic", "exponential"]))
    X, y = rng.standard_normal((n, d)), rng.choice([-1.0, 1.0], n)
    for way in rng.permutation(5)[: rng.integers(0, 4)]:
        i, k = rng.integers(n, size=2)
        X[i] = (0.0 * X[i], X[k], -X[k], 2.5 * X[k], X[i])[way]
        y[i] = y[k] if rng.random() < 0.5 else y[i]
    return Problem(X, y, loss=loss, leak=float(rng.choice([0.0, 0.0, 0.2])))


def random_start(rng, problem):
    """Up to 24 neurons; some have w = 0, a = 0 or both, are copies, or far smaller than others."""
    m, d = int(rng.integers(2, 25)), problem.d
    W, a = 0.4 * rng.standard_normal((m, d)), 0.4 * rng.standard_normal(m)
    for j in rng.permutation(m)[: rng.integers(1, 6)]:
        way, k, size = rng.integers(6), rng.integers(m), rng.choice(TINY)
        if way == 0:
            W[j] = 0.0
        elif way == 1:
            W[j], a[j] = W[k], a[k]
        elif way == 2:
            W[j], a[j] = size * W[j], size * a[j]
        elif way == 3:
            W[j] = size * W[j]
        elif way == 4:
            a[j] = 0.0
        else:
            W[j], a[j] = 0.0, 0.0
    return Network(W, a)


def worst_gap(found, W, a):
    """Largest difference of a neuron, in units of that neuron; of what is 0, in itself."""
    gap = np.hypot(np.linalg.norm(found.W - W, axis=1), found.a - a)
    size = np.hypot(np.linalg.norm(W, axis=1), a)
    return np.max(gap / np.where(size > 0, size, 1.0))


def gaps(seed, plain_descent):
    """Worst gaps of the lumped and the dense kernels to the loop."""
    rng = np.random.default_rng([71, seed])
    problem = random_problem(rng)
    net = random_start(rng, problem)
    W, a = plain_descent(problem, net, np.full(STEPS, LR))
    found = []
    for backend in ("lumped", "dense"):
        final = descend(problem, net, lr=LR, steps=STEPS, backend=backend).final
        found.append(worst_gap(Network(*final.weights()), W, a))
    return found


@pytest.mark.parametrize("part", range(4))
def test_some_random_problems(part, plain_descent):
    for seed in range(10 * part, 10 * part + 10):
        assert max(gaps(seed, plain_descent)) < 1e-10, seed


@pytest.mark.slow
def test_many_random_problems(plain_descent):
    for seed in range(300):
        assert max(gaps(seed, plain_descent)) < 1e-10, seed


@pytest.mark.parametrize("leak", [0.0, 0.3])
@pytest.mark.parametrize("row", range(5))
def test_a_zero_neuron_does_not_take_an_arc_of_the_circle(row, leak, plain_descent):
    """Samples on both sides of the angle 0, that of atan2(0, 0), where other neurons live."""
    angle = np.array([1.2, 1.9, -1.4, -2.2])
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    problem = Problem(X, [1.0, -0.5, 0.7, -1.0], leak=leak)
    W = 0.3 * np.array([[1.0, 0.01], [1.0, -0.02], [0.9, 0.05], [-1.0, 0.2], [0.1, 1.0]])
    W[row] = 0.0
    net = Network(W, 0.3 * np.array([1.0, -1.0, 0.5, 1.0, -0.7]))
    exact, outer = plain_descent(problem, net, np.full(STEPS, LR))
    for backend in ("lumped", "dense"):
        final = descend(problem, net, lr=LR, steps=STEPS, backend=backend).final
        assert worst_gap(final, exact, outer) < 1e-12


def test_a_zero_neuron_among_many(plain_descent):
    """The default backend, wide enough to lump."""
    rng = np.random.default_rng(0)
    problem = Problem(rng.standard_normal((10, 2)), rng.standard_normal(10))
    net = initialize(problem, 3000, scale=0.02, rng=1)
    W = net.W.copy()
    W[1234] = 0.0
    net = Network(W, net.a)
    exact, outer = plain_descent(problem, net, np.full(100, LR))
    run = descend(problem, net, lr=LR, steps=100)
    assert run.cost["backend"] == "lumped"
    assert worst_gap(run.final, exact, outer) < 1e-10
