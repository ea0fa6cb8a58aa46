r"""A neuron at a kink: which side it goes on to, or whether it slides; and the lists of events.

The sign pattern u in {-1, 0, 1}^n is state: no sign is read off a rounded <w, x_k> near 0. With
velocities

.. math:: v(s) = a (\langle D_{rest}, x_k \rangle + s c_k |x_k|^2), \qquad s \in [leak, 1],

of <w, x_k> for slope s, a neuron that arrives at <w, x_k> = 0 crosses when a c_k >= 0 (refraction:
both sides push the same way), and when a c_k < 0 follows the element of minimal norm on the face,
which slides if its slope lies inside (leak, 1), where v(s) = 0, and crosses otherwise ([LLWA21]_
B.15, [BF24]_ Sec. 3). On a face with a c_k > 0, a **ridge**, both sides push away and staying and
leaving are both solutions; the rule of `codes.OnBranch` chooses.

A log of one neuron has rows (sample, time, kind), a list of events (neuron, sample, time, kind); in
both, row 0 holds the number of rows in use.
"""

import numpy as np
from numba import njit

from reluflow.kernels.codes import BRANCH, CROSS, EXIT, LEAVE, SLIDE
from reluflow.kernels.flow_face import (
    box_force,
    face_force,
    outside,
    put,
    tie,
    tied_force,
)
from reluflow.kernels.flow_path import normalise, turn_one
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import along, dot, norm, parallel


@njit(cache=True)
def empty_log(n):
    """A log with room for the events of one neuron in one move."""
    return np.zeros((8 * n + 16, 3))


@njit(cache=True)
def note(log, k, when, kind):
    """Append an event to a neuron's log: row 0 holds the count."""
    count = int(log[0, 0])
    if count + 1 < log.shape[0]:
        log[count + 1, 0], log[count + 1, 1], log[count + 1, 2] = k, when, kind
        log[0, 0] = count + 1


@njit(cache=True)
def flush(log, j, events):
    """Append a neuron's log to the common list (row 0 holds the count; a full list drops)."""
    for i in range(int(log[0, 0])):
        count = int(events[0, 0]) + 1
        events[0, 0] = count
        if count < events.shape[0]:
            events[count, 0] = j
            for e in range(3):
                events[count, e + 1] = log[i + 1, e]


FAR = 0.1  # growth within which a neuron of a bundle is at its kink


@inner
def through_zero(data, u, z, c):
    """Pattern with which a neuron whose w has become 0 goes on: u = signs of a D_u, if there is.

    At w = 0 the neuron stands on all kinks at once, and w' = a D_u alone decides: u must be the
    pattern of the velocity that it causes. Iterated from the pattern it arrives with, each sample
    taking the side of its velocity; one that keeps changing with a c_k < 0 slides. Returns False
    (and leaves u) when no such pattern is found.
    """
    n, d = data.X.shape
    D, tau = np.empty(d), np.empty(n)
    v, turns = np.empty(n, np.int8), np.zeros(n, np.int64)
    for i in range(n):
        v[i] = u[i]
    for _ in range(6 * n + 12):
        face_force(data, v, c, D, tau)
        size = norm(D)
        if size == 0.0:
            return False
        same = True
        for i in range(n):
            if data.norms[i] == 0.0:
                continue
            s = z[d] * dot(data.X, i, D)
            side = 0
            if abs(s) > 1e-11 * abs(z[d]) * size * data.norms[i]:
                side = 1 if s > 0.0 else -1
            if side != v[i]:
                same = False
                turns[i] += 1
                if turns[i] > 3 and z[d] * c[i] < 0.0:  # neither side holds: slide
                    side = 0
            v[i] = side
        if same:
            k = outside(data, v, c, D, tau, 0.0)
            if k < 0:
                for i in range(n):
                    u[i] = v[i]
                return True
            high = c[k] != 0.0 and tau[k] / c[k] >= 1.0  # a face that does not hold: leave it
            v[k] = 1 if high == (z[d] * c[k] < 0.0) else -1
    return False


@njit(cache=True)
def resolve(data, u, z, c, policy):
    """Settle the faces of u: sides for slopes at a bound, 0 for sliding; w is put on its faces.

    The element of minimal norm over all slopes of the faces is found at once; a sample whose slope
    is at a bound gets a side, then the rest is settled anew, one sample at a time.
    """
    n, d = data.X.shape
    a = z[d]
    D, slopes = np.empty(d), np.empty(n)
    tied, e = np.empty(n, np.int8), np.empty(n)
    scale = 0.0
    for k in range(n):
        scale += abs(c[k]) * data.norms[k]
    for _ in range(n + 1):
        tie(data, u, c, tied, e)
        dependent = tied_force(data, tied, e, D, slopes) > 0
        box_force(data, tied, e, D, slopes)
        changed = False
        for k in range(n):
            if tied[k] != 0:
                continue
            v = dot(data.X, k, D)
            moving = abs(v) > 1e-12 * scale * data.norms[k]
            s = slopes[k]
            if a * e[k] < 0.0:
                # with dependent samples slopes are not unique: a bound alone says nothing
                if (s <= data.leak + 1e-13 or s >= 1.0 - 1e-13) and (moving or not dependent):
                    put(data, u, k, 1 if s > 0.5 * (1.0 + data.leak) else -1)
                    changed = True
            elif moving and a != 0.0:  # a ridge is ridden only while its slope is admissible
                put(data, u, k, 1 if a * v > 0.0 else -1)
                changed = True
            elif policy == LEAVE and a * e[k] > 0.0:
                put(data, u, k, 1)
                changed = True
            if changed:
                break
        if not changed:
            break
    for k in range(n):
        if u[k] == 0:  # take out the part of w across the face, twice for its rounding
            for _ in range(2):
                h = dot(data.X, k, z)
                for i in range(d):
                    z[i] -= h / data.norms[k] ** 2 * data.X[k, i]


@inner
def goes_through(data, u, z, c, k):
    """Whether a neuron at the kink of sample k alone, on no face, moves on under either slope.

    The common case, decided without the least-norm problem of :func:`resolve`: v(1) and v(leak)
    both lead to the other side, by more than their rounding error.
    """
    n, d = data.X.shape
    if u[k] == 0 or z[d] == 0.0:
        return False
    size, rest, scale = 0.0, 0.0, 0.0
    for e in range(d):
        size += z[e] * z[e]
    if size <= 1e-22:
        return False
    for i in range(n):
        if i == k or data.norms[i] == 0.0:
            continue
        near = abs(dot(data.X, i, z)) / data.norms[i]
        if u[i] == 0 or near <= 1e-13 or (near <= 1e-8 and parallel(data.X, data.norms, i, k) != 0):
            return False
        slope = 1.0 if u[i] > 0 else data.leak
        if slope != 0.0:
            rest += slope * c[i] * dot(data.X, i, data.X[k])
        scale += abs(c[i]) * data.norms[i]
    push = c[k] * data.norms[k] ** 2
    scale += abs(c[k]) * data.norms[k]
    side = u[k] * np.sign(z[d])
    least = -1e-12 * scale * data.norms[k]
    return side * (rest + push) < least and side * (rest + data.leak * push) < least


@njit(cache=True)
def arrive(data, u, z, c, k, when, log, policy):
    """Neuron z (unit) has reached <w, x_k> = 0 (u_k = +-1), or must leave a face (u_k = 0).

    Samples met at the same moment (all of them when w = 0) are settled together. Negative k: the
    outer weight has become 0 while the neuron slides.
    """
    d = data.X.shape[1]
    if k < 0:  # the outer weight changed sign on an attracting face: it is a ridge now
        z[d] = 0.0
        for i in range(u.size):
            if u[i] == 0:
                note(log, i, when, BRANCH)
        for i in range(u.size):
            if u[i] == 0 and policy == LEAVE:
                put(data, u, i, 1)
        return
    if goes_through(data, u, z, c, k):
        u[k] = -u[k]
        note(log, k, when, CROSS)
        return
    before, square = np.empty(u.size, np.int8), 0.0
    tied, pulls = np.empty(u.size, np.int8), np.empty(u.size)
    for i in range(u.size):
        before[i] = u[i]
    for e in range(d):
        square += z[e] * z[e]
    if np.sqrt(square) <= 1e-11 and u[k] != 0 and through_zero(data, u, z, c):
        for e in range(d):
            z[e] = 0.0
    else:
        if u[k] == 0:
            # its slope has reached a bound, 1 or leak: that is the side it goes on to, since
            # the velocity vanishes at the bound and changes sign with a c_k
            D, slopes = np.empty(d), np.empty(u.size)
            tie(data, u, c, tied, pulls)
            box_force(data, tied, pulls, D, slopes)
            high = slopes[k] > 0.5 * (1.0 + data.leak)
            put(data, u, k, 1 if high == (z[d] * pulls[k] < 0.0) else -1)
        else:
            u[k] = 0
            for i in range(u.size):
                near = abs(dot(data.X, i, z)) <= 1e-13 * data.norms[i]
                if data.norms[i] > 0.0 and (near or parallel(data.X, data.norms, i, k) != 0):
                    u[i] = 0
        resolve(data, u, z, c, policy)
    tie(data, u, c, tied, pulls)
    for i in range(u.size):
        if u[i] != before[i]:
            if u[i] == 0:
                first = i
                for k in range(i):
                    if tied[i] != 0 and tied[k] == 0 and parallel(data.X, data.norms, i, k) != 0:
                        first = k
                note(log, i, when, SLIDE if z[d] * pulls[first] < 0.0 else BRANCH)
            else:
                note(log, i, when, EXIT if before[i] == 0 else CROSS)


@inner
def flow_for(z, D, t):
    """exp(M t) z for the force D, in place: for times in which little grows."""
    rate = norm(D)
    if rate == 0.0 or t == 0.0:
        return
    unit = np.empty(D.size)
    for e in range(D.size):
        unit[e] = D[e] / rate
    turn_one(z, unit, np.cosh(rate * t), np.sinh(rate * t))


@njit(cache=True)
def time_to_kink(data, z, D, k):
    """Time, positive or negative, until <w, x_k> = 0 under the constant force D (Newton).

    0 where that is not near: a neuron of a bundle that this force turns away from the kink is
    taken to be on it now.
    """
    d, t = D.size, 0.0
    y = np.empty(d + 1)
    push, rate = along(D, data.X[k]), norm(D)
    for _ in range(8):
        for e in range(d + 1):
            y[e] = z[e]
        flow_for(y, D, t)
        slope = y[d] * push
        if slope == 0.0:
            return 0.0
        change = dot(data.X, k, y) / slope
        t -= change
        if not rate * abs(t) <= FAR:
            return 0.0
        if abs(change) <= 1e-14 * abs(t):
            break
    return t


@njit(cache=True)
def arrive_beside(data, u, z, c, k, D, now, log, policy):
    r"""A neuron of a bundle at the moment ``now`` at which its bundle meets the kink of sample k.

    It is at the kink a little earlier or later itself, by t. With the pull frozen for that time,
    :math:`z \leftarrow e^{-M_+ t} P e^{M_- t} z`, where M_- and M_+ are those before and after
    and P puts w on the kink: the saltation matrix of the crossing, beyond first order.
    """
    d = D.size
    t = time_to_kink(data, z, D, k)
    flow_for(z, D, t)
    off = dot(data.X, k, z) / data.norms[k] ** 2
    for e in range(d):
        z[e] -= off * data.X[k, e]
    arrive(data, u, z, c, k, now + t, log, policy)
    after, tau = np.empty(d), np.empty(u.size)
    face_force(data, u, c, after, tau)
    flow_for(z, after, -t)


@njit(cache=True)
def arrive_bundle(data, which, V, members, c, k, D, now, policy, events):
    """:func:`arrive_beside` for the listed neurons of one cone; rows of V are their patterns."""
    log = empty_log(V.shape[1])
    for i in range(which.size):
        j = which[i]
        log[0, 0] = 0
        arrive_beside(data, V[i], members.Z[j], c, k, D, now, log, policy)
        members.ls[j] += normalise(members.Z[j])
        flush(log, j, events)
