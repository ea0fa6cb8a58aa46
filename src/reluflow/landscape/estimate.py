"""Directions of large data by plain ascent: estimated, where nothing exact could end."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.landscape.alignment import G
from reluflow.landscape.extremal import ExtremalVectors
from reluflow.network import Network
from reluflow.problem import Problem

ENTRIES = 300_000  # entries of X beyond which directions are estimated
_WORK = 6e8  # starts times entries of X
_MOST, _LEAST = 64, 8  # starts
_ROUNDS, _POLISHED = 100, 50
_STEADY = 1e-6  # relative rise of G below which a direction has arrived
_SAME = 0.99  # cosine from which two ends count as one direction


def estimated_directions(problem: Problem, net: Network) -> ExtremalVectors:
    """Ends of the ascent of s_j G from neurons of the start, those close together merged.

    The step is w + h D/|D|, normalised; h doubles while G rises and falls to a quarter otherwise.
    Ends in a kink are approximate, others to rounding; nothing is verified, ``exact`` is False.
    ``basin_fractions`` are the shares of the starts, of positive and of negative neurons, that
    end there; what is missing to 1 ends where G does not pull (dead neurons).
    """
    starts = int(np.clip(_WORK / problem.X.size, _LEAST, _MOST))
    sign = np.sign(net.a[:starts])
    W = _climb_samples(problem, net.directions[:starts], sign)
    value = sign * G(problem, W)
    near = W @ W.T >= _SAME
    kept: list[int] = []
    home = np.full(len(W), -1)
    for i in np.argsort(-value, kind="stable"):
        if value[i] <= 0.0:
            continue
        same = [k for k, j in enumerate(kept) if near[i, j] and sign[i] == sign[j]]
        home[i] = same[0] if same else len(kept)
        if not same:
            kept.append(int(i))
    shares = np.zeros((len(kept), 2))
    for column, s in enumerate((1, -1)):
        total = max(int((sign == s).sum()), 1)
        for k in range(len(kept)):
            shares[k, column] = np.sum((home == k) & (sign == s)) / total
    vectors = _polish(problem, W[kept].reshape(-1, problem.d), sign[kept])
    value[kept] = sign[kept] * G(problem, vectors)
    return ExtremalVectors(
        vectors=vectors,
        values=sign[kept] * value[kept],
        kinds=tuple("max" if sign[i] > 0 else "min" for i in kept),
        patterns=np.sign(vectors @ problem.X.T).astype(np.int8),
        faces=tuple(() for _ in kept),
        degenerate=np.zeros(len(kept), dtype=bool),
        indices=np.full(len(kept), -1, dtype=np.intp),
        basin_fractions=shares,
        basins=f"shares of {len(W)} neurons, estimated",
        zeros="found",
        exact=False,
        method="ascent, estimated",
    )


def _polish(problem: Problem, W: Array, sign: Array) -> Array:
    """Rows W replaced by s D/|D| while that raises s G: an end off all kinks is then exact."""
    value = sign * G(problem, W)
    for _ in range(_POLISHED):
        slopes = np.where(W @ problem.X.T > 0.0, 1.0, problem.leak)
        D = sign[:, None] * ((slopes * problem.pull) @ problem.X)
        V = D / np.maximum(np.linalg.norm(D, axis=1, keepdims=True), 1e-300)
        new = sign * G(problem, V)
        better = new > value
        if not better.any():
            break
        W, value = np.where(better[:, None], V, W), np.maximum(new, value)
    return W


def _climb_samples(problem: Problem, W: Array, sign: Array) -> Array:
    """Unit rows W moved up sign * G until it hardly rises, all at once: two products a round."""
    X, c, leak = problem.X, problem.pull, problem.leak
    best, height = W.copy(), np.full(len(W), -np.inf)
    gradient, step, trial = np.zeros_like(W), np.ones(len(W)), W.copy()
    going = np.arange(len(W))
    for _ in range(_ROUNDS):
        P = trial[going] @ X.T
        value = sign[going] * (np.maximum(P, leak * P) @ c)
        rise = value - height[going]
        better = rise > 0.0
        up = going[better]
        best[up], height[up] = trial[up], value[better]
        D = sign[up, None] * ((np.where(P[better] > 0.0, 1.0, leak) * c) @ X)
        size = np.linalg.norm(D, axis=1, keepdims=True)
        gradient[up] = D / np.maximum(size, 1e-300)
        step[going] *= np.where(better, 2.0, 0.25)
        arrived = better & (rise <= _STEADY * np.abs(value)) | (step[going] < 1e-3)
        arrived |= ~gradient[going].any(axis=1)
        going = going[~arrived]
        if not going.size:
            break
        trial[going] = best[going] + step[going, None] * gradient[going]
        trial[going] /= np.linalg.norm(trial[going], axis=1, keepdims=True)
    return best
