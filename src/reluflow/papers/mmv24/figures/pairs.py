"""[MMV24]_ Figures 7 to 9: two positive points, less and less correlated, then orthogonal."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.papers.figure import Drawn, figure
from reluflow.papers.mmv24.figures.drift import COMMON, SHOWN, outside, plane_panel, plane_run
from reluflow.problem import datasets
from reluflow.report.traces import Line, Panel, Picture, Points, Rule
from reluflow.sweeps import sweep

ANGLES = {"F7": 0.1, "F8": 0.001, "F9": 0.0}
MEASURED = (
    "at 7,000",
    "at 14,000",
    "at 21,000",
    "along",
    "along, late",
    "nearest",
    "largest outside",
    "inside",
    "loss",
)
QUICK, FULL = {"runs": 6}, {"runs": 20}


def counted(angle: float, start: int) -> dict[str, float]:
    """Live positive neurons outside S_+ at 7,000, 14,000 and 21,000, and how large they are.

    Also their least cosine with x_1 or x_2 at 7,000, apart for those whose outer weight was
    negative at first ("late"), and that of live positive neurons with x_1, x_2 or x_+ at 21,000.
    """
    problem = datasets.two_points(angle)
    run = plane_run(problem, start, (0, 7_000, 14_000, 21_000))
    astray = [outside(problem, net) & (net.a > 0) for net in run.path()]
    norm = np.exp(run.final.log_norms)
    positive = run.final.a > 0
    live = (problem.X @ run.final.W.T > 0).any(axis=0) & positive
    targets = np.vstack([problem.X, problem.X.sum(axis=0)])
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    along = (run.path()[1].directions @ targets[:2].T).max(axis=1)
    late_sign = run.path()[0].a < 0
    nearest = (run.final.directions[live] @ targets.T).max(axis=1)
    return {
        "at 7,000": float(astray[1].sum()),
        "at 14,000": float(astray[2].sum()),
        "at 21,000": float(astray[3].sum()),
        "along": float(along[astray[1] & ~late_sign].min(initial=1.0)),
        "along, late": float(along[astray[1] & late_sign].min(initial=1.0)),
        "nearest": float(nearest.min(initial=1.0)),
        "largest outside": float(norm[astray[3]].max(initial=0.0)),
        "inside": float(np.sqrt(np.sum(norm[positive & ~astray[3]] ** 2))),
        "loss": float(run.loss[-1]),
    }


@cache
def counts(angle: float, runs: int) -> dict[str, Any]:
    """Columns of :func:`counted` over several starts."""
    table = sweep(
        counted, {"angle": angle, "start": list(range(runs))}, executor="serial", progress=False
    )
    rows = sorted(table.rows(), key=lambda row: row["start"])
    return {name: np.array([row[name] for row in rows]) for name in MEASURED}


def drawn(name: str, runs: int, seed: int, seen: list[Comparison], words: str) -> Drawn:
    """Neurons of one start at four iterations, its loss, and the counts of all starts."""
    angle = ANGLES[name]
    problem, found = datasets.two_points(angle), counts(angle, runs)
    run = plane_run(problem, seed, range(0, SHOWN[-1] + 1, 100))
    reach = 1.15 * max(1.0, float(np.abs(run.final.weights()[0]).max()))
    panels = []
    for step in SHOWN:
        net = run.path()[step // 100]
        left = int((outside(problem, net) & (net.a > 0)).sum())
        title = f"iteration {step:,}: {left} outside S_+"
        panels.append(plane_panel(problem, net, title, reach))
    marks = [Rule(step, dash=":") for step in SHOWN[1:]]
    starts = np.arange(runs)
    columns = (("at 7,000", "tab:orange", "o"), ("at 21,000", "tab:blue", "x"))
    panels += [
        Panel([*marks, Line(run.steps, run.loss, "", "tab:blue")], "loss", "iteration", "loss"),
        Panel(
            [
                Points(starts, found[key], key, colour, marker, 40)
                for key, colour, marker in columns
            ],
            "live positive neurons outside S_+",
            "start",
            "neurons",
            ylim=(-1.0, 1.35 * max(4.0, found["at 7,000"].max())),
            legend="upper right",
        ),
    ]
    numbers = {key: value.tolist() for key, value in found.items()}
    low, high = found["at 7,000"].min(), found["at 7,000"].max()
    summary = [
        f"In {runs} starts {low:.0f} to {high:.0f} live positive neurons are outside S_+ at 7,000 "
        f"and {found['at 21,000'].min():.0f} to {found['at 21,000'].max():.0f} at 21,000; the loss "
        f"at 21,000 is {found['loss'].min():.4f} to {found['loss'].max():.4f}.",
        words,
    ]
    caption = (
        f"{COMMON} The paper shows one start; the last panel has {runs}. With one label alone "
        "negative neurons can but die. Signs of outer weights may change, the starts being "
        "unbalanced."
    )
    return Drawn([Picture(panels, 3, width=4.4, height=4.0)], numbers, summary, seen, caption)


@figure(
    "MMV24",
    "F7",
    title="Two points with correlation 0.1: every live neuron gets inside",
    quick=QUICK,
    full=FULL,
    claims=("MMV24-T1.1",),
)
def figure7(*, runs: int, seed: int = 0) -> Drawn:
    """Figure 7: at 7,000 no live positive neuron is outside S_+, or one in few runs."""
    found = counts(ANGLES["F7"], runs)
    clean = float(np.mean(found["at 7,000"] == 0))
    shown = counted(ANGLES["F7"], seed)["at 7,000"]
    seen = [
        at_most(shown, 1, what="outside at 7,000, the start shown"),
        at_most(found["at 7,000"].max(), 1, what="outside at 7,000, any start"),
        equals(found["at 14,000"].max(), 0, tolerance=0, what="outside at 14,000, any start"),
        at_least(clean, 0.8, what="share of starts with none outside at 7,000"),
        at_most(found["loss"].max(), 0.01, what="loss at 21,000"),
    ]
    words = f"None is outside at 7,000 in {100 * clean:.0f} % of the starts."
    return drawn("F7", runs, seed, seen, words)


@figure(
    "MMV24",
    "F8",
    title="Two points with correlation 0.001: some neurons align late",
    quick=QUICK,
    full=FULL,
    claims=("MMV24-DT",),
)
def figure8(*, runs: int, seed: int = 0) -> Drawn:
    """Figure 8: some live neurons are still along x_1 or x_2 at 7,000."""
    found, easy = counts(ANGLES["F8"], runs), counts(ANGLES["F7"], runs)
    left = float(np.mean(found["at 21,000"] >= 1))
    seen = [
        at_least(found["at 7,000"].min(), 5, what="outside at 7,000, least of all starts"),
        at_least(
            (found["at 7,000"] - easy["at 7,000"]).min(),
            1,
            what="more than with correlation 0.1, least of all starts",
        ),
        at_least(
            found["along"].min(),
            0.99,
            what="cosine of those outside with x_1 or x_2 at "
            "7,000, least of all that were positive from the start",
        ),
        at_most(found["at 21,000"].max(), 3, what="outside at 21,000, any start"),
        at_least(
            left,
            0.6 - 2 * np.sqrt(0.24 / runs),
            what="share of starts with one left at 21,000; 0.6 less 2 standard errors",
        ),
    ]
    words = (
        f"At least one is left at 21,000 in {100 * left:.0f} % of the starts (the paper's run has "
        "one). A neuron active on one point passes to both after a time of order log(1/mu). Those "
        f"outside at 7,000 have a cosine of {found['along'].min():.4f} or more with x_1 or x_2; "
        f"{found['along, late'].min():.3f} for those whose outer weight was negative at first, "
        "which arrive later."
    )
    return drawn("F8", runs, seed, seen, words)


@figure(
    "MMV24",
    "F9",
    title="Two orthogonal points: three directions, and only one of them grows",
    quick=QUICK,
    full=FULL,
)
def figure9(*, runs: int, seed: int = 0) -> Drawn:
    """Figure 9: final directions x_1, x_2 or x_+; only neurons along x_+ grow."""
    found = counts(ANGLES["F9"], runs)
    steady = float(np.abs(found["at 21,000"] - found["at 7,000"]).max())
    ratio = float((found["largest outside"] / found["inside"]).max())
    seen = [
        at_least(found["at 7,000"].min(), 10, what="outside at 7,000, least of all starts"),
        at_most(found["at 7,000"].max(), 30, what="outside at 7,000, most of all starts"),
        equals(steady, 0, tolerance=0, what="change of the count from 7,000 to 21,000"),
        at_most(ratio, 0.05, what="largest outside over the norm of all inside, at 21,000"),
        at_least(
            found["nearest"].min(),
            0.999,
            what="cosine to x_1, x_2 or x_+ at 21,000, least of all live neurons",
        ),
    ]
    words = (
        f"The count does not change between; at the end no neuron outside has more than "
        f"{ratio:.1e} of the norm of those inside. The theory asks for a positive correlation "
        "and is silent here."
    )
    return drawn("F9", runs, seed, seen, words)
