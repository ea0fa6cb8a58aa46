"""[BF24]_ Definition 1 and Eq. 21 to 25, written out from the paper.

Nothing here uses the landscape: its lists and constants are held against these. Pulls are
c_k = -l'(0, y_k)/n, slopes lie in [leak, 1]. In two dimensions every cone is an arc of the circle
and every face a ray, so that the constants are minima and maxima over a short list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.problem import Problem, datasets

NONE = 1e-12  # |D| over sum_k |c_k| |x_k| below which D is 0
EDGE = 1e-10  # products over |w| |x_k| below which w lies on the hyperplane of sample k


def signs(problem: Problem, w: Array) -> NDArray[np.int8]:
    """A(w): the signs of <w, x_k>, 0 up to rounding."""
    product_ = problem.X @ w
    size = problem.norms * np.linalg.norm(w)
    return np.where(np.abs(product_) <= EDGE * size, 0, np.sign(product_)).astype(np.int8)


def extremal_by_patterns(problem: Problem) -> tuple[Array, Array]:
    r"""Every extremal vector of data in general position, by all patterns u in {-1, 0, 1}^n.

    D = sum_k s_k c_k x_k with s_k = 1 where u_k = 1, leak where u_k = -1 and free in [leak, 1]
    where u_k = 0 is extremal if it is not 0 and A(D) = +-u (Definition 1). So <D, x_k> = 0 where
    u_k = 0, which determines the free slopes; at most d - 1 samples can be such ones.

    Returns
    -------
    arrays (k, d) and (k,)
        Critical directions w = +-D/|D| with A(w) = u, and G(w) = +-|D|.
    """
    X, c, n, d = problem.X, problem.pull, problem.n, problem.d
    vectors, values = [], []
    for count in range(d):
        for zero in map(list, combinations(range(n), count)):
            rest = [k for k in range(n) if k not in zero]
            for chosen in product((-1, 1), repeat=len(rest)):
                u = np.zeros(n, dtype=np.int8)
                u[rest] = chosen
                slopes = np.where(u > 0, 1.0, problem.leak)
                if zero:
                    base = (slopes * c)[rest] @ X[rest]
                    Z = (c[:, None] * X)[zero]
                    slopes[zero] = np.linalg.solve(X[zero] @ Z.T, -X[zero] @ base)
                    if not ((slopes[zero] >= problem.leak) & (slopes[zero] <= 1)).all():
                        continue
                grad = (slopes * c) @ X
                length = float(np.linalg.norm(grad))
                if length <= NONE * problem.total_pull:
                    continue
                side = signs(problem, grad)
                for s in (1.0, -1.0):
                    if (side == s * u).all():
                        vectors.append(s * grad / length)
                        values.append(s * length)
    return np.reshape(vectors, (-1, d)), np.array(values)


def count_unmatched(found: Array, others: Array) -> int:
    """How many rows of ``found`` have no row of ``others`` within 1e-9."""
    if not len(found):
        return 0
    if not len(others):
        return len(found)
    gaps = np.linalg.norm(found[:, None] - others[None], axis=2).min(axis=1)
    return int(np.count_nonzero(gaps > 1e-9))


@dataclass(frozen=True)
class PlanarFace:
    """An arc (``low`` < ``high``) or a ray (``low`` = ``high``) of the plane, in radians.

    ``grad`` is D_u of minimal norm; ``slope`` the free slope of a ray, nan on an arc.
    """

    low: float
    high: float
    side: NDArray[np.int8]
    grad: Array
    slope: float

    def angle_to(self, direction: Array) -> float:
        """Least angle between a direction and the closed cone."""
        angle = math.atan2(direction[1], direction[0])
        ahead = (angle - self.low) % (2 * math.pi)
        if ahead <= self.high - self.low:
            return 0.0
        return min(ahead - (self.high - self.low), 2 * math.pi - ahead)

    def sign_of_D(self, problem: Problem) -> int:
        """1 where D_u has the pattern u, -1 where it has -u, else 0 (Definition 1: extremal or
        not); 0 where D_u is 0."""
        if np.linalg.norm(self.grad) <= NONE * problem.total_pull:
            return 0
        side = signs(problem, self.grad)
        return int((side == self.side).all()) - int((side == -self.side).all())


def planar_faces(problem: Problem, pull: Array | None = None) -> list[PlanarFace]:
    """All faces of data in the plane, no two samples on one line: 2n arcs and 2n rays."""
    X, c, leak = problem.X, problem.pull if pull is None else pull, problem.leak
    angles = np.arctan2(X[:, 1], X[:, 0])
    rays = [(a + s * math.pi / 2, k) for k, a in enumerate(angles) for s in (1, -1)]
    rays = sorted(((a + math.pi) % (2 * math.pi) - math.pi, k) for a, k in rays)
    faces = []
    ends = [a for a, _ in rays] + [rays[0][0] + 2 * math.pi]
    for i, (angle, k) in enumerate(rays):
        side = signs(problem, np.array([math.cos(angle), math.sin(angle)]))
        slopes = np.where(side > 0, 1.0, leak)
        slopes[k] = 0.0
        base, z = (slopes * c) @ X, c[k] * X[k]
        slope = float(np.clip(-(base @ z) / (z @ z), leak, 1.0))
        faces.append(PlanarFace(angle, angle, side, base + slope * z, slope))
        middle = 0.5 * (angle + ends[i + 1])
        side = signs(problem, np.array([math.cos(middle), math.sin(middle)]))
        grad = (np.where(side > 0, 1.0, leak) * c) @ X
        faces.append(PlanarFace(angle, ends[i + 1], side, grad, math.nan))
    return faces


@dataclass(frozen=True)
class PlanarConstants:
    """D_max, D_min, alpha_min and delta_0 of data in the plane, term by term.

    ``alpha_minus`` has the faces that Eq. 25 means, with D_u outside the *negative* cone;
    ``alpha_minus_printed`` those of Eq. 24, as it stands in our text.
    """

    problem: Problem
    D_max: float
    D_min: float
    alpha_plus: float
    alpha_minus: float
    alpha_minus_printed: float
    delta_0: float

    @property
    def alpha_min(self) -> float:
        """The smaller of alpha_min,+ and alpha_min,-."""
        return min(self.alpha_plus, self.alpha_minus)

    def log_scale_bound(self, alpha_0: float, eps: float) -> float:
        """log lambda* by Eq. 22."""
        norms = self.problem.norms
        parts = (self.alpha_min**2 * self.D_min / 8, alpha_0**2 * self.D_min / 4, self.delta_0)
        slopes = np.abs(self.problem.loss.slope_at_zero(self.problem.y))
        B = min(min(parts) / float(np.mean(norms**2)), float((slopes / norms).min()))
        return math.log(B) / (2 - 4 * eps)

    def tau(self, log_lambda: float, eps: float) -> float:
        """-eps log(lambda) / D_max."""
        return -eps * log_lambda / self.D_max


def planar_constants(problem: Problem) -> PlanarConstants:
    """The constants of Eq. 21 to 25 for data in the plane, no two samples on one line."""
    X, c, leak = problem.X, problem.pull, problem.leak
    norms = problem.norms
    sizes: list[float] = []
    plus: list[float] = []
    minus: list[float] = []
    printed: list[float] = []
    delta = math.inf
    for face in planar_faces(problem):
        size = float(np.linalg.norm(face.grad))
        sizes.append(size)
        if size <= NONE * problem.total_pull:
            continue
        sign = face.sign_of_D(problem)
        largest = math.cos(face.angle_to(face.grad))
        least = -math.cos(face.angle_to(-face.grad))
        if sign != 1:
            plus.append(largest)
            printed.append(least)
        if sign != -1:
            minus.append(least)
        if sign:
            off = face.side != 0
            delta = min(delta, float((np.abs(X @ face.grad) / norms)[off].min()))
            if not off.all():
                (k,) = np.flatnonzero(~off)
                slack = min(face.slope - leak, 1 - face.slope)
                delta = min(delta, float(abs(c[k]) * norms[k] * slack))
    moving = [s for s in sizes if s > NONE * problem.total_pull]
    return PlanarConstants(
        problem,
        D_max=max(sizes),
        D_min=min(moving),
        alpha_plus=math.sqrt(max(0.0, 1 - max(plus) ** 2)),
        alpha_minus=math.sqrt(max(0.0, 1 - min(minus) ** 2)),
        alpha_minus_printed=math.sqrt(max(0.0, 1 - min(printed) ** 2)),
        delta_0=delta,
    )


def planar_sets(seed: int, sets: int, leak: float = 0.0) -> list[Problem]:
    """Three points of Figure 2, then Gaussian sets of four points in the plane."""
    rng = np.random.default_rng(seed)
    drawn = [
        Problem(rng.standard_normal((4, 2)), rng.standard_normal(4), leak=leak, name="gaussian")
        for _ in range(sets - 1)
    ]
    return [datasets.three_points().replace(leak=leak, known={}), *drawn]
