"""Frozen-pull paths of neurons as finite lists of closed-form pieces.

One neuron is (w, a) normalised to |w|^2 + a^2 = 1 with the logarithm of its norm beside it, so
neither tiny starts nor long growth leave the floats. A piece ends when the neuron meets a
hyperplane, when its outer weight passes through zero, or when w itself does.
"""

import numpy as np
from numba import njit

from reluflow.kernels.early_face import EPS, PARALLEL, inner, products, settle
from reluflow.kernels.early_piece import (
    growing_part,
    growth_to_cosine,
    outer_after,
    state_after,
    time_to,
)

SNAP = 32.0  # in units of the tracked rounding error of w: what counts as lying on a hyperplane

# how a path ends (a piece ends in one of these, in SIGN, in ORIGIN, or at a sample)
GROWS, STILL, SHRINKS, RESTS, UNRESOLVED = 0, 1, 2, 3, 4
UNKNOWN = 2  # a side that nobody remembers
# kinds of events
CROSS, SLIDE, EXIT, BRANCH, SIGN, ORIGIN = 0, 1, 2, 3, 4, 5


@njit(cache=True)
def _note(t, k, kind, events, ne):
    et, ek, ew = events
    if ne < et.size:
        et[ne], ek[ne], ew[ne] = t, k, kind
    return ne + 1


@njit(cache=True)
def _note_face(t, c, sa, hold, u, was, mode, branch, face, nf, events, ne):
    """Log what the samples of a resolved face did; mode: 0 off, 1 slides, 3 held, -1 at start."""
    for f in range(nf):
        k = face[f]
        if branch[k] and not hold:
            ne = _note(t, k, BRANCH, events, ne)
        if u[k] != 0:
            if was[k] == -u[k]:
                ne = _note(t, k, CROSS, events, ne)
            elif was[k] == 0:
                ne = _note(t, k, EXIT, events, ne)
            mode[k] = 0
        else:
            now = BRANCH if sa * c[k] > 0.0 else SLIDE
            if mode[k] != now:
                ne = _note(t, k, now, events, ne)
            mode[k] = now
        was[k] = 0
    return ne


@njit(cache=True)
def _update_hit(hit, t, w, e, v, value, p, a, J, r, delta):
    """Track the time from which cos(w, v) >= value for good, over a piece of growth delta."""
    start = np.sqrt(inner(w, w))
    wv, ev = inner(w, v), inner(e, v)
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


@njit(cache=True)
def run(w, a, u, data, save, v, value, known, events):
    """Follow one neuron from (w, a), |w|^2 + a^2 = 1, to the end or past the last time to save.

    Parameters
    ----------
    w, a : array (d,), overwritten, and float
    u : int8 array (n,), overwritten
        Sides of the hyperplanes: -1, 0 (on it), 1, or `UNKNOWN`. Read where <w, x_k> is lost in
        rounding (unknown: on it); on return the sides at the end.
    data : (X, c, leak, norms of the samples, sum of |c_k||x_k|, whether to stay at branches)
    save : (ascending times, W at them, a at them, log norm at them)
    v : array (d,), the limit direction: read if ``known``, else written
    value, known : the cosine with v whose time is asked for, and whether v is known
    events : (times, samples, kinds), filled

    Returns
    -------
    (end, growth, sign, offset, hit, pieces, n_events, last); a ``hit`` of NaN needs a second run
    with ``known``.
    """
    X, c, leak, xn, total, hold = data
    times, Wt, at, Lt = save
    n, d = X.shape
    D, e, rest, out = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    s, speed = np.empty(n), np.empty(n)  # <w, x_k>, <e, x_k>
    slope, branch = np.empty(n), np.zeros(n, np.bool_)
    was, mode, face = np.zeros(n, np.int8), np.zeros(n, np.int8), np.empty(n, np.int64)
    t, log, hit, last, ne, nt, pieces = 0.0, 0.0, np.nan, 0.0, 0, 0, 0
    sa = 1.0 if a > 0.0 else -1.0
    a = abs(a)
    size = np.sqrt(inner(w, w))
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
    while max(ne, pieces) < events[0].size:
        r, agreed = 0.0, True
        if not still:
            nf = 0
            for k in range(n):
                if u[k] == 0:
                    face[nf] = k
                    nf += 1
            agreed = settle(X, c, leak, xn, total, sa, hold, u, face, nf, slope, branch, D)
            ne = _note_face(t, c, sa, hold, u, was, mode, branch, face, nf, events, ne)
            r = np.sqrt(inner(D, D))
        if not agreed:
            break
        size = np.sqrt(inner(w, w))
        if r <= PARALLEL * total:  # nothing pulls: stays where it is
            end = RESTS if leak > 0.0 or np.any(u > 0) else STILL
            offset = log + np.log(size) if size > 0.0 else -np.inf
            while nt < times.size:
                Wt[nt], at[nt], Lt[nt] = w, sa * a, log
                nt += 1
            if not known:
                v[:] = w / size if size > 0.0 else 0.0 * w
            if pieces == 0 or (known and np.isnan(hit)):
                hit = t
            if a == 0.0:
                sa = 0.0
            break
        pieces += 1
        for i in range(d):
            e[i] = sa * D[i] / r
        p = inner(w, e)
        for i in range(d):
            rest[i] = w[i] - p * e[i]
        side = np.sqrt(inner(rest, rest))
        radial = side <= SNAP * noise
        if radial:
            rest[:] = 0.0
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
            Wt[nt], at[nt], Lt[nt] = out, sa * at1, log + shift
            nt += 1
        if final:
            end = why
            if why == GROWS:
                growth, offset = r, log + np.log(growing_part(p, a, J)) - r * t
            elif why == SHRINKS:
                growth, offset = -r, log + np.log(-p) + r * t
            else:
                offset = log + np.log(side)
            if not known:
                for i in range(d):
                    v[i] = e[i] if why == GROWS else (-e[i] if why == SHRINKS else rest[i] / side)
            if known or inner(w, v) < value * size or size == 0.0 or pieces == 1:
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
            ne = _note(t, -1, SIGN, events, ne)
        elif who < 0:
            w[:] = 0.0
            noise = 0.0
            ne = _note(t, -1, ORIGIN, events, ne)
        products(X, w, s)
        for k in range(n):
            if u[k] == 0 or xn[k] == 0.0:
                continue
            near = abs(s[k]) <= SNAP * noise * xn[k]
            coming = u[k] * speed[k] < -PARALLEL * total * xn[k] / r
            if k == who or (near and (coming or short or noise == 0.0)):
                was[k], u[k] = u[k], 0
        norm = np.sqrt(inner(w, w) + a * a)
        for i in range(d):
            w[i] /= norm
        s /= norm
        a /= norm
        noise /= norm
        gap /= norm * norm
        log += np.log(norm)
    return end, growth, sa, offset, hit, pieces, min(ne, events[0].size), last
