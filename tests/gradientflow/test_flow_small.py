"""Scales far below floats: what shrinks, what is absent, and forces whose square is no float."""

import numpy as np
import pytest

from reluflow import Network, Problem
from reluflow.gradientflow import flow

RTOL = 1e-8  # of flow, the relative error aimed at for each neuron


@pytest.mark.parametrize("log_scale", [-300.0, -3000.0, -30000.0])
def test_a_neuron_that_only_shrinks(log_scale):
    """(1, 1) shrinks by what (1, -1) grows: the product of their norms is kept."""
    problem = Problem([[1.0], [2.0]], [1.0, -1.0])
    net = Network([[1.0], [1.0], [-1.0]], [1.0, -1.0, 0.5], log_scale=np.full(3, log_scale))
    run = flow(problem, net, t_end=-10.0 * log_scale)
    first, second, dead = run.final.log_outer
    assert first + second == pytest.approx(2.0 * log_scale, abs=20 * RTOL)
    assert dead == pytest.approx(log_scale + np.log(0.5), rel=1e-14)
    # the others fit w = a with a = -sqrt(s): sum x (y + s x) = 0, s = 1/5
    assert run.final.a[1] * np.exp(run.final.log_scale[1]) == pytest.approx(-(0.2**0.5), rel=RTOL)


@pytest.mark.parametrize("log_scale", [-300.0, -3000.0, -30000.0])
def test_a_neuron_that_only_shrinks_along_a_face(log_scale):
    """Neuron 1 stays on the kink of sample 0 and shrinks as neuron 3 grows, one for one."""
    problem = Problem(np.eye(2), [1.0, -1.0])
    net = Network(
        [[1.0, 0.0], [0.0, 1.0], [0.0, 0.5]], [1.0, 1.0, -0.5], log_scale=np.full(3, log_scale)
    )
    run = flow(problem, net, t_end=-10.0 * log_scale)
    shrunk, grown = run.final.log_outer[1:]
    assert shrunk + grown == pytest.approx(2.0 * log_scale + np.log(0.5), abs=20 * RTOL)
    assert run.loss[-1] < 1e-20


@pytest.mark.parametrize("margin", [100.0, 400.0, 600.0])
def test_a_force_whose_square_is_no_float_still_moves(margin):
    """f = a w of one neuron with a = w under exp(-f): f' = 2 f e^-f, so f grows past its margin."""
    problem = Problem([[1.0]], [1.0], loss="exponential")
    size = np.sqrt(margin)
    end = 0.5 * np.exp(margin) / margin  # f grows by log 2, to first order in 1 / margin
    run = flow(problem, Network([[size]], [size]), t_end=end)
    f = float(problem.outputs(run.final)[0])
    assert f - margin == pytest.approx(np.log(2.0), rel=2.0 / margin)
