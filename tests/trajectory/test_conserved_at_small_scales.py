"""a^2 - |w|^2 and the normalised margin of neurons that keep their size in log_scale."""

import numpy as np
import pytest

from reluflow import Network, Problem
from reluflow.trajectory.observables import OBSERVABLES

PROBLEM = Problem(np.array([[1.0, 0.5], [-0.3, 1.0]]), np.array([1.0, 1.0]))
W, A = np.array([[1.0, 2.0], [0.5, 1.0]]), np.array([3.0, 0.5])
LOGS = np.array([-2.0, -3.0])


@pytest.mark.parametrize("name", ["invariant", "normalized_margin", "norm2", "outer", "norms"])
def test_log_scale_is_a_factor_of_both_weights(name):
    factor = np.exp(LOGS)
    plain = Network(factor[:, None] * W, factor * A)
    found = OBSERVABLES[name](PROBLEM, Network(W, A, LOGS))
    assert np.allclose(found, OBSERVABLES[name](PROBLEM, plain), rtol=1e-13, atol=0.0)


def test_conserved_quantity_by_hand():
    found = OBSERVABLES["invariant"](PROBLEM, Network(W, A, LOGS))
    assert found == pytest.approx([4.0 * np.exp(-4.0), -1.0 * np.exp(-6.0)], rel=1e-14)
