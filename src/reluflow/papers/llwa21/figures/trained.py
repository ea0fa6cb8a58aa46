"""[LLWA21]_ Figure 2: trained networks on the data of Figure 1, and how small is small enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.optimum.kkt import kkt
from reluflow.papers.figure import Drawn, figure
from reluflow.papers.llwa21.figures.runs import SCALE, TEAL, M, case, least_share, trained
from reluflow.report.panels import boundary_panel
from reluflow.report.traces import Line, Panel, Picture, Points, Rule, Trace
from reluflow.sweeps import sweep
from reluflow.trajectory import Trajectory

PANELS = {"left": "(a) symmetric", "middle": "(b) one neuron wins", "right": "(c) hints"}
VIEWS = {
    "left": (-2.6, 2.6, -2.6, 2.6),
    "middle": (-3.3, 3.3, -3.0, 3.0),
    "right": (-1.2, 1.2, -1.2, 1.2),
}
SWEPT = {"hard": "points farther away than in (b)", "middle": "the points of (b)"}


def margins(name: str, run: Trajectory) -> tuple[float, float]:
    """Margin and smoothed margin at the end of a run, over the margin it should tend to."""
    this = case(name)
    found = kkt(run.problem, run.final)
    unit = this.problem.known["radius"] / this.end_margin
    return found.margin * unit, found.smoothed_margin * unit


def end_of(name: str, scale: float, m: int, q: float, seed: int) -> dict[str, float]:
    """How a run from ``scale`` times the He law ends: the task of the sweep.

    A smoothed margin above 1 excludes the one neuron as the limit, since it never falls again.
    """
    margin, smoothed = margins(name, trained(name, q, seed, scale, m))
    return {"margin": margin, "smoothed": smoothed}


def swept(name: str, scales: Sequence[float], draws: int, q: float, seed: int) -> dict[str, Array]:
    """Margins and smoothed margins, shape (scales, draws); draws keep their directions."""
    grid = {"name": name, "scale": list(scales), "m": M, "q": q}
    table = sweep(end_of, grid, seeds=draws, seed=seed, shared=["scale"], progress=False)
    found = table.to_xarray(["margin", "smoothed"]).sel(scale=list(scales))
    return {key: np.asarray(found[key]) for key in ("margin", "smoothed")}


def scale_panel(name: str, scales: Sequence[float], found: dict[str, Array]) -> Panel:
    """Margin over that of the one neuron against the scale, a line for each draw."""
    lines: list[Trace] = [Line(scales, draw, "", "0.6", width=1.0) for draw in found["margin"].T]
    bent = found["smoothed"] > 1.0
    x = np.broadcast_to(np.array(scales)[:, None], bent.shape)
    best = case(name).best.margin / case(name).end_margin
    return Panel(
        [
            Rule(best, "y", "largest margin of any network", dash="--"),
            Rule(1.0, "y", "one neuron, linear boundary", dash=":"),
            *lines,
            Points(x[~bent], found["margin"][~bent], "linear so far", TEAL),
            Points(x[bent], found["margin"][bent], "one neuron excluded", "tab:red", "D"),
        ],
        SWEPT[name],
        "scale of the start (times the He law)",
        "margin over that of one neuron",
        xscale="log",
        ylim=(0.9, 2.4),
        legend="center left",
    )


def threshold(name: str, scales: Sequence[float], found: dict[str, Array]) -> list[Comparison]:
    """Large starts end bent, the smallest ones linear."""
    bent = found["smoothed"] > 1.0
    large, small = int(np.argmax(scales)), int(np.argmin(scales))
    return [
        at_least(bent[large].mean(), 1.0, what=f"{SWEPT[name]}: draws bent at {scales[large]:g}"),
        at_most(bent[small].mean(), 0.0, what=f"{SWEPT[name]}: draws bent at {scales[small]:g}"),
        at_least(found["margin"][small].min(), 0.995, what="margin there over the one neuron's"),
    ]


@figure(
    "LLWA21",
    "F2",
    title="Trained networks have the linear boundaries the theory predicts, if started small",
    quick={
        "q": 500.0,
        "seeds": 1,
        "draws": 4,
        "scales": (1e-1, 1e-2, 1e-3, 1e-5),
        "q_sweep": 60.0,
        "names": ("hard",),
    },
    full={
        "q": 2000.0,
        "seeds": 4,
        "draws": 8,
        "scales": tuple(10.0**-k for k in range(7)),
        "q_sweep": 100.0,
        "names": ("hard", "middle"),
    },
    claims=("LLWA21-T4.3", "LLWA21-TA.7", "LLWA21-T6.2"),
)
def figure2(
    *, q: float, seeds: int, draws: int, scales: Any, q_sweep: float, names: Any, seed: int = 0
) -> Drawn:
    """Figure 2: contours of trained networks; then the margin at the end against the scale."""
    panels, seen, summary = [], [], []
    numbers: dict[str, Any] = {}
    for name, title in PANELS.items():
        this = case(name)
        runs = [trained(name, q, seed + k) for k in range(seeds)]
        shown = replace(runs[0].final, bias=this.plane.bias)
        panels.append(boundary_panel(shown, this.plane, extent=VIEWS[name], title=title))
        shares = [margins(name, run)[0] for run in runs]
        errors = [this.sup_error(run.final) for run in runs]
        numbers[name] = {"margins": shares, "sup_errors": errors}
        seen += [
            at_least(min(shares), least_share(q), what=f"{title}: margin over the predicted one"),
            at_most(max(shares), 1 + 1e-9, what=f"{title}: margin over the predicted one"),
            at_most(max(errors), 2e-2, what=f"{title}: distance of f to the prediction, relative"),
        ]
        summary.append(
            f"{title}: at a loss of e^-{q:g} the margin is {min(shares):.6f} of the predicted "
            f"limit's or more (draws: {seeds}), f within {max(errors):.1e} of it, relative."
        )
    pictures = [Picture(panels, 3, "Trained networks, f = 0 in black", width=5.6, height=4.4)]
    sweeps = []
    for name in names:
        found = swept(name, scales, draws, q_sweep, seed)
        bent = (found["smoothed"] > 1.0).mean(axis=1)
        sweeps.append(scale_panel(name, scales, found))
        seen += threshold(name, scales, found)
        numbers[f"scales of {name}"] = {"scales": list(scales), "bent": bent.tolist(), **found}
        summary.append(
            f"{SWEPT[name].capitalize()}, share of {draws} draws for which one neuron is excluded: "
            + ", ".join(f"{b:.2f} at {s:g}" for s, b in zip(scales, bent, strict=True))
            + "."
        )
    title = "How small is small: the same draws at several scales"
    pictures.append(Picture(sweeps, len(sweeps), title, "scales", width=6.0, height=4.0))
    caption = (
        f"Gradient flow instead of descent, {M} neurons, {SCALE:g} times the He law; red is high "
        "instead of light. In (b) the constant third feature is 0.05; there and in (c) far samples "
        "of label +1 are outside. The second picture is ours: "
        "below a scale sigma_max, which the theory does not make explicit, all draws are linear. "
        "At 0.001 a few draws may still end bent, on the points of (b) too."
    )
    return Drawn(pictures, numbers, summary, seen, caption)
