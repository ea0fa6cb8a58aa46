"""Extremal directions when a network has several outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.landscape.alignment import D
from reluflow.landscape.extremal import extremal_vectors
from reluflow.landscape.multioutput import uphill
from reluflow.problem import Problem

_SAME = 0.999  # cosine of two ends that count as one direction


@dataclass(frozen=True, eq=False)
class ExtremalDirections:
    """Directions to which small neurons turn, by falling rate.

    Attributes
    ----------
    vectors : array, shape (k, d)
        Unit inner directions w.
    outer : array, shape (k, C)
        Unit outer directions that go with them.
    rates : array, shape (k,)
        Growth rate R(w) of a small balanced neuron there.
    residuals : array, shape (k,)
        Distance of D / |D| from w: 0 where w is critical.
    exact : bool
        Whether these are all; otherwise they were found by ascent from many starts.
    """

    vectors: Array
    outer: Array
    rates: Array
    residuals: Array
    exact: bool

    def __len__(self) -> int:
        return len(self.vectors)

    def nearest(self, directions: ArrayLike) -> Array:
        """Largest cosine of each row with one of the directions; 0 for a zero row."""
        return np.asarray(
            (_unit(np.asarray(directions, dtype=float)) @ self.vectors.T).max(axis=-1)
        )


def extremal_directions(
    X: ArrayLike,
    pulls: ArrayLike,
    *,
    leak: float = 0.0,
    starts: ArrayLike | int = 64,
    iterations: int = 400,
    rng: np.random.Generator | int | None = 0,
) -> ExtremalDirections:
    r"""Directions to which small neurons with several outputs turn.

    A neuron (w, a) with outer weights :math:`a \in R^C` and pulls :math:`c_k \in R^C` of the
    samples on the outputs follows, while small,

    .. math:: \dot w = \sum_k \langle a, c_k\rangle \phi'(\langle w, x_k\rangle) x_k, \qquad
              \dot a = g(w) = \sum_k c_k\, \phi(\langle w, x_k\rangle),

    so that a turns to g(w) and w climbs :math:`R(w) = |g(w)|` on the sphere. Its maxima are the
    extremal directions, with growth rate R. With one output R = \|G\| and they are the maxima and
    minima of :func:`reluflow.extremal_vectors`, which is used then.

    Parameters
    ----------
    X : array, shape (n, d)
        Samples: inputs of the layer.
    pulls : array, shape (n, C)
        Minus the gradient of the loss with respect to the outputs, for each sample.
    leak : float
        Slope of the activation on negative inputs.
    starts : array, shape (s, d), or int
        Directions from which to climb, or how many to draw.
    iterations : int
        Steps of the ascent.
    rng : Generator or int, optional
        Source of the starts.

    Returns
    -------
    ExtremalDirections
        With several outputs found by ascent, hence maybe not all of them.
    """
    X, P = np.asarray(X, dtype=float), np.asarray(pulls, dtype=float)
    if X.ndim != 2 or P.ndim != 2 or len(X) != len(P):
        raise ReluflowError(
            f"X has shape {X.shape} and pulls {P.shape}: expected (n, d) and (n, C)"
        )
    generator = np.random.default_rng(rng)
    if isinstance(starts, int | np.integer):
        W = generator.normal(size=(int(starts), X.shape[1]))
    else:
        W = np.array(starts, dtype=float)
    if P.shape[1] == 1:
        return _single(X, P, leak, max(len(W), 16), generator)
    problem = Problem(X, np.ones(len(X)), leak=leak)
    W, _ = uphill(problem, P, _unit(W), iterations)
    g = np.maximum(W @ X.T, leak * (W @ X.T)) @ P
    rates = np.linalg.norm(g, axis=1)
    order = np.argsort(-rates)
    kept: list[int] = []
    for j in order:
        if rates[j] > 0 and all(W[j] @ W[i] < _SAME for i in kept):
            kept.append(int(j))
    outer = g[kept] / rates[kept, None]
    grads = np.array([D(problem, W[j], pull=P @ a) for j, a in zip(kept, outer, strict=True)])
    residuals = np.linalg.norm(_unit(grads.reshape(len(kept), -1)) - W[kept], axis=1)
    return ExtremalDirections(W[kept], outer, rates[kept], residuals, False)


def _unit(W: Array) -> Array:
    size = np.linalg.norm(W, axis=-1, keepdims=True)
    unit: Array = np.divide(W, size, out=np.zeros_like(W), where=size > 0)
    return unit


def _single(
    X: Array, P: Array, leak: float, starts: int, rng: np.random.Generator
) -> ExtremalDirections:
    problem = Problem(X, np.ones(len(X)), leak=leak)
    found = extremal_vectors(problem, P[:, 0], starts=starts, basin_points=0, rng=rng)
    sign = np.sign(found.values)
    keep = [i for i, kind in enumerate(found.kinds) if kind == ("max" if sign[i] > 0 else "min")]
    keep = [i for i in keep if sign[i] != 0]
    vectors, values = found.vectors[keep], found.values[keep]
    residuals = np.array(
        [
            np.linalg.norm(_unit(np.sign(v) * D(problem, w, P[:, 0])[None])[0] - w)
            for w, v in zip(vectors, values, strict=True)
        ]
    )
    return ExtremalDirections(
        vectors, np.sign(values)[:, None], np.abs(values), residuals, found.exact
    )
