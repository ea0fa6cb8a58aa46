"""[LLWA21]_: assumptions on data, margins of symmetric data, and KKT directions."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.claim import assumption, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    margin_loss,
    mean_logistic,
    orthogonally_separable,
    separable,
    some_leak,
    symmetric_data,
)
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.network import Network, initialize
from reluflow.problem import Problem, datasets

Array = NDArray[np.float64]


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
    size = np.linalg.norm(mu) * np.linalg.norm(p.X, axis=1)
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


@claim("LLWA21-T4.2", given=[margin_loss, separable, symmetric_data], example=symmetric)
def largest_margin(evidence: Evidence) -> list[Comparison]:
    """gamma_max = (1 + leak)/4 gamma* over networks of any width."""
    from reluflow.optimum.max_margin import max_margin

    p = evidence.problem
    best = (1 + p.leak) / 4 * max_margin(p, "linear").margin
    found = max_margin(p)
    return [
        equals(found.margin / best, 1.0, tolerance=1e-6, what="margin reached over the formula"),
        at_most(found.upper_bound / best, 1 + 1e-6, what="upper bound over the formula"),
    ]


@cache
def late_run(seed: int, m: int, q_min: float) -> Evidence:
    """Symmetric data, small Gaussian start, in the clock of the loss to large margins."""
    from reluflow.flow.flow import flow

    problem = datasets.symmetric_separable(rng=seed)
    net = initialize(problem, m, scale=1e-4, kind="gaussian", normalize="none", rng=seed)

    def far(p: Problem, state: Network, time: float) -> bool:
        return float(np.min(p.y * p.outputs(state))) >= q_min

    run = flow(problem, net, clock="loss", stop=far, save=[0.0])
    return Evidence.of(problem, run)


@predicate("the margins are large (q_min >= 50)")
def large_margins(evidence: Evidence) -> tuple[bool, str]:
    """The run is in its late phase."""
    assert evidence.final is not None
    q = float(np.min(evidence.problem.y * evidence.problem.outputs(evidence.final)))
    return q >= 50, f"q_min {q:.4g}"


LATE: dict[str, Any] = {"m": 6, "q_min": 500.0}


@claim(
    "LLWA21-T4.3", needs=("end",), example=late_run, quick=LATE, full={"q_min": 2000.0},
    given=[mean_logistic, some_leak, separable, symmetric_data, off_the_mean, large_margins],
    unchecked=["no branching (4.6)", "the start is below sigma_max and of both signs"],
)  # fmt: skip
def linear_limit(evidence: Evidence) -> list[Comparison]:
    """f / |theta|^2 tends to (1 + leak)/4 <w*, x>; the margin, stationary there, is faster."""
    return late_errors(evidence)


def late_errors(evidence: Evidence) -> list[Comparison]:
    """Margin over the largest, and distance of f / |theta|^2 to (1 + leak)/4 <w*, x>."""
    from reluflow.optimum.max_margin import max_margin

    p, net = evidence.problem, evidence.final
    assert net is not None
    linear = max_margin(p, "linear")
    f = p.outputs(net)
    norm2 = float(np.sum(np.exp(2 * net.log_norms)) + np.sum(np.exp(2 * net.log_outer)))
    q = float(np.min(p.y * f))
    w = linear.w / np.linalg.norm(linear.w)
    ends = (1 + p.leak) / 4 * (p.X @ w)
    gap = np.abs(f / norm2 - ends).max() / np.abs(ends).max()
    ratio = q / norm2 / ((1 + p.leak) / 4 * linear.margin)
    return [
        at_least(ratio, 1 - 1 / q, what="margin over the largest, against 1 - 1/q_min"),
        at_most(ratio, 1 + 1e-9, what="and at most 1"),
        at_most(
            gap, 2 / np.sqrt(q), what="|f/|theta|^2 - (1+leak)/4 <w*, x>|, relative, 2/sqrt(q_min)"
        ),
    ]


@claim(
    "LLWA21-C4.4", needs=("end",), example=late_run, quick=LATE, full={"q_min": 2000.0},
    given=[mean_logistic, some_leak, separable, symmetric_data, off_the_mean, large_margins],
    unchecked=["no branching (4.6)", "the start is below sigma_max and of both signs"],
)  # fmt: skip
def largest_margin_reached(evidence: Evidence) -> Comparison:
    """The flow attains the global max margin."""
    return late_errors(evidence)[0]


@predicate("near a KKT direction (residual at most 0.01)")
def near_kkt(evidence: Evidence) -> tuple[bool, str]:
    """The direction satisfies the KKT conditions up to 1 %."""
    from reluflow.optimum.kkt import kkt

    assert evidence.final is not None
    residual = kkt(evidence.problem, evidence.final).residual
    return residual <= 0.01, f"residual {residual:.2g}"


@claim(
    "LLWA21-LB.9", needs=("end",), example=late_run, quick=LATE, full={"q_min": 2000.0},
    given=[margin_loss, near_kkt],
)  # fmt: skip
def kkt_is_balanced(evidence: Evidence) -> Comparison:
    """KKT directions have |a_j| = |w_j|: |a_j^2 - |w_j|^2| against residual times |theta|^2."""
    from reluflow.optimum.kkt import kkt

    p, net = evidence.problem, evidence.final
    assert net is not None
    unit = net.scaled(-float(np.max(np.maximum(net.log_norms, net.log_outer))))
    W, a = unit.weights()
    norm2 = float(np.sum(W**2) + np.sum(a**2))
    gap = float(np.abs(a**2 - np.sum(W**2, axis=1)).max()) / norm2
    return at_most(gap, 2 * kkt(p, net).residual + 1e-12, what="|a^2 - |w|^2| / |theta|^2")


def bent(leak: float) -> list[Comparison]:
    """The explicit nonlinear direction of Figure 1 left: KKT, but not the largest margin."""
    from reluflow.optimum.kkt import kkt

    problem = datasets.figure1_left(leak=leak)
    known = problem.known
    found = kkt(problem, Network(known["kkt_W"], known["kkt_a"], leak=leak))
    q = problem.y * problem.outputs(Network(known["kkt_W"], known["kkt_a"]))
    name = f"leak {leak:g}"
    return [
        at_most(found.residual, 1e-10, what=f"KKT residual, {name}"),
        at_most(np.abs(q - 1).max() if leak == 0 else abs(q.min() - 1), 1e-12, what="q = 1"),
        equals(found.margin, known["kkt_margin"], tolerance=1e-9, what=f"margin, {name}"),
        at_most(found.margin, 0.99 * known["max_margin"], what=f"below the largest, {name}"),
    ]


@experiment("LLWA21-I1a")
def bent_without_leak(seed: int) -> list[Comparison]:
    """Leak 0: margin .207107 against .25."""
    return [*bent(0.0), equals(bent(0.0)[2].measured, 0.207107, tolerance=5e-7, what="margin")]


@experiment("LLWA21-I1b", quick={"leaks": (0.3, 0.5)}, full={"leaks": (0.1, 0.3, 0.5, 0.7, 0.9)})
def bent_with_leak(seed: int, leaks: Any) -> list[Comparison]:
    """Leak 1/2: margin .356107 against .375."""
    found = [c for leak in leaks for c in bent(float(leak))]
    return [*found, equals(bent(0.5)[2].measured, 0.356107, tolerance=5e-7, what="margin, leak .5")]


def pair(w: Array, kind: int) -> Network:
    """The three unit KKT directions of two neurons on symmetric data (Lemma F.3)."""
    if kind == 0:
        return Network(np.array([w, -w]) / 2, np.array([1.0, -1.0]) / 2)
    W, a = np.zeros((2, w.size)), np.zeros(2)
    s = 1.0 if kind == 1 else -1.0
    W[kind - 1], a[kind - 1] = s * w / np.sqrt(2), s / np.sqrt(2)
    return Network(W, a)


@experiment("LLWA21-LF.3", quick={"sets": 3}, full={"sets": 30})
def three_directions(seed: int, sets: int) -> list[Comparison]:
    """Residuals of the three directions vanish; margins (1+leak)/4, leak/2, leak/2 of gamma*."""
    from reluflow.optimum.kkt import kkt

    worst, gap = 0.0, 0.0
    for i in range(sets):
        p = datasets.symmetric_separable(rng=seed + i)
        w, best = p.known["w_star"], p.known["gamma_star"]
        for kind, factor in ((0, (1 + p.leak) / 4), (1, p.leak / 2), (2, p.leak / 2)):
            found = kkt(p, pair(w, kind), tol=1e-6)
            worst = max(worst, found.residual)
            gap = max(gap, abs(found.margin / (factor * best) - 1))
    return [
        at_most(worst, 1e-7, what="largest KKT residual"),
        at_most(gap, 1e-9, what="margin against the formula, relative"),
    ]
