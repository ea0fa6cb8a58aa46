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

from reluflow._compiled import njit
from reluflow.kernels.codes import BRANCH, CROSS, EXIT, LEAVE, SLIDE
from reluflow.kernels.flow_face import (
    box_force,
    face_force,
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


@njit(cache=True)
def resolve(data, u, z, c, policy):
    """Settle the faces of u: sides for slopes at a bound, 0 for sliding; w is put on its faces.

    The element of minimal norm over all slopes of the faces is found at once; a sample whose slope
    is at a bound gets a side, then the rest is settled anew, one sample at a time. Those that are
    crossed or left whatever their slope (a c_k >= 0) come first: a slope that others have at a
    bound beside an undecided one may be inside once that one has its side.
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
        for i in range(2 * n):
            k, attracting = i % n, i >= n
            if tied[k] != 0 or attracting != (a * e[k] < 0.0):
                continue
            v = dot(data.X, k, D)
            moving = abs(v) > 1e-12 * scale * data.norms[k]
            s = slopes[k]
            if attracting:
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
def next_plane(data, u, q, way):
    """First sample whose hyperplane the line from q along the unit vector ``way`` meets.

    Returns how far that is and the sample, or -1 where the line meets none.
    """
    reach, hit = np.inf, -1
    for i in range(u.size):
        speed = dot(data.X, i, way)
        if u[i] * speed < -1e-13 * data.norms[i]:
            x = max(0.0, u[i] * dot(data.X, i, q)) / abs(speed)
            if x < reach:
                reach, hit = x, i
    return reach, hit


@inner
def through_zero(data, u, z, c, policy):
    """Pattern with which a neuron goes on whose w is as good as 0; False where it stays at 0.

    Near w = 0 the outer weight is constant, and w moves with a D_u along straight lines from kink
    to kink, at every distance from 0 alike. A neuron that comes along the line through 0 itself
    (within rounding) is behind 0 on the continuation of that line, where all signs have changed;
    any other goes on from where it is. The last line, that meets no further kink, has the pattern.
    """
    n, d = data.X.shape
    D, tau, way = np.empty(d), np.empty(n), np.empty(d)
    v, y = np.empty(n, np.int8), np.empty(d + 1)
    face_force(data, u, c, D, tau)
    size, a = norm(D), z[d]
    if size == 0.0 or a == 0.0:
        return False
    p, aside = np.sign(a) * along(z, D) / size, 0.0
    for e in range(d):
        way[e] = np.sign(a) * D[e] / size
        aside += (z[e] - p * way[e]) ** 2
    radial = p <= 1e-13 and aside <= 1e-26  # 1e-13 of |z|, a few hundred roundings
    for e in range(d):
        y[e] = way[e] if radial else z[e]
    for i in range(n):
        v[i] = -u[i] if radial and data.norms[i] > 0.0 else u[i]
    for _ in range(8 * n + 16):
        y[d] = 0.0
        normalise(y)
        y[d] = a
        resolve(data, v, y, c, policy)
        face_force(data, v, c, D, tau)
        size = norm(D)
        if size == 0.0:  # nothing pulls here
            break
        p, aside = np.sign(a) * along(y, D) / size, 0.0
        for e in range(d):
            way[e] = np.sign(a) * D[e] / size
            aside += (y[e] - p * way[e]) ** 2
        if p < 0.0 and aside <= 1e-24:  # straight back into 0
            return False
        reach, hit = next_plane(data, v, y, way)
        if hit < 0:
            break
        length = 0.0
        for e in range(d):
            y[e] += reach * way[e]
            length += y[e] * y[e]
        if length == 0.0:
            return False
        for i in range(n):
            near = abs(dot(data.X, i, y)) <= 1e-12 * np.sqrt(length) * data.norms[i]
            if i == hit or (near and v[i] * dot(data.X, i, way) < -1e-13 * data.norms[i]):
                v[i] = 0
    else:
        return False
    for i in range(n):
        u[i] = v[i]
    return True


@inner
def stands_clear(data, u, i, k, height, near):
    """Whether a neuron on the kink of sample k with <w, x_i> = ``height`` is off the kink of i.

    It must be further from it than ``near`` |x_i|, and than 1e-8 |x_i| where i and k share one.
    """
    if data.norms[i] == 0.0:
        return True
    if u[i] == 0 or abs(height) <= near * data.norms[i]:
        return False
    return abs(height) > 1e-8 * data.norms[i] or parallel(data.X, data.norms, i, k) == 0


@inner
def leads_across(data, u, z, c, k, pushed, total):
    """Whether v(1) and v(leak) both lead to the other side, by more than their rounding error.

    ``pushed`` is <D_u, x_k>, ``total`` the sum of |c_i||x_i|.
    """
    push = c[k] * data.norms[k] ** 2
    rest = pushed - (push if u[k] > 0 else data.leak * push)
    side = u[k] * np.sign(z[z.size - 1])
    least = -1e-12 * total * data.norms[k]
    return side * (rest + push) < least and side * (rest + data.leak * push) < least


@inner
def goes_through(data, u, z, c, k):
    """Whether a neuron at the kink of sample k alone, on no face, moves on under either slope.

    The common case, decided without the least-norm problem of :func:`resolve`.
    """
    n, d = data.X.shape
    if u[k] == 0:
        return False
    size, pushed, total = 0.0, 0.0, 0.0
    for e in range(d):
        size += z[e] * z[e]
    if size <= 1e-22:
        return False
    X, norms, x = data.X, data.norms, data.X[k]
    for i in range(n):
        height = dot(X, i, z)
        near = u[i] == 0 or abs(height) <= 1e-8 * norms[i]  # few are: a call would copy ``data``
        if near and i != k and not stands_clear(data, u, i, k, height, 1e-13):
            return False
        slope = 1.0 if u[i] > 0 else data.leak
        if slope != 0.0:
            pushed += slope * c[i] * dot(X, i, x)
        total += abs(c[i]) * norms[i]
    return leads_across(data, u, z, c, k, pushed, total)


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
    if np.sqrt(square) <= 1e-11 and u[k] != 0:
        if not through_zero(data, u, z, c, policy):  # it stays at 0, on all kinks
            for i in range(u.size):
                u[i] = 0 if data.norms[i] > 0.0 else u[i]
            resolve(data, u, z, c, policy)
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
