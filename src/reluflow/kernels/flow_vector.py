"""One vector z = (w, a): products, norm, and exp(M t) z."""

import numpy as np
from numba import njit

from reluflow.kernels.inner import inner


@inner
def dot(X, k, z):
    """<x_k, w>, over as many entries as x_k has."""
    s = 0.0
    for e in range(X.shape[1]):
        s += X[k, e] * z[e]
    return s


@inner
def norm(D):
    """|D|."""
    s = 0.0
    for e in range(D.size):
        s += D[e] * D[e]
    return np.sqrt(s)


@njit(cache=True)
def normalise(z):
    """Scale z to unit norm; returns the log of its norm (0 for a zero vector)."""
    size = norm(z)
    if 1e-140 < size < 1e140:
        for e in range(z.size):
            z[e] /= size
        return np.log(size)
    top = 0.0  # squares may have left the floats
    for e in range(z.size):
        top = max(top, abs(z[e]))
    if top == 0.0 or not np.isfinite(top):
        return 0.0
    for e in range(z.size):
        z[e] /= top
    size = norm(z)
    for e in range(z.size):
        z[e] /= size
    return np.log(top) + np.log(size)


@inner
def turn_one(z, unit, ch, sh):
    """exp(M t) z for the force rate * unit, ch = cosh(rate t) and sh = sinh(rate t); in place."""
    d = unit.size
    p, a = 0.0, z[d]
    for e in range(d):
        p += z[e] * unit[e]
    change = (ch - 1.0) * p + sh * a
    for e in range(d):
        z[e] += change * unit[e]
    z[d] = ch * a + sh * p
