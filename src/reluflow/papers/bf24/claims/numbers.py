"""[BF24]_: numbers of the statements computed a second time, in the plane, face by face.

In two dimensions every cone is an arc of the circle and every face a ray, so that D_max, D_min,
alpha_min and delta_0 of Appendix D, the extremal vectors of Definition 1 and the largest of G are
minima and maxima over a short list. Nothing here comes from the landscape that is checked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_most, equals
from reluflow.landscape import constants, extremal_vectors
from reluflow.network import Network, initialize
from reluflow.optimum.stationarity import stationarity
from reluflow.problem import Problem, datasets

ON = 1e-9  # |<w, x>| / (|w||x|) up to which w lies on the hyperplane of x
ZERO = 1e-12  # |D| that is rounding


@dataclass(frozen=True)
class Face:
    """An arc [low, high] of angles, or a ray where they agree; its pattern, its D of least norm.

    ``slope`` is the slope in [leak, 1] of the sample of a ray, nan on an arc.
    """

    low: float
    high: float
    u: NDArray[np.int64]
    D: Array
    slope: float

    def is_extremal(self, X: Array) -> bool:
        """Definition 1: D is not 0 and its own pattern is u or -u."""
        if np.linalg.norm(self.D) <= ZERO:
            return False
        u = signs(X, self.D)
        return bool((u == self.u).all() or (u == -self.u).all())


def direction(angle: float) -> Array:
    """The unit vector at an angle."""
    return np.array([np.cos(angle), np.sin(angle)])


def signs(X: Array, w: Array) -> NDArray[np.int64]:
    """sign <w, x_k>, 0 on the hyperplane of x_k."""
    cosine = X @ w / (np.linalg.norm(X, axis=1) * np.linalg.norm(w))
    return np.where(np.abs(cosine) <= ON, 0, np.sign(cosine)).astype(np.int64)


def planar_faces(problem: Problem, pull: Array | None = None) -> list[Face]:
    """Arcs and rays of samples in general position in the plane, no two on one line."""
    X, c = problem.X, problem.pull if pull is None else pull
    turns = np.arctan2(X[:, 1], X[:, 0])[:, None] + np.array([-0.5, 0.5]) * np.pi
    rays = np.sort(np.mod(turns.ravel(), 2 * np.pi))
    found = []
    for low, high in zip(rays, np.append(rays[1:], rays[0] + 2 * np.pi), strict=True):
        u = signs(X, direction(0.5 * (low + high)))
        D = np.where(u > 0, c, problem.leak * c) @ X
        found.append(Face(low, high, u, D, np.nan))
        u = signs(X, direction(low))
        (k,) = np.flatnonzero(u == 0)
        rest, z = np.where(u > 0, c, np.where(u < 0, problem.leak * c, 0.0)) @ X, c[k] * X[k]
        slope = float(np.clip(-(rest @ z) / (z @ z), problem.leak, 1.0))
        found.append(Face(low, low, u, rest + slope * z, slope))
    return found


def largest_cosine(face: Face, vector: Array) -> float:
    """Largest cosine between a vector and the closed cone of a face."""
    angle = np.arctan2(vector[1], vector[0])
    if np.mod(angle - face.low, 2 * np.pi) <= face.high - face.low:
        return 1.0
    return float(max(np.cos(angle - face.low), np.cos(angle - face.high)))


@dataclass(frozen=True)
class Numbers:
    """D_max, D_min and alpha_min (Eq. 23 to 25), delta_0 (Eq. 21) and B of Eq. 22 at alpha_0."""

    D_max: float
    D_min: float
    alpha_min: float
    delta_0: float

    def log_scale_bound(self, problem: Problem, alpha_0: float, eps: float) -> float:
        """log lambda* by Eq. 22."""
        size2 = np.sum(problem.X**2, axis=1)
        slope = np.abs(problem.loss.slope_at_zero(problem.y))
        parts = (self.alpha_min**2 * self.D_min / 8, alpha_0**2 * self.D_min / 4, self.delta_0)
        B = min(min(parts) / size2.mean(), float(np.min(slope / np.sqrt(size2))))
        return float(np.log(B) / (2 - 4 * eps))


def planar_numbers(problem: Problem) -> Numbers:
    """The constants of Appendix D from the list of faces."""
    X, norms = problem.X, problem.norms
    faces = [face for face in planar_faces(problem) if np.linalg.norm(face.D) > ZERO]
    sizes = [float(np.linalg.norm(face.D)) for face in faces]
    cosines, delta = {1: -1.0, -1: -1.0}, np.inf
    for face in faces:
        for s in (1, -1):
            if (s * signs(X, face.D) != face.u).any():
                cosines[s] = max(cosines[s], largest_cosine(face, s * face.D))
                continue
            off = face.u != 0
            delta = min(delta, float(np.min(np.abs(X[off] @ face.D) / norms[off])))
            if not off.all():
                (k,) = np.flatnonzero(~off)
                room = min(face.slope - problem.leak, 1.0 - face.slope)
                delta = min(delta, abs(float(problem.pull[k])) * norms[k] * room)
    alpha = min(float(np.sqrt(1 - cosine**2)) for cosine in cosines.values())
    return Numbers(max(sizes), min(sizes), alpha, delta)


def planar_sets(seed: int, sets: int, leak: float = 0.0) -> list[Problem]:
    """Three points of Figure 2, then Gaussian sets of four points in the plane."""
    rng = np.random.default_rng(seed)
    drawn = [
        Problem(rng.standard_normal((4, 2)), rng.standard_normal(4), leak=leak, name="gaussian")
        for _ in range(sets - 1)
    ]
    return [datasets.three_points().replace(leak=leak, known={}), *drawn]


@experiment("BF24-T1", form="repaired", part="by-faces", quick={"sets": 3}, full={"sets": 50})
def constants_by_faces(seed: int, sets: int) -> list[Comparison]:
    """tau = -eps ln(lambda) / D_max, and lambda* by Eq. 22, from the faces one by one."""
    worst = dict.fromkeys(("tau", "lambda*", "alpha_min", "delta_0"), 0.0)
    for problem in planar_sets(seed, sets):
        ours, known = planar_numbers(problem), constants(problem)
        for log_lambda, eps in ((-7.0, 0.25), (-300.0, 0.1)):
            tau = -eps * log_lambda / ours.D_max
            worst["tau"] = max(worst["tau"], abs(known.alignment_time(log_lambda, eps) / tau - 1))
        for alpha_0, eps in ((1.0, 0.25), (0.1, 0.25), (0.7, 0.1)):
            bound = ours.log_scale_bound(problem, alpha_0, eps)
            gap = abs(known.log_scale_bound(alpha_0, eps) - bound)
            worst["lambda*"] = max(worst["lambda*"], gap)
        for name in ("alpha_min", "delta_0"):
            gap = abs(getattr(known, name) / getattr(ours, name) - 1)
            worst[name] = max(worst[name], gap)
    return [
        at_most(worst["tau"], 1e-9, what="tau, relative error"),
        at_most(worst["lambda*"], 1e-6, what="log lambda*, error"),
        at_most(worst["alpha_min"], 1e-6, what="alpha_min, relative error"),
        at_most(worst["delta_0"], 1e-6, what="delta_0, relative error"),
    ]


@experiment("BF24-Def1", part="by-faces", quick={"sets": 20}, full={"sets": 200})
def listed_by_faces(seed: int, sets: int) -> list[Comparison]:
    """In the plane the list is that of the faces with D_u of pattern u or -u, none missing."""
    missing, strange, values = 0.0, 0.0, 0.0
    for problem in planar_sets(seed, sets) + planar_sets(seed + 1, sets, 0.2):
        by_faces = []
        for face in planar_faces(problem):
            if face.is_extremal(problem.X):
                size = float(np.linalg.norm(face.D))
                s = 1 if (signs(problem.X, face.D) == face.u).all() else -1
                by_faces.append((s * face.D / size, s * size))
        found = extremal_vectors(problem)
        moving = np.abs(found.values) > ZERO
        V, G = found.vectors[moving], found.values[moving]
        U, H = np.array([v for v, _ in by_faces]), np.array([g for _, g in by_faces])
        gaps = np.linalg.norm(U[:, None] - V, axis=2) if len(V) else np.full((len(U), 1), 2.0)
        missing = max(missing, gaps.min(axis=1).max())
        strange = max(strange, gaps.min(axis=0).max())
        if len(V):
            values = max(values, np.abs(H - G[gaps.argmin(axis=1)]).max())
    return [
        at_most(missing, 1e-9, what="distance of a vector of the faces to the nearest listed one"),
        at_most(strange, 1e-9, what="distance of a listed vector to the nearest of the faces"),
        at_most(values, 1e-12, what="difference of G"),
    ]


@experiment("BF24-D1", part="by-scan", quick={"angles": 100_000}, full={"angles": 1_000_000})
def rate_of_escape(seed: int, angles: int) -> list[Comparison]:
    """Beside the line of Figure 2 a zero neuron grows at the largest |G_c|, here by a scan."""
    problem = datasets.three_points()
    line = Network(problem.known["beta_star"][None, :], np.ones(1))
    end = stationarity(problem, line)
    c = problem.weight * (problem.y - problem.X @ problem.known["beta_star"])
    angle = np.linspace(0, 2 * np.pi, angles, endpoint=False)
    S = problem.X @ np.array([np.cos(angle), np.sin(angle)])
    scan = float(np.abs(c @ np.maximum(S, 0.0)).max())
    faces = [face for face in planar_faces(problem, c) if face.is_extremal(problem.X)]
    top = max(float(np.linalg.norm(face.D)) for face in faces)
    steepest = float(np.abs(c) @ problem.norms)  # G changes no faster
    return [
        equals(
            end.escape,
            scan,
            tolerance=steepest * np.pi / angles,
            what="rate, largest |G| of a scan",
        ),
        equals(end.escape, top, tolerance=1e-12, what="rate, largest |D| of an extremal face"),
        at_most(end.escape, end.escape_bound, what="rate and its bound"),
    ]


@experiment("BF24-D3", part="moments", quick={"m": 200_000}, full={"m": 5_000_000})
def start_of_any_width(seed: int, m: int) -> list[Comparison]:
    """Section 2: a_j = +-lambda/sqrt(m) and w_j uniform in the ball of that radius.

    Then sum a_j^2 = lambda^2 at any width, E|w_j|^2 m = lambda^2 d/(d + 2), and |w_j| is below
    half of the radius with probability 2^-d; within five standard errors of m draws.
    """
    made, scale = [], 0.01
    for d in (2, 3):
        problem = Problem(np.eye(d), np.ones(d))
        net = initialize(problem, m, scale, "dominated", seed)
        made.append(
            equals(
                np.sum(net.a**2), scale**2, tolerance=1e-12 * scale**2, what=f"sum of a^2, d={d}"
            )
        )
        r2 = np.sum(net.W**2, axis=1) / np.mean(net.a**2)
        share, half = d / (d + 2), 0.5**d
        spread = np.sqrt(d / (d + 4) - share**2)
        made += [
            equals(
                r2.mean(), share, tolerance=5 * spread / np.sqrt(m), what=f"mean |w|^2 / a^2, d={d}"
            ),
            equals(
                np.mean(r2 < 0.25),
                half,
                tolerance=5 * np.sqrt(half * (1 - half) / m),
                what=f"share of neurons within half of the ball's radius, d={d}",
            ),
            equals(
                np.mean(np.sign(net.a)),
                0.0,
                tolerance=5 / np.sqrt(m),
                what=f"mean sign of a, d={d}",
            ),
        ]
    return made
