r"""The landscape of several outputs: critical points of G_C, and paths under a constant pull.

.. math:: G_C(w) = \Big| \sum_k c_k \phi(\langle w, x_k\rangle) \Big| = |M_u^\top w|
          \quad\text{in the cone } u, \qquad M_u = \sum_k \phi'_{u_k} x_k c_k^\top.

On the face of sides u, 0 on the hyperplanes that hold it, a unit v is critical when it is a left
singular vector of P M_u, P projecting off the samples held, with right vector b, value s, and when
slopes in [leak, 1] of the samples held make up for what P takes away. It is a local maximum when s
is the largest singular value there and every sample held pushes back, :math:`\langle c_k, b\rangle
< 0`. So all critical points follow from all faces of the arrangement of hyperplanes, which are
listed where they are few; else ascents from many starts find maxima, each end being verified.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import Array, Sides
from reluflow.errors import ReluflowError
from reluflow.kernels.codes import PathEnd
from reluflow.landscape.early import most_events
from reluflow.landscape.extremal import ExtremalVectors
from reluflow.problem import Problem

ON_KINK = 1e-10  # |<v, x_k>| / |x_k| that counts as 0
NO_PULL = 1e-13  # singular values below this times sum_k |c_k||x_k| are 0
FACES = 60_000  # sign vectors around rays up to which all faces are listed
LARGE = 20_000  # n d K above which ascents begin with steps uphill
EPS = float(np.finfo(float).eps)
SAME = 1e-7  # distance of two unit vectors that counts as the same direction


def matrix_pull(problem: Problem, pull: ArrayLike | None) -> Array:
    """The pull as a checked array of shape (n, K); that of a silent network when None."""
    C = problem.pull if pull is None else np.asarray(pull, dtype=np.float64)
    if C.shape != problem.y.shape:
        raise ReluflowError(
            f"pull has shape {C.shape}, expected {problem.y.shape}: one row for each sample"
        )
    if not np.isfinite(C).all():
        raise ReluflowError("pull holds a number that is not finite: expected finite numbers only")
    return np.ascontiguousarray(C)


def value(problem: Problem, W: ArrayLike, pull: ArrayLike | None = None) -> Array:
    """G_C of rows W (..., d)."""
    S = np.asarray(W, dtype=float) @ problem.X.T
    return np.asarray(
        np.linalg.norm(np.maximum(S, problem.leak * S) @ matrix_pull(problem, pull), axis=-1)
    )


class Rides(NamedTuple):
    """Neurons z = (w, a) after a time under a constant pull, scaled to |z| = 1."""

    W: Array
    A: Array
    U: Sides
    ends: NDArray[np.int64]  # codes.PathEnd
    rate: Array  # slope of log|z| for ever, 0 for a finite time
    log: Array  # growth of log|z|; less rate times t for ever
    last: Array  # time of the last event
    counts: NDArray[np.int64]  # (m, 2) crossings and slides
    Z: Array  # (m, d + K) at the last event, up to a factor


def sides_of(problem: Problem, W: Array) -> Sides:
    """Sides of the hyperplanes of all samples; those exactly on one count as inactive."""
    return np.where(W @ problem.X.T > 0.0, 1, -1).astype(np.int8)


def ride(problem: Problem, W: Array, A: Array, U: Sides, C: Array, until: float) -> Rides:
    """Move neurons for a time, or for ever, under the constant pull C."""
    from reluflow.kernels.multioutput import Pull, ride_all

    m = len(W)
    W, A, U = np.array(W, order="C"), np.array(A, order="C"), np.array(U, order="C")
    ends, numbers = np.zeros(m, dtype=np.int64), np.zeros((m, 3))
    counts, Z = np.zeros((m, 2), dtype=np.int64), np.zeros((m, W.shape[1] + A.shape[1]))
    floor = NO_PULL * max(float(np.linalg.norm(C, axis=1) @ problem.norms), problem.total_pull)
    pull = Pull(np.ascontiguousarray(problem.X), C, problem.norms, problem.leak)
    ride_all(W, A, U, pull, floor, until, most_events(problem.n), ends, numbers, counts, Z)
    return Rides(W, A, U, ends, numbers[:, 0], numbers[:, 1], numbers[:, 2], counts, Z)


# ---------------------------------------------------------------------- critical points
@dataclass(frozen=True, eq=False, repr=False)
class VectorExtremals(ExtremalVectors):
    """Critical points of G_C on the unit sphere, by falling value; ``values`` are not negative.

    Attributes
    ----------
    outer : array, shape (k, K)
        Unit direction b of the outer weights there: a neuron grows along (v, b).

    The others are those of :class:`ExtremalVectors`; ``basin_fractions`` has one column, the share
    of sampled balanced neurons that end there.
    """

    outer: Array = field(default_factory=lambda: np.empty((0, 0)))

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "outer": self.outer.tolist()}

    def __repr__(self) -> str:
        head = "all" if self.exact else "found"
        lines = [f"VectorExtremals({len(self)} {head}, method={self.method!r})"]
        for i in range(min(len(self), 20)):
            w = " ".join(f"{x: .4f}" for x in self.vectors[i, :6])
            b = " ".join(f"{x: .4f}" for x in self.outer[i, :6])
            lines.append(f"  {self.kinds[i]:<7} G={self.values[i]: .6g}  w=[{w}]  a=[{b}]")
        return "\n".join(lines + ([f"  and {len(self) - 20} more"] if len(self) > 20 else []))


class Critical(NamedTuple):
    """A critical point: direction, outer direction, value, kind and sides."""

    v: Array
    b: Array
    value: float
    kind: str
    U: Sides


def cone_matrix(problem: Problem, C: Array, U: Sides) -> Array:
    """M_u (d, K), samples with side 0 left out."""
    slopes = np.where(U > 0, 1.0, np.where(U < 0, problem.leak, 0.0))
    return np.asarray(problem.X.T @ (slopes[:, None] * C))


def critical_on_face(problem: Problem, C: Array, U: Sides, floor: float) -> list[Critical]:
    """Critical points inside the face of sides U."""
    M, on = cone_matrix(problem, C, U), np.flatnonzero(U == 0)
    if on.size:
        Q = np.linalg.qr(problem.X[on].T)[0]
        P = M - Q @ (Q.T @ M)
    else:
        P = M
    L, s, R = np.linalg.svd(P, full_matrices=False)
    out = []
    for i in np.flatnonzero(s > floor):
        products = problem.X @ L[:, i]
        products[np.abs(products) <= ON_KINK * problem.norms] = 0.0
        for sign in (1.0, -1.0):
            if not (np.sign(sign * products[U != 0]) == U[U != 0]).all():
                continue
            v, b = sign * L[:, i], sign * R[i]
            held = _held(problem, C, M, on, b)
            if held is None:
                continue
            alone = len(s) == 1 or i > 0 or s[1] < s[0] * (1.0 - 1e-9)
            top = i == 0 and alone and bool((held < 0.0).all())
            out.append(Critical(v, b, float(s[i]), "max" if top else "saddle", U))
    return out


def _held(problem: Problem, C: Array, M: Array, on: NDArray[np.intp], b: Array) -> Array | None:
    """<c_k, b> of the samples held, None where no slopes in [leak, 1] hold a neuron on them."""
    drive = C[on] @ b
    if not on.size:
        return drive
    X = problem.X[on]
    r = -np.linalg.lstsq(X.T, M @ b, rcond=None)[0]
    low, high = np.minimum(drive, problem.leak * drive), np.maximum(drive, problem.leak * drive)
    tol = 1e-9 * np.abs(drive).max(initial=1e-300)
    return drive if ((r >= low - tol) & (r <= high + tol)).all() else None


def _face_count(n: int, d: int) -> float:
    return 2.0 * math.comb(n, d - 1) * 3.0 ** (d - 1)


def _faces(problem: Problem, C: Array) -> Iterator[Sides]:
    """Sides of all faces of the arrangement, and of some that are empty, each once."""
    X, n, d = problem.X, problem.n, problem.d
    if d == 1:
        for sign in (1, -1):
            yield (sign * np.sign(X[:, 0])).astype(np.int8)
        return
    seen: set[bytes] = set()
    for chosen in combinations(range(n), d - 1):
        _, s, Vt = np.linalg.svd(X[list(chosen)])
        if s[-1] <= ON_KINK * max(s[0], 1e-300):
            continue  # dependent: their common line comes from other samples
        products = X @ Vt[-1]
        zero = np.abs(products) <= ON_KINK * problem.norms
        around = np.flatnonzero(zero)
        for sign in (1, -1):
            base = (sign * np.sign(products)).astype(np.int8)
            for values in product((-1, 0, 1), repeat=len(around)):
                U = base.copy()
                U[around] = values
                if U.tobytes() not in seen:
                    seen.add(U.tobytes())
                    yield U


def all_critical(problem: Problem, C: Array, budget: int = FACES) -> list[Critical] | None:
    """Every critical point with a positive value, None where the faces are too many to list.

    The samples must span the space; then every face touches a ray of the arrangement.
    """
    n, d = problem.n, problem.d
    if n < d or _face_count(n, d) > budget or (d > 1 and np.linalg.matrix_rank(problem.X) < d):
        return None
    floor = NO_PULL * 10.0 * float(np.linalg.norm(C, axis=1) @ problem.norms)
    found: list[Critical] = []
    for U in _faces(problem, C):
        found += critical_on_face(problem, C, U, floor)
    return _distinct(found)


def _distinct(points: list[Critical]) -> list[Critical]:
    """Points by falling value, without repetitions."""
    out: list[Critical] = []
    for p in sorted(points, key=lambda p: (-round(p.value, 12), p.v.tolist())):
        if not any(np.abs(p.v - q.v).max() + np.abs(p.b - q.b).max() <= SAME for q in out):
            out.append(p)
    return out


def ascend(
    problem: Problem, C: Array, starts: int, rng: np.random.Generator
) -> tuple[list[Critical], Array]:
    """Maxima that balanced neurons from random directions reach, and the share of each.

    Each neuron follows the flow of a constant pull to its end, kinks included; an end counts only
    if it is a critical point of the face it lies on. On large data steps uphill come first, so
    that few of the many hyperplanes are left to be crossed one by one.
    """
    W, B = rng.normal(size=(starts, problem.d)), rng.normal(size=(starts, C.shape[1]))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    B /= np.linalg.norm(B, axis=1, keepdims=True)
    if problem.X.size * C.shape[1] > LARGE:
        W, B = uphill(problem, C, W)
    found = ride(problem, W, B, sides_of(problem, W), C, np.inf)
    floor = NO_PULL * 10.0 * float(np.linalg.norm(C, axis=1) @ problem.norms)
    points: list[Critical] = []
    counts: list[int] = []
    for j in np.flatnonzero(found.ends == PathEnd.GROWS):
        v = found.W[j] / np.linalg.norm(found.W[j])
        for i, p in enumerate(points):
            if np.abs(p.v - v).max() <= SAME:
                counts[i] += 1
                break
        else:
            for p in critical_on_face(problem, C, found.U[j], floor):
                if np.abs(p.v - v).max() <= SAME:
                    points.append(p)
                    counts.append(1)
                    break
    return points, np.array(counts, dtype=float) / starts


def uphill(problem: Problem, C: Array, W: Array, steps: int = 400) -> tuple[Array, Array]:
    """Unit rows W after ever shorter steps along the gradient of G_C, and their outer rows.

    Zero rows stay, as do rows on which no sample is active.
    """
    for length in np.geomspace(1.0, 1e-4, steps):
        S = W @ problem.X.T
        slope = np.where(S > 0.0, 1.0, problem.leak)
        B = _unit_rows((slope * S) @ C)
        W = _unit_rows(W + length * _unit_rows((slope * (B @ C.T)) @ problem.X))
    return W, B


def _unit_rows(W: Array) -> Array:
    """Rows divided by their norms, zero rows left alone."""
    size = np.linalg.norm(W, axis=1, keepdims=True)
    return np.asarray(W / np.where(size > 0.0, size, 1.0))


def extremal_vectors(
    problem: Problem,
    pull: ArrayLike | None = None,
    method: str = "auto",
    *,
    tol: float = ON_KINK,
    starts: int = 1000,
    budget: int = FACES,
    basin_points: int = 0,
    rng: np.random.Generator | int | None = 0,
) -> VectorExtremals:
    """Critical points of G_C for several outputs: see :func:`reluflow.extremal_vectors`.

    ``method`` is "auto", "arrangement" (all faces, for few samples in few dimensions) or
    "multistart" (maxima reached by ascent, ``exact`` False); ``budget`` is the number of sign
    vectors up to which "auto" lists all faces. ``tol`` and ``basin_points`` play no part.
    """
    if method not in ("auto", "arrangement", "multistart"):
        raise ReluflowError(
            f"with several outputs method is auto, arrangement or multistart, got {method!r}"
        )
    C = matrix_pull(problem, pull)
    points = None if method == "multistart" else all_critical(problem, C, budget)
    if points is None and method == "arrangement":
        raise ReluflowError(
            f"method 'arrangement' lists all faces, too many for {problem.n} samples in "
            f"{problem.d} dimensions (or these do not span them): use method='multistart'"
        )
    exact = points is not None
    shares = None
    if points is None:
        ends, found = ascend(problem, C, starts, np.random.default_rng(rng))
        order = sorted(range(len(ends)), key=lambda i: -ends[i].value)
        points, shares = [ends[i] for i in order], found[order][:, None]
    U = np.array([p.U for p in points], dtype=np.int8).reshape(-1, problem.n)
    pulls = (np.abs(C).max(axis=1) > 0.0) & (problem.norms > 0.0)
    k = len(points)
    return VectorExtremals(
        vectors=np.array([p.v for p in points]).reshape(k, problem.d),
        values=np.array([p.value for p in points]),
        kinds=tuple(p.kind for p in points),
        patterns=U,
        faces=tuple(tuple(np.flatnonzero((u == 0) & pulls).tolist()) for u in U),
        degenerate=np.zeros(k, dtype=bool),
        indices=np.full(k, -1, dtype=np.intp),
        basin_fractions=shares,
        basins="none" if shares is None else f"{starts} sampled neurons",
        zeros="none",
        exact=exact,
        method="arrangement" if exact else "multistart",
        outer=np.array([p.b for p in points]).reshape(k, C.shape[1]),
    )


class LargestG(NamedTuple):
    """value <= max of G_C on the sphere <= upper_bound; ``exact`` where all faces were listed."""

    value: float
    vector: Array
    outer: Array
    upper_bound: float
    exact: bool


def simple_bound(problem: Problem, C: Array) -> float:
    r"""Upper bound of G_C on the sphere that needs no search.

    With :math:`\phi(z) = \frac{1+leak}2 z + \frac{1-leak}2 |z|` and
    :math:`|\sum_k c_k |\langle w, x_k\rangle|| \le \|D^{-1} C\|_2 \|D X\|_2` for any positive
    diagonal D, here :math:`D_k^2 = |c_k| / |x_k|`; never more than sum_k \|c_k\| \|x_k\|.
    """
    sizes, norms = np.linalg.norm(C, axis=1), problem.norms
    total = float(sizes @ norms)
    used = (sizes > 0.0) & (norms > 0.0)
    if not used.any():
        return 0.0
    D = np.sqrt(sizes[used] / norms[used])[:, None]
    kinked = _spectral_norm(C[used] / D) * _spectral_norm(D * problem.X[used])
    linear = float(np.linalg.norm(problem.X.T @ C, 2))
    bound = 0.5 * (1.0 + problem.leak) * linear + 0.5 * (1.0 - problem.leak) * kinked
    return min(total, bound) * (1.0 + 1e-12)


def _spectral_norm(rows: Array) -> float:
    """The largest singular value, by the smaller matrix rows^T rows where rows are many.

    Its largest eigenvalue is right up to n times the rounding of a sum; the bound allows for that.
    """
    n, d = rows.shape
    if n <= 4 * d:
        return float(np.linalg.norm(rows, 2))
    gram = rows.T @ rows
    return float(np.sqrt(np.linalg.eigvalsh(gram)[-1] + n * EPS * np.trace(gram)))


def largest_G(problem: Problem, pull: ArrayLike, starts: int = 300, rng: int = 0) -> LargestG:
    """The largest G_C on the sphere: exact for few samples in few dimensions, else found."""
    C = matrix_pull(problem, pull)
    found = extremal_vectors(problem, C, starts=starts, rng=rng)
    bound = simple_bound(problem, C)
    if not len(found):
        v, b = np.eye(1, problem.d)[0], np.zeros(C.shape[1])
        return LargestG(0.0, v, b, 0.0 if found.exact else bound, found.exact)
    best = float(found.values[0])
    upper = best * (1.0 + 1e-9) if found.exact else max(bound, best)
    return LargestG(best, found.vectors[0], found.outer[0], upper, found.exact)
