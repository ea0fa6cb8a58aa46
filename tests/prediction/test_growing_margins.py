"""Margin losses where some samples leave for infinity and others do not."""

import numpy as np
import pytest

from reluflow import Problem, initialize, limit, stationarity
from reluflow.prediction.arrival import free_to_grow
from reluflow.prediction.crew import Crew


def one_neuron(X, y):
    """A positive neuron along (1, 1)."""
    problem = Problem(np.array(X, dtype=float), np.array(y, dtype=float), "logistic")
    V = np.array([[1.0, 1.0]]) / np.sqrt(2.0)
    return Crew.of(problem, V, np.ones(1), np.zeros(1), np.sign(V @ problem.X.T), n_active=1)


@pytest.mark.parametrize(
    ("X", "y", "free"),
    [
        # along (1, 0) the first margin grows; the other two, of one input, are in balance
        ([[1, 0], [0, 1], [0, 1]], [1, 1, -1], [True, False, False]),
        # the other two, on the wrong side, hold both features: nothing can grow alone
        ([[1, 0], [0, 1], [1, 1]], [1, -1, -1], [False, False, False]),
        # along (0, 1), the only way that spares the second, the neuron would come to read the third
        ([[0, 1], [1, 0], [-3, 1]], [1, -1, -1], [False, False, False]),
        ([[0, 1], [1, 0], [-3, -1]], [1, -1, -1], [True, False, False]),
    ],
)
def test_which_margins_can_grow_alone(X, y, free):
    wide = np.array([True] + [False] * (len(y) - 1))
    assert free_to_grow(one_neuron(X, y), wide).tolist() == free


def test_sliding_neurons_stay_on_their_hyperplane():
    crew = one_neuron([[1, 0], [0, 1], [0, 1]], [1, 1, -1])
    wide = np.array([True, False, False])
    crew.U[0, 0] = 0
    assert not free_to_grow(crew, wide).any()


def test_noisy_labels_are_followed_past_margins_that_grow_for_ever():
    """Two large neurons of opposite sign read samples at infinity and samples in balance alike."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 2)), np.sign(rng.normal(size=10))
    problem = Problem(X, y, loss="logistic", bias=1.0)
    process = limit(problem, initialize(problem, 200, scale=1e-6, rng=0), seconds=3.0)
    assert process.ending == "spurious"
    assert "taken to grow for ever" in process.status
    assert (np.diff(process.losses) < 0.0).all()
    # the network of the last plateau is at rest up to what the growing margins still pull
    assert problem.loss_of(process.final) == pytest.approx(process.losses[-1], abs=1e-6)
    assert stationarity(problem, process.final).relative < 1e-5
