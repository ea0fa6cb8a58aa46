"""A stored run comes back with the whole of its problem."""

import numpy as np
import pytest

from reluflow import Problem, Trajectory, descend, initialize, losses

X = np.array([[1.0, 0.5], [-0.3, 1.0], [0.2, -0.7]])


@pytest.mark.parametrize(
    "options",
    [
        {"leak": 0.3},
        {"loss": losses.Logistic(factor=2.0), "reduction": "sum"},
        {"bias": 0.5, "leak": 0.1},
        {"loss": "square", "smoothing": 0.2},
    ],
)
def test_problem_and_outputs_come_back(options, tmp_path):
    problem = Problem(X, np.array([1.0, -1.0, 1.0]), **options)
    run = descend(problem, initialize(problem, 3, 0.5, rng=0), lr=0.01, steps=5, states=True)
    run.save(tmp_path / "run.nc")
    back = Trajectory.load(tmp_path / "run.nc")
    assert back.problem.spec == problem.spec
    assert np.array_equal(back.problem.X, problem.X)
    assert np.array_equal(back.problem.y, problem.y)
    assert np.array_equal(back.problem.outputs(back.final), problem.outputs(run.final))
    assert np.array_equal(back.loss, run.loss)
