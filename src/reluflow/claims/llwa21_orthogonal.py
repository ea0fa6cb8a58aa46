"""[LLWA21]_ Appendices H, I.2: orthogonally separable data have one KKT function, no branching."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.claim import Found, claim, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import margin_loss, no_leak, orthogonally_separable
from reluflow.claims.llwa21 import branchings
from reluflow.claims.llwa21_directions import NEAR, near_kkt
from reluflow.claims.llwa21_runs import least_margin, squared_norm, until
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.network import Network, initialize
from reluflow.optimum.kkt import kkt
from reluflow.optimum.max_margin import max_margin
from reluflow.problem import Problem, datasets

Array = NDArray[np.float64]


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
    return until(problem, net, q_min)


def exact_kkt(seed: int) -> Evidence:
    """A network made of v+ and v-."""
    problem = datasets.separable(0.6, 8, 3, rng=seed, loss="logistic", reduction="mean")
    return Evidence.of(problem, kkt_network(problem, seed))


def allowed(evidence: Evidence) -> tuple[float, float]:
    """Relative errors left to a network that is nearly KKT: of its weights, and of |theta|^2.

    With residual r and complementarity c, |theta|^2 exceeds its minimum by at most the order of
    c + r^2, and by strong convexity the square of the distance to the solution is of that order.
    """
    assert evidence.final is not None
    found = kkt(evidence.problem, evidence.final)
    excess = 2 * abs(found.complementarity) + (5 * found.residual + 1e-9) ** 2 + 1e-12
    return math.sqrt(excess), excess


def shared_function(evidence: Evidence, sign: float, factor: float) -> list[Comparison]:
    """At q_min = 1: f = phi(<v+, x>) + sign phi(<v-, x>), |theta|^2 = factor (|v+| + |v-|)."""
    p, net = evidence.problem, evidence.final
    assert net is not None
    q = least_margin(p, net)
    plus, minus = class_solutions(p)
    goal = np.maximum(p.X @ plus, 0.0) + sign * np.maximum(p.X @ minus, 0.0)
    gap = np.abs(p.outputs(net) / q - goal).max() / np.abs(goal).max()
    size = factor * float(np.linalg.norm(plus) + np.linalg.norm(minus))
    best = max_margin(p)
    distance, excess = allowed(evidence)
    return [
        at_most(gap, distance, what="|f - f_KKT| at q_min = 1, relative"),
        at_most(abs(squared_norm(net) / q / size - 1), excess,
                what="||theta|^2 / formula - 1| at q_min = 1"),
        at_most(abs(best.upper_bound * size - 1), 1e-7, what="|bound on margins x formula - 1|"),
    ]  # fmt: skip


PLAIN: dict[str, Any] = {
    "needs": ("end",), "given": [margin_loss, no_leak, orthogonally_separable, near_kkt]
}  # fmt: skip
RUN: dict[str, Any] = {"example": orthogonal_run, "quick": {"m": 10, "q_min": 3000.0},
                       "full": {"q_min": 20_000.0}}  # fmt: skip


@claim("LLWA21-H2", form="printed", **PLAIN, **RUN)
def printed_function(evidence: Evidence) -> list[Comparison]:
    """Printed with a plus between the two parts, and no factor 2."""
    return shared_function(evidence, 1.0, 1.0)


@claim("LLWA21-H2", form="repaired", **PLAIN, **RUN)
def one_function(evidence: Evidence) -> list[Comparison]:
    """f = phi(<v+, x>) - phi(<v-, x>), |theta|^2 = 2(|v+| + |v-|), the largest margin."""
    return shared_function(evidence, -1.0, 2.0)


@experiment("LLWA21-H2", form="repaired", part="exact", quick={"sets": 3}, full={"sets": 30})
def made_of_class_solutions(seed: int, sets: int) -> Found:
    """Networks made of v+ and v- are KKT and have the largest margin; with v+ turned they are not.

    The turned one separates still: its positive neurons point along the mean of their class.
    """
    residual, gap, control = 0.0, 0.0, np.inf
    hypotheses: list[Hypothesis] = []
    for i in range(sets):
        evidence = exact_kkt(seed + i)
        p, net = evidence.problem, evidence.final
        assert net is not None
        hypotheses += [test(evidence) for test in (no_leak, orthogonally_separable)]
        residual = max(residual, kkt(p, net, tol=1e-9).residual)
        plus, minus = (float(np.linalg.norm(v)) for v in class_solutions(p))
        gap = max(gap, abs(max_margin(p).upper_bound * 2 * (plus + minus) - 1))
        control = min(control, kkt(p, turned(p, net), tol=1e-9).residual)
    return Found(
        [
            at_most(residual, 1e-10, what="KKT residual of networks made of v+ and v-"),
            at_most(gap, 1e-7, what="|bound on margins x 2(|v+| + |v-|) - 1|"),
            at_least(control, NEAR, what="KKT residual with v+ turned towards the mean, least"),
        ],
        hypotheses,
    )


def turned(problem: Problem, net: Network) -> Network:
    """The same with inner weights of positive neurons along the mean of the positive class."""
    mean = problem.X[problem.y > 0].mean(axis=0)
    W, a = net.weights()
    W = np.where((a > 0)[:, None], np.outer(np.abs(a), mean / np.linalg.norm(mean)), W)
    return Network(W, a)


def solves_q(evidence: Evidence, signed: bool) -> list[Comparison]:
    """(sum of same-sign a_j^2) w_k/a_k, or over |a_k|, against v+ or v-, neurons not negligible."""
    p, net = evidence.problem, evidence.final
    assert net is not None
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
    distance, _ = allowed(evidence)
    return [
        at_most(worst, distance, what="neurons against v+ or v-, relative"),
        at_most(imbalance, distance, what="||w|/|a| - 1|"),
    ]


@claim("LLWA21-H3", form="printed", **PLAIN, **RUN)
def printed_neurons(evidence: Evidence) -> list[Comparison]:
    """w_k/a_k has the wrong sign for a_k < 0."""
    return solves_q(evidence, True)


@claim("LLWA21-H3", form="repaired", **PLAIN, **RUN)
def neurons_solve_q(evidence: Evidence) -> list[Comparison]:
    """w_k/|a_k|."""
    return solves_q(evidence, False)


def edges(problem: Problem, net: Network) -> tuple[int, int, int]:
    """Kinks (j, i) of the network put there one by one: ridges, valleys, refractions.

    v1 and v2 are the rates of <w_j, x_i> with slope 1 and slope leak at the kink.
    """
    c = problem.pull_at(problem.outputs(net))
    gram = problem.X @ problem.X.T
    counts = [0, 0, 0]
    for j in range(net.m):
        for i in range(problem.n):
            x = problem.X[i]
            w = net.W[j] - x * (net.W[j] @ x) / (x @ x)
            h = np.where(problem.X @ w > 0, 1.0, problem.leak)
            rest = float((h * c * gram[i]).sum() - h[i] * c[i] * gram[i, i])
            v1, v2 = (net.a[j] * (rest + s * c[i] * gram[i, i]) for s in (1.0, problem.leak))
            counts[0 if v2 < 0 < v1 else 1 if v1 < 0 < v2 else 2] += 1
    return counts[0], counts[1], counts[2]


@experiment("LLWA21-I2", quick={"draws": 20}, full={"draws": 500})
def no_ridges(seed: int, draws: int) -> Found:
    """No kink is a ridge on orthogonally separable data; on others some are."""
    ridges, control, met = 0, 0, 0
    hypotheses = []
    for i in range(draws):
        rng = np.random.default_rng([seed, i])
        leak = float(rng.choice([0.0, 0.3, 0.7]))
        problem = datasets.separable(
            0.9, 6, 3, rng=rng, loss="logistic", leak=leak, reduction="mean"
        )
        net = initialize(problem, 5, scale=10.0 ** rng.uniform(-3, 0.5), kind="gaussian", rng=rng)
        test = orthogonally_separable(Evidence.of(problem))
        if not test.ok:
            continue
        hypotheses = [test]
        ridges += edges(problem, net)[0]
        other = Problem(problem.X, rng.permutation(problem.y), problem.loss, leak)
        control += edges(other, net)[0]
        if i < 5:
            met += branchings(until(problem, net, 5.0))
    return Found(
        [
            at_most(ridges, 0, what="kinks that are ridges"),
            at_most(met, 0, what="moments at which runs could branch"),
            at_least(control, 1, what="ridges with the labels shuffled"),
        ],
        hypotheses,
    )
