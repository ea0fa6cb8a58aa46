"""[LLWA21]_ Theorem 5.5 and Appendix F.1: two neurons on symmetric data, and Theorem 4.3's rate."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    balanced_start,
    mean_logistic,
    separable,
    some_leak,
    symmetric_data,
    unit_ball,
)
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.network import Network, initialize
from reluflow.optimum.kkt import kkt
from reluflow.optimum.max_margin import max_margin
from reluflow.papers.llwa21.claims.assumptions import (
    BELOW_SIGMA_MAX,
    SETTING,
    both_signs,
    large_margins,
    off_the_mean,
)
from reluflow.papers.llwa21.claims.directions import NEAR, pair
from reluflow.papers.llwa21.runs import (
    branchings,
    decade,
    direction,
    flow_until,
    has_decade,
    in_unit_ball,
    least_margin,
    margin,
    none_met,
    sup_error,
)
from reluflow.problem import Problem, datasets
from reluflow.trajectory.save import every

REACHED = (50.0, 500.0, 2000.0)  # q_min at which the margin is looked at


@experiment(
    "LLWA21-T4.3",
    part="rate",
    quick={"m": 6, "sets": 1},
    full={"m": 6, "sets": 10},
    unchecked=BELOW_SIGMA_MAX,
)
def ratios_of_the_margin(seed: int, m: int, sets: int) -> Found:
    """1 - gamma/gamma_max at q_min 50, 500, 2000 from sigma = 1e-4: at most 1/q_min, as in T4.3.

    Some draws are late: the bound is held against the median, and at the last q_min against all.
    """
    found: dict[float, list[float]] = {q: [] for q in REACHED}
    short, several = 1.0, 0
    hypotheses: list[Hypothesis] = []
    for i in range(sets):
        problem = datasets.symmetric_separable(rng=seed + i)
        best = (1 + problem.leak) / 4 * max_margin(problem, "linear").margin
        net = initialize(problem, m, scale=1e-4, kind="gaussian", normalize="none", rng=seed + i)
        start = Evidence.of(problem, start=net)
        hypotheses += [test(start) for test in (symmetric_data, off_the_mean, both_signs)]
        for q, ratios in found.items():
            evidence = flow_until(problem, net, q)
            end = evidence.end()
            several += branchings(evidence)
            ratios.append(margin(problem, end) / best)
            short = min(short, least_margin(problem, end) / q)
            net = end
    last = max(REACHED)
    comparisons = [
        at_least(short, 1 - 1e-9, what="q_min reached over that asked for, least (1 or more)"),
        *(
            at_most(q * (1 - np.median(found[q])), 1.0, what=f"(1 - gamma/gamma_max) q_min, {q:g}")
            for q in REACHED
        ),
        at_least(min(found[last]), 1 - 1 / last, error=1e-7, what="least of them at the last"),
        at_most(max(found[last]), 1 + 1e-9, what="and none above the largest margin"),
    ]
    return Found(comparisons, [*hypotheses, none_met(several)])


@predicate("two neurons, a1 > 0 > a2, on their sides of w*")
def opposite_pair(evidence: Evidence) -> tuple[bool, str]:
    """m = 2, <w1, w*> > 0 > <w2, w*>."""
    net = evidence.start
    if net is None or net.m != 2:
        return False, "there are not two neurons"
    along = net.directions @ max_margin(evidence.problem, "linear").w
    fine = net.a[0] > 0 > net.a[1] and along[0] > 0 > along[1]
    return bool(fine), f"signs {np.sign(net.a)}, cosines with w* {np.round(along, 3)}"


def opposite_run(problem: Problem, seed: int, q_min: float) -> Evidence:
    """Two random neurons of opposite sign on their sides, of size 1, to a large margin."""
    W = np.random.default_rng(seed).standard_normal((2, problem.d))
    W *= (np.sign(W @ max_margin(problem, "linear").w) * [1, -1])[:, None]
    net = Network(W, np.linalg.norm(W, axis=1) * [1, -1], leak=problem.leak)
    return flow_until(problem, net, q_min, save=every(0.25))


@cache
def two_opposite(seed: int, q_min: float) -> Evidence:
    """Such a run on symmetric data."""
    return opposite_run(datasets.symmetric_separable(rng=seed), seed, q_min)


def distance_to(evidence: Evidence, net: Network, factor: float) -> float:
    """|theta/|theta| - factor (w*, -w*, 1, -1)|."""
    w = max_margin(evidence.problem, "linear").w
    return float(np.linalg.norm(direction(net) - 2 * factor * direction(pair(w, 0))))


PAIR: dict[str, Any] = {
    "needs": ("start", "path"),
    "given": [
        *SETTING,
        symmetric_data,
        balanced_start,
        opposite_pair,
        large_margins,
        has_decade,
    ],
    "example": two_opposite,
    "quick": {"q_min": 2000.0},
    "full": {"q_min": 20_000.0},
}


@cache
def two_opposite_small(seed: int, q_min: float) -> Evidence:
    """The same with inputs in the unit ball, as Section 3.2 supposes."""
    problem = in_unit_ball(datasets.symmetric_separable(rng=seed))
    return opposite_run(problem, seed, q_min)


@claim(
    "LLWA21-T5.5",
    form="printed",
    needs=("start", "end"),
    example=two_opposite_small,
    given=[
        mean_logistic,
        some_leak,
        unit_ball,
        separable,
        symmetric_data,
        balanced_start,
        opposite_pair,
    ],
    quick={"q_min": 100.0},
    full={"q_min": 20_000.0},
)
def tends_to_quarter(evidence: Evidence) -> Comparison:
    """(1/4)(w*, -w*, 1, -1) has norm 1/2, so that no theta/|theta| comes nearer than 1/2 to it."""
    net = evidence.end()
    bound = 1 / np.sqrt(least_margin(evidence.problem, net))
    what = "|theta/|theta| - (w*, -w*, 1, -1)/4|, against 1/sqrt(q_min)"
    return at_most(distance_to(evidence, net, 0.25), bound, what=what)


@claim("LLWA21-T5.5", form="repaired", **PAIR)
def tends_to_half(evidence: Evidence) -> list[Comparison]:
    """(1/2)(w*, -w*, 1, -1).

    The distance falls as 1/|theta| from order 1 at q_min = 1, that of f/|theta|^2 with it.
    """
    p = evidence.problem
    early, end = (evidence.path()[i] for i in decade(evidence))
    gaps = [distance_to(evidence, net, 0.5) for net in (early, end)]
    grown = np.sqrt(end.norm2 / early.norm2)
    w = max_margin(p, "linear").w
    off = sup_error(p, end, lambda inputs: (1 + p.leak) / 4 * (inputs @ w))
    bound = 1 / np.sqrt(least_margin(p, end))
    return [
        at_most(gaps[1] / gaps[0] * grown, 1.1, what="distance times |theta|, last decade of q"),
        at_most(gaps[1], bound, what="distance against 1/sqrt(q_min)"),
        at_most(off, bound, what="f/|theta|^2 against its limit, relative, 1/sqrt(q_min)"),
    ]


@experiment("LLWA21-LF.1", quick={"draws": 300}, full={"draws": 5000})
def swapped_slopes(seed: int, draws: int) -> list[Comparison]:
    """y(phi(<u1,x>) - phi(-<u2,x>)) >= 1 everywhere: the sum with swapped slopes is too."""
    least, used = np.inf, 0
    for i in range(draws):
        rng = np.random.default_rng([seed, i])
        problem = datasets.symmetric_separable(4, 2, rng=rng)
        w = problem.known["w_star"]
        u1, u2 = w + rng.uniform(0, 2) * rng.standard_normal((2, 2))
        if i % 4 == 0:  # on a kink
            x = problem.X[0]
            u1 = u1 - x * (u1 @ x) / (x @ x)
        sums = _swapped_sums(problem, u1, u2)
        least, used = min([least, *sums]), used + bool(sums)
    return [
        at_least(used, draws / 10, what="draws with a positive least value"),
        at_least(least, 1 - 1e-12, what="least swapped sum, up to rounding"),
    ]


def _swapped_sums(problem: Problem, u1: Array, u2: Array) -> list[float]:
    """Least swapped sums, for both slopes at kinks, at the scale where the least plain one is 1.

    None where the least plain one is not positive.
    """
    X, y, leak = problem.X, problem.y, problem.leak
    s1, s2 = X @ u1, X @ u2
    plain = float((y * (np.maximum(s1, leak * s1) - np.maximum(-s2, -leak * s2))).min())
    if not plain > 0:
        return []
    found, tiny = [], 1e-12 * np.linalg.norm(X, axis=1)
    for kink in (leak, 1.0):
        h1 = np.where(np.abs(s1) <= tiny, kink, np.where(s1 > 0, 1.0, leak))
        h2 = np.where(np.abs(s2) <= tiny, kink, np.where(-s2 > 0, 1.0, leak))
        found.append(float((y * (h1 * s2 + h2 * s1)).min()) / plain)
    return found


@experiment("LLWA21-LF.2", quick={"starts": 2, "q": 500.0}, full={"starts": 10, "q": 2000.0})
def kkt_pairs_are_opposite(seed: int, starts: int, q: float) -> list[Comparison]:
    """Pairs with a1 > 0 > a2 that the flow leads to KKT directions end with w1 = -w2."""
    worst, unlike, used = 0.0, np.inf, 0
    for i in range(starts):
        rng = np.random.default_rng([seed, i])
        problem = datasets.symmetric_separable(rng=rng)
        w = problem.known["w_star"]
        W = rng.uniform(0.3, 2, (2, 1)) * (np.array([w, -w]) + rng.uniform(-0.5, 0.5, (2, w.size)))
        a = rng.uniform(1.0, 1.5, 2) * np.linalg.norm(W, axis=1) * [1, -1]
        start = Network(W, a, leak=problem.leak)
        end = flow_until(problem, start, q).end()
        if kkt(problem, end).residual > NEAR:
            continue
        used += 1
        unlike = min(unlike, _distance_from_opposite(start))
        worst = max(worst, _distance_from_opposite(end))
    return [
        at_least(used, starts / 2, what="runs that are near a KKT direction at the end"),
        at_most(worst, 0.5 / np.sqrt(q), what="(|w1 + w2| + |a1 + a2|)/|theta| at the end"),
        at_least(unlike, 0.3, what="(|w1 + w2| + |a1 + a2|)/|theta| at the start, least"),
    ]


def _distance_from_opposite(net: Network) -> float:
    """|w1 + w2|, |a1 + a2| and the largest imbalance, over |theta|."""
    W, a = net.weights()
    gap = np.linalg.norm(W[0] + W[1]) + abs(a[0] + a[1])
    gap += np.abs(np.abs(a) - np.linalg.norm(W, axis=1)).max()
    return float(gap / np.sqrt(net.norm2))


@experiment("LLWA21-T4.3", part="moments", quick={"m": 200_000}, full={"m": 5_000_000})
def gaussian_start(seed: int, m: int) -> list[Comparison]:
    """The start of the theorem: w_j ~ N(0, sigma^2 I), a_j ~ N(0, c_a^2 sigma^2), by moments.

    Second moments have relative standard error sqrt(2/draws); within five of them.
    """
    problem = datasets.figure1_left()
    sigma, made = 1e-3, []
    for c_a in (1.0, 0.5):
        net = initialize(problem, m, sigma, "gaussian", seed, normalize="none", outer_factor=c_a)
        for name, draws, size in (("w", net.W, sigma), ("a", net.a, c_a * sigma)):
            ratio, error = np.mean(draws**2) / size**2, 5 * np.sqrt(2 / draws.size)
            what = f"mean {name}^2 over its variance, c_a = {c_a:g}"
            made.append(equals(ratio, 1.0, tolerance=error, what=what))
        mixed = np.mean(net.W[:, 0] * net.a) / (c_a * sigma**2)
        made.append(equals(mixed, 0.0, tolerance=5 / np.sqrt(m), what="mean w_1 a, c_a = 1 units"))
    return made
