"""[MMV24]_ Figures 1 and 6 to 9: the drift of one neuron, and fifty neurons in the plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.descent import descend
from reluflow.network import Network, initialize
from reluflow.papers.figure import Drawn, figure
from reluflow.papers.mmv24.claims.traps import in_s_minus, in_s_plus
from reluflow.plot.palette import NEGATIVE, POSITIVE
from reluflow.plot.traces import Band, Line, Panel, Picture, Points, Rule, Trace
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Exponential
from reluflow.sweeps import sweep
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
DEAD = "0.6"
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


def outside_traps(problem: Problem, net: Network) -> NDArray[np.bool_]:
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
    astray = {step: int(outside_traps(problem, run.path()[i]).sum()) for step, i in at.items()}
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


def count_outside(angle: float, start: int) -> dict[str, float]:
    """Live positive neurons outside S_+ at 7,000, 14,000 and 21,000, and how large they are.

    Also their least cosine with x_1 or x_2 at 7,000, separately for those whose outer weight was
    negative at first ("late"), and that of live positive neurons with x_1, x_2 or x_+ at 21,000.
    """
    problem = datasets.two_points(angle)
    run = plane_run(problem, start, (0, 7_000, 14_000, 21_000))
    astray = [outside_traps(problem, net) & (net.a > 0) for net in run.path()]
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
def count_over_starts(angle: float, runs: int) -> dict[str, Any]:
    """Columns of :func:`count_outside` over several starts."""
    table = sweep(
        count_outside,
        {"angle": angle, "start": list(range(runs))},
        executor="serial",
        progress=False,
    )
    rows = sorted(table.rows(), key=lambda row: row["start"])
    return {name: np.array([row[name] for row in rows]) for name in MEASURED}


def draw_two_points(name: str, runs: int, seed: int, seen: list[Comparison], words: str) -> Drawn:
    """Neurons of one start at four iterations, its loss, and the counts of all starts."""
    angle = ANGLES[name]
    problem, found = datasets.two_points(angle), count_over_starts(angle, runs)
    run = plane_run(problem, seed, range(0, SHOWN[-1] + 1, 100))
    reach = 1.15 * max(1.0, float(np.abs(run.final.weights()[0]).max()))
    panels = []
    for step in SHOWN:
        net = run.path()[step // 100]
        left = int((outside_traps(problem, net) & (net.a > 0)).sum())
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
    found = count_over_starts(ANGLES["F7"], runs)
    clean = float(np.mean(found["at 7,000"] == 0))
    shown = count_outside(ANGLES["F7"], seed)["at 7,000"]
    seen = [
        at_most(shown, 1, what="outside at 7,000, the start shown"),
        at_most(found["at 7,000"].max(), 1, what="outside at 7,000, any start"),
        equals(found["at 14,000"].max(), 0, tolerance=0, what="outside at 14,000, any start"),
        at_least(clean, 0.8, what="share of starts with none outside at 7,000"),
        at_most(found["loss"].max(), 0.01, what="loss at 21,000"),
    ]
    words = f"None is outside at 7,000 in {100 * clean:.0f} % of the starts."
    return draw_two_points("F7", runs, seed, seen, words)


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
    found, easy = count_over_starts(ANGLES["F8"], runs), count_over_starts(ANGLES["F7"], runs)
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
    return draw_two_points("F8", runs, seed, seen, words)


@figure(
    "MMV24",
    "F9",
    title="Two orthogonal points: three directions, and only one of them grows",
    quick=QUICK,
    full=FULL,
)
def figure9(*, runs: int, seed: int = 0) -> Drawn:
    """Figure 9: final directions x_1, x_2 or x_+; only neurons along x_+ grow."""
    found = count_over_starts(ANGLES["F9"], runs)
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
    return draw_two_points("F9", runs, seed, seen, words)
