"""Data, starts and runs behind [LLWA21]_ Figures 1 and 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from reluflow.arrays import Array
from reluflow.gradientflow.flow import flow
from reluflow.gradientflow.stops import loss_below
from reluflow.network import Network, initialize
from reluflow.optimum.kkt import kkt
from reluflow.optimum.linear import LinearMargin
from reluflow.optimum.max_margin import NetworkMargin, max_margin
from reluflow.problem import Problem, datasets
from reluflow.report.panels import Extent, boundary_panel
from reluflow.report.traces import Line, Panel, Points, Rule, Trace
from reluflow.trajectory import Trajectory, every

M, SCALE = 20, 1e-3  # width (ours) and factor of the He law (the paper's)
BLACK, ORANGE, PURPLE, TEAL = "black", "darkorange", "darkviolet", "teal"
OF_DATA = {1.0: ("tab:red", "o"), -1.0: ("tab:blue", "s")}


def least_share(q: float) -> float:
    """Share of its limit's margin that a run has reached at q_min = q: 1 - 1/q, with room.

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
        f, g = (_direction(each).evaluate(inputs, self.problem.leak) for each in (net, self.end))
        return float(np.abs(f - g).max() / np.abs(g).max())


def _direction(net: Network) -> Network:
    """The network divided by its norm."""
    W, a = net.weights()
    size = np.sqrt((W**2).sum() + (a**2).sum())
    return Network(W / size, a / size, leak=net.leak)


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
