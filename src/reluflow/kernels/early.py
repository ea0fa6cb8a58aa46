r"""Loops over neurons for the frozen-pull paths of kernels.early_path.

Each neuron of a silent network is alone: w' = a D_u(w), a' = <w, D_u(w)> with one pull c for all
(see kernels.early_path). The three questions asked of such paths are `align_all` (where do they
end?), `early_all` (where are they at given times?) and `ride_all` (a step of the limit process,
sides remembered between two steps).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels import early_path as path
from reluflow.kernels.codes import UNRESOLVED, EventKind
from reluflow.kernels.early_face import EPS, Frozen
from reluflow.kernels.early_path import EVENTS, HIT, OFFSET, SNAP, UNKNOWN, Ready, run
from reluflow.kernels.inner import inlined, inner

KINDS = 1 + len(EventKind)  # the code 0 is not used
_GATHERED = 8.0  # rounding of products brought along a path, over that of products just made
SIZE, FOUND = 8, 9  # what is found out about a neuron: as for its path, then its log norm


class Starts(NamedTuple):
    """Where m neurons start, and what they remember."""

    W: np.ndarray  # (m, d)
    a: np.ndarray  # (m,)
    sides: np.ndarray | None  # (m, n) brought to the end; None when none is remembered
    hold: np.ndarray  # (m,) who stays at repelling hyperplanes


class Data(NamedTuple):
    """The samples and their pull."""

    X: np.ndarray  # (n, d)
    c: np.ndarray  # (n,)
    leak: float
    floor: float  # "no pull" is measured against the sum of |c_k||x_k|, or this if larger
    K: np.ndarray | None = None  # (n, n) <x_k, x_i>: kinks then cost n + d instead of n d each


class Question(NamedTuple):
    """What is to be found out about each path."""

    times: np.ndarray  # (T,) ascending times at which states are wanted; empty: go to the end
    value: float  # the cosine with the limit direction whose time is asked for
    again: bool  # look for it in a second run where it needs the limit direction
    keep: bool  # keep the events
    most: int  # events of one neuron after which its path counts as unresolved


class Prepared(NamedTuple):
    """Starting points of all neurons as `Ready` has them for one; no rows where K is missing."""

    s: np.ndarray  # (m, n); on return the products with V if there are times
    D: np.ndarray  # (m, d)
    P: np.ndarray  # (m, n)


class Answer(NamedTuple):
    """What was found out; filled by `_follow`."""

    found: np.ndarray  # (m, FOUND)
    V: np.ndarray  # (m, d) limit directions, or directions of w at the last time
    states: np.ndarray  # (m, T, d + 2) w, a, log norm as in `run`
    counts: np.ndarray  # (m, KINDS) events by code
    first: np.ndarray  # (m + 1,) with ``keep``, the events of neuron j are log[first[j]:first[j+1]]
    log: np.ndarray  # (capacity, 3) time, sample, kind


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
    total = (a / top) ** 2  # divided first: the square of a tiny weight is no float
    for i in range(w.size):
        out[i] = w[i] / top
        total += out[i] * out[i]
    norm = np.sqrt(total)
    for i in range(w.size):
        out[i] /= norm
    return a / top / norm, np.log(top) + np.log(norm)


@inlined
def _direction_at_end(state, v):
    """Write the direction of w of a state (w, a, log unit) into v: (log unit, log|w| in it)."""
    d, square = v.size, 0.0
    for i in range(d):
        v[i] = state[i]
        square += v[i] * v[i]
    size = np.sqrt(square)
    for i in range(d):
        v[i] /= size if size > 0.0 else np.nan
    return state[d + 1], np.log(size)


@njit(cache=True)
def _follow(j, starts, data, ask, prepared, answer):
    """Follow neurons j, j + 1, ... to their ends, or past the last of the times asked for.

    OFFSET counts from the size of the start; when there are times, V and OFFSET are direction of w
    and log|w| at the last one. Returns the neuron to go on with when the log has no place for
    ``most`` events more.
    """
    W, a, sides, hold = starts
    X, c, leak, floor, K = data
    s, D, P = prepared
    kept = K.shape[0] > 0
    times, value, again, keep, most = ask
    found, V, states, counts, first, log = answer
    (n, d), m = X.shape, a.size
    xn, w, u, total = np.empty(n), np.empty(d), np.empty(n, np.int8), 0.0
    for k in range(n):
        square = 0.0
        if kept:
            square = K[k, k]
        else:
            for i in range(d):
                square += X[k, i] * X[k, i]
        xn[k] = np.sqrt(square)
        total += abs(c[k]) * xn[k]
    XT = np.empty((d, 0 if kept else n))
    for i in range(d):
        for k in range(XT.shape[1]):
            XT[i, k] = X[k, i]
    frozen = Frozen(X, c, leak, xn, max(total, floor), K, XT)
    ready, unknown = Ready(np.empty(0), np.empty(0), np.empty(0)), np.empty(0)
    # where the last neuron of either sign went: many go there, and their paths are run once then
    guess = [unknown, unknown]
    while j < m and first[j] + most <= log.shape[0]:
        events = log[first[j] : first[j] + most]
        aim = guess[1 if a[j] > 0.0 else 0]
        for turn in range(2):  # the second with the limit direction known from the first
            if turn > 0:
                aim = V[j].copy()
            b, found[j, SIZE] = _unit(W[j], a[j], w)
            for k in range(n):
                u[k] = sides[j, k] if sides.shape[0] > 0 else UNKNOWN
            if kept:
                ready = Ready(s[j], D[j], P[j])
            goal = (V[j], value, aim)
            run(w, b, u, frozen, hold[j], times, states[j], goal, ready, events, found[j])
            if not again or found[j, 0] == UNRESOLVED or not np.isnan(found[j, HIT]):
                break
        if kept and again:
            guess[1 if a[j] > 0.0 else 0] = V[j]
        for k in range(n):
            if sides.shape[0] > 0:
                sides[j, k] = u[k]
        count = int(found[j, EVENTS])
        for i in range(count):
            counts[j, int(events[i, 2])] += 1
        # without ``keep`` the next neuron writes its events over these
        first[j + 1] = first[j] + (count if keep else 0)
        if times.size > 0:
            unit, size = _direction_at_end(states[j, times.size - 1], V[j])
            found[j, OFFSET] = unit + found[j, SIZE] + size
            if kept:
                for k in range(n):
                    s[j, k] /= np.exp(size)
        else:
            found[j, OFFSET] += found[j, SIZE]
        j += 1
    return j


def _fixed(x):
    """An array that a kernel reads: one type, so one version of the kernel is compiled."""
    flags = x.flags
    if flags.c_contiguous and not flags.writeable:  # as those of a problem are
        return x
    out = np.ascontiguousarray(x).view()
    out.setflags(write=False)
    return out


def _prepare(starts, data, sides, Z):
    """Products, sides and forces at the start of all neurons, from products of whole matrices.

    ``sides`` are written. ``Z`` are products of the samples with the rows of W, if known.
    """
    n, d = data.X.shape
    if data.K is None:
        return Prepared(np.empty((0, n)), np.empty((0, d)), np.empty((0, n)))
    size = np.maximum(np.abs(starts.a), np.abs(starts.W).max(axis=1, initial=0.0))
    size = np.where(size > 0.0, size, 1.0)[:, None]  # divided first, as in `_unit`
    W, a = starts.W / size, starts.a / size[:, 0]
    norm = np.sqrt(a * a + np.einsum("ji,ji->j", W, W))[:, None]
    norm[norm == 0.0] = 1.0
    W = W / norm
    s = W @ data.X.T if Z is None else Z / size / norm
    xn = np.sqrt(np.diagonal(data.K))
    noise = 2.0 * EPS * np.sqrt(np.einsum("ji,ji->j", W, W))[:, None]
    on = SNAP * noise * xn * (1.0 if Z is None else _GATHERED)
    clear = (np.abs(s) > on) | (xn == 0.0)
    sides[...] = np.where(clear, np.where(s > 0.0, 1, -1), np.where(sides == UNKNOWN, 0, sides))
    D = (np.where(sides > 0, 1.0, np.where(sides < 0, data.leak, 0.0)) * data.c) @ data.X
    return Prepared(np.ascontiguousarray(s), D, np.ascontiguousarray(D @ data.X.T))


def _follow_all(starts, data, ask, Z=None):
    """Follow every neuron; ``starts.sides`` of None remembers nothing.

    Returns the answer and, where ``data.K`` is given and there are times, X V at the last one.
    """
    (m, d), n = starts.W.shape, data.X.shape[0]
    W, a, X, c, hold, times = map(
        _fixed, (starts.W, starts.a, data.X, data.c, starts.hold, ask.times)
    )
    sides = starts.sides
    if sides is None:
        sides = np.full((0 if data.K is None else m, n), UNKNOWN, np.int8)
    prepared = _prepare(starts, data, sides, Z)
    K = _fixed(np.empty((0, 0)) if data.K is None else data.K)
    # plain tuples: the types of records take Numba some microseconds more to find out
    given = (W, a, sides, hold), (X, c, data.leak, data.floor, K), (times, *ask[1:])
    answer = Answer(
        found=np.empty((m, FOUND)),
        V=np.empty((m, d)),
        states=np.full((m, times.size, d + 2), np.nan),
        counts=np.zeros((m, KINDS), np.int64),
        first=np.zeros(m + 1, np.int64),
        log=np.empty((ask.most + (4 * m if ask.keep else 0), 3)),
    )
    j = 0
    while j < m:
        j = _follow(j, *given, tuple(prepared), tuple(answer))
        if j < m:
            more = np.empty((answer.log.shape[0], 3))
            answer = answer._replace(log=np.concatenate([answer.log, more]))
    return answer, prepared.s if len(prepared.s) and times.size else None


def align_all(
    W: np.ndarray,
    a: np.ndarray,
    X: np.ndarray,
    c: np.ndarray,
    leak: float,
    hold: bool,
    value: float,
    keep: bool,
    most: int,
    K: np.ndarray | None = None,
) -> tuple[Any, ...]:
    """Run every neuron to its end; ``most`` bounds the events of one neuron.

    ``K`` are the products of the samples, where they are at hand. Returns ends, signs, numbers
    (growth, offset, time of the cosine, time of the last event), limit directions, counts of
    events by kind, and the events of neuron j (if ``keep``) as rows first[j]:first[j+1] of times,
    samples and kinds.
    """
    answer, _ = _follow_all(
        Starts(W, a, None, np.full(len(a), hold)),
        Data(X, c, leak, 0.0, K),
        Question(np.empty(0), value, True, keep, most),
    )
    found, first = answer.found, answer.first
    ends, signs = found[:, path.END].astype(np.int8), found[:, path.SIDE].astype(np.int8)
    numbers = found[:, [path.GROWTH, OFFSET, HIT, path.LAST]].T.copy()
    times, samples, kinds = answer.log[: first[-1]].T
    paths = (first, times.copy(), samples.astype(np.int32), kinds.astype(np.int8))
    return ends, signs, numbers, answer.V, answer.counts, paths


def early_all(
    W: np.ndarray,
    a: np.ndarray,
    X: np.ndarray,
    c: np.ndarray,
    leak: float,
    hold: bool,
    times: np.ndarray,
    most: int,
    K: np.ndarray | None = None,
) -> tuple[Any, ...]:
    """States of every neuron at ascending times, and which neurons never move.

    Returns W (T, m, d), a (T, m) and log norms (T, m); NaN where a path could not be followed.
    """
    d = W.shape[1]
    answer, _ = _follow_all(
        Starts(W, a, None, np.full(len(a), hold)),
        Data(X, c, leak, 0.0, K),
        Question(times, 0.5, False, False, most),
    )
    states, size = answer.states.swapaxes(0, 1), answer.found[:, SIZE]
    moves = answer.found[:, path.PIECES] > 0
    return states[..., :d].copy(), states[..., d].copy(), states[..., d + 1] + size, moves


def ride_all(
    V: np.ndarray,
    s: np.ndarray,
    U: np.ndarray,
    X: np.ndarray,
    c: np.ndarray,
    leak: float,
    hold: np.ndarray,
    floor: float,
    t: float,
    most: int,
    K: np.ndarray | None = None,
    Z: np.ndarray | None = None,
) -> tuple[Any, ...]:
    """Balanced neurons (v, s) after a time t (inf: at their end), sides remembered in U (m, n).

    ``hold`` (m,) says who stays at repelling hyperplanes. What counts as no pull is measured
    against the sum of |c_k||x_k|, or ``floor`` if larger. ``K`` are the products of the samples
    and ``Z`` (m, n) those with V, where they are at hand. Returns ends, growths, directions and
    log|w| (at the end: log|w| - growth t in the limit), sides, times of the last events, and with
    K the products with the directions at a finite time; NaN where a path is lost.
    """
    times = np.empty(0) if np.isinf(t) else np.full(1, float(t))
    sides = U.copy()
    answer, Z = _follow_all(
        Starts(V, s, sides, hold),
        Data(X, c, leak, floor, K),
        Question(times, 0.5, False, False, most),
        Z,
    )
    found = answer.found
    ends, growth = found[:, path.END].astype(np.int8), found[:, path.GROWTH].copy()
    last = found[:, path.LAST].copy()
    return ends, growth, answer.V, found[:, OFFSET].copy(), sides, last, Z
