"""[BF24]_: three points on which every width learns only the least-squares line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reluflow.descent import descend
from reluflow.network import initialize
from reluflow.papers.figure import Figure, write_picture
from reluflow.problem import datasets
from reluflow.report.function import plot_function
from reluflow.report.neurons import plot_neurons
from reluflow.trajectory import Trajectory, geometric

FIGURE2: dict[str, Any] = {"m": 200_000, "scale": 1e-3, "lr": 1e-3, "steps": 2_000_000, "seed": 0}
FIGURE2_QUICK = {**FIGURE2, "m": 2_000, "steps": 200_000}


def growth_phases(run: Trajectory, begin: float = 0.02, end: float = 0.99) -> tuple[int, int]:
    """Steps at which the shares ``begin`` and ``end`` of the whole fall of the loss are done."""
    fallen = (run.loss[0] - run.loss) / (run.loss[0] - run.loss[-1])
    begins, ends = np.argmax(fallen >= begin), np.argmax(fallen >= end)
    return int(run.steps[begins]), int(run.steps[ends])


def figure2(out: Path, quick: bool = False) -> Figure:
    """Figure 2: neurons align with one direction, grow, and stop at the least-squares line."""
    settings = FIGURE2_QUICK if quick else FIGURE2
    problem = datasets.three_points(loss="square")
    net = initialize(problem, settings["m"], scale=settings["scale"], rng=settings["seed"])
    how: dict[str, Any] = {"lr": settings["lr"], "steps": settings["steps"]}
    curve = descend(problem, net, save=geometric(1.01), observe="outputs", **how)
    grows, fits = growth_phases(curve)
    frames = [0, grows, fits, settings["steps"]]
    run = descend(problem, net, save=frames, **how)
    assert run.networks is not None
    titles = ("start", "neurons aligned, growth begins", "the line is nearly reached", "end")

    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(9, 15), layout="constrained")
    for row, (step, title, state) in enumerate(zip(frames, titles, run.networks, strict=True)):
        left = canvas.add_subplot(4, 2, 2 * row + 1)
        plot_function(state, problem, ax=left, span=(-1.0, 1.0))
        left.set_ylim(-0.1, 1.3)
        mse = float(np.mean((state(problem.X) - problem.y) ** 2))
        left.set_title(f"{title}\nstep {step:,}, mean squared error {mse:.6f}", fontsize="medium")
        if row == 0:
            left.legend(loc="lower right", fontsize="small")
        plot_neurons(state, problem, ax=canvas.add_subplot(4, 2, 2 * row + 2, projection="polar"))
    canvas.suptitle(
        f"Three points, {settings['m']:,} neurons from scale {settings['scale']:g}"
        + (" (quick version)" if quick else "")
    )
    picture = write_picture(canvas, out / "bf24-f2.png")
    loss = write_picture(_loss_curve(curve, grows, fits), out / "bf24-f2-loss.png")
    return _report(problem, run, curve, grows, fits, settings, (picture, loss))


def _loss_curve(curve: Trajectory, grows: int, fits: int) -> Any:
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(6.5, 3.6), layout="constrained")
    ax = canvas.add_subplot()
    ax.plot(curve.steps[1:], curve.loss[1:], color="tab:blue", lw=2)
    limit = curve.problem.known["limit_mse"]
    ax.axhline(limit, color="crimson", ls="--", lw=1, label=f"least squares: {limit:.6f}")
    for step, text, side in ((grows, "growth begins", -1), (fits, "line nearly reached", 1)):
        ax.axvline(step, color="0.6", lw=1)
        ax.annotate(
            f"{text}\nstep {step:,}", (step, 0.5), xytext=(6 * side, 0),
            textcoords="offset points", ha="left" if side > 0 else "right", fontsize="small",
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_ylim(0, 0.68)
    ax.set_xlabel("step")
    ax.set_ylabel("mean squared error")
    ax.legend(loc="lower left")
    return canvas


def _report(
    problem: Any,
    run: Trajectory,
    curve: Trajectory,
    grows: int,
    fits: int,
    settings: dict[str, Any],
    files: tuple[Path, ...],
) -> Figure:
    known, final = problem.known, run.final
    f = final(problem.X)
    patterns = problem.X @ final.W.T > 0
    mixed = int(np.count_nonzero(patterns.any(axis=0) & ~patterns.all(axis=0)))
    numbers = {
        "neurons": final.m,
        "steps": int(run.steps[-1]),
        "mse": float(np.mean((f - problem.y) ** 2)),
        "least_squares_mse": known["limit_mse"],
        "distance_to_line": float(np.max(np.abs(f - known["limit_outputs"]))),
        "growth_begins": grows,
        "line_reached": fits,
        "active_on_all": int(np.count_nonzero(patterns.all(axis=0))),
        "active_on_none": int(np.count_nonzero(~patterns.any(axis=0))),
        "active_on_some": mixed,
        "cost": dict(run.cost),
    }
    summary = (
        f"{final.m:,} neurons, {numbers['steps']:,} gradient steps: {run.status}",
        f"Mean squared error {numbers['mse']:.8f}; the least-squares line has "
        f"{numbers['least_squares_mse']:.8f} and differs by {numbers['distance_to_line']:.1e} "
        "at the samples.",
        f"{numbers['active_on_all']:,} neurons are active on all samples, "
        f"{numbers['active_on_none']:,} on none, {mixed} on some: the network has become one line.",
        f"Growth began at step {grows:,} and was 99 % done at step {fits:,}.",
    )
    title = "Three points: every width converges to the least-squares line"
    return Figure("BF24", "F2", title, files, numbers, summary, settings)
