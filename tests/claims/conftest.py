"""Runs that several tests corrupt."""

from dataclasses import replace

import numpy as np
import pytest

from reluflow import Network, Problem, flow, initialize
from reluflow.trajectory.states import States


@pytest.fixture(scope="session")
def flow_run():
    """A short flow on three points with one zero and several dead neurons."""
    X = np.array([[1.0, 0.2], [0.8, -0.5], [0.3, 1.0]])
    problem = Problem(X, np.array([1.0, 0.4, -0.3]))
    net = initialize(problem, 30, scale=0.3, rng=3)
    keep = np.arange(30) > 0
    net = Network(net.W * keep[:, None], net.a * keep)
    return flow(problem, net, t_end=4.0, save=np.linspace(0, 4, 41))


def with_states(run, change):
    """The run with ``change(W, a)`` applied to copies of its recorded weights."""
    W, a = run.networks.W.copy(), run.networks.a.copy()
    change(W, a)
    scale = run.networks.log_scale
    states = States(W, a, scale, run.networks.leak, run.networks.bias)
    loss = np.array([float(run.problem.value(run.problem.outputs(net))) for net in states])
    return replace(
        run, networks=states, final=states[-1], loss=loss, log_loss=np.log(np.maximum(loss, 1e-300))
    )


@pytest.fixture(name="with_states", scope="session")
def _with_states():
    return with_states
