"""Active neurons on the faces they are on: outputs, gradient and Hessian of the loss there."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array, Sides
from reluflow.landscape.multioutput import cone_matrix
from reluflow.problem import Problem
from reluflow.problem.losses import output_bends


def face_basis(problem: Problem, U: Sides) -> Array:
    """Orthonormal columns of the space in which a neuron on the face U moves."""
    on = U == 0
    if not on.any():
        return np.eye(problem.d)
    _, s, Vt = np.linalg.svd(problem.X[on])
    rank = int(np.sum(s > 1e-10 * s[0]))
    return np.asarray(Vt[rank:].T)


def stepped(W: Array, A: Array, bases: list[Array], step: Array) -> tuple[Array, Array]:
    """Weights after a step in the coordinates of the faces."""
    W, A, at = W.copy(), A.copy(), 0
    for j, N in enumerate(bases):
        W[j] += N @ step[at : at + N.shape[1]]
        at += N.shape[1]
        A[j] += step[at : at + A.shape[1]]
        at += A.shape[1]
    return W, A


def face_outputs(problem: Problem, W: Array, A: Array, U: Sides) -> Array:
    """f (n, K) with the slopes of given sides."""
    slope = np.where(U > 0, 1.0, np.where(U < 0, problem.leak, 0.0)).T
    return np.asarray((slope * (problem.X @ W.T)) @ A)


def newton_terms(
    problem: Problem, W: Array, A: Array, U: Sides, bases: list[Array]
) -> tuple[Array, Array]:
    """Minus the gradient and the Hessian of L in the coordinates of the faces."""
    X, K = problem.X, problem.K
    slope = np.where(U > 0, 1.0, np.where(U < 0, problem.leak, 0.0)).T  # (n, k)
    phi = slope * (X @ W.T)
    f = phi @ A
    C = problem.pull_at(f)
    bends = problem.weight * output_bends(problem.loss, f, problem.y)
    blocks, g = [], []
    for j, N in enumerate(bases):
        Xj = slope[:, j, None] * (X @ N)
        inner = Xj[:, None, :] * A[j][None, :, None]  # df_k / dy_j, (n, K, dim)
        outer = phi[:, j, None, None] * np.eye(K)[None]
        blocks.append(np.concatenate([inner, outer], axis=2))
        g += [Xj.T @ (C @ A[j]), C.T @ phi[:, j]]
    J = np.concatenate(blocks, axis=2)
    H = np.einsum("kcp,kce,keq->pq", J, bends, J, optimize=True)
    at = 0
    for j, N in enumerate(bases):
        M = (slope[:, j, None] * (X @ N)).T @ C
        w, a = slice(at, at + N.shape[1]), slice(at + N.shape[1], at + N.shape[1] + K)
        H[w, a] -= M
        H[a, w] -= M.T
        at = a.stop
    return np.concatenate(g), 0.5 * (H + H.T)


def on_sides(problem: Problem, W: Array, U: Sides) -> bool:
    """Whether neurons are on the sides they are said to be on."""
    S = W @ problem.X.T
    size = 1e-9 * np.linalg.norm(W, axis=1)[:, None] * problem.norms
    return bool(((-size < S * U) | (U == 0)).all())


def holds(problem: Problem, W: Array, A: Array, U: Sides, C: Array) -> bool:
    """Whether slopes in [leak, 1] hold every neuron on the kinks it slides on, nearly."""
    for u, a in zip(U, A, strict=True):
        on = np.flatnonzero(u == 0)
        if not on.size:
            continue
        drive = C[on] @ a
        r = -np.linalg.lstsq(problem.X[on].T, cone_matrix(problem, C, u) @ a, rcond=None)[0]
        tol = 1e-6 * np.abs(C @ a).max(initial=1e-300)
        low, high = np.minimum(drive, problem.leak * drive), np.maximum(drive, problem.leak * drive)
        if not ((r >= low - tol) & (r <= high + tol)).all():
            return False
    return True
