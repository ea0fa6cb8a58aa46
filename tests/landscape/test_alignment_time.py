"""The end of early alignment, tau = -eps log(scale) / D_max, where D_max has a closed form."""

import numpy as np
import pytest

from reluflow import Problem, datasets
from reluflow.landscape import constants


def test_one_sample():
    """One active cone, D = c x with c = y: D_max = |y||x|."""
    known = constants(Problem(np.array([[3.0, 4.0]]), np.array([2.0])))
    assert known.alignment_time(-8.0, 0.25) == pytest.approx(0.25 * 8.0 / 10.0, rel=1e-12)
    assert known.alignment_time(-800.0, 0.1) == pytest.approx(0.1 * 800.0 / 10.0, rel=1e-12)


def test_orthonormal_samples():
    """All samples active is the largest force: D_max = |y|/n."""
    y = np.array([1.0, -2.0, 2.0])
    known = constants(Problem(np.eye(3), y))
    assert known.D_max == pytest.approx(1.0, rel=1e-12)
    assert known.alignment_time(-30.0, 0.2) == pytest.approx(6.0, rel=1e-12)


def test_three_points():
    """D* = sum of y_k x_k / n is the largest force there is."""
    problem = datasets.three_points()
    size = np.linalg.norm(problem.y @ problem.X) / 3
    tau = constants(problem).alignment_time(np.log(1e-3), 0.25)
    assert tau == pytest.approx(0.25 * np.log(1e3) / size, rel=1e-12)


def test_the_time_scales_with_the_loss():
    """Twice the loss halves the time."""
    times = [
        constants(datasets.three_points(loss=loss)).alignment_time(-10.0)
        for loss in ("half_square", "square")
    ]
    assert times[0] == pytest.approx(2 * times[1], rel=1e-12)
