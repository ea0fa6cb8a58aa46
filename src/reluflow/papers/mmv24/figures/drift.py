"""[MMV24]_ Figures 1 and 6: the early drift of one neuron, and fifty neurons in the plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.descent import descend
from reluflow.network import Network, initialize
from reluflow.papers.figure import Drawn, figure
from reluflow.papers.mmv24.claims.geometry import in_s_minus, in_s_plus
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Exponential
from reluflow.report.traces import Band, Line, Panel, Picture, Points, Rule, Trace
from reluflow.trajectory import Trajectory
from reluflow.trajectory.observables import velocity

WIDTH, STD, LR, STEPS = 50, 1e-6, 2e-3, 21_000
SHOWN = (0, 3_500, 7_000, 21_000)
# loss of Figure 6 at an iteration: a value of one start, and how far other starts are from it
LOSSES = {
    7_000: (0.955, 0.03),
    10_500: (0.36, 0.02),
    14_000: (0.064, 0.015),
    21_000: (0.011, 0.001),
}
POSITIVE, NEGATIVE, DEAD = "tab:red", "tab:green", "0.6"
COMMON = (
    "Fifty neurons, all weights from N(0, 1e-12), gradient descent with step 0.002. The paper "
    "names neither loss nor reduction; its iteration counts need the mean of a loss of slope 1 at "
    "zero, here the exponential."
)


@figure(
    "MMV24",
    "F1",
    title="The early drift of a neuron with one sample of each label active",
    quick={},
    full={},
    claims=("MMV24-L4", "MMV24-L1", "MMV24-L10"),
)
def figure1(*, seed: int = 0) -> Drawn:
    """Figure 1: w turns along P_w x_a with x_a = x_1 - x_2, minus that if its sign is negative.

    x_3, of label -1, lies outside the half-space <x, w> > 0 and has no part in x_a.
    """
    X = np.array([[0.3, 1.0], [1.0, 0.35], [-0.9, -0.25]])
    problem = Problem(X, np.array([1.0, -1.0, -1.0]), Exponential(), reduction="sum")
    w = np.array([0.85, 0.75])
    x_a, size = X[0] - X[1], float(np.linalg.norm(w))
    drift, gaps = {}, []
    for sign in (1.0, -1.0):
        net = Network(1e-6 * w[None], np.array([sign * 1e-6 * size]))
        turn = velocity(problem, net)[0][0] / (1e-6 * size)
        drift[sign] = turn - (turn @ w) * w / size**2
        gaps.append(float(np.abs(drift[sign] - sign * (x_a - (x_a @ w) * w / size**2)).max()))
    panels = []
    for sign, title in ((1.0, "positive neuron, a > 0"), (-1.0, "negative neuron, a < 0")):
        to = w + 0.6 * drift[sign]
        edge = np.array([-2.5, 2.5])  # <x, w> = 0, and the side on which it is positive
        traces: list[Trace] = [
            Band(edge, -w[0] / w[1] * edge, np.full(2, 5.0), "<x, w> > 0", "0.6", 0.25),
            Rule(0.0, "x"),
            Rule(0.0, "y"),
            Line([0, X[0, 0]], [0, X[0, 1]], "x_1, label +1", POSITIVE, width=2.4),
            Line([0, X[1, 0]], [0, X[1, 1]], "x_2, label -1", NEGATIVE, width=2.4),
            Line([0, X[2, 0]], [0, X[2, 1]], "x_3, label -1", NEGATIVE, ":", width=2.4),
            Points(X[:, 0], X[:, 1], color=[POSITIVE, NEGATIVE, NEGATIVE], marker="o"),
            Line([0, x_a[0]], [0, x_a[1]], "x_a = x_1 - x_2", "0.2", "--"),
            Line([0, w[0]], [0, w[1]], "neuron w", "tab:purple", width=2.4),
            Line([w[0], to[0]], [w[1], to[1]], "drift sign(a) P x_a", "tab:orange", width=3.0),
            Points([to[0]], [to[1]], color="tab:orange", marker="D"),
        ]
        panels.append(
            Panel(
                traces, title, xlim=(-1.25, 1.6), ylim=(-0.6, 2.5), equal=True, legend="upper left"
            )
        )
    away = drift[1.0] @ X[2]
    seen = [
        at_most(max(gaps), 1e-9, what="velocity of the direction against sign(a) P (x_1 - x_2)"),
        at_least(drift[1.0] @ X[0], 0.0, what="positive neuron: towards x_1"),
        at_most(drift[1.0] @ X[1], 0.0, what="positive neuron: towards x_2"),
        equals(int((X @ w > 0).sum()), 2, tolerance=0, what="samples in the half-space"),
    ]
    caption = (
        "The paper's figure is a sketch; here the drift is the velocity of a small neuron, and the "
        "places of the samples are ours. Grey: the half-space <x, w> > 0, in which x_1 and x_2 "
        "lie; x_3 does not and pulls nothing. The diamond is the tip of the drift."
    )
    summary = [
        "A positive neuron turns towards the active positive sample and away from the "
        "active negative one; a negative neuron the other way. The negative sample outside "
        "the half-space plays no part."
    ]
    numbers = {"gaps": gaps, "drift_along_x3": float(away)}
    return Drawn([Picture(panels, 2, width=5.0, height=5.2)], numbers, summary, seen, caption)


@cache
def toy_run(seed: int, steps: int = STEPS) -> tuple[Problem, Trajectory]:
    """Descent on TOY6 with the neurons of every hundredth step."""
    problem = datasets.toy6()
    return problem, plane_run(problem, seed, range(0, steps + 1, 100))


def plane_run(problem: Problem, seed: int | np.random.Generator, save: Sequence[int]) -> Trajectory:
    """Descent as in Figures 6 to 9."""
    net = initialize(problem, WIDTH, scale=STD, kind="gaussian", normalize="none", rng=seed)
    return descend(
        problem, net, lr=LR, steps=save[-1], save=save, observe="stable_rank", states=True
    )


def start_law(problem: Problem, seed: int, draws: int = 4000) -> list[Comparison]:
    """All weights of the start are N(0, 1e-12): standard deviations of many draws over 1e-6."""
    net = initialize(problem, draws, scale=STD, kind="gaussian", normalize="none", rng=seed)
    return [
        equals(
            np.sqrt(np.mean(part**2)) / STD,
            1.0,
            tolerance=4 / math.sqrt(2 * part.size),
            what=f"standard deviation of {name} weights at the start, over 1e-6",
        )
        for name, part in zip(("inner", "outer"), net.weights(), strict=True)
    ]


def plane_panel(problem: Problem, net: Network, title: str, reach: float) -> Panel:
    """Samples, neurons and lines along their directions, coloured by sign; dead ones grey."""
    W, a = net.weights()
    live = (problem.X @ W.T > 0).any(axis=0)
    traces: list[Trace] = [Rule(0.0, "x"), Rule(0.0, "y")]
    groups = (
        (~live, "dead", DEAD),
        (live & (a > 0), "a > 0", POSITIVE),
        (live & (a < 0), "a < 0", NEGATIVE),
    )
    for mine, label, colour in groups:
        if not mine.any():
            continue
        ends = 0.97 * reach * net.directions[mine]
        x, y = (np.column_stack([0 * e, e, np.full_like(e, np.nan)]).ravel() for e in ends.T)
        traces.append(Line(x, y, f"{label}: {int(mine.sum())}", colour, width=0.8))
        traces.append(Points(W[mine, 0], W[mine, 1], color=colour, marker="*", size=40))
    for s, colour, marker in ((1.0, POSITIVE, "o"), (-1.0, NEGATIVE, "s")):
        X = problem.X[problem.y == s]
        traces.append(Points(X[:, 0], X[:, 1], color=colour, marker=marker, size=46))
    return Panel(
        traces,
        title,
        xlim=(-reach, reach),
        ylim=(-1.45 * reach, reach),
        equal=True,
        legend="lower right",
    )


def outside(problem: Problem, net: Network) -> NDArray[np.bool_]:
    """Live neurons that are not in S_+ (a > 0) or S_- (a < 0)."""
    live = (problem.X @ net.W.T > 0).any(axis=0)
    home = np.where(net.a > 0, in_s_plus(problem, net.W), in_s_minus(problem, net.W))
    return np.asarray(live & ~home)


@figure(
    "MMV24",
    "F6",
    title="Six points of the plane: neurons align, then the loss falls twice",
    quick={},
    full={},
    claims=("MMV24-T1.1", "MMV24-P46", "MMV24-T1.2c"),
)
def figure6(*, seed: int = 0) -> Drawn:
    """Figure 6: neurons at the start, after alignment and near zero loss; two drops."""
    problem, run = toy_run(seed)
    at = {step: int(np.searchsorted(run.steps, step)) for step in SHOWN}
    reach = 1.15 * max(float(np.abs(problem.X).max()), float(np.abs(run.final.weights()[0]).max()))
    names = ("start", "most are trapped", "aligned", "near zero loss")
    panels = [
        plane_panel(problem, run.path()[i], f"iteration {step:,}: {name}", reach)
        for (step, i), name in zip(at.items(), names, strict=True)
    ]
    drops, middle = drops_of(run)
    marks = [Rule(step, dash=":") for step in SHOWN[1:]]
    panels += [
        Panel([*marks, Line(run.steps, run.loss, "", "tab:blue")], "loss", "iteration", "loss"),
        Panel(
            [*marks, Line(run.steps, run["stable_rank"], "", "tab:blue")],
            "stable rank",
            "iteration",
            "|W|_F^2 / |W|_2^2",
        ),
    ]
    astray = {step: int(outside(problem, run.path()[i]).sum()) for step, i in at.items()}
    loss = {step: float(run.loss[np.searchsorted(run.steps, step)]) for step in LOSSES}
    seen = [
        at_least(astray[0], 10, what="live neurons outside the traps at the start"),
        at_most(astray[7_000], 2, what="live neurons outside the traps at 7,000"),
        equals(len(drops), 2, tolerance=0, what="separate drops of the loss"),
        equals(drops[0], 8_000, tolerance=500, what="first drop, after alignment (iteration)"),
        equals(drops[-1], 12_000, tolerance=500, what="second drop (iteration)"),
        at_most(middle, 0.3, what="slowest fall between the drops, over the fastest"),
        *[
            equals(loss[step], value, tolerance=width, what=f"loss at {step:,}")
            for step, (value, width) in LOSSES.items()
        ],
        equals(run["stable_rank"][-1], 1.09, tolerance=0.01, what="stable rank at the end"),
        *start_law(problem, seed),
    ]
    numbers = {
        "outside": astray,
        "loss": loss,
        "drops": drops,
        "stable_rank": float(run["stable_rank"][-1]),
    }
    summary = [
        f"Live neurons outside their cones: {astray[0]} at the start, {astray[3500]} at 3,500, "
        f"{astray[7000]} at 7,000, {astray[21000]} at 21,000.",
        f"The loss falls fastest near iterations {drops[0]:,} and {drops[-1]:,}; it is "
        + ", ".join(f"{v:.3g} at {k:,}" for k, v in loss.items())
        + f"; stable rank {numbers['stable_rank']:.2f} at the end.",
    ]
    caption = (
        f"{COMMON} The paper shows its data only as a picture: the six points are ours and keep "
        "what it shows. Starts are unbalanced, so signs of outer weights may change, and a neuron "
        "with a tiny one may linger outside (the theorem asks for balance). Lines are directions, "
        "stars neurons, discs positive and squares negative samples."
    )
    return Drawn([Picture(panels, 3, width=4.4, height=4.0)], numbers, summary, seen, caption)


def drops_of(run: Trajectory) -> tuple[list[int], float]:
    """Iterations of fastest fall of separate drops, and the least speed between, over the top."""
    fall = -np.diff(run.loss) / np.diff(run.steps)
    peaks = [
        i
        for i in range(1, len(fall) - 1)
        if fall[i] >= fall[i - 1] and fall[i] > fall[i + 1] and fall[i] > 0.1 * fall.max()
    ]
    between = fall[peaks[0] : peaks[-1] + 1].min() if peaks else np.nan
    return [int(run.steps[i]) for i in peaks], float(between / fall.max())
