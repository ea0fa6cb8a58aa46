"""[TK24]_: XOR-like data, its extrema, embeddings, and four neurons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import Found, assumption, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    EXACT_TOL,
    gradient_flow,
    mean_logistic,
    multiset_distance,
    no_leak,
)
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.network import Network, axis_start
from reluflow.problem import Problem, datasets
from reluflow.trajectory.observables import velocity


def spread(problem: Problem) -> float:
    """delta: largest distance of a sample to the axis point of its cluster; inf if mislabelled."""
    X = problem.X
    if problem.d < 2:
        return np.inf
    axis = np.argmax(np.abs(X[:, :2]), axis=1)
    if not (np.sign(problem.y) == np.where(axis == 0, 1, -1)).all():
        return np.inf
    centre = np.zeros_like(X)
    rows = np.arange(problem.n)
    centre[rows, axis] = np.sign(X[rows, axis])
    return float(np.linalg.norm(X - centre, axis=1).max())


@predicate("XOR data with the symmetries of Assumption 5.1")
def xor_symmetric(evidence: Evidence) -> tuple[bool, str]:
    """Clusters near +-e1 (y = 1) and +-e2 (y = -1), invariant under reflections and the swap.

    Item 4, |x^1|, |x^2| >= xi + 2 Delta, says for some Delta > 0 that both exceed xi.
    """
    p = evidence.problem
    delta = spread(p)
    if not delta < math.sqrt(2) / 2:
        return False, f"delta {delta:.3g}"
    rows = np.hstack([p.X, p.y[:, None]])
    gap = 0.0
    for change in ([0], [1], list(range(2, p.d))):
        other = rows.copy()
        other[:, change] *= -1
        gap = max(gap, multiset_distance(rows, other))
    swapped = rows.copy()
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    swapped[:, -1] *= -1
    gap = max(gap, multiset_distance(rows, swapped))
    off = float(np.abs(p.X[:, :2]).min())
    return (
        gap <= EXACT_TOL and off > p.smoothing,
        f"delta {delta:.3g}, largest asymmetry {gap:.1e}, least |x^1|, |x^2| {off:.3g} against "
        f"xi = {p.smoothing:g}",
    )


def orbit(seed: int) -> Evidence:
    """The XOR orbit in three dimensions."""
    return Evidence.of(datasets.xor_orbit())


assumption("TK24-A5.1", mean_logistic, xor_symmetric, example=orbit)


def tight_orbit(seed: int) -> Evidence:
    """Orbit of points within 1/6 of the axis."""
    points = [(0.93, 0.05, 0.04), (0.96, 0.04, -0.03), (0.98, 0.03, 0.06)]
    return Evidence.of(datasets.xor_orbit(points))


@claim("TK24-L5.2", given=[mean_logistic, no_leak, xor_symmetric], example=tight_orbit)
def four_extrema(evidence: Evidence) -> Found:
    """Global extrema of |G|: exactly +-e1 (G > 0) and +-e2 (G < 0); lam >= (1 - 3 delta)/8."""
    delta, found = spread(evidence.problem), evidence.landscape
    narrow = Hypothesis("delta < 1/6 (xi = 0)", delta < 1 / 6, f"delta {delta:.3g}")
    whole = Hypothesis("the list of extremal vectors is complete", found.exact or None)
    return Found(compare_extrema([top_extrema(evidence)]), [narrow, whole])


@dataclass(frozen=True)
class Extrema:
    """The global extrema of |G| of one data set, beside what Lemma 5.2 says of them."""

    count: int
    away: float  # largest distance of one from an axis, by 1 - cos
    right: bool  # +-e1 with G > 0, +-e2 with G < 0, each once
    ratio: float  # lam over (1 - 3 delta - 2 xi)/8


def extrema_of(problem: Problem, V: Array, signs: Array, rates: Array) -> Extrema:
    """From critical directions, the signs of G there and |G|."""
    lam = float(rates.max())
    top = rates >= lam * (1 - 1e-9)
    W, s = V[top], signs[top]
    axes = np.abs(W).argmax(axis=1)
    found = {(int(k), float(np.sign(w[k])), float(b)) for k, w, b in zip(axes, W, s, strict=True)}
    stated = {(0, 1.0, 1.0), (0, -1.0, 1.0), (1, 1.0, -1.0), (1, -1.0, -1.0)}
    away = float(np.abs(1 - np.abs(W).max(axis=1)).max())
    least = (1 - 3 * spread(problem) - 2 * problem.smoothing) / 8
    return Extrema(int(top.sum()), away, found == stated, lam / least)


def top_extrema(evidence: Evidence) -> Extrema:
    """The same from the list of extremal vectors."""
    found = evidence.landscape
    signs = found.signs.astype(float)
    return extrema_of(evidence.problem, found.vectors, signs, found.rates)


def compare_extrema(found: Sequence[Extrema]) -> list[Comparison]:
    """Lemma 5.2 for one data set or many: the worst of each."""
    counts = [one.count for one in found]
    return [
        equals(min(counts), 4, tolerance=0, what="global extrema, fewest"),
        equals(max(counts), 4, tolerance=0, what="global extrema, most"),
        at_most(max(one.away for one in found), 1e-9, what="their distance to the axes"),
        equals(min(one.right for one in found), 1, tolerance=0, what="signs as stated"),
        at_least(min(one.ratio for one in found), 1.0, what="lam over (1 - 3 delta - 2 xi)/8"),
    ]


@experiment("TK24-CHI", quick={"draws": 50}, full={"draws": 1000})
def embedding(seed: int, draws: int) -> list[Comparison]:
    """Splitting neurons by shares c_j, sum c_j^2 = 1, commutes with the flow, keeps f and norm."""
    rng = np.random.default_rng(seed)
    field = out = size = 0.0
    for draw in range(draws):
        problem = datasets.xor_orbit().replace(smoothing=0.1 * (draw % 2))
        net = Network(rng.standard_normal((4, 3)), rng.standard_normal(4))
        group = np.concatenate([np.arange(4), rng.integers(4, size=6)])
        c = rng.random(10) + 0.1
        c /= np.sqrt(np.bincount(group, c**2))[group]
        wide = Network(c[:, None] * net.W[group], c * net.a[group])
        (dW, da), (eW, ea) = velocity(problem, net), velocity(problem, wide)
        field = max(
            field, np.abs(eW - c[:, None] * dW[group]).max(), np.abs(ea - c * da[group]).max()
        )
        out = max(out, np.abs(problem.outputs(net) - problem.outputs(wide)).max())
        first, last = (np.sqrt(np.sum(n.W**2) + np.sum(n.a**2)) for n in (net, wide))
        size = max(size, abs(first - last))
    return [
        at_most(field, 1e-12, what="difference of the vector fields"),
        at_most(out, 1e-12, what="difference of the outputs"),
        at_most(size, 1e-12, what="difference of the Euclidean norms"),
    ]


@cache
def four_neurons(seed: int, t_end: float, records: int) -> Evidence:
    """Gradient flow of four neurons from the starts of Figure 1."""
    from reluflow.gradientflow.flow import flow

    problem = datasets.symmetric_xor(rng=seed)
    times = np.linspace(0.0, t_end, records)
    return Evidence.of(problem, flow(problem, axis_start(problem), t_end=t_end, save=times))


@cache
def orbit_run(seed: int, t_end: float, records: int) -> Evidence:
    """Four neurons on the three-dimensional orbit."""
    from reluflow.gradientflow.flow import flow

    problem = tight_orbit(seed).problem
    times = np.linspace(0.0, t_end, records)
    return Evidence.of(problem, flow(problem, axis_start(problem), t_end=t_end, save=times))


FOUR: dict[str, Any] = {"t_end": 300.0, "records": 200}


@predicate("four neurons in the plane, one in each quarter around an axis")
def one_in_each(evidence: Evidence) -> tuple[bool, str]:
    """Four neurons, each within 45 degrees of its own axis direction."""
    net = evidence.start
    if net is None or net.m != 4 or evidence.problem.d < 2:
        return False, "not four neurons"
    quarter = np.round(np.degrees(np.arctan2(net.W[:, 1], net.W[:, 0])) / 90).astype(int) % 4
    flat = float(np.abs(net.directions[:, 2:]).max(initial=0.0))
    return len(set(quarter.tolist())) == 4 and flat <= 1e-12, f"quarters {sorted(quarter.tolist())}"


GIVEN = (gradient_flow, mean_logistic, no_leak, xor_symmetric, one_in_each)


@claim(
    "TK24-LD.1",
    needs=("path", "start"),
    given=GIVEN,
    example=orbit_run,
    quick=FOUR,
    full={"records": 1000},
)
def stays_in_the_plane(evidence: Evidence) -> Comparison:
    """A start inside span(e1, e2) stays inside."""
    worst = max(float(np.abs(net.directions[:, 2:]).max(initial=0.0)) for net in evidence.path())
    return at_most(worst, 1e-12, what="largest |w_3..d| / |w|")


@claim(
    "TK24-PD.2",
    needs=("path", "start"),
    given=GIVEN,
    example=four_neurons,
    quick=FOUR,
    full={"records": 1000},
)
def angles_stay_small(evidence: Evidence) -> Found:
    """|sin alpha_k| <= delta + xi for all time if it holds at the start.

    alpha_k is the angle to the axis direction that the neuron starts at; beyond 90 degrees it
    counts as 90.
    """
    delta = spread(evidence.problem) + evidence.problem.smoothing
    first = evidence.path()[0].directions
    home = np.zeros_like(first)
    rows, axes = np.arange(len(first)), np.abs(first[:, :2]).argmax(axis=1)
    home[rows, axes] = np.sign(first[rows, axes])

    def largest(net: Network) -> float:
        along = np.sum(net.directions * home, axis=1)
        off = np.linalg.norm(net.directions - along[:, None] * home, axis=1)
        return float(np.where(along > 0, off, 1.0).max())

    begin = Hypothesis(
        "|sin alpha_k| <= delta + xi at the start", largest(evidence.path()[0]) <= delta
    )
    worst = max(largest(net) for net in evidence.path())
    return Found([at_most(worst, delta, what="largest |sin alpha|")], [begin])
