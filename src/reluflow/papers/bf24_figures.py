"""[BF24]_ Figures 1 and 3: data of Assumption 3, and a run that misses two bumps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from reluflow.claims.bf24_data import box_size
from reluflow.claims.verdict import at_least, at_most
from reluflow.descent import descend
from reluflow.flow.flow import flow
from reluflow.network import Network, initialize
from reluflow.papers.figure import Drawn
from reluflow.problem import Problem, datasets
from reluflow.report.panels import function_panel, neurons_panel
from reluflow.report.traces import Line, Panel, Picture, Points, Rule, Trace
from reluflow.trajectory.phases import phases

FIGURE1: dict[str, Any] = {"box_eta": 1 / 6, "draws": 200}
FIGURE3: dict[str, Any] = {"m": 20_000, "scale": 1e-3, "t_end": 2000.0, "m_descent": 300}
FIGURE3_QUICK = {**FIGURE3, "m": 300, "t_end": 600.0, "m_descent": 0}


def figure1(*, box_eta: float, draws: int, seed: int = 0) -> Drawn:
    """Figure 1: one-dimensional data that satisfy Assumption 3, with their least-squares line."""
    x, y = np.array([-0.9, 0.05, 0.92]), np.array([1.1, 0.08, 1.05])
    problem = Problem(x[:, None], y, bias=1.0, name="figure1")
    beta = np.linalg.lstsq(problem.X, y, rcond=None)[0]
    e, grid = box_eta, np.linspace(-1.05, 1.05, 50)
    rng = np.random.default_rng(seed)
    cloud = [datasets.assumption3_box(e, rng) for _ in range(draws)]
    boxes: list[Trace] = []
    for left, right, low, high in ((-1, -1 + e, 1, 1 + e), (-e, e, 0, e), (1 - e, 1, 1, 1 + e)):
        sides = ([left, right, right, left, left], [low, low, high, high, low])
        boxes.append(Line(*sides, color="0.6", dash=":", width=1.0))
    many = [Points(np.concatenate([p.X[:, 0] for p in cloud]), np.concatenate([p.y for p in cloud]),
                   f"{draws} draws", "0.75", size=5)]  # fmt: skip
    traces = [
        *many, *boxes, Line(grid, beta[0] * grid + beta[1], "least squares", "crimson", "--", 1.5),
        Points(x, y, "data", "tab:green", size=50),
    ]  # fmt: skip
    panel = Panel(traces, "", "x", "y", ylim=(-0.05, 1.35), legend="upper center")
    eta = box_size(problem)
    miss = min(float(np.mean((p.X @ _line(p) - p.y) ** 2)) for p in cloud)
    return Drawn(
        [Picture([panel], title=f"Three points of Assumption 3, box size {box_eta:.3g}", width=6)],
        {"box_eta": eta, "least_mse_of_draws": miss, "x": x, "y": y},
        [f"The points shown need boxes of size {eta:.3f}; the limit is {box_eta:.3f}.",
         f"The least-squares line misses: its mean squared error is at least {miss:.3f} here."],
        [at_most(eta, box_eta, what="least box_eta of the points shown"),
         at_least(miss, 0.05, what="least squared error of the line over the draws")],
        "The paper gives no coordinates: the green points are ours. Dotted: the boxes for (x, y); "
        "grey: draws from them, whose second feature, 1 in the figure, varies too.",
    )  # fmt: skip


def _line(problem: Problem) -> np.ndarray:
    return np.asarray(np.linalg.lstsq(problem.X, problem.y, rcond=None)[0])


def figure3(*, m: int, scale: float, t_end: float, m_descent: int, seed: int = 0) -> Drawn:
    """Figure 3: forty points of a teacher with eight neurons, unbalanced start."""
    problem = datasets.stewart(rng=seed, loss="square")
    net = initialize(problem, m, scale=scale, kind="gaussian", rng=seed)
    times = np.unique(np.concatenate([np.linspace(0, 20, 81), np.geomspace(20, t_end, 120)]))
    curve = flow(problem, net, t_end=t_end, save=times, observe="outputs", kinks=False)
    found = phases(curve)
    fallen = (curve.loss[0] - curve.loss) / (curve.loss[0] - curve.loss[-1])
    second = curve.times[np.argmax(curve.loss < found.plateaus[1, 2] * 0.97)] \
        if len(found.plateaus) > 1 else t_end / 2  # fmt: skip
    frames = [0.0, float(curve.times[np.argmax(fallen > 0.01)]), float(curve.times[np.argmax(
        curve.times >= 20.0)]), float(second), t_end]  # fmt: skip
    run = flow(problem, net, t_end=t_end, save=frames, kinks=False)
    assert run.networks is not None
    knots = problem.known["knots"]
    panels: list[Panel] = []
    for t, state in zip(frames, run.networks, strict=True):
        mse = float(np.mean((state(problem.X) - problem.y) ** 2))
        shown = function_panel(
            state, problem, span=(-1.0, 1.0), line=False, ylim=(-0.15, 1.2),
            title=f"step {t * 1000:,.0f}, mean squared error {mse:.4f}",
        )  # fmt: skip
        teacher = Line(knots[:, 0], knots[:, 1], "teacher", "crimson", "--", 1.3)
        panels.append(Panel([teacher, *shown.traces], shown.title, "x", "f(x)", ylim=shown.ylim))
        panels.append(neurons_panel(state, title=f"{kinks_of(state, problem)} kinks in (-1, 1)"))
    loss = Panel(
        [Line(curve.times[1:] * 1000, curve.loss[1:], "network", "tab:blue", width=2)]
        + [Rule(float(t) * 1000, "x") for t in found.jumps],
        "loss", "step (time / 0.001)", "mean squared error", xscale="log", yscale="log",
    )  # fmt: skip
    kinks = [kinks_of(state, problem) for state in run.networks]
    end = float(curve.loss[-1])
    numbers: dict[str, Any] = {
        "neurons": m, "mse": end, "kinks": kinks, "frames": frames, "jumps": found.jumps,
        "plateaus": found.plateaus, "cost": dict(run.cost),
    }  # fmt: skip
    seen = [
        at_least(min(a - b for a, b in pairwise(curve.loss)), -1e-6, what="fall of the loss"),
        at_least(end, 1e-3, what="mean squared error at the end: some bumps are missed"),
        at_most(kinks[2], 2, what="kinks at the first plateau"),
        at_least(kinks[-1], 4, what="kinks at the end (the paper's run keeps about five neurons)"),
        at_most(kinks[-1], 6, what="kinks at the end, fewer than the teacher's"),
    ]
    summary = [f"{m:,} neurons: {run.status}", f"Mean squared error {end:.5f} at the end."]
    if m_descent:
        start = initialize(problem, m_descent, scale=scale, kind="gaussian", rng=seed)
        steps = int(1000 * t_end)
        gd = descend(problem, start, lr=1e-3, steps=steps, observe="outputs", backend="dense")
        same = flow(problem, start, t_end=t_end, observe="outputs", kinks=False)
        gap = abs(float(gd.loss[-1]) - float(same.loss[-1]))
        numbers["descent_mse"] = float(gd.loss[-1])
        seen.append(at_most(gap, 1e-4, what=f"descent against flow, {m_descent} neurons, MSE"))
    caption = (
        f"Gradient flow with {m:,} neurons (the default width of the paper's code for these data; "
        "its figure has 200,000), kinks not located; a step stands for time 0.001. The sample of "
        "40 points is ours, so plateaus differ from the paper's, which ends with five neurons and "
        f"misses two small bumps; this run ends with {kinks[-1]} kinks. Rows: "
        "start, 1 % of the fall done, first plateau, second growth, end; jumps by `phases` at "
        f"steps {', '.join(f'{1000 * t:,.0f}' for t in found.jumps)}."
    )
    pictures = [
        Picture(panels, 2, f"Forty points of a teacher, {m:,} neurons", height=3.4),
        Picture([loss], name="loss", width=6.5, height=3.6),
    ]
    return Drawn(pictures, numbers, summary, seen, caption)


def kinks_of(net: Network, problem: Problem, share: float = 0.01) -> int:
    """Groups of neighbouring kinks in (-1, 1) that change the slope by ``share`` of the largest."""
    W, a = net.weights()
    inside = np.abs(W[:, 1]) < np.abs(W[:, 0])
    place = -W[inside, 1] / W[inside, 0]
    bend = a[inside] * np.abs(W[inside, 0])
    edges = np.linspace(-1, 1, 81)
    total = np.histogram(place, edges, weights=bend)[0]
    large = np.abs(total) > max(share * 4.0, 0.0)  # the teacher's slopes change by 4 and more
    return int(np.count_nonzero(large & ~np.append(False, large[:-1])))
