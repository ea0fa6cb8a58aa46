"""The steps of a fast phase: what their error is measured in."""

from dataclasses import replace

import numpy as np
import pytest

from reluflow import Problem, initialize, limit
from reluflow.prediction.crew import Crew
from reluflow.prediction.transit import _step, transit


def crew(scale=1.0):
    """Two active neurons and three tracers on six random samples."""
    rng = np.random.default_rng(3)
    problem = Problem(scale * rng.standard_normal((6, 3)), rng.standard_normal(6))
    V = rng.standard_normal((5, 3))
    V /= np.linalg.norm(V, axis=1)[:, None]
    s = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    U = np.sign(V @ problem.X.T)
    return Crew.of(problem, V, s, np.array([-1.0, -0.5, -9.0, -9.0, -9.0]), U, n_active=2)


@pytest.mark.parametrize("far", [1e6, 1e9, 1e13])
def test_the_error_of_a_step_does_not_feel_how_small_a_tracer_is(far):
    """The last digit of a log norm of 1e9 is above the tolerance: growths are compared."""
    near = crew()
    small = replace(near, log=near.log - far * np.array([0.0, 0.0, 1.0, 1.0, 1.0]))
    for h in (1e-3, 1e-5, 1e-7):
        assert _step(small, small.pull(), h)[1] == _step(near, near.pull(), h)[1]


def test_the_error_of_a_step_falls_to_nothing_but_not_below():
    """Order 3 in h until rounding, which does not count as an error of the growth or the pull."""
    state = crew()
    errors = [_step(state, state.pull(), h)[1] for h in (1e-1, 1e-2, 1e-3)]
    assert errors[1] < 3e-3 * errors[0]
    assert errors[2] < 3e-3 * errors[1]
    assert _step(state, state.pull(), 1e-9)[1] < 1e-15


def test_the_pull_is_seen_in_the_error():
    """Large neurons: outputs are wrong by far more than directions and growths."""
    state = crew()
    large = replace(state, log=state.log + np.array([5.0, 5.0, 0.0, 0.0, 0.0]))
    c, h = large.pull(), 1e-5
    halves = large.after(large.acting.after(c, 0.25 * h).pull(), 0.5 * h)
    middle = halves.acting.after(halves.pull(), 0.25 * h).pull()
    two = halves.after(middle, 0.5 * h)
    whole = large.after(large.acting.after(c, 0.5 * h).pull(), h)
    felt = np.abs(two.pull() - whole.pull()).max() / np.abs(large.problem.pull).max()
    assert felt > 100.0 * np.abs(two.V - whole.V).max()
    assert _step(large, c, h)[1] == pytest.approx(felt, rel=1e-3)


def test_tracers_that_are_the_same_are_followed_once(monkeypatch):
    """With every answer as if they were followed one by one, to the last bit."""
    alone = crew()
    rows = np.array([0, 1, 3, 2, 3, 4, 2, 3])  # two active ones, then tracers several times
    many = alone.rows(rows, 2)
    few, of = many.distinct()
    assert (alone.V[[0, 1, 3, 2, 4]] == few.V).all()
    assert of.tolist() == [0, 1, 0, 2, 1, 0]
    together = transit(many, 0.0)
    monkeypatch.setattr(Crew, "distinct", lambda self: (self, np.arange(6)))
    apart = transit(many, 0.0)
    for name in ("V", "s", "log", "U"):
        assert (getattr(together.crew, name) == getattr(apart.crew, name)).all()
    for name in ("V", "rates", "offsets", "dead", "lost", "U", "times"):
        assert (getattr(together.settled, name) == getattr(apart.settled, name)).all()
    assert (together.gains == apart.gains).all()
    assert together.end == apart.end


@pytest.mark.slow
def test_raw_columns_of_wine_are_followed_to_the_end():
    """Columns from 0.1 to 1700: the loss falls at every jump and all samples are fitted."""
    sklearn = pytest.importorskip("sklearn.datasets")
    X, kind = sklearn.load_wine(return_X_y=True)
    problem = Problem(X, np.where(kind == 0, 1.0, -1.0), loss="logistic", bias=1.0)
    process = limit(problem, initialize(problem, 20, scale=1e-10, rng=0))
    assert process.ending == "infinity"
    assert (np.diff(process.losses) < 0.0).all()
    assert process.losses[-1] < 1e-6
