r"""From solver accuracy to rounding: Newton's method on the optimality conditions.

Once it is known which neurons a cone program uses, on which hyperplanes each lies and which samples
bind, the optimum of :math:`\min \sum_j \|v_j\|` subject to :math:`F_k = y_k` (k binding) solves

.. math:: \Pi_j \Big(s_j \sum_k \phi'_{jk} c_k x_k\Big) = \frac{v_j}{\|v_j\|}, \qquad
          \sum_j s_j \phi'_{jk} \langle v_j, x_k \rangle = y_k,

with :math:`\Pi_j` the projection off the hyperplanes of neuron j. What is known is guessed from the
solver's point; the result is judged by the caller, by the value and the bound it gives.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reluflow.arrays import Array
from reluflow.optimum.program import Point, Task

GUESSES = ((1e-5, 1e-5), (1e-3, 1e-3), (1e-7, 1e-7), (1e-9, 1e-9))
"""Relative sizes below which a product <v, x> and a weight |v| count as zero, tried in turn."""

STEPS = 12


def merged(v: Array, s: Array, smallest: float, close: float) -> tuple[Array, Array]:
    """Neurons of the same sign and direction (within `close`) as one; small ones left out."""
    size = np.linalg.norm(v, axis=1)
    vectors: list[Array] = []
    signs: list[float] = []
    for j in np.argsort(-size, kind="stable"):
        if size[j] <= smallest * size.sum():
            break
        for i, w in enumerate(vectors):
            apart = v[j] / size[j] - w / np.linalg.norm(w)
            if signs[i] == s[j] and np.abs(apart).max() <= close:
                vectors[i] = w + v[j]
                break
        else:
            vectors.append(v[j])
            signs.append(float(s[j]))
    return np.array(vectors), np.array(signs)


def polished(task: Task, point: Point) -> Iterator[Point]:
    """Sharper points near `point`, one for each guess at which Newton's method converges."""
    for kink, smallest in GUESSES:
        v, s = merged(point.v, point.s, smallest, kink)
        found = _newton(task, v / point.t, s, point.c / point.t, kink) if len(v) else None
        if found is not None:
            yield found


def _binding(task: Task, v: Array, s: Array, c: Array) -> np.ndarray:
    """Samples whose multiplier outweighs their slack; all of them for interpolation."""
    if not task.margin:
        return np.ones(len(c), dtype=bool)
    y = task.problem.y
    slack = np.sign(y) * task.outputs(v, s) / np.abs(y) - 1.0
    share = np.abs(c * y)
    return share / share.max() > slack


def _newton(task: Task, v: Array, s: Array, c: Array, kink: float) -> Point | None:
    """Newton's method from v (B, r), c (n,) with F_k = y_k in mind; None when it fails."""
    X, y = task.problem.X, task.problem.y
    on = _binding(task, v, s, c)
    if not on.any():
        return None
    sizes = np.linalg.norm(v, axis=1)
    flat = np.abs(v @ task.normals.T) <= kink * sizes[:, None]
    slopes = s[:, None] * task.slopes(task.patterns(v))[:, on]
    bases = [_off(task.normals[zero]) for zero in flat]
    if any(len(basis) == 0 for basis in bases):
        return None
    # coordinates of v_j in its face, and how they enter the outputs
    z = [basis @ w for basis, w in zip(bases, v, strict=True)]
    M = np.vstack([basis @ (X[on].T * slope) for basis, slope in zip(bases, slopes, strict=True)])
    ends = np.cumsum([len(basis) for basis in bases])
    parts = [slice(end - len(basis), end) for end, basis in zip(ends, bases, strict=True)]
    x, c_on, best = np.concatenate(z), c[on], np.inf
    targets = task.sizes[on]
    sizes_of = np.append(np.ones(len(x)), targets)
    for _ in range(STEPS):
        unit = np.concatenate([x[p] / np.linalg.norm(x[p]) for p in parts])
        error = np.concatenate([M @ c_on - unit, M.T @ x - y[on]])
        worst = float(np.abs(error / sizes_of).max())
        if not worst < best:
            break
        best, kept = worst, (x, c_on)
        curvature = np.zeros((len(x), len(x)))
        for p in parts:
            size = np.linalg.norm(x[p])
            curvature[p, p] = (np.eye(p.stop - p.start) - np.outer(unit[p], unit[p])) / size
        J = np.block([[-curvature, M], [M.T, np.zeros((on.sum(), on.sum()))]])
        # symmetric scaling by the sizes of neurons and labels, which may differ much
        lengths = np.concatenate([np.full(p.stop - p.start, np.linalg.norm(x[p])) for p in parts])
        scale = np.sqrt(np.append(lengths, 1.0 / targets))
        step = scale * np.linalg.lstsq(scale[:, None] * J * scale, -scale * error, rcond=1e-13)[0]
        x, c_on = x + step[: len(x)], c_on + step[len(x) :]
        if not all(np.linalg.norm(x[p]) > 0.0 for p in parts):
            return None
    if not best < 1e-9:
        return None
    x, c_on = kept
    full = np.zeros_like(c)
    full[on] = c_on
    if task.margin:
        full = np.maximum(full * np.sign(y), 0.0) * np.sign(y)
    vectors = np.array([x[p] @ basis for p, basis in zip(parts, bases, strict=True)])
    total, scale = float(np.linalg.norm(vectors, axis=1).sum()), float(full @ y)
    if not (np.isfinite(total) and scale > 0.0):
        return None
    return Point(vectors / total, s, full / scale, 1.0 / total)


def _off(normals: Array) -> Array:
    """Orthonormal rows that span the complement of the rows given."""
    if len(normals) == 0:
        return np.eye(normals.shape[1])
    _, sizes, Vt = np.linalg.svd(normals)
    return Vt[int(np.sum(sizes > 1e-10)) :]


def vertex(task: Task, point: Point) -> Point | None:
    """The point with as few of its directions as needed, and the least total weight.

    The linear program over the weights has an optimum with at most as many neurons as binding
    samples; solving for these weights alone meets the labels to rounding.
    """
    from scipy.optimize import linprog

    v, s = merged(point.v, point.s, 1e-12, 1e-12)
    unit = v / np.linalg.norm(v, axis=1, keepdims=True)
    P = task.problem.X @ unit.T
    F = np.maximum(P, task.problem.leak * P) * s / point.t
    y = task.problem.y
    if task.margin:
        F, y = np.sign(y)[:, None] * F / np.abs(y)[:, None], np.ones_like(y)
        fit = linprog(np.ones(len(s)), A_ub=-F, b_ub=-y)
    else:
        F, y = F / task.sizes[:, None], y / task.sizes
        fit = linprog(np.ones(len(s)), A_eq=F, b_eq=y)
    if fit.status != 0:
        return None
    used = (np.abs(F).max(axis=0) * fit.x) > 1e-12
    on = fit.ineqlin.marginals < 0.0 if task.margin else np.ones(len(y), dtype=bool)
    weights = np.linalg.lstsq(F[on][:, used], y[on], rcond=None)[0]
    if not (weights > 0.0).all():
        return None
    total = float(weights.sum())
    return Point(unit[used] * weights[:, None] / total, s[used], point.c, point.t / total)
