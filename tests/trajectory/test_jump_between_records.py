"""Jumps of the loss fall between records: they are dated by interpolation."""

from dataclasses import replace

import numpy as np
import pytest

from reluflow import Problem, flow, initialize
from reluflow.trajectory.phases import phases


def staircase(t):
    """Loss 3 until 10, falling linearly to 1 at 14, and 1 from then on."""
    return np.interp(t, [0.0, 10.0, 14.0, 30.0], [3.0, 3.0, 1.0, 1.0])


@pytest.mark.parametrize("step", [0.25, 0.8, 1.5])
def test_half_way_of_a_linear_fall(step):
    t = np.arange(0.0, 30.0 + step, step)
    problem = Problem(np.eye(2), np.ones(2))
    run = flow(problem, initialize(problem, 2, 0.5, rng=0), t_end=float(t[-1]), save=t)
    found = phases(replace(run, loss=staircase(run.times)))
    assert found.jumps == pytest.approx([12.0], abs=1e-9)
    assert found.plateaus[:, 2] == pytest.approx([3.0, 1.0])
