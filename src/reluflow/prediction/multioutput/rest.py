"""Where a fast phase ends: critical points of the active neurons, or far out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow.arrays import Array
from reluflow.landscape.multioutput import cone_matrix
from reluflow.prediction.multioutput.face import (
    face_basis,
    face_outputs,
    holds,
    newton_terms,
    on_sides,
    stepped,
)
from reluflow.prediction.multioutput.phase import Phase
from reluflow.problem import Problem

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
    bases = [face_basis(problem, phase.U[j]) for j in range(k)]
    size = np.exp(phase.log[:k])[:, None]
    W, A = size * phase.V[:k], size * phase.B[:k]
    start = float(problem.value(phase.outputs()))
    for _ in range(40):
        g, H = newton_terms(problem, W, A, phase.U[:k], bases)
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
        W, A = stepped(W, A, bases, step)
    else:
        return None
    spectrum = np.linalg.eigvalsh(H)
    if spectrum[0] < -1e-7 * np.abs(spectrum).max() or not on_sides(problem, W, phase.U[:k]):
        return None
    if not holds(
        problem, W, A, phase.U[:k], problem.pull_at(face_outputs(problem, W, A, phase.U[:k]))
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
        N, M = face_basis(problem, u), cone_matrix(problem, C, u)
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
    bases = [face_basis(problem, phase.U[j]) for j in range(k)]
    size = np.exp(phase.log[:k])[:, None]
    W, A = size * phase.V[:k], size * phase.B[:k]
    loss = float(problem.value(phase.outputs()))
    for _ in range(100):
        g, H = newton_terms(problem, W, A, phase.U[:k], bases)
        values, vectors = np.linalg.eigh(H)
        least = 1e-8 * np.abs(values).max()
        step = vectors @ ((vectors.T @ g) / np.maximum(np.abs(values), least))
        step *= min(1.0, 0.5 * np.linalg.norm(np.hstack([W, A])) / np.linalg.norm(step))
        fall, gain = float(g @ step), -np.inf
        while gain < 0.1 * fall and np.linalg.norm(step) > 1e-12:
            W1, A1 = stepped(W, A, bases, step)
            after = float(problem.value(face_outputs(problem, W1, A1, phase.U[:k])))
            gain, step, fall = loss - after, 0.5 * step, 0.5 * fall
        if gain <= 0.0:
            return None
        W, A, loss = W1, A1, after
        if not on_sides(problem, W, phase.U[:k]):
            return None
        C = problem.pull_at(face_outputs(problem, W, A, phase.U[:k]))
        small = fade(problem, C) == 0.0
        still = gain < 0.1 * FADED * loss or not (~small).any()
        still = still and values[0] > -rate
        if still and small.any() and holds(problem, W, A, phase.U[:k], C):
            norms = np.sqrt(np.linalg.norm(W, axis=1) * np.linalg.norm(A, axis=1))
            V = W / np.linalg.norm(W, axis=1, keepdims=True)
            B = A / np.linalg.norm(A, axis=1, keepdims=True)
            return Phase(problem, V, B, phase.U[:k], np.log(norms), k), fade(problem, C)
        if still:
            return None
    return None


def fade(problem: Problem, C: Array) -> Array:
    """A pull far out without what fades away there."""
    return np.where(np.abs(C) < FADED * np.abs(problem.pull).max(), 0.0, C)
