"""[BF24]_ Assumption 6 and Eq. 49: what the cones of the data ask of its least-squares line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reluflow.arrays import Array, Sides
from reluflow.claims.claim import predicate
from reluflow.claims.evidence import Evidence
from reluflow.landscape import arrangement
from reluflow.papers.bf24.claims.data import MOST_CONES, cones, extreme_samples, least_squares
from reluflow.problem import Problem

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
def _listed(data: bytes, n: int, d: int) -> tuple[Sides, Array, Sides]:
    """Sides of all faces, unit rays of the arrangement and their patterns."""
    X = np.frombuffer(data).reshape(n, d)
    N = X / np.linalg.norm(X, axis=1, keepdims=True)
    faces = arrangement.patterns(N, 1e-10)
    lines, sides, _ = arrangement.rays(N, 1e-10)
    return faces, lines, sides


def faces_of(problem: Problem) -> tuple[Sides, Array, Sides]:
    """Sides of all faces, unit rays of the arrangement of X and their patterns."""
    return _listed(np.ascontiguousarray(problem.X).tobytes(), *problem.X.shape)


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
def fading(evidence: Evidence) -> tuple[bool | None, str]:
    """Assumption 6."""
    if cones(evidence.problem) > MOST_CONES:
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
