"""[MMV24]_: cones, caps and traps of positively correlated data, by geometry and along runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.claim import Found, Outcome, claim, experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    balanced_start,
    gradient_flow,
    least_cosine,
    margin_loss,
    no_leak,
    positively_correlated,
)
from reluflow.claims.invariants import ROUNDING, dead_neurons_move, kept_by_flow
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.papers.mmv24.constants import Constants
from reluflow.papers.mmv24.runs import experiment_on, long_run, sides, trapped_run
from reluflow.problem import Problem, datasets

MU = [margin_loss, positively_correlated]
SAMPLES = 2000


def separable_data(seed: int, n: int = 12, d: int = 4) -> Evidence:
    """SEP data: mu > 0 by construction."""
    return Evidence.of(datasets.separable(0.5, n, d, rng=seed))


def in_cone(problem: Problem, seed: int = 0, draws: int = SAMPLES) -> Array:
    """Conic combinations of the y_i x_i, sparse ones included; rows."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(problem.n, 0.3), draws)
    return shares @ (problem.y[:, None] * problem.X)


def directions(problem: Problem, seed: int = 0, draws: int = SAMPLES) -> Array:
    """Directions on the whole sphere."""
    w = np.random.default_rng(seed).standard_normal((draws, problem.d))
    return np.asarray(w / np.linalg.norm(w, axis=1, keepdims=True))


def in_s_plus(problem: Problem, z: Array) -> NDArray[np.bool_]:
    """<x_i, z> > 0 iff y_i > 0, for rows z."""
    return np.asarray(((z @ problem.X.T > 0) == (problem.y > 0)).all(axis=1))


def in_s_minus(problem: Problem, z: Array) -> NDArray[np.bool_]:
    """<x_i, z> > 0 iff y_i < 0, for rows z."""
    return np.asarray(((z @ problem.X.T > 0) == (problem.y < 0)).all(axis=1))


def cosine(u: Array, v: Array) -> Array:
    """Cosines of the rows of u and v."""
    cosines = (u @ v.T) / np.linalg.norm(u, axis=1)[:, None] / np.linalg.norm(v, axis=1)
    return np.asarray(cosines)


@claim("MMV24-L5", given=MU, example=separable_data)
def cone_is_narrow(evidence: Evidence) -> list[Comparison]:
    """cos(z1, z2) >= mu in the cone of the y_i x_i, and no more: some near generators have it."""
    p = evidence.problem
    z, generators = in_cone(p), p.y[:, None] * p.X
    mu = least_cosine(p)
    least = min(float(cosine(z, z).min()), float(cosine(z, generators).min()))
    inside = in_cone(p, 1, p.n)
    sizes = (np.linalg.norm(v, axis=1, keepdims=True) for v in (generators, inside))
    near = generators / next(sizes) + 1e-6 * inside / next(sizes)
    return [
        at_least(least - mu, -1e-12, what="least cosine in the cone - mu"),
        equals(
            cosine(near, near).min(),
            mu,
            tolerance=1e-5,
            what="least cosine of members at 1e-6 from generators",
        ),
    ]


@claim("MMV24-L6", given=MU, example=separable_data)
def traps_are_convex(evidence: Evidence) -> Comparison:
    """Sums of members of S_+ (of S_-) are members."""
    p = evidence.problem
    rng = np.random.default_rng(0)
    outside = 0
    for member in (in_s_plus, in_s_minus):
        z = np.vstack([in_cone(p), -in_cone(p, 1), directions(p)])
        z = z[member(p, z)]
        i, j = rng.integers(len(z), size=(2, SAMPLES)) if len(z) else np.zeros((2, 0), dtype=int)
        sums = rng.random((len(i), 1)) * z[i] + rng.random((len(i), 1)) * z[j]
        outside += int((~member(p, sums)).sum()) if len(sums) else 0
    return equals(outside, 0, tolerance=0, what="positive combinations outside")


@claim("MMV24-L7", given=MU, example=separable_data)
def cone_is_inside(evidence: Evidence) -> Comparison:
    """Unit z in the cone has y_i <x_i, z> >= mu X_min."""
    p = evidence.problem
    z = in_cone(p)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    least = float((z @ (p.y[:, None] * p.X).T).min())
    bound = least_cosine(p) * float(p.norms.min())
    return at_least(least - bound, -1e-12, what="least y <x, z> - mu X_min")


@claim("MMV24-L8", given=MU, example=separable_data)
def caps_are_inside(evidence: Evidence) -> list[Comparison]:
    """Caps of size zeta_1 around x_+ and x_- lie in S_+ and S_-; zeta_1 >= mu^2."""
    p = evidence.problem
    Z = p.y[:, None] * p.X
    rng = np.random.default_rng(0)
    outside, zetas, reached = 0, [], []
    for label, member in ((1.0, in_s_plus), (-1.0, in_s_minus)):
        centre = p.X[p.y == label].sum(axis=0)
        if not centre.any():
            continue
        zeta = float(cosine(label * centre[None], Z).min()) ** 2
        zetas.append(zeta)
        axis = centre / np.linalg.norm(centre)
        if zeta < 1 - 1e-12:  # else all samples are along the axis, and the cap is a half-space
            reached += [_worst_is_inside(p, axis, label, k * zeta) for k in (0.999, 1.001)]
        across = rng.standard_normal((SAMPLES, p.d))
        across -= np.outer(across @ axis, axis)
        across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)  # 0 if d = 1
        share = np.sqrt(0.999 * zeta * rng.random((SAMPLES, 1)))  # sine of the angle to the axis
        outside += int((~member(p, np.sqrt(1 - share**2) * axis + share * across)).sum())
    return [
        equals(outside, 0, tolerance=0, what="points of the caps outside"),
        equals(all(reached[::2]), 1, tolerance=0, what="worst point of each sample inside at .999"),
        equals(any(reached[1::2]), 0, tolerance=0, what="and at 1.001"),
        at_least(min(zetas) - least_cosine(p) ** 2, -1e-12, what="zeta_1 - mu^2"),
    ]


def _worst_is_inside(problem: Problem, axis: Array, label: float, zeta: float) -> bool:
    """Whether the point of a zeta-cap nearest to each hyperplane is in the trap of the label.

    It lies in the plane of the axis and x_i, on the edge of the cap, away from label y_i x_i.
    """
    S = label * problem.y[:, None] * problem.X
    away = -(S - np.outer(S @ axis, axis))
    length = np.linalg.norm(away, axis=1)
    away = away[length > 1e-12] / length[length > 1e-12, None]
    worst = math.sqrt(max(1 - zeta, 0.0)) * axis + math.sqrt(min(zeta, 1.0)) * away
    member = in_s_plus if label > 0 else in_s_minus
    return bool(member(problem, worst).all())


@experiment(
    "MMV24-L9", quick={"sets": 5, "angles": 200_001}, full={"sets": 50, "angles": 1_000_001}
)
def xi_is_mu_squared(seed: int, sets: int, angles: int) -> Comparison:
    """In the plane, by a fine grid: 1 - max cos^2 between K and the complement of the traps."""
    worst = 0.0
    for i in range(sets):
        p = datasets.separable(0.5, 6, 2, rng=seed + i)
        theta = np.linspace(0, 2 * np.pi, angles)
        z = np.column_stack([np.cos(theta), np.sin(theta)])
        out = z[~in_s_plus(p, z) & ~in_s_minus(p, z)]
        K = p.y[:, None] * p.X  # the largest |cos| is reached at a generator
        xi = 1 - float(np.abs(cosine(K, out)).max(initial=0.0)) ** 2  # none if all are on one ray
        worst = max(worst, abs(xi - least_cosine(p) ** 2))
    return at_most(worst, 1e-3, what="|xi - mu^2|")


@experiment("MMV24-L9", part="space", quick={"sets": 4}, full={"sets": 40})
def xi_in_space(seed: int, sets: int) -> list[Comparison]:
    """In 3 and 5 dimensions: no |cos| above sqrt(1 - mu^2), which a boundary point attains.

    That point is a generator of the least correlated pair, projected off the other one.
    """
    over, attained = -np.inf, 0.0
    for i in range(sets):
        p = datasets.separable(0.5, 8, (3, 5)[i % 2], rng=seed + i)
        Z, mu = p.y[:, None] * p.X, least_cosine(p)
        near = np.vstack([directions(p, i), in_cone(p, i) + 0.3 * directions(p, i + 1)])
        out = near[~in_s_plus(p, near) & ~in_s_minus(p, near)]
        top = math.sqrt(1 - mu**2)
        inside = np.vstack([Z, in_cone(p, i + 2)])
        over = max(over, float(np.abs(cosine(inside, out)).max()) / top)
        j, k = np.unravel_index(np.argmin(cosine(Z, Z)), (p.n, p.n))
        edge = Z[j] - (Z[j] @ Z[k]) / (Z[k] @ Z[k]) * Z[k]
        beyond = edge - 1e-9 * Z[k]  # just on the other side of the hyperplane of x_k
        if in_s_plus(p, beyond[None])[0]:
            raise ReluflowError("rounding put the boundary point inside the trap: draw other data")
        attained = max(attained, abs(float(cosine(Z[j : j + 1], beyond[None])[0, 0]) / top - 1))
    return [
        at_most(over, 1.0, error=1e-12, what="largest |cos| over sqrt(1 - mu^2), sampled"),
        at_most(attained, 1e-6, what="|cos| at the boundary point over sqrt(1 - mu^2), less 1"),
    ]


@claim("MMV24-L11", given=MU, example=separable_data)
def active_sum_is_long(evidence: Evidence) -> Comparison:
    """|x_a(w)| >= sqrt(mu) n_a X_min."""
    p = evidence.problem
    active = directions(p) @ p.X.T > 0
    size = np.linalg.norm(active @ (p.y[:, None] * p.X), axis=1)
    bound = math.sqrt(least_cosine(p)) * active.sum(axis=1) * p.norms.min()
    return at_least((size - bound).min(), -1e-12, what="|x_a| - sqrt(mu) n_a X_min")


@claim("MMV24-C1", given=MU, example=separable_data)
def traps_hold_their_class(evidence: Evidence) -> Comparison:
    """S_+ contains every x_i with y_i > 0, S_- every x_i with y_i < 0."""
    p = evidence.problem
    outside = int((~in_s_plus(p, p.X[p.y > 0])).sum()) + int((~in_s_minus(p, p.X[p.y < 0])).sum())
    return equals(outside, 0, tolerance=0, what="samples outside the trap of their class")


GIVEN = [gradient_flow, positively_correlated, margin_loss, no_leak, balanced_start]
TRAPPED: dict[str, Any] = {
    "needs": ("path",),
    "given": GIVEN,
    "example": trapped_run,
    "quick": {"m": 40, "t_end": 10.0},
    "full": {"m": 1000, "t_end": 40.0},
}


def trap_claim(id: str, **options: Any) -> Callable[..., Callable[[Evidence], Outcome]]:
    """Register a check on runs of SEP data and of TOY6, where some neurons die."""

    def wrap(check: Callable[[Evidence], Outcome]) -> Callable[[Evidence], Outcome]:
        shared = {**TRAPPED, **options}
        given = [*shared.pop("given"), all_trapped]
        claim(id, given=given, **shared)(check)
        experiment_on(
            id,
            given=given,
            example=long_run,
            part="TOY6",
            quick={"m": 30, "log_eps": -12.0},
            full={"m": 500},
            reason="from e^-12: from e^-60, tried first, rounding hides the slack of T1.2c",
        )(check)
        return check

    return wrap


@predicate("every neuron is trapped by the end of the run (t_1 has passed)")
def all_trapped(evidence: Evidence) -> tuple[bool, str]:
    """Each neuron is in S_+ (a > 0), S_- (a < 0) or S_dead at the last record."""
    if not evidence.states:
        return False, "there is no network"
    outside = int((traps_of(evidence.problem, evidence.states[-1]) == 0).sum())
    return outside == 0, f"{outside} neurons outside"


@claim("MMV24-P46", **TRAPPED)
def one_way_flips(evidence: Evidence) -> list[Comparison]:
    """Positive neurons only gain positive and lose negative samples; negative ones mirrored."""
    p = evidence.problem
    wanted = np.sign(evidence.path()[0].a)[:, None] * np.sign(p.y)  # side an activation may flip to
    last = sides(p, evidence.path()[0])
    forbidden, flips = 0, np.zeros(wanted.shape, dtype=int)
    for net in evidence.path()[1:]:
        now = sides(p, net)
        flipped = (now != 0) & (last != 0) & (now != last)
        forbidden += int((flipped & (now != wanted)).sum())
        flips += flipped
        last = np.where(now != 0, now, last)
    return [
        equals(forbidden, 0, tolerance=0, what="forbidden flips"),
        at_most(flips.max(), 1, what="most flips of one neuron on one sample"),
    ]


def count_escapes(evidence: Evidence) -> int:
    """Neurons that leave S_+ (positive) or S_- (negative) after a record inside."""
    p = evidence.problem
    sign = np.sign(evidence.path()[0].a)[:, None] * np.sign(p.y)
    inside = np.zeros(evidence.path()[0].m, dtype=bool)
    left = 0
    for net in evidence.path():
        side = sides(p, net)
        left += int((inside & (side * sign < 0).any(axis=1)).sum())
        inside |= (side == sign).all(axis=1)
    return left


@claim("MMV24-L12", form="repaired", part="classes", **TRAPPED)
def traps_hold(evidence: Evidence) -> Comparison:
    """S_+ traps positive neurons and S_- negative ones."""
    return equals(count_escapes(evidence), 0, tolerance=0, what="neurons that leave S_+ or S_-")


@trap_claim("MMV24-T1.2a")
def all_traps_hold(evidence: Evidence) -> list[Comparison]:
    """After t_1 every neuron stays in S_+, S_- or S_dead."""
    return [
        equals(count_escapes(evidence), 0, tolerance=0, what="neurons that leave S_+ or S_-"),
        dead_neurons_move(evidence),
    ]


def first_trapped_record(evidence: Evidence) -> int:
    """First record with every neuron in a trap."""
    inside = [(traps_of(evidence.problem, net) != 0).all() for net in evidence.states]
    return int(np.argmax(inside))


@trap_claim("MMV24-INV")
def group_invariant(evidence: Evidence) -> Comparison:
    """After t_1 W_s W_s^T - a_s a_s^T (rows of the group s) is constant."""
    since = first_trapped_record(evidence)
    home = traps_of(evidence.problem, evidence.path()[since])
    worst = 0.0
    for s in (1, -1):
        group = home == s
        if not group.any():
            continue
        first = _gram(evidence.path()[since], group)
        for net in evidence.path()[since:]:
            size = np.sum(net.weights()[1][group] ** 2)
            worst = max(worst, float(np.abs(_gram(net, group) - first).max() / size))
    return kept_by_flow(evidence, worst, "drift over the group's norm^2")


def traps_of(p: Problem, net: Network) -> NDArray[np.int64]:
    """1 in S_+, -1 in S_-, 2 dead, 0 in none, for neurons of the right sign.

    Sides are those of :func:`sides`: a neuron at rest on the edge of S_dead is in it.
    """
    active = sides(p, net) > 0
    home = np.where((active == (p.y > 0)).all(axis=1) & (net.a > 0), 1, 0)
    home = np.where((active == (p.y < 0)).all(axis=1) & (net.a < 0), -1, home)
    return np.where(active.any(axis=1), home, 2)


def _gram(net: Network, group: NDArray[np.bool_]) -> Array:
    W, a = net.weights()
    return W[group] @ W[group].T - np.outer(a[group], a[group])


@trap_claim("MMV24-T1.2c", needs=("path", "start"))
def low_rank(evidence: Evidence) -> Found:
    """From t_1 on |W_s|_F^2 <= |W_s|_2^2 + 2 sum |w_j(t_1)|^2, each group, and twice that for W.

    Where no |w_j(t_1)|^2 is above the 2 eps W_max^2/sqrt(h) of Lemma 3, as for t_1 <= T, the slack
    is at most 4 eps W_max^2/sqrt(h) a neuron. |W| grows at every record, so that the slack counts
    for less and less and the stable rank ends below 2.
    """
    path = evidence.path()[first_trapped_record(evidence) :]
    home, sizes = traps_of(evidence.problem, path[0]), np.exp(2 * path[0].log_norms)
    eps, width = math.exp(Constants(evidence.problem, evidence.first()).log_eps), path[0].m
    small = bool((sizes <= 2 * eps / math.sqrt(width)).all())
    weights = [net.weights()[0] for net in path]
    found = []
    for name, rows, times in (("S_+", home == 1, 1), ("S_-", home == -1, 1), ("all", home != 0, 2)):
        if rows.any():
            gap, error = max((_excess_norm2(W[rows], times) for W in weights), key=sum)
            slack = 2 * float(sizes[rows].sum())
            what = f"|W|_F^2 - {'2 ' if times == 2 else ''}|W|_2^2, {name}"
            found.append(at_most(gap / slack, 1.0, error=error / slack, what=f"({what}) / slack"))
            if small:
                most = 4 * eps * float(rows.sum()) / math.sqrt(width)
                found.append(
                    at_most(gap, most, error=error, what=f"{what}; 4 eps W_max^2/sqrt(h) a neuron")
                )
    size = np.log([np.sum(W**2) for W in weights])
    top = float(np.linalg.norm(weights[-1], 2)) ** 2
    if len(size) > 1:
        found.append(
            at_least(
                np.diff(size).min(),
                0.0,
                error=evidence.rtol,
                what="least growth of log |W|_F^2 between records",
            )
        )
    found.append(
        at_most(
            np.exp(size[-1]) / top,
            2.0,
            error=2 * float(sizes.sum()) / top,
            what="stable rank at the end",
        )
    )
    note = "" if small else "Lemma 3 does not reach to t_1: its slack is not compared."
    return Found(found, note=note)


def _excess_norm2(W: Array, times: int) -> tuple[float, float]:
    """|W|_F^2 - times |W|_2^2 from singular values, and its rounding."""
    s = np.linalg.svd(W, compute_uv=False)
    extra = (times - 1) * float(s[0]) ** 2
    error = s.size * float(ROUNDING * s[0]) ** 2 + ROUNDING * extra
    return float(np.sum(s[1:] ** 2)) - extra, error


@trap_claim("MMV24-R2", needs=("end",), given=GIVEN[1:4])
def all_classified(evidence: Evidence) -> Found:
    """Once S_+ and S_- both hold neurons and no other is alive, all data are classified rightly.

    Looked at from t_1 on, each class with the largest neuron of its group at norm 1.
    """
    p, path = evidence.problem, evidence.states[first_trapped_record(evidence) :]
    home = traps_of(p, path[0])
    both = Hypothesis("S_+ and S_- both hold neurons", bool((home == 1).any() & (home == -1).any()))
    found = []
    for s in (1, -1) if both.ok else ():
        unit = (net.scaled(-float(net.log_norms[home == s].max())) for net in path)
        least = min(float(np.min(s * p.outputs(net)[s * p.y > 0])) for net in unit)
        found.append(
            at_least(least, 0.0, error=ROUNDING, what=f"least y f / max |w|^2, sign {s:+d}")
        )
    return Found(found, [both])
