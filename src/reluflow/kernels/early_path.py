r"""Frozen-pull paths of neurons as finite lists of closed-form pieces.

.. math:: w' = a D_u, \quad a' = \langle w, D_u \rangle, \quad D_u = \sum_k \phi'_{u_k} c_k x_k

is linear while the pattern u stays, and kernels.early_piece solves it: w moves along
e = s D_u/|D_u| only, and of the hyperplanes ahead it meets first the one with the least
|<w, x_k>|/|<e, x_k>|. A piece ends when the neuron meets a hyperplane (kernels.early_face says
which side it takes), when its outer weight passes through zero (s changes), or when w itself does
(kernels.early_zero); the last one has no end.

One neuron is (w, a) normalised to |w|^2 + a^2 = 1 with the logarithm of its norm beside it, so
neither tiny starts nor long growth leave the floats. Whether w is on a hyperplane is asked in units
of the rounding error it has gathered on its way (``noise``), which is the only length there is.

The gradient flow has the same closed form in kernels.flow_leap, written anew and not imported from
here: prediction and simulation share no solver, so their agreement is evidence.
"""

from typing import NamedTuple

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
from reluflow.kernels.inner import inlined, inner
from reluflow.kernels.vectors import along

SNAP = 32.0  # in units of the tracked rounding error of w: what counts as lying on a hyperplane

UNKNOWN = 2  # a side that nobody remembers
# what is found out about a path
END, GROWTH, SIDE, OFFSET, HIT, PIECES, EVENTS, LAST = 0, 1, 2, 3, 4, 5, 6, 7


class Place(NamedTuple):
    """Where a neuron is with respect to the samples; arrays that its path writes.

    The loop of `run` works on the arrays themselves: to take one out of a record costs a count of
    its references each time, a sixth of the whole path.
    """

    w: np.ndarray  # (d,)
    u: np.ndarray  # (n,) side of each hyperplane, 0 on it
    s: np.ndarray  # (n,) <w, x_k>
    was: np.ndarray  # (n,) side from which a hyperplane of the face was reached
    mode: np.ndarray  # (n,) 0 off, SLIDE, BRANCH (held at a repelling one), -1 there at the start
    face: np.ndarray  # (n,) the samples on the face, as many as nf says
    slope: np.ndarray  # (n,)
    branch: np.ndarray  # (n,)


@inner
def _note(t, k, kind, log, found):
    """Append an event (time, sample, kind); what finds no room is counted alone."""
    count = int(found[EVENTS])
    if count < log.shape[0]:
        log[count, 0], log[count, 1], log[count, 2] = t, k, kind
    found[EVENTS] += 1.0


@inlined
def _note_face(t, hold, u, was, mode, branch, face, nf, log, found):
    """Log what the samples of a resolved face did."""
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


@inlined
def _update_hit(hit, t, w, e, v, value, p, a, J, r, delta):
    """Track the time from which cos(w, v) >= value for good, over a piece of growth delta.

    Within a piece w moves on a straight line and the cone {cos >= value} is convex: a line that
    ends inside has entered it once at most, so the two ends of the piece tell everything.
    """
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


@inlined
def _find_sides(X, c, leak, xn, w, noise, u, s, mode):
    """Sides at the start from the products, remembered or on the hyperplane where these are lost.

    Returns G(w).
    """
    G = 0.0
    products(X, w, s)
    for k in range(s.size):
        if xn[k] == 0.0 or abs(s[k]) > SNAP * noise * xn[k]:
            u[k] = 1 if s[k] > 0.0 else -1
        elif u[k] == UNKNOWN or u[k] == 0:
            u[k] = 0
            mode[k] = -1
        G += c[k] * s[k] * (1.0 if s[k] > 0.0 else leak)
    return G


@inlined
def _split(w, sa, D, r, gap, noise, e, rest):
    """Split w along the motion: writes e and rest, returns p, J and whether the motion is radial.

    What rounding cannot tell from 0 is 0: a side part as small as the noise makes the motion
    radial (w parallel to e, so that it meets w = 0 or nothing), a J as small as its own rounding
    makes the neuron balanced.
    """
    d = w.size
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
    return p, J, radial


@inlined
def _end_of_piece(u, s, speed, xn, total, r, p, J, radial):
    """How the piece ends: (growth delta of p, why, sample met or -1, whether it is the last one).

    why is GROWS, SHRINKS, RESTS, SIGN or ORIGIN. With a > 0 p grows, and from p < 0 it can only
    reach -sqrt(-J) (J < 0: a = 0 there, the sign changes), 0 in infinite time (J = 0) or, through
    w = 0, the other side (J > 0 and radial). ``speed`` holds <e, x_k>.
    """
    delta, why, who = np.inf, GROWS, -1
    if p < 0.0:
        if J < 0.0:
            delta, why = -p - np.sqrt(-J), SIGN
        elif J == 0.0:
            delta, why = -p, (SHRINKS if radial else RESTS)
        elif radial:
            delta, why = -p, ORIGIN
    final = why != SIGN and why != ORIGIN
    if not radial:
        for k in range(u.size):
            if u[k] * speed[k] < -PARALLEL * total * xn[k] / r:
                reach = max(0.0, u[k] * s[k]) / abs(speed[k])
                if reach < delta * (1.0 - SNAP * EPS):
                    delta, who, final = reach, k, False
    if final and why != GROWS:
        delta = np.inf  # reached only in the limit
    return delta, why, who, final


@inlined
def _pass_zero(frozen, sa, hold, t, at, e, D, log, found):
    """w has reached 0 along e: log it and find the pattern behind; False if it stays at 0."""
    for i in range(at.w.size):
        at.w[i] = 0.0
    _note(t, np.int64(-1), float(ORIGIN), log, found)
    nf = np.int64(0)
    for k in range(at.u.size):
        at.was[k] = at.u[k]
        if frozen.xn[k] > 0.0:
            at.face[nf] = k
            nf += 1
    passed = leave_zero(frozen, sa, hold, at.u, e, at.slope, at.branch, D)
    if passed:
        _note_face(t, hold, at.u, at.was, at.mode, at.branch, at.face, nf, log, found)
    return passed


@inlined
def _join_face(u, was, s, speed, xn, total, r, who, noise, short):
    """Put the samples reached by the piece on the face: the one it ended at and those beside it.

    Two hyperplanes met at once differ by rounding. One that is near joins if the neuron was coming
    to it, or if the piece was too ``short`` to tell (or w = 0, where all are near).
    """
    for k in range(u.size):
        if u[k] == 0 or xn[k] == 0.0:
            continue
        near = abs(s[k]) <= SNAP * noise * xn[k]
        coming = u[k] * speed[k] < -PARALLEL * total * xn[k] / r
        if k == who or (near and (coming or short or noise == 0.0)):
            was[k], u[k] = u[k], 0


@inlined
def _samples_on_face(u, face):
    """Write the samples with u_k = 0 into face; returns how many there are."""
    nf = np.int64(0)  # a plain 0 would have what it is passed to compiled twice
    for k in range(u.size):
        if u[k] == 0:
            face[nf] = k
            nf += 1
    return nf


@inlined
def _divide(x, by):
    for i in range(x.size):
        x[i] /= by


@inlined
def _asymptote(why, t, size_log, p, a, J, r, side):
    """Rate and offset of log|w(t)| in the last piece: P e^{rt}, -p e^{-rt} or the part aside."""
    if why == GROWS:
        return r, size_log + np.log(growing_part(p, a, J)) - r * t
    if why == SHRINKS:
        return -r, size_log + np.log(-p) + r * t
    return 0.0, size_log + np.log(side)


@inlined
def _rests(leak, u):
    """How a neuron ends on which nothing pulls: STILL if no sample sees it, else RESTS."""
    if leak > 0.0:
        return RESTS
    for k in range(u.size):
        if u[k] > 0:
            return RESTS
    return STILL


@inlined
def _save(states, nt, w, a, log_norm):
    """Row nt of states: w, a and the logarithm of their unit."""
    d = w.size
    for i in range(d):
        states[nt, i] = w[i]
    states[nt, d], states[nt, d + 1] = a, log_norm


@inner
def run(w, a, u, frozen, hold, times, states, v, value, known, log, found):
    """Follow one neuron from (w, a), |w|^2 + a^2 = 1, to the end or past the last time to save.

    Parameters
    ----------
    w, a : array (d,), overwritten, and float
    u : int8 array (n,), overwritten
        Sides of the hyperplanes: -1, 0 (on it), 1, or `UNKNOWN`. Read where <w, x_k> is lost in
        rounding (unknown: on it); on return the sides at the end.
    frozen : Frozen
    hold : whether to stay at branches
    times, states : ascending times, and w, a, log norm at them (rows of d + 2), written
    v : array (d,), the limit direction: read if ``known``, else written
    value, known : the cosine with v whose time is asked for, and whether v is known
    log : array (most, 3), filled with events; no path has more of them, or more pieces
    found : array (8,), written
        A HIT of NaN needs a second run with ``known``.
    """
    X, c, leak, xn, total = frozen
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
    G = _find_sides(X, c, leak, xn, w, noise, u, s, mode)
    still = False
    if a == 0.0:  # a' = G(w) gives the outer weight its sign, or w is at rest
        still = abs(G) <= PARALLEL * total * size
        sa = 1.0 if G > 0.0 else -1.0
    end, growth, offset = UNRESOLVED, 0.0, np.nan
    while found[EVENTS] < log.shape[0] and pieces < log.shape[0]:
        r = 0.0
        if not still:
            nf = _samples_on_face(u, face)
            agreed = settle(frozen, sa, hold, u, face, nf, slope, branch, D)
            _note_face(t, hold, u, was, mode, branch, face, nf, log, found)
            if not agreed:
                break
            r = np.sqrt(along(D, D))
        size = np.sqrt(along(w, w))
        if r <= PARALLEL * total:  # nothing pulls: stays where it is
            end = _rests(leak, u)
            offset = size_log + np.log(size) if size > 0.0 else -np.inf
            while nt < times.size:
                _save(states, nt, w, sa * a, size_log)
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
        p, J, radial = _split(w, sa, D, r, gap, noise, e, rest)
        products(X, e, speed)
        delta, why, who, final = _end_of_piece(u, s, speed, xn, total, r, p, J, radial)
        a1 = 0.0 if who < 0 and why == SIGN else outer_after(p, a, J, delta)
        dt = np.inf if final else time_to(p, a, J, r, delta, a1)
        while nt < times.size and times[nt] <= t + dt:
            at1, shift = state_after(w, rest, e, p, a, J, r, times[nt] - t, out)
            _save(states, nt, out, sa * at1, size_log + shift)
            nt += 1
        if final:
            end = why
            side = np.sqrt(along(rest, rest))
            growth, offset = _asymptote(why, t, size_log, p, a, J, r, side)
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
        passed = False
        if who < 0 and why == SIGN:
            sa = -sa
            _note(t, np.int64(-1), float(SIGN), log, found)
        elif who < 0 and why == ORIGIN:
            noise = 0.0
            at = Place(w, u, s, was, mode, face, slope, branch)
            passed = _pass_zero(frozen, sa, hold, t, at, e, D, log, found)
        products(X, w, s)
        if not passed:
            _join_face(u, was, s, speed, xn, total, r, who, noise, short)
        # back to norm 1; the conserved a^2 - |w|^2 scales with it
        size = np.sqrt(along(w, w) + a * a)
        _divide(w, size)
        _divide(s, size)
        a /= size
        noise /= size
        gap /= size * size
        size_log += np.log(size)
    found[END], found[GROWTH], found[SIDE], found[OFFSET] = end, growth, sa, offset
    found[HIT], found[PIECES], found[LAST] = hit, pieces, last
    found[EVENTS] = min(found[EVENTS], float(log.shape[0]))
