"""[BF24]_ Figures 1 and 2: three points on which every width learns only the least-squares line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.descent import descend
from reluflow.errors import ReluflowError
from reluflow.network import Network, initialize
from reluflow.papers.bf24.data import box_size, least_squares
from reluflow.papers.figure import Drawn, figure
from reluflow.plot.panels import function_panel, neurons_panel
from reluflow.plot.traces import Line, Panel, Picture, Points, Rule, Trace
from reluflow.problem import Problem, datasets
from reluflow.trajectory import Trajectory, geometric
from reluflow.trajectory.observables import Observable
from reluflow.trajectory.phases import phases

FIGURE1: dict[str, Any] = {"box_eta": 1 / 6, "draws": 200}


@figure(
    "BF24",
    "F1",
    title="Data of Assumption 3",
    quick=FIGURE1,
    full=FIGURE1,
    claims=("BF24-A3", "BF24-L8"),
)
def figure1(*, box_eta: float, draws: int, seed: int = 0) -> Drawn:
    """Figure 1: one-dimensional data that satisfy Assumption 3, with their least-squares line."""
    x, y = np.array([-0.9, 0.05, 0.92]), np.array([1.1, 0.08, 1.05])
    problem = Problem(x[:, None], y, bias=1.0, name="figure1")
    beta = least_squares(problem)
    e, grid = box_eta, np.linspace(-1.05, 1.05, 50)
    rng = np.random.default_rng(seed)
    cloud = [datasets.assumption3_box(e, rng) for _ in range(draws)]
    boxes: list[Trace] = []
    for left, right, low, high in ((-1, -1 + e, 1, 1 + e), (-e, e, 0, e), (1 - e, 1, 1, 1 + e)):
        sides = ([left, right, right, left, left], [low, low, high, high, low])
        boxes.append(Line(*sides, color="0.6", dash=":", width=1.0))
    many = [
        Points(
            np.concatenate([p.X[:, 0] for p in cloud]),
            np.concatenate([p.y for p in cloud]),
            f"{draws} draws",
            "0.75",
            size=5,
        )
    ]
    traces = [
        *many,
        *boxes,
        Line(grid, beta[0] * grid + beta[1], "least squares", "crimson", "--", 1.5),
        Points(x, y, "data", "tab:green", size=50),
    ]
    panel = Panel(traces, "", "x", "y", ylim=(-0.05, 1.35), legend="upper center")
    eta = box_size(problem)
    miss = min(float(np.mean((p.X @ least_squares(p) - p.y) ** 2)) for p in cloud)
    return Drawn(
        [Picture([panel], title=f"Three points of Assumption 3, box size {box_eta:.3g}", width=6)],
        {"box_eta": eta, "least_mse_of_draws": miss, "x": x, "y": y},
        [
            f"The points shown need boxes of size {eta:.3f}; the limit is {box_eta:.3f}.",
            f"The least-squares line misses: its mean squared error is at least {miss:.3f} here.",
        ],
        [
            at_most(eta, box_eta, what="least box_eta of the points shown"),
            at_least(miss, 0.05, what="least squared error of the line over the draws"),
        ],
        "The paper gives no coordinates: the green points are ours. Dotted: the boxes for (x, y); "
        "grey: draws from them, whose second feature, 1 in the figure, varies too.",
    )


FIGURE2: dict[str, Any] = {
    "m": 200_000,
    "scale": 1e-3,
    "lr": 1e-3,
    "steps": 2_000_000,
    "m_film": 20_000,
}
FIGURE2_QUICK = {**FIGURE2, "m": 2_000, "steps": 200_000, "m_film": 0}
ROWS = ("start", "end of phase 2a: aligned, about to grow", "end of phase 2: near the line", "end")
DONE, LEFT = 0.05, 0.005  # of the fall of the loss, at the ends of phases 2a and 2
UNMIXED = 7_200  # step by which a run of 2,000 neurons has lost its mixed ones


def active(problem: Problem, net: Network) -> NDArray[np.bool_]:
    """Which neuron (column) is active on which sample (row)."""
    return np.asarray(problem.X @ net.W.T > 0)


def count_mixed(problem: Problem, net: Network) -> int:
    """Neurons that are active on some samples and not on others."""
    on = active(problem, net)
    return int(np.count_nonzero(on.any(axis=0) & ~on.all(axis=0)))


def off_the_line(problem: Problem, net: Network) -> float:
    """sup |f(x) - <beta*, (x, 1)>| over the 100 grid points on [-1, 1] of the figure."""
    x = np.linspace(-1.0, 1.0, 100)
    line = np.column_stack([x, np.ones_like(x)]) @ problem.known["beta_star"]
    return float(np.abs(net(x[:, None]) - line).max())


@dataclass(frozen=True, eq=False)
class ThreePoints:
    """A run on the three points, with the ends of its phases 2a and 2 as steps."""

    curve: Trajectory
    run: Trajectory
    ends: tuple[int, int]
    half: float  # step at which half of the fall of the loss is done

    @property
    def problem(self) -> Problem:
        return self.run.problem

    @property
    def states(self) -> list[Network]:
        """At the start, the end of 2a, the end of 2, the end."""
        return list(self.run.path())

    def bundle(self, net: Network) -> Array:
        """Sum of a w over the neurons that start with a > 0 and an active sample."""
        start = self.states[0]
        who = (start.a > 0) & active(self.problem, start).any(axis=0)
        W, a = net.weights()
        return np.asarray((a * who) @ W)


def three_points_run(m: int, scale: float, lr: float, steps: int, seed: int) -> ThreePoints:
    """Descent on the three points; ``phases`` of its loss give the middle rows.

    Phase 2a ends with the first plateau of the loss (a share ``DONE`` of its fall is done), phase 2
    where the last one begins (``LEFT`` of it is left).
    """
    problem = datasets.three_points(loss="square")
    net = initialize(problem, m, scale=scale, rng=seed)
    observe = ["outputs", Observable("mixed", count_mixed)]
    curve = descend(problem, net, lr=lr, steps=steps, save=geometric(1.02), observe=observe)
    begins, settles = phases(curve, tol=DONE), phases(curve, tol=LEFT)
    if len(begins.plateaus) != 2 or settles.convergence is None:
        raise ReluflowError(
            f"the loss has {len(begins.plateaus)} plateaus in {steps} steps, expected two with a "
            "fall between them: give more steps"
        )
    ends = round(begins.plateaus[0, 1] / lr), round(settles.convergence / lr)
    run = descend(problem, net, lr=lr, steps=steps, save=[0, *ends, steps])
    return ThreePoints(curve, run, ends, float(settles.jumps[0]) / lr)


@figure(
    "BF24",
    "F2",
    title="Three points: every width converges to the least-squares line",
    quick=FIGURE2_QUICK,
    full=FIGURE2,
    claims=("BF24-T2", "BF24-L7", "BF24-A3", "BF24-A5"),
)
def figure2(*, m: int, scale: float, lr: float, steps: int, m_film: int, seed: int = 0) -> Drawn:
    """Figure 2: neurons align with one direction, grow, and stop at the least-squares line."""
    made = three_points_run(m, scale, lr, steps, seed)
    panels: list[Panel] = []
    for row, (step, title, state) in enumerate(zip(made.run.steps, ROWS, made.states, strict=True)):
        mse = float(np.mean((state(made.problem.X) - made.problem.y) ** 2))
        panels.append(
            function_panel(
                state,
                made.problem,
                span=(-1.0, 1.0),
                ylim=(-0.1, 1.3),
                title=f"{title}\nstep {step:,}, mean squared error {mse:.6f}",
                legend="upper right" if row == 0 else "",
            )
        )
        panels.append(
            neurons_panel(
                state,
                made.problem,
                title=f"neurons at step {step:,}",
                legend="" if row else "below",
            )
        )
    pictures = [
        Picture(panels, 2, f"Three points, {m:,} neurons from scale {scale:g}", height=3.7),
        Picture([_loss_curve(made)], name="loss", width=6.5, height=3.6),
    ]
    numbers = _numbers(made)
    seen = compare_with_figure(made, scale, lr)
    films = film(m_film, scale, lr, steps, seed)
    return Drawn(pictures, numbers, _summary(made, numbers), seen, _caption(numbers), films)


def film(m: int, scale: float, lr: float, steps: int, seed: int) -> dict[str, Trajectory]:
    """The run with m neurons at frames that are a tenth apart, as the paper's; none for m = 0."""
    if not m:
        return {}
    problem = datasets.three_points(loss="square")
    net = initialize(problem, m, scale=scale, rng=seed)
    return {"run": descend(problem, net, lr=lr, steps=steps, save=geometric(1.1))}


def _loss_curve(made: ThreePoints) -> Panel:
    limit = made.problem.known["limit_mse"]
    grown, near = made.ends
    traces: list[Trace] = [
        Line(made.curve.steps[1:], made.curve.loss[1:], "network", "tab:blue", width=2),
        Rule(limit, "y", f"least squares: {limit:.6f}", color="crimson", dash="--"),
        Rule(grown, "x", text=f"end of 2a\nstep {grown:,}", place=0.6),
        Rule(near, "x", text=f"end of 2\nstep {near:,}", side="right", place=0.6),
    ]
    return Panel(
        traces,
        "loss",
        "step",
        "mean squared error",
        xscale="log",
        ylim=(0.0, 0.68),
        legend="lower left",
    )


def _numbers(made: ThreePoints) -> dict[str, Any]:
    known, final = made.problem.known, made.states[-1]
    f, on = final(made.problem.X), active(made.problem, final)
    beta = known["beta_star"]
    seen_mixed = np.flatnonzero(made.curve["mixed"] > 0)
    return {
        "neurons": final.m,
        "steps": int(made.run.steps[-1]),
        "mse": float(np.mean((f - made.problem.y) ** 2)),
        "least_squares_mse": known["limit_mse"],
        "distance_to_line": float(np.max(np.abs(f - known["limit_outputs"]))),
        "distance_on_interval": off_the_line(made.problem, final),
        "end_of_2a": made.ends[0],
        "end_of_2": made.ends[1],
        "half_fallen": made.half,
        "mass_at_ends": [float(np.sum(made.states[i].weights()[1] ** 2)) for i in (1, 2)],
        "gap_at_ends": [float(np.linalg.norm(made.bundle(made.states[i]) - beta)) for i in (1, 2)],
        "mixed_at_start": int(made.curve["mixed"][0]),
        "mixed_last_at": int(made.curve.steps[seen_mixed[-1]]) if seen_mixed.size else 0,
        "active_on_all": int(np.count_nonzero(on.all(axis=0))),
        "active_on_none": int(np.count_nonzero(~on.any(axis=0))),
        "active_on_some": count_mixed(made.problem, final),
        "cost": dict(made.run.cost),
    }


def compare_with_figure(made: ThreePoints, scale: float, lr: float) -> list[Comparison]:
    """What a reader must see: all angles, then one ray, then near the line, then on it."""
    problem, (start, grown, near, final) = made.problem, made.states
    known = problem.known
    turns = np.sort(np.arctan2(start.W[:, 1], start.W[:, 0])) / (2 * np.pi) + 0.5
    uneven = np.abs(turns - (np.arange(start.m) + 0.5) / start.m).max()
    towards = known["D_star"] / np.linalg.norm(known["D_star"])
    on = active(problem, start).any(axis=0)
    share = np.exp(2 * grown.log_norms) * (grown.a > 0) * on
    ray = grown.directions @ towards > math.cos(0.1)
    red = (start.a < 0) & on
    idle = np.abs(final.weights()[0] - start.weights()[0])[~on].max(initial=0.0)
    predicted = known["blow_up_time"](scale) / lr
    late = made.curve["mixed"][made.curve.steps >= UNMIXED]
    angle = [math.degrees(math.atan2(b[1], b[0])) for b in map(made.bundle, (grown, final))]
    return [
        at_most(uneven * math.sqrt(start.m), 1.63, what="start: angles against uniform (1 % test)"),
        at_most(np.abs(start(problem.X)).max(), scale, what="start: |f|"),
        at_least(share[ray].sum() / share.sum(), 0.99, what="end of 2a: norm^2 in 0.1 rad of D*"),
        equals(angle[0], 111.2, tolerance=1.0, what="end of 2a: angle of sum a w, D* (degrees)"),
        at_most(np.abs(grown(problem.X)).max(), 0.05, what="end of 2a: |f|"),
        equals(
            made.half,
            predicted,
            tolerance=1 / (lr * known["growth_rate"]),
            what="step of half the fall: log(1/scale)/|D*|, give or take 1/|D*|",
        ),
        at_most(
            np.abs(near(problem.X) - known["limit_outputs"]).max(),
            0.1,
            what="end of 2: |f - line| at the samples",
        ),
        at_most(
            np.exp(near.log_norms[red]).max(initial=0.0),
            scale,
            what="end of 2: largest norm of a neuron with a < 0",
        ),
        at_most(
            late.max(initial=0) / start.m,
            1e-3,
            what=f"neurons active on some samples from step {UNMIXED:,} on, share",
        ),
        equals(
            count_mixed(problem, final), 0, tolerance=0, what="end: neurons active on some samples"
        ),
        equals(idle, 0.0, tolerance=0.0, what="end: move of neurons that never were active"),
        equals(
            np.mean((final(problem.X) - problem.y) ** 2),
            0.1750427350,
            tolerance=1e-10,
            what="end: mean squared error",
        ),
        at_most(off_the_line(problem, final), 1e-6, what="end: |f - line| on [-1, 1]"),
        equals(angle[1], 95.5, tolerance=0.05, what="end: angle of sum a w, beta* (degrees)"),
    ]


def _summary(made: ThreePoints, numbers: dict[str, Any]) -> list[str]:
    return [
        f"{numbers['neurons']:,} neurons, {numbers['steps']:,} gradient steps: {made.run.status}",
        f"Mean squared error {numbers['mse']:.10f}; the least-squares line has "
        f"{numbers['least_squares_mse']:.10f} and differs by {numbers['distance_to_line']:.1e} "
        f"at the samples, by {numbers['distance_on_interval']:.1e} on [-1, 1].",
        f"{numbers['active_on_all']:,} neurons are active on all samples, "
        f"{numbers['active_on_none']:,} on none, {numbers['active_on_some']} on some: the network "
        "has become one line.",
        f"Phase 2a ended at step {numbers['end_of_2a']:,}, half of the fall was done at "
        f"{numbers['half_fallen']:,.0f}, phase 2 ended at {numbers['end_of_2']:,}.",
        f"At the start {numbers['mixed_at_start']:,} neurons are active on some samples only, the "
        f"last of them until step {numbers['mixed_last_at']:,}.",
    ]


def _caption(numbers: dict[str, Any]) -> str:
    (mass, more), (_, gap) = numbers["mass_at_ends"], numbers["gap_at_ends"]
    grown, near = numbers["end_of_2a"], numbers["end_of_2"]
    return (
        "Left the function, right the neurons by angle and norm (the inner circle is norm 0, the "
        "rim a little more than the largest norm of that row). The "
        "steps of the middle rows are ours, found by `phases` on the loss: phase "
        f"2a ends at step {grown:,}, where the first plateau does ({100 * DONE:g} % of the fall "
        f"done, sum of a^2 {mass:.3f}), phase 2 at step {near:,}, where the last plateau begins "
        f"({100 * LEFT:g} % left, sum of a^2 {more:.2f}, sum of a w within {gap:.3f} of beta*). In "
        "the last row the network covers the dashed line. Neurons with a < 0 close to D* "
        "leave the data last: how long depends on the draw and grows with the width (here until "
        f"step {numbers['mixed_last_at']:,}), their norm is below the scale of the start."
    )
