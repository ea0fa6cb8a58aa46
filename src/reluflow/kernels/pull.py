"""The pull c_k = -weight * dl/df(f_k, y_k) of every sample, by kind of loss."""

import math

import numpy as np
from numba import njit

from reluflow.kernels.codes import LOGISTIC, SQUARE

# e^r on |r| <= log(2)/2 by its Taylor polynomial of degree 13: error below 5e-18
_C2, _C3, _C4, _C5, _C6, _C7 = (1.0 / math.factorial(i) for i in range(2, 8))
_C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(i) for i in range(8, 14))
_ROUNDER = 1.5 * 2.0**52
_LOG2_HIGH, _LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@njit(cache=True, fastmath={"contract"})
def exponentials(x, work):
    """x <- e^x in place, for |x| <= 708, within 2 units in the last place; work (n,).

    x = k log 2 + r: adding 1.5 * 2^52 rounds to the whole number k and leaves it in the lowest
    bits, from where it goes into the exponent bits of 2^k. The loops vectorise.
    """
    for i in range(x.size):
        shifted = x[i] * 1.4426950408889634 + _ROUNDER
        k = shifted - _ROUNDER
        r = (x[i] - k * _LOG2_HIGH) - k * _LOG2_LOW
        r2 = r * r
        r4 = r2 * r2
        low = (1.0 + r) + r2 * (_C2 + _C3 * r)
        mid = (_C4 + _C5 * r) + r2 * (_C6 + _C7 * r)
        high = (_C8 + _C9 * r) + r2 * (_C10 + _C11 * r)
        work[i] = shifted
        x[i] = low + r4 * (mid + r4 * (high + r4 * (_C12 + _C13 * r)))
    bits = work.view(np.int64)
    for i in range(x.size):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(x.size):  # apart: bits and work share memory, which would stop vectorising
        x[i] *= work[i]


@njit(cache=True)
def all_pulls(kind, factor, f, y, weight, c, work):
    """c_k = weight_k * (-dl/df) for all samples, by `codes.LossKind`."""
    n = f.size
    if kind == SQUARE:
        for k in range(n):
            c[k] = weight[k] * factor * (y[k] - f[k])
        return
    sign = 1.0 if kind == LOGISTIC else -1.0
    for k in range(n):
        c[k] = min(max(sign * y[k] * f[k], -708.0), 708.0)
    exponentials(c, work)
    for k in range(n):
        slope = 1.0 / (1.0 + c[k]) if kind == LOGISTIC else c[k]
        c[k] = weight[k] * factor * y[k] * slope


@njit(cache=True)
def pulls(kind, factor, f, y, weight, batch, mean_batch, c, work):
    """Write the pulls into c (n,): all samples, or those listed in a non-empty ``batch``.

    ``weight`` (n,) multiplies each sample; ``work`` (n,) is scratch. A batch may repeat samples
    and may be padded at its end with -1; ``mean_batch`` divides by its length.
    """
    all_pulls(kind, factor, f, y, weight, c, work)
    if batch.size == 0:
        return
    for k in range(f.size):
        work[k] = 0.0
    length = 0
    for k in batch:
        if k >= 0:
            work[k] += 1.0
            length += 1
    for k in range(f.size):
        c[k] *= work[k] / length if mean_batch else work[k]


@njit(cache=True)
def exploded(f, limit):
    """Whether some output is not a number or larger than ``limit``."""
    bad = False
    for k in range(f.size):
        if not abs(f[k]) <= limit:
            bad = True
    return bad
