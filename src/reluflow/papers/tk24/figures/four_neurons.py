"""[TK24]_ Figures 1, 5, 6 and 7: four neurons on XOR data, from explicit starts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.descent import descend
from reluflow.network import axis_start
from reluflow.papers.figure import Drawn, figure
from reluflow.problem import Problem, datasets
from reluflow.report.traces import Line, Panel, Picture
from reluflow.trajectory import Trajectory, every

FOUR_EPOCHS = 2**15
FOUR_SCALES = {
    "F1": (1e-4, 1e-5, 1e-7, 1e-6),
    "F6": (1e-4, 1e-5, 1e-6, 1e-7),
    "F7": (1e-4, 1e-6, 1e-5, 1e-7),
}
WIDE: dict[str, Any] = {"m": 4096, "lr": 2.0**-4, "epochs": 8192, "scale": 2.0**-7, "rng": 2}
WINDOWS = ((0, FOUR_EPOCHS), (0, 3584), (3584, 15872), (15872, FOUR_EPOCHS))
STYLES = (("tab:blue", "-"), ("tab:orange", "-"), ("tab:green", "--"), ("tab:red", "--"))
QUICK, FULL = {"stride": 32}, {"stride": 4}
CLAIMS = ("TK24-A5.4", "TK24-PD.2", "TK24-LD.1")


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


@figure(
    "TK24",
    "F1",
    title="XOR with four neurons: they grow one after the other and end equal",
    quick=QUICK,
    full=FULL,
    claims=CLAIMS,
)
def figure1(*, stride: int, seed: int = 0) -> Drawn:
    """Figure 1: four neurons grow one after the other and end with equal norms."""
    return _four("F1", stride, rows=2)


@figure(
    "TK24",
    "F5",
    title="The run of Figure 1, one window of epochs a row",
    quick=QUICK,
    full=FULL,
)
def figure5(*, stride: int, seed: int = 0) -> Drawn:
    """Figure 5: the run of Figure 1 in four rows."""
    return _four("F1", stride, rows=4)


@figure(
    "TK24",
    "F6",
    title="Four neurons from other scales: the order changes, the end does not",
    quick=QUICK,
    full=FULL,
)
def figure6(*, stride: int, seed: int = 0) -> Drawn:
    """Figure 6: neurons 3 and 4 change places."""
    return _four("F6", stride, rows=4)


@figure(
    "TK24",
    "F7",
    title="Four neurons, those of one class first: the same end",
    quick=QUICK,
    full=FULL,
)
def figure7(*, stride: int, seed: int = 0) -> Drawn:
    """Figure 7: both neurons of the first class grow before those of the second."""
    return _four("F7", stride, rows=4)


def _four(name: str, stride: int, rows: int) -> Drawn:
    """Angles and norms against epochs in the paper's four windows, as 2 x 4 or 4 x 2 panels."""
    scales = FOUR_SCALES[name]
    observe = ["norms", signed_angles, "normalized_margin", "accuracy"]
    run = four_neuron_run(scales, every(stride), observe)
    made = {
        name: [_window(run, name, label, window, k == 0) for k, window in enumerate(WINDOWS)]
        for name, label in (("signed_angles", "signed angle (rad)"), ("norms", "norm of w"))
    }
    both = (made["signed_angles"], made["norms"])
    turned = zip(*both, strict=True)
    panels = [panel for line in (both if rows == 2 else turned) for panel in line]
    width = 3.9 if rows == 2 else 5.2
    picture = Picture(panels, 8 // rows, width=width, height=3.2 if rows == 2 else 2.6)
    numbers = _numbers(run, scales)
    norms, grown = numbers["norms"], numbers["epochs_at_norm_1"]
    summary = [
        f"Final norms {', '.join(f'{v:.4f}' for v in norms)}, loss {run.loss[-1]:.2e}.",
        f"Normalised margin is {numbers['margin_ratio']:.7f} of the largest possible.",
        f"The neurons pass norm 1 at epochs {', '.join(f'{e:,}' for e in grown)}; all samples are "
        f"classified rightly from epoch {numbers['epoch_of_perfect_accuracy']:,} on.",
    ]
    caption = (
        "The sample is ours: the paper's is drawn by the generator of another library. Its draw "
        "decides the size and sign of the angles and moves epochs by some hundreds. Neurons 1 to 4 "
        "start along e1, e2, -e1, -e2; the labels are those of the text, minus those of the code. "
        "Steps of descent across kinks make the angles tremble."
    )
    return Drawn([picture], numbers, summary, _seen(run, scales, numbers), caption)


def _window(run: Trajectory, name: str, label: str, window: tuple[int, int], legend: bool) -> Panel:
    """One quantity of the four neurons in one window of epochs."""
    low, high = window
    inside = (run.steps >= low) & (run.steps <= high)
    lines = [
        Line(run.steps[inside] / 1000, run[name][inside, j], f"neuron {j + 1}", *STYLES[j])
        for j in range(4)
    ]
    title = f"{label.partition(' (')[0]}, epochs {low:,} to {high:,}"
    return Panel(lines, title, "epoch (thousands)", label, legend="best" if legend else "")


def _numbers(run: Trajectory, scales: tuple[float, ...]) -> dict[str, Any]:
    """What the figures say."""
    norms, angles = run["norms"], run["signed_angles"]
    wrong = np.flatnonzero(run["accuracy"] < 1)
    pairs = np.abs(angles[:, :2] - angles[:, 2:])
    return {
        "start": list(scales),
        "norms": norms[-1].tolist(),
        "loss": float(run.loss[-1]),
        "margin_ratio": float(run["normalized_margin"][-1] / run.problem.known["max_margin"]),
        "largest_angle": float(np.abs(angles).max()),
        "final_angle": float(np.abs(angles[-1]).max()),
        "largest_difference_of_opposite_angles": float(pairs.max()),
        "epochs_at_norm_1": [int(run.steps[np.argmax(norms[:, j] > 1.0)]) for j in range(4)],
        "epoch_of_perfect_accuracy": int(run.steps[wrong[-1] + 1]) if len(wrong) else 0,
    }


def _seen(run: Trajectory, scales: tuple[float, ...], found: dict[str, Any]) -> list[Comparison]:
    """Growth in the order of the initial norms, small angles in pairs, an equal end."""
    norms, angle = np.array(found["norms"]), found["largest_angle"]
    order = np.argsort(scales)[::-1]
    gaps = np.diff(np.array(found["epochs_at_norm_1"])[order])
    alike = found["largest_difference_of_opposite_angles"] / angle
    perfect = found["epoch_of_perfect_accuracy"]
    return [
        at_least(gaps.min(), 100, what="epochs between growths, in the order of initial norms"),
        equals(perfect, 8500, tolerance=500, what="epoch from which accuracy is perfect"),
        at_most(norms.max() / norms.min(), 1.0005, what="ratio of the final norms"),
        equals(norms.mean(), 5.49, tolerance=0.01, what="final norm"),
        at_most(angle, 0.01, what="largest angle (rad)"),
        at_most(alike, 0.25, what="difference of opposite neurons' angles over the largest angle"),
        at_most(found["final_angle"], 2e-4, what="final angle (rad)"),
        at_least(found["margin_ratio"], 0.99999, what="normalised margin over the largest"),
        at_most(run.loss[-1], 1e-12, what="final loss"),
    ]
