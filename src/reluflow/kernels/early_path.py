"""Frozen-pull paths of neurons as finite lists of closed-form pieces.

One neuron is (w, a) normalised to |w|^2 + a^2 = 1 with the logarithm of its norm beside it, so
neither tiny starts nor long growth leave the floats. A piece ends when the neuron meets a
hyperplane, when its outer weight passes through zero, or when w itself does.
"""

import numpy as np

from reluflow.kernels.codes import (
    BRANCH,
    CROSS,
    EXIT,
    GROWS,
    ORIGIN,
    RESTS,
    SHRINKS,
    SIGN,
    SLIDE,
    STILL,
    UNRESOLVED,
)
from reluflow.kernels.early_face import EPS, PARALLEL, products, settle
from reluflow.kernels.early_piece import (
    growing_part,
    growth_to_cosine,
    outer_after,
    state_after,
    time_to,
)
from reluflow.kernels.early_zero import leave_zero
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import along

SNAP = 32.0  # in units of the tracked rounding error of w: what counts as lying on a hyperplane

UNKNOWN = 2  # a side that nobody remembers
# what is found out about a path
END, GROWTH, SIDE, OFFSET, HIT, PIECES, EVENTS, LAST = 0, 1, 2, 3, 4, 5, 6, 7


@inner
def _note(t, k, kind, log, found):
    """Append an event (time, sample, kind); what finds no room is counted alone."""
    count = int(found[EVENTS])
    if count < log.shape[0]:
        log[count, 0], log[count, 1], log[count, 2] = t, k, kind
    found[EVENTS] += 1.0


@inner
def _note_face(t, hold, u, was, mode, branch, face, nf, log, found):
    """Log what samples of a resolved face did; mode: 0 off, SLIDE, BRANCH (held), -1 at start."""
    for f in range(nf):
        k = face[f]
        kind = -1
        if branch[k] and not hold:
            _note(t, k, float(BRANCH), log, found)
        if u[k] != 0:
            if was[k] == -u[k]:
                kind = CROSS
            elif was[k] == 0:
                kind = EXIT
            mode[k] = 0
        else:
            now = BRANCH if branch[k] else SLIDE
            if mode[k] != now:
                kind = now
            mode[k] = now
        if kind >= 0:
            _note(t, k, float(kind), log, found)
        was[k] = 0


@inner
def _update_hit(hit, t, w, e, v, value, p, a, J, r, delta):
    """Track the time from which cos(w, v) >= value for good, over a piece of growth delta."""
    start = np.sqrt(along(w, w))
    wv, ev = along(w, v), along(e, v)
    inside = wv >= value * start
    if np.isinf(delta):
        stays = True
    else:
        end = np.sqrt(max(0.0, start * start + 2.0 * delta * p + delta * delta))
        stays = wv + delta * ev >= value * end
    if not stays:
        return np.nan
    if not inside:
        grown = growth_to_cosine(w, e, v, value)
        return t + time_to(p, a, J, r, grown, outer_after(p, a, J, grown))
    return t if np.isnan(hit) else hit


@inner
def run(w, a, u, data, hold, times, states, v, value, known, log, found):
    """Follow one neuron from (w, a), |w|^2 + a^2 = 1, to the end or past the last time to save.

    Parameters
    ----------
    w, a : array (d,), overwritten, and float
    u : int8 array (n,), overwritten
        Sides of the hyperplanes: -1, 0 (on it), 1, or `UNKNOWN`. Read where <w, x_k> is lost in
        rounding (unknown: on it); on return the sides at the end.
    data : (X, c, leak, norms of the samples, sum of |c_k||x_k|)
    hold : whether to stay at branches
    times, states : ascending times, and w, a, log norm at them (rows of d + 2), written
    v : array (d,), the limit direction: read if ``known``, else written
    value, known : the cosine with v whose time is asked for, and whether v is known
    log : array (most, 3), filled with events; no path has more of them, or more pieces
    found : array (8,), written
        A HIT of NaN needs a second run with ``known``.
    """
    X, c, leak, xn, total = data
    n, d = X.shape
    D, e, rest, out = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    s, speed = np.empty(n), np.empty(n)  # <w, x_k>, <e, x_k>
    slope, branch = np.empty(n), np.zeros(n, np.int64)
    was, mode, face = np.zeros(n, np.int64), np.zeros(n, np.int64), np.empty(n, np.int64)
    t, size_log, hit, last, nt, pieces = 0.0, 0.0, np.nan, 0.0, 0, 0
    found[EVENTS] = 0.0
    sa = 1.0 if a > 0.0 else -1.0
    a = abs(a)
    size = np.sqrt(along(w, w))
    noise = 2.0 * EPS * size
    gap = (a - size) * (a + size)  # a^2 - |w|^2, conserved [BF24, Lemma 1]
    if abs(a - size) <= 8.0 * EPS * a:
        gap = 0.0
    G = 0.0
    products(X, w, s)
    for k in range(n):
        if xn[k] == 0.0 or abs(s[k]) > SNAP * noise * xn[k]:
            u[k] = 1 if s[k] > 0.0 else -1
        elif u[k] == UNKNOWN or u[k] == 0:
            u[k] = 0
            mode[k] = -1
        G += c[k] * s[k] * (1.0 if s[k] > 0.0 else leak)
    still = False
    if a == 0.0:
        still = abs(G) <= PARALLEL * total * size
        sa = 1.0 if G > 0.0 else -1.0
    end, growth, offset = UNRESOLVED, 0.0, np.nan
    while found[EVENTS] < log.shape[0] and pieces < log.shape[0]:
        r, agreed = 0.0, True
        if not still:
            nf = np.int64(0)  # a plain 0 would have what it is passed to compiled twice
            for k in range(n):
                if u[k] == 0:
                    face[nf] = k
                    nf += 1
            agreed = settle(X, c, leak, xn, total, sa, hold, u, face, nf, slope, branch, D)
            _note_face(t, hold, u, was, mode, branch, face, nf, log, found)
            r = np.sqrt(along(D, D))
        if not agreed:
            break
        size = np.sqrt(along(w, w))
        if r <= PARALLEL * total:  # nothing pulls: stays where it is
            end = RESTS if leak > 0.0 else STILL
            for k in range(n):
                if u[k] > 0:
                    end = RESTS
            offset = size_log + np.log(size) if size > 0.0 else -np.inf
            while nt < times.size:
                for i in range(d):
                    states[nt, i] = w[i]
                states[nt, d], states[nt, d + 1] = sa * a, size_log
                nt += 1
            if not known:
                for i in range(d):
                    v[i] = w[i] / size if size > 0.0 else 0.0 * w[i]
            if pieces == 0 or (known and np.isnan(hit)):
                hit = t
            if a == 0.0:
                sa = 0.0
            break
        pieces += 1
        for i in range(d):
            e[i] = sa * D[i] / r
        p = along(w, e)
        for i in range(d):
            rest[i] = w[i] - p * e[i]
        side = np.sqrt(along(rest, rest))
        radial = side <= SNAP * noise
        if radial:
            for i in range(d):
                rest[i] = 0.0
            side = 0.0
        J = gap + side * side
        if abs(J) <= SNAP * EPS * (abs(gap) + side * side):
            J = 0.0
        # the end of the piece, as growth of p
        delta, why, who = np.inf, GROWS, -1  # why: GROWS, SHRINKS, RESTS, SIGN or ORIGIN
        if p < 0.0:
            if J < 0.0:
                delta, why = -p - np.sqrt(-J), SIGN
            elif J == 0.0:
                delta, why = -p, (SHRINKS if radial else RESTS)
            elif radial:
                delta, why = -p, ORIGIN
        final = why != SIGN and why != ORIGIN
        products(X, e, speed)
        if not radial:
            for k in range(n):
                if u[k] * speed[k] < -PARALLEL * total * xn[k] / r:
                    reach = max(0.0, u[k] * s[k]) / abs(speed[k])
                    if reach < delta * (1.0 - SNAP * EPS):
                        delta, who, final = reach, k, False
        if final and why != GROWS:
            delta = np.inf  # reached only in the limit
        a1 = 0.0 if who < 0 and why == SIGN else outer_after(p, a, J, delta)
        dt = np.inf if final else time_to(p, a, J, r, delta, a1)
        while nt < times.size and times[nt] <= t + dt:
            at1, shift = state_after(w, rest, e, p, a, J, r, times[nt] - t, out)
            for i in range(d):
                states[nt, i] = out[i]
            states[nt, d], states[nt, d + 1] = sa * at1, size_log + shift
            nt += 1
        if final:
            end = why
            if why == GROWS:
                growth, offset = r, size_log + np.log(growing_part(p, a, J)) - r * t
            elif why == SHRINKS:
                growth, offset = -r, size_log + np.log(-p) + r * t
            else:
                offset = size_log + np.log(side)
            if not known:
                for i in range(d):
                    v[i] = e[i] if why == GROWS else (-e[i] if why == SHRINKS else rest[i] / side)
            if known or along(w, v) < value * size or size == 0.0 or pieces == 1:
                hit = _update_hit(hit, t, w, e, v, value, p, a, J, r, delta)
            break
        if nt == times.size and nt > 0:
            break
        if known:
            hit = _update_hit(hit, t, w, e, v, value, p, a, J, r, delta)
        # move to the end of the piece
        a = a1
        t += dt
        last = t
        short = delta <= SNAP * noise
        noise += 4.0 * EPS * (size + delta)
        for i in range(d):
            w[i] += delta * e[i]
        if who < 0 and why == SIGN:
            sa = -sa
            _note(t, np.int64(-1), float(SIGN), log, found)
        passed = False
        if who < 0 and why == ORIGIN:
            for i in range(d):
                w[i] = 0.0
            noise = 0.0
            _note(t, np.int64(-1), float(ORIGIN), log, found)
            nf = np.int64(0)
            for k in range(n):
                was[k] = u[k]
                if xn[k] > 0.0:
                    face[nf] = k
                    nf += 1
            passed = leave_zero(X, c, leak, xn, total, sa, hold, u, e, slope, branch, D)
            if passed:
                _note_face(t, hold, u, was, mode, branch, face, nf, log, found)
        products(X, w, s)
        for k in range(n):
            if passed or u[k] == 0 or xn[k] == 0.0:
                continue
            near = abs(s[k]) <= SNAP * noise * xn[k]
            coming = u[k] * speed[k] < -PARALLEL * total * xn[k] / r
            if k == who or (near and (coming or short or noise == 0.0)):
                was[k], u[k] = u[k], 0
        norm = np.sqrt(along(w, w) + a * a)
        for i in range(d):
            w[i] /= norm
        for k in range(n):
            s[k] /= norm
        a /= norm
        noise /= norm
        gap /= norm * norm
        size_log += np.log(norm)
    found[END], found[GROWTH], found[SIDE], found[OFFSET] = end, growth, sa, offset
    found[HIT], found[PIECES], found[LAST] = hit, pieces, last
    found[EVENTS] = min(found[EVENTS], float(log.shape[0]))
