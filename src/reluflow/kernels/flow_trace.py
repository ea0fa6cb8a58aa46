r"""Neurons that meet kinks within a step, carried through it under the sampled pull.

A neuron feels the others only through the pull c(x), x in [0, 1], known within the step as a
Chebyshev series. So each neuron that meets a kink is integrated alone from there,

.. math:: z' = M_u(c(x)) z,

with u settled anew at each kink (`flow_arrival`), by steps of the same pair as `flow_step`, in the
frame of the force at the start of each, to the end of the step. What it adds to the outputs
by no longer moving with its cone,

.. math:: \Delta f_k(x) = e^{2 ls_j} [a s_k \langle w, x_k \rangle]_{traced} - [\dots]_{assumed},

is left in ``extra`` at the times of the stages and nodes, for the step to be taken again with it.
"""

from typing import NamedTuple

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.flow_arrival import arrive, empty_log, flush
from reluflow.kernels.flow_crossing import first_event, first_exit
from reluflow.kernels.flow_face import face_force, has_face
from reluflow.kernels.flow_field import pull_at
from reluflow.kernels.flow_members import path_of
from reluflow.kernels.flow_path import coefficients, normalise, point_in_frame, turn_one
from reluflow.kernels.flow_step import error_from
from reluflow.kernels.flow_types import Rules
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import dot, norm

END, LAST = 13, 16  # stages 1 .. 12 make a step, 13 .. 15 its dense output
ANEW = 64  # changes of pattern after which a force is computed anew
FAINT = 1e-10  # of the total pull: so is a force below it
UNDECIDED = 16  # arrivals in a row at one time, after which the tolerance of signs is doubled


class Pulls(NamedTuple):
    """The pull within a step and, for a pattern without faces, the force: Chebyshev series."""

    cn: np.ndarray  # (terms, n)
    Dn: np.ndarray  # (terms, d): sum_k slope_k cn_k x_k


class Part(NamedTuple):
    """Part of a step over which one neuron is carried: where, how long, and in which frame."""

    theta: float
    step: float  # both as parts of the step
    h: float  # length of the whole step
    unit: np.ndarray
    rate: float


@inner
def add_outputs(data, u, z, weight, out):
    """Add weight a phi(<w, x_k>), slopes from the pattern, to out."""
    d = data.X.shape[1]
    for k in range(u.size):
        if u[k] == 0 or (u[k] < 0 and data.leak == 0.0):
            continue
        s = dot(data.X, k, z)
        out[k] += weight * z[d] * s * (1.0 if u[k] > 0 else data.leak)


@inner
def force_series(data, u, pulls):
    """Fill Dn for the pattern u."""
    n, d = data.X.shape
    cn, Dn = pulls
    for i in range(cn.shape[0]):
        for e in range(d):
            Dn[i, e] = 0.0
    for k in range(n):
        add_to_series(data, k, 1.0 if u[k] > 0 else data.leak, pulls)


@inner
def add_to_series(data, k, slope, pulls):
    """Add the pull of sample k, times a slope, to the force."""
    cn, Dn = pulls
    if slope == 0.0:
        return
    for i in range(cn.shape[0]):
        s = slope * cn[i, k]
        for e in range(Dn.shape[1]):
            Dn[i, e] += s * data.X[k, e]


@inner
def follow_pattern(data, u, now, pulls, stale):
    """Bring Dn from the pattern ``now`` to u; returns how many changes it has in it since new.

    Computed anew after some changes, and where what is left of it may be rounding: the force on a
    dead neuron must be 0.
    """
    faces = has_face(u)
    for k in range(u.size):
        if u[k] != now[k]:
            if stale < ANEW and not faces:
                change = (1.0 if u[k] > 0 else data.leak) - (1.0 if now[k] > 0 else data.leak)
                add_to_series(data, k, change, pulls)
            stale = stale + 1 if now[k] != 0 else ANEW
            now[k] = u[k]
    if faces:  # then forces are not read off the series
        return ANEW
    total = 0.0
    for k in range(u.size):
        total += abs(pulls.cn[0, k]) * data.norms[k]
    if stale >= ANEW or norm(pulls.Dn[0]) <= FAINT * total:
        force_series(data, u, pulls)
        return 0
    return stale


@inner
def force_at(data, u, pulls, theta, faces, c, D, tau):
    """D_u at theta, projected off the faces if there are any; c and tau are scratch then."""
    if faces:
        pull_at(pulls.cn, theta, c)
        face_force(data, u, c, D, tau)
    else:
        pull_at(pulls.Dn, theta, D)


@inner
def stages(data, method, pulls, u, z, part, first, last, K, v):
    """Stages first .. last - 1 of one neuron's step over ``part`` from z, as in `flow_step`.

    v ends at the last one. K[0] is 0.
    """
    A, times = method.A, method.c
    theta, step, h, unit, rate = part
    n, d = data.X.shape
    D, tau, c, y = np.empty(d), np.empty(n), np.empty(n), np.empty(d + 1)
    faces = has_face(u)
    for s in range(first, last):
        for e in range(d + 1):
            total = 0.0
            for p in range(1, s):
                total += A[s, p] * K[p, e]
            v[e] = z[e] + step * h * total
        up = np.exp(rate * times[s] * step * h)
        ch, sh = 0.5 * (up + 1.0 / up), 0.5 * (up - 1.0 / up)
        for e in range(d + 1):
            y[e] = v[e]
        turn_one(y, unit, ch, sh)
        force_at(data, u, pulls, theta + times[s] * step, faces, c, D, tau)
        along = 0.0
        for e in range(d):
            force = D[e] - rate * unit[e]
            K[s, e] = y[d] * force
            along += y[e] * force
        K[s, d] = along
        turn_one(K[s], unit, ch, -sh)


@inner
def error_of(method, K, size, unit, grow, end):
    """Error estimate of a step of the given size, relative to |end|."""
    ch, sh = np.cosh(grow), np.sinh(grow)
    e5, e3 = np.empty(end.size), np.empty(end.size)
    for e in range(end.size):
        e5[e], e3[e] = 0.0, 0.0
        for p in range(13):
            e5[e] += method.E5[p] * K[p, e]
            e3[e] += method.E3[p] * K[p, e]
    turn_one(e5, unit, ch, sh)
    turn_one(e3, unit, ch, sh)
    reached = norm(end)
    if reached == 0.0:  # a neuron that is zero stays so
        return 0.0
    return error_from(size, norm(e5) ** 2, norm(e3) ** 2) / reached


@inner
def carry(data, method, z, u, theta, hi, h, pulls, rules, grown, weight, extra):
    """Carry a neuron from theta to its next kink, or to hi, of a step of size h.

    Returns where it is, the sample it meets (-1: a zero of a, -2: none), and the log growth since
    ``grown`` was 0. With weight > 0 the neuron's outputs (times weight) at ``method.times`` are
    added to ``extra``.
    """
    n, d = data.X.shape
    K, F = np.empty((method.c.size, d + 1)), np.empty((8, d + 1))
    c, tau, unit = np.empty(n), np.empty(n), np.empty(d)
    y, v, new = np.empty(d + 1), np.empty(d + 1), np.empty(d + 1)
    for e in range(d + 1):
        K[0, e] = 0.0
    step, fresh, rate, faces = hi - theta, True, 0.0, has_face(u)
    while theta < hi:
        if fresh:  # not after a rejected step: its frame is that of the same start
            force_at(data, u, pulls, theta, faces, c, unit, tau)
            rate = norm(unit)
            for e in range(d):
                unit[e] /= rate if rate > 0.0 else 1.0
        step = min(step, hi - theta)
        last = theta + step >= hi
        grow = rate * step * h
        part = Part(theta, step, h, unit, rate)
        stages(data, method, pulls, u, z, part, 1, END, K, v)
        for e in range(d + 1):
            new[e] = v[e]
        turn_one(new, unit, np.cosh(grow), np.sinh(grow))
        error = error_of(method, K, step * h, unit, grow, new) / rules.tol
        fresh = not (error > 1.0 and step > 1e-13)
        if not fresh:
            step *= max(0.2, 0.9 * error ** (-0.125))
            continue
        stages(data, method, pulls, u, z, part, END, LAST, K, y)
        coefficients(z, v, K, method.D, step * h, F)
        x, hit = first_event(data, u, F, unit, grow, faces, rules.noise)
        if faces:
            out, k = first_exit(data, u, pulls.cn, theta, theta + step, rules.floor)
            if out <= 1.0 and (out - theta) / step < x:
                x, hit = (out - theta) / step, k
        if weight > 0.0:
            far = theta + min(x, 1.0) * step
            for s in range(method.times.size):
                when = method.times[s]
                if theta < when <= far or (last and hit == -2 and when > theta):
                    point_in_frame(F, unit, grow, (when - theta) / step, y)
                    add_outputs(data, u, y, weight * np.exp(2.0 * grown), extra[s])
        if hit != -2:
            point_in_frame(F, unit, grow, x, z)
            return min(theta + x * step, hi), hit, grown + normalise(z)
        for e in range(d + 1):
            z[e] = new[e]
        theta = hi if last else theta + step
        grown += normalise(z)
    return theta, -2, grown


@njit(cache=True)
def trace_some(data, method, cones, frame, dense, members, meetings, which, hi, rules, out, extra):
    """Carry the listed neurons from their first events (``meetings``) to theta hi.

    One that has been carried past its first event before goes on from there (``out.past``).
    ``out`` receives unit vectors, log-scales and patterns (rows follow ``which``), and the events.
    If ``extra`` (times, n) has rows, it receives what they add to f by leaving their cones: traced
    minus assumed outputs at ``method.times``.
    """
    n, width = cones.U.shape[1], out.Z.shape[1]
    gid, ls, record = members.gid, members.ls, extra.shape[0] > 0
    log, c = empty_log(n), np.empty(n)
    path, z, now = np.empty((8, width)), np.empty(width), np.zeros(n, np.int8)
    pulls, stale = Pulls(dense.cn, np.empty((dense.cn.shape[0], width - 1))), ANEW
    for i in range(which.size):
        j = which[i]
        g, lo = gid[j], min(meetings.theta[j], hi)
        unit, grow, u = frame.unit[g], frame.rate[g] * frame.h, out.V[i]
        again = out.past[i] >= 0.0
        if again:
            lo = out.past[i]
        else:
            for k in range(n):
                u[k] = cones.U[g, k]
            path_of(cones, members, dense.F, j, path)
            point_in_frame(path, unit, grow, lo, z)
            for e in range(width):
                out.Z[i, e] = z[e]
            out.ls[i] = ls[j] + normalise(out.Z[i])
            if meetings.theta[j] > hi:
                continue
        out.past[i] = hi
        weight = np.exp(2.0 * out.ls[i]) if record else 0.0
        if record:
            if weight == 0.0:  # too small for any output
                continue
            for s in range(method.times.size):
                if method.times[s] > lo:
                    point_in_frame(path, unit, grow, method.times[s], z)
                    add_outputs(data, cones.U[g], z, -np.exp(2.0 * ls[j]), extra[s])
        log[0, 0] = 0
        grown, hit, still = 0.0, meetings.sample[j], 0
        for _ in range(50 * (n + 4) + 1):
            if not again:  # it stands on a kink
                pull_at(dense.cn, lo, c)
                arrive(data, u, out.Z[i], c, hit, frame.start + lo * frame.h, log, rules.policy)
            again = False
            # where kinks meet in one point no side may last: in the end the signs are let go
            noise = rules.noise * 2.0 ** max(0, still - UNDECIDED)
            held = Rules(rules.tol, noise, rules.floor, rules.policy)
            stale = follow_pattern(data, u, now, pulls, stale)
            before = lo
            lo, hit, grown = carry(
                data, method, out.Z[i], u, lo, hi, frame.h, pulls, held, grown, weight, extra
            )
            if hit == -2:
                break
            still = still + 1 if lo <= before else 0
        out.ls[i] += grown
        flush(log, j, out.events)
