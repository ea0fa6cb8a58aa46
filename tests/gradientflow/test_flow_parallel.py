"""Samples on one hyperplane are one kink: x and -x, or multiples of each other."""

import numpy as np
import pytest

from reluflow import Network, Problem, early, flow
from reluflow.problem.losses import Logistic

ANTIPODAL = np.array([[0.05, 1.0], [0.05, -0.975], [-0.05, -1.0], [-0.05, 0.975]])


def linear(w, a, D, t):
    """The exact path of a small neuron where G(w) = <w, D> is linear."""
    e = np.linalg.norm(D)
    u = D / e
    s, ch, sh = w @ u, np.cosh(e * t), np.sinh(e * t)
    return w + u * (s * ch + a * sh - s), a * ch + s * sh


@pytest.mark.parametrize(("w", "a"), [((1.0, -0.2), 1.0), ((0.0, -0.2), 1.0), ((-1.0, -0.2), 2.0)])
@pytest.mark.parametrize("choice", ["stay", "leave"])
def test_symmetric_samples_are_crossed_as_if_there_were_no_kink(w, a, choice):
    y = np.array([1.0, 1.0, -1.0, -1.0])
    problem = Problem(ANTIPODAL, y, Logistic(), 0.5)
    D = 0.375 * (y @ ANTIPODAL) / 4
    w = np.array(w)
    net = Network(1e-6 * w[None], np.array([1e-6 * a]), leak=0.5)
    for t in (40.0, 160.0):
        end_w, end_a = linear(w, a, D, t)
        run = flow(problem, net, t_end=t, on_branch=choice)
        assert set(run.events["kind"].tolist()) <= {1}
        for final in (run.final, early(problem, net, t, on_branch=choice)):
            W, outer = final.weights()
            np.testing.assert_allclose(1e6 * W[0], end_w, rtol=1e-6)
            np.testing.assert_allclose(1e6 * outer[0], end_a, rtol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_a_pair_of_parallel_samples_moves_neurons_as_one_sample(seed):
    """x and 2x with pulls c and c' move w as x alone with the pull c + 2 c'."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3, 2))
    y = rng.standard_normal(3)
    double = np.vstack([X, 2.0 * X[:1]])
    labels = np.append(y, rng.standard_normal())
    both = Problem(double, labels, "half_square", 0.1, reduction="sum")
    pull = y.copy()
    pull[0] += 2.0 * labels[3]
    merged = Problem(X, pull, "half_square", 0.1, reduction="sum")
    net = Network(1e-9 * rng.standard_normal((6, 2)), 1e-9 * rng.standard_normal(6), leak=0.1)
    t = 4.0 / np.abs(pull).sum()
    for follow in (early, lambda p, n, s: flow(p, n, t_end=s).final):
        (W, a), (V, b) = (follow(p, net, t).weights() for p in (both, merged))
        np.testing.assert_allclose(W, V, rtol=1e-6, atol=1e-15)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-15)
