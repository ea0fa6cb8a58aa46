"""[LLWA21]_: assumptions on data, and the limit of training on symmetric data."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import assumption, claim, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    margin_loss,
    mean_logistic,
    orthogonally_separable,
    separable,
    some_leak,
    symmetric_data,
)
from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.kernels.codes import BRANCH
from reluflow.network import Network, initialize
from reluflow.problem import Problem, datasets


def sides(problem: Problem) -> tuple[Array, Array, Array]:
    """mu, mu+, mu-: means of y_i x_i, with slopes 1 on one class and leak on the other."""
    Z = problem.y[:, None] * problem.X / problem.n
    plus = np.where(problem.y > 0, 1.0, problem.leak)
    minus = np.where(problem.y > 0, problem.leak, 1.0)
    return Z.sum(axis=0), plus @ Z, minus @ Z


@predicate("no sample orthogonal to mu (4.5)")
def off_the_mean(evidence: Evidence) -> tuple[bool, str]:
    """<mu, x_i> != 0."""
    p = evidence.problem
    mu = sides(p)[0]
    size = np.linalg.norm(mu) * p.norms
    least = float((np.abs(p.X @ mu) / np.where(size > 0, size, 1.0)).min())
    return least > 1e-9, f"least |cos(mu, x)| {least:.3g}"


@predicate("every leaky mean separates (A.2)")
def means_separate(evidence: Evidence) -> tuple[bool, str]:
    """<mu, y_i x_i> > (1 - leak)/(n leak) sum_j max(-<y_i x_i, y_j x_j>, 0)."""
    p = evidence.problem
    Z = p.y[:, None] * p.X
    K = Z @ Z.T
    gap = K.sum(axis=1) / p.n
    if p.leak == 0.0:
        return bool((K >= 0).all() and (gap > 0).all()), "leak 0"
    gap = gap - (1 - p.leak) / (p.n * p.leak) * np.maximum(-K, 0.0).sum(axis=1)
    return bool((gap > 0).all()), f"least gap {gap.min():.3g}"


@predicate("|mu+| > |mu-| (A.3)")
def plus_is_longer(evidence: Evidence) -> tuple[bool, str]:
    """The positive class pulls harder."""
    _, plus, minus = sides(evidence.problem)
    a, b = float(np.linalg.norm(plus)), float(np.linalg.norm(minus))
    return a > b, f"|mu+| {a:.4g}, |mu-| {b:.4g}"


@predicate("|mu+| < |mu-| (A.8)")
def minus_is_longer(evidence: Evidence) -> tuple[bool, str]:
    """The negative class pulls harder."""
    _, plus, minus = sides(evidence.problem)
    a, b = float(np.linalg.norm(plus)), float(np.linalg.norm(minus))
    return a < b, f"|mu+| {a:.4g}, |mu-| {b:.4g}"


def symmetric(seed: int) -> Evidence:
    """Separable symmetric data."""
    return Evidence.of(datasets.symmetric_separable(rng=seed))


def hinted(seed: int) -> Evidence:
    """Data with three hints (Figure 1 right)."""
    return Evidence.of(datasets.figure1_right())


def mirrored(seed: int) -> Evidence:
    """The same with labels and points flipped."""
    p = datasets.figure1_right()
    return Evidence.of(Problem(-p.X, -p.y, p.loss, p.leak, name="mirrored hints"))


def separable_data(seed: int) -> Evidence:
    """Positively correlated data, which are orthogonally separable."""
    return Evidence.of(datasets.separable(0.4, 10, 3, rng=seed))


assumption("LLWA21-A3.2", margin_loss, separable, example=symmetric)
assumption("LLWA21-A4.1", margin_loss, symmetric_data, example=symmetric)
assumption("LLWA21-A4.5", margin_loss, off_the_mean, example=symmetric)
assumption("LLWA21-A.2", margin_loss, means_separate, example=hinted)
assumption("LLWA21-A.3", margin_loss, plus_is_longer, example=hinted)
assumption("LLWA21-A.8", margin_loss, minus_is_longer, example=mirrored)
assumption("LLWA21-DefH.1", margin_loss, orthogonally_separable, example=separable_data)


def sup_error(problem: Problem, net: Network, limit: Callable[[Array], Array]) -> float:
    """Largest |f/|theta|^2 - limit| over the largest |limit|, on the unit sphere.

    Inputs are random ones and the directions of the samples; both sides are homogeneous in x.
    """
    random = np.random.default_rng(0).standard_normal((4000, problem.d))
    inputs = np.vstack([random, problem.X[problem.X.any(axis=1)]])
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    most = float(np.max(np.maximum(net.log_norms, net.log_outer)))
    W, a = net.scaled(-most).weights()
    f = Network(W, a).evaluate(inputs, problem.leak) / (np.sum(W**2) + np.sum(a**2))
    ends = limit(inputs)
    return float(np.abs(f - ends).max() / np.abs(ends).max())


@cache
def late_run(seed: int, m: int, q_min: float) -> Evidence:
    """Symmetric data, small Gaussian start, in the clock of the loss to large margins."""
    from reluflow.gradientflow.flow import flow

    problem = datasets.symmetric_separable(rng=seed)
    net = initialize(problem, m, scale=1e-4, kind="gaussian", normalize="none", rng=seed)

    def far(p: Problem, state: Network, time: float) -> bool:
        return float(np.min(p.y * p.outputs(state))) >= q_min

    run = flow(problem, net, clock="loss", stop=far, save=[0.0])
    return Evidence.of(problem, run)


@predicate("the margins are large (q_min >= 50)")
def large_margins(evidence: Evidence) -> tuple[bool, str]:
    """The run is in its late phase."""
    q = float(np.min(evidence.problem.y * evidence.problem.outputs(evidence.end())))
    return q >= 50, f"q_min {q:.4g}"


@predicate("small start: m |theta_0|_M^2 max|x|, which bounds |f|, at most 1e-3")
def small_start(evidence: Evidence) -> tuple[bool | None, str]:
    """What can be said of "below sigma_max": small for certain, large for certain, or open."""
    net = evidence.start
    if net is None:
        return None, "the start is not known"
    radius = float(evidence.problem.norms.max())
    size = net.m * radius * float(np.exp(2 * np.max(np.maximum(net.log_norms, net.log_outer))))
    return (True if size <= 1e-3 else None if size <= 1e-1 else False), f"{size:.2g}"


def branchings(evidence: Evidence) -> int:
    """Moments of the run at which it could have gone on otherwise, as the flow counts them."""
    kinds = evidence.trajectory().events.get("kind", np.empty(0))
    return int(np.sum(np.asarray(kinds) == BRANCH))


@predicate("no branching met on the way (4.6, A.6)")
def one_way(evidence: Evidence) -> tuple[bool | None, str]:
    """The run had one continuation at every kink."""
    if evidence.run is None or evidence.run.settings.get("kind") != "flow":
        return None, "there is no flow to look at"
    several = branchings(evidence)
    return several == 0, f"{several} moments with several continuations"


@predicate("neurons of both signs at the start (bbar good)")
def both_signs(evidence: Evidence) -> tuple[bool | None, str]:
    """<w_j, mu>/|mu| + a_j takes both signs: an event of probability 1 - 2^-(m-1)."""
    net = evidence.start
    if net is None:
        return None, "the start is not known"
    mu = sides(evidence.problem)[0]
    b = net.W @ mu / np.linalg.norm(mu) + net.a
    up, down = int((b > 0).sum()), int((b < 0).sum())
    return up > 0 and down > 0, f"{up} positive, {down} negative"


LATE: dict[str, Any] = {"m": 6, "q_min": 500.0}
# what Theorem 4.3 and Corollary 4.4 suppose
SYMMETRIC_LIMIT: dict[str, Any] = {
    "needs": ("end",),
    "example": late_run,
    "quick": LATE,
    "full": {"q_min": 2000.0},
    "given": [
        mean_logistic,
        some_leak,
        separable,
        symmetric_data,
        off_the_mean,
        small_start,
        both_signs,
        one_way,
        large_margins,
    ],
    "unchecked": ["the start is below sigma_max, which is not explicit"],
}


@claim("LLWA21-T4.3", **SYMMETRIC_LIMIT)
def linear_limit(evidence: Evidence) -> list[Comparison]:
    """f / |theta|^2 tends to (1 + leak)/4 <w*, x>; the margin, stationary there, is faster."""
    return late_errors(evidence)


def late_errors(evidence: Evidence) -> list[Comparison]:
    """Margin over the largest, and distance of f / |theta|^2 to (1 + leak)/4 <w*, x>.

    From q_min = 1 on, where the direction is off by at most order 1, the part of theta across its
    limit is kept while |theta|^2 grows as q_min: errors go as 1/sqrt(q_min). The margin is
    stationary at its largest, and (1 - gamma/gamma_max) q_min tends to order 1.
    """
    from reluflow.optimum.max_margin import max_margin

    p, net = evidence.problem, evidence.end()
    linear = max_margin(p, "linear")
    norm2 = float(np.sum(np.exp(2 * net.log_norms)) + np.sum(np.exp(2 * net.log_outer)))
    q = float(np.min(p.y * p.outputs(net)))
    w = linear.w / np.linalg.norm(linear.w)
    gap = sup_error(p, net, lambda inputs: (1 + p.leak) / 4 * (inputs @ w))
    ratio = q / norm2 / ((1 + p.leak) / 4 * linear.margin)
    return [
        at_least(ratio, 1 - 1 / q, what="margin over the largest, against 1 - 1/q_min"),
        at_most(ratio, 1 + 1e-9, what="and at most 1"),
        at_most(
            gap,
            1 / np.sqrt(q),
            what="|f/|theta|^2 - (1+leak)/4 <w*, x>| on the sphere, relative, 1/sqrt(q_min)",
        ),
    ]


@claim("LLWA21-C4.4", **SYMMETRIC_LIMIT)
def largest_margin_reached(evidence: Evidence) -> Comparison:
    """The flow attains the global max margin."""
    return late_errors(evidence)[0]
