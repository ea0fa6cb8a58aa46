"""Directions of large data with several outputs by plain ascent: estimated."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.landscape.multioutput import VectorExtremals, uphill, value
from reluflow.problem import Problem

_SOME = 2_000  # samples of the first climb
_STARTS, _STEPS = 48, 100  # neurons of it, and steps
_MOST = 12  # ends of it that climb on with all samples
_ROUNDS = 60
_STEADY = 1e-9  # relative rise of G_C below which a direction has arrived
_SAME = 0.99  # cosine from which two ends count as one direction


def estimated_directions(
    problem: Problem, rng: np.random.Generator | int | None = 0
) -> VectorExtremals:
    """Ends of the ascent of G_C from random directions, those close together merged.

    A climb with some of the samples comes first, and its ends go on with all of them:
    v becomes M b / |M b| with M of the cone v is in and b = M^T v / |M^T v|, a step of the power
    method, as long as that raises G_C. An end off all kinks is then exact; those in a kink are
    approximate. Nothing is verified, and ``exact`` is False. ``basin_fractions`` are the shares of
    the starts that end there.
    """
    rng = np.random.default_rng(rng)
    rows = np.sort(rng.choice(problem.n, min(_SOME, problem.n), replace=False))
    some = problem.replace(X=problem.X[rows], y=problem.y[rows], bias=None)
    W = rng.normal(size=(_STARTS, problem.d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    W = uphill(some, some.pull, W, _STEPS)[0]
    W, shares = _merge(W, value(some, W), np.full(_STARTS, 1.0 / _STARTS))
    V, B, values = _power(problem, W[:_MOST])
    order = np.argsort(-values, kind="stable")
    V, shares = _merge(V[order], values[order], shares[:_MOST][order])
    V, B, values = _power(problem, V, 0)
    k = len(V)
    return VectorExtremals(
        vectors=V,
        values=values,
        kinds=("max",) * k,
        patterns=np.sign(V @ problem.X.T).astype(np.int8),
        faces=((),) * k,
        degenerate=np.zeros(k, dtype=bool),
        indices=np.full(k, -1, dtype=np.intp),
        basin_fractions=shares[:, None],
        basins=f"shares of {_STARTS} neurons, estimated",
        zeros="none",
        exact=False,
        method="ascent, estimated",
        outer=B,
    )


def _merge(W: Array, values: Array, shares: Array) -> tuple[Array, Array]:
    """Rows of positive value, by falling value, without those near a better one; shares add up."""
    kept: list[int] = []
    total: list[float] = []
    for i in np.argsort(-values, kind="stable"):
        if not values[i] > 0.0:
            continue
        near = [k for k, j in enumerate(kept) if W[i] @ W[j] >= _SAME]
        if near:
            total[near[0]] += float(shares[i])
        else:
            kept.append(int(i))
            total.append(float(shares[i]))
    return W[kept].reshape(-1, W.shape[1]), np.array(total)


def _power(problem: Problem, V: Array, rounds: int = _ROUNDS) -> tuple[Array, Array, Array]:
    """Rows V after steps of the power method that raise G_C, with outer directions and values."""
    X, C, leak = problem.X, problem.pull, problem.leak
    V, going = V.copy(), np.arange(len(V))
    B, best = np.zeros((len(V), C.shape[1])), np.full(len(V), -np.inf)
    trial = V.copy()
    for turn in range(rounds + 1):
        S = trial @ X.T
        slopes = np.where(S > 0.0, 1.0, leak)
        S *= slopes
        pulled = S @ C
        size = np.linalg.norm(pulled, axis=1)
        better = size > best[going] * (1.0 + _STEADY)
        going, slopes, pulled, size = going[better], slopes[better], pulled[better], size[better]
        V[going], best[going] = trial[better], size
        B[going] = pulled / np.maximum(size, 1e-300)[:, None]
        if turn == rounds or not going.size:
            break
        slopes *= B[going] @ C.T
        trial = slopes @ X
        trial /= np.maximum(np.linalg.norm(trial, axis=1, keepdims=True), 1e-300)
    return V, B, best
