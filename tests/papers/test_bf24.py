"""[BF24]_ Figure 2: the three-point run, small in every suite and at the paper's size in slow."""

import json

import numpy as np
import pytest

from reluflow import datasets, descend, initialize
from reluflow.papers import reproduce
from reluflow.papers.bf24.figures import three_points as bf24_three_points


def check_end(run):
    problem, final = run.problem, run.final
    beta = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0]
    f = final(problem.X)
    assert np.max(np.abs(f - problem.X @ beta)) < 1e-6
    assert np.mean((f - problem.y) ** 2) == pytest.approx(0.17504274, abs=5e-9)
    active = problem.X @ final.W.T > 0
    assert (active.all(axis=0) | ~active.any(axis=0)).all()


def test_quick_figure(tmp_path):
    (figure,) = reproduce("bf24", "f2", tmp_path, size="quick").figures
    assert all(path.stat().st_size > 10_000 for path in figure.files)
    assert not list(tmp_path.glob("*.part"))
    numbers = figure.numbers
    assert numbers["mse"] == pytest.approx(numbers["least_squares_mse"], abs=1e-9)
    assert numbers["active_on_some"] == 0
    # growth takes off near log(1/scale)/|D*| = 9.66 of flow time, lr 1e-3 and twice the slope
    assert 2000 < numbers["end_of_2a"] < 4831 < numbers["end_of_2"] < 9000
    assert figure.verdicts[0].status.name == "HOLDS"
    for end in ("end_of_2a", "end_of_2"):
        assert f"step {numbers[end]:,}" in figure.caption
    json.dumps(numbers)


@pytest.mark.slow
def test_full_size():
    settings = bf24_three_points.FIGURE2
    problem = datasets.three_points(loss="square")
    net = initialize(problem, settings["m"], scale=settings["scale"], rng=1)
    run = descend(problem, net, lr=settings["lr"], steps=settings["steps"])
    assert run.cost["backend"] == "lumped"
    check_end(run)


@pytest.mark.parametrize("kind", ["balanced", "dominated"])
def test_a3c_stops_at_its_constant_fit(kind):
    problem = datasets.a3c(loss="square")
    net = initialize(problem, 500, scale=1e-3, kind=kind, rng=0)
    run = descend(problem, net, lr=2e-3, steps=200_000)
    assert np.allclose(run.final(problem.X), problem.known["limit_outputs"], atol=1e-6)
    assert np.mean((run.final(problem.X) - problem.y) ** 2) == pytest.approx(2 / 9, abs=1e-7)


def test_unbalanced_start_on_a3c_interpolates():
    """[BF24]_ D2: without balance the same data are fitted."""
    problem = datasets.a3c(loss="square")
    net = initialize(problem, 1000, scale=1e-3, kind="gaussian", rng=0)
    run = descend(problem, net, lr=1e-2, steps=200_000)
    assert run.loss[-1] < 1e-8
