"""Certificates of the penalised loss: proved for every loss, and no forgery of them is."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from reluflow import Network, Problem, ReluflowError, datasets, flow, initialize
from reluflow.optimum import certificates
from reluflow.optimum.checker import check_document
from reluflow.optimum.ridge import largest_decay

LOSSES = ("half_square", "square", "logistic", "exponential")


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    loss = LOSSES[seed % 4]
    y = rng.normal(size=n) if "square" in loss else rng.choice([-1.0, 1.0], size=n)
    reduction = ("mean", "sum")[seed // 4 % 2]
    return Problem(
        rng.normal(size=(n, d)), y, loss=loss, leak=(0.0, 0.3)[seed // 2 % 2], reduction=reduction
    )


def gap(certificate):
    return certificate.claim["value"] - certificate.claim["lower_bound"]


def penalised_loss(problem, net, decay):
    return problem.loss_of(net) + 0.5 * decay * net.norm2


@pytest.mark.parametrize("seed", range(8))
def test_random_optima_are_proved(seed):
    problem = random_problem(seed)
    top = largest_decay(problem)
    for share in (1.1, 0.5, 1e-3):
        (made,) = certificates(problem, None, ["ridge"], weight_decay=share * top)
        assert made.grade == "PROVED"
        assert gap(made) <= 1e-9 * made.claim["value"]
    net = Network(np.ones((2, problem.d)), np.array([1.0, -0.5]), leak=problem.leak)
    decay = 0.3 * top
    ours, better = certificates(problem, net, weight_decay=decay)
    assert ours.grade == better.grade == "PROVED"
    value = penalised_loss(problem, net, decay)
    assert ours.claim["value"] == pytest.approx(value, rel=1e-9)
    # with that neuron, balanced, the penalised loss is lower by what is said
    W, a = net.weights()
    v, rho = better.arrays["vector"], better.claim["size"]
    more = Network(
        np.vstack([W, np.sqrt(rho) * v]),
        np.append(a, better.claim["sign"] * np.sqrt(rho)),
        leak=problem.leak,
    )
    fall = value - penalised_loss(problem, more, decay)
    assert better.claim["gain"] == pytest.approx(fall, rel=1e-7)


def test_soft_thresholding():
    """(2 - f)^2/2 + f/2 is least at f = 3/2: 1/8 + 3/4."""
    (made,) = certificates(Problem([[1.0]], [2.0]), None, weight_decay=0.5)
    assert made.claim["value"] == pytest.approx(0.875, rel=1e-12)
    assert 0.0 <= gap(made) < 1e-11


def test_silence_is_proved_best_above_the_largest_decay():
    problem = datasets.three_points()
    decay = 1.01 * largest_decay(problem)
    (made,) = certificates(problem, None, weight_decay=decay)
    assert made.grade == "PROVED"
    assert not made.arrays["a"].any()
    assert made.claim["value"] == pytest.approx(problem.silent_loss, rel=1e-12)
    assert gap(made) <= 1e-11 * made.claim["value"]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(LOSSES),
    st.floats(0.05, 0.45),
    st.floats(-0.2, 2.0),
    st.floats(1e-13, 0.5),
)
def test_no_dual_proves_a_bound_above_the_least_value(loss, decay, dual, more):
    """One sample x = 1, y = 1: the least value is min_f l(f) + decay |f|, whatever c is tried."""
    problem = Problem([[1.0]], [1.0], loss=loss)
    (made,) = certificates(problem, None, weight_decay=decay)
    best = minimize_scalar(
        lambda f: float(problem.value(np.array([f]))) + decay * f,
        bounds=(0.0, 5.0),
        method="bounded",
        options={"xatol": 1e-12},
    )
    assert made.claim["value"] == pytest.approx(best.fun, rel=1e-9)
    false = copy.deepcopy(made.document())
    false["claim"]["lower_bound"] = best.fun * (1.0 + 1e-11 + more)
    for c in (dual, decay, made.arrays["dual"][0]):
        false["arrays"]["dual"]["data"] = [c]
        report = check_document(false)
        assert report.status == "REJECTED"
        assert not any("malformed" in check.remark for check in report.checks)


def test_an_end_of_training_is_proved_to_be_near_the_best():
    problem = datasets.three_points()
    net = initialize(problem, 12, scale=1e-3, rng=0)
    run = flow(problem, net, t_end=400.0, weight_decay=0.1)
    made = {c.kind: c for c in certificates(problem, run.final, weight_decay=0.1)}
    assert made["ridge"].grade == "PROVED"
    assert gap(made["ridge"]) < 1e-8 * made["ridge"].claim["value"]
    assert "ridge-not-best" not in made
    # and with half the decay it has not been trained to its end
    (less, better) = certificates(problem, run.final, weight_decay=0.05)
    assert (less.kind, better.kind) == ("ridge", "ridge-not-best")
    assert 0.0 < better.claim["gain"] < gap(less)


def test_they_need_a_weight_decay():
    problem = datasets.three_points()
    for kind in ("ridge", "ridge-not-best"):
        with pytest.raises(ReluflowError, match="is about weight decay: pass weight_decay > 0"):
            certificates(problem, Network([[1.0, 0.0]], [1.0]), [kind])
    with pytest.raises(ReluflowError, match="weight_decay must be finite and not negative"):
        certificates(problem, None, weight_decay=-1.0)
    with pytest.raises(ReluflowError, match="is about a network: pass net"):
        certificates(problem, None, ["ridge-not-best"], weight_decay=0.1)
