"""[BF24]_ Theorem 4 and the remarks D1, D3, D4: where training ends on such data."""

from __future__ import annotations

from functools import cache

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import dominated_start, half_square, no_leak
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.network import Network, initialize
from reluflow.papers.bf24.claims.cones import faces_of, fading, margins
from reluflow.papers.bf24.claims.data import (
    dominance,
    dominant_extremes,
    least_squares,
    positive_data,
)
from reluflow.papers.bf24.runs import converged
from reluflow.problem import Problem, datasets

SCALES = (-10.0, -40.0, -400.0)  # logarithms
STEP = (
    "The step 1e-3 is that of the paper's code, taken after a first try: with 1e-2 a network of "
    "100 neurons left the line and interpolated."
)


def draw_set(rng: np.random.Generator, d: int) -> Problem:
    """Data for Theorem 4: extreme points with labels near 1 around one with a small label."""
    if d == 2:
        return datasets.assumption3_box(0.09, rng)
    X = np.eye(d) + 0.05 * rng.random((d, d))
    inner = 0.5 / np.sqrt(d) * (1 + 0.1 * rng.standard_normal(d))
    y = np.append(1 + 0.1 * rng.random(d), 0.05 + 0.1 * rng.random())
    return Problem(np.vstack([X, inner]), y, name=f"corner-{d}")


@cache
def ends(
    seed: int, sets: int, m: int, d: int, log_scale: float = -10.0
) -> list[tuple[Problem, Network]]:
    """Ends of flows on random sets that satisfy Assumptions 4 and 5, dominated start."""
    from reluflow.gradientflow.flow import flow

    rng = np.random.default_rng(seed)
    made: list[tuple[Problem, Network]] = []
    while len(made) < sets:
        problem = draw_set(rng, d)
        about = Evidence.of(problem)
        if positive_data(about).ok and dominant_extremes(about).ok:
            net = initialize(problem, m, log_scale=log_scale, kind="dominated", rng=rng)
            made.append((problem, flow(problem, net, t_end=3000.0 - 3 * log_scale).final))
    return made


def _line_gap(problem: Problem, net: Network, X: Array) -> float:
    return float(np.abs(net.evaluate(X, problem.leak) - X @ least_squares(problem)).max())


def line_in_the_cone(seed: int, sets: int, m: int, d: int) -> Found:
    """Theorem 4: the end equals <beta*, x> on the cone of the data, at positive loss."""
    found = ends(seed, sets, m, d)
    inside = [np.random.default_rng(0).dirichlet(np.ones(p.n), 100) @ p.X for p, _ in found]
    gaps = [_line_gap(p, net, X) for (p, net), X in zip(found, inside, strict=True)]
    losses = [np.mean((p.outputs(net) - p.y) ** 2) for p, net in found]
    return Found(
        [
            at_most(max(gaps), 1e-6, what=f"|f - <beta*, x>| on the cone of the data, d = {d}"),
            at_least(min(losses), 1e-3, what="least mean squared error"),
        ],
        _assumed(found),
    )


def line_without_fading(seed: int, sets: int, m: int, d: int) -> Found:
    """The end of Theorem 4 where Assumptions 4 and 5 hold, whatever Assumption 6 says."""
    found = line_in_the_cone(seed, sets, m, d)
    return Found(found.comparisons, found.hypotheses[:1])


def _assumed(found: list[tuple[Problem, Network]]) -> list[Hypothesis]:
    """Assumptions 4 to 6 on all the data."""
    about = [Evidence.of(p) for p, _ in found]
    least = min(margins(p).least for p, _ in found)
    gap = min(dominance(p) for p, _ in found)
    products = min(float((p.X @ p.X.T).min()) for p, _ in found)
    both = all(positive_data(e).ok and dominant_extremes(e).ok for e in about)
    return [
        Hypothesis(
            "Assumptions 4 and 5",
            both,
            f"least inner product {products:.3g}, least margin of Assumption 5 {gap:.3g}",
        ),
        Hypothesis("Assumption 6", all(fading(e).ok for e in about), f"least margin {least:.3g}"),
    ]


def line_everywhere(seed: int, sets: int, m: int, d: int) -> Found:
    """Theorem 4, "for any x" alone: at the mirrored samples the end is not <beta*, x>.

    The theorem leaves its threshold of lambda open: runs from ever smaller scales end alike.
    """
    runs = {log: ends(seed, sets, m, d, log) for log in SCALES}
    gaps = {log: min(_line_gap(p, net, -p.X) for p, net in runs[log]) for log in SCALES}
    inside = max(_line_gap(p, net, p.X) for found in runs.values() for p, net in found)
    return Found(
        [at_most(min(gaps.values()), 1e-6, what="|f(-x_k) - <beta*, -x_k>|, least of all runs")],
        [
            *_setting(runs[SCALES[0]]),
            *_assumed(runs[SCALES[0]]),
            settled_scales(gaps),
            _at_the_line(inside),
        ],
    )


def _setting(found: list[tuple[Problem, Network]]) -> list[Hypothesis]:
    """Loss and activation of Section 4, |a| >= |w| (kept by the flow, Lemma 1)."""
    about = [Evidence.of(p, start=net) for p, net in found]
    return [
        Hypothesis(test.name, all(test(e).ok for e in about), test(about[0]).detail)
        for test in (half_square, no_leak, dominated_start)
    ]


def settled_scales(gaps: dict[float, float]) -> Hypothesis:
    """lambda below a threshold that is said to exist: what is seen from smaller and smaller ones.

    It counts as met where the gap does not fall with the scale, so that no threshold closes it.
    """
    logs = sorted(gaps, reverse=True)
    steady = gaps[logs[-1]] >= 0.99 * gaps[logs[0]]
    seen = ", ".join(f"{gaps[log]:.6f} at e^{log:g}" for log in logs)
    return Hypothesis("lambda below some threshold of the data", steady, f"gap {seen}")


def _at_the_line(gap: float) -> Hypothesis:
    return Hypothesis("the runs have converged", gap <= 1e-6, f"|f - <beta*, x>| {gap:.1e} at x_k")


def three_dimensions_never_fade(seed: int, sets: int) -> list[Comparison]:
    """Assumption 6 (1) contradicts Assumption 4 for d >= 3.

    Take an extreme x_i and the cone in which it alone is active: D = r_i x_i / n. The hyperplane
    of a neighbouring extreme x_j touches that cone, u_j = -1, and u_j <D, x_j> =
    -r_i <x_i, x_j>/n < 0. In two dimensions only x_i's inner neighbour touches it.
    """
    rng = np.random.default_rng(seed)
    found = [margins(draw_set(rng, 3)) for _ in range(sets)]
    usual = [m for m in found if m.residual > 0]
    return [
        at_least(len(usual), sets / 2, what="sets of d = 3 with r > 0 on Kset"),
        equals(sum(m.push > 0 for m in usual), 0, tolerance=0, what="that satisfy part 1"),
    ]


def kind_of_end(seed: int, m: int) -> list[Comparison]:
    """D1: a dominated start ends in a local minimum; beside a zero neuron it is a saddle.

    Once by the second-order test of `stationarity`, once by random perturbations: of every neuron
    by half its distance to the nearest hyperplane, or of the zero neuron alone.
    """
    from reluflow.optimum.stationarity import stationarity

    rng, made = np.random.default_rng(seed), []
    for kind in ("dominated", "balanced"):
        evidence = converged(seed, m, kind)
        end = stationarity(evidence.problem, evidence.end())
        escape = end.escape
        made.append(at_most(end.relative, 1e-7, what=f"relative residual, {kind} start"))
        if kind == "dominated":
            made.append(equals(end.local == "minimum", 1, tolerance=0, what="local minimum"))
            X, W = evidence.problem.X, evidence.end().weights()[0]
            reach = 0.5 * np.min(np.abs(W @ X.T) / np.linalg.norm(X, axis=1), axis=1)
            low, high = changes(evidence.problem, evidence.end(), reach, rng)
            made.append(at_least(low, -1e-15, what="least change of the loss, perturbed"))
            made.append(at_least(high, 1e-14, what="largest change of the loss, perturbed"))
    W, a = evidence.end().weights()
    zero = Network(np.vstack([W, np.zeros(2)]), np.append(a, 0.0), bias=evidence.problem.bias)
    beside = stationarity(evidence.problem, zero)
    drop = changes(evidence.problem, zero, 1e-2 * (np.arange(zero.m) == zero.m - 1), rng)[0]
    return [
        *made,
        at_least(escape, 1e-3, what="largest |G|: a zero neuron would grow"),
        equals(beside.local == "saddle", 1, tolerance=0, what="a saddle beside a zero neuron"),
        at_most(drop, -1e-6, what="least change of the loss, zero neuron perturbed by 0.01"),
    ]


def changes(
    problem: Problem, net: Network, reach: Array, rng: np.random.Generator, tries: int = 200
) -> tuple[float, float]:
    """Least and largest change of the loss when (w_j, a_j) moves by reach_j, in random ways."""
    W, a = net.weights()
    before, found = problem.loss_of(net), []
    for _ in range(tries):
        step = rng.standard_normal((net.m, problem.d + 1))
        step *= (reach / np.linalg.norm(step, axis=1))[:, None]
        moved = Network(W + step[:, :-1], a + step[:, -1], bias=net.bias)
        found.append(problem.loss_of(moved) - before)
    return min(found), max(found)


def width_does_not_matter(seed: int, widths: tuple[int, ...], starts: int) -> Found:
    """D3: the same scale leads to the least-squares line at every width, by gradient descent.

    ``starts`` of them at each width up to 10,000, one beyond.
    """
    from reluflow.descent.descend import descend

    problem, made = datasets.a3c(), []
    line = problem.X @ least_squares(problem)
    for m in widths:
        gap = 0.0
        for start in range(starts if m <= 10_000 else 1):
            net = initialize(problem, int(m), scale=1e-3, rng=seed + start)
            end = descend(problem, net, lr=1e-3, steps=60_000).final
            gap = max(gap, float(np.abs(problem.outputs(end) - line).max()))
        made.append(at_most(gap, 1e-6, what=f"|f - <beta*, x>| at width {m}"))
    return Found(made, note=STEP)


def threshold(m: int, turn: float, low: float, high: float, steps: int) -> float:
    """log10 of the largest scale from which a dominated start of m neurons ends at the line.

    By bisection between ``low``, where it does, and ``high``, where it does not, on A3c. Neurons
    have m/2 directions evenly spaced from the angle ``turn`` on, |w| = 0.9 |a| and either sign: a
    draw of few would move the threshold more than the width does.
    """
    from reluflow.gradientflow.flow import flow

    problem = datasets.a3c()
    line = problem.X @ least_squares(problem)
    angle = turn + 4 * np.pi * np.arange(m // 2) / m
    W = np.tile(0.9 * np.column_stack([np.cos(angle), np.sin(angle)]), (2, 1)) / np.sqrt(m)
    a = np.repeat([1.0, -1.0], m // 2) / np.sqrt(m)

    def stays(power: float) -> bool:
        net = Network(10.0**power * W, 10.0**power * a, bias=problem.bias)
        end = flow(problem, net, t_end=1000.0).final
        return bool(np.abs(problem.outputs(end) - line).max() <= 1e-6)

    if not stays(low) or stays(high):
        return np.nan
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stays(middle) else (low, middle)
    return low


def width_leaves_the_threshold(seed: int, widths: tuple[int, ...], steps: int) -> Found:
    """D3: where the threshold is at each width.

    One that falls like 1/sqrt(m), as for a start without the factor 1/sqrt(m), loses half a
    decade in each decade of the width.
    """
    turn = float(np.random.default_rng(seed).uniform(0, 2 * np.pi))
    found = {m: threshold(m, turn, -4.0, -0.5, steps) for m in widths}
    fall = -float(np.polyfit(np.log10(list(found)), list(found.values()), 1)[0])
    note = ", ".join(f"10^{power:.2f} at width {m}" for m, power in found.items())
    return Found(
        [
            at_most(fall, 0.25, what="fall of the threshold, in decades for each decade of width"),
            at_least(min(found.values()), -3.0, what="log10 of the least threshold"),
        ],
        note=f"Scales up to which training ends at the line: {note}.",
    )


def best_single(problem: Problem) -> float:
    """Least mean squared error of one neuron, over all its activation patterns (d = 2).

    In each cone: the least-squares fit of the active samples if it lies there, else its borders.
    """
    faces, lines, sides = faces_of(problem)
    best = float(np.mean(problem.y**2))
    for u in faces:
        on = u > 0
        if not on.any():
            continue
        tries = [np.linalg.lstsq(problem.X[on], s * problem.y[on], rcond=None)[0] for s in (1, -1)]
        touching = ((sides == u) | (sides == 0)).all(axis=1)
        tries += list(lines[touching])
        for w in tries:
            z = np.maximum(problem.X @ w, 0.0)
            if z @ z > 0:
                f = z * (z @ problem.y) / (z @ z)
                best = min(best, float(np.mean((f - problem.y) ** 2)))
    return best


def best_with_its_neurons(seed: int, sets: int, m: int) -> Found:
    """D4: the end, one neuron in effect, against the best fit with one neuron (all patterns)."""
    rows: list[tuple[str, Problem, Network | None]]
    rows = [("three-points", datasets.three_points(), None), ("a3c", datasets.a3c(), None)]
    rows += [(f"box {i}", p, net) for i, (p, net) in enumerate(ends(seed, sets, m, 2))]
    table, worst = [], 0.0
    for name, problem, net in rows:
        if net is None:
            from reluflow.gradientflow.flow import flow

            start = initialize(problem, m, log_scale=-10.0, rng=seed)
            net = flow(problem, start, t_end=3000.0).final
        mse = float(np.mean((problem.outputs(net) - problem.y) ** 2))
        best = best_single(problem)
        table.append(f"{name}: {mse:.6f} against {best:.6f}")
        worst = max(worst, abs(mse - best))  # less would take more than one neuron
    note = "Mean squared error of the end against the best single neuron: " + "; ".join(table) + "."
    return Found([at_most(worst, 1e-7, what="|end - best one-neuron fit|")], note=note)
