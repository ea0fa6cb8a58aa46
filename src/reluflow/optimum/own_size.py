r"""Each sample and each neuron at its own size: when a pull counts as balanced.

The pull c_k of a sample comes from the difference of a label and an output, so it is known up to a
share of the size :math:`h_k` of these two, whatever the sizes of the other samples. A condition
that is linear in the pulls, :math:`A^T c = 0`, holds up to the share

.. math:: \eta = \max_k |\delta_k| / h_k, \qquad \delta_k / h_k = -(\Pi (c / h))_k,

:math:`\Pi` the orthogonal projection on the range of :math:`\mathrm{diag}(h) A`: changing every
pull by at most :math:`\eta h_k` fulfils it exactly, and the change :math:`\delta` is the least in
the sum of squares of :math:`\delta_k / h_k`. Rescaling a sample and its label leaves :math:`\eta`
as it is, and so does any rotation of the samples.
"""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.problem import Problem

SAME = 1e-13
"""Directions of samples that differ by less are one direction; so for ranks, row by row."""

EPS = float(np.finfo(np.float64).eps)
ROUNDING = 16.0 * EPS  # of an output, over the sum of the sizes of its terms
SQUARE_UNDERFLOWS = 1e-140  # beside 1: products of two such numbers are near the smallest float
BLOCK = 1 << 22  # inner products <w_j, x_k> held at once


def on_range(A: Array, g: Array, sizes: Array | None = None) -> Array:
    """Orthogonal projection of g (n,) on the range of A (n, p), whose rows may differ in size.

    sizes (n,) are those of the rows, or of the terms they are differences of. Householder
    reflections with rows sorted by size and columns pivoted err by rounding relative to each row
    (Cox and Higham, BIT 38, 1998); what is left of a row counts as zero below `SAME` times its
    own size.
    """
    top = np.abs(A).max(axis=1, initial=0.0) if sizes is None else sizes
    order = np.argsort(-top, kind="stable")
    R, top, out = A[order].astype(np.float64), top[order], np.asarray(g, dtype=float)[order]
    reflections: list[tuple[int, Array, float]] = []
    for i in range(min(R.shape)):
        left = R[i:, i:]
        left[np.abs(left).max(axis=1) <= SAME * top[i:]] = 0.0
        scale = np.abs(left).max()
        if scale == 0.0:
            break
        pivot = int(np.argmax(np.linalg.norm(left / scale, axis=0)))
        R[:, [i, i + pivot]] = R[:, [i + pivot, i]]
        v = R[i:, i] / scale
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        factor = 2.0 / float(v @ v)
        R[i:, i:] -= np.outer(factor * v, v @ R[i:, i:])
        out[i:] -= factor * v * float(v @ out[i:])
        reflections.append((i, v, factor))
    out[len(reflections) :] = 0.0
    for i, v, factor in reversed(reflections):
        out[i:] -= factor * v * float(v @ out[i:])
    projected = np.empty_like(out)
    projected[order] = out
    return projected


def sizes(problem: Problem, f: Array) -> Array:
    """|y_k| + |f_k| (n,); a label 0 has no size of its own and takes the smallest other one's."""
    return label_sizes(problem.y) + np.abs(f)


def label_sizes(y: Array) -> Array:
    """|y_k| (n,), for a label 0 that of the smallest other one; 0 if all labels are."""
    size = np.abs(y)
    return np.where(size > 0.0, size, size[size > 0.0].min(initial=np.inf) if size.any() else 0.0)


def heights(problem: Problem, net: Network, f: Array, c: Array, unit: float, tol: float) -> Array:
    """Size h_k (n,) of each sample's pull, in units of ``unit``.

    Square losses: the curvature times `sizes`, and so much more that ``tol`` times h_k covers the
    rounding of f_k. Margin losses: the pull itself.
    """
    if problem.loss.margin:
        return np.abs(c)
    size = sizes(problem, f) + ROUNDING / tol * terms(problem, net)
    return np.asarray(problem.weight * problem.loss.curvature * size / unit)


def terms(problem: Problem, net: Network) -> Array:
    """sum_j |a_j| |w_j| |x_k| over the neurons active on sample k (n,): what its output rounds."""
    lengths = problem.norms
    total = np.zeros(problem.n)
    with np.errstate(over="ignore"):
        products = np.exp(net.log_norms + net.log_outer)
    block = max(1, BLOCK // problem.n)
    for start in range(0, net.m, block):
        part = slice(start, start + block)
        active = net.directions[part] @ problem.X.T > 0.0
        if problem.leak > 0.0:
            active[:] = True
        live = active.any(axis=1)  # a dead neuron of any size adds nothing
        total += products[part][live] @ active[live]
    return np.asarray(total * lengths)


def without_underflow(c: Array) -> Array:
    """c (n,) with 0 for entries whose products with each other are no floats beside the largest.

    What they add to a sum of pulls is far below its rounding.
    """
    return np.where(np.abs(c) < SQUARE_UNDERFLOWS * np.abs(c).max(initial=0.0), 0.0, c)


def shares(c: Array, h: Array) -> Array:
    """c_k / h_k (n,), 0 where both vanish."""
    return np.divide(c, h, out=np.zeros_like(c), where=h > 0.0)


def correction(A: Array, c: Array, h: Array) -> Array:
    """delta_k / h_k (n,): the least change of the pulls, in shares, with A^T (c + delta) = 0."""
    return -on_range(h[:, None] * A, shares(c, h))
