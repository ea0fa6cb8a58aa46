"""Neurons under a constant pull, in closed form between kinks."""

import numpy as np
from numba import njit

from reluflow.kernels.flow_arrival import arrive
from reluflow.kernels.flow_events import empty_log, flush
from reluflow.kernels.flow_face import face_force
from reluflow.kernels.flow_vector import normalise
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import along, dot, norm


@inner
def advance(z, D, rate, t):
    """exp(M t) z for |D| = rate, scaled to unit norm; returns the log of the factor taken out."""
    d = D.size
    p = along(z, D) / rate
    up, down = 0.5 * (p + z[d]), 0.5 * (p - z[d])
    square = 0.0
    for e in range(d):
        z[e] -= (p / rate) * D[e]
        square += z[e] * z[e]
    grow = rate * t
    top = np.log(np.sqrt(square) + 1e-320)
    top = max(top, np.log(abs(up) + 1e-320) + grow, np.log(abs(down) + 1e-320) - grow)
    up = np.sign(up) * np.exp(np.log(abs(up) + 1e-320) + grow - top)
    down = np.sign(down) * np.exp(np.log(abs(down) + 1e-320) - grow - top)
    for e in range(d):
        z[e] = z[e] * np.exp(-top) + (up + down) / rate * D[e]
    z[d] = up - down
    return top + normalise(z)


@inner
def first_root(A, B, up, down, side):
    """Least log E >= 0 with side * (A + B (up E + down / E)) falling through 0; inf if none."""
    best = np.inf
    disc = A * A - 4.0 * B * B * up * down
    if disc < 0.0:
        return best
    q = -0.5 * (A + (np.sqrt(disc) if A >= 0.0 else -np.sqrt(disc)))
    for i in range(2):
        top, low = (q, B * up) if i == 0 else (B * down, q)
        if low == 0.0 or top / low <= 0.0:
            continue
        E = top / low
        if not np.isfinite(E):
            continue
        when = np.log(E)
        if when > -1e-12 and side * B * (up * E - down / E) < 0.0:
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
        if abs(B) <= 4e-15 * data.norms[k]:
            continue
        when = first_root(dot(data.X, k, z) - p * B, B, up, down, u[k])
        if when < best:
            best, hit = when, k
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
            if rate == 0.0:
                break
            growth, hit = next_kink(data, u, z, D, rate, (H - t) * rate)
            grown += advance(z, D, rate, growth / rate)
            if hit == -2:
                break
            t += growth / rate
            arrive(data, u, z, c, hit, start + t, log, policy)
        members.ls[j] += grown
        flush(log, j, events)
