r"""Who may meet a kink in a step: deadlines first, then a bound, then the path itself.

A neuron of a lumped cone is z_j = P Z_j with the propagator P of the cone, so for unit x_k

.. math:: |\langle w_j(t), x_k \rangle - \langle w_j(0), x_k \rangle| \le
    |x_k^T P(t) - x_k^T P(0)| \, |Z_j|, \qquad |Z_j| = 1.

How far any row x_k^T P has travelled is one number per cone, and it cannot reach a neuron before it
exceeds the neuron's **slack**, the least |<w_j, x_k>| / |x_k| in units of its scale. So neurons
wait in the timer wheel of their cone (`wheel`) under their slack and cost nothing before it is used
up. Smaller cones are looked at as one first, by the mean of their neurons and its distance to the
farthest: samples that are cleared for all of them are not looked at again. A step bounds the way
of each lumped cone from its dense output, P(x) = exp(M h x) F(x):

.. math:: |\Delta\, x_k^T P| \le \sum_{q > 0} REACH_q |x_k^T F_q| + |\beta_k| [(\cosh g - 1) |p| +
    \sinh g\, |a|],

beta_k the cosine of force and x_k, g = |D| h, p and a the rows of the force's direction and of the
outer weight. Neurons whose deadline passes are looked at: first with the same bound for the neuron
itself, which also knows when growth leads away from the kink, and only then along their paths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.flow_crossing import (
    first_event_among,
    first_event_by_rows,
    first_exit,
    samples_in_reach,
)
from reluflow.kernels.flow_members import member, path_of
from reluflow.kernels.flow_path import REACH
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import along, dot, norm
from reluflow.kernels.wheel import NONE, SLOTS, file_neuron, take

DOUBT = 1.000001  # a bound is taken this much larger, for its own rounding


class Wheel(NamedTuple):
    """Timer wheels of lumped cones, see :mod:`reluflow.kernels.wheel`."""

    row: np.ndarray  # (G,) wheel of a cone, or -1
    path: np.ndarray  # (wheels,) way travelled
    head: np.ndarray  # (wheels, SLOTS)
    mark: np.ndarray
    used: np.ndarray  # (wheels,)
    due: np.ndarray
    link: np.ndarray  # (m,)


def empty_wheel(crowded: np.ndarray, m: int) -> Wheel:
    """Wheels with nobody in them, one for each cone that is ``crowded``."""
    count = int(crowded.sum())
    row = np.where(crowded, np.cumsum(crowded) - 1, -1)
    head, mark = np.full((count, SLOTS), NONE), np.full((count, SLOTS), np.inf)
    used, due, link = np.zeros(count, np.int64), np.full(count, np.inf), np.empty(m, np.int64)
    return Wheel(row, np.zeros(count), head, mark, used, due, link)


@inner
def slack_of(data, u, z, faces):
    """Least |<w, x_k>| / |x_k| over samples off the faces, and |a| on a face."""
    d = data.X.shape[1]
    slack = np.inf
    for k in range(u.size):
        if u[k] == 0 or data.norms[k] == 0.0:
            continue
        slack = min(slack, abs(dot(data.X, k, z)) / data.norms[k])
    return min(slack, abs(z[d])) if faces else slack


@inner
def file_again(wheel, g, j, slack):
    """File neuron j of cone g."""
    file_neuron(
        wheel.row[g],
        j,
        slack,
        wheel.path,
        wheel.head,
        wheel.mark,
        wheel.used,
        wheel.link,
        wheel.due,
    )


@njit(cache=True)
def file_all(data, cones, C, members, wheel):
    """File every neuron of a cone with a wheel, columns at C."""
    z = np.empty(members.Z.shape[1])
    for j in range(members.gid.size):
        g = members.gid[j]
        if wheel.row[g] >= 0:
            member(cones.lumped[g], cones.offset[g], C, members.Z, j, z)
            file_again(wheel, g, j, slack_of(data, cones.U[g], z, cones.faces[g]))


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
def way_of_cone(data, cones, frame, F, g, reach, rows, beta):
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
    # on a face the zeros of a count too (they make it a ridge): its row travels as well
    far = reach[n] + ch * outer + sh * along if cones.faces[g] else 0.0
    for k in range(n):
        reach[k] = -1.0
        if cones.U[g, k] == 0 or data.norms[k] == 0.0:
            continue
        for e in range(d):
            v[e] = data.X[k, e] / data.norms[k]
        beta[k] = cones.U[g, k] * dot(frame.unit, g, v)
        reach[k] = change_of(F, lo, hi, v, 0.0, rows[k])
        far = max(far, reach[k] + abs(beta[k]) * (ch * along + sh * outer))
    return far


@inner
def side_of(value, doubt):
    """Sign of a value known up to ``doubt``, 0 when that may change it."""
    return 1.0 if value >= doubt else -1.0 if value <= -doubt else 0.0


@inner
def may_meet_kink(u, faces, ch, sh, rows, reach, beta, Z, j):
    """Slack of lumped neuron j at the start of a step, and whether it may meet a kink in it.

    Where a and p keep one common sign through the step, the part beta (cosh p + sinh a) of <w, x_k>
    has the sign of beta_k times it: on the neuron's own side growth leads away from the kink, and
    only the change of F itself counts.
    """
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
        near = near or u[k] * h <= DOUBT * (reach[k] + down)
    if faces:
        slack = min(slack, abs(a))
        turn = ch * (abs(a) + reach[n]) + sh * (abs(p) + reach[n + 1])
        near = near or abs(a) <= DOUBT * (reach[n] + (0.0 if side != 0.0 else turn))
    return slack, near


@inner
def leave_faces(data, cones, dense, members, rules, found, meetings, ends):
    """First events of whole cones: where sliding on their faces ends. Returns how many leave.

    ``ends`` (G,) receives when in the step, 2.0 for cones that stay on their faces or have none.
    """
    gid = members.gid
    G = cones.size.size
    through = np.full(G, -1)
    count, leaving = 0, False
    for g in range(G):
        ends[g] = 2.0
        if cones.faces[g]:
            ends[g], through[g] = first_exit(data, cones.U[g], dense.cn, 0.0, 1.0, rules.floor)
            leaving = leaving or ends[g] <= 1.0
    if leaving:
        for j in range(gid.size):
            meetings.theta[j], meetings.sample[j] = ends[gid[j]], through[gid[j]]
            if ends[gid[j]] <= 1.0:
                found[count] = j
                count += 1
    return count


@inner
def mean_path(cones, members, F, group, path):
    """Path of the mean of the listed neurons, all of one lumped cone; how far the others are.

    With Z_j = mean + delta_j a component of neuron j differs from that of the mean, within the
    frame, by at most |delta_j| sum_q REACH_q |F_q|.
    """
    g, width = members.gid[group[0]], members.Z.shape[1]
    mean = np.zeros((1, width))
    for j in group:
        for i in range(width):
            mean[0, i] += members.Z[j, i] / group.size
    off = 0.0
    for j in group:
        square = 0.0
        for i in range(width):
            square += (members.Z[j, i] - mean[0, i]) ** 2
        off = max(off, square)
    lo, hi, total = cones.offset[g], cones.offset[g + 1], 0.0
    for q in range(8):
        square = 0.0
        for i in range(lo, hi):
            for e in range(width):
                square += F[q, i, e] * F[q, i, e]
        total += REACH[q] * np.sqrt(square)
        member(True, lo, F[q], mean, 0, path[q])
    return np.sqrt(off) * total


@inner
def mean_of_columns(F, lo, hi, path):
    """As :func:`mean_path`, for a cone whose columns are its neurons."""
    width = path.shape[1]
    for q in range(8):
        for e in range(width):
            path[q, e] = 0.0
            for i in range(lo, hi):
                path[q, e] += F[q, i, e] / (hi - lo)
    off = 0.0
    for i in range(lo, hi):
        far = 0.0
        for q in range(8):
            square = 0.0
            for e in range(width):
                square += (F[q, i, e] - path[q, e]) ** 2
            far += REACH[q] * np.sqrt(square)
        off = max(off, far)
    return off


@inner
def in_reach_of_all(data, cones, frame, F, members, group, path, samples):
    """List the samples whose kinks some neuron of a cone, all of them listed, may meet.

    Looked at for the mean of the neurons, and for what lies as near as the farthest of them.
    Returns their number.
    """
    g = members.gid[group[0]]
    if cones.lumped[g]:
        off = mean_path(cones, members, F, group, path)
    else:
        off = mean_of_columns(F, cones.offset[g], cones.offset[g + 1], path)
    grow = frame.rate[g] * frame.h
    off *= np.exp(grow)
    return samples_in_reach(data, cones.U[g], path, frame.unit[g], grow, off, samples)


@inner
def note_meeting(meetings, found, count, j, x, hit, end):
    """Write down what neuron j meets in the step before its cone's own ``end``; the new count."""
    if x <= 1.0 and x < end:
        meetings.theta[j], meetings.sample[j] = x, hit
        if end > 1.0:
            found[count] = j
            return count + 1
    return count


@inner
def rows_of_cone(data, F, lo, hi, unit, samples, rows):
    """Products of the listed samples, of ``unit`` and of the outer weight with the columns' F."""
    d, count = data.X.shape[1], samples.size
    for q in range(8):
        for i in range(lo, hi):
            for s in range(count):
                rows[s, q, i - lo] = dot(data.X, samples[s], F[q, i])
            rows[count, q, i - lo] = along(F[q, i], unit)
            rows[count + 1, q, i - lo] = F[q, i, d]


@inner
def size_at_start(F, lo, member, z):
    """Sum of |w_e| at the start of a step and of its change over it (F_1); z is scratch."""
    size = 0.0
    for q in range(2):
        for e in range(z.size - 1):
            z[e] = 0.0
        for i in range(z.size):
            for e in range(z.size - 1):
                z[e] += member[i] * F[q, lo + i, e]
        for e in range(z.size - 1):
            size += abs(z[e])
    return size


@njit(cache=True)
def scan(data, cones, frame, dense, members, often, wheel, rules, ways, found, meetings):
    """First events of neurons in a step, into ``meetings``, for those who have one.

    They are listed in ``found``; returns their number. A neuron of a lumped cone is looked at only
    when its cone travels past its deadline, if it has a wheel; those in ``often``, sorted by cone,
    always. ``ways`` receives how far each cone with a wheel travels. Neurons whose whole cone
    leaves a face stay listed once, with the earlier of the two events.
    """
    gid, Z = members.gid, members.Z
    G, n, width = cones.size.size, cones.U.shape[1], Z.shape[1]
    reach, rows, beta = np.empty(n + 2), np.zeros((n + 2, width)), np.empty(n)
    path, out, ends = np.empty((8, width)), np.empty(gid.size, np.int64), np.empty(G)
    every, some = np.arange(n), np.empty(n, np.int64)
    count = leave_faces(data, cones, dense, members, rules, found, meetings, ends)
    first = 0
    for g in range(G):
        faces, grow = cones.faces[g], frame.rate[g] * frame.h
        u, unit, samples = cones.U[g], frame.unit[g], every
        if wheel.row[g] < 0:
            total = 0
            while first + total < often.size and gid[often[first + total]] == g:
                out[total] = often[first + total]
                total += 1
            first += total
            if total > 2:
                near = in_reach_of_all(
                    data, cones, frame, dense.F, members, out[:total], path, some
                )
                if near == 0 and not faces:
                    continue
                samples = some[:near]
        else:
            i = wheel.row[g]
            ways[i] = way_of_cone(data, cones, frame, dense.F, g, reach, rows, beta)
            end = wheel.path[i] + ways[i]
            if wheel.due[i] >= end:
                continue
            total = take(i, end, wheel.head, wheel.mark, wheel.used, wheel.link, wheel.due, out)
        ch, sh = np.cosh(grow) - 1.0, np.sinh(grow)
        # with few kinks near, products with them cost less than the path of each neuron
        by_rows = cones.lumped[g] and wheel.row[g] < 0 and 2 * samples.size < min(total, width)
        if by_rows:
            lo = cones.offset[g]
            few = np.empty((samples.size + 2, 8, width))
            rows_of_cone(data, dense.F, lo, cones.offset[g + 1], unit, samples, few)
            for i in range(total):
                j = out[i]
                floor = rules.noise * size_at_start(dense.F, lo, Z[j], path[0])
                x, hit = first_event_by_rows(data, u, few, Z[j], unit, grow, faces, floor, samples)
                count = note_meeting(meetings, found, count, j, x, hit, ends[g])
            continue
        for i in range(total):
            j = out[i]
            if wheel.row[g] >= 0:
                slack, near_one = may_meet_kink(u, faces, ch, sh, rows, reach, beta, Z, j)
                file_again(wheel, g, j, slack)
                if not near_one:
                    continue
            path_of(cones, members, dense.F, j, path)
            x, hit = first_event_among(data, u, path, unit, grow, faces, rules.noise, samples)
            count = note_meeting(meetings, found, count, j, x, hit, ends[g])
    return count
