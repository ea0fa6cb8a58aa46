"""Neurons that meet kinks within a step, carried through it under the sampled pull."""

import numpy as np
from numba import njit

from reluflow.kernels.flow_arrival import arrive
from reluflow.kernels.flow_crossing import first_event, first_exit
from reluflow.kernels.flow_dense import coefficients, point
from reluflow.kernels.flow_events import empty_log, flush
from reluflow.kernels.flow_face import face_force, has_face
from reluflow.kernels.flow_members import path_of
from reluflow.kernels.flow_pull import pull_at
from reluflow.kernels.flow_step import mixed
from reluflow.kernels.flow_vector import normalise, turn_one
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import dot, norm

PARTS = np.array([1, 13, 16])  # first stages of a step and of its dense output, and their number
UNDECIDED = 16  # arrivals in a row at one time, after which the tolerance of signs is doubled


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
def stages(data, A, times, u, z, theta, step, h, cn, unit, rate, first, last, K, v):
    """Stages first .. last - 1 of a step by step * h from z at theta, in the frame exp(M t) of the
    force rate * unit (as in flow_step); v ends at the last one. K[0] is 0.
    """
    n, d = data.X.shape
    D, tau, c, y = np.empty(d), np.empty(n), np.empty(n), np.empty(d + 1)
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
        pull_at(cn, theta + times[s] * step, c)
        face_force(data, u, c, D, tau)
        along = 0.0
        for e in range(d):
            force = D[e] - rate * unit[e]
            K[s, e] = y[d] * force
            along += y[e] * force
        K[s, d] = along
        turn_one(K[s], unit, ch, -sh)


@inner
def error_of(E5, E3, K, size, unit, grow, end):
    """Error estimate of a step of the given size, relative to |end|."""
    ch, sh = np.cosh(grow), np.sinh(grow)
    e5, e3 = np.empty(end.size), np.empty(end.size)
    for e in range(end.size):
        e5[e], e3[e] = 0.0, 0.0
        for p in range(13):
            e5[e] += E5[p] * K[p, e]
            e3[e] += E3[p] * K[p, e]
    turn_one(e5, unit, ch, sh)
    turn_one(e3, unit, ch, sh)
    reached = norm(end)
    if reached == 0.0:  # a neuron that is zero stays so
        return 0.0
    return mixed(size, norm(e5) ** 2, norm(e3) ** 2) / reached


@inner
def along(path, unit, grow, theta, z):
    """The point at theta of a path (8, d + 1) given in the frame of a force."""
    point(path, theta, z)
    up = np.exp(grow * theta)
    turn_one(z, unit, 0.5 * (up + 1.0 / up), 0.5 * (up - 1.0 / up))


@inner
def carry(data, method, z, u, theta, hi, h, cn, rules, noise, grown, weight, extra):
    """Carry a neuron from theta to its next kink, or to hi, of a step of size h.

    A sign is lost only beyond ``noise`` |w||x_k|.

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
    step, fresh, rate = hi - theta, True, 0.0
    while theta < hi:
        if fresh:
            pull_at(cn, theta, c)
            face_force(data, u, c, unit, tau)
            rate = norm(unit)
            for e in range(d):
                unit[e] /= rate if rate > 0.0 else 1.0
        step = min(step, hi - theta)
        last = theta + step >= hi
        grow = rate * step * h
        stages(
            data, method.A, method.c, u, z, theta, step, h, cn, unit, rate, PARTS[0], PARTS[1], K, v
        )
        for e in range(d + 1):
            new[e] = v[e]
        turn_one(new, unit, np.cosh(grow), np.sinh(grow))
        error = error_of(method.E5, method.E3, K, step * h, unit, grow, new) / rules.tol
        fresh = not (error > 1.0 and step > 1e-13)
        if not fresh:
            step *= max(0.2, 0.9 * error ** (-0.125))
            continue
        stages(
            data, method.A, method.c, u, z, theta, step, h, cn, unit, rate, PARTS[1], PARTS[2], K, y
        )
        coefficients(z, v, K, method.D, step * h, F)
        faces = has_face(u)
        x, hit = first_event(data, u, F, unit, grow, faces, noise)
        if faces:
            out, k = first_exit(data, u, cn, theta, theta + step, rules.floor)
            if out <= 1.0 and (out - theta) / step < x:
                x, hit = (out - theta) / step, k
        if weight > 0.0:
            far = theta + min(x, 1.0) * step
            for s in range(method.times.size):
                when = method.times[s]
                if theta < when <= far or (last and hit == -2 and when > theta):
                    along(F, unit, grow, (when - theta) / step, y)
                    add_outputs(data, u, y, weight * np.exp(2.0 * grown), extra[s])
        if hit != -2:
            along(F, unit, grow, x, z)
            return min(theta + x * step, hi), hit, grown + normalise(z)
        for e in range(d + 1):
            z[e] = new[e]
        theta = hi if last else theta + step
        grown += normalise(z)
    return theta, -2, grown


@njit(cache=True)
def trace_some(
    data,
    method,
    cones,
    frame,
    members,
    which,
    theta,
    sample,
    hi,
    U,
    F,
    cn,
    rules,
    start,
    Zt,
    lt,
    V,
    events,
    extra,
    record,
):
    """Carry the listed neurons from their first events (theta, sample) to theta hi.

    Zt, lt, V receive unit vectors, log-scales and patterns (rows follow ``which``). With
    ``record``, ``extra`` (times, n) receives what they add to f by leaving their cones: traced
    minus assumed outputs at ``method.times``.
    """
    n, width = U.shape[1], Zt.shape[1]
    gid, ls = members.gid, members.ls
    log, c = empty_log(n), np.empty(n)
    path, z = np.empty((8, width)), np.empty(width)
    for i in range(which.size):
        j = which[i]
        g, lo = gid[j], min(theta[j], hi)
        for k in range(n):
            V[i, k] = U[g, k]
        path_of(cones, members, F, j, path)
        along(path, frame.unit[g], frame.rate[g] * frame.h, lo, z)
        for e in range(width):
            Zt[i, e] = z[e]
        lt[i] = ls[j] + normalise(Zt[i])
        if theta[j] > hi:
            continue
        weight = np.exp(2.0 * lt[i]) if record else 0.0
        if record:
            if weight == 0.0:
                continue
            for s in range(method.times.size):
                if method.times[s] > lo:
                    along(path, frame.unit[g], frame.rate[g] * frame.h, method.times[s], z)
                    add_outputs(data, U[g], z, -np.exp(2.0 * ls[j]), extra[s])
        log[0, 0] = 0
        grown, hit, still = 0.0, sample[j], 0
        for _ in range(50 * (n + 4) + 1):
            pull_at(cn, lo, c)
            arrive(data, V[i], Zt[i], c, hit, start + lo * frame.h, log, rules.policy)
            before, noise = lo, rules.noise * 2.0 ** max(0, still - UNDECIDED)
            lo, hit, grown = carry(
                data, method, Zt[i], V[i], lo, hi, frame.h, cn, rules, noise, grown, weight, extra
            )
            if hit == -2:
                break
            still = still + 1 if lo <= before else 0
        lt[i] += grown
        flush(log, j, events)
