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
from reluflow.kernels.early_face import EPS, PARALLEL, products, settle, settle_face
from reluflow.kernels.early_force import Force, add_sample, renew, slope_of, speeds
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
_RENEWED = 512  # kinks after which sums that are kept up to date are taken anew
# what is found out about a path
END, GROWTH, SIDE, OFFSET, HIT, PIECES, EVENTS, LAST = 0, 1, 2, 3, 4, 5, 6, 7


class Ready(NamedTuple):
    """What is known of a neuron where the products of the samples are at hand; else empty."""

    s: np.ndarray  # (n,) <w, x_k>; products with the direction at the last time are written to it
    D: np.ndarray  # (d,) the gradient over the samples off the face
    P: np.ndarray  # (n,) <D, x_k>


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
def _find_sides(frozen, w, noise, ready, u, s, mode):
    """Sides at the start from the products, remembered or on the hyperplane where these are lost.

    Returns G(w). Where the products are ``ready`` the sides are as well.
    """
    c, leak, xn, K = frozen.c, frozen.leak, frozen.xn, frozen.K
    kept, G = K.shape[0] > 0, 0.0
    if kept:
        for k in range(s.size):
            s[k] = ready.s[k]
    else:
        products(frozen, w, s)
    for k in range(s.size):
        if not kept and (xn[k] == 0.0 or abs(s[k]) > SNAP * noise * xn[k]):
            u[k] = 1 if s[k] > 0.0 else -1
        elif u[k] == UNKNOWN or u[k] == 0:
            u[k] = 0
            mode[k] = -1
        G += c[k] * s[k] * (1.0 if s[k] > 0.0 else leak)
    return G


@inlined
def _first_force(frozen, ready):
    """The force that is ready, to be kept up to date; of no size where nothing is."""
    n, d = (ready.P.size, ready.D.size) if frozen.K.shape[0] > 0 else (0, 0)
    force = Force(np.empty(d), np.empty(n), np.zeros(d), np.zeros(n))
    for i in range(d):
        force.D[i] = ready.D[i]
    for k in range(n):
        force.P[k] = ready.P[k]
    return force


@inlined
def _find_gradient(frozen, force, sa, hold, u, face, nf, slope, branch, D):
    """Resolve the face as `settle` does, with the force where it is kept up to date."""
    if frozen.K.shape[0] == 0:
        return settle(frozen, sa, hold, u, face, nf, slope, branch, D)
    for i in range(D.size):
        D[i] = force.D[i]
    agreed = settle_face(frozen, sa, hold, u, face, nf, slope, branch, D)
    for f in range(nf):
        add_sample(force, frozen, face[f], slope_of(u[face[f]], frozen.leak))
    return agreed


@inlined
def _find_speeds(frozen, force, per, u, face, nf, slope, e, out):
    """Write <e, x_k>, e = per * D, into out."""
    if frozen.K.shape[0] == 0:
        products(frozen, e, out)
    else:
        speeds(force, frozen, per, u, face, nf, slope, out)


@inlined
def _save_products(s, speed, p, e, w, shift, out):
    """Products of the samples with the state w = e^-shift (rest + p1 e) within a piece."""
    p1, factor = along(w, e), np.exp(-shift)
    for k in range(out.size):
        out[k] = (s[k] - p * speed[k]) * factor + p1 * speed[k]


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
        least = -PARALLEL * total / r  # times |x_k|: slower ones move along the hyperplane
        for k in range(u.size):
            if u[k] * speed[k] < least * xn[k]:
                reach = max(0.0, u[k] * s[k])
                if reach < delta * (1.0 - SNAP * EPS) * abs(speed[k]):
                    delta, who, final = reach / abs(speed[k]), k, False
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
def _join_face(frozen, force, u, was, s, speed, r, who, noise, short):
    """Put the samples reached by the piece on the face: the one it ended at and those beside it.

    Two hyperplanes met at once differ by rounding. One that is near joins if the neuron was coming
    to it, or if the piece was too ``short`` to tell (or w = 0, where all are near).
    """
    xn, total = frozen.xn, frozen.total
    for k in range(u.size):
        if u[k] == 0 or xn[k] == 0.0:
            continue
        near = abs(s[k]) <= SNAP * noise * xn[k]
        coming = u[k] * speed[k] < -PARALLEL * total * xn[k] / r
        if k == who or (near and (coming or short or noise == 0.0)):
            if frozen.K.shape[0] > 0:
                add_sample(force, frozen, k, -slope_of(u[k], frozen.leak))
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
def _move_products(frozen, w, delta, speed, factor, kept, s):
    """Products with w = factor * (w before) + delta * e."""
    if kept:
        for k in range(s.size):
            s[k] = factor * s[k] + delta * speed[k]
    else:
        products(frozen, w, s)


@inlined
def _asymptote(why, t, size_log, p, a, J, r, side):
    """Rate and offset of log|w(t)| in the last piece: P e^{rt}, -p e^{-rt} or the part aside."""
    if why == GROWS:
        return r, size_log + np.log(growing_part(p, a, J)) - r * t
    if why == SHRINKS:
        return -r, size_log + np.log(-p) + r * t
    return 0.0, size_log + np.log(side)


@inlined
def _is_same(v, aim):
    """Whether two unit vectors differ by rounding alone."""
    gap = 0.0
    for i in range(v.size):
        gap = max(gap, abs(v[i] - aim[i]))
    return gap <= 1e-13


@inlined
def _limit_direction(why, e, rest, side, v):
    """Write the limit direction of a path into v: along or against e, or what stays aside."""
    for i in range(v.size):
        if why == RESTS:
            v[i] = rest[i] / side if side > 0.0 else 0.0
        else:
            v[i] = e[i] if why == GROWS else -e[i]


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


@inlined
def _come_to_rest(w, sa, a, size, size_log, times, nt, states, s, ready):
    """Write the state of a neuron on which nothing pulls at the times that are left."""
    for i in range(nt, times.size):
        _save(states, i, w, sa * a, size_log)
    if times.size > 0:
        for k in range(ready.s.size):
            ready.s[k] = s[k]
    return size_log + np.log(size) if size > 0.0 else -np.inf


@inner
def run(w, a, u, frozen, hold, times, states, goal, ready, log, found):
    """Follow one neuron from (w, a), |w|^2 + a^2 = 1, to the end or past the last time to save.

    Parameters
    ----------
    w, a : array (d,), overwritten, and float
    u : int8 array (n,), overwritten
        Sides of the hyperplanes: -1, 0 (on it), 1, or `UNKNOWN`. Read where <w, x_k> is lost in
        rounding (unknown: on it); on return the sides at the end.
    frozen, ready : Frozen, Ready
    hold : whether to stay at branches
    times, states : ascending times, and w, a, log norm at them (rows of d + 2), written
    goal : limit direction v (d,), written; the cosine with it whose time is asked for; what v is
        thought to be (d,), or an empty array
    log : array (most, 3), filled with events; no path has more of them, or more pieces
    found : array (8,), written
        A HIT of NaN needs a second run in which v is known.
    """
    X, total = frozen.X, frozen.total
    v, value, aim = goal
    kept, known = frozen.K.shape[0] > 0, aim.size > 0
    n, d = X.shape
    D, e, rest, out = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    s, speed, slope = np.empty(n), np.empty(n), np.empty(n)  # <w, x_k>, <e, x_k>, on the face
    branch = np.zeros(n, np.int64)
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
    G = _find_sides(frozen, w, noise, ready, u, s, mode)
    force = _first_force(frozen, ready)
    still = False
    if a == 0.0:  # a' = G(w) gives the outer weight its sign, or w is at rest
        still = abs(G) <= PARALLEL * total * size
        sa = 1.0 if G > 0.0 else -1.0
    end, growth, offset = UNRESOLVED, 0.0, np.nan
    while found[EVENTS] < log.shape[0] and pieces < log.shape[0]:
        r, nf = 0.0, np.int64(0)
        if not still:
            nf = _samples_on_face(u, face)
            agreed = _find_gradient(frozen, force, sa, hold, u, face, nf, slope, branch, D)
            _note_face(t, hold, u, was, mode, branch, face, nf, log, found)
            if not agreed:
                break
            r = np.sqrt(along(D, D))
        size = np.sqrt(along(w, w))
        if r <= PARALLEL * total:  # nothing pulls: stays where it is
            end = _rests(frozen.leak, u)
            offset = _come_to_rest(w, sa, a, size, size_log, times, nt, states, s, ready)
            _limit_direction(RESTS, e, w, size, v)
            if pieces == 0 or (known and np.isnan(hit)):
                hit = t
            if a == 0.0:
                sa = 0.0
            break
        pieces += 1
        p, J, radial = _split(w, sa, D, r, gap, noise, e, rest)
        _find_speeds(frozen, force, sa / r, u, face, nf, slope, e, speed)
        delta, why, who, final = _end_of_piece(u, s, speed, frozen.xn, total, r, p, J, radial)
        a1 = 0.0 if who < 0 and why == SIGN else outer_after(p, a, J, delta)
        dt = np.inf if final else time_to(p, a, J, r, delta, a1)
        while nt < times.size and times[nt] <= t + dt:
            at1, shift = state_after(w, rest, e, p, a, J, r, times[nt] - t, out)
            _save(states, nt, out, sa * at1, size_log + shift)
            nt += 1
            if kept and nt == times.size:
                _save_products(s, speed, p, e, out, shift, ready.s)
        if final:
            end = why
            side = np.sqrt(along(rest, rest))
            growth, offset = _asymptote(why, t, size_log, p, a, J, r, side)
            _limit_direction(why, e, rest, side, v)
            if known or along(w, v) < value * size or size == 0.0 or pieces == 1:
                hit = _update_hit(hit, t, w, e, v, value, p, a, J, r, delta)
            break
        if nt == times.size and nt > 0:
            break
        if known:
            hit = _update_hit(hit, t, w, e, aim, value, p, a, J, r, delta)
        # move to the end of the piece
        a = a1
        t = last = t + dt
        short = delta <= SNAP * noise
        noise += (8.0 if kept else 4.0) * EPS * (size + delta)
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
        # back to norm 1; the conserved a^2 - |w|^2 scales with it
        size = np.sqrt(along(w, w) + a * a)
        for i in range(d):
            w[i] /= size
        a /= size
        noise /= size
        gap /= size * size
        size_log += np.log(size)
        renewed = pieces % _RENEWED == 0 or why == ORIGIN
        _move_products(frozen, w, delta / size, speed, 1.0 / size, kept and not renewed, s)
        if not passed:
            _join_face(frozen, force, u, was, s, speed, r, who, noise, short)
        if kept and renewed:
            renew(force, frozen, u)
    found[END], found[GROWTH], found[SIDE], found[OFFSET] = end, growth, sa, offset
    found[HIT] = hit if not known or _is_same(v, aim) else np.nan
    found[PIECES], found[LAST] = pieces, last
    found[EVENTS] = min(found[EVENTS], float(log.shape[0]))
