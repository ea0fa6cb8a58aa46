r"""The pull of every sample on the network, by kind of loss.

.. math:: c_k = -\mathrm{weight}_k \, \frac{d\ell}{df}(f_k, y_k)

with, up to the factor of the loss, y - f for the square, y/(1 + e^{yf}) for the logistic and
y e^{-yf} for the exponential loss. It is all that a neuron sees of the others: w' = a D(c).
"""

import math
from typing import NamedTuple

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.codes import LOGISTIC, SQUARE

# e^r on |r| <= log(2)/2 by its Taylor polynomial of degree 13: error below 5e-18
_C2, _C3, _C4, _C5, _C6, _C7 = (1.0 / math.factorial(i) for i in range(2, 8))
_C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(i) for i in range(8, 14))
_ROUNDER = 1.5 * 2.0**52
# log 2 in two parts, the first with zeros at its end: k times it is exact for every exponent k
_LOG2_HIGH, _LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


class Targets(NamedTuple):
    """What is minimised: labels, how the loss weighs them, and the weight decay."""

    y: np.ndarray  # (n,)
    weight: np.ndarray  # (n,) 1/n for the mean, times the number of equal samples
    kind: int  # of `codes.LossKind`
    factor: float  # of the loss
    mean_batch: bool  # whether the pulls of a mini-batch are divided by its length
    decay: float = 0.0  # lambda of the penalty (lambda/2) |theta|^2, which no pull knows of


@njit(cache=True, fastmath={"contract"})
def exponentials(x, work):
    """x <- e^x in place, for |x| <= 708, within 2 units in the last place; work (n,).

    x = k log 2 + r: adding 1.5 * 2^52 rounds to the whole number k and leaves it in the lowest
    bits, from where it goes into the exponent bits of 2^k. Written without a branch or a call of
    the library's exp, so that the loops vectorise: a step of descent takes n exponentials.
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
def all_pulls(targets, f, c, work):
    """Write the pulls of all samples at outputs f into c (n,); work (n,) is scratch."""
    y, weight, factor, n = targets.y, targets.weight, targets.factor, f.size
    if targets.kind == SQUARE:
        for k in range(n):
            c[k] = weight[k] * factor * (y[k] - f[k])
        return
    logistic = targets.kind == LOGISTIC
    sign = 1.0 if logistic else -1.0
    for k in range(n):  # e^708 is the last power of e that is a float
        c[k] = min(max(sign * y[k] * f[k], -708.0), 708.0)
    exponentials(c, work)
    for k in range(n):
        slope = 1.0 / (1.0 + c[k]) if logistic else c[k]
        c[k] = weight[k] * factor * y[k] * slope


@njit(cache=True)
def pulls(targets, f, batch, c, work):
    """Write the pulls into c (n,): all samples, or those listed in a non-empty ``batch``.

    A batch may repeat samples and may be padded at its end with -1.
    """
    all_pulls(targets, f, c, work)
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
        c[k] *= work[k] / length if targets.mean_batch else work[k]


@njit(cache=True)
def exploded(f, limit):
    """Whether some output is not a number or larger than ``limit``."""
    bad = False
    for k in range(f.size):  # to the end: without an early exit the loop vectorises
        if not abs(f[k]) <= limit:
            bad = True
    return bad
