"""[LLWA21]_ Table 1 and Figure 4: a Gaussian teacher, its SVM and a trained network."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluflow.flow.flow import flow
from reluflow.flow.stops import loss_below
from reluflow.network import Network, initialize
from reluflow.optimum.kkt import kkt
from reluflow.problem import Problem, datasets

M, SCALE = 100, 1e-3


def train(problem: Problem, m: int, q: float, rng: Any) -> Network:
    """From 0.001 times the He law to a loss of e^-q, kinks not located."""
    net = initialize(problem, m, SCALE, "he", rng)
    return flow(problem, net, clock="loss", stop=loss_below(log=-q), kinks=False,
                progress=False).final  # fmt: skip


def draw(
    n: int, symmetric: bool, leak: float, m: int, q: float, tests: int, rng: np.random.Generator
) -> dict[str, float]:
    """One sample of the teacher: test errors in percent, agreement, and margins."""
    problem = datasets.gaussian_teacher(n, rng=rng, symmetric=symmetric, leak=leak)
    test = datasets.gaussian_teacher_test(problem, tests, rng)
    net = train(problem, m, q, rng)
    found = kkt(problem, net)
    w, gamma = problem.known["w_star"], problem.known["gamma_star"]
    f, line = test.outputs(net), test.X @ w
    return {
        "svm": 100.0 * float(np.mean(test.y * line <= 0)),
        "net": 100.0 * float(np.mean(test.y * f <= 0)),
        "agreement": 100.0 * float(np.mean(f * line > 0)),
        "margin_ratio": found.margin / ((1 + leak) / 4 * gamma),
        "residual": found.residual,
        "q_min": float(np.exp(found.log_q_min)),
    }
