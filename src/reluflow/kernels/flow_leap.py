r"""Neurons under a constant pull, in closed form between kinks.

With D of size rate and p = <w, D> / rate, the neuron is a part of w across D that stays, and

.. math:: up\, e^{rate\, t}, \quad down\, e^{-rate\, t}, \qquad up, down = (p \pm a) / 2,

of which p(t) is the sum and a(t) the difference. So with E = exp(rate t), B = <x_k, D> / rate and
A = <w, x_k> - p B at the start of a piece

.. math:: \langle w(t), x_k \rangle = A + B (up\, E + down / E),

and kinks are roots of a quadratic in E. Leaps may grow a neuron by e^1000, so E is known by its
logarithm alone, and so are the parts of the state reached.

The same pieces are computed in `early_path` from other formulas, on purpose: predictions are made
of those, runs of these, and their agreement is evidence only as long as neither calls the other.
"""

import numpy as np
from numba import njit

from reluflow.kernels.flow_arrival import arrive, empty_log, flush
from reluflow.kernels.flow_face import face_force
from reluflow.kernels.flow_path import normalise
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import along, dot, norm


@inner
def log_size(x):
    """log |x|, -inf at 0: a part that is absent stays absent, however much it would grow."""
    return np.log(abs(x)) if x != 0.0 else -np.inf


@inner
def times_exp(x, log_factor):
    """x exp(log_factor), 0 for 0, by halves: the factor alone may be no float."""
    return x * np.exp(0.5 * log_factor) * np.exp(0.5 * log_factor) if x != 0.0 else 0.0


@inner
def advance(z, D, rate, t):
    """exp(M t) z for |D| = rate, scaled to unit norm; returns the log of the factor taken out.

    Its three parts, across D, growing as exp(rate t) and shrinking as exp(-rate t), may differ by
    any factor, and each of them may be 0.
    """
    d = D.size
    p = along(z, D) / rate
    up, down = 0.5 * (p + z[d]), 0.5 * (p - z[d])
    grow = rate * t
    top = max(log_size(up) + grow, log_size(down) - grow)  # log of the largest part reached
    for e in range(d):
        z[e] -= p * (D[e] / rate)
        top = max(top, log_size(z[e]))
    if top == -np.inf:  # the zero neuron
        return 0.0
    up = np.sign(up) * np.exp(log_size(up) + grow - top)
    down = np.sign(down) * np.exp(log_size(down) - grow - top)
    for e in range(d):
        z[e] = times_exp(z[e], -top) + (up + down) * (D[e] / rate)
    z[d] = up - down
    return top + normalise(z)


@inner
def first_root(A, B, up, down, side):
    """Least log E >= 0 with side * (A + B (up E + down / E)) falling through 0; inf if none.

    The roots are E = q / (B up) and B down / q, without cancellation: q = -(A +- sqrt(disc)) / 2
    takes the sign of A. E itself may be no float. The slope in log E is
    q - (B up)(B down) / q at the first, its negative at the second.
    """
    best = np.inf
    grows, shrinks = B * up, B * down
    disc = A * A - 4.0 * grows * shrinks
    if disc < 0.0:  # never reaches 0
        return best
    q = -0.5 * (A + (np.sqrt(disc) if A >= 0.0 else -np.sqrt(disc)))
    if q == 0.0:
        return best
    slope = q - grows * shrinks / q
    for i in range(2):
        top, low, way = (q, grows, slope) if i == 0 else (shrinks, q, -slope)
        if top == 0.0 or low == 0.0 or (top > 0.0) != (low > 0.0):
            continue
        when = np.log(abs(top)) - np.log(abs(low))
        # a root a little in the past is the kink the neuron stands on: it falls off it now
        if when > -1e-12 and side * way < 0.0:
            best = min(best, max(when, 0.0))
    return best


@inner
def next_kink(data, u, z, D, rate, end):
    """First kink, as growth rate * t of a neuron under a constant force D: (growth, sample).

    The sample is -1 where the outer weight passes through 0 on a face, -2 at the ``end``.
    """
    d = D.size
    p = along(z, D) / rate
    up, down = 0.5 * (p + z[d]), 0.5 * (p - z[d])
    best, hit, faces = end, -2, False
    for k in range(u.size):
        if u[k] == 0:
            faces = True
            continue
        B = dot(data.X, k, D) / rate
        if abs(B) <= 4e-15 * data.norms[k]:  # x_k across the force: <w, x_k> stays
            continue
        when = first_root(dot(data.X, k, z) - p * B, B, up, down, u[k])
        if when < best:
            best, hit = when, k
    # a = up E - down / E = 0 on a face: there it turns from attracting into a ridge
    if faces and up * down > 0.0 and down / up > 1.0:
        when = 0.5 * np.log(down / up)
        if 1e-12 < when < best:
            best, hit = when, -1
    return best, hit


@njit(cache=True)
def leap_all(data, U, members, held, c, H, start, policy, V, events):
    """Move every neuron that is not held for time H under a constant pull, kinks included.

    V (m, n) receives the patterns.
    """
    n, d = data.X.shape
    log, D, tau = empty_log(n), np.empty(d), np.empty(n)
    for j in range(members.gid.size):
        g, u, z = members.gid[j], V[j], members.Z[j]
        for k in range(n):
            u[k] = U[g, k]
        if held[g]:
            continue
        log[0, 0] = 0
        grown, t = 0.0, 0.0
        for _ in range(100 * (n + 10)):
            face_force(data, u, c, D, tau)
            rate = norm(D)
            if rate == 0.0:  # nothing pulls: it stays where it is
                break
            growth, hit = next_kink(data, u, z, D, rate, (H - t) * rate)
            grown += advance(z, D, rate, growth / rate)
            if hit == -2:
                break
            t += growth / rate
            arrive(data, u, z, c, hit, start + t, log, policy)
        members.ls[j] += grown
        flush(log, j, events)
