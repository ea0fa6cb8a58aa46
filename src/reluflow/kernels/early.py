"""Loops over neurons for the frozen-pull paths of `early_path`."""

from __future__ import annotations

import numpy as np
from numba import njit

from reluflow.kernels import early_path as path
from reluflow.kernels.codes import UNRESOLVED, EventKind
from reluflow.kernels.early_path import EVENTS, HIT, OFFSET, UNKNOWN, run
from reluflow.kernels.inner import inner

SIZE, FOUND = 8, 9  # what is found out about a neuron: as for its path, then its log norm
KINDS = 1 + len(EventKind)  # the code 0 is not used


@inner
def _unit(w, a, out):
    """Write w over the norm of (w, a) into out; returns (a over it, log of it), 0 for a zero."""
    top = abs(a)
    for i in range(w.size):
        top = max(top, abs(w[i]))
    if top == 0.0:
        for i in range(w.size):
            out[i] = 0.0
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
def _follow(
    j,
    W,
    a,
    sides,
    X,
    c,
    leak,
    hold,
    floor,
    times,
    value,
    again,
    keep,
    most,
    found,
    V,
    states,
    counts,
    first,
    log,
):
    """Follow neurons j, j + 1, ... to their ends, or past the last of ``times``.

    ``sides`` (m, n), or (0, n) when none is remembered, is brought to the end. ``hold`` (m,) says
    who stays at repelling hyperplanes. What counts as no pull is measured against the sum of
    |c_k||x_k|, or ``floor`` if larger. With ``again`` the time of the cosine ``value`` is looked
    for in a second run where it needs the limit direction. Written are ``found`` (m, FOUND), limit
    directions V (m, d), ``states`` (m, T, d + 2) as in `run`, ``counts`` (m, KINDS) of events by
    code, and with ``keep`` the events of neuron i as rows first[i]:first[i + 1] of ``log``. OFFSET
    counts from the size of the start; when there are times, V and OFFSET are direction of w and
    log|w| at the last one. Returns the neuron to go on with when ``log`` has no
    room for ``most`` events more.
    """
    (n, d), m = X.shape, a.size
    xn, w, u, total = np.empty(n), np.empty(d), np.empty(n, np.int64), 0.0
    for k in range(n):
        square = 0.0
        for i in range(d):
            square += X[k, i] * X[k, i]
        xn[k] = np.sqrt(square)
        total += abs(c[k]) * xn[k]
    data = (X, c, leak, xn, max(total, floor))
    while j < m and first[j] + most <= log.shape[0]:
        events = log[first[j] : first[j] + most]
        for turn in range(2):
            b, found[j, SIZE] = _unit(W[j], a[j], w)
            for k in range(n):
                u[k] = sides[j, k] if sides.shape[0] > 0 else UNKNOWN
            run(w, b, u, data, hold[j], times, states[j], V[j], value, turn > 0, events, found[j])
            if not again or found[j, 0] == UNRESOLVED or not np.isnan(found[j, HIT]):
                break
        for k in range(n):
            if sides.shape[0] > 0:
                sides[j, k] = u[k]
        count = int(found[j, EVENTS])
        for i in range(count):
            counts[j, int(events[i, 2])] += 1
        first[j + 1] = first[j] + (count if keep else 0)
        if times.size > 0:
            square = 0.0
            for i in range(d):
                V[j, i] = states[j, times.size - 1, i]
                square += V[j, i] * V[j, i]
            size = np.sqrt(square)
            for i in range(d):
                V[j, i] /= size if size > 0.0 else np.nan
            found[j, OFFSET] = states[j, times.size - 1, d + 1] + found[j, SIZE] + np.log(size)
        else:
            found[j, OFFSET] += found[j, SIZE]
        j += 1
    return j


def _fixed(x):
    """An array that a kernel reads: one type, so one version of the kernel is compiled."""
    out = np.ascontiguousarray(x).view()
    out.setflags(write=False)
    return out


def _follow_all(W, a, sides, X, c, leak, hold, floor, times, value, again, keep, most):
    """Follow every neuron: found, V, states, counts, first and log of `_follow`."""
    (m, d), n = W.shape, X.shape[0]
    found, V = np.empty((m, FOUND)), np.empty((m, d))
    states = np.full((m, times.size, d + 2), np.nan)
    counts, first = np.zeros((m, KINDS), np.int64), np.zeros(m + 1, np.int64)
    log = np.empty((most + (4 * m if keep else 0), 3))
    if sides is None:
        sides = np.empty((0, n), np.int8)
    W, a, X, c, hold, times = map(_fixed, (W, a, X, c, hold, times))
    j = 0
    while j < m:
        j = _follow(
            j,
            W,
            a,
            sides,
            X,
            c,
            leak,
            hold,
            floor,
            times,
            value,
            again,
            keep,
            most,
            found,
            V,
            states,
            counts,
            first,
            log,
        )
        if j < m:
            log = np.concatenate([log, np.empty((log.shape[0], 3))])
    return found, V, states, counts, first, log


def align_all(W, a, X, c, leak, hold, value, keep, most):
    """Run every neuron to its end; ``most`` bounds the events of one neuron.

    Returns ends, signs, numbers (growth, offset, time of the cosine, time of the last event),
    limit directions, counts of events by kind, and the events of neuron j (if ``keep``) as rows
    first[j]:first[j+1] of times, samples and kinds.
    """
    found, V, _, counts, first, log = _follow_all(
        W, a, None, X, c, leak, np.full(len(a), hold), 0.0, np.empty(0), value, True, keep, most
    )
    ends, signs = found[:, path.END].astype(np.int8), found[:, path.SIDE].astype(np.int8)
    numbers = found[:, [path.GROWTH, OFFSET, HIT, path.LAST]].T.copy()
    times, samples, kinds = log[: first[-1]].T
    paths = (first, times.copy(), samples.astype(np.int32), kinds.astype(np.int8))
    return ends, signs, numbers, V, counts, paths


def early_all(W, a, X, c, leak, hold, times, most):
    """States of every neuron at ascending times, and which neurons never move.

    Returns W (T, m, d), a (T, m) and log norms (T, m); NaN where a path could not be followed.
    """
    d = W.shape[1]
    found, _, states, *_ = _follow_all(
        W, a, None, X, c, leak, np.full(len(a), hold), 0.0, times, 0.5, False, False, most
    )
    states = states.swapaxes(0, 1)
    moves = found[:, path.PIECES] > 0
    return states[..., :d].copy(), states[..., d].copy(), states[..., d + 1] + found[:, SIZE], moves


def ride_all(V, s, U, X, c, leak, hold, floor, t, most):
    """Balanced neurons (v, s) after a time t (inf: at their end), sides remembered in U (m, n).

    ``hold`` (m,) says who stays at repelling hyperplanes. What counts as no pull is measured
    against the sum of |c_k||x_k|, or ``floor`` if larger. Returns ends, growths, directions and
    log|w| (at the end: log|w| - growth t in the limit), sides, times of the last events; NaN
    where a path is lost.
    """
    times = np.empty(0) if np.isinf(t) else np.full(1, float(t))
    sides = U.copy()
    found, out, *_ = _follow_all(
        V, s, sides, X, c, leak, hold, floor, times, 0.5, False, False, most
    )
    ends, growth = found[:, path.END].astype(np.int8), found[:, path.GROWTH].copy()
    return ends, growth, out, found[:, OFFSET].copy(), sides, found[:, path.LAST].copy()
