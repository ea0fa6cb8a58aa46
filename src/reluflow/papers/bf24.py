"""[BF24]_: three points on which every width learns only the least-squares line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.descent import descend
from reluflow.network import Network, initialize
from reluflow.papers.bf24_figures import FIGURE1, FIGURE3, FIGURE3_QUICK, figure1, figure3
from reluflow.papers.figure import Drawn, figure
from reluflow.problem import Problem, datasets
from reluflow.report.panels import function_panel, neurons_panel
from reluflow.report.traces import Line, Panel, Picture, Rule, Trace
from reluflow.trajectory import Trajectory, geometric

FIGURE2: dict[str, Any] = {"m": 200_000, "scale": 1e-3, "lr": 1e-3, "steps": 2_000_000}
FIGURE2_QUICK = {**FIGURE2, "m": 2_000, "steps": 200_000}

figure(
    "BF24", "F1", title="Data of Assumption 3", quick=FIGURE1, full=FIGURE1,
    claims=("BF24-A3", "BF24-L8"),
)(figure1)  # fmt: skip
figure(
    "BF24", "F3", title="A teacher with eight neurons, of which training finds fewer",
    quick=FIGURE3_QUICK, full=FIGURE3, claims=("BF24-D2", "BF24-D4"),
)(figure3)  # fmt: skip


def growth_phases(run: Trajectory, begin: float = 0.02, end: float = 0.99) -> tuple[int, int]:
    """Steps at which the shares ``begin`` and ``end`` of the whole fall of the loss are done."""
    fallen = (run.loss[0] - run.loss) / (run.loss[0] - run.loss[-1])
    begins, ends = np.argmax(fallen >= begin), np.argmax(fallen >= end)
    return int(run.steps[begins]), int(run.steps[ends])


@figure(
    "BF24",
    "F2",
    title="Three points: every width converges to the least-squares line",
    quick=FIGURE2_QUICK,
    full=FIGURE2,
    claims=("BF24-T2", "BF24-L7", "BF24-A3", "BF24-A5"),
)
def figure2(*, m: int, scale: float, lr: float, steps: int, seed: int = 0) -> Drawn:
    """Figure 2: neurons align with one direction, grow, and stop at the least-squares line."""
    problem = datasets.three_points(loss="square")
    net = initialize(problem, m, scale=scale, rng=seed)
    curve = descend(problem, net, lr=lr, steps=steps, save=geometric(1.01), observe="outputs")
    grows, fits = growth_phases(curve)
    frames = [0, grows, fits, steps]
    run = descend(problem, net, lr=lr, steps=steps, save=frames)
    assert run.networks is not None
    titles = ("start", "neurons aligned, growth begins", "the line is nearly reached", "end")
    panels: list[Panel] = []
    for row, (step, title, state) in enumerate(zip(frames, titles, run.networks, strict=True)):
        mse = float(np.mean((state(problem.X) - problem.y) ** 2))
        panels.append(
            function_panel(
                state, problem, span=(-1.0, 1.0), ylim=(-0.1, 1.3),
                title=f"{title}\nstep {step:,}, mean squared error {mse:.6f}",
                legend="upper right" if row == 0 else "",
            )
        )  # fmt: skip
        panels.append(neurons_panel(state, problem, title=f"neurons at step {step:,}"))
    pictures = [
        Picture(panels, 2, f"Three points, {m:,} neurons from scale {scale:g}", height=3.7),
        Picture([_loss_curve(curve, grows, fits)], name="loss", width=6.5, height=3.6),
    ]
    numbers = _numbers(problem, run, grows, fits)
    predicted = -math.log(scale) / problem.known["growth_rate"] / lr
    seen = _seen(problem, run.networks[1], run.final, numbers, predicted)
    caption = (
        "Left the function, right the neurons by angle and norm (the inner circle is norm 0). The "
        "paper's middle rows are the ends of its phases 2a and 2; ours are the steps at which 2 % "
        "and 99 % of the fall of the loss are done."
    )
    return Drawn(pictures, numbers, _summary(run, numbers), seen, caption)


def _loss_curve(curve: Trajectory, grows: int, fits: int) -> Panel:
    limit = curve.problem.known["limit_mse"]
    traces: list[Trace] = [
        Line(curve.steps[1:], curve.loss[1:], "network", "tab:blue", width=2),
        Rule(limit, "y", f"least squares: {limit:.6f}", color="crimson", dash="--"),
        Rule(grows, "x", text=f"growth begins\nstep {grows:,}", place=0.6),
        Rule(fits, "x", text=f"line nearly reached\nstep {fits:,}", side="right", place=0.6),
    ]
    return Panel(
        traces, "loss", "step", "mean squared error", xscale="log", ylim=(0.0, 0.68),
        legend="lower left",
    )  # fmt: skip


def _numbers(problem: Problem, run: Trajectory, grows: int, fits: int) -> dict[str, Any]:
    known, final = problem.known, run.final
    f = final(problem.X)
    patterns = problem.X @ final.W.T > 0
    everywhere, somewhere = patterns.all(axis=0), patterns.any(axis=0)
    return {
        "neurons": final.m,
        "steps": int(run.steps[-1]),
        "mse": float(np.mean((f - problem.y) ** 2)),
        "least_squares_mse": known["limit_mse"],
        "distance_to_line": float(np.max(np.abs(f - known["limit_outputs"]))),
        "growth_begins": grows,
        "line_reached": fits,
        "active_on_all": int(np.count_nonzero(everywhere)),
        "active_on_none": int(np.count_nonzero(~somewhere)),
        "active_on_some": int(np.count_nonzero(somewhere & ~everywhere)),
        "cost": dict(run.cost),
    }


def _seen(
    problem: Problem, growing: Network, final: Network, numbers: dict[str, Any], predicted: float
) -> list[Comparison]:
    """What a reader must see: one ray when growth begins, one line at the end."""
    towards = problem.known["D_star"] / np.linalg.norm(problem.known["D_star"])
    share = np.exp(2 * growing.log_norms) * (growing.a > 0)
    share *= (problem.X @ growing.W.T > 0).any(axis=0)  # dead neurons never move
    near = growing.directions @ towards > math.cos(0.1)
    W, a = final.weights()
    bundle = (a * (problem.X @ W.T > 0).all(axis=0)) @ W
    beta = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0]
    turn = math.atan2(bundle[1], bundle[0]) - math.atan2(beta[1], beta[0])
    return [
        at_least(share[near].sum() / share.sum(), 0.99, what="norm^2 within 0.1 rad of D*"),
        at_most(np.max(np.abs(growing(problem.X))), 0.05, what="|f| when growth begins"),
        at_most(numbers["growth_begins"], predicted, what="growth begins before log(1/scale)/|D*|"),
        at_least(numbers["line_reached"], predicted, what="and ends after it (steps)"),
        equals(
            numbers["mse"], numbers["least_squares_mse"], tolerance=1e-9, what="mean squared error"
        ),
        equals(numbers["active_on_some"], 0, tolerance=0, what="neurons active on some samples"),
        equals(turn, 0.0, tolerance=1e-4, what="angle of the sum of a w to beta*"),
    ]


def _summary(run: Trajectory, numbers: dict[str, Any]) -> list[str]:
    return [
        f"{numbers['neurons']:,} neurons, {numbers['steps']:,} gradient steps: {run.status}",
        f"Mean squared error {numbers['mse']:.8f}; the least-squares line has "
        f"{numbers['least_squares_mse']:.8f} and differs by {numbers['distance_to_line']:.1e} "
        "at the samples.",
        f"{numbers['active_on_all']:,} neurons are active on all samples, "
        f"{numbers['active_on_none']:,} on none, {numbers['active_on_some']} on some: the network "
        "has become one line.",
        f"Growth began at step {numbers['growth_begins']:,} and was 99 % done at step "
        f"{numbers['line_reached']:,}.",
    ]
