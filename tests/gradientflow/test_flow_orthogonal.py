"""Orthonormal data: [TLB26]_'s golden case at scales down to e^-1000, closed forms."""

import math

import numpy as np
import pytest

from reluflow import Network, Problem
from reluflow.gradientflow import flow, solver
from reluflow.gradientflow.landing import land
from reluflow.papers.tlb26.runs import course, draws

PROBLEM = Problem(np.eye(4), [4.0, 3.0, 2.0, 1.0])
ROWS = np.array([[1, 1, -1, -1], [-1, 1, 1, -1], [-1, -1, 1, 1.0]]) / 2
TAU = np.array([0.8, 1.3577795, 2.3216923])
OFFSET = np.array([0.77379, 0.9833, 1.1175])
LOGS = [np.log(1e10), 40 * np.log(10), 100 * np.log(10), 300 * np.log(10), 1000.0]


def start(log_scale):
    return Network(ROWS, np.ones(3), log_scale=-log_scale)


@pytest.mark.parametrize("L", LOGS)
def test_golden_case(L):
    guess = TAU * L + OFFSET
    times = np.sort(
        np.concatenate([g + np.linspace(-1, 1, 401) for g in guess] + [[2.33 * L + 60]])
    )
    run = flow(PROBLEM, start(L), t_end=times[-1], save=times, observe=["outputs", "norm2"])
    half = [
        np.interp(0.5, run["outputs"][:, k] / y, run.times)
        for k, y in ((0, 4.0), (2, 2.0), (3, 1.0))
    ]
    # beta_j = -1 + (4/5) S_j / 4 at jump 1, S_2 = sqrt(13), S_3 = sqrt(5); then S = 2, sqrt(5); 1
    second = 0.8 + 2 * (1 - 13**0.5 / 5)
    third = second + 4 * (1 - second * 5**0.5 / 4)
    assert np.allclose([0.8, second, third], TAU, atol=1e-7)
    assert np.allclose(half - np.array([0.8, second, third]) * L, OFFSET, atol=1e-3)
    assert abs(run["norm2"][-1] - 16) < max(10 * np.exp(-0.2409782 * L), 1e-8)
    assert run.loss[-1] < 1e-15
    assert not len(run.events["time"])


def test_steps_do_not_grow_with_scale():
    steps = [
        flow(PROBLEM, start(L), t_end=2.33 * L + 40).cost["steps"]
        for L in (np.log(1e3), 300 * np.log(10), 1000.0)
    ]
    assert steps[1] <= 2 * steps[0]
    assert steps[2] <= 2 * steps[0]
    assert steps[2] < 200


@pytest.mark.parametrize("L", LOGS)
def test_alignment_closed_form(L):
    """cosine tanh(c S t / n + artanh q0), log norm by log cosh ([TLB26]_ Lemma 3)."""
    t = np.array([0.1, 0.5, 2.0, 4.0])
    run = flow(PROBLEM, start(L), t_end=4.0, save=t)
    S, q0 = 5.0, np.array([0.5, 0.5, 0, 0]) @ np.array([0.8, 0.6, 0, 0])
    inner = S * t / 4 + np.arctanh(q0)
    got = np.array([net.directions[0] @ [0.8, 0.6, 0, 0] for net in run.networks])
    size = np.array([net.log_norms[0] + L for net in run.networks])
    bound = max(1e-8, 30 * np.exp(-2 * L + 2 * 5.0))  # where f = 0 is no longer exact
    assert np.abs(got - np.tanh(inner)).max() < bound
    assert np.abs(size - np.log(np.cosh(inner) / np.cosh(np.arctanh(q0)))).max() < bound


def test_rotated_data_gives_the_same():
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    turned = Problem(Q, PROBLEM.y)
    L = 100.0
    runs = [
        flow(PROBLEM, start(L), t_end=2.33 * L + 60),
        flow(turned, Network(ROWS @ Q, np.ones(3), log_scale=-L), t_end=2.33 * L + 60),
    ]
    assert np.allclose(runs[0].final.log_norms, runs[1].final.log_norms, atol=1e-7)
    assert not len(runs[1].events["time"])


def test_a_crossing_within_the_error_does_not_lengthen_a_step(monkeypatch):
    """At rest on a plateau a neuron swings about a kink by the step's own error: no landing may go
    beyond the step that was accepted, and what is fitted stays fitted."""
    lengths = []

    def watched(trial, j, k, h):
        longest = trial.frame.h
        landed = land(trial, j, k, h)
        lengths.append(landed / longest)
        return landed

    monkeypatch.setattr(solver, "land", watched)
    monkeypatch.setattr(solver, "WORTH", math.inf)  # kinks are landed on, not passed
    monkeypatch.setattr("reluflow.gradientflow.landing.PASSING", 1e3)
    for problem, start in draws(1, 3)[1:]:
        there = course(problem, start, -100 * math.log(10), rtol=1e-9)
        fitted = np.concatenate(there.process.samples[:2])
        residual = np.abs(there.outputs[there.records(2)] - problem.y)[:, fitted].max()
        assert residual <= 1e-8 * np.abs(problem.y).max()
    assert lengths
    assert max(lengths) <= 1.0
