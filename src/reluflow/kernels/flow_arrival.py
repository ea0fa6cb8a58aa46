r"""A neuron at a kink: which side it goes on to, or whether it slides.

The sign pattern u in {-1, 0, 1}^n is state. With velocities v(s) = a (<D_rest, x_k> + s c_k
|x_k|^2) of <w, x_k> for slope s in [leak, 1], a neuron that arrives at <w, x_k> = 0 crosses when
a c_k >= 0 (refraction), and when a c_k < 0 follows the element of minimal norm on the face,
which slides if its slope lies inside (leak, 1) and crosses otherwise ([LLWA21]_ B.15, [BF24]_
Sec. 3).
"""

import numpy as np
from numba import njit

from reluflow.kernels.codes import BRANCH, CROSS, EXIT, LEAVE, SLIDE
from reluflow.kernels.flow_events import note
from reluflow.kernels.flow_face import (
    box_force,
    face_force,
    outside,
    put,
    tie,
    tied_force,
)
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import dot, norm, parallel


@inner
def through_zero(data, u, z, c):
    """Pattern with which a neuron whose w has become 0 goes on: u = signs of a D_u, if there is.

    Starts from the velocity it arrives with; returns False (and leaves u) when none is found.
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
    """Settle the faces of u: sides for slopes at a bound, 0 for sliding; w is put on its faces."""
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
        if u[k] == 0:
            for _ in range(2):
                h = dot(data.X, k, z)
                for i in range(d):
                    z[i] -= h / data.norms[k] ** 2 * data.X[k, i]


@inner
def goes_through(data, u, z, c, k):
    """Whether a neuron at the kink of sample k alone, on no face, moves on under either slope."""
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

    Samples met at the same moment (all of them when w = 0) are settled together.
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
