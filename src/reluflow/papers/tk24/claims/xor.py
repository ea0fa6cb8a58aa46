"""[TK24]_ Section 5: indices of Assumption 5.1, smoothed extrema, caps and who starts in them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import betainc

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.papers.tk24.claims.four_neurons import (
    compare_extrema,
    extrema_of,
    narrow_spread,
    smoothed_orbit,
    spread,
    tight_orbit,
    top_extrema,
    xor_draw,
    xor_setting,
    xor_symmetric,
)
from reluflow.papers.tk24.claims.sphere import Sphere, sphere_sample
from reluflow.problem import Problem, datasets

# axis, side and outer sign of the neurons that each of the four extrema takes
CORNERS = ((0, 1, 1), (0, -1, 1), (1, 1, -1), (1, -1, -1))


@experiment(
    "TK24-A5.1",
    form="slip",
    printed="a(k) = k mod 2, b(k) = 2 floor((k-1)/2) - 1: S_1..S_4 near -e2, -e1, e2, e1, with "
    "labels -1, 1, -1, 1 (Assumption 5.1)",
    meant="S_1..S_4 near e1, e2, -e1, -e2, with labels 1, -1, 1, -1, as the proofs of Appendix D "
    "number them; the data set is the same",
)
def numbered_clusters(seed: int) -> list[Comparison]:
    """The sum over S_1 and S_3 of phi(e1, x_i) is at least (n/4)(1 - delta) (App. D.1)."""
    p = tight_orbit(seed).problem
    delta, sums, labels = spread(p), {}, {}
    for name, centre in (("meant", _centre), ("printed", _centre_as_printed)):
        near = [np.linalg.norm(p.X - centre(k), axis=1) <= delta + 1e-12 for k in range(1, 5)]
        sums[name] = float(np.maximum(p.X[near[0] | near[2], 0], 0.0).sum())
        labels[name] = sum(near).max() == 1 and sum(near).min() == 1
    return [
        equals(all(labels.values()), 1, tolerance=0, what="both numberings split the samples"),
        at_least(sums["meant"], p.n / 4 * (1 - delta), what="sum over S_1, S_3 as meant"),
        at_most(sums["printed"], p.n / 2 * delta, what="sum over S_1, S_3 as printed"),
    ]


def _centre(k: int) -> Array:
    """e1, e2, -e1, -e2."""
    return np.asarray((1 if k <= 2 else -1) * np.eye(3)[(k - 1) % 2])


def _centre_as_printed(k: int) -> Array:
    """b(k) e_{a(k)+1}."""
    return np.asarray((2 * ((k - 1) // 2) - 1) * np.eye(3)[k % 2])


@experiment("TK24-L5.2", part="many sets", quick={"sets": 12}, full={"sets": 300})
def four_extrema_of_many(seed: int, sets: int) -> Found:
    """Random orbits at the edge delta < 1/6 and far from it, d = 2 and 3, by complete lists."""
    rng = np.random.default_rng(seed)
    shares = (0.999, 0.999, 0.5, 0.1)
    problems = [xor_draw(rng, 2 + draw % 2, 0.0, shares[draw % 4]) for draw in range(sets)]
    evidence = [Evidence.of(problem) for problem in problems]
    whole = all(one.landscape.exact for one in evidence)
    held = [
        Hypothesis("Assumption 5.1", all(xor_symmetric(one).ok for one in evidence)),
        _all_narrow(problems),
        Hypothesis("the lists of extremal vectors are complete", whole or None),
    ]
    return Found(compare_extrema([top_extrema(one) for one in evidence]), held)


@experiment(
    "TK24-L5.2",
    part="smoothed",
    quick={"sets": 3, "draws": 20_000},
    full={"sets": 50, "draws": 200_000},
)
def four_extrema_smoothed(seed: int, sets: int, draws: int) -> Found:
    """With the smoothed activation, in 3 and 5 dimensions: found by ascent, and by sampling."""
    rng = np.random.default_rng(seed)
    found, over, problems = [], -math.inf, [smoothed_orbit()]
    problems += [xor_draw(rng, 3 + 2 * (draw % 2), 0.01 * (1 + draw % 3)) for draw in range(sets)]
    for problem in problems:
        sphere = Sphere(problem)
        W, signs = sphere.extrema
        found.append(extrema_of(problem, W, signs, signs * sphere.G(W)))
        lam = float(sphere.G(np.eye(problem.d)[:1])[0])
        for block in np.array_split(sphere_sample(rng, draws, problem.d), max(1, draws // 20_000)):
            over = max(over, float(np.abs(sphere.G(block)).max()) / lam)
    made = [
        *compare_extrema(found),
        at_most(over, 1.0, error=1e-14, what=f"largest |G| of {draws:,} directions, over G(e1)"),
    ]
    setting = [h for problem in problems for h in xor_setting(problem)]
    bad = [h for h in setting if not h.ok]
    return Found(made, bad or [_all_narrow(problems), *xor_setting(problems[0])[:-1]])


def _all_narrow(problems: Sequence[Problem]) -> Hypothesis:
    """delta + xi < 1/6 for each of them."""
    most = max(spread(problem) + problem.smoothing for problem in problems)
    return Hypothesis(
        "delta + xi < 1/6", most < 1 / 6, f"up to {most:.4f}, {len(problems)} data sets"
    )


def miss_one(d: int, t: float) -> float:
    """h: probability that a random neuron does not start in a given cap with the right sign."""
    return float(1 - betainc((d - 1) / 2, 0.5, 1 - t * t) / 4)


def share_caught(rng: np.random.Generator, m: int, d: int, t: float, draws: int) -> float:
    """Share of draws of m balanced neurons that start in all four caps with the right signs.

    At t = 0 that is the largest share that can capture all four extrema: the data are invariant
    under the reflections of both axes, so the linearised flow keeps the signs of w^1 and w^2, and
    each of e1, -e1 (e2, -e2) needs a positive (negative) neuron on its side.
    """
    W = rng.standard_normal((draws, m, d))
    W /= np.linalg.norm(W, axis=2, keepdims=True)
    s = rng.choice([-1.0, 1.0], (draws, m))
    all_four = np.ones(draws, dtype=bool)
    for axis, side, sign in CORNERS:
        all_four &= ((side * W[:, :, axis] >= t) & (s == sign)).any(axis=1)
    return float(all_four.mean())


def keeps_sides(problem: Problem, rng: np.random.Generator, starts: int) -> Hypothesis:
    """Neurons under the direction flow end on the extremum of their side, or on another."""
    V = sphere_sample(rng, starts, problem.d)
    s = rng.choice([-1.0, 1.0], starts)
    end = Sphere(problem).climb(V, s)
    axis = np.where(s > 0, 0, 1)
    rows = np.arange(starts)
    captured = np.abs(end[rows, axis]) > 0.9  # from there on d alpha/dt <= -(1/16) sin alpha
    kept = np.sign(end[rows, axis]) == np.sign(V[rows, axis])
    return Hypothesis(
        "a neuron captures no extremum but that of its sign and side",
        bool(kept[captured].all() and captured.any()),
        f"{int(captured.sum())} of {starts} neurons captured by one, all on their side",
    )


@experiment("TK24-L5.3", form="printed", quick={"draws": 20_000}, full={"draws": 200_000})
def product_bound(seed: int, draws: int) -> Found:
    """P > (1 - h^m)^4: occupied caps exclude each other, so the product is no lower bound.

    At m = 1, and at m = 6, where delta + xi is small enough that the caps nearly fill their sides:
    however large m is, that is so for delta + xi below some value.
    """
    rng = np.random.default_rng(seed)
    problem = datasets.xor_orbit([(1 - 3e-3, 1.5e-3, 1.2e-3)]).replace(smoothing=1e-3)
    t = spread(problem) + problem.smoothing
    made = []
    for m in (1, 6):
        share = share_caught(rng, m, problem.d, 0.0, draws)
        error = 4 * math.sqrt(max(share * (1 - share), 1 / draws) / draws)
        bound = (1 - miss_one(problem.d, t) ** m) ** 4
        made.append(
            at_least(
                share, bound, error=error * (m > 1), what=f"share that can capture all four, m={m}"
            )
        )
    sides = keeps_sides(problem, rng, 200)
    law = Hypothesis("isotropic initialisation", True, "directions uniform, signs +-1 at random")
    return Found(made, [*xor_setting(problem), law, sides])


@experiment("TK24-L5.3", form="repaired", quick={"draws": 20_000}, full={"draws": 200_000})
def union_bound(seed: int, draws: int) -> list[Comparison]:
    """1 - 4 h^m is a lower bound; inclusion and exclusion give the value itself."""
    rng = np.random.default_rng(seed)
    made = []
    for m in (1, 4):
        share, p = share_caught(rng, m, 3, 0.0, draws), 1 - miss_one(3, 0.0)
        exact = sum((-1) ** i * math.comb(4, i) * (1 - i * p) ** m for i in range(5))
        tolerance = 4 * math.sqrt(exact * (1 - exact) / draws)
        made.append(equals(share, exact, tolerance=tolerance, what=f"share with all four, m={m}"))
    for m in (10, 20, 40):
        share = share_caught(rng, m, 3, 0.1, draws)
        error = 3 * math.sqrt(max(share * (1 - share), 1 / draws) / draws)
        bound = 1 - 4 * miss_one(3, 0.1) ** m
        made.append(at_least(share, bound - error, what=f"share, m={m}; bound less 3 s.e."))
    return made


@experiment(
    "TK24-L5.3", form="repaired", part="speed", quick={"draws": 20_000}, full={"draws": 1_000_000}
)
def neurons_turn_fast(seed: int, draws: int) -> Found:
    """In the cap <w, e1> >= delta + xi: d alpha/dt <= -(1/16) sin alpha towards e1."""
    problem = tight_orbit(seed).problem
    delta = spread(problem)
    V = sphere_sample(np.random.default_rng(seed), draws, 3)
    V = V[V[:, 0] >= delta]
    D = np.where(V @ problem.X.T > 0, problem.pull, 0.0) @ problem.X
    toward = D[:, 0] - V[:, 0] * np.sum(D * V, axis=1)  # d cos(alpha)/dt
    speed = toward / (1 - V[:, 0] ** 2)  # -(d alpha/dt) / sin(alpha)
    return Found(
        [at_least(speed.min(), 1 / 16, what="-(d alpha/dt)/sin(alpha), least in the cap")],
        [narrow_spread(delta, 0.0)],
    )
