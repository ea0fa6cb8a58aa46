"""One vector z = (w, a): its unit vector, and exp(M t) z."""

import numpy as np
from numba import njit

from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import norm


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
