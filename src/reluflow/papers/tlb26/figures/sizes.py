"""[TLB26]_ Figures 5 and 6: the learned norm against the number of samples and the width."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.descent import descend
from reluflow.network import initialize
from reluflow.papers.figure import Drawn, figure
from reluflow.plot.traces import Band, Line, Panel, Picture, Points, Trace
from reluflow.prediction.orthogonal import algorithm1
from reluflow.problem import datasets

# mean ratios to the minimum that Algorithm 1 is known to give
RATIOS_N = {16: 1.24, 64: 1.63, 256: 1.92, 1024: 2.13, 8192: 2.29}
RATIOS_M = {16: 1.51, 64: 1.39, 256: 1.29, 1024: 1.19, 4096: 1.13, 16_384: 1.08, 262_144: 1.02}
TRAINED = 1e-8  # scale of the trained points
STEPS = 60_000  # epochs of those of Figure 5


def ensemble(n: int, m: int, draws: int, rng: np.random.Generator) -> dict[str, Array]:
    """Norms of Algorithm 1 and of the minimum, and unfitted samples, over draws."""
    rows = []
    for _ in range(draws):
        y = rng.standard_normal(n)
        found = algorithm1(y, signs=rng.choice([-1.0, 1.0], m), mask=rng.random((n, m)) < 0.5)
        rows.append((found.norm2, found.min_norm2, found.uncovered.size))
    table = np.array(rows, dtype=float).T
    return {"norm2": table[0], "least": table[1], "uncovered": table[2]}


def miss_probability(n: int, m: int) -> float:
    """Probability that some sample has no neuron of its sign that is active on it.

    Given k positive neurons the samples are independent, covered with probability
    1 - (2^-k + 2^-(m-k))/2.
    """
    k = np.arange(m + 1)
    weights = np.array([math.comb(m, int(i)) for i in k]) / 2.0**m
    return float(1 - weights @ (1 - (0.5**k + 0.5 ** (m - k)) / 2) ** n)


def train(n: int, m: int, lr: float, steps: int, rng: int) -> tuple[float, float, float]:
    """Squared norm after descent from 1e-8, that of Algorithm 1, and the loss left.

    A start that leaves some sample without a neuron, which nobody can fit, is drawn again.
    """
    problem = datasets.orthonormal(n, law="normal", loss="square", rng=rng)
    net = initialize(problem, m, TRAINED, "sphere", rng)
    process, draw = algorithm1(problem, net), 0
    while process.uncovered.size:
        draw += 1
        net = initialize(problem, m, TRAINED, "sphere", np.random.default_rng([rng, draw]))
        process = algorithm1(problem, net)
    run = descend(problem, net, lr=lr, steps=steps, observe="norm2")
    return float(run["norm2"][-1]), process.norm2, float(run.loss[-1])


def _ratio_slope(sizes: list[int]) -> float:
    """Log-log slope of the known mean ratios over these sizes."""
    return float(np.polyfit(np.log(sizes), np.log([RATIOS_N[k] for k in sizes]), 1)[0])


def _near_known_means(
    measured: Array, known: dict[int, float], sizes: list[int], what: str
) -> Comparison:
    """Mean ratios against known ones, in standard errors (0.01 added for their rounding)."""
    off = [
        abs(r.mean() - known[s]) / (r.std(ddof=1) / math.sqrt(r.size) + 0.01)
        for s, r in zip(sizes, measured, strict=True)
    ]
    return at_most(max(off), 4.0, what=f"{what}: distance to known means, in errors")


def _norms_and_ratios(
    norms: list[Trace], ratios: list[Trace], titles: tuple[str, str], xlabel: str, legend: str
) -> list[Panel]:
    """Panels of squared norms and of their ratio, against a size that grows geometrically."""
    x: dict[str, Any] = {"xlabel": xlabel, "xscale": "log", "legend": legend}
    return [
        Panel(norms, titles[0], ylabel="|W|^2 + |a|^2", yscale="log", **x),
        Panel(ratios, titles[1], ylabel="ratio", **x),
    ]


@figure(
    "TLB26",
    "F5",
    title="Learned and smallest squared norm against the number of samples",
    quick={"draws": 20, "sizes": (16, 64, 256, 1024), "points": (16, 32, 64)},
    full={"draws": 60, "sizes": (16, 64, 256, 1024, 4096, 8192), "points": (16, 32, 64)},
    claims=("TLB26-T3", "TLB26-P5", "TLB26-P6"),
)
def figure5(*, draws: int, sizes: Any, points: Any, seed: int = 0) -> Drawn:
    """Figure 5: both grow about as sqrt(n), at a bounded ratio."""
    rng = np.random.default_rng(seed)
    n = np.array(sizes)
    made = [ensemble(int(k), math.ceil(8 * math.log2(k)), draws, rng) for k in n]
    ratios = np.array([e["norm2"] / e["least"] for e in made])
    traces, slopes = _growth(n, made)
    runs = np.array([train(k, math.ceil(8 * math.log2(k)), 0.5, STEPS, seed) for k in points])
    traces.append(Points(points, runs[:, 0], f"trained from {TRAINED:g}", "tab:green", "s", 40))
    traces.append(Points(points, runs[:, 1], "Algorithm 1, same start", "tab:blue", "x", 40))
    of_ratios: list[Trace] = [
        Line(n, ratios.mean(axis=1), "mean", "tab:blue"),
        Band(n, ratios.min(axis=1), ratios.max(axis=1), "all draws", "tab:blue"),
    ]
    titles = ("squared norm", "ratio of the two")
    panels = _norms_and_ratios(traces, of_ratios, titles, "samples n", "upper left")
    known = [i for i, k in enumerate(sizes) if k in RATIOS_N]
    below = 1 - runs[:, 0] / runs[:, 1]
    seen = [
        at_most(ratios.mean(axis=1).max(), 2.5, what="largest mean ratio"),
        at_least(np.diff(ratios.mean(axis=1)).min(), 0.0, what="mean ratio grows with n"),
        _near_known_means(ratios[known], RATIOS_N, [sizes[i] for i in known], "ratios"),
        equals(slopes["least"], 0.51, tolerance=0.03, what="log-log slope of the minimum"),
        equals(
            slopes["norm2"],
            0.51 + _ratio_slope([sizes[i] for i in known]),
            tolerance=0.03,
            what="log-log slope of Algorithm 1, against 0.51 and that of the known ratios",
        ),
        at_most(runs[:, 2].max(), 1e-6, what="trained from 1e-8: loss left"),
        at_least(below.min(), 0.0, what="trained from 1e-8: below Algorithm 1, relative"),
        at_most(below.max(), 0.25, what="trained from 1e-8: below Algorithm 1, relative"),
    ]
    if sizes[-1] == 8192:
        seen += [
            equals(slopes["norm2"], 0.61, tolerance=0.03, what="slope, n = 16 to 8192"),
            equals(slopes["last"], 0.54, tolerance=0.03, what="slope of the last octave"),
        ]
    numbers = {
        "sizes": n.tolist(),
        "mean_ratios": ratios.mean(axis=1).tolist(),
        "slopes": slopes,
        "trained": runs.tolist(),
        "trained_below": below.tolist(),
    }
    summary = [
        "Mean ratios "
        + ", ".join(f"{r:.2f} (n = {k})" for k, r in zip(n, ratios.mean(axis=1), strict=True))
        + ".",
        f"Log-log slopes {slopes['norm2']:.2f} and {slopes['least']:.2f}; the last step of "
        f"Algorithm 1's has {slopes['last']:.2f}.",
        f"Trained from {TRAINED:g}, norms are {100 * below.min():.0f} to {100 * below.max():.0f} % "
        "below Algorithm 1: the margins mu are small, so this scale is far from the limit.",
    ]
    caption = (
        "Widths ceil(8 log2 n), a constant of ours. Lines are Algorithm 1 over "
        f"{draws} draws with their range. One network at each n is trained, for {STEPS:,} epochs "
        "from norms 1e-8/sqrt(m); the paper trains 3, up to a million epochs."
    )
    return Drawn([Picture(panels, 2, width=5.4, height=4.0)], numbers, summary, seen, caption)


def _growth(n: Array, made: list[dict[str, Array]]) -> tuple[list[Trace], dict[str, float]]:
    """Curves of both norms with their ranges, and log-log slopes."""
    traces: list[Trace] = []
    slopes: dict[str, float] = {}
    for key, label, colour in (("norm2", "Algorithm 1", "tab:blue"), ("least", "minimum", "0.3")):
        values = np.array([e[key] for e in made])
        mean = values.mean(axis=1)
        traces += [
            Line(n, mean, label, colour),
            Band(n, values.min(axis=1), values.max(axis=1), "", colour),
        ]
        slopes[key] = float(np.polyfit(np.log(n), np.log(mean), 1)[0])
        if key == "norm2":
            slopes["last"] = float(np.log(mean[-1] / mean[-2]) / np.log(n[-1] / n[-2]))
    return traces, slopes


@figure(
    "TLB26",
    "F6",
    title="Width: small starts tend to the smallest norm, large starts grow away from it",
    quick={
        "draws": 60,
        "widths": (16, 64, 256, 1024, 4096),
        "he": (16, 64, 256),
        "points": (16, 64),
    },
    full={
        "draws": 400,
        "widths": tuple(RATIOS_M),
        "points": (16, 64, 256),
        "he": (16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144),
    },
    claims=("TLB26-B22", "TLB26-P2"),
)
def figure6(*, draws: int, widths: Any, he: Any, points: Any, seed: int = 0) -> Drawn:
    """Figure 6: 32 samples, growing width."""
    rng = np.random.default_rng(seed)
    counts = [max(20, draws // max(1, m // 8192)) for m in widths]
    made = [ensemble(32, m, k, rng) for m, k in zip(widths, counts, strict=True)]
    ratios = [(e["norm2"] / e["least"])[e["uncovered"] == 0] for e in made]
    mean = np.array([r.mean() for r in ratios])
    uncovered = float(np.mean(made[0]["uncovered"] > 0))
    large = np.array([he_run(m, seed) for m in he])
    small = np.array([train(32, m, 1.0, 20_000, seed) for m in points])
    least = datasets.orthonormal(32, law="normal", loss="square", rng=seed).known["min_norm2"]
    traces: list[Trace] = [
        Line(widths, least * mean, "Algorithm 1, mean ratio", "tab:blue"),
        Points(points, small[:, 0], f"trained from {TRAINED:g}", "tab:green", "s", 40),
        Line(he, large[:, 1], "large start, trained", "tab:red"),
        Line(he, large[:, 0], "large start, before training", "tab:red", ":"),
        Line([widths[0], widths[-1]], [least, least], "minimum", "0.3", "--"),
    ]
    ends = [(r.min(), r.max()) for r in ratios]
    of_ratios: list[Trace] = [
        Line(widths, mean, "mean", "tab:blue"),
        Band(widths, [e[0] for e in ends], [e[1] for e in ends], "all draws", "tab:blue"),
    ]
    titles = ("squared norm, 32 samples", "Algorithm 1: ratio to the minimum")
    panels = _norms_and_ratios(traces, of_ratios, titles, "width m", "below")
    missed = miss_probability(32, widths[0])
    error = 3 * math.sqrt(missed * (1 - missed) / counts[0])
    seen = [
        at_most(np.diff(mean).max(), 0.0, what="change of the mean ratio as the width grows"),
        _near_known_means(np.array(ratios, dtype=object), RATIOS_M, list(widths), "ratios"),
        equals(uncovered, missed, tolerance=error, what="m = 16: draws with an uncovered point"),
        at_most(
            np.abs(large[:, 0] / ((np.array(he) + 1) / 3) - 1).max(),
            0.15,
            what="large start: norm2 against (m + 1)/3, relative",
        ),
        at_least((large[:, 1] - large[:, 0]).min(), 0.0, what="large start: growth by training"),
        at_least(np.diff(large[:, 1]).min(), 0.0, what="large start: growth with the width"),
        at_most(large[:, 2].max(), 1e-6, what="large start: loss left"),
        at_most(small[:, 2].max(), 1e-6, what="trained from 1e-8: loss left"),
        at_least(small[:, 0].min() / least - 1, 0.0, what="trained: norm2 over the minimum, - 1"),
        at_most(np.diff(small[:, 0]).max(), 0.0, what="trained: change of norm2 with the width"),
    ]
    numbers = {
        "widths": list(widths),
        "mean_ratios": mean.tolist(),
        "uncovered_at_first": uncovered,
        "he": {"widths": list(he), "start_end_loss": large.tolist()},
        "minimum": least,
        "trained": small.tolist(),
    }
    summary = [
        "Mean ratios "
        + ", ".join(f"{r:.2f} (m = {m:,})" for m, r in zip(widths, mean, strict=True))
        + ".",
        f"At m = {widths[0]} a point stays uncovered in {100 * uncovered:.1f} % of draws; those "
        "draws are left out of the ratio.",
        f"From a large start the squared norm ends at {large[0, 1]:.1f} to {large[-1, 1]:,.1f}; "
        f"the minimum is {least:.1f}.",
    ]
    caption = (
        "Algorithm 1 instead of training for the line; trained points at 1e-8 (starts that leave "
        "no sample without a neuron) show the trend, not its values. Large starts (uniform, "
        "+-1/sqrt of the fan-in) are fitted by steps of at most a tenth of the inverse curvature "
        "(above width 4,096 four tenths) "
        "instead of lr 0.001, one run each."
    )
    return Drawn([Picture(panels, 2, width=5.4, height=4.0)], numbers, summary, seen, caption)


def he_run(m: int, rng: int) -> tuple[float, float, float]:
    """Squared norm before and after descent from PyTorch's default law, and the loss left."""
    problem = datasets.orthonormal(32, law="normal", loss="square", rng=rng)
    net = initialize(problem, m, 1.0, "pytorch", rng)
    # the largest curvature is about m/256: a tenth of its inverse, close to flow, or four tenths
    share, steps = (25.0, 3000) if m <= 4096 else (100.0, 800)
    lr = min(0.25, share / m)
    run = descend(problem, net, lr=lr, steps=steps, save=[0, steps], observe="norm2")
    return float(run["norm2"][0]), float(run["norm2"][-1]), float(run.loss[-1])
