"""Neurons under a constant pull, in closed form between kinks."""

import numpy as np
from numba import njit

from reluflow.kernels.flow_arrival import arrive
from reluflow.kernels.flow_events import empty_log, flush
from reluflow.kernels.flow_face import face_force
from reluflow.kernels.flow_vector import dot, norm, normalise
from reluflow.kernels.inner import inner


@inner
def advance(z, D, rate, t):
    """exp(M t) z for |D| = rate, scaled to unit norm; returns the log of the factor taken out."""
    d = D.size
    p = np.sum(z[:d] * D) / rate
    up, down = 0.5 * (p + z[d]), 0.5 * (p - z[d])
    rest = z[:d] - (p / rate) * D
    grow = rate * t
    top = np.log(norm(rest) + 1e-320)
    top = max(top, np.log(abs(up) + 1e-320) + grow, np.log(abs(down) + 1e-320) - grow)
    up = np.sign(up) * np.exp(np.log(abs(up) + 1e-320) + grow - top)
    down = np.sign(down) * np.exp(np.log(abs(down) + 1e-320) - grow - top)
    z[:d] = rest * np.exp(-top) + (up + down) / rate * D
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
def leap(data, z, u, c, H, start, log, policy):
    """Move a neuron for time H under a constant pull, kinks included; returns its log growth."""
    n, d = data.X.shape
    D, tau = np.empty(d), np.empty(n)
    grown, t = 0.0, 0.0
    for _ in range(100 * (n + 10)):
        face_force(data, u, c, D, tau)
        rate = norm(D)
        if rate == 0.0:
            return grown
        p = np.sum(z[:d] * D) / rate
        up, down = 0.5 * (p + z[d]), 0.5 * (p - z[d])
        best, hit, faces = (H - t) * rate, -2, False
        for k in range(n):
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
        grown += advance(z, D, rate, best / rate)
        if hit == -2:
            return grown
        t += best / rate
        arrive(data, u, z, c, hit, start + t, log, policy)
    return grown


@njit(cache=True)
def leap_all(data, U, members, held, c, H, start, policy, V, events):
    """Leap every neuron that is not held; V (m, n) receives the patterns."""
    gid, Z, ls = members.gid, members.Z, members.ls
    log = empty_log(U.shape[1])
    for j in range(gid.size):
        V[j] = U[gid[j]]
        if not held[gid[j]]:
            log[0, 0] = 0
            ls[j] += leap(data, Z[j], V[j], c, H, start, log, policy)
            flush(log, j, events)
