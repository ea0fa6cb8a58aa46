"""Late phase by clock="loss", and agreement with descent as lr -> 0."""

import numpy as np
import pytest

from reluflow import Network, Problem, axis_start, datasets, initialize
from reluflow.descent import descend
from reluflow.gradientflow import flow, loss_below, settled


def test_symmetric_separable_data_reach_max_margin():
    """[LLWA21]_ T4.3 at q_min = 2000."""
    problem = datasets.symmetric_separable()
    problem = problem.replace(X=problem.X / problem.known["radius"])
    known = problem.known["max_margin"] / problem.known["radius"]
    net = initialize(problem, 6, scale=1e-4, kind="gaussian", normalize="none", rng=0)
    run = flow(
        problem,
        net,
        clock="loss",
        stop=loss_below(log=-2010.0),
        observe=["normalized_margin", "margin"],
    )
    assert run["margin"][-1] > 2000
    assert 0.9997 < run["normalized_margin"][-1] / known <= 1 + 1e-9
    assert run.status.code == "loss"
    assert run["log_time"][-1] > 1900
    assert run.cost["steps"] < 3000


@pytest.mark.parametrize(
    "name",
    [
        "figure1_left",
        pytest.param("figure1_middle", marks=pytest.mark.slow),
        pytest.param("figure1_right", marks=pytest.mark.slow),
    ],
)
def test_figure_one_limits(name):
    """[LLWA21]_ Figure 2: straight boundaries, margin (1 + leak) gamma* / 4 or gamma+ / 2."""
    problem = getattr(datasets, name)()
    radius = problem.known["radius"]
    margin = problem.known.get(
        "limit_margin", problem.known["max_margin" if name == "figure1_left" else "limit_margin"]
    )
    problem = problem.replace(X=problem.X / radius)
    net = initialize(problem, 20, scale=1e-4, kind="he", rng=1)
    run = flow(
        problem,
        net,
        clock="loss",
        stop=loss_below(log=-2000.0),
        observe=["normalized_margin"],
        max_seconds=120,
    )
    assert run.status.code == "loss"
    assert abs(run["normalized_margin"][-1] / (margin / radius) - 1) < 3e-3


def test_xor_four_neurons():
    """[TK24]_ Figure 1: equal norms, gamma / gamma_mm above 0.99999."""
    problem = datasets.symmetric_xor()
    run = flow(
        problem,
        axis_start(problem),
        clock="loss",
        stop=loss_below(log=-200.0),
        observe=["normalized_margin", "norms"],
    )
    assert run["normalized_margin"][-1] / problem.known["max_margin"] > 0.99999
    assert np.ptp(run["norms"][-1]) < 1e-2 * run["norms"][-1].max()


def test_clocks_agree():
    problem = Problem(
        [[1.0, 0.4], [0.2, 1.0], [-1.0, 0.3]], [1.0, 1.0, -1.0], loss="logistic", leak=0.2
    )
    net = initialize(problem, 5, scale=0.1, rng=0)
    by_loss = flow(problem, net, clock="loss", stop=loss_below(1e-4), rtol=1e-10)
    t = by_loss.flow_times[-1]
    assert t == np.exp(by_loss["log_time"][-1])
    by_time = flow(problem, net, t_end=t, rtol=1e-10)
    assert np.array_equal(by_time.flow_times, by_time.times)
    assert abs(by_time.loss[-1] / by_loss.loss[-1] - 1) < 1e-7
    assert np.allclose(by_time.final.directions, by_loss.final.directions, atol=1e-7)


def test_settled_stops_a_run_to_infinity():
    problem = Problem([[1.0, 0.4], [-1.0, 0.3]], [1.0, -1.0], loss="exponential", leak=0.2)
    run = flow(problem, initialize(problem, 4, scale=0.1, rng=0), clock="loss", stop=settled(1e-3))
    assert run.status.code == "settled"


@pytest.mark.parametrize("name", ["three_points", "stewart", "skewed_xor", "toy6"])
def test_descend_tends_to_flow(name):
    """The difference to gradient descent halves with the step size."""
    problem = getattr(datasets, name)()
    net = initialize(problem, 10, scale=0.05, rng=3)
    t = 8.0 if problem.n < 100 else 2.0
    exact = flow(problem, net, t_end=t).final
    gaps = []
    for steps in (4000, 8000):
        other = descend(problem, net, lr=t / steps, steps=steps).final
        gaps.append(np.abs(problem.outputs(other) - problem.outputs(exact)).max())
    assert gaps[1] < 2e-3
    assert 1.7 < gaps[0] / gaps[1] < 2.3


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 1e-100])
def test_wide_network_to_stationarity(scale):
    """Three points, 200,000 neurons: the least-squares line ([BF24]_ Figure 2)."""
    problem = datasets.three_points(loss="square")
    run = flow(problem, initialize(problem, 200_000, scale=scale, rng=0), states=False)
    assert run.status.code == "stationary"
    assert np.abs(problem.outputs(run.final) - problem.known["limit_outputs"]).max() < 1e-8
    assert run.cost["steps"] < 400


def test_width_costs_little():
    problem = datasets.three_points()
    steps = [
        flow(problem, initialize(problem, m, scale=1e-100, rng=0), states=False).cost["steps"]
        for m in (100, 5000)
    ]
    assert steps[1] < 1.5 * steps[0]


def test_neuron_of_any_scale():
    problem = datasets.three_points()
    net = Network([[0.5, 1.0]], [1.0], log_scale=-5000.0)
    run = flow(problem, net)
    assert np.abs(problem.outputs(run.final) - problem.known["limit_outputs"]).max() < 1e-8
