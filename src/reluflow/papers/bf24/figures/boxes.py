"""[BF24]_ Figure 1: data of Assumption 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluflow.claims.verdict import at_least, at_most
from reluflow.papers.bf24.claims.data import box_size, least_squares
from reluflow.papers.figure import Drawn, figure
from reluflow.problem import Problem, datasets
from reluflow.report.traces import Line, Panel, Picture, Points, Trace

FIGURE1: dict[str, Any] = {"box_eta": 1 / 6, "draws": 200}


@figure(
    "BF24",
    "F1",
    title="Data of Assumption 3",
    quick=FIGURE1,
    full=FIGURE1,
    claims=("BF24-A3", "BF24-L8"),
)
def figure1(*, box_eta: float, draws: int, seed: int = 0) -> Drawn:
    """Figure 1: one-dimensional data that satisfy Assumption 3, with their least-squares line."""
    x, y = np.array([-0.9, 0.05, 0.92]), np.array([1.1, 0.08, 1.05])
    problem = Problem(x[:, None], y, bias=1.0, name="figure1")
    beta = least_squares(problem)
    e, grid = box_eta, np.linspace(-1.05, 1.05, 50)
    rng = np.random.default_rng(seed)
    cloud = [datasets.assumption3_box(e, rng) for _ in range(draws)]
    boxes: list[Trace] = []
    for left, right, low, high in ((-1, -1 + e, 1, 1 + e), (-e, e, 0, e), (1 - e, 1, 1, 1 + e)):
        sides = ([left, right, right, left, left], [low, low, high, high, low])
        boxes.append(Line(*sides, color="0.6", dash=":", width=1.0))
    many = [
        Points(
            np.concatenate([p.X[:, 0] for p in cloud]),
            np.concatenate([p.y for p in cloud]),
            f"{draws} draws",
            "0.75",
            size=5,
        )
    ]
    traces = [
        *many,
        *boxes,
        Line(grid, beta[0] * grid + beta[1], "least squares", "crimson", "--", 1.5),
        Points(x, y, "data", "tab:green", size=50),
    ]
    panel = Panel(traces, "", "x", "y", ylim=(-0.05, 1.35), legend="upper center")
    eta = box_size(problem)
    miss = min(float(np.mean((p.X @ least_squares(p) - p.y) ** 2)) for p in cloud)
    return Drawn(
        [Picture([panel], title=f"Three points of Assumption 3, box size {box_eta:.3g}", width=6)],
        {"box_eta": eta, "least_mse_of_draws": miss, "x": x, "y": y},
        [
            f"The points shown need boxes of size {eta:.3f}; the limit is {box_eta:.3f}.",
            f"The least-squares line misses: its mean squared error is at least {miss:.3f} here.",
        ],
        [
            at_most(eta, box_eta, what="least box_eta of the points shown"),
            at_least(miss, 0.05, what="least squared error of the line over the draws"),
        ],
        "The paper gives no coordinates: the green points are ours. Dotted: the boxes for (x, y); "
        "grey: draws from them, whose second feature, 1 in the figure, varies too.",
    )
