"""Where a fast phase ends: critical points of the active neurons, or far out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow.arrays import Array, Sides
from reluflow.landscape.multioutput import cone_matrix
from reluflow.prediction.multioutput.phase import Phase
from reluflow.problem import Problem
from reluflow.problem.losses import output_bends

FADED = 1e-4  # of the largest pull at first: less is taken to fade away there
AT_REST = 1e-11  # gradient at a critical point, in units of sum_k |c_k||x_k|


class Rest(NamedTuple):
    """A critical point of the active neurons."""

    phase: Phase
    residual: float
    relaxation: float


def critical_point(phase: Phase) -> Rest | None:
    """The minimum near the active neurons, on the faces they are on, None if there is none.

    Newton's method on the gradient in (w_j, a_j), w_j within the hyperplanes slid on; flat
    directions (w c, a / c of one neuron, exchanges between neurons of a cone) are left alone.
    """
    problem, k = phase.problem, phase.n_active
    unit = problem.total_pull
    bases = [_face_basis(problem, phase.U[j]) for j in range(k)]
    size = np.exp(phase.log[:k])[:, None]
    W, A = size * phase.V[:k], size * phase.B[:k]
    start = float(problem.value(phase.outputs()))
    for _ in range(40):
        g, H = _newton_terms(problem, W, A, phase.U[:k], bases)
        scale = unit * max(float(np.linalg.norm(np.hstack([W, A]))), 1e-300)
        if not np.isfinite(g).all():
            return None
        if np.linalg.norm(g) <= AT_REST * scale:
            break
        values, vectors = np.linalg.eigh(H)
        used = np.abs(values) > 1e-9 * np.abs(values).max()
        step = vectors[:, used] @ ((vectors[:, used].T @ g) / values[used])
        if np.linalg.norm(step) > 0.5 * np.linalg.norm(np.hstack([W, A])):
            return None
        W, A = _stepped(W, A, bases, step)
    else:
        return None
    spectrum = np.linalg.eigvalsh(H)
    if spectrum[0] < -1e-7 * np.abs(spectrum).max() or not _on_sides(problem, W, phase.U[:k]):
        return None
    if not _holds(
        problem, W, A, phase.U[:k], problem.pull_at(_outputs(problem, W, A, phase.U[:k]))
    ):
        return None
    norms = np.sqrt(np.linalg.norm(W, axis=1) * np.linalg.norm(A, axis=1))
    if not (norms > 1e-8).all():
        return None
    V = W / np.linalg.norm(W, axis=1, keepdims=True)
    B = A / np.linalg.norm(A, axis=1, keepdims=True)
    new = Phase(problem, V, B, phase.U[:k], np.log(norms), k)
    if float(problem.value(new.outputs())) > start * (1.0 + 1e-9) + 1e-300:
        return None
    positive = spectrum[spectrum > 1e-9 * spectrum.max(initial=1e-300)]
    slowest = 1.0 / positive.min() if positive.size else 0.0
    return Rest(new, float(np.linalg.norm(g)) / scale, slowest)


def nearly_at_rest(phase: Phase) -> Rest:
    """Active neurons as they are, with the gradient they have, relative as at a critical point."""
    problem, k = phase.problem, phase.n_active
    size = np.exp(phase.log[:k])[:, None]
    W, A = size * phase.V[:k], size * phase.B[:k]
    C, total = phase.pull(), 0.0
    for w, a, u in zip(W, A, phase.U[:k], strict=True):
        N, M = _face_basis(problem, u), cone_matrix(problem, C, u)
        total += float(np.sum((N.T @ (M @ a)) ** 2) + np.sum((M.T @ w) ** 2))
    scale = problem.total_pull * max(float(np.linalg.norm(np.hstack([W, A]))), 1e-300)
    return Rest(phase, float(np.sqrt(total)) / scale, 0.0)


def runaway(phase: Phase, rate: float) -> tuple[Phase, Array] | None:
    """Where active neurons go if their loss has no minimum nearby: a state far out, and C there.

    Newton's method with the moduli of the eigenvalues, downhill on the faces they are on; each step
    adds about 1 to the margins that grow. None where sides do not last, or the loss has a minimum;
    a neuron that still grows at more than ``rate`` is waited for.
    """
    problem, k = phase.problem, phase.n_active
    loudest = np.abs(problem.pull).max()
    bases = [_face_basis(problem, phase.U[j]) for j in range(k)]
    size = np.exp(phase.log[:k])[:, None]
    W, A = size * phase.V[:k], size * phase.B[:k]
    loss = float(problem.value(phase.outputs()))
    for _ in range(100):
        g, H = _newton_terms(problem, W, A, phase.U[:k], bases)
        values, vectors = np.linalg.eigh(H)
        least = 1e-8 * np.abs(values).max()
        step = vectors @ ((vectors.T @ g) / np.maximum(np.abs(values), least))
        step *= min(1.0, 0.5 * np.linalg.norm(np.hstack([W, A])) / np.linalg.norm(step))
        fall, gain = float(g @ step), -np.inf
        while gain < 0.1 * fall and np.linalg.norm(step) > 1e-12:
            W1, A1 = _stepped(W, A, bases, step)
            after = float(problem.value(_outputs(problem, W1, A1, phase.U[:k])))
            gain, step, fall = loss - after, 0.5 * step, 0.5 * fall
        if gain <= 0.0:
            return None
        W, A, loss = W1, A1, after
        if not _on_sides(problem, W, phase.U[:k]):
            return None
        C = problem.pull_at(_outputs(problem, W, A, phase.U[:k]))
        small = np.abs(C) < FADED * loudest
        still = gain < 0.1 * FADED * loss or not (~small).any()
        still = still and values[0] > -rate
        if still and small.any() and _holds(problem, W, A, phase.U[:k], C):
            norms = np.sqrt(np.linalg.norm(W, axis=1) * np.linalg.norm(A, axis=1))
            V = W / np.linalg.norm(W, axis=1, keepdims=True)
            B = A / np.linalg.norm(A, axis=1, keepdims=True)
            return Phase(problem, V, B, phase.U[:k], np.log(norms), k), np.where(small, 0.0, C)
        if still:
            return None
    return None


def _stepped(W: Array, A: Array, bases: list[Array], step: Array) -> tuple[Array, Array]:
    """Weights after a step in the coordinates of the faces."""
    W, A, at = W.copy(), A.copy(), 0
    for j, N in enumerate(bases):
        W[j] += N @ step[at : at + N.shape[1]]
        at += N.shape[1]
        A[j] += step[at : at + A.shape[1]]
        at += A.shape[1]
    return W, A


def _outputs(problem: Problem, W: Array, A: Array, U: Sides) -> Array:
    """f (n, K) with the slopes of given sides."""
    slope = np.where(U > 0, 1.0, np.where(U < 0, problem.leak, 0.0)).T
    return np.asarray((slope * (problem.X @ W.T)) @ A)


def _holds(problem: Problem, W: Array, A: Array, U: Sides, C: Array) -> bool:
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


def _face_basis(problem: Problem, U: Sides) -> Array:
    """Orthonormal columns of the space in which a neuron on the face U moves."""
    on = U == 0
    if not on.any():
        return np.eye(problem.d)
    _, s, Vt = np.linalg.svd(problem.X[on])
    rank = int(np.sum(s > 1e-10 * s[0]))
    return np.asarray(Vt[rank:].T)


def _newton_terms(
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


def _on_sides(problem: Problem, W: Array, U: Sides) -> bool:
    """Whether neurons are on the sides they are said to be on."""
    S = W @ problem.X.T
    size = 1e-9 * np.linalg.norm(W, axis=1)[:, None] * problem.norms
    return bool(((-size < S * U) | (U == 0)).all())
