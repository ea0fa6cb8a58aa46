"""The slow phase of weight decay: against plain flow, its laws, and where it ends."""

import numpy as np
import pytest

from reluflow import Problem, ReluflowError, drift, flow, initialize, loss_below, min_norm, ridge
from reluflow.gradientflow.drift import _Run
from reluflow.network import Network


def fitted(seed, m=10, kind="gaussian"):
    """A random problem and a network that a flow without decay has fitted to it."""
    rng = np.random.default_rng(seed)
    problem = Problem(rng.normal(size=(4, 3)), rng.normal(size=4))
    net = initialize(problem, m, scale=0.5, kind=kind, rng=seed)
    return problem, flow(problem, net, stop=loss_below(1e-8), t_end=3000.0).final


@pytest.mark.parametrize(
    ("seed", "decay"),
    [(1, 1e-2), *(pytest.param(s, 1e-3, marks=pytest.mark.slow) for s in range(6))],
)
def test_against_plain_flow(seed, decay):
    problem, net = fitted(seed)
    clock = np.linspace(0.0, 4.0, 9)
    fast = drift(problem, net, decay, span=4.0, save=clock)
    how = {"observe": "norm2", "weight_decay": decay}
    plain = flow(problem, net, t_end=4.0 / decay, save=clock / decay, **how)
    assert np.allclose(fast.norms2, plain.observables["norm2"], rtol=1e-5)
    assert np.allclose(fast.losses[1:], plain.loss[1:], rtol=1e-3)
    assert fast.kinks > 0
    if decay <= 1e-3:
        assert 20 * fast.gradients < plain.cost["evaluations"]


def test_cost_hardly_grows_as_decay_falls():
    problem, net = fitted(1)  # explicit steps would need a thousand times as many
    cost = [drift(problem, net, decay, span=2.0).gradients for decay in (1e-3, 1e-6)]
    assert cost[1] < 10 * cost[0]


def test_it_follows_the_set_of_fits_and_the_balance_law():
    problem, net = fitted(2)
    run = drift(problem, net, 1e-5, span=3.0, save=[0.0, 1.0, 2.0, 3.0])
    assert run.losses[1:].max() < 1e-6
    assert (np.diff(run.norms2) < 0).all()
    gaps = np.array([np.sum(n.W**2, axis=1) - n.a**2 for n in run.networks])
    law = np.exp(-2.0 * run.clock)[:, None] * gaps[0]
    assert np.abs(gaps - law).max() < 1e-4 * np.abs(gaps[0]).max()


def test_where_it_ends():
    # two unbalanced neurons along one sample: the end is the balanced one of least norm
    problem = Problem(np.array([[1.0, 0.0]]), np.array([2.0]))
    net = Network(np.array([[2.0, 0.5], [0.0, 0.0]]), np.array([1.0, 0.0]))
    run = drift(problem, net, 1e-4, span=20.0)
    assert run.at_rest
    assert run.norms2[-1] == pytest.approx(min_norm(problem).norm2, rel=1e-3)
    excess, words = run.against_best(ridge(problem, 1e-4))
    assert excess < 1e-6
    assert "best penalised network" in words
    one_sided = Network(np.array([[1.0, 0.0]]), np.array([1.0]))
    both = Problem(np.array([[1.0], [-1.0]]), np.array([1.0, 1.0]))
    stuck = drift(both, Network(one_sided.W[:, :1], one_sided.a), 1e-3, span=20.0)
    excess, words = stuck.against_best(ridge(both, 1e-3))
    assert excess > 0.1
    assert "above the least of any width" in words


def test_the_jacobian_is_the_derivative():
    problem, net = fitted(3)
    run = _Run(problem, net, 1e-2, 1e-6)
    run.U[0, 1], run.U[2, 0] = 0, 0  # as if two neurons slid
    run._set_pieces()
    for j in (0, 2):
        Z = run.z.reshape(run.shape)
        on = run.faces[j]
        Z[j, :-1] -= problem.X[on].T @ (run.inverses[j] @ Z[j, :-1])
    J = run.jacobian(0.0, run.z)
    rng = np.random.default_rng(0)
    for _ in range(5):
        step = rng.normal(size=run.z.size)
        for j, on in run.faces.items():  # along the faces
            S = step.reshape(run.shape)
            S[j, :-1] -= problem.X[on].T @ (run.inverses[j] @ S[j, :-1])
        h = 1e-6
        change = run.velocity(0.0, run.z + h * step) - run.velocity(0.0, run.z - h * step)
        assert np.allclose(J @ step, change / (2 * h), rtol=1e-5, atol=1e-4)


def test_refusals():
    problem, net = fitted(1)
    with pytest.raises(ReluflowError, match="drift needs weight_decay > 0"):
        drift(problem, net, 0.0)
    with pytest.raises(ReluflowError, match="span must be positive"):
        drift(problem, net, 0.1, span=-1.0)
    with pytest.raises(ReluflowError, match="save must lie between 0 and span"):
        drift(problem, net, 0.1, span=1.0, save=[2.0])
    wide = initialize(problem, 1001, rng=0)
    with pytest.raises(ReluflowError, match="drift takes up to 4000 weights, got 4004"):
        drift(problem, wide, 0.1)
