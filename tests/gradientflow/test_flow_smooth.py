"""Flow and descent with the smoothed activation of [TK24]_."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from reluflow import (
    Problem,
    ReluflowError,
    Trajectory,
    datasets,
    descend,
    flow,
    initialize,
    loss_below,
)
from reluflow.trajectory.observables import velocity


@pytest.fixture(scope="module")
def setting():
    problem = datasets.remaining_fixture().replace(smoothing=0.2)
    return problem, initialize(problem, 6, 0.5, kind="gaussian", rng=0)


def reference(problem, net, t):
    """An independent integrator of the plain weights."""
    smooth = problem.smoothed

    def slope(_, z):
        W, a = z[: net.W.size].reshape(net.W.shape), z[net.W.size :]
        c = problem.pull_at(smooth.value(W, problem.X) @ a)
        g = smooth.gradient(W, problem.X)
        return np.concatenate(
            [(a[:, None] * np.einsum("k,kji->ji", c, g)).ravel(), c @ smooth.value(W, problem.X)]
        )

    z = np.concatenate([net.W.ravel(), net.a])
    end = solve_ivp(slope, (0, t), z, rtol=1e-12, atol=1e-14, method="DOP853").y[:, -1]
    return end[: net.W.size].reshape(net.W.shape), end[net.W.size :]


@pytest.mark.parametrize(("rtol", "error"), [(1e-6, 1e-4), (1e-8, 1e-6), (1e-11, 1e-9)])
def test_flow_against_an_independent_integrator(setting, rtol, error):
    problem, net = setting
    W, a = flow(problem, net, t_end=20.0, rtol=rtol).final.weights()
    V, b = reference(problem, net, 20.0)
    assert np.abs(W - V).max() <= error
    assert np.abs(a - b).max() <= error


def test_velocity_is_minus_the_gradient(setting):
    problem, net = setting
    dW, da = velocity(problem, net)
    h = 1e-6
    for j, i in [(0, 0), (3, 2)]:
        W = np.array(net.W)
        W[j, i] += h
        up = problem.value(type(net)(W, net.a).evaluate(problem.X, 0.0, problem.smoothing))
        W[j, i] -= 2 * h
        down = problem.value(type(net)(W, net.a).evaluate(problem.X, 0.0, problem.smoothing))
        assert dW[j, i] == pytest.approx(-(up - down) / (2 * h), abs=1e-9)
    assert da.shape == net.a.shape


def test_descent_tends_to_the_flow(setting):
    problem, net = setting
    end = flow(problem, net, t_end=8.0).final.weights()[0]
    gaps = [
        np.abs(descend(problem, net, lr=lr, steps=round(8 / lr)).final.W - end).max()
        for lr in (0.02, 0.01)
    ]
    assert 1.8 < gaps[0] / gaps[1] < 2.2


def test_small_scales_and_the_plain_limit():
    """From 1e-30, and with a ball too small to matter, the flow is that of the ReLU."""
    problem = datasets.xor_orbit()
    net = initialize(problem, 8, log_scale=-69.0, rng=1)
    plain = flow(problem, net, t_end=720.0)
    near = flow(problem.replace(smoothing=1e-3), net, t_end=720.0)
    assert near.loss[-1] == pytest.approx(plain.loss[-1], rel=1e-2)
    assert np.allclose(near.final.log_norms, plain.final.log_norms, atol=1e-2)


def test_loss_clock_reaches_large_margins():
    problem = datasets.xor_orbit().replace(smoothing=0.03)
    net = initialize(problem, 16, 0.1, kind="sphere", rng=0)
    run = flow(problem, net, clock="loss", stop=loss_below(log=-100.0))
    assert run.log_loss[-1] == pytest.approx(-100.0, abs=1e-6)
    assert run.status.code == "loss"


def test_status_settings_and_files(setting, tmp_path):
    problem, net = setting
    run = flow(problem, net, t_end=1.0)
    assert "no kinks" in str(run.status)
    assert run.settings["rtol"] == 1e-8
    run.save(tmp_path / "run.nc")
    again = Trajectory.load(tmp_path / "run.nc")
    assert again.problem.smoothing == problem.smoothing
    assert np.allclose(again.final(problem.X), problem.outputs(run.final))
    assert run.networks[1].smoothing == problem.smoothing
    whole = descend(problem, net, lr=0.1, steps=40)
    assert whole.cost["kernel"] == "smoothed"
    batched = descend(problem, net, lr=0.1, steps=40, batch_size=2, rng=0)
    assert batched.loss[-1] < batched.loss[0]


def test_what_needs_kinks_is_refused(setting):
    problem, net = setting
    with pytest.raises(ReluflowError, match="kinks=True is for piecewise linear"):
        flow(problem, net, t_end=1.0, kinks=True)
    for how in ({"backend": "lumped"}, {"backend": "dense", "dtype": "float32"}):
        with pytest.raises(ReluflowError, match="piecewise linear"):
            descend(problem, net, lr=0.1, steps=1, **how)
    assert Problem(np.eye(2), [1.0, -1.0]).smoothed is None
