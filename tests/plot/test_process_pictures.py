"""Pictures of the limit process: what is on the axes, and that they render."""

import io
import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from reluflow import Network, Problem, ReluflowError, datasets, flow, initialize
from reluflow.plot.process import bundles, exponents, jumps, plot_saddles
from reluflow.prediction import algorithm1

L = 40 * math.log(10)


def png(figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=60)
    return buffer.getvalue()


@pytest.fixture(name="golden", scope="module")
def _golden():
    problem = datasets.golden()
    start = Network(problem.known["W0"], problem.known["signs"], log_scale=-L)
    times = np.linspace(0, 2.6 * L, 200)
    run = flow(problem, start, t_end=times[-1], save=times, observe=["log_norms"])
    return algorithm1(problem, start), run


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_staircase_alone_and_with_a_run(golden):
    process, run = golden
    ax = jumps(process)
    (stairs,) = ax.patches
    values, edges, _ = stairs.get_data()
    assert np.allclose(values, process.losses)
    assert np.allclose(edges[1:-1], process.times)
    both = jumps(process, run=run)
    assert labels(both) == [
        "simulated, scale 1e-40",
        "predicted, scale to 0",
        "predicted, scale 1e-40",
    ]
    curve = next(line for line in both.lines if len(line.get_xdata()) == len(run))
    assert np.allclose(curve.get_xdata(), run.times / L)
    refined = both.patches[1].get_data().edges[1:-1]
    assert np.allclose(refined, process.jump_times(log_scale=-L) / L)
    assert png(both.figure).startswith(b"\x89PNG")
    assert len(jumps(process, scale=1e-40).patches) == 2


def test_exponents_show_prediction_and_run(golden):
    process, run = golden
    ax = exponents(process, run)
    lines = [line for line in ax.lines if len(line.get_xdata()) == 5]
    assert len(lines) == 3
    assert np.allclose(lines[1].get_ydata()[:4], process.exponents[:, 1], atol=1e-12)
    dots = [line for line in ax.lines if line.get_marker() == "." and len(line.get_xdata()) > 9]
    assert len(dots) == 3
    for j, line in enumerate(dots):
        far = np.min(np.abs(line.get_xdata()[:, None] - process.times), axis=1) > 0.05
        predicted = process.exponents_at(line.get_xdata())[:, j]
        assert np.abs(line.get_ydata() - predicted)[far].max() < 3 / L
    png(ax.figure)


def test_many_neurons_are_thinned_and_said_so():
    rng = np.random.default_rng(0)
    process = algorithm1(rng.standard_normal(12), mask=rng.random((12, 900)) < 0.5, signs=1)
    assert "of 900 neurons drawn" in exponents(process).get_title()


def test_scale_must_be_known():
    problem = datasets.golden()
    start = Network(problem.known["W0"], np.ones(3), log_scale=-L)
    process = algorithm1(problem, start)
    blind = flow(problem, start, t_end=1.0, observe=["outputs"], states=False)
    with pytest.raises(ReluflowError, match="scale of the run's start is unknown"):
        jumps(process, run=blind)
    jumps(process, run=blind, log_scale=-L)
    with pytest.raises(ReluflowError, match="recorded no sizes"):
        exponents(process, blind, log_scale=-L)


def test_saddles_in_the_plane():
    problem = Problem(np.eye(2), [2.0, -1.0])
    process = algorithm1(problem, initialize(problem, 30, 1.0, "sphere", 0))
    figure = plot_saddles(process)
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 3
    arrows = [len(ax.texts) for ax in figure.axes]
    assert arrows == [0, 1, 2]
    (w, sign), (v, other) = bundles(process, 2)
    assert (sign, other) == (1, -1)
    assert np.allclose(w, [math.sqrt(2), 0])
    assert np.allclose(v, [0, 1])
    assert png(figure).startswith(b"\x89PNG")


def test_saddles_in_more_dimensions_and_many_panels():
    process = algorithm1(np.arange(1.0, 21.0), mask=np.eye(20), signs=1)
    figure = plot_saddles(process, most=5)
    assert len(figure.axes) == 5
    assert "5 of 21 saddles" in figure.get_suptitle()
    assert "after jump 20" in figure.axes[-1].get_title()
    png(figure)
    with pytest.raises(ReluflowError, match="at least 2"):
        plot_saddles(process, most=1)


def test_no_jumps_can_be_drawn():
    process = algorithm1([1.0], mask=[[1]], signs=-1)
    png(jumps(process).figure)
    png(exponents(process).figure)
    png(plot_saddles(process))
