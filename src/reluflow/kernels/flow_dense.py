"""Dense output y(x) = F_0 + x (F_1 + (1 - x)(F_2 + x (F_3 + ...))), x in [0, 1], of a step."""

import numpy as np
from numba import njit

from reluflow.kernels.inner import inner

# largest values of the basis functions
REACH = np.array([1.0, 1.0, 0.25, 4.0 / 27, 1.0 / 16, 0.03456, 1.0 / 64, 0.00830])


@njit(cache=True)
def coefficients(z, v, K, table, h, F):
    """Fill F (8, M) from the start z (M,), the end v (M,) and the stages K (16, M) of a step."""
    for e in range(z.size):
        delta = v[e] - z[e]
        F[0, e] = z[e]
        F[1, e] = delta
        F[2, e] = h * K[0, e] - delta
        F[3, e] = 2.0 * delta - h * (K[12, e] + K[0, e])
        for q in range(4):
            s = 0.0
            for p in range(16):
                s += table[q, p] * K[p, e]
            F[4 + q, e] = h * s


@inner
def basis(theta, phi):
    """1, x, x(1-x), x^2(1-x), ...: multipliers of F at x = theta."""
    phi[0] = 1.0
    value = 1.0
    for i in range(7):
        value *= theta if i % 2 == 0 else 1.0 - theta
        phi[i + 1] = value


@inner
def point(F, x, z):
    """z at x from the coefficients F (8, z.size)."""
    for e in range(z.size):
        value = 0.0
        for i in range(7, 0, -1):
            value += F[i, e]
            value *= x if i % 2 == 1 else 1.0 - x
        z[e] = value + F[0, e]


@inner
def polynomial(h, x):
    """Dense output with scalar coefficients h at x."""
    value = 0.0
    for i in range(7, 0, -1):
        value += h[i]
        value *= x if i % 2 == 1 else 1.0 - x
    return value + h[0]


@inner
def reach_of(h, first):
    """Bound on |sum_{i >= first} h_i basis_i| over the step."""
    total = 0.0
    for i in range(first, 8):
        total += REACH[i] * abs(h[i])
    return total
