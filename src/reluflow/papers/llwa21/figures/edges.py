"""[LLWA21]_ Figure 3: ridge, valley and refraction edge, as runs of one neuron in the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.gradientflow.flow import flow
from reluflow.kernels.codes import BRANCH, CROSS, SLIDE
from reluflow.network import Network
from reluflow.papers.figure import Drawn, figure
from reluflow.plot.traces import Image, Line, Panel, Picture, Points, Trace
from reluflow.problem import Problem
from reluflow.problem.losses import Logistic
from reluflow.trajectory import Trajectory

LEAK, FIRST, NUDGE = 0.2, 0.15, 1e-7
EXTENT = (0.0, 1.3, -0.65, 0.65)


@dataclass(frozen=True)
class Edge:
    """Two samples whose first one has the hyperplane w_2 = 0; one neuron with a > 0.

    With pulls c and slope h on the first sample, w_2 moves at a (c_2 <x_1, x_2> + h c_1): speeds
    of one sign on both sides are a refraction, towards each other a valley, apart a ridge.
    """

    name: str
    second: tuple[float, float]
    label: float

    @property
    def problem(self) -> Problem:
        """Samples (0, 1) with the given label and the second one with label +1."""
        X = np.array([(0.0, 1.0), self.second])
        return Problem(X, np.array([self.label, 1.0]), Logistic(), LEAK, name=self.name)

    def speeds(self, w: float = FIRST) -> tuple[float, float]:
        """Speed of w_2 on the active and on the other side of the hyperplane, at w = (w, 0)."""
        problem = self.problem
        c = problem.pull_at(problem.outputs(start(w, 0.0)))
        active, other = (w * (c[1] * self.second[1] + h * c[0]) for h in (1.0, LEAK))
        return active, other

    def run(self, w: float, h: float, t_end: float, on_branch: str = "stay") -> Trajectory:
        """The flow from the balanced neuron with inner weight (w, h)."""
        times = np.linspace(0.0, t_end, 121)
        return flow(
            self.problem, start(w, h), t_end=t_end, save=times, on_branch=on_branch, progress=False
        )

    def spread(self, t_end: float) -> float:
        """Distance at the end of two runs that start ``NUDGE`` apart on either side, over it."""
        ends = [path(self.run(FIRST, s * NUDGE / 2, t_end))[-1] for s in (1, -1)]
        return float(np.linalg.norm(ends[0] - ends[1]) / NUDGE)


EDGES = (
    Edge("ridge", (1.0, -0.6), 1.0),
    Edge("valley", (1.0, 0.6), -1.0),
    Edge("refraction edge", (1.0, 0.5), 1.0),
)


def start(w: float, h: float) -> Network:
    """One balanced neuron with inner weight (w, h) and a > 0."""
    return Network(np.array([[w, h]]), np.array([np.hypot(w, h)]), leak=LEAK)


def path(run: Trajectory) -> Array:
    """Inner weights of the one neuron, shape (records, 2)."""
    return np.array([net.weights()[0][0] for net in run.path()])


def events(run: Trajectory, kind: int) -> int:
    """How many events of a kind a run met."""
    return int(np.count_nonzero(np.asarray(run.events["kind"]) == kind))


def loss_over(problem: Problem, resolution: int = 121) -> Array:
    """Loss of the balanced neuron with inner weight w, over the window."""
    x = np.linspace(EXTENT[0], EXTENT[1], resolution)
    y = np.linspace(EXTENT[2], EXTENT[3], resolution)
    W = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    S = W @ problem.X.T
    f = np.linalg.norm(W, axis=1)[:, None] * np.maximum(S, LEAK * S)
    return np.array([problem.value(row) for row in f]).reshape(resolution, resolution)


def panel(edge: Edge, runs: list[Trajectory], held: list[Trajectory]) -> Panel:
    """Loss in grey, runs in red, what is held on the hyperplane dashed."""
    loss = loss_over(edge.problem)
    levels = np.linspace(loss.min(), loss.max(), 16).tolist()
    traces: list[Trace] = [
        Image(loss, EXTENT, levels, "Greys_r", symmetric=False, origin="lower"),
        Line(EXTENT[:2], [0.0, 0.0], "", "black", ":", 1.2),
    ]
    for run in runs:
        W = path(run)
        traces.append(Line(W[:, 0], W[:, 1], "", "red", width=1.6))
        traces.append(Points(W[:1, 0], W[:1, 1], "", "red"))
    for run in held:
        W = path(run)
        traces.append(Line(W[:, 0], W[:, 1], "", "red", "--", 2.2))
    active, other = (speed / FIRST for speed in edge.speeds())
    return Panel(
        traces,
        f"{edge.name}\nspeed of w_2: {active:+.2f} above, {other:+.2f} below",
        "w_1",
        "w_2",
        xlim=EXTENT[:2],
        ylim=EXTENT[2:],
        equal=True,
    )


@figure(
    "LLWA21",
    "F3",
    title="Ridge, valley and refraction edge: only a ridge lets trajectories branch",
    quick={"t_end": 7.0},
    full={"t_end": 7.0},
    claims=("LLWA21-LB.15", "LLWA21-I2"),
)
def figure3(*, t_end: float, seed: int = 0) -> Drawn:
    """Figure 3: runs of one neuron where <w, x_1> = 0."""
    ridge, valley, refraction = EDGES
    panels, seen = [], []
    held = ridge.run(FIRST, 0.0, t_end)
    leaving: list[Trajectory] = []
    for i in (0, 40, 70):
        (w, _), spent = path(held)[i], float(held.times[i])
        leaving += [ridge.run(w, side * NUDGE, t_end - spent) for side in (1, -1)]
    beside = [ridge.run(FIRST, h, t_end) for h in (0.1, -0.1)]
    panels.append(panel(ridge, [*leaving, *beside], [held]))
    out = min(np.array([path(run)[-1, 1] for run in leaving]) * np.tile([1, -1], 3))
    met = sum(len(run.events["kind"]) for run in beside)
    seen += [
        *_sides(ridge, apart=True),
        at_least(events(held, BRANCH), 1, what="ridge: branch events of a start on it"),
        at_most(np.abs(path(held)[:, 1]).max(), 0.0, what="ridge: height of the run held on it"),
        at_most(met, 0, what="ridge: events of runs beside it (none arrives)"),
        at_least(out, 1e-3, what="ridge: runs that leave it at three times, to either side"),
        at_least(ridge.spread(t_end), 1e5, what="ridge: spread of two runs over their distance"),
    ]

    falling = [valley.run(FIRST, h, t_end) for h in (0.2, 0.1, 0.04, -0.04, -0.1, -0.2)]
    panels.append(panel(valley, falling, []))
    slid = [run for run in falling if events(run, SLIDE)]
    both = {np.sign(path(run)[0, 1]) for run in slid}
    seen += [
        *_sides(valley, towards=True),
        equals(len(both), 2, tolerance=0, what="valley: sides from which runs land and slide"),
        at_most(valley.spread(t_end), 10.0, what="valley: spread of two runs over their distance"),
    ]

    through = [refraction.run(FIRST, h, t_end) for h in (-0.05, -0.12, -0.2, -0.27)]
    panels.append(panel(refraction, through, []))
    active, other = refraction.speeds()
    met = sum(len(run.events["kind"]) for run in through)
    wide = refraction.spread(t_end)
    seen += [
        *_sides(refraction),
        at_least(min(events(run, CROSS) for run in through), 1, what="refraction: crossings"),
        at_most(met, len(through), what="refraction: events in all"),
        at_least(active / other, 1.5, what="refraction: speed above over speed below"),
        at_most(wide, 10.0, what="refraction: spread of two runs over their distance"),
    ]
    every_run = [held, *leaving, *beside, *falling, *through]
    rise = max(float(np.diff(run.loss).max()) for run in every_run)
    seen.append(at_most(rise, 0.0, what="largest rise of the loss along a run"))
    spreads = {edge.name: edge.spread(t_end) for edge in EDGES}
    numbers: dict[str, Any] = {
        "spreads": spreads,
        "speeds": {edge.name: edge.speeds() for edge in EDGES},
        "landed": len(slid),
    }
    summary = [
        f"Two runs that start {NUDGE:g} apart on either side are, at time {t_end:g}, "
        + ", ".join(f"{factor:.3g} times that apart ({name})" for name, factor in spreads.items())
        + ".",
        f"Runs held on the ridge can leave it at any time to either side; {len(slid)} of "
        f"{len(falling)} runs land in the valley and slide along it; every run at the refraction "
        "edge goes through once.",
    ]
    caption = (
        "The paper's figure is a drawing of surfaces. Here are runs of one balanced neuron with "
        f"a > 0 and leak {LEAK:g} on two samples, over its loss in grey (light is high); dotted "
        "is the hyperplane of the first sample, dots are starts, dashed is the run that stays on "
        "the ridge. Runs that leave it do so by a nudge of 1e-7."
    )
    title = "What happens at <w, x_1> = 0"
    return Drawn(
        [Picture(panels, 3, title, width=4.8, height=5.0)], numbers, summary, seen, caption
    )


def _sides(edge: Edge, apart: bool = False, towards: bool = False) -> list[Comparison]:
    """Signs of the speeds on either side of the hyperplane."""
    active, other = edge.speeds()
    above, below = (at_most if down else at_least for down in (towards, apart))
    return [
        above(active, 0.0, what=f"{edge.name}: speed above"),
        below(other, 0.0, what=f"{edge.name}: speed below"),
    ]
