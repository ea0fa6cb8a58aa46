"""[BF24]_ Theorems 2 and 4, Lemma 7: training ends at the least-squares line."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    dominated_start,
    gradient_flow,
    half_square,
    no_leak,
    square_loss,
)
from reluflow.claims.invariants import dead
from reluflow.claims.run import as_found
from reluflow.claims.verdict import Comparison, Hypothesis, Status, at_least, at_most, equals
from reluflow.gradientflow.flow import flow
from reluflow.landscape import pattern
from reluflow.network import Network, initialize
from reluflow.papers.bf24.claims.assumptions import draw_set
from reluflow.papers.bf24.data import (
    at_rest,
    dominance,
    dominant_extremes,
    in_boxes,
    least_squares,
    margins,
    negative_neurons_fade,
    positive_data,
)
from reluflow.papers.bf24.runs import SMALL_SCALE, converged_run, log_total
from reluflow.problem import Problem

SCALES = (-10.0, -40.0, -400.0)  # logarithms
QUICK_SETS: dict[str, Any] = {"sets": 3, "m": 60, "d": 2}
FULL_SETS: dict[str, Any] = {"sets": 20, "m": 500}


def gap_stays_open(gaps: dict[float, float]) -> Hypothesis:
    """lambda below a threshold that is said to exist: what is seen from smaller and smaller ones.

    It counts as met where the gap does not fall with the scale, so that no threshold closes it.
    """
    logs = sorted(gaps, reverse=True)
    steady = gaps[logs[-1]] >= 0.99 * gaps[logs[0]]
    seen = ", ".join(f"{gaps[log]:.6f} at e^{log:g}" for log in logs)
    return Hypothesis("lambda below some threshold of the data", steady, f"gap {seen}")


@predicate("some neuron with a > 0 is active on a sample at the start")
def some_positive_neuron(evidence: Evidence) -> tuple[bool, str]:
    """Without one the network stays at f = 0, or below."""
    if evidence.start is None:
        return False, "the start is not known"
    count = int(np.count_nonzero((evidence.start.a > 0) & ~dead(evidence.problem, evidence.start)))
    return count > 0, f"{count} neurons"


LINE = [in_boxes, no_leak, square_loss, dominated_start, some_positive_neuron, at_rest]
CONVERGED: dict[str, Any] = {"example": converged_run, "full": {"m": 5000}}
REPAIRED: dict[str, Any] = {
    "form": "repaired",
    "needs": ("end",),
    "given": LINE,
    "unchecked": [SMALL_SCALE],
    **CONVERGED,
}


@claim("BF24-T2", part="dominated", quick={"m": 200, "kind": "dominated"}, **REPAIRED)
@claim("BF24-T2", quick={"m": 200, "kind": "balanced"}, **REPAIRED)
def learns_the_line(evidence: Evidence) -> list[Comparison]:
    """[BF24]_ Theorem 2: f = <beta*, x> on the cone of the data, and the loss stays positive."""
    p, net = evidence.problem, evidence.end()
    beta = least_squares(p)
    inside = np.random.default_rng(0).dirichlet(np.ones(p.n), 200) @ p.X
    X = np.vstack([p.X, inside])
    gap = np.abs(net.evaluate(X, p.leak) - X @ beta).max()
    error, line = (float(np.mean((f - p.y) ** 2)) for f in (p.outputs(net), p.X @ beta))
    return [
        at_most(gap, 1e-6, what="|f - <beta*, x>| on the cone of the data"),
        equals(error, line, tolerance=1e-7, what="mean squared error, that of the line"),
        at_least(line, 1e-3, what="which is positive"),
    ]


@claim(
    "BF24-T2",
    form="printed",
    needs=("end", "start"),
    given=[gradient_flow, in_boxes, no_leak, half_square, *LINE[3:]],
    quick={"m": 200, "kind": "dominated"},
    **CONVERGED,
)
def learns_the_line_everywhere(evidence: Evidence) -> Found:
    """ "For any x" alone: at the mirrored samples the end is not <beta*, x>.

    The theorem leaves its threshold of lambda open: flows from the same start, made smaller and
    smaller, end alike.
    """
    p, start = evidence.problem, evidence.first()
    line, gaps = p.X @ least_squares(p), {}
    log_lambda = log_total(start)
    for less in (0.0, -30.0, -400.0):
        t_end = 1000.0 - 3 * (log_lambda + less)
        net = flow(p, start.scaled(less), t_end=t_end).final if less else evidence.end()
        gaps[log_lambda + less] = float(np.abs(net.evaluate(-p.X, p.leak) + line).max())
    return Found(
        [at_most(min(gaps.values()), 1e-6, what="|f(-x_k) - <beta*, -x_k>|, least of all runs")],
        [gap_stays_open(gaps)],
    )


@claim(
    "BF24-L7",
    needs=("end",),
    given=[
        positive_data,
        dominant_extremes,
        negative_neurons_fade,
        no_leak,
        square_loss,
        dominated_start,
        at_rest,
    ],
    unchecked=[SMALL_SCALE],
    quick={"m": 200},
    **CONVERGED,
)
def one_bundle(evidence: Evidence) -> list[Comparison]:
    """[BF24]_ Lemma 7: no neuron is active on some samples only; the active ones sum to beta*."""
    p, net = evidence.problem, evidence.end()
    side = pattern(p, net.W)
    on, off = (side > 0).any(axis=1), (side < 0).any(axis=1)
    W, a = net.weights()
    beta = least_squares(p)
    gap = np.linalg.norm((a * (on & ~off)) @ W - beta) / np.linalg.norm(beta)
    mixed = np.count_nonzero(on & off & np.isfinite(net.log_norms))
    return [
        equals(mixed, 0, tolerance=0, what="neurons active on some samples only"),
        at_most(gap, 1e-8, what="|sum of a w - beta*| / |beta*|"),
    ]


@cache
def ends_of_flows(
    seed: int, sets: int, m: int, d: int, log_scale: float = -10.0
) -> list[tuple[Problem, Network]]:
    """Ends of flows on random sets that satisfy Assumptions 4 and 5, dominated start."""
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


@experiment(
    "BF24-T4",
    form="repaired",
    part="d3",
    quick={**QUICK_SETS, "d": 3},
    full=FULL_SETS,
    expected=Status.OUT_OF_SCOPE,
    reason="Assumption 6 (1) contradicts Assumption 4 for d >= 3: no data satisfy both",
)
@experiment("BF24-T4", form="repaired", quick=QUICK_SETS, full=FULL_SETS)
def line_in_the_cone(seed: int, sets: int, m: int, d: int) -> Found:
    """Theorem 4: the end equals <beta*, x> on the cone of the data, at positive loss."""
    found = ends_of_flows(seed, sets, m, d)
    inside = [np.random.default_rng(0).dirichlet(np.ones(p.n), 100) @ p.X for p, _ in found]
    gaps = [_line_gap(p, net, X) for (p, net), X in zip(found, inside, strict=True)]
    losses = [np.mean((p.outputs(net) - p.y) ** 2) for p, net in found]
    return Found(
        [
            at_most(max(gaps), 1e-6, what=f"|f - <beta*, x>| on the cone of the data, d = {d}"),
            at_least(min(losses), 1e-3, what="least mean squared error"),
        ],
        _assumptions_4_to_6(found),
    )


@experiment(
    "BF24-T4",
    form="control",
    part="d3-end",
    quick={**QUICK_SETS, "d": 3},
    full=FULL_SETS,
    reason="without Assumption 6, which no such data satisfy: the end is the line all the same",
)
def line_without_fading(seed: int, sets: int, m: int, d: int) -> Found:
    """The end of Theorem 4 where Assumptions 4 and 5 hold, whatever Assumption 6 says."""
    found = as_found(line_in_the_cone(seed, sets, m, d))
    return Found(found.comparisons, found.hypotheses[:1])


def _assumptions_4_to_6(found: list[tuple[Problem, Network]]) -> list[Hypothesis]:
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
        Hypothesis(
            "Assumption 6",
            all(negative_neurons_fade(e).ok for e in about),
            f"least margin {least:.3g}",
        ),
    ]


@experiment("BF24-T4", form="printed", quick=QUICK_SETS, full=FULL_SETS)
def line_everywhere(seed: int, sets: int, m: int, d: int) -> Found:
    """Theorem 4, "for any x" alone: at the mirrored samples the end is not <beta*, x>.

    The theorem leaves its threshold of lambda open: runs from ever smaller scales end alike.
    """
    runs = {log: ends_of_flows(seed, sets, m, d, log) for log in SCALES}
    gaps = {log: min(_line_gap(p, net, -p.X) for p, net in runs[log]) for log in SCALES}
    inside = max(_line_gap(p, net, p.X) for found in runs.values() for p, net in found)
    return Found(
        [at_most(min(gaps.values()), 1e-6, what="|f(-x_k) - <beta*, -x_k>|, least of all runs")],
        [
            *_setting_of_section_4(runs[SCALES[0]]),
            *_assumptions_4_to_6(runs[SCALES[0]]),
            gap_stays_open(gaps),
            _at_the_line(inside),
        ],
    )


def _setting_of_section_4(found: list[tuple[Problem, Network]]) -> list[Hypothesis]:
    """Loss and activation of Section 4, |a| >= |w| (kept by the flow, Lemma 1)."""
    about = [Evidence.of(p, start=net) for p, net in found]
    return [
        Hypothesis(test.name, all(test(e).ok for e in about), test(about[0]).detail)
        for test in (half_square, no_leak, dominated_start)
    ]


def _at_the_line(gap: float) -> Hypothesis:
    return Hypothesis("the runs have converged", gap <= 1e-6, f"|f - <beta*, x>| {gap:.1e} at x_k")
