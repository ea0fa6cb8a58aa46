"""Predicted jumps of ordinary tables against `flow` from 1e-30."""

import numpy as np
import pytest

from reluflow import Problem, flow, initialize, limit

SURE, CLOSE = 0.01, 0.05  # relative differences of times: where no doubt is named, and in general


def table(name):
    """Columns centred and scaled, two classes as -1 and +1, or scaled numbers."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if name == "diabetes":
        labels, loss = (y - y.mean()) / y.std(), "half_square"
    else:
        X, y = X[y < 2], y[y < 2]
        labels, loss = 2.0 * y - 1.0, "logistic"
    return Problem((X - X.mean(0)) / X.std(0), labels, loss, bias=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "jumps", "ending"),
    [
        ("iris", 1, "infinity"),
        ("wine", 2, "infinity"),
        ("diabetes", 2, "spurious"),
        ("breast_cancer", 2, "spurious"),
    ],
)
def test_jumps_of_tables_come_when_predicted(name, jumps, ending):
    """Half of each fall of the loss; the last jump of cancer, of one sample, is beyond the run."""
    problem = table(name)
    net = initialize(problem, 200, scale=1e-30, rng=0)
    process = limit(problem, net, seconds=1.0)
    assert process.ending == ending
    log_scale = net.log_norms.max()
    times = process.jump_times(log_scale=log_scale)[:jumps]
    doubts = process.doubts_at(log_scale=log_scale)
    end = 1.06 * times[-1] + 5.0
    near = [t * np.linspace(0.94, 1.06, 61) for t in times]
    run = flow(problem, net, t_end=end, save=np.unique(np.concatenate([*near, [end]])), rtol=1e-5)
    levels = 0.5 * (process.losses[:-1] + process.losses[1:])
    for predicted, doubt, level in zip(times, doubts, levels, strict=False):
        seen = np.interp(-level, -np.asarray(run.loss), np.asarray(run.times))
        assert seen == pytest.approx(predicted, rel=CLOSE if doubt else SURE), (name, doubt)
