r"""The canonical form of G: one linear part and one kink per hyperplane.

Since :math:`\phi(z) = \frac{1+\mathrm{leak}}2 z + \frac{1-\mathrm{leak}}2 |z|`,

.. math:: G_c(w) = \langle w, m \rangle + \sum_h \kappa_h |\langle w, n_h \rangle|,

with unit normals :math:`n_h`, one for each distinct hyperplane. Parallel and antiparallel samples
share a hyperplane and their kinks add; where they cancel (symmetric data) G has no kink at all.
A pattern v says on which side of each hyperplane a direction is, 0 on it: v in {-1, 0, 1}^H.
Gradients are :math:`D_v = m + \sum_h v_h \kappa_h n_h`, :math:`v_h = \pm 1` off the hyperplane and
:math:`v_h \in [-1, 1]` on it. Everything lives in the span of m and the n_h; `basis` maps back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import Array, Sides
from reluflow.errors import ReluflowError
from reluflow.problem import Problem

PATTERN_TOL = 1e-10
"""|<w, x_k>| <= PATTERN_TOL |w| |x_k| counts as zero; closer hyperplanes are one hyperplane."""

ZERO_TOL = 1e-12
"""|D| or |G| below ZERO_TOL * sum_k |c_k| |x_k| counts as zero."""

EPS = float(np.finfo(np.float64).eps)


def signs_of(products: Array, tol: float | Array) -> Sides:
    """Signs of products <w, x>, 0 where they are at most ``tol`` in size."""
    return np.asarray((np.sign(products) * (np.abs(products) > tol)).astype(np.int8))


def as_pull(problem: Problem, pull: ArrayLike | None) -> Array:
    """The pull as a checked float64 array of shape (n,); ``problem.pull`` when None."""
    problem.check_kinks("the landscape")
    if pull is None:
        return problem.pull
    c = np.asarray(pull, dtype=np.float64)
    if c.shape != (problem.n,):
        raise ReluflowError(
            f"pull has shape {c.shape}, expected ({problem.n},): one number for each sample"
        )
    if not np.isfinite(c).all():
        raise ReluflowError(
            "pull holds a number that is not finite: expected finite numbers only, "
            "compute it from finite outputs"
        )
    return c


def unit_of(size: float) -> float:
    """The power of two just above ``size``: division by it is exact, and squares are floats."""
    if size == 0.0:
        return 1.0
    return float(np.ldexp(1.0, int(np.clip(np.frexp(size)[1], -1021, 1021))))


def unit_pull(problem: Problem, pull: ArrayLike | None) -> tuple[Array, float]:
    """The pull divided by a power of two, so that squares neither vanish nor overflow."""
    c = as_pull(problem, pull)
    unit = unit_of(float(np.max(np.abs(c) * problem.norms, initial=0.0)))
    return c / unit, unit


@dataclass(frozen=True, eq=False)
class Canonical:
    """G in its canonical form, inside the r-dimensional span of its normals and m.

    m (r,), N (H, r) unit rows, kappa (H,) non-zero; basis (r, d) orthonormal rows, so that
    w = z @ basis; member (n,) the hyperplane of each sample or -1 (no kink); scale bounds |G|;
    error bounds the difference to the G of the samples on the sphere (merging, rank, rounding).
    """

    m: Array
    N: Array
    kappa: Array
    basis: Array
    member: NDArray[np.intp]
    scale: float
    tol: float
    error: float

    @property
    def r(self) -> int:
        """Dimension of the space in which G lives."""
        return self.m.size

    @property
    def H(self) -> int:
        """Number of hyperplanes on which G has a kink."""
        return self.kappa.size

    def G(self, z: Array) -> Array:
        """G at rows z (..., r)."""
        return np.asarray(z @ self.m + np.abs(z @ self.N.T) @ self.kappa)

    def pattern(self, z: Array) -> Sides:
        """Pattern of unit rows z: the side of each hyperplane, 0 within the tolerance."""
        return signs_of(z @ self.N.T, self.tol)

    def negated(self) -> Canonical:
        """The canonical form of -G."""
        return replace(self, m=-self.m, kappa=-self.kappa)


def hyperplanes(X: Array, tol: float) -> tuple[Array, NDArray[np.intp], Array]:
    """Distinct hyperplanes of the non-zero rows of X.

    Returns unit normals (H, d), for each row its hyperplane (-1 for a zero row), and for each row
    its length along the normal (negative for antiparallel rows).
    """
    size = np.linalg.norm(X, axis=1)
    member = np.full(len(X), -1, dtype=np.intp)
    length = np.zeros(len(X))
    rows = np.flatnonzero(size > 0)
    U = X[rows] / size[rows, None]
    # parallel rows have equal |<u, probe>|: sort by it and compare within the tolerance only
    probe = np.random.default_rng(20240229).normal(size=X.shape[1])
    key = np.abs(U @ probe) / float(np.linalg.norm(probe))
    order = np.argsort(key, kind="stable")
    group = np.full(len(rows), -1, dtype=np.intp)
    leaders: list[int] = []
    window: list[int] = []  # recent leaders, by key
    for i in order:
        while window and key[leaders[window[0]]] < key[i] - 2 * tol:
            window.pop(0)
        found = -1
        for g in window:
            lead = U[leaders[g]]
            gap = min(float(np.abs(U[i] - lead).max()), float(np.abs(U[i] + lead).max()))
            if gap <= tol:
                found = g
                break
        if found < 0:
            found = len(leaders)
            leaders.append(int(i))
            window.append(found)
        group[i] = found
    # number hyperplanes by their first sample, and orient them like it
    first = np.full(len(leaders), len(rows), dtype=np.intp)
    np.minimum.at(first, group, np.arange(len(rows)))
    rank = np.argsort(np.argsort(first))
    normals = U[np.sort(first)] if len(leaders) else np.zeros((0, X.shape[1]))
    member[rows] = rank[group]
    length[rows] = size[rows] * np.sign(np.einsum("ij,ij->i", U, normals[member[rows]]))
    return normals, member, length


def canonical(
    X: Array, c: Array, leak: float, tol: float = PATTERN_TOL, reduce: bool = True
) -> Canonical:
    """The canonical form of G_c for samples X, pull c and leak."""
    n, d = X.shape
    scale = float(np.abs(c) @ np.linalg.norm(X, axis=1))
    used = c != 0.0
    normals, member, signed = hyperplanes(np.where(used[:, None], X, 0.0), tol)
    m = 0.5 * (1.0 + leak) * (c @ X)
    weight = 0.5 * (1.0 - leak) * c * np.abs(signed)
    on = member >= 0
    kappa, mass = np.zeros(len(normals)), np.zeros(len(normals))
    np.add.at(kappa, member[on], weight[on])
    np.add.at(mass, member[on], np.abs(weight[on]))
    keep = np.abs(kappa) > 1e-13 * mass
    error = float(np.abs(kappa[~keep]).sum()) + 8 * EPS * (n + d) * scale
    error += float(
        np.abs(c[on]) @ np.linalg.norm(X[on] - signed[on, None] * normals[member[on]], axis=1)
    )
    new = np.where(keep, np.cumsum(keep) - 1, -1)
    member = np.where(on, new[member], -1) if len(normals) else member
    N, kappa = normals[keep], kappa[keep]
    unit = unit_of(scale)
    size = float(np.linalg.norm(m / unit))  # the square of a tiny m is no float
    if size <= 1e-14 * max(n, 1) * (scale / unit):  # cancelled up to rounding
        error += unit * size
        m = np.zeros(d)
    basis = np.eye(d)
    if reduce:
        rows = N if not m.any() else np.vstack([N, m / unit / size])
        basis = row_space(rows, tol)
        if len(basis) == d:
            basis = np.eye(d)
        else:
            outside = np.linalg.norm(N - N @ basis.T @ basis, axis=1)
            error += float(np.abs(kappa) @ outside + np.linalg.norm(m - basis.T @ (basis @ m)))
            N, m = N @ basis.T, basis @ m
            N = N / np.linalg.norm(N, axis=1, keepdims=True)
    return Canonical(m, np.ascontiguousarray(N), kappa, basis, member, scale, tol, error)


def row_space(rows: Array, tol: float) -> Array:
    """Orthonormal basis (r, d) of the span of unit rows (H, d)."""
    if len(rows) == 0:
        return np.zeros((0, rows.shape[1]))
    gram = rows.T @ rows if len(rows) > 4 * rows.shape[1] else None
    if gram is not None and np.linalg.eigvalsh(gram)[0] > 1e-6 * len(rows):
        return np.eye(rows.shape[1])
    if len(rows) > 2 * rows.shape[1]:
        rows = np.asarray(np.linalg.qr(rows, mode="r"))  # the same singular values, right vectors
    _, sizes, Vt = np.linalg.svd(rows, full_matrices=False)
    return Vt[: int(np.sum(sizes > tol * sizes[0]))]


def orthogonal(basis: Array) -> Array:
    """A unit vector orthogonal to the orthonormal rows of basis (r, d), r < d."""
    return np.asarray(np.linalg.svd(basis, full_matrices=True)[2][-1])
