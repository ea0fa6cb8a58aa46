r"""The path of one vector z = (w, a) within a step: the exponential of its frame, dense output.

Under a constant force D = rate * unit the matrix M = [[0, D], [D^T, 0]] turns the plane of
(unit, a) and leaves the rest of w alone: with p = <w, unit> and t the time

.. math:: e^{Mt} (w, a) = (w + [(\cosh - 1) p + \sinh a]\, unit, \; \cosh a + \sinh p),

cosh and sinh taken of rate * t. A step integrates v = exp(-M t) z, which hardly moves where the
pull is nearly constant, and its dense output is that of the order-8 pair of Dormand and Prince
([HNW93]_ II.6),

.. math:: v(x) = F_0 + x (F_1 + (1 - x)(F_2 + x (F_3 + (1 - x)(\dots + x F_7)))),

a polynomial of degree 7 in x in [0, 1], in the basis 1, x, x(1-x), x^2(1-x), x^2(1-x)^2, ...; so
z(x) = exp(M h x) v(x). Each basis function lies between 0 and its largest value REACH_i, so sum_i
REACH_i |F_i| bounds how far a component can move in a step: most neurons are cleared by that bound
and their paths never looked at.
"""

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import norm

# largest values of the basis functions x^i (1-x)^j on [0, 1]: i^i j^j / (i+j)^(i+j)
REACH = np.array([1.0, 1.0, 0.25, 4.0 / 27, 1.0 / 16, 108.0 / 3125, 1.0 / 64, 6912.0 / 823543])


@njit(cache=True)
def normalise(z):
    """Scale z to unit norm; returns the log of its norm (0 for a zero vector)."""
    size = norm(z)
    if 1e-140 < size < 1e140:
        for e in range(z.size):
            z[e] /= size
        return np.log(size)
    top = 0.0  # beyond, squares may have left the floats: take out the largest entry first
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


@njit(cache=True)
def coefficients(z, v, K, table, h, F):
    """Fill F (8, M) from the start z (M,), the end v (M,) and the stages K (16, M) of a step.

    F_0 .. F_3 are the cubic that has the values and velocities of both ends (K[0] at the start,
    K[12] at the end); the ``table`` (4, 16) of the method raises its order to 7.
    """
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
def polynomial(h, x):
    """Dense output with scalar coefficients h (8,) at x, from the inside outwards."""
    value = 0.0
    for i in range(7, 0, -1):
        value += h[i]
        value *= x if i % 2 == 1 else 1.0 - x
    return value + h[0]


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
def point_in_frame(F, unit, grow, x, z):
    """z at x of a path with coefficients F (8, d + 1) in the frame of a force, |D| h = grow."""
    point(F, x, z)
    up = np.exp(grow * x)
    turn_one(z, unit, 0.5 * (up + 1.0 / up), 0.5 * (up - 1.0 / up))


@inner
def reach_of(h, first):
    """Bound on |sum_{i >= first} h_i basis_i| over the step."""
    total = 0.0
    for i in range(first, 8):
        total += REACH[i] * abs(h[i])
    return total
