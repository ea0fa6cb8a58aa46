"""A neuron that slides on a hyperplane while its output grows: logistic in closed form."""

import numpy as np
import pytest

from reluflow import Network, Problem, flow

# x_1 pulls up the hyperplane of x_2, which pushes back: D = (c_1, 0) with the slope c_1 / |c_2|
PROBLEM = Problem([[1.0, 0.5], [0.0, 1.0]], [1.0, -1.0])


@pytest.mark.parametrize("start", [0.3, 0.05])
def test_output_is_logistic(start):
    """a = w_1, so f = w_1^2 and f' = 2 f c_1 = f (1 - f), c_1 = (1 - f)/2."""
    times = np.linspace(0.0, 8.0, 9)
    run = flow(PROBLEM, Network([[start, 0.0]], [start]), t_end=8.0, save=times)
    exact = 1 / (1 + (1 / start**2 - 1) * np.exp(-times))
    for t, f, net in zip(times, exact, run.networks, strict=True):
        assert PROBLEM.outputs(net) == pytest.approx([f, 0.0], abs=1e-8), t
        W, a = net.weights()
        assert W[0] == pytest.approx([np.sqrt(f), 0.0], abs=1e-8)
        assert a[0] == pytest.approx(np.sqrt(f), abs=1e-8)
