"""Who may meet a kink in a step: deadlines first, then a bound, then the path itself."""

import numpy as np
from numba import njit

from reluflow.kernels.flow_crossing import first_event, first_exit
from reluflow.kernels.flow_dense import REACH
from reluflow.kernels.flow_members import path_of
from reluflow.kernels.flow_wheel import file_again
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import dot, norm
from reluflow.kernels.wheel import take


@inner
def change_of(F, lo, hi, v, last, row):
    """Bound on the change of the row (v, last) F during the step; ``row`` receives its start."""
    d = v.size
    total = 0.0
    for q in range(8):
        square = 0.0
        for i in range(lo, hi):
            s = last * F[q, i, d]
            for e in range(d):
                s += v[e] * F[q, i, e]
            square += s * s
            if q == 0:
                row[i - lo] = s
        if q > 0:
            total += REACH[q] * np.sqrt(square)
    return total


@inner
def travelled(data, cones, frame, U, F, g, faces, reach, rows, beta):
    """Bound on how far any x_k^T P (of unit x_k), or the row of a on a face, moves in the step.

    In the frame of the step P(x) = exp(M x) F(x). ``rows`` receives x_k^T F(0) of unit x_k, then
    those of a and of the force's direction; ``reach`` bounds how far each changes in F
    (-1: not to be looked at), ``beta`` receives u_k times the cosine of force and x_k.
    """
    n, d = data.X.shape
    lo, hi = cones.offset[g], cones.offset[g + 1]
    v = np.zeros(d)
    reach[n] = change_of(F, lo, hi, v, 1.0, rows[n])
    reach[n + 1] = change_of(F, lo, hi, frame.unit[g], 0.0, rows[n + 1])
    grow = frame.rate[g] * frame.h
    ch, sh = np.cosh(grow) - 1.0, np.sinh(grow)
    outer, along = norm(rows[n]) + reach[n], norm(rows[n + 1]) + reach[n + 1]
    far = reach[n] + ch * outer + sh * along if faces else 0.0
    for k in range(n):
        reach[k] = -1.0
        if U[g, k] == 0 or data.norms[k] == 0.0:
            continue
        for e in range(d):
            v[e] = data.X[k, e] / data.norms[k]
        beta[k] = U[g, k] * dot(frame.unit, g, v)
        reach[k] = change_of(F, lo, hi, v, 0.0, rows[k])
        far = max(far, reach[k] + abs(beta[k]) * (ch * along + sh * outer))
    return far


@inner
def side_of(value, doubt):
    """Sign of a value known up to ``doubt``, 0 when that may change it."""
    return 1.0 if value >= doubt else -1.0 if value <= -doubt else 0.0


@inner
def room(u, faces, ch, sh, rows, reach, beta, Z, j):
    """Slack of lumped neuron j at the start of a step, and whether it may meet a kink in it."""
    n = u.size
    a, p = 0.0, 0.0
    for i in range(Z.shape[1]):
        a += rows[n, i] * Z[j, i]
        p += rows[n + 1, i] * Z[j, i]
    turn = ch * (abs(p) + reach[n + 1]) + sh * (abs(a) + reach[n])
    side = side_of(a, reach[n])
    if side != side_of(p, reach[n + 1]):
        side = 0.0
    slack, near = np.inf, False
    for k in range(n):
        if reach[k] < 0.0:
            continue
        h = 0.0
        for i in range(Z.shape[1]):
            h += rows[k, i] * Z[j, i]
        slack = min(slack, abs(h))
        down = 0.0 if beta[k] * side > 0.0 else abs(beta[k]) * turn  # growth may lead away
        near = near or u[k] * h <= 1.000001 * (reach[k] + down)
    if faces:
        slack = min(slack, abs(a))
        turn = ch * (abs(a) + reach[n]) + sh * (abs(p) + reach[n + 1])
        near = near or abs(a) <= 1.000001 * (reach[n] + (0.0 if side != 0.0 else turn))
    return slack, near


@njit(cache=True)
def scan(
    data,
    cones,
    frame,
    U,
    faces,
    F,
    cn,
    members,
    often,
    wheel,
    rules,
    ways,
    found,
    theta,
    sample,
):
    """First events of neurons in a step: theta[j] in [0, 1] and its sample, for those who have one.

    They are listed in ``found``; returns their number. A neuron of a lumped cone is looked at only
    when its cone travels past its deadline, if it has a wheel; those in ``often`` always. ``ways``
    receives how far each cone with a wheel travels.
    """
    gid, Z = members.gid, members.Z
    G, n, width = cones.size.size, U.shape[1], Z.shape[1]
    ends, through = np.full(G, 2.0), np.full(G, -1)
    reach, rows, beta = np.empty(n + 2), np.zeros((n + 2, width)), np.empty(n)
    path, out = np.empty((8, width)), np.empty(gid.size, np.int64)
    count, leaving = 0, False
    for g in range(G):
        if faces[g]:
            ends[g], through[g] = first_exit(data, U[g], cn, 0.0, 1.0, rules.floor)
            leaving = leaving or ends[g] <= 1.0
    if leaving:
        for j in range(gid.size):
            theta[j], sample[j] = ends[gid[j]], through[gid[j]]
            if theta[j] <= 1.0:
                found[count] = j
                count += 1
    for g in range(-1, G):
        total, ch, sh = often.size, 0.0, 0.0
        if g < 0:
            for i in range(total):
                out[i] = often[i]
        elif wheel.row[g] < 0:
            continue
        else:
            i = wheel.row[g]
            ways[i] = travelled(data, cones, frame, U, F, g, faces[g], reach, rows, beta)
            end = wheel.path[i] + ways[i]
            if wheel.due[i] >= end:
                continue
            total = take(i, end, wheel.head, wheel.mark, wheel.used, wheel.link, wheel.due, out)
            grow = frame.rate[g] * frame.h
            ch, sh = np.cosh(grow) - 1.0, np.sinh(grow)
        for i in range(total):
            j = out[i]
            own = gid[j]
            if g >= 0:
                slack, near = room(U[g], faces[g], ch, sh, rows, reach, beta, Z, j)
                file_again(wheel, g, j, slack)
                if not near:
                    continue
            path_of(cones, members, F, j, path)
            x, hit = first_event(
                data,
                U[own],
                path,
                frame.unit[own],
                frame.rate[own] * frame.h,
                faces[own],
                rules.noise,
            )
            if x <= 1.0 and x < ends[own]:
                theta[j], sample[j] = x, hit
                if ends[own] > 1.0:
                    found[count] = j
                    count += 1
    return count
