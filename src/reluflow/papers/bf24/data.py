"""[BF24]_ Section 4: assumptions on data and runs as predicates, and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from scipy.optimize import linprog

from reluflow.arrays import Array, Sides
from reluflow.claims.claim import predicate
from reluflow.claims.evidence import Evidence
from reluflow.landscape import D, arrangement
from reluflow.problem import Problem

MOST_SAMPLES = 200  # beyond which one program for each sample takes too long
MOST_CONES = 300  # beyond which the constants of Theorem 1 take too long


def least_squares(problem: Problem) -> Array:
    """beta*, the least-squares fit of a linear function."""
    return np.asarray(np.linalg.lstsq(problem.X, problem.y, rcond=None)[0], dtype=float)


def extreme_samples(problem: Problem) -> list[int]:
    """Kset: samples k with some w != 0, <w, x_k> = 0 and X w >= 0.

    Where no w at all has X w >= 0, but for those with X w = 0, one program says so for all k.
    """
    if not _reaches_inside(problem, None):
        return []
    return [k for k in range(problem.n) if _reaches_inside(problem, k)]


def _reaches_inside(problem: Problem, k: int | None) -> bool:
    """Whether some w has X w >= 0, not 0, with <w, x_k> = 0 if k is given."""
    X = problem.X
    best = linprog(
        -X.sum(axis=0),
        A_ub=np.vstack([-X, X]),
        b_ub=np.concatenate([np.zeros(problem.n), np.ones(problem.n)]),
        A_eq=None if k is None else X[k : k + 1],
        b_eq=None if k is None else [0.0],
        bounds=[(None, None)] * problem.d,
    )
    return bool(best.status == 0 and -best.fun > 1e-9)


def box_size(problem: Problem) -> float:
    """Least box_eta for which Assumption 3 holds; inf if there is none."""
    if problem.X.shape != (3, 2):
        return np.inf
    order = np.argsort(problem.X[:, 0])
    (x1, x2, x3), (y1, y2, y3) = problem.X[order], problem.y[order]
    strict = x1[0] > -1 and x3[0] < 1 and y2 > 0
    lower = min(x1[1] - 1, y1 - 1, x3[1] - 1, y3 - 1)
    if not strict or lower < -1e-12:
        return np.inf
    return float(
        max(
            x1[0] + 1,
            x1[1] - 1,
            y1 - 1,
            abs(x2[0]),
            abs(x2[1] - 1),
            y2,
            1 - x3[0],
            x3[1] - 1,
            y3 - 1,
        )
    )


def dominance(problem: Problem, samples: list[int] | None = None) -> float:
    """Least y_k |x_k|^2 - |y| sqrt(sum_k' <x_k, x_k'>^2) over Kset (Assumption 5 if positive).

    ``samples`` are those of Kset where they are known.
    """
    K = problem.X @ problem.X.T
    off = np.sqrt(np.sum(K**2, axis=1) - np.diag(K) ** 2)
    gap = problem.y * np.diag(K) - np.linalg.norm(problem.y) * off
    samples = extreme_samples(problem) if samples is None else samples
    return float(gap[samples].min(initial=np.inf))


@predicate("three points in the boxes, box_eta < 1/6 (Assumption 3)")
def in_boxes(evidence: Evidence) -> tuple[bool, str]:
    """Assumption 3."""
    eta = box_size(evidence.problem)
    return eta < 1 / 6, f"least box_eta {eta:.4g}"


@predicate("positive correlations and labels, independent points (Assumption 4)")
def positive_data(evidence: Evidence) -> tuple[bool | None, str]:
    """Assumption 4."""
    p = evidence.problem
    label = float(p.y.min())
    if label <= 0 or p.n < p.d or p.n > MOST_SAMPLES:
        return (None if label > 0 and p.n >= p.d else False), f"least label {label:.3g}, n={p.n}"
    least = float((p.X @ p.X.T).min())
    if least <= 0:
        return False, f"least inner product {least:.3g}, least label {label:.3g}, n={p.n}, d={p.d}"
    if comb(p.n, p.d) > 100_000:
        return None, f"{comb(p.n, p.d)} subsets of {p.d} points to test"
    unit = p.X / np.linalg.norm(p.X, axis=1, keepdims=True)
    least = min(
        np.linalg.svd(unit[list(rows)], compute_uv=False)[-1]
        for rows in combinations(range(p.n), p.d)
    )
    return least > 1e-9, f"least singular value of d points {least:.2g}"


@predicate("extreme points dominate (Assumption 5)")
def dominant_extremes(evidence: Evidence) -> tuple[bool | None, str]:
    """Assumption 5."""
    if evidence.problem.n > MOST_SAMPLES:
        return None, f"{evidence.problem.n} samples, each a linear program"
    extreme = extreme_samples(evidence.problem)
    if not extreme:
        return False, "Kset is empty"
    gap = dominance(evidence.problem, extreme)
    return gap > 0, f"least y|x|^2 - |y| sqrt(sum of squared products) over Kset: {gap:.4g}"


def number_of_cones(problem: Problem) -> int:
    """Order of the number of activation cones, n over d - 1."""
    return comb(problem.n, max(1, min(problem.d, problem.n) - 1))


@predicate("l' is 1-Lipschitz, l'(0, y) not 0, mean over samples (Assumption 1)")
def smooth_loss(evidence: Evidence) -> tuple[bool, str]:
    """Assumption 1; the plain square loss (f - y)^2 is 2-Lipschitz and a sum n times as steep."""
    p = evidence.problem
    silent = np.count_nonzero(p.loss.slope_at_zero(p.y[p.y != 0]) == 0)
    fine = p.loss.curvature <= 1 and p.reduction == "mean" and silent == 0
    return fine, f"{p.loss.name} loss, Lipschitz constant {p.loss.curvature:g}, {p.reduction}"


@predicate("neurons that can stay on a face do (Conditions 1 and 2, second parts)")
def stays_on_faces(evidence: Evidence) -> tuple[bool | None, str]:
    """The rule by which the flow goes on where its solution is not unique."""
    rule = "unknown" if evidence.run is None else evidence.run.settings.get("on_branch", "unknown")
    return (True if rule == "stay" else None), f"rule at ridges: {rule}"


@predicate("no saddle of G")
def no_saddle(evidence: Evidence) -> tuple[bool | None, str]:
    """G has no saddle, by enumeration."""
    if number_of_cones(evidence.problem) > MOST_CONES:
        return None, f"n={evidence.problem.n}, d={evidence.problem.d} have too many cones to list"
    saddles = sum("saddle" in kind for kind in evidence.landscape.kinds)
    known = evidence.landscape.exact and evidence.landscape.zeros != "found"
    return (saddles == 0 if saddles or known else None), f"{saddles} saddles"


@predicate("the run has come to rest")
def at_rest(evidence: Evidence) -> tuple[bool, str]:
    """|velocity| is at most 1e-8 of |theta|."""
    p, net = evidence.problem, evidence.end()
    push = D(p, net.W, p.pull_at(p.outputs(net)))  # minimal where a neuron slides
    factor = np.exp(net.log_factors)
    across, along = net.a * np.linalg.norm(push, axis=1), np.sum(net.W * push, axis=1)
    speed = np.sqrt(np.sum((factor * across) ** 2) + np.sum((factor * along) ** 2))
    W, a = net.weights()
    size = np.sqrt(np.sum(W**2) + np.sum(a**2))
    return speed <= 1e-8 * size, f"|velocity| / |theta| = {speed / size:.1e}"


TOL = 1e-9


@dataclass(frozen=True)
class Margins:
    """Margins of Assumption 6; it holds if all are positive.

    residual : least r_k = y_k - <beta*, x_k> over Kset.
    push : least u_k <D, x_k> of part 1.
    decay : least <D~_u, w>/|w| of part 2 over extreme rays, those that cannot be mixed left out.
    """

    residual: float
    push: float
    decay: float

    @property
    def least(self) -> float:
        return min(self.residual, self.push, self.decay)


@lru_cache(maxsize=256)
def _faces_and_rays(data: bytes, n: int, d: int) -> tuple[Sides, Array, Sides]:
    """Sides of all faces, unit rays of the arrangement and their patterns."""
    X = np.frombuffer(data).reshape(n, d)
    N = X / np.linalg.norm(X, axis=1, keepdims=True)
    faces = arrangement.faces(N, 1e-10)
    lines, sides, _ = arrangement.rays(N, 1e-10)
    return faces, lines, sides


def faces_of(problem: Problem) -> tuple[Sides, Array, Sides]:
    """Sides of all faces, unit rays of the arrangement of X and their patterns."""
    return _faces_and_rays(np.ascontiguousarray(problem.X).tobytes(), *problem.X.shape)


def margins(problem: Problem) -> Margins:
    """Margins of Assumption 6, by enumeration of the activation cones (X of full rank).

    A closed cone is spanned by its rays, and <D~_u, w> is linear on it: it is positive on the
    mixed part when no ray has a negative value and the rays of value 0 are not mixed together.
    """
    X, n = problem.X, problem.n
    r = problem.y - X @ least_squares(problem)
    extreme = extreme_samples(problem)
    K = X @ X.T / n
    push = decay = np.inf
    faces, lines, sides = faces_of(problem)
    for u in faces:
        if not ((u == 1).any() and (u == -1).any()):
            continue
        touching = ((sides == u) | (sides == 0)).all(axis=1)
        on = u == 0
        for k in extreme:
            if u[k] != 0 and (sides[touching, k] == 0).any():
                each = u[k] * r * K[k]
                worst = each[u == 1].sum() + np.minimum(0.0, each[on]).sum()
                push = min(push, float(worst))
        inside = u[extreme]
        if (inside == 1).any() and (inside == -1).any():
            values = lines[touching] @ (r[u == 1] @ X[u == 1]) / n
            flat = sides[touching][np.abs(values) <= TOL][:, extreme]
            mixed = (flat > 0).any() and (flat < 0).any()
            rest = values[np.abs(values) > TOL]
            decay = min(decay, 0.0 if mixed else float(rest.min(initial=np.inf)))
    return Margins(float(r[extreme].min(initial=np.inf)), push, decay)


@predicate("negative neurons fade at the least-squares line (Assumption 6)")
def negative_neurons_fade(evidence: Evidence) -> tuple[bool | None, str]:
    """Assumption 6."""
    if number_of_cones(evidence.problem) > MOST_CONES:
        return None, f"n={evidence.problem.n}, d={evidence.problem.d} have too many cones to list"
    if not evidence.problem.X.any(axis=1).all():
        return False, "a sample is zero"
    if not extreme_samples(evidence.problem):
        return False, "Kset is empty"
    found = margins(evidence.problem)
    return found.least > 0, (
        f"least residual on Kset {found.residual:.3g}, push {found.push:.3g}, decay "
        f"{found.decay:.3g}"
    )


def least_mean(problem: Problem) -> float:
    """alpha of Eq. 49: min of mean <w, x_k> over unit w with X w >= 0, reached on a ray."""
    _, lines, sides = faces_of(problem)
    inside = (sides >= 0).all(axis=1)
    return float((lines[inside] @ problem.X.mean(axis=0)).min(initial=np.inf))
