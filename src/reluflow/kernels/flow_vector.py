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
    return np.sqrt(np.sum(D * D))


@njit(cache=True)
def normalise(z):
    """Scale z to unit norm; returns the log of its norm (0 for a zero vector)."""
    top = np.max(np.abs(z))
    if top == 0.0:
        return 0.0
    z /= top
    size = norm(z)
    z /= size
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
