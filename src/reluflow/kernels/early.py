"""Loops over neurons for the frozen-pull paths of `early_path`."""

import numpy as np
from numba import njit

from reluflow.kernels.early_path import UNKNOWN, UNRESOLVED, run


@njit(cache=True)
def _unit(w, a, out):
    """Write w over the norm of (w, a) into out; returns (a over it, log of it), 0 for a zero."""
    top = abs(a)
    for i in range(w.size):
        top = max(top, abs(w[i]))
    if top == 0.0:
        out[:] = 0.0
        return 0.0, 0.0
    total = (a / top) ** 2
    for i in range(w.size):
        out[i] = w[i] / top
        total += out[i] * out[i]
    norm = np.sqrt(total)
    for i in range(w.size):
        out[i] /= norm
    return a / top / norm, np.log(top) + np.log(norm)


@njit(cache=True)
def _prepare(X, c, leak, hold, floor, most):
    xn = np.sqrt(np.sum(X * X, axis=1))
    data = (X, c, leak, xn, max(np.sum(np.abs(c) * xn), floor), hold)
    return data, (np.empty(most), np.empty(most, np.int64), np.empty(most, np.int8))


@njit(cache=True)
def _wider(x, least):
    out = np.empty(2 * least, x.dtype)
    out[: x.size] = x
    return out


@njit(cache=True)
def align_all(W, a, X, c, leak, hold, value, keep, most):
    """Run every neuron to its end; ``most`` bounds the events of one neuron.

    Returns ends, signs, numbers (growth, offset, time of the cosine, time of the last event),
    limit directions, counts of events by kind, and the events of neuron j (if ``keep``) as rows
    first[j]:first[j+1] of times, samples and kinds.
    """
    m, d = W.shape
    data, events = _prepare(X, c, leak, hold, 0.0, most)
    et, ek, ew = events
    save = (np.empty(0), np.empty((0, d)), np.empty(0), np.empty(0))
    ends, signs = np.empty(m, np.int8), np.empty(m, np.int8)
    numbers, V, w = np.empty((4, m)), np.empty((m, d)), np.empty(d)
    u = np.empty(X.shape[0], np.int8)
    counts, first = np.zeros((m, 6), np.int64), np.zeros(m + 1, np.int64)
    kt, kk, kw = np.empty(4 * m), np.empty(4 * m, np.int32), np.empty(4 * m, np.int8)
    for j in range(m):
        b, log = _unit(W[j], a[j], w)
        u[:] = UNKNOWN
        found = run(w, b, u, data, save, V[j], value, False, events)
        end, growth, sign, offset, hit, _, ne, last = found
        if np.isnan(hit) and end != UNRESOLVED:
            _unit(W[j], a[j], w)
            u[:] = UNKNOWN
            hit = run(w, b, u, data, save, V[j], value, True, events)[4]
        ends[j], signs[j] = end, int(sign)
        numbers[0, j], numbers[1, j], numbers[2, j], numbers[3, j] = growth, offset + log, hit, last
        for i in range(ne):
            counts[j, ew[i]] += 1
        first[j + 1] = first[j]
        if keep:
            q, used = first[j], first[j] + ne
            first[j + 1] = used
            if used > kt.size:
                kt, kk, kw = _wider(kt, used), _wider(kk, used), _wider(kw, used)
            kt[q:used], kk[q:used], kw[q:used] = et[:ne], ek[:ne], ew[:ne]
    used = first[m]
    paths = (first, kt[:used].copy(), kk[:used].copy(), kw[:used].copy())
    return ends, signs, numbers, V, counts, paths


@njit(cache=True)
def early_all(W, a, X, c, leak, hold, times, most):
    """States of every neuron at ascending times, and which neurons never move.

    Returns W (T, m, d), a (T, m) and log norms (T, m); NaN where a path could not be followed.
    """
    m, d = W.shape
    T = times.size
    data, events = _prepare(X, c, leak, hold, 0.0, most)
    Wt, at, Lt = np.empty((T, m, d)), np.empty((T, m)), np.empty((T, m))
    moves = np.ones(m, np.bool_)
    w, v, u = np.empty(d), np.empty(d), np.empty(X.shape[0], np.int8)
    save = (times, np.empty((T, d)), np.empty(T), np.empty(T))
    for j in range(m):
        b, log = _unit(W[j], a[j], w)
        u[:] = UNKNOWN
        save[3][:] = np.nan
        moves[j] = run(w, b, u, data, save, v, 0.5, False, events)[5] > 0
        for i in range(T):
            Wt[i, j], at[i, j], Lt[i, j] = save[1][i], save[2][i], save[3][i] + log
    return Wt, at, Lt, moves


@njit(cache=True)
def ride_all(V, s, U, X, c, leak, hold, floor, t, most):
    """Balanced neurons (v, s) after a time t (inf: at their end), sides remembered in U (m, n).

    ``hold`` (m,) says who stays at repelling hyperplanes. What counts as no pull is measured
    against the sum of |c_k||x_k|, or ``floor`` if larger. Returns ends, growths, directions and
    log|w| (at the end: log|w| - growth t in the limit), sides, times of the last events; NaN
    where a path is lost.
    """
    m, d = V.shape
    (X, c, leak, xn, total, _), events = _prepare(X, c, leak, True, floor, most)
    times = np.empty(0) if np.isinf(t) else np.full(1, t)
    save = (times, np.empty((times.size, d)), np.empty(times.size), np.empty(times.size))
    ends, growth, sides, last = np.empty(m, np.int8), np.zeros(m), U.copy(), np.zeros(m)
    out, logs, w = np.empty((m, d)), np.full(m, np.nan), np.empty(d)
    for j in range(m):
        b, log = _unit(V[j], s[j], w)
        data = (X, c, leak, xn, total, hold[j])
        if times.size:
            save[3][0] = np.nan
        found = run(w, b, sides[j], data, save, out[j], 0.5, False, events)
        ends[j], growth[j], logs[j], last[j] = found[0], found[1], found[3] + log, found[7]
        if times.size:
            size = 0.0
            for i in range(d):
                out[j, i] = save[1][0, i]
                size += out[j, i] * out[j, i]
            size = np.sqrt(size)
            for i in range(d):
                out[j, i] /= size
            logs[j] = save[3][0] + log + np.log(size)
    return ends, growth, out, logs, sides, last
