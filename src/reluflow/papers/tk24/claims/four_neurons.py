"""[TK24]_ XOR-like data: what Sections 3 to 5 suppose, extrema, embeddings, and four neurons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expi

from reluflow.arrays import Array
from reluflow.claims.claim import Found, assumption, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    EXACT_TOL,
    gradient_flow,
    mean_logistic,
    multiset_distance,
    no_leak,
    unit_ball,
)
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.gradientflow.flow import flow
from reluflow.network import Network, axis_start
from reluflow.problem import Problem, datasets
from reluflow.trajectory.observables import velocity

XI = 0.02  # smoothing radius of the smoothed orbit
Q, LEAST = 8 / 3, 9 / 4  # max|a| at which the proof stops, and the least |a| it finds then


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


def four_neuron_flow(problem: Problem, t_end: float, records: int) -> Evidence:
    """Gradient flow of four neurons from the starts of Figure 1."""
    times = np.linspace(0.0, t_end, records)
    return Evidence.of(problem, flow(problem, axis_start(problem), t_end=t_end, save=times))


@cache
def four_neurons(seed: int, t_end: float, records: int) -> Evidence:
    """Such a run on the data of Figure 1."""
    return four_neuron_flow(datasets.symmetric_xor(rng=seed), t_end, records)


@cache
def orbit_run(seed: int, t_end: float, records: int) -> Evidence:
    """Such a run on the three-dimensional orbit."""
    return four_neuron_flow(tight_orbit(seed).problem, t_end, records)


@cache
def smoothed_run(seed: int, t_end: float, records: int) -> Evidence:
    """Such a run on the three-dimensional orbit, smoothed."""
    return four_neuron_flow(smoothed_orbit(), t_end, records)


@predicate("four neurons in the plane, one in each quarter around an axis")
def one_in_each(evidence: Evidence) -> tuple[bool, str]:
    """Four neurons, each within 45 degrees of its own axis direction."""
    net = evidence.start
    if net is None or net.m != 4 or evidence.problem.d < 2:
        return False, "not four neurons"
    quarter = np.round(np.degrees(np.arctan2(net.W[:, 1], net.W[:, 0])) / 90).astype(int) % 4
    flat = float(np.abs(net.directions[:, 2:]).max(initial=0.0))
    return len(set(quarter.tolist())) == 4 and flat <= 1e-12, f"quarters {sorted(quarter.tolist())}"


FOUR: dict[str, Any] = {
    "needs": ("path", "start"),
    "given": (gradient_flow, mean_logistic, no_leak, xor_symmetric, one_in_each),
    "quick": {"t_end": 300.0, "records": 200},
    "full": {"records": 1000},
}


@claim("TK24-LD.1", part="smoothed", example=smoothed_run, **FOUR)
@claim("TK24-LD.1", example=orbit_run, **FOUR)
def stays_in_the_plane(evidence: Evidence) -> Comparison:
    """A start inside span(e1, e2) stays inside."""
    worst = max(float(np.abs(net.directions[:, 2:]).max(initial=0.0)) for net in evidence.path())
    return at_most(worst, 1e-12, what="largest |w_3..d| / |w|")


@claim("TK24-PD.2", part="smoothed", example=smoothed_run, **FOUR)
@claim("TK24-PD.2", example=four_neurons, **FOUR)
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


@cache
def smoothed_orbit() -> Problem:
    """An XOR orbit with everything that Section 5 supposes: delta 0.095, xi 0.02, d = 3."""
    return tight_orbit(0).problem.replace(smoothing=XI)


def general_setting(problem: Problem) -> list[Hypothesis]:
    """Section 3 and Theorem 4.1: the loss, the smoothed activation, |x_i| <= 1 and odd d."""
    evidence, d, xi = Evidence.of(problem), problem.d, problem.smoothing
    return [
        mean_logistic(evidence),
        no_leak(evidence),
        Hypothesis("the smoothed activation, xi > 0", xi > 0, f"xi = {xi:g}"),
        unit_ball(evidence),
        Hypothesis("d >= 2 and odd", d >= 2 and d % 2 == 1, f"d = {d}"),
    ]


def xor_setting(problem: Problem) -> list[Hypothesis]:
    """The setting of Lemma 5.2: beside the general one, Assumption 5.1 and xi + delta < 1/6.

    Item 4 of the assumption is read for all coordinates, as "for all k" may be.
    """
    xi, off = problem.smoothing, float(np.abs(problem.X).min())
    return [
        *general_setting(problem),
        xor_symmetric(Evidence.of(problem)),
        Hypothesis("|e_k^T x_i| > xi for all i and k", off > xi, f"least {off:.3g}"),
        narrow_spread(spread(problem), xi),
    ]


def narrow_spread(delta: float, xi: float) -> Hypothesis:
    """delta + xi < 1/6."""
    return Hypothesis("delta + xi < 1/6", delta + xi < 1 / 6, f"delta {delta:.3g}, xi {xi:g}")


def xor_draw(rng: np.random.Generator, d: int, xi: float, share: float = 0.999) -> Problem:
    """The orbit of one to four random points, delta a share of 1/6 - xi, all else as above.

    The first point is at the distance delta from e1, the others are uniform in that ball.
    """
    delta, count = share * (1 / 6 - xi), int(rng.integers(1, 5))
    points: list[np.ndarray] = []
    while len(points) < count:
        step = rng.standard_normal(d)
        far = delta if not points else delta * rng.random() ** (1 / d)
        x = np.eye(d)[0] + far * step / np.linalg.norm(step)
        if np.linalg.norm(x) <= 1 and np.abs(x).min() > xi + 1e-3 * delta:
            points.append(x)
    return datasets.xor_orbit(np.array(points)).replace(smoothing=xi)


@dataclass(frozen=True)
class Proof:
    """Constants of Appendix D.3 for delta + xi <= a, max|a| >= b and ratios of |a| up to c."""

    a: float = 0.01
    b: float = 1e-3
    c: float = 1e3

    @property
    def C(self) -> float:
        """e^{-4 q^2 a}."""
        return math.exp(-4 * Q * Q * self.a)

    def h(self, x: float) -> float:
        """Integral of (1 + C e^z)/z from 1 to x."""
        return math.log(x) + self.C * float(expi(x) - expi(1.0))

    @property
    def reached(self) -> float:
        """Lower bound of h(X(T)), X = (1 - 2a) min|a|^2."""
        a = self.a
        A = ((1 - 2 * a) * math.exp(-7 * Q * Q * a) - 4 * a) / 2
        B = (1 + a) / 2
        start = (1 + self.C * math.e) * math.log((1 - 2 * a) * self.b**2)
        uneven = (1 + self.C * math.exp((1 - 2 * a) / 4)) * math.log(self.c**2)
        return A / B * self.h((1 - 2 * a) * Q * Q) + (B - A) / B * start - uneven

    @property
    def needed(self) -> float:
        """h at min|a| = 9/4."""
        return self.h((1 - 2 * self.a) * LEAST**2)

    @property
    def margin(self) -> float:
        """Least y f that follows."""
        return (1 - 2 * self.a) * LEAST**2 - 4 * Q * Q * self.a


def is_tall(problem: Problem, net: Network, t: float) -> bool:
    """Whether some outer weight has reached 8/3."""
    return bool(np.abs(net.weights()[1]).max() >= Q)


@experiment("TK24-P5.7", quick={"starts": 2}, full={"starts": 12})
def margin_of_the_proof(seed: int, starts: int) -> Found:
    """The proof's chain of constants, and runs until max|a| = 8/3 from uneven starts."""
    proof, rng = Proof(), np.random.default_rng(seed)
    p = datasets.symmetric_xor(seed, duplicates=False)
    delta = spread(p)
    least = margin = math.inf
    scales = [np.array([0.3, 0.01, 1e-3, 0.1])]
    for _ in range(starts - 1):
        ratio = np.append([1.0, 1e-3], 10 ** rng.uniform(-3, 0, 2))
        scales.append(
            10 ** rng.uniform(math.log10(0.002), math.log10(0.5)) * rng.permutation(ratio)
        )
    for start in scales:
        net = flow(p, axis_start(p, tuple(start)), t_end=1e6, stop=is_tall).final
        least = min(least, float(np.abs(net.weights()[1]).min()))
        margin = min(margin, float(np.min(p.y * p.outputs(net))))
    top, uneven = np.array([s.max() for s in scales]), max(s.max() / s.min() for s in scales)
    held = [
        Hypothesis("delta + xi <= 0.01", delta <= 0.01, f"delta {delta:.4f}"),
        Hypothesis("ratios of |a| up to 1000", uneven <= 1000 * (1 + 1e-9), f"{uneven:.4g}"),
        Hypothesis("max|a| in (0.001, 0.5)", bool(((top > 1e-3) & (top < 0.5)).all())),
    ]
    made = [
        equals(proof.reached, 31.52, tolerance=0.01, what="lower bound of h(X(T))"),
        at_least(proof.reached, proof.needed, what="against h at min|a| = 9/4"),
        at_least(proof.margin, 4.67, what="margin that follows"),
        at_least(least, LEAST, what=f"min|a| when max|a| = 8/3, {starts} runs"),
        at_least(margin, 4.67, what="least y f then"),
    ]
    return Found(made, held)
