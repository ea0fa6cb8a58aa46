"""[LLWA21]_ Appendix H: orthogonally separable data have one KKT function."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import margin_loss, no_leak, orthogonally_separable
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.network import Network, initialize
from reluflow.optimum.kkt import kkt
from reluflow.optimum.max_margin import max_margin
from reluflow.optimum.min_norm import min_norm
from reluflow.papers.llwa21.claims.directions import NEAR, near_kkt
from reluflow.papers.llwa21.runs import flow_until, least_margin
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Logistic


def class_solutions(problem: Problem) -> tuple[Array, Array]:
    """v+ and v-: least |v| with <v, x_i> >= 1 on the positive, and on the negative samples."""
    found = []
    for sign in (1.0, -1.0):
        mine = problem.y == sign
        part = Problem(problem.X[mine], np.ones(int(mine.sum())), problem.loss)
        best = max_margin(part, "linear")
        found.append(best.w / best.margin)
    return found[0], found[1]


def kkt_network(problem: Problem, seed: int, m: int = 3) -> Network:
    """A KKT direction: v+ and v- split among m neurons of each sign, at random."""
    rng = np.random.default_rng(seed)
    W, a = [], []
    for sign, v in zip((1.0, -1.0), class_solutions(problem), strict=True):
        size = float(np.linalg.norm(v))
        shares = rng.dirichlet(np.ones(m)) * size  # a_k^2, which add up to |v|
        W += [math.sqrt(share) * v / size for share in shares]
        a += [sign * math.sqrt(share) for share in shares]
    return Network(np.array(W), np.array(a))


@cache
def orthogonal_run(seed: int, m: int, q_min: float) -> Evidence:
    """ReLU, orthogonally separable data, a small balanced start, to a large margin."""
    problem = datasets.separable(0.6, 8, 3, rng=seed, loss="logistic", reduction="mean")
    net = initialize(problem, m, scale=1e-3, kind="balanced", rng=seed)
    return flow_until(problem, net, q_min)


def exact_kkt(seed: int) -> Evidence:
    """A network made of v+ and v-."""
    problem = datasets.separable(0.6, 8, 3, rng=seed, loss="logistic", reduction="mean")
    return Evidence.of(problem, kkt_network(problem, seed))


@predicate("a KKT direction (residual at most 1e-9)")
def is_kkt(evidence: Evidence) -> tuple[bool, str]:
    """The KKT conditions of (P) hold up to rounding."""
    residual = kkt(evidence.problem, evidence.end(), tol=1e-9).residual
    return residual <= 1e-9, f"residual {residual:.1e}"


@predicate("some a_k < 0")
def some_negative(evidence: Evidence) -> tuple[bool, str]:
    """There is a neuron of which w_k/a_k and w_k/|a_k| differ."""
    count = int((evidence.end().a < 0).sum())
    return count > 0, f"{count} of {evidence.end().m}"


def allowed_errors(evidence: Evidence) -> tuple[float, float]:
    """Relative errors left to a network that is nearly KKT: of its weights, and of |theta|^2.

    With residual r and complementarity c, |theta|^2 exceeds its minimum by at most the order of
    c + r^2, and by strong convexity the square of the distance to the solution is of that order.
    """
    found = kkt(evidence.problem, evidence.end())
    excess = 2 * abs(found.complementarity) + (5 * found.residual + 1e-9) ** 2 + 1e-12
    return math.sqrt(excess), excess


def kkt_outputs(problem: Problem) -> tuple[Array, Array]:
    """phi(<v+, x_i>) and phi(<v-, x_i>), whose difference is f at q_min = 1."""
    plus, minus = class_solutions(problem)
    return np.maximum(problem.X @ plus, 0.0), np.maximum(problem.X @ minus, 0.0)


def kkt_size(problem: Problem) -> float:
    """2 (|v+| + |v-|), which is |theta|^2 at q_min = 1."""
    plus, minus = class_solutions(problem)
    return 2 * float(np.linalg.norm(plus) + np.linalg.norm(minus))


PLAIN: dict[str, Any] = {
    "needs": ("end",),
    "given": [margin_loss, no_leak, orthogonally_separable, near_kkt],
}
RUN: dict[str, Any] = {
    "example": orthogonal_run,
    "quick": {"m": 10, "q_min": 3000.0},
    "full": {"q_min": 20_000.0},
}


@claim("LLWA21-H2", **PLAIN, **RUN)
def one_function(evidence: Evidence) -> list[Comparison]:
    """The same function and norm at q_min = 1 for every KKT direction, and the largest margin.

    f = phi(<v+, x>) - phi(<v-, x>) and |theta|^2 = 2 (|v+| + |v-|).
    """
    p, net = evidence.problem, evidence.end()
    q = least_margin(p, net)
    up, down = kkt_outputs(p)
    goal = up - down
    gap = np.abs(p.outputs(net) / q - goal).max() / np.abs(goal).max()
    size = kkt_size(p)
    best = max_margin(p)
    distance, excess = allowed_errors(evidence)
    off = abs(net.norm2 / q / size - 1)
    return [
        at_most(gap, distance, what="|f - f_KKT| at q_min = 1, relative"),
        at_most(off, excess, what="||theta|^2 / formula - 1| at q_min = 1"),
        at_most(abs(best.upper_bound * size - 1), 1e-7, what="|bound on margins x formula - 1|"),
    ]


@experiment("LLWA21-H2", part="exact", quick={"sets": 3}, full={"sets": 30})
def made_of_class_solutions(seed: int, sets: int) -> Found:
    """Networks made of v+ and v- are KKT and have the largest margin; with v+ turned they are not.

    The turned one separates still: its positive neurons point along the mean of their class.
    """
    residual, gap, control = 0.0, 0.0, np.inf
    hypotheses: list[Hypothesis] = []
    for i in range(sets):
        evidence = exact_kkt(seed + i)
        p, net = evidence.problem, evidence.end()
        hypotheses += [test(evidence) for test in (no_leak, orthogonally_separable)]
        residual = max(residual, kkt(p, net, tol=1e-9).residual)
        gap = max(gap, abs(max_margin(p).upper_bound * kkt_size(p) - 1))
        control = min(control, kkt(p, turn_to_mean(p, net), tol=1e-9).residual)
    return Found(
        [
            at_most(residual, 1e-10, what="KKT residual of networks made of v+ and v-"),
            at_most(gap, 1e-7, what="|bound on margins x 2(|v+| + |v-|) - 1|"),
            at_least(control, NEAR, what="KKT residual with v+ turned towards the mean, least"),
        ],
        hypotheses,
    )


def all_on_the_margin(rng: np.random.Generator) -> Problem:
    """Two orthogonally separable classes all of whose samples have a multiplier.

    Samples of a class share one coordinate and have one of their own, so the multipliers
    (one over the square of the own coordinate, up to a common factor) are positive.
    """
    lift = rng.uniform(0.2, 0.4, 2)
    X = np.zeros((6, 8))
    for k in range(2):
        rows = slice(3 * k, 3 * k + 3)
        X[rows, 4 * k] = lift[k]
        X[rows, 4 * k + 1 : 4 * k + 4] = np.diag(rng.uniform(0.6, 0.9, 3))
    return Problem(X, np.repeat([1.0, -1.0], 3), Logistic(), 0.0)


@experiment("LLWA21-H2", part="least norm", quick={"sets": 3}, full={"sets": 30})
def least_norm_of_p(seed: int, sets: int) -> Found:
    """Where all samples are on the margin, (P) asks to interpolate: |theta|^2 = 2(|v+| + |v-|).

    Found by the search for the smallest interpolating network, from both sides.
    """
    above, below, spread = 0.0, 0.0, 0.0
    hypotheses: list[Hypothesis] = []
    for i in range(sets):
        p = all_on_the_margin(np.random.default_rng([seed, i]))
        hypotheses += [test(Evidence.of(p)) for test in (no_leak, orthogonally_separable)]
        up, down = kkt_outputs(p)
        spread = max(spread, float(np.abs(p.y * (up - down) - 1).max()))
        size = kkt_size(p)
        found = min_norm(Problem(p.X, p.y, leak=0.0))
        above = max(above, abs(found.norm2 / size - 1))
        below = max(below, abs(found.lower_bound / size - 1))
    return Found(
        [
            at_most(spread, 1e-9, what="|y f - 1| of the formula: all samples on the margin"),
            at_most(above, 1e-7, what="|norm^2 of the smallest interpolator / formula - 1|"),
            at_most(below, 1e-7, what="|bound below the norm^2 of all / formula - 1|"),
        ],
        hypotheses,
    )


@experiment(
    "LLWA21-H2",
    form="slip",
    quick={"sets": 3},
    full={"sets": 30},
    printed="f = phi(<x, w+>) + phi(<x, w->) and |theta|^2 = |w+| + |w-| at q_min = 1 "
    "(proof of Theorem H.2)",
    meant="f = phi(<x, w+>) - phi(<x, w->) and |theta|^2 = 2(|w+| + |w-|)",
)
def sign_and_factor_in_the_proof(seed: int, sets: int) -> Found:
    """Both formulas at exact KKT directions; on negative samples the printed f is positive."""
    off, size, least, ratio = 0.0, 0.0, np.inf, 0.0
    hypotheses: list[Hypothesis] = []
    for i in range(sets):
        evidence = exact_kkt(seed + i)
        p, net = evidence.problem, evidence.end()
        hypotheses += [test(evidence) for test in (no_leak, orthogonally_separable, is_kkt)]
        up, down = kkt_outputs(p)
        f = p.outputs(net) / least_margin(p, net)
        off = max(off, float(np.abs(f - (up - down)).max()))
        least = min(least, float(np.abs(f - (up + down))[p.y < 0].min()))
        here = net.norm2 / least_margin(p, net) / kkt_size(p)
        size, ratio = max(size, abs(here - 1)), max(ratio, 1 / (2 * here))
    return Found(
        [
            at_most(off, 1e-9, what="|f - meant f|, largest"),
            at_most(size, 1e-9, what="||theta|^2 / meant - 1|, largest"),
            at_least(least, 1.9, what="|f - printed f| on negative samples (2 or more), least"),
            at_most(ratio, 0.51, what="printed |theta|^2 over the true one (1/2), largest"),
        ],
        hypotheses,
    )


def turn_to_mean(problem: Problem, net: Network) -> Network:
    """The same with inner weights of positive neurons along the mean of the positive class."""
    mean = problem.X[problem.y > 0].mean(axis=0)
    W, a = net.weights()
    W = np.where((a > 0)[:, None], np.outer(np.abs(a), mean / np.linalg.norm(mean)), W)
    return Network(W, a)


def solves_q(evidence: Evidence, signed: bool) -> list[Comparison]:
    """(sum of same-sign a_j^2) w_k/a_k, or over |a_k|, against v+ or v-, neurons not negligible."""
    p, net = evidence.problem, evidence.end()
    W, a = net.weights()
    W, a = W / math.sqrt(least_margin(p, net)), a / math.sqrt(least_margin(p, net))
    worst, imbalance = 0.0, 0.0
    for sign, v in zip((1.0, -1.0), class_solutions(p), strict=True):
        mine = (np.sign(a) == sign) & (np.abs(a) > 1e-2 * np.abs(a).max())
        total = float(np.sum(a[np.sign(a) == sign] ** 2))
        ratio = W[mine] / (a[mine] if signed else np.abs(a[mine]))[:, None]
        worst = max(worst, float(np.abs(total * ratio - v).max() / np.linalg.norm(v)))
        sizes = np.linalg.norm(W[mine], axis=1)
        imbalance = max(imbalance, float(np.abs(sizes / np.abs(a[mine]) - 1).max()))
    distance, _ = allowed_errors(evidence)
    return [
        at_most(worst, distance, what="neurons against v+ or v-, relative"),
        at_most(imbalance, distance, what="||w|/|a| - 1|"),
    ]


@claim(
    "LLWA21-H3",
    form="printed",
    needs=("end",),
    example=exact_kkt,
    given=[margin_loss, no_leak, orthogonally_separable, is_kkt, some_negative],
)
def printed_neurons(evidence: Evidence) -> Comparison:
    """w_k/a_k of a negative neuron points away from the samples of its class."""
    return solves_q(evidence, True)[0]


@claim("LLWA21-H3", form="repaired", **PLAIN, **RUN)
def neurons_solve_q(evidence: Evidence) -> list[Comparison]:
    """w_k/|a_k|."""
    return solves_q(evidence, False)


@experiment("LLWA21-H3", form="repaired", part="exact", quick={"sets": 3}, full={"sets": 30})
def exact_neurons_solve_q(seed: int, sets: int) -> Found:
    """The same at exact KKT directions."""
    found = [exact_kkt(seed + i) for i in range(sets)]
    rows = [solves_q(evidence, False) for evidence in found]
    tests = (no_leak, orthogonally_separable, is_kkt)
    comparisons = [
        at_most(max(c.measured for c in each), 1e-9, what=each[0].what)
        for each in zip(*rows, strict=True)
    ]
    return Found(comparisons, [test(evidence) for evidence in found for test in tests])
