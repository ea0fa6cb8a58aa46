r"""A neuron with K outputs under a constant pull C (n, K): exact pieces, joined at its kinks.

On a face (sides U of the hyperplanes, 0 where the neuron slides) the neuron obeys

.. math:: w' = P M a, \quad a' = M^\top P w, \qquad M = \sum_{U_k \ne 0} \phi'_{U_k} x_k c_k^\top

with P the projection off the samples it slides on. With the singular value decomposition
:math:`P M = \sum_i s_i l_i r_i^\top` every linear function of (w, a) is

.. math:: A + \sum_i B_i e^{s_i t} + D_i e^{-s_i t},

and every event is a change of sign of such a function: of <w, x_k> (it crosses, or slides when the
other side pushes back), and of the slope that holds it on a kink, when that leaves [leak, 1]:
the slope of a sliding sample i is :math:`r_i / \langle c_i, a\rangle` with r the solution of
:math:`\langle x_i, M a + \sum_j r_j x_j\rangle = 0`.
"""

import math
from typing import NamedTuple

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.codes import GROWS, RESTS, SHRINKS, STILL, UNRESOLVED


class Pull(NamedTuple):
    """What pulls: samples, the pull on each, and the activation."""

    X: np.ndarray  # (n, d)
    C: np.ndarray  # (n, K)
    norms: np.ndarray  # |x_k|
    leak: float


class Modes(NamedTuple):
    """A neuron in the singular vectors of P M: growing, falling and constant parts."""

    L: np.ndarray  # (d, r)
    R: np.ndarray  # (r, K)
    gp: np.ndarray  # (r,) of e^{s t}
    gm: np.ndarray  # (r,) of e^{-s t}
    w0: np.ndarray
    a0: np.ndarray


_TINY = 1e-14  # products below this times |x||z| are zero
_ROUNDING = 1e-13  # of a sum of terms, relative to their moduli
_NONE = 1e-12  # share of a neuron below which it has no growing part
_MARCH = 20000  # looks ahead for the next event
_AHEAD = 4.0  # the first look, in times between the last two events
_FRESH = 64  # changes of sides after which M is summed up anew


@njit(cache=True)
def sliding_basis(X, U, Q):
    """Orthonormal rows of Q for the samples with U = 0; how many, by Gram-Schmidt done twice."""
    n, d = X.shape
    rank = 0
    for k in range(n):
        if U[k] != 0:
            continue
        size = 0.0
        for i in range(d):
            Q[rank, i] = X[k, i]
            size += X[k, i] ** 2
        for _ in range(2):
            for q in range(rank):
                along = 0.0
                for i in range(d):
                    along += Q[q, i] * Q[rank, i]
                for i in range(d):
                    Q[rank, i] -= along * Q[q, i]
        left = 0.0
        for i in range(d):
            left += Q[rank, i] ** 2
        if left > 1e-20 * size and size > 0.0:
            left = math.sqrt(left)
            for i in range(d):
                Q[rank, i] /= left
            rank += 1
            if rank == d:
                return rank
    return rank


@njit(cache=True)
def slope_of(side, leak):
    """phi' on a side, 0 for a sample that is slid on, which is left out of M."""
    if side == 0:
        return 0.0
    return 1.0 if side > 0 else leak


@njit(cache=True)
def cone_matrix(X, C, U, leak, M):
    """M = sum_k slope_k x_k c_k^T over samples that are not slid on."""
    n, K = C.shape
    sloped = np.empty((n, K))
    for k in range(n):
        slope = slope_of(U[k], leak)
        for c in range(K):
            sloped[k, c] = slope * C[k, c]
    M[:, :] = np.dot(X.T, sloped)


@njit(cache=True)
def change_side(pull, U, k, side, M):
    """Put a neuron on another side of sample k: M changes by a multiple of x_k c_k^T."""
    X, C = pull.X, pull.C
    change = slope_of(side, pull.leak) - slope_of(U[k], pull.leak)
    U[k] = side
    if change != 0.0:
        for i in range(M.shape[0]):
            x = change * X[k, i]
            for c in range(M.shape[1]):
                M[i, c] += x * C[k, c]


@njit(cache=True)
def project_off(Q, rank, w):
    """Remove from w its part along the first ``rank`` rows of Q."""
    for q in range(rank):
        along = 0.0
        for i in range(w.size):
            along += Q[q, i] * w[i]
        for i in range(w.size):
            w[i] -= along * Q[q, i]


@njit(cache=True)
def growths(s, t, up, down):
    """Factors e^{s_i t} and e^{-s_i t} of the terms, times e^{-s_0 t}; returns e^{-s_0 t}."""
    for i in range(s.size):
        up[i], down[i] = math.exp((s[i] - s[0]) * t), math.exp(-(s[i] + s[0]) * t)
    return math.exp(-s[0] * t)


@njit(cache=True)
def term_values(coefs, s, t, out, slopes):
    """Value and slope in t of each function, times e^{-s_0 t}; coefs (F, 1 + 2r) are A, B, D."""
    r = s.size
    up, down = np.empty(r), np.empty(r)
    still = growths(s, t, up, down)
    for f in range(coefs.shape[0]):
        value, slope = coefs[f, 0] * still, 0.0
        for i in range(r):
            grow, fall = coefs[f, 1 + i] * up[i], coefs[f, 1 + r + i] * down[i]
            value += grow + fall
            slope += s[i] * (grow - fall)
        out[f], slopes[f] = value, slope


@njit(cache=True)
def one_value(coef, s, t):
    """Value and slope in t of one function, times e^{-s_0 t}."""
    r, top = s.size, s[0]
    value, slope = coef[0] * math.exp(-top * t), 0.0
    for i in range(r):
        grow = coef[1 + i] * math.exp((s[i] - top) * t)
        fall = coef[1 + r + i] * math.exp(-(s[i] + top) * t)
        value += grow + fall
        slope += s[i] * (grow - fall)
    return value, slope


@njit(cache=True)
def positive_place(coef, s, low, high):
    """A place at which a function that rises from 0 at ``low`` is positive, ``low`` if none is.

    By bisection towards its highest place before ``high``, where it is negative.
    """
    for _ in range(60):
        middle = 0.5 * (low + high)
        value, slope = one_value(coef, s, middle)
        if value > 0.0:
            return middle
        if slope > 0.0:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True)
def first_zero(coef, s, low, high):
    """Where a function that is negative at ``high`` and not at ``low`` (or just so) passes 0.

    A function that rises from 0, up to rounding, has just left it: its zero is the next one; one
    that another event has made negative is past its zero. By Newton's method, whose steps also
    tighten the bracket from both sides, and bisection where they leave it.
    """
    value, slope = one_value(coef, s, low)
    if value <= 0.0 and slope > 0.0 and -value <= _ROUNDING * np.sum(np.abs(coef)):
        low = positive_place(coef, s, low, high)
        value = one_value(coef, s, low)[0]
    if value <= 0.0:
        return low
    theta = 0.5 * (low + high)
    for _ in range(200):
        if not low < theta < high:
            theta = 0.5 * (low + high)
        if theta <= low or theta >= high:
            break
        value, slope = one_value(coef, s, theta)
        if value > 0.0:
            low = theta
        else:
            high = theta
        if slope >= 0.0:
            continue
        step = -value / slope
        near = max(1e-3 * abs(step), 1e-16 * abs(theta))
        theta += step
        for side in (theta - near, theta + near):
            if low < side < high:
                if one_value(coef, s, side)[0] > 0.0:
                    low = side
                else:
                    high = side
    return high


@njit(cache=True)
def least_place(coef, s, low, high):
    """Where a function whose slope is negative at ``low`` and positive at ``high`` is least."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        if one_value(coef, s, middle)[1] < 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@njit(cache=True)
def next_event(coefs, sizes, s, until, spacing):
    """(function, time) of the first that becomes negative before ``until``; -1 if none does.

    -2 where that could not be decided. Looks ahead in steps short beside the times in which the
    terms change, and at first in times ``spacing`` between events; between two looks a function may
    dip below 0 once, which its slope shows.
    """
    F = coefs.shape[0]
    now, slope = np.empty(F), np.empty(F)
    then, tilt = np.empty(F), np.empty(F)
    if F == 0:
        return -1, until
    t, longest = 0.0, 0.5 / s[0]
    dt = min(longest, _AHEAD * spacing) if spacing > 0.0 else longest
    term_values(coefs, s, t, now, slope)
    for _ in range(_MARCH):
        ahead = min(t + dt, until)
        term_values(coefs, s, ahead, then, tilt)
        best, when = -1, ahead
        for f in range(F):
            tol = _TINY * sizes[f]
            high = ahead
            if then[f] < -tol:
                if best >= 0:
                    if one_value(coefs[f], s, when)[0] > 0.0:
                        continue  # later than what was found
                    high = when
            elif slope[f] < 0.0 and tilt[f] > 0.0:
                high = least_place(coefs[f], s, t, ahead)
                if one_value(coefs[f], s, high)[0] >= -tol:
                    continue
            else:
                continue
            zero = first_zero(coefs[f], s, t, high)
            if zero < when or best < 0:
                best, when = f, zero
        if best >= 0:
            return best, when
        if ahead >= until:
            return -1, until
        t = ahead
        if until == np.inf and all_safe(coefs, sizes, s, t):
            return -1, until
        if t * s[0] > 40.0:
            dt *= 1.2
        elif dt < longest:
            dt = min(2.0 * dt, longest)
        for f in range(F):
            now[f], slope[f] = then[f], tilt[f]
    return -2, until


@njit(cache=True)
def all_safe(coefs, sizes, s, t):
    """Whether the fastest terms outweigh all others in every function, now and hence for ever."""
    r, top = s.size, s[0]
    up, down = np.empty(r), np.empty(r)
    still = growths(s, t, up, down)
    for f in range(coefs.shape[0]):
        lead, rest = 0.0, abs(coefs[f, 0]) * still
        for i in range(r):
            grow = coefs[f, 1 + i] * up[i]
            if s[i] >= top * (1.0 - 1e-12):
                lead += grow
            else:
                rest += abs(grow)
            rest += abs(coefs[f, 1 + r + i]) * down[i]
        if not (lead > rest or (lead >= -_TINY * sizes[f] and rest <= _TINY * sizes[f])):
            return False
    return True


@njit(cache=True)
def event_terms(pull, U, M, modes, coefs, sizes, which, what):
    """Functions that become negative at an event; ``what`` 0: cross, 1: exit down, 2: exit up.

    Returns their number.
    """
    X, C, norms, leak = pull
    L, R, gp, gm, w0, a0 = modes
    n, K, r = X.shape[0], C.shape[1], gp.size
    slid = np.flatnonzero(U == 0)
    still, along = np.dot(X, w0), np.dot(X, L)
    F = 0
    for k in range(n):
        if U[k] == 0:
            continue
        side = float(U[k])
        coefs[F, 0] = side * still[k]
        for q in range(r):
            coefs[F, 1 + q] = side * along[k, q] * gp[q]
            coefs[F, 1 + r + q] = side * along[k, q] * gm[q]
        sizes[F], which[F], what[F] = norms[k], k, 0
        F += 1
    if slid.size == 0:
        return F
    Xs = X[slid]
    hold = -np.linalg.lstsq(Xs @ Xs.T, Xs @ M)[0]  # r = hold a
    for j in range(slid.size):
        k = slid[j]
        for kind in range(1, 3):
            # slope * <c_k, a> = r with <c_k, a> < 0: leak <c, a> - r >= 0 and r - <c, a> >= 0
            sign, factor = (-1.0, leak) if kind == 1 else (1.0, 1.0)
            total = 0.0
            for c in range(K):
                total += sign * (hold[j, c] - factor * C[k, c]) * a0[c]
            coefs[F, 0] = total
            for q in range(r):
                total = 0.0
                for c in range(K):
                    total += sign * (hold[j, c] - factor * C[k, c]) * R[q, c]
                coefs[F, 1 + q] = total * gp[q]
                coefs[F, 1 + r + q] = -total * gm[q]
            size = 0.0
            for c in range(K):
                size += C[k, c] ** 2 + hold[j, c] ** 2
            sizes[F], which[F], what[F] = math.sqrt(size), k, kind
            F += 1
    return F


@njit(cache=True)
def crosses(pull, U, k, Q, rank, Mp, a):
    """Whether a neuron on the hyperplane of x_k goes through: the other side does not push back."""
    X, C, leak = pull.X, pull.C, pull.leak
    d, K = Mp.shape
    x = X[k].copy()
    project_off(Q, rank, x)
    free, full, speed, drive = 0.0, 0.0, 0.0, 0.0
    for i in range(d):
        free += x[i] ** 2
        full += X[k, i] ** 2
        for c in range(K):
            speed += X[k, i] * Mp[i, c] * a[c]
    if free <= 1e-20 * full:
        return False
    for c in range(K):
        drive += C[k, c] * a[c]
    change = (leak - 1.0) if U[k] > 0 else (1.0 - leak)
    return -U[k] * (speed + change * drive * free) > 0.0


@njit(cache=True)
def columns_off(Q, rank, M):
    """The columns of M (d, K) off the first rows of Q, which are orthonormal."""
    d, K = M.shape
    off = M.copy()
    for q in range(rank):
        for c in range(K):
            along = 0.0
            for i in range(d):
                along += Q[q, i] * M[i, c]
            for i in range(d):
                off[i, c] -= along * Q[q, i]
    return off


@njit(cache=True)
def ride(w, a, U, pull, floor, until, most, z):
    """Move one neuron (w, a) on the sides U for a time under the pull C, in place.

    Returns (end, rate, log, last, crossings, slides): how it ends (`codes.PathEnd`), the slope of
    log|z| for ever and the limit of log|z| less that times t if ``until`` is infinite, else 0 and
    log|z|; time of the last event; numbers of events. w and a are left with |z| = 1, and ``z``
    gets what they were at the last event, up to a factor.
    """
    X, C, leak = pull.X, pull.C, pull.leak
    n, d = X.shape
    K = C.shape[1]
    M, Q = np.empty((d, K)), np.empty((d, d))
    r_most = min(d, K)
    most_terms = 2 * n
    coefs, sizes = np.empty((most_terms, 1 + 2 * r_most)), np.empty(most_terms)
    which, what = np.empty(most_terms, dtype=np.int64), np.empty(most_terms, dtype=np.int64)
    t, log, last, crossings, slides = 0.0, 0.0, 0.0, 0, 0
    spacing = 0.0
    z[:d], z[d:] = w, a
    for turn in range(most):
        rank = sliding_basis(X, U, Q)
        project_off(Q, rank, w)
        size = math.sqrt(np.sum(w * w) + np.sum(a * a))
        if size == 0.0:
            return RESTS, 0.0, log, last, crossings, slides
        w /= size
        a /= size
        log += math.log(size)
        if turn % _FRESH == 0:
            cone_matrix(X, C, U, leak, M)
        Mp = columns_off(Q, rank, M)
        L, s, R = np.linalg.svd(Mp, False)
        if not s[0] > floor:
            dead = leak == 0.0 and not np.any(U > 0)
            return (STILL if dead else RESTS), 0.0, log, last, crossings, slides
        r = 1
        while r < s.size and s[r] > 1e-13 * s[0]:
            r += 1
        s, L = s[:r].copy(), np.ascontiguousarray(L[:, :r])
        gp, gm = np.empty(r), np.empty(r)
        w0, a0 = w.copy(), a.copy()
        for q in range(r):
            along, across = 0.0, 0.0
            for i in range(d):
                along += L[i, q] * w[i]
            for c in range(K):
                across += R[q, c] * a[c]
            gp[q], gm[q] = 0.5 * (along + across), 0.5 * (along - across)
            for i in range(d):
                w0[i] -= along * L[i, q]
            for c in range(K):
                a0[c] -= across * R[q, c]
        lead = 1
        while lead < r and s[lead] >= s[0] * (1.0 - 1e-12):
            lead += 1
        growing = math.sqrt(np.sum(gp[:lead] ** 2))
        if growing <= _NONE:
            gp[:lead] = 0.0
        modes = Modes(L, R, gp, gm, w0, a0)
        F = event_terms(pull, U, M, modes, coefs, sizes, which, what)
        f, when = next_event(coefs[:F, : 1 + 2 * r], sizes[:F], s, until - t, spacing)
        if f == -2:
            return UNRESOLVED, 0.0, log, last, crossings, slides
        if f == -1 and until == np.inf:
            if growing <= _NONE:
                rest = math.sqrt(np.sum(w0 * w0) + np.sum(a0 * a0) + np.sum(gp * gp))
                if rest <= 1e-7:  # it shrinks along a ray
                    return SHRINKS, -s[0], log + s[0] * t, last, crossings, slides
                return RESTS, 0.0, log, last, crossings, slides
            w[:], a[:] = 0.0, 0.0
            for q in range(lead):
                w += gp[q] * L[:, q]
                a += gp[q] * R[q]
            size = math.sqrt(np.sum(w * w) + np.sum(a * a))
            w /= size
            a /= size
            return GROWS, s[0], log + math.log(size) - s[0] * t, last, crossings, slides
        w[:], a[:] = w0 * math.exp(-s[0] * when), a0 * math.exp(-s[0] * when)
        for q in range(r):  # times e^{-s_0 t}, which the logarithm holds
            up, down = math.exp((s[q] - s[0]) * when), math.exp(-(s[q] + s[0]) * when)
            w += (gp[q] * up + gm[q] * down) * L[:, q]
            a += (gp[q] * up - gm[q] * down) * R[q]
        log += s[0] * when
        t += when
        if f == -1:
            size = math.sqrt(np.sum(w * w) + np.sum(a * a))
            w /= size
            a /= size
            return GROWS, 0.0, log + math.log(size), last, crossings, slides
        k, last, spacing = which[f], t, when
        z[:d], z[d:] = w, a
        if what[f] == 1:
            change_side(pull, U, k, -1, M)
        elif what[f] == 2:
            change_side(pull, U, k, 1, M)
        elif crosses(pull, U, k, Q, rank, Mp, a):
            change_side(pull, U, k, -U[k], M)
            crossings += 1
        else:
            change_side(pull, U, k, 0, M)
            slides += 1
    return UNRESOLVED, 0.0, log, last, crossings, slides


@njit(cache=True)
def ride_all(W, A, U, pull, floor, until, most, ends, numbers, counts, Z):
    """`ride` for every row of W, A, U, in place; numbers (m, 3) are rate, log and last event.

    Rows of Z (m, d + K) get the neurons at their last events.
    """
    for j in range(W.shape[0]):
        end, rate, log, last, crossings, slides = ride(
            W[j], A[j], U[j], pull, floor, until, most, Z[j]
        )
        ends[j] = end
        numbers[j, 0], numbers[j, 1], numbers[j, 2] = rate, log, last
        counts[j, 0], counts[j, 1] = crossings, slides
