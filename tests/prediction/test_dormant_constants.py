"""Beyond leading order: log|w_j| = L beta_j + K_j of dormant neurons, and jump times by hand."""

import math

import numpy as np
import pytest

from reluflow import Network, datasets, flow
from reluflow.prediction import algorithm1, limit

TAU1 = 4 / 5
TAU2 = TAU1 + 2 * (1 - TAU1 * math.sqrt(13) / 4)
TAU3 = TAU2 + 4 * (1 - TAU2 * math.sqrt(5) / 4)


@pytest.fixture(scope="module")
def golden():
    problem = datasets.golden()
    return problem, Network(problem.known["W0"], np.ones(3))


@pytest.mark.parametrize("predict", [limit, algorithm1])
def test_jump_times_by_hand(golden, predict):
    """Labels 4, 3, 2, 1 over n = 4: rates 5/4, sqrt(13)/4, sqrt(5)/4, then 2/4, sqrt(5)/4, 1/4."""
    assert predict(*golden).times == pytest.approx([TAU1, TAU2, TAU3], rel=1e-9)


def test_constants_of_dormant_neurons_against_a_flow(golden):
    problem, net = golden
    L = 200.0
    process = limit(problem, net)
    middles = L * np.array([0.5 * TAU1, 0.5 * (TAU1 + TAU2), 0.5 * (TAU2 + TAU3)])
    run = flow(problem, net.scaled(-L), t_end=middles[-1], save=middles, rtol=1e-10)
    for i, (t, state) in enumerate(zip(middles, run.networks, strict=True)):
        dormant = ~process.active[i]
        left = state.log_norms - L * process.exponents_at(t / L)
        assert left[dormant] == pytest.approx(process.constants[i][dormant], abs=1e-3)
