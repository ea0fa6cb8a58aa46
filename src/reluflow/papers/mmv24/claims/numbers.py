"""[MMV24]_: closed forms of early alignment, evaluated beside the exact path."""

from __future__ import annotations

import numpy as np

from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.landscape import early
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.problem.losses import Exponential


@experiment("MMV24-R3", part="closed-form", quick={"draws": 10}, full={"draws": 500})
def cosine_in_one_cone(seed: int, draws: int) -> list[Comparison]:
    """Inside S_+ with f ~ 0: cos(t) = tanh(artanh cos(0) + |x_a| t), and
    |w(t)|/|w(0)| = cosh(|x_a| t) + cos(0) sinh(|x_a| t), both for a balanced neuron."""
    rng = np.random.default_rng(seed)
    angle, size, least = 0.0, 0.0, np.inf
    for _ in range(draws):
        X = np.abs(rng.standard_normal((5, 3))) + 0.1  # correlated, one class: one cone
        problem = Problem(X, np.ones(5), Exponential(), reduction="sum")
        w = rng.random(3) + 0.1
        net = Network(1e-9 * w[None, :], np.array([1e-9 * np.linalg.norm(w)]))
        x_a = X.sum(axis=0)
        r = float(np.linalg.norm(x_a))
        start = float(w @ x_a) / (r * float(np.linalg.norm(w)))
        least = min(least, 1 - start)
        for t in (0.1 / r, 0.5 / r, 2.0 / r):
            later = early(problem, net, float(t))
            v = later.directions[0]
            angle = max(angle, abs(v @ x_a / r - np.tanh(np.arctanh(start) + r * t)))
            grown = np.exp(later.log_norms[0] - net.log_norms[0])
            size = max(size, abs(grown / (np.cosh(r * t) + start * np.sinh(r * t)) - 1))
    return [
        at_most(angle, 1e-12, what="cosine against tanh(artanh c_0 + |x_a| t)"),
        at_most(size, 1e-12, what="norm against cosh + c_0 sinh, relative"),
        at_least(least, 1e-4, what="least 1 - cos at the start"),
    ]


@experiment("MMV24-E4", part="closed-form")
def leaving_under_a_frozen_pull(seed: int) -> list[Comparison]:
    """x = (1, 0), y = 1, w = (0, 1), a = 1 while f ~ 0: th' = 1, so that leaving at once is
    a = cosh t, w = (sinh t, 1), and waiting is w, a as they are."""
    problem = Problem(np.array([[1.0, 0.0]]), np.ones(1), Exponential())
    net = Network(np.array([[0.0, 1.0]]), np.ones(1))
    left, stays = 0.0, 0.0
    for t in (0.1, 1.0, 3.0):
        W, a = early(problem, net, t, on_branch="leave").weights()
        gap = np.abs(np.append(W[0], a) - [np.sinh(t), 1.0, np.cosh(t)]).max()
        left = max(left, float(gap) / np.cosh(t))
        W, a = early(problem, net, t, on_branch="stay").weights()
        stays = max(stays, float(np.abs(np.append(W[0], a) - [0.0, 1.0, 1.0]).max()))
    return [
        at_most(left, 1e-13, what="leaving at once, relative error"),
        at_most(stays, 0.0, what="waiting, error"),
    ]
