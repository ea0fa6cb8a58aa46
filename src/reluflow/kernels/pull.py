"""The pull c_k = -weight * dl/df(f_k, y_k) of every sample, by kind of loss."""

import math

from numba import njit


@njit(cache=True, inline="always")
def one_pull(kind, factor, f, y):
    """-dl/df for one sample; kind 0 square, 1 logistic, 2 exponential (problem.losses)."""
    if kind == 0:
        return factor * (y - f)
    if kind == 1:
        return factor * y / (1.0 + math.exp(min(y * f, 709.0)))
    return factor * y * math.exp(-y * f)


@njit(cache=True)
def pulls(kind, factor, f, y, weight, batch, mean_batch, c):
    """Write the pulls into c (n,): all samples, or those listed in a non-empty ``batch``.

    ``weight`` (n,) multiplies each sample. A batch may repeat samples and may be padded at its
    end with -1; ``mean_batch`` divides by its length.
    """
    if batch.size == 0:
        for k in range(f.size):
            c[k] = weight[k] * one_pull(kind, factor, f[k], y[k])
        return
    for k in range(c.size):
        c[k] = 0.0
    length = 0
    for k in batch:
        if k >= 0:
            c[k] += weight[k] * one_pull(kind, factor, f[k], y[k])
            length += 1
    if mean_batch:
        for k in range(c.size):
            c[k] /= length


@njit(cache=True)
def exploded(f, limit):
    """Whether some output is not a number or larger than ``limit``."""
    bad = False
    for k in range(f.size):
        if not abs(f[k]) <= limit:
            bad = True
    return bad
