"""Multipliers and slopes for which a network comes nearest to the KKT conditions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array, Mask
from reluflow.problem import Problem

Fit = tuple[float, Array, NDArray[np.intp], Array]
"""Residual, multipliers (n,), kinks (K, 2) as neuron and sample, and their slopes (K,)."""


def fit_multipliers(
    problem: Problem, W: Array, a: Array, q_min: float, active: Mask, kink_tol: float
) -> Fit:
    """Residual, multipliers (n,), kinks (K, 2) and their slopes (K,) for an active set."""
    scale = 1.0 / np.sqrt(q_min)
    W, a = scale * W, scale * a
    used = (np.linalg.norm(W, axis=1) > 0.0) | (a != 0.0)
    samples, neurons = np.flatnonzero(active), np.flatnonzero(used)
    W, a, X, y = W[used], a[used], problem.X[samples], problem.y[samples]
    S = X @ W.T
    sizes = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(W, axis=1)
    flat = np.abs(S) <= kink_tol * sizes
    slopes = np.where((S > 0.0) & ~flat, 1.0, problem.leak)
    inner = (y[:, None] * slopes * a)[:, :, None] * X[:, None, :]
    outer = y[:, None] * np.where(flat, 0.0, slopes * S)
    g = np.concatenate([inner.reshape(len(X), -1), outer], axis=1)
    theta = np.concatenate([W.ravel(), a])
    flat &= a != 0.0
    lift = (1.0 - problem.leak) * y[:, None] * a  # e_jk = lift x_k in the block of neuron j

    def generator(i: int, up: Mask) -> Array:
        """Gradient of sample i with slope 1 at the kinks marked."""
        out = g[i].copy()
        for j in np.flatnonzero(up):
            out[j * problem.d : (j + 1) * problem.d] += lift[i, j] * X[i]
        return out

    def steepest(i: int, r: Array) -> Mask:
        """Kinks of sample i whose slope 1 agrees better with the residual r."""
        return flat[i] & (lift[i] * (r[: W.size].reshape(W.shape) @ X[i]) > 0.0)

    weights, owners, marks, r = _project(theta, generator, steepest, flat)
    at, of = np.nonzero(flat)
    multipliers = np.zeros(problem.n)
    np.add.at(multipliers, samples[owners], weights)
    share = np.zeros(flat.shape)
    np.add.at(share, owners, weights[:, None] * marks)
    total = multipliers[samples[at]]
    with np.errstate(divide="ignore", invalid="ignore"):
        free = problem.leak + (1.0 - problem.leak) * share[at, of] / total
    kinks = np.stack([neurons[of], samples[at]], axis=1).astype(np.intp)
    residual = float(np.linalg.norm(r) / np.linalg.norm(theta))
    decided = total > 1e-13 * multipliers.max(initial=0.0)
    return residual, multipliers, kinks, np.where(decided, free, np.nan)


def _project(
    theta: Array,
    generator: Callable[[int, Mask], Array],
    steepest: Callable[[int, Array], Mask],
    flat: Mask,
) -> tuple[Array, NDArray[np.intp], Array, Array]:
    """Nearest point to theta of the cone of all generators, found with few of them.

    Generators are one per sample and choice of slopes at its kinks. Nonnegative least squares on
    those known so far; then for each sample the one that agrees most with the residual, while it
    agrees at all. Returns weights, sample and marked kinks of each generator, and the residual.
    """
    from scipy.optimize import nnls

    known: dict[tuple[int, bytes], int] = {}
    columns: list[Array] = []
    marks: list[Mask] = []
    r, weights = theta, np.zeros(0)
    while True:
        new = 0
        for i in range(len(flat)):
            up = steepest(i, r)
            if (i, up.tobytes()) in known:
                continue
            column = generator(i, up)
            if column @ r > 1e-15 * np.linalg.norm(column) * np.linalg.norm(theta):
                known[i, up.tobytes()] = len(columns)
                columns.append(column)
                marks.append(up)
                new += 1
        if not new:
            break
        A = np.array(columns).T
        sizes = np.linalg.norm(A, axis=0)  # a small sample's gradient is small, not negligible
        Q, R = np.linalg.qr(A / sizes)
        weights, _ = nnls(R, Q.T @ theta, maxiter=100 * len(columns))
        weights = weights / sizes
        r = theta - A @ weights
    owners = np.array([i for i, _ in known], dtype=np.intp)
    marked = np.array(marks, dtype=float).reshape(len(owners), flat.shape[1])
    return weights, owners, marked, r
