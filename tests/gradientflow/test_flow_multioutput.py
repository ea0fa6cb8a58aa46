"""Gradient flow with several outputs: against descent, one output, and what it conserves."""

from dataclasses import replace

import numpy as np
import pytest

from reluflow import (
    Network,
    Problem,
    ReluflowError,
    certify,
    descend,
    every,
    flow,
    initialize,
    loss_below,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3))
LABELS, REAL = np.arange(9) % 3, RNG.normal(size=(9, 3))


def problem_of(loss):
    return Problem(X, LABELS if loss == "softmax" else REAL, loss=loss)


@pytest.mark.parametrize("loss", ["softmax", "half_square"])
def test_descent_with_small_steps_tends_to_the_flow(loss):
    problem = problem_of(loss)
    net = initialize(problem, 6, scale=0.5, rng=0)
    f = flow(problem, net, t_end=6.0).final(X)
    errors = [
        np.abs(descend(problem, net, lr=h, steps=round(6 / h)).final(X) - f).max()
        for h in (2e-3, 1e-3)
    ]
    assert errors[1] < 2e-3
    assert 1.6 < errors[0] / errors[1] < 2.4


@pytest.mark.parametrize("loss", ["softmax", "half_square"])
def test_flow_conserves_the_gap_between_the_layers_of_every_neuron(loss):
    problem = problem_of(loss)
    net = initialize(problem, 6, scale=0.7, kind="gaussian", rng=1)
    run = flow(problem, net, t_end=10.0, save=every(2.0), observe=["invariant"])
    assert np.abs(run["invariant"] - run["invariant"][0]).max() < 1e-7
    assert len(run.events["kind"]) > 0


# from 3.28 on a neuron slides, which steps that locate no kinks do not follow at such a tolerance
@pytest.mark.parametrize(
    ("options", "end"), [({"kinks": False, "rtol": 1e-8}, 3.0), ({"rtol": 1e-12}, 9.0)]
)
def test_beside_a_silent_output_flow_is_that_of_one(options, end):
    number, matrix = Problem(X, REAL[:, 0]), Problem(X, REAL * [1.0, 0.0, 0.0])
    net = initialize(number, 6, scale=0.3, rng=3)
    wide = Network(net.W, np.pad(net.a[:, None], ((0, 0), (0, 2))))
    one, other = flow(number, net, t_end=end, **options), flow(matrix, wide, t_end=end, **options)
    assert one.status.ok
    assert other.status.ok
    assert (other.final.a[:, 1:] == 0.0).all()
    assert np.abs(one.final(X) - other.final(X)[:, 0]).max() < 1e3 * options["rtol"]
    if "kinks" not in options:
        kinds = [np.bincount(run.events["kind"], minlength=4)[1:4].tolist() for run in (one, other)]
        assert kinds[0][:2] == kinds[1][:2]


def test_the_clock_of_the_loss_reaches_margins_beyond_floats():
    problem = Problem(np.vstack([np.eye(3), -np.eye(3)]), [0, 1, 2, 1, 2, 0], loss="softmax")
    net = initialize(problem, 12, scale=0.5, rng=0)
    run = flow(problem, net, clock="loss", stop=loss_below(log=-900.0), max_steps=20_000)
    assert run.log_loss[-1] == pytest.approx(-900.0, abs=1e-6)
    assert run.status.code == "loss"
    early = flow(problem, net, t_end=5.0)
    both = flow(problem, net, clock="loss", stop=loss_below(float(early.loss[-1])))
    assert both["log_time"][-1] == pytest.approx(np.log(5.0), abs=1e-5)


def test_a_flow_goes_on_bit_for_bit_after_a_checkpoint(tmp_path):
    problem = problem_of("softmax")
    net = initialize(problem, 5, scale=0.5, rng=0)
    whole = flow(problem, net, t_end=8.0)
    path = tmp_path / "flow.npz"
    part = flow(
        problem, net, t_end=8.0, checkpoint=path, checkpoint_seconds=0.0, max_steps=1_000_000
    )
    assert np.array_equal(whole.final.W, part.final.W)


def test_the_clock_of_the_loss_is_for_losses_without_a_minimum():
    problem = problem_of("half_square")
    with pytest.raises(ReluflowError, match="vanish at infinity"):
        flow(problem, initialize(problem, 2), clock="loss")


@pytest.mark.parametrize("loss", ["softmax", "half_square"])
def test_the_conservation_law_is_certified_and_its_breach_noticed(loss):
    problem = problem_of(loss)
    net = initialize(problem, 6, scale=0.7, kind="gaussian", rng=1)
    run = flow(problem, net, t_end=10.0, save=every(2.0))
    found = certify(problem, run)
    assert {v.id for v in found} == {"BF24-L1", "MMV24-B1", "LLWA21-LB.16"}
    assert {v.status.name for v in found} == {"HOLDS"}
    networks = list(run.networks)
    networks[-1] = Network(networks[-1].W * 1.01, networks[-1].a, networks[-1].log_scale)
    bad = certify(problem, replace(run, networks=tuple(networks)))
    assert {v.status.name for v in bad} == {"FAILS"}
