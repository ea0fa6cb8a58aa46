r"""What networks of any width can reach: a linear space of outputs, and one neuron's best gain.

Over all widths the outputs (f(x_1), ..., f(x_n)) fill the linear space

.. math:: F = \{ \langle b, x_k \rangle + |x_k| t_{h(k)} : b \in R^d, t \in R^H \},

a linear function plus one free number for each line h through the origin that holds samples. Its
orthogonal complement are the pulls with G = 0. So for a convex loss a network is a global minimum
over all widths exactly when its pull is orthogonal to F, and a square loss exceeds that minimum by
the part of the residuals inside F.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from reluflow.arrays import Array
from reluflow.landscape.bound import MaxG, max_G
from reluflow.optimum.own_size import SAME, on_range, shares, without_underflow
from reluflow.optimum.second_order import Kinks
from reluflow.problem import Problem

LARGE = 5_000  # samples times features above which the largest G is not searched exhaustively
NODES = 20_000


def reachable_part(problem: Problem, kinks: Kinks, r: Array) -> Array:
    """Orthogonal projection of r (n,) on the outputs F of networks of any width."""
    return _on_outputs(problem, kinks, r, np.ones(problem.n))


def reachable_share(problem: Problem, kinks: Kinks, c: Array, h: Array) -> float:
    """The largest share of its size h_k by which a pull must change for G_c to vanish."""
    return float(np.abs(_on_outputs(problem, kinks, shares(c, h), h)).max())


def _on_outputs(problem: Problem, kinks: Kinks, g: Array, h: Array) -> Array:
    """Projection of g on diag(h) F: the vectors (h_k |x_k|) of the lines first, then the rest."""
    on = np.flatnonzero((kinks.member >= 0) & (h > 0.0))
    lines, length = kinks.member[on], np.linalg.norm(problem.X[on], axis=1)
    size = h[on] * length
    top = np.zeros(len(kinks.normals))
    np.maximum.at(top, lines, size)
    weight = size / np.where(top > 0.0, top, 1.0)[lines]  # of its line's largest: no overflow
    mass = np.bincount(lines, weights=weight**2, minlength=len(top))
    mass[mass == 0.0] = 1.0  # lines whose samples have no size

    def mean(v: Array) -> Array:
        """Mean of v over each line with the squares of the sizes as weights, at the samples."""
        return (np.bincount(lines, weights=weight**2 * v, minlength=len(top)) / mass)[lines]

    # on the line's vector l the share of g is l <l, g> / |l|^2
    along = weight * (np.bincount(lines, weights=weight * g[on], minlength=len(top)) / mass)[lines]
    unit = problem.X[on] / length[:, None]
    rest = size[:, None] * np.stack([u - mean(u) for u in unit.T], axis=1)
    out = np.zeros(problem.n)
    out[on] = along + on_range(rest, g[on] - along, size)
    return out


def line_search(problem: Problem, f: Array, g: Array) -> tuple[float, float]:
    """Size rho > 0 and decrease of the loss for outputs f + rho g, g a direction of descent.

    Exact for square losses. For margin losses the best rho may be infinite: a finite one is
    returned, with the decrease it gives.
    """
    loss = problem.loss
    slope = float(problem.pull_at(f) @ g)
    if slope <= 0.0:
        return 0.0, 0.0
    if not loss.margin:
        curvature = problem.weight * loss.curvature * float(g @ g)
        return slope / curvature, 0.5 * slope * slope / curvature
    start = float(problem.value(f))
    top = 1.0 / float(np.abs(g).max())
    for _ in range(60):
        if float(problem.pull_at(f + top * g) @ g) <= 0.0 or top * float(np.abs(g).max()) > 1e3:
            break
        top *= 2.0
    found = minimize_scalar(
        lambda rho: float(problem.log_value(f + rho * g)),
        bounds=(0.0, top),
        method="bounded",
        options={"xatol": 1e-9 * top},
    )
    rho = float(found.x)
    return rho, start - float(problem.value(f + rho * g))


def best_neuron(
    problem: Problem, f: Array, c: Array, vectors: Array
) -> tuple[Array, int, float, float]:
    """Of the unit rows of vectors, the neuron (vector, sign, size, gain) that gains most."""
    best = (vectors[0], 1, 0.0, 0.0)
    for v in vectors:
        q = problem.X @ v
        q = np.maximum(q, problem.leak * q)
        sign = 1 if float(c @ q) >= 0.0 else -1
        size, gain = line_search(problem, f, sign * q)
        if gain > best[3]:
            best = (v, sign, size, gain)
    return best


def largest_escape(
    problem: Problem, c: Array, reachable: Array, budget: int | None, at_minimum: bool
) -> MaxG:
    """The largest |G_c|; reachable is the part of c that networks reach, which bounds it.

    |G(v)| = |<c, phi(X v)>| <= |reachable part| |X v|: enough at a minimum, and the only bound for
    large data, where the value is that of a plain ascent.
    """
    top = float(np.linalg.norm(reachable) * np.linalg.norm(problem.X, 2))
    if at_minimum:
        return MaxG(0.0, np.eye(1, problem.d)[0], 1, top, True, "none", 0)
    if budget is not None or problem.d <= 2 or problem.n * problem.d <= LARGE:
        return max_G(
            problem, without_underflow(c), budget=NODES if budget is None else budget, tol=SAME
        )
    drift = c @ problem.X
    W = np.vstack([drift, -drift, np.random.default_rng(0).normal(size=(14, problem.d))])
    W /= np.maximum(np.linalg.norm(W, axis=1, keepdims=True), 1e-300)
    signs = np.resize([1.0, -1.0], len(W))[:, None]
    best, vector, sign = 0.0, W[0], 1
    for step in range(300):
        p = W @ problem.X.T
        gradient = signs * ((np.where(p > 0.0, 1.0, problem.leak) * c) @ problem.X)
        values = np.sum(W * gradient, axis=1)
        if values.max() > best:
            j = int(values.argmax())
            best, vector, sign = float(values[j]), W[j], int(signs[j, 0])
        W = W + (4.0 / (step + 2.0)) * gradient / np.linalg.norm(gradient, axis=1, keepdims=True)
        W /= np.linalg.norm(W, axis=1, keepdims=True)
    return MaxG(best, vector, sign, top, False, "ascent", 0)
