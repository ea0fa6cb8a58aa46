"""[LLWA21]_ Theorem 4.2, Lemmas B.9, F.3, Appendix I.1: KKT directions, linear and bent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from reluflow.arrays import Array
from reluflow.claims.claim import claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import margin_loss, separable, symmetric_data
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.network import Network
from reluflow.optimum.kkt import kkt
from reluflow.optimum.max_margin import margin_bound, max_margin
from reluflow.papers.llwa21.claims.assumptions import on_symmetric_data
from reluflow.papers.llwa21.runs import best_network, direction, least_margin, sup_error
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Logistic

NEAR = 0.01  # KKT residual up to which a direction is taken for nearly KKT


@claim("LLWA21-T4.2", given=[margin_loss, separable, symmetric_data], example=on_symmetric_data)
def largest_margin(evidence: Evidence) -> list[Comparison]:
    """gamma_max = (1 + leak)/4 gamma* over networks of any width, with (1 + leak)/4 <w*, x>."""
    p = evidence.problem
    line, found = max_margin(p, "linear"), max_margin(p)
    best = (1 + p.leak) / 4 * line.margin
    off = sup_error(p, best_network(found), lambda inputs: (1 + p.leak) / 4 * (inputs @ line.w))
    left = max(found.gap / found.upper_bound, 0.0)  # the function is known to its square root
    what = "its f/|theta|^2 against (1+leak)/4 <w*, x> on the sphere, relative"
    return [
        equals(found.margin / best, 1.0, tolerance=1e-6, what="margin reached over the formula"),
        at_most(found.upper_bound / best, 1 + 1e-6, what="upper bound over the formula"),
        at_most(off, 1e-9 + 4 * np.sqrt(left), what=what),
    ]


@experiment("LLWA21-T4.2", part="leaks", quick={"sets": 1}, full={"sets": 10})
def largest_margin_at_leaks(seed: int, sets: int) -> list[Comparison]:
    """The same at leak 0, .3, .5: the worst of several data sets."""
    found = []
    for leak in (0.0, 0.3, 0.5):
        problems = [datasets.symmetric_separable(rng=seed + i, leak=leak) for i in range(sets)]
        rows = [largest_margin(Evidence.of(p)) for p in problems]
        worst = [min(each, key=lambda c: c.slack) for each in zip(*rows, strict=True)]
        found += [replace(c, what=f"leak {leak:g}: {c.what}") for c in worst]
    return found


@predicate("near a KKT direction (residual at most 0.01)")
def near_kkt(evidence: Evidence) -> tuple[bool, str]:
    """The direction satisfies the KKT conditions up to 1 %."""
    residual = kkt(evidence.problem, evidence.end()).residual
    return residual <= NEAR, f"residual {residual:.2g}"


def imbalance(net: Network) -> float:
    """Largest |a_j^2 - |w_j|^2| over |theta|^2."""
    W, a = net.scaled(-net.log_m_norm).weights()
    gaps = np.abs(a**2 - np.sum(W**2, axis=1))
    return float(gaps.max() / (np.sum(W**2) + np.sum(a**2)))


def exact_points(seed: int) -> list[tuple[Problem, Network]]:
    """Explicit KKT directions: bent ones (I.1) at leak 0, .3, .5 and the three pairs of F.3."""
    found = []
    for leak in (0.0, 0.3, 0.5):
        problem = datasets.figure1_left(leak=leak)
        found.append((problem, Network(problem.known["kkt_W"], problem.known["kkt_a"], leak=leak)))
    problem = datasets.symmetric_separable(rng=seed)
    return found + [(problem, pair(problem.known["w_star"], kind)) for kind in range(3)]


def bent_direction(seed: int) -> Evidence:
    """The explicit direction of Figure 1 left."""
    return Evidence.of(*exact_points(seed)[2])


@claim("LLWA21-LB.9", needs=("end",), example=bent_direction, given=[margin_loss, near_kkt])
def kkt_is_balanced(evidence: Evidence) -> Comparison:
    """KKT directions have |a_j| = |w_j|; by Euler nearly so where the residual is small."""
    bound = kkt(evidence.problem, evidence.end()).residual + 1e-12
    what = "|a^2 - |w|^2| / |theta|^2, against the KKT residual"
    return at_most(imbalance(evidence.end()), bound, what=what)


@experiment("LLWA21-LB.9", part="exact", quick={"factor": 1.2})
def only_balanced_is_kkt(seed: int, factor: float) -> list[Comparison]:
    """At exact KKT directions; (c w_j, a_j/c), the same function, has a residual.

    That residual is ||W|^2 - |a|^2| / |theta|^2: at least so by Euler, and no more with the
    multipliers of the direction itself.
    """
    residual, gap, control, off = 0.0, 0.0, np.inf, 0.0
    for problem, net in exact_points(seed):
        residual = max(residual, kkt(problem, net, tol=1e-9).residual)
        gap = max(gap, imbalance(net))
        other = Network(factor * net.W, net.a / factor, leak=net.leak)
        found = kkt(problem, other, tol=1e-9).residual
        inner, outer = float(np.sum(other.W**2)), float(np.sum(other.a**2))
        control = min(control, found)
        off = max(off, abs(found * (inner + outer) / abs(inner - outer) - 1))
    return [
        at_most(residual, 1e-10, what="KKT residual of explicit directions"),
        at_most(gap, 1e-10, what="their |a^2 - |w|^2| / |theta|^2"),
        at_least(control, NEAR, what=f"KKT residual of ({factor:g} w, a/{factor:g}), least"),
        at_most(off, 1e-7, what="|residual / (||W|^2 - |a|^2|/|theta|^2) - 1|"),
    ]


def bent_kkt_point(leak: float) -> list[Comparison]:
    """The explicit nonlinear direction of Figure 1 left: KKT, but not the largest margin."""
    problem = datasets.figure1_left(leak=leak)
    known = problem.known
    found = kkt(problem, Network(known["kkt_W"], known["kkt_a"], leak=leak))
    q = problem.y * problem.outputs(Network(known["kkt_W"], known["kkt_a"]))
    name = f"leak {leak:g}"
    return [
        at_most(found.residual, 1e-10, what=f"KKT residual, {name}"),
        at_most(np.abs(q - 1).max() if leak == 0 else abs(q.min() - 1), 1e-12, what="q = 1"),
        equals(found.margin, known["kkt_margin"], tolerance=1e-9, what=f"margin, {name}"),
        at_most(found.margin, 0.999 * known["max_margin"], what=f"below the largest, {name}"),
    ]


@experiment("LLWA21-I1a")
def bent_without_leak(seed: int) -> list[Comparison]:
    """Leak 0: margin .207107 against .25."""
    found = bent_kkt_point(0.0)
    return [*found, equals(found[2].measured, 0.207107, tolerance=5e-7, what="margin")]


@experiment("LLWA21-I1b", quick={"leaks": (0.3, 0.5)}, full={"leaks": (0.1, 0.3, 0.5, 0.7, 0.9)})
def bent_with_leak(seed: int, leaks: Any) -> list[Comparison]:
    """Leak 1/2: margin .356107 against .375."""
    found = [c for leak in leaks for c in bent_kkt_point(float(leak))]
    margin = bent_kkt_point(0.5)[2].measured
    return [*found, equals(margin, 0.356107, tolerance=5e-7, what="margin, leak .5")]


def pair(w: Array, kind: int) -> Network:
    """The three unit KKT directions of two neurons on symmetric data (Lemma F.3)."""
    if kind == 0:
        return Network(np.array([w, -w]) / 2, np.array([1.0, -1.0]) / 2)
    W, a = np.zeros((2, w.size)), np.zeros(2)
    s = 1.0 if kind == 1 else -1.0
    W[kind - 1], a[kind - 1] = s * w / np.sqrt(2), s / np.sqrt(2)
    return Network(W, a)


def other_pairs(problem: Problem, seed: int, count: int = 50) -> list[Network]:
    """Random balanced pairs with a1 > 0 > a2 that separate, away from the three directions."""
    rng = np.random.default_rng(seed)
    w = problem.known["w_star"]
    listed = [direction(pair(w, kind)) for kind in range(3)]
    found: list[Network] = []
    while len(found) < count:
        W = rng.uniform(0, 1, (2, 1)) * np.array([w, -w])
        W = W + rng.uniform(0, 0.5) * rng.standard_normal(W.shape)
        net = Network(W, np.linalg.norm(W, axis=1) * [1, -1], leak=problem.leak)
        away = min(np.linalg.norm(direction(net) - each) for each in listed)
        if away >= 0.1 and least_margin(problem, net) > 0:
            found.append(net)
    return found


@experiment("LLWA21-LF.3", quick={"sets": 3}, full={"sets": 30})
def three_directions(seed: int, sets: int) -> list[Comparison]:
    """Residuals of the three directions vanish; margins (1+leak)/4, leak/2, leak/2 of gamma*.

    "Only": balanced pairs that separate, a distance .1 or more away, are not even near KKT, with
    every sample within 1 % of the least margin counted as active.
    """
    worst, gap, others = 0.0, 0.0, np.inf
    for i in range(sets):
        p = datasets.symmetric_separable(rng=seed + i)
        w, best = p.known["w_star"], p.known["gamma_star"]
        for kind, factor in ((0, (1 + p.leak) / 4), (1, p.leak / 2), (2, p.leak / 2)):
            found = kkt(p, pair(w, kind), tol=1e-6)
            worst = max(worst, found.residual)
            gap = max(gap, abs(found.margin / (factor * best) - 1))
        others = min(others, *(kkt(p, net, tol=0.01).residual for net in other_pairs(p, seed + i)))
    return [
        at_most(worst, 1e-7, what="largest KKT residual"),
        at_most(gap, 1e-9, what="margin against the formula, relative"),
        at_least(others, NEAR, what="KKT residual of other separating pairs, least"),
    ]


def outputs_of(problem: Problem, theta: Array, m: int) -> Array:
    """f at the samples of the network with the weights theta = (W, a), written out."""
    W, a = theta[: m * problem.d].reshape(m, problem.d), theta[m * problem.d :]
    f = np.zeros(problem.n)
    for j in range(m):
        z = problem.X @ W[j]
        f += a[j] * np.where(z > 0, z, problem.leak * z)
    return f


def differences(problem: Problem, theta: Array, m: int, h: float = 1e-6) -> Array:
    """d f(x_k) / d theta_i by central differences, shape (n, weights).

    f is quadratic in theta inside a cone, where central differences are exact up to rounding.
    """
    columns = []
    for i in range(theta.size):
        e = h * (np.arange(theta.size) == i)
        ends = [outputs_of(problem, theta + s * e, m) for s in (1.0, -1.0)]
        columns.append((ends[0] - ends[1]) / (2 * h))
    return np.array(columns).T


def planar_points(rng: np.random.Generator, n: int, leak: float) -> Problem:
    """Separable points in the plane, labels by the first feature, none near the axis."""
    X = rng.uniform(-1.0, 1.0, (n, 2))
    X[:, 0] += 0.5 * np.sign(X[:, 0])
    return Problem(X, np.sign(X[:, 0]), Logistic(), leak=leak)


@experiment("LLWA21-T3.1", part="least-squares", quick={"sets": 10}, full={"sets": 200})
def residual_by_least_squares(seed: int, sets: int) -> list[Comparison]:
    """The distance of theta to the cone of the gradients of the tightest constraints, at random
    networks that separate: nonnegative least squares on gradients by differences."""
    rng = np.random.default_rng(seed)
    worst, least, used = 0.0, np.inf, 0
    while used < sets:
        problem, m = planar_points(rng, 5, 0.3), 3
        theta = np.concatenate([rng.standard_normal(2 * m) + np.tile([2.0, 0.0], m), [1.0] * m])
        theta[2 * m - 2 : 2 * m] *= -1.0
        theta[-1] = -1.0
        W, a = theta[: 2 * m].reshape(m, 2), theta[2 * m :]
        q = problem.y * outputs_of(problem, theta, m)
        if q.min() <= 1e-3 * q.max() or np.abs(problem.X @ W.T).min() < 1e-3:
            continue
        used += 1
        theta = theta / np.sqrt(q.min())
        for tol in (1e-9, 1.0):
            active = q <= (1 + tol) * q.min()
            A = (problem.y[:, None] * differences(problem, theta, m))[active].T
            exact = nnls(A, theta)[1] / float(np.linalg.norm(theta))
            found = kkt(problem, Network(W, a, leak=0.3), tol=tol).residual
            worst, least = max(worst, abs(found - exact)), min(least, exact)
    return [
        at_most(worst, 1e-6, what="KKT residual against nonnegative least squares"),
        at_least(least, 1e-3, what="least residual of these networks"),
    ]


@experiment("LLWA21-T4.2", part="by-scan", quick={"angles": 200_000}, full={"angles": 2_000_000})
def bound_by_a_scan(seed: int, angles: int) -> list[Comparison]:
    """The margin bound of given multipliers is max_u |sum l_i y_i phi(<u, x_i>)| / (2 sum l_i):
    by a scan of u, and in closed form (1 + leak)/4 |sum l_i y_i x_i| / sum l_i where data are
    symmetric; on the four points +-e1, +-e2 of XOR it is 1/8, which four neurons reach."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 2 * np.pi, angles, endpoint=False)
    circle = np.array([np.cos(t), np.sin(t)])
    scanned, closed, valid = 0.0, 0.0, -np.inf
    for leak in (0.0, 0.3, 0.5):
        half = planar_points(rng, 4, leak)
        problem = half.replace(
            X=np.vstack([half.X, -half.X]), y=np.concatenate([half.y, -half.y]), known={}
        )
        best = max_margin(problem).margin
        for _ in range(3):
            weights = np.tile(rng.random(4), 2)
            bound = margin_bound(problem, weights)
            S = problem.X @ circle
            G = (weights * problem.y) @ np.maximum(S, leak * S)
            scanned = max(scanned, abs(bound / (np.abs(G).max() / (2 * weights.sum())) - 1))
            total = np.linalg.norm((weights * problem.y) @ problem.X) / weights.sum()
            closed = max(closed, abs(bound / ((1 + leak) / 4 * total) - 1))
            valid = max(valid, best / bound - 1)
    xor = Problem(np.vstack([np.eye(2), -np.eye(2)]), np.array([1.0, -1.0, 1.0, -1.0]))
    reached = Network(xor.X, xor.y)  # f = y, |theta|^2 = 8
    margin = float(np.min(xor.y * outputs_of(xor, np.append(reached.W, reached.a), 4))) / 8
    return [
        at_most(scanned, 1e-8, what="bound against a scan, relative"),
        at_most(closed, 1e-8, what="bound against (1 + leak)/4 |sum l y x| / sum l, relative"),
        at_most(valid, 1e-9, what="largest margin over a bound, less 1"),
        equals(margin_bound(xor, np.ones(4)), 0.125, tolerance=1e-9, what="bound on XOR"),
        equals(margin, 0.125, tolerance=1e-15, what="margin of four neurons on XOR"),
        equals(max_margin(xor).upper_bound, 0.125, tolerance=1e-8, what="largest margin on XOR"),
    ]
