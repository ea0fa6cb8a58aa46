"""[BF24]_ Lemma 1 beyond the bound on runs: no drift of flow, a known one of each Euler step."""

from __future__ import annotations

import numpy as np

from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_most
from reluflow.network import initialize
from reluflow.problem import datasets


@experiment("BF24-L1", part="flow", quick={"m": 20, "t_end": 20.0}, full={"m": 200, "t_end": 60.0})
def flow_keeps_balance(seed: int, m: int, t_end: float) -> Comparison:
    """Change of a^2 - |w|^2 over the largest a^2 + |w|^2, from a start of order 1, rtol 1e-12."""
    from reluflow.gradientflow.flow import flow

    problem = datasets.three_points()
    net = initialize(problem, m, scale=1.0, kind="gaussian", rng=seed)
    run = flow(problem, net, t_end=t_end, save=np.linspace(0.0, t_end, 21), rtol=1e-12)
    sizes = []
    for state in run.path():
        W, a = state.weights()
        sizes.append((a**2 - np.sum(W**2, axis=1), a**2 + np.sum(W**2, axis=1)))
    gaps, totals = np.array(sizes).transpose(1, 0, 2)
    return at_most(
        (np.abs(gaps - gaps[0]) / totals.max(axis=0)).max(),
        1e-10,
        what="drift of a^2 - |w|^2 over the largest a^2 + |w|^2",
    )


@experiment("BF24-L1", part="euler", quick={"m": 20, "steps": 200}, full={"m": 200, "steps": 5000})
def euler_drifts_by_a_square(seed: int, m: int, steps: int, lr: float = 0.05) -> Comparison:
    """Each step of descent changes a^2 - |w|^2 by lr^2 (a'^2 - |w'|^2), the cross terms cancel."""
    from reluflow.descent.descend import descend

    problem = datasets.three_points()
    net = initialize(problem, m, scale=1.0, kind="gaussian", rng=seed)
    run = descend(problem, net, lr=lr, steps=steps, save=range(steps + 1), states=True)
    worst = 0.0
    for now, after in zip(run.path()[:-1], run.path()[1:], strict=True):
        (W, a), (V, b) = now.weights(), after.weights()
        active = W @ problem.X.T > 0.0  # as descent has it, however near a kink
        push = (active * problem.pull_at(problem.outputs(now))) @ problem.X
        dw2, da = a**2 * np.sum(push**2, axis=1), np.sum(W * push, axis=1)
        drift = (b**2 - np.sum(V**2, axis=1)) - (a**2 - np.sum(W**2, axis=1))
        error = np.abs(drift - lr**2 * (da**2 - dw2)) / (b**2 + np.sum(V**2, axis=1))
        worst = max(worst, float(error.max()))
    return at_most(worst, 1e-14, what="drift of a step less lr^2 (a'^2 - |w'|^2), relative")
