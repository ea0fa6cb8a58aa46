"""[TK24]_: XOR-like data, four neurons by explicit starts and a wide network."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.descent import descend
from reluflow.network import axis_start, initialize
from reluflow.papers.figure import Figure, write_picture
from reluflow.problem import Problem, datasets
from reluflow.trajectory import Trajectory, every

FOUR_EPOCHS = 2**15
FOUR_SCALES = {
    "F1": (1e-4, 1e-5, 1e-7, 1e-6),
    "F6": (1e-4, 1e-5, 1e-6, 1e-7),
    "F7": (1e-4, 1e-6, 1e-5, 1e-7),
}
WIDE = {"m": 4096, "lr": 2.0**-4, "epochs": 8192, "scale": 2.0**-7, "seed": 2}
WIDE_QUICK = {**WIDE, "m": 256}


def four_neuron_rate(epoch: int) -> float:
    """Step size of the four-neuron runs: long steps, a plateau, then linear and doubling growth."""
    base = 2.0**-7
    if epoch < 12:
        return 4.0
    if epoch < 2**13:
        return base
    if epoch < 2**14:
        return base * (1 + 32 * (epoch / 2**13 - 1))
    return base * (1 + 32 * 2.0 ** ((epoch - 2**14) / 512))


def four_neuron_run(
    scales: tuple[float, ...] = FOUR_SCALES["F1"], save: Any = None, observe: Any = None
) -> Trajectory:
    """The run of Figures 1, 5, 6 and 7 from the given initial norms."""
    problem = datasets.symmetric_xor()
    rates = np.array([four_neuron_rate(t) for t in range(FOUR_EPOCHS)])
    net = axis_start(problem, scales)
    return descend(problem, net, lr=rates, steps=FOUR_EPOCHS, save=save, observe=observe)


def signed_angles(problem: Problem, net: Any) -> np.ndarray:
    """Angle of each of the four neurons to its axis, in the paper's orientation."""
    x, y = net.W[:, 0], net.W[:, 1]
    return np.array(
        [
            math.atan2(y[0], x[0]),
            math.atan2(x[1], y[1]),
            math.atan2(y[2], -x[2]),
            math.atan2(x[3], -y[3]),
        ]
    )


def wide_run(alpha: float, settings: dict[str, Any] = WIDE, save: Any = None) -> Trajectory:
    """The run of Figure 2: PyTorch's default law times 2^-7, full-batch descent."""
    problem = datasets.skewed_xor(alpha)
    net = initialize(
        problem, settings["m"], scale=settings["scale"], kind="pytorch", rng=settings["seed"]
    )
    how = {"lr": settings["lr"], "steps": settings["epochs"]}
    return descend(problem, net, save=save, observe="frobenius", **how)


def figure1(out: Path, quick: bool = False) -> Figure:
    """Figure 1: four neurons grow one after the other and end with equal norms."""
    run = four_neuron_run(save=every(16), observe=["norms", signed_angles, "normalized_margin"])
    from matplotlib.figure import Figure as Canvas

    windows = ((0, FOUR_EPOCHS), (0, 3584), (3584, 15872), (15872, FOUR_EPOCHS))
    canvas = Canvas(figsize=(15, 6), layout="constrained")
    axes = canvas.subplots(2, 4)
    for column, (low, high) in enumerate(windows):
        inside = (run.steps >= low) & (run.steps <= high)
        for row, (name, label) in enumerate(
            (("signed_angles", "signed angle"), ("norms", "norm of w"))
        ):
            ax = axes[row, column]
            ax.plot(run.steps[inside], run[name][inside], label=["1", "2", "3", "4"])
            ax.set_xlabel("epoch")
            ax.set_ylabel(label)
    axes[0, 0].legend(title="neuron", fontsize="small")
    path = write_picture(canvas, out / "tk24-f1.png")
    norms = run["norms"][-1]
    margin = float(run["normalized_margin"][-1])
    best = float(run.problem.known["max_margin"])
    numbers = {
        "norms": norms.tolist(),
        "loss": float(run.loss[-1]),
        "margin_ratio": margin / best,
        "largest_angle": float(np.max(np.abs(run["signed_angles"]))),
    }
    summary = (
        f"Final norms {', '.join(f'{v:.4f}' for v in norms)}, loss {run.loss[-1]:.2e}.",
        f"Normalised margin is {margin / best:.7f} of the largest possible.",
    )
    return Figure("TK24", "F1", "XOR with four neurons", (path,), numbers, summary)


def figure2(out: Path, quick: bool = False) -> Figure:
    """Figure 2: a wide network on XOR-like data gathers on four directions."""
    settings = WIDE_QUICK if quick else WIDE
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(10, 7), layout="constrained")
    axes = canvas.subplots(2, 2)
    numbers: dict[str, Any] = {}
    summary = []
    for column, (alpha, name) in enumerate(((math.pi / 2, "pi/2"), (math.pi / 3, "pi/3"))):
        run = wide_run(alpha, settings, save=every(64))
        frobenius = run["frobenius"]
        share = np.exp(2 * run.final.log_norms)
        share /= share.sum()
        axes[0, column].plot(run.steps, frobenius)
        axes[0, column].set(xlabel="epoch", ylabel="Frobenius norm of W", title=f"angle {name}")
        angles = np.arctan2(run.final.W[:, 1], run.final.W[:, 0])
        axes[1, column].scatter(share, angles, s=4, rasterized=True)
        axes[1, column].set(
            xlabel="share of the squared norm", ylabel="angle of w", ylim=(-3.3, 3.3)
        )
        numbers[name] = {"start": float(frobenius[0]), "end": float(frobenius[-1])}
        summary.append(
            f"Angle {name}: norm of W grows from {frobenius[0]:.3f} to {frobenius[-1]:.3f}."
        )
    path = write_picture(canvas, out / "tk24-f2.png")
    title = f"XOR-like data, {settings['m']} neurons" + (" (quick version)" if quick else "")
    return Figure("TK24", "F2", title, (path,), numbers, tuple(summary), settings)
