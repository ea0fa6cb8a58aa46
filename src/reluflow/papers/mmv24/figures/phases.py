"""[MMV24]_ Figures 12 and 13: directions first and norms later, if both layers are trained."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.verdict import at_least, at_most
from reluflow.descent import descend
from reluflow.network import Network
from reluflow.papers.figure import Drawn, figure
from reluflow.papers.mmv24.figures.digits import LR, digits, small_start
from reluflow.problem import Problem
from reluflow.report.traces import Line, Panel, Picture, Rule, Trace
from reluflow.trajectory import Trajectory

IMAGES, BATCH = 12_665, 2_000  # of the paper's training set
MEASURED = ("change_norms", "change_directions")
OPEN = (
    "The paper does not say for how many epochs it trains, nor which loss: here the mean "
    "exponential loss. Both changes are those of the full gradient, as in its Appendix A.5."
)


def batch_size(problem: Problem) -> int:
    """2,000 on the whole training set, the same share of fewer images: 7 batches an epoch."""
    return max(1, round(BATCH * problem.n / IMAGES))


def panels_of(run: Trajectory, x: Array, xlabel: str) -> list[Panel]:
    """Loss and both changes against x, with the peaks of the changes marked."""
    titles = {"change_norms": "change of norms", "change_directions": "change of directions"}
    made = [Panel([Line(x, run.loss, "", "tab:blue")], "loss", xlabel, "loss", ylim=(0.0, 1.05))]
    for name, colour in zip(MEASURED, ("tab:red", "tab:green"), strict=True):
        value = np.where(run[name] > 0, run[name], np.nan)
        peak = float(x[int(np.nanargmax(value))])
        traces: list[Trace] = [Line(x, value, "", colour)]
        if peak > 0:
            right = peak < 0.5 * x[-1]
            traces.append(
                Rule(
                    peak,
                    text=f"peak at {peak:.3g}",
                    dash=":",
                    place=0.12,
                    side="right" if right else "left",
                )
            )
        made.append(Panel(traces, titles[name], xlabel, titles[name], yscale="log"))
    return made


def peaks(run: Trajectory) -> dict[str, int]:
    """Iteration of the largest value of each change."""
    return {name: int(run.steps[int(np.argmax(run[name]))]) for name in MEASURED}


@figure(
    "MMV24",
    "F12",
    title="MNIST 0 and 1 by mini-batches: directions change first, norms later",
    quick={"per_class": 300, "epochs": 600, "every": 10},
    full={"per_class": None, "epochs": 600, "every": 5},
)
def figure12(*, per_class: int | None, epochs: int, every: int, seed: int = 0) -> Drawn:
    """Figure 12: SGD on both layers from small weights has two phases."""
    problem = digits(1, 0, per_class)
    size = batch_size(problem)
    per_epoch = -(-problem.n // size)
    net = small_start(problem, seed)
    run = descend(
        problem,
        net,
        lr=LR,
        steps=per_epoch * epochs,
        batch_size=size,
        rng=seed,
        save=range(0, per_epoch * epochs + 1, per_epoch * every),
        observe=MEASURED,
        backend="dense",
        dtype="float32",
    )
    top = peaks(run)
    grown = int(run.steps[int(np.argmax(run.loss < 0.9))])
    directions = run["change_directions"]
    late = float(directions[int(np.argmax(run.loss < 0.9))] / directions.max())
    seen = [
        at_least(
            top["change_norms"] - top["change_directions"],
            1000,
            what="peak of norms after that of directions (iterations)",
        ),
        at_least(run.loss[int(np.argmax(directions))], 0.99, what="loss at the peak of directions"),
        at_most(late, 0.2, what="change of directions once the loss falls, over its peak"),
        at_most(run.loss[-1], 0.3, what="loss at the end"),
    ]
    numbers = {
        "batch_size": size,
        "batches_per_epoch": per_epoch,
        "peaks": top,
        "loss_below_0.9": grown,
        **{name: run[name].tolist() for name in MEASURED},
        "loss": run.loss.tolist(),
        "steps": run.steps.tolist(),
    }
    summary = [
        f"Directions change most at iteration {top['change_directions']:,} (epoch "
        f"{top['change_directions'] // per_epoch}), norms at {top['change_norms']:,} (epoch "
        f"{top['change_norms'] // per_epoch}); the loss falls below 0.9 by {grown:,}.",
    ]
    caption = (
        f"{OPEN} {problem.n:,} images in batches of {size:,}, {per_epoch} of them an epoch, "
        f"measured every {every} epochs."
    )
    panels = panels_of(run, run.steps / per_epoch, "epoch")
    return Drawn([Picture(panels, 3, width=4.8, height=3.6)], numbers, summary, seen, caption)


@figure(
    "MMV24",
    "F13",
    title="MNIST 0 and 1, inner weights alone: no phase of alignment",
    quick={"per_class": 300, "epochs": 100},
    full={"per_class": None, "epochs": 100},
)
def figure13(*, per_class: int | None, epochs: int, seed: int = 0) -> Drawn:
    """Figure 13: with outer weights fixed at +-1 norms grow and the loss falls at once."""
    problem = digits(1, 0, per_class)
    size = batch_size(problem)
    per_epoch = -(-problem.n // size)
    steps = per_epoch * epochs
    small = small_start(problem, seed)
    net = Network(small.W, np.sign(small.a))
    save = np.unique(np.concatenate([np.arange(21), np.arange(0, steps + 1, per_epoch)]))
    run = descend(
        problem,
        net,
        lr=LR,
        steps=steps,
        batch_size=size,
        rng=seed,
        save=save.tolist(),
        observe=MEASURED,
        train="first",
        backend="dense",
        dtype="float32",
    )
    top = peaks(run)
    seen = [
        at_most(run.loss[1], 0.9, what="loss after one step"),
        at_most(run.loss[10], 0.5, what="loss after ten steps"),
        at_most(top["change_norms"], 10, what="peak of the change of norms (iteration)"),
        at_most(top["change_directions"], 1, what="peak of the change of directions (iteration)"),
    ]
    numbers = {
        "loss_after_1": float(run.loss[1]),
        "loss_after_10": float(run.loss[10]),
        "peaks": top,
        **{name: run[name][:11].tolist() for name in MEASURED},
    }
    summary = [
        f"One step takes the loss from 1 to {run.loss[1]:.2f}, ten to {run.loss[10]:.2f}; norms "
        f"change most at iteration {top['change_norms']}, within the first of {epochs} epochs.",
    ]
    caption = (
        f"{OPEN} Outer weights are +-1 and stay. {problem.n:,} images in batches of {size:,}, "
        f"{per_epoch} of them an epoch; measured after each of the first 20 steps, then after "
        "every epoch."
    )
    panels = panels_of(run, run.steps / per_epoch, "epoch")
    return Drawn([Picture(panels, 3, width=4.8, height=3.6)], numbers, summary, seen, caption)
