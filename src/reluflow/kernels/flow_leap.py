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

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.codes import CROSS
from reluflow.kernels.flow_arrival import (
    arrive,
    empty_log,
    flush,
    leads_across,
    note,
    stands_clear,
)
from reluflow.kernels.flow_face import face_force
from reluflow.kernels.flow_path import normalise
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import along, dot, norm

ANEW = 32  # kinks after which products are computed anew
FAINT = 1e-10  # of the total pull: forces below it are computed anew
NEAR = 1e-8  # of |x_i|: a second kink so near is left to `arrive`


@inner
def log_size(x):
    """log |x|, -inf at 0: a part that is absent stays absent, however much it would grow."""
    return np.log(abs(x)) if x != 0.0 else -np.inf


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
    across = 0.0
    for e in range(d):
        z[e] -= p * (D[e] / rate)
        across = max(across, abs(z[e]))
    top = max(top, log_size(across))
    if top == -np.inf:  # the zero neuron
        return 0.0
    half = np.exp(-0.5 * top)  # by halves: the factor alone may be no float
    up = np.sign(up) * np.exp(log_size(up) + grow - top)
    down = np.sign(down) * np.exp(log_size(down) - grow - top)
    for e in range(d):
        z[e] = (z[e] * half * half if z[e] != 0.0 else 0.0) + (up + down) * (D[e] / rate)
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
def next_kink(data, u, z, D, rate, end, Hz, HD):
    """First kink, as growth rate * t of a neuron under a constant force D: (growth, sample).

    ``Hz`` and ``HD`` are the products <w, x_k> and <D, x_k>. The sample is -1 where the outer
    weight passes through 0 on a face, -2 at the ``end``.
    """
    d = D.size
    p = along(z, D) / rate
    up, down = 0.5 * (p + z[d]), 0.5 * (p - z[d])
    best, hit, faces = end, -2, False
    E, per = np.exp(min(best, 700.0)), 1.0 / rate
    shrunk = 1.0 / E
    for k in range(u.size):
        if u[k] == 0:
            faces = True
            continue
        B = HD[k] * per
        if abs(B) <= 4e-15 * data.norms[k]:  # x_k across the force: <w, x_k> stays
            continue
        A, grows, shrinks = Hz[k] - p * B, u[k] * B * up, u[k] * B * down
        if grows >= 0.0:
            if shrinks <= 0.0:  # both parts lead away from the kink
                continue
        elif best < 700.0 and u[k] * A + grows * E + shrinks * shrunk > 0.0:
            continue  # falls through 0 once, after the best so far
        when = first_root(A, B, up, down, u[k])
        if when < best:
            best, hit, E = when, k, np.exp(min(when, 700.0))
            shrunk = 1.0 / E
    # a = up E - down / E = 0 on a face: there it turns from attracting into a ridge
    if faces and up * down > 0.0 and down / up > 1.0:
        when = 0.5 * np.log(down / up)
        if 1e-12 < when < best:
            best, hit = when, -1
    return best, hit


@inner
def advance_products(Hz, HD, rate, before, after, log_factor):
    """<w, x_k> after :func:`advance`: its part across D has shrunk by exp(log_factor).

    ``before`` and ``after`` are p = <w, D> / rate.
    """
    half, per = np.exp(-0.5 * log_factor), 1.0 / rate  # by halves: the factor may be no float
    for k in range(Hz.size):
        B = HD[k] * per
        across = Hz[k] - before * B
        Hz[k] = (across * half * half if across != 0.0 else 0.0) + after * B


@inner
def crosses(data, u, z, c, k, Hz, HD, total):
    """``flow_arrival.goes_through`` from products that are known; ``total`` is sum |c_i||x_i|."""
    size = 0.0
    for e in range(z.size - 1):
        size += z[e] * z[e]
    if u[k] == 0 or size <= 1e-22:
        return False
    norms = data.norms
    for i in range(u.size):
        if u[i] != 0 and abs(Hz[i]) > NEAR * norms[i]:  # as nearly all: a call would copy ``data``
            continue
        if i != k and not stands_clear(data, u, i, k, Hz[i], NEAR):
            return False
    return leads_across(data, u, z, c, k, HD[k], total)


@inner
def products(X, v, out):
    """<x_k, v> of every sample (the first entries of v)."""
    for k in range(out.size):
        out[k] = dot(X, k, v)


class OnTheWay(NamedTuple):
    """Neurons at times within a leap: ascending times (S,), vectors (S, m, d + 1), logs (S, m)."""

    times: np.ndarray
    Z: np.ndarray
    ls: np.ndarray


@inner
def keep_until(kept, first, t, end, z, log, D, rate, j):
    """Keep neuron j, at z at time t, at the times wanted up to ``end``; how many are past then."""
    s = first
    while s < kept.times.size and kept.times[s] <= end:
        for e in range(z.size):
            kept.Z[s, j, e] = z[e]
        kept.ls[s, j] = log
        if rate > 0.0:
            kept.ls[s, j] += advance(kept.Z[s, j], D, rate, kept.times[s] - t)
        s += 1
    return s


@njit(cache=True)
def leap_all(data, gram, U, members, held, c, H, start, policy, V, events, kept):
    """Move every neuron that is not held for time H under a constant pull, kinks included.

    V (m, n) receives the patterns, ``kept`` the neurons at times on the way, ``gram`` is X X^T or
    empty. Returns the time that all neurons have reached: less than H where one has met so many
    kinks that it was left on its way.

    A neuron that crosses a kink changes its force by a multiple of x_k, and so the products
    <D, x_i> by a row of the Gram matrix: between two kinks only those and <w, x_i> are brought up
    to date, and computed anew now and then against rounding.
    """
    n, d = data.X.shape
    log, D, tau, total = empty_log(n), np.empty(d), np.empty(n), 0.0
    Hz, HD, row = np.empty(n), np.empty(n), np.empty(n)
    reached = H
    for k in range(n):
        total += abs(c[k]) * data.norms[k]
    for j in range(members.gid.size):
        g, u, z = members.gid[j], V[j], members.Z[j]
        for k in range(n):
            u[k] = U[g, k]
        if held[g]:
            keep_until(kept, 0, 0.0, H, z, members.ls[j], D, 0.0, j)
            continue
        log[0, 0] = 0
        grown, t, stale, arrived, past = 0.0, 0.0, ANEW, False, 0
        for _ in range(100 * (n + 10)):
            if stale >= ANEW:
                face_force(data, u, c, D, tau)
                products(data.X, D, HD)
                products(data.X, z, Hz)
                stale = 0
            rate = norm(D)
            if rate == 0.0:  # nothing pulls: it stays where it is
                keep_until(kept, past, t, H, z, members.ls[j] + grown, D, 0.0, j)
                arrived = True
                break
            growth, hit = next_kink(data, u, z, D, rate, (H - t) * rate, Hz, HD)
            until = H if hit == -2 else t + growth / rate
            past = keep_until(kept, past, t, until, z, members.ls[j] + grown, D, rate, j)
            before = along(z, D) / rate
            factor = advance(z, D, rate, growth / rate)
            grown += factor
            if hit == -2:
                arrived = True
                break
            t += growth / rate
            advance_products(Hz, HD, rate, before, along(z, D) / rate, factor)
            if hit >= 0 and crosses(data, u, z, c, hit, Hz, HD, total):
                note(log, hit, start + t, CROSS)
                change = -u[hit] * (1.0 - data.leak) * c[hit]
                u[hit] = -u[hit]
                for e in range(d):
                    D[e] += change * data.X[hit, e]
                if gram.size == 0:
                    products(data.X, data.X[hit], row)
                shift = gram[hit] if gram.size > 0 else row
                for i in range(n):
                    HD[i] += change * shift[i]
                # what is left of a force that cancels is rounding: a dead neuron must have none
                stale = ANEW if norm(D) <= FAINT * total else stale + 1
            else:
                arrive(data, u, z, c, hit, start + t, log, policy)
                stale = ANEW
        if not arrived:
            reached = min(reached, t)
        members.ls[j] += grown
        flush(log, j, events)
    return reached
