"""[TK24]_: XOR-like data, four neurons by explicit starts and a wide network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reluflow.claims.verdict import at_least, at_most, equals
from reluflow.descent import descend
from reluflow.network import axis_start, initialize
from reluflow.papers.figure import Drawn, figure
from reluflow.problem import Problem, datasets
from reluflow.report.traces import Line, Panel, Picture, Points
from reluflow.trajectory import Trajectory, every

FOUR_EPOCHS = 2**15
FOUR_SCALES = {
    "F1": (1e-4, 1e-5, 1e-7, 1e-6),
    "F6": (1e-4, 1e-5, 1e-6, 1e-7),
    "F7": (1e-4, 1e-6, 1e-5, 1e-7),
}
WIDE: dict[str, Any] = {"m": 4096, "lr": 2.0**-4, "epochs": 8192, "scale": 2.0**-7, "rng": 2}
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
        problem, settings["m"], scale=settings["scale"], kind="pytorch", rng=settings["rng"]
    )
    how = {"lr": settings["lr"], "steps": settings["epochs"]}
    return descend(problem, net, save=save, observe="frobenius", **how)


@figure(
    "TK24",
    "F1",
    title="XOR with four neurons: they grow one after the other and end equal",
    quick={"stride": 32},
    full={"stride": 4},
    claims=("TK24-INV", "TK24-PD.2", "TK24-LD.1"),
)
def figure1(*, stride: int, seed: int = 0) -> Drawn:
    """Figure 1: four neurons grow one after the other and end with equal norms."""
    run = four_neuron_run(save=every(stride), observe=["norms", signed_angles, "normalized_margin"])
    windows = ((0, FOUR_EPOCHS), (0, 3584), (3584, 15872), (15872, FOUR_EPOCHS))
    panels = []
    for name, label in (("signed_angles", "signed angle (rad)"), ("norms", "norm of w")):
        for low, high in windows:
            inside = (run.steps >= low) & (run.steps <= high)
            lines = [
                Line(run.steps[inside], run[name][inside, j], f"neuron {j + 1}") for j in range(4)
            ]
            legend = "best" if (low, high) == windows[0] else ""
            title = f"{label.partition(' (')[0]}, epochs {low:,} to {high:,}"
            panels.append(Panel(lines, title, "epoch", label, legend=legend))
    norms = run["norms"][-1]
    angles = np.abs(run["signed_angles"])
    ratio = float(run["normalized_margin"][-1]) / float(run.problem.known["max_margin"])
    grown = [int(run.steps[np.argmax(run["norms"][:, j] > 1.0)]) for j in range(4)]
    numbers = {
        "norms": norms.tolist(),
        "loss": float(run.loss[-1]),
        "margin_ratio": ratio,
        "largest_angle": float(angles.max()),
        "epochs_at_norm_1": grown,
    }
    order = np.argsort(FOUR_SCALES["F1"])[::-1]
    seen = [
        at_least(np.diff(np.array(grown)[order]).min(), 0, what="epochs between growths, in order"),
        at_most(norms.max() / norms.min(), 1.0005, what="ratio of the final norms"),
        equals(norms.mean(), 5.49, tolerance=0.02, what="final norm"),
        at_most(angles.max(), 0.01, what="largest angle (rad)"),
        at_most(angles[-1].max(), 2e-4, what="final angle (rad)"),
        at_least(ratio, 0.9999, what="normalised margin over the largest"),
        at_most(run.loss[-1], 1e-12, what="final loss"),
    ]
    summary = [
        f"Final norms {', '.join(f'{v:.4f}' for v in norms)}, loss {run.loss[-1]:.2e}.",
        f"Normalised margin is {ratio:.7f} of the largest possible.",
        f"The neurons pass norm 1 at epochs {', '.join(f'{e:,}' for e in grown)}.",
    ]
    caption = "The sample is ours: the paper's is drawn by the generator of another library."
    return Drawn([Picture(panels, 4, width=3.9, height=3.2)], numbers, summary, seen, caption)


@figure(
    "TK24",
    "F2",
    title="XOR-like data: a wide network gathers on four directions",
    quick={**WIDE_QUICK},
    full={**WIDE},
    claims=("TK24-L5.2",),
)
def figure2(*, seed: int = 0, **settings: Any) -> Drawn:
    """Figure 2: a wide network on XOR-like data gathers on four directions."""
    from reluflow.landscape.extremal import extremal_vectors

    numbers: dict[str, Any] = {}
    summary: list[str] = []
    seen = []
    norms, scatters = [], []
    for alpha, name, low, high in (
        (math.pi / 2, "pi/2", 5.4, 5.7),
        (math.pi / 3, "pi/3", 5.8, 6.1),
    ):
        run = wide_run(alpha, settings, save=every(64))
        frobenius = run["frobenius"]
        share = np.exp(2 * run.final.log_norms)
        share /= share.sum()
        angles = np.arctan2(run.final.W[:, 1], run.final.W[:, 0])
        maxima = extremal_vectors(run.problem)
        near = np.max(run.final.directions @ maxima.vectors.T, axis=1) > math.cos(0.1)
        norms.append(
            Panel([Line(run.steps, frobenius)], f"angle {name}", "epoch", "Frobenius norm of W")
        )
        scatters.append(
            Panel(
                [Points(share, angles, size=6, color="tab:blue")], f"neurons at the end, {name}",
                "share of the squared norm", "angle of w", ylim=(-3.3, 3.3),
            )
        )  # fmt: skip
        numbers[name] = {
            "start": float(frobenius[0]),
            "end": float(frobenius[-1]),
            "share_on_four_directions": float(share[near].sum()),
        }
        seen += [
            at_least(frobenius[-1], low, what=f"final norm, {name}"),
            at_most(frobenius[-1], high, what=f"final norm, {name}"),
            equals(len(maxima), 4, tolerance=0, what=f"extremal directions, {name}"),
            at_least(share[near].sum(), 0.999, what=f"norm^2 within 0.1 rad of them, {name}"),
        ]
        summary.append(
            f"Angle {name}: norm of W grows from {frobenius[0]:.3f} to {frobenius[-1]:.3f}; "
            f"{100 * share[near].sum():.3f} % of the squared norm lies within 0.1 rad of the four "
            "extremal directions."
        )
    title = f"XOR-like data, {settings['m']} neurons"
    picture = Picture([*norms, *scatters], 2, title)
    caption = "The sample is ours, so the final norms differ from the paper's by some hundredths."
    return Drawn([picture], numbers, summary, seen, caption)
