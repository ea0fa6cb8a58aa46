"""Directions of large data by plain ascent: estimated, where nothing exact could end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluflow.landscape.alignment import G
from reluflow.landscape.result import ExtremalVectors
from reluflow.problem import Problem

Array = NDArray[np.float64]

ENTRIES = 300_000  # entries of X beyond which directions are estimated
_STARTS, _ROUNDS = 16, 300
_SAME = 0.995  # cosine from which two ends count as one direction


def estimated_directions(problem: Problem, seed: int = 0) -> ExtremalVectors:
    """Ends of the ascent of G and -G from random directions, those close together merged.

    The step is w + D/|D|, normalised, halved whenever it does not climb. Ends in a kink are
    approximate; nothing is verified and ``exact`` is False.
    """
    rng = np.random.default_rng(seed)
    rows: list[Array] = []
    for sign in (1, -1):
        W = rng.standard_normal((_STARTS, problem.d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        W = _climb(problem, W, sign)
        value = sign * G(problem, W)
        kept: list[Array] = []
        for i in np.argsort(-value, kind="stable"):
            if value[i] > 0.0 and all(W[i] @ v < _SAME for v in kept):
                kept.append(W[i])
        rows += kept
    vectors = np.array(rows).reshape(-1, problem.d)
    values = G(problem, vectors)
    order = np.argsort(-np.abs(values), kind="stable")
    vectors, values = vectors[order], values[order]
    return ExtremalVectors(
        vectors=vectors,
        values=values,
        kinds=tuple("max" if v > 0 else "min" for v in values),
        patterns=np.sign(vectors @ problem.X.T).astype(np.int8),
        faces=tuple(() for _ in values),
        degenerate=np.zeros(len(values), dtype=bool),
        indices=np.full(len(values), -1, dtype=np.intp),
        basin_fractions=None,
        basins="none",
        zeros="found",
        exact=False,
        method="ascent, estimated",
    )


def _climb(problem: Problem, W: Array, sign: int) -> Array:
    X, c, leak = problem.X, sign * problem.pull, problem.leak
    step, height = np.ones(len(W)), np.full(len(W), -np.inf)
    best = W
    for _ in range(_ROUNDS):
        P = W @ X.T
        value = np.maximum(P, leak * P) @ c
        better = value > height
        best = np.where(better[:, None], W, best)
        step = np.where(better, step, 0.5 * step)
        height = np.maximum(height, value)
        if (step < 1e-4).all():
            break
        P = best @ X.T
        D = (np.where(P > 0.0, 1.0, leak) * c) @ X
        W = best + step[:, None] * D / np.maximum(np.linalg.norm(D, axis=1, keepdims=True), 1e-300)
        W /= np.linalg.norm(W, axis=1, keepdims=True)
    return best
