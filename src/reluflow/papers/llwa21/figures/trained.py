"""[LLWA21]_ Figure 2: trained networks on the data of Figure 1, and how small is small enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.gradientflow.flow import flow
from reluflow.gradientflow.stops import loss_below
from reluflow.network import Network, initialize
from reluflow.optimum.kkt import kkt
from reluflow.optimum.linear import LinearMargin
from reluflow.optimum.max_margin import NetworkMargin, max_margin
from reluflow.papers.figure import Drawn, figure
from reluflow.papers.llwa21.runs import best_network
from reluflow.plot.panels import Extent, boundary_panel
from reluflow.plot.traces import Line, Panel, Picture, Points, Rule, Trace
from reluflow.problem import Problem, datasets
from reluflow.sweeps import sweep
from reluflow.trajectory import Trajectory, every

M, SCALE = 20, 1e-3  # width (ours) and factor of the He law (the paper's)
BLACK, ORANGE, PURPLE, TEAL = "black", "darkorange", "darkviolet", "teal"
OF_DATA = {1.0: ("tab:red", "o"), -1.0: ("tab:blue", "s")}
PANELS = {"left": "(a) symmetric", "middle": "(b) one neuron wins", "right": "(c) hints"}
VIEWS = {
    "left": (-2.6, 2.6, -2.6, 2.6),
    "middle": (-3.3, 3.3, -3.0, 3.0),
    "right": (-1.2, 1.2, -1.2, 1.2),
}
SWEPT = {"hard": "points farther away than in (b)", "middle": "the points of (b)"}


def least_share(q: float) -> float:
    """Share of its limit's margin that a run has reached at q_min = q: 1 - 1/q.

    The margin is stationary at its limit, so that only smoothing keeps it below, by order 1/q_min.
    """
    return 1 - 1 / q


@dataclass(frozen=True, eq=False)
class Case:
    """One of the three data sets, in the plane that is drawn.

    ``end`` is the network that training is known to tend to, up to its size.
    """

    problem: Problem
    end: Network
    extent: Extent

    @cached_property
    def best(self) -> NetworkMargin:
        """The largest margin of any network, with the bound that meets it."""
        return max_margin(self.problem)

    @property
    def best_net(self) -> Network:
        """The network of that margin."""
        return best_network(self.best)

    @cached_property
    def line(self) -> LinearMargin:
        """The largest margin of a linear separator."""
        return max_margin(self.problem, model="linear")

    @cached_property
    def end_margin(self) -> float:
        """Normalised margin of ``end``."""
        return kkt(self.problem, self.end).margin

    @property
    def plane(self) -> Problem:
        """The data with two features; the constant third one of the middle case is a bias."""
        p = self.problem
        bias = float(p.X[0, 2]) if p.d == 3 else None
        return Problem(p.X[:, :2], p.y, p.loss, p.leak, bias=bias, name=p.name)

    def boundary(
        self, net: Network, label: str, color: str, dash: str = "-", width: float = 2.0
    ) -> Line:
        """Where f = 0 in the window."""
        plane = self.plane
        panel = boundary_panel(
            replace(net, bias=plane.bias), plane, extent=self.extent, resolution=401
        )
        (line,) = (trace for trace in panel.traces if isinstance(trace, Line))
        return replace(line, label=label, color=color, dash=dash, width=width)

    def samples(self, hints: int = 0) -> list[Trace]:
        """The data; the first ``hints`` of them as crosses."""
        X, y = self.problem.X[hints:], self.problem.y[hints:]
        found: list[Trace] = [
            Points(X[y == sign, 0], X[y == sign, 1], f"label {sign:+.0f}", color, marker, 42)
            for sign, (color, marker) in OF_DATA.items()
        ]
        if hints:
            at = self.problem.X[:hints]
            found.append(Points(at[:, 0], at[:, 1], "hints, label +1", "tab:red", "x", 60))
        return found

    def sup_error(self, net: Network, count: int = 4000) -> float:
        """Largest |f/|theta|^2 - g| over |g| of random unit inputs, g the same of ``end``."""
        inputs = np.random.default_rng(0).standard_normal((count, self.problem.d))
        inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
        units = (each.scaled(-0.5 * math.log(each.norm2)) for each in (net, self.end))
        f, g = (each.evaluate(inputs, self.problem.leak) for each in units)
        return float(np.abs(f - g).max() / np.abs(g).max())


def linear(w: Array, leak: float) -> Network:
    """(1 + leak)/4 <w, x> for a unit w: two neurons of opposite sign, norm 1."""
    return Network(np.array([w, -w]) / 2, np.array([0.5, -0.5]), leak=leak)


def one_neuron(w: Array, leak: float) -> Network:
    """phi(<w, x>)/2 for a unit w, norm 1."""
    return Network(w[None] / np.sqrt(2), np.array([1 / np.sqrt(2)]), leak=leak)


@cache
def case(name: str) -> Case:
    """ "left", "middle" or "right" of Figure 1, or "hard", the middle one with farther points."""
    if name == "left":
        problem = datasets.figure1_left()
        window = (-2.6, 5.4, -2.6, 2.6)
        return Case(problem, linear(problem.known["w_star"], problem.leak), window)
    if name == "right":
        problem, window = datasets.figure1_right(), (-1.0, 2.1, -1.0, 1.0)
    elif name == "hard":
        problem = datasets.figure1_middle(positive=(0.1, 10.0, 20.0), negative=(1.0, 5.0))
        window = (-5.5, 10.5, -2.5, 2.5)
    else:
        problem, window = datasets.figure1_middle(), (-3.5, 6.5, -3.4, 2.2)
    return Case(problem, one_neuron(problem.known["w_plus"], problem.leak), window)


def follow(name: str, net: Network, q: float) -> Trajectory:
    """Flow on the data divided by their radius, until the loss is e^-q."""
    this = case(name)
    radius = this.problem.known["radius"]
    unit = this.problem.replace(X=this.problem.X / radius)
    return flow(
        unit,
        net,
        clock="loss",
        stop=loss_below(log=-q),
        progress=False,
        save=every(0.02 * radius / this.end_margin),
        observe=["normalized_margin", "margin"],
    )


@cache
def trained(name: str, q: float, seed: int, scale: float = SCALE, m: int = M) -> Trajectory:
    """A run from ``scale`` times the He law."""
    return follow(name, initialize(case(name).problem, m, scale, "he", seed), q)


def margin_panel(
    this: Case, runs: Sequence[tuple[Trajectory, str, str]], *rules: Rule, low: float = 0.0
) -> Panel:
    """Share of the largest margin against q_min along runs, each with its label and colour."""
    traces: list[Trace] = list(rules)
    for run, label, color in runs:
        late = run["margin"] > 1.0
        share = run["normalized_margin"] * this.problem.known["radius"] / this.best.margin
        traces.append(Line(run["margin"][late], share[late], label, color))
    return Panel(
        traces,
        "normalised margin, share of the largest",
        "q_min = least y f(x)",
        xscale="log",
        ylim=(low, 1.08 - 0.08 * low),
        legend="lower right",
    )


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


def sweep_scales(
    name: str, scales: Sequence[float], draws: int, q: float, seed: int
) -> dict[str, Array]:
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
        found = sweep_scales(name, scales, draws, q_sweep, seed)
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
