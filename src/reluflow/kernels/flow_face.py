r"""Forces on one neuron: projected off the samples of its faces, or of least norm over slopes.

For a pattern u and the pull c, D_rest = sum over u_k != 0 of slope_k c_k x_k, and

.. math:: D = D_{rest} + \sum_{u_k = 0} \tau_k x_k \quad \text{with } \langle D, x_k \rangle = 0,
    \qquad D^* = \operatorname{argmin}_{leak \le s_k \le 1} |D_{rest} + \sum_{u_k = 0} s_k c_k x_k|.

The first (`face_force`) is the sliding velocity over a: tau_k = s_k c_k are whatever holds the
neuron on its faces. It is what the flow does as long as every s_k lies in [leak, 1] (`outside`);
the second (`box_force`) is what it does in any case, and agrees with the first while sliding goes
on. Samples on one hyperplane share one slope and are treated as one (`tie`).
"""

import numpy as np

from reluflow.kernels.boxls import box_least_norm
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import along, norm, parallel


@inner
def has_face(u):
    """Whether a sample has u_k = 0."""
    found = False
    for k in range(u.size):
        found = found or u[k] == 0
    return found


@inner
def tie(data, u, c, v, e):
    """Faces on one hyperplane as one: pattern v and pulls e in which only its first sample counts.

    With x_i = -r x_k the slopes add up to 1 + leak, so s c_k x_k + (1 + leak - s) c_i x_i is
    s (c_k + r c_i) x_k + (1 + leak) c_i x_i. In v the others are 2 (parallel) or -2 (opposite).
    """
    faces = 0
    for k in range(u.size):
        v[k], e[k] = u[k], c[k]
        if u[k] == 0 and data.norms[k] > 0.0:
            faces += 1
    if faces < 2:
        return
    for k in range(u.size):
        if v[k] != 0:
            continue
        for i in range(k + 1, u.size):
            if v[i] == 0:
                way = parallel(data.X, data.norms, i, k)
                if way != 0:
                    v[i] = 2 * way
                    e[k] += c[i] * data.norms[i] / data.norms[k]


@inner
def put(data, u, k, side):
    """Side of sample k, and of the samples on its hyperplane, for a neuron that leaves it."""
    for i in range(u.size):
        if i != k and u[i] == 0:
            u[i] = side * parallel(data.X, data.norms, i, k)
    u[k] = side


@inner
def rest_force(data, v, c, D):
    """D = sum of slope_k c_k x_k over the samples off the faces; returns how many are on them."""
    n, d = data.X.shape
    for e in range(d):
        D[e] = 0.0
    faces = 0
    for k in range(n):
        if v[k] == 0:
            faces += 1
            continue
        if v[k] == 2:  # tied and parallel: its pull is part of the first one's
            continue
        s = c[k] if v[k] > 0 else data.leak * c[k]
        if v[k] == -2:  # tied and opposite: (1 + leak) c_k is its constant part
            s += c[k]
        if s != 0.0:
            for e in range(d):
                D[e] += s * data.X[k, e]
    return faces


@inner
def take_out(q, v):
    """Subtract from v its part along the unit vector q; returns <q, v>."""
    p = along(q, v)
    for e in range(v.size):
        v[e] -= p * q[e]
    return p


@inner
def face_force(data, u, c, D, tau):
    """D_u(c), projected off the x_k with u_k = 0; tau_k = slope_k c_k there. Returns rank gap."""
    n = u.size
    v, e = np.empty(n, np.int8), np.empty(n)
    tie(data, u, c, v, e)
    return tied_force(data, v, e, D, tau)


@inner
def tied_force(data, u, c, D, tau):
    """:func:`face_force` of a pattern and pulls from :func:`tie`.

    Gram-Schmidt, each projection done twice (once more removes what rounding left): x_k = sum_b
    R_bk q_b. D = D_rest + sum_b x_b q_b, so the multipliers solve R tau = x. Samples that depend
    on the ones before are left out; their number is returned.
    """
    X = data.X
    n, d = X.shape
    faces = rest_force(data, u, c, D)
    for k in range(n):
        tau[k] = 0.0
    if faces == 0:
        return 0
    Q, R = np.empty((faces, d)), np.empty((faces, faces))
    index = np.empty(faces, np.int64)
    rank = 0
    for k in range(n):
        if u[k] != 0:
            continue
        q = Q[rank]
        for e in range(d):
            q[e] = X[k, e]
        for b in range(rank):
            R[b, rank] = 0.0
        for _ in range(2):
            for b in range(rank):
                R[b, rank] += take_out(Q[b], q)
        left = norm(q)
        if left <= 1e-12 * data.norms[k]:  # in the span of those before
            continue
        R[rank, rank] = left
        for e in range(d):
            q[e] /= left
        index[rank] = k
        rank += 1
    x = np.empty(faces)
    for b in range(rank):
        x[b] = 0.0
        for _ in range(2):
            x[b] -= take_out(Q[b], D)
    for b in range(rank - 1, -1, -1):  # back substitution
        for i in range(b + 1, rank):
            x[b] -= R[b, i] * x[i]
        x[b] /= R[b, b]
        tau[index[b]] = x[b]
    return faces - rank


@inner
def box_force(data, u, c, D, slopes):
    """Element of minimal norm over slopes in [leak, 1] of the samples with u_k = 0, once tied."""
    n, d = data.X.shape
    base = np.empty(d)
    faces = rest_force(data, u, c, base)
    Z, s = np.empty((faces, d)), np.empty(faces)
    i = 0
    for k in range(n):
        if u[k] == 0:
            for e in range(d):
                Z[i, e] = c[k] * data.X[k, e]
            i += 1
    box_least_norm(base, Z, data.leak, s, D)
    i = 0
    for k in range(n):
        slopes[k] = 0.0
        if u[k] == 0:
            slopes[k] = s[i]
            i += 1


@inner
def outside(data, u, c, D, tau, floor):
    """Whether sliding on the faces of u needs a slope outside [leak, 1]; a sample, or -1."""
    v, e = np.empty(u.size, np.int8), np.empty(u.size)
    tie(data, u, c, v, e)
    return tied_outside(data, v, e, D, tau, floor)


@inner
def tied_outside(data, u, c, D, tau, floor):
    """:func:`outside` of a pattern and pulls from :func:`tie`."""
    lost = tied_force(data, u, c, D, tau)
    if lost > 0:  # dependent samples: slopes are not unique, compare the two forces
        best, slopes = np.empty(D.size), np.empty(u.size)
        box_force(data, u, c, best, slopes)
        size, gap = norm(best), 0.0
        for e in range(D.size):
            gap += (best[e] - D[e]) * (best[e] - D[e])
        if np.sqrt(gap) > 1e-9 * size + floor:
            for k in range(u.size):
                if u[k] == 0 and (slopes[k] <= data.leak or slopes[k] >= 1.0):
                    return k
        return -1
    for k in range(u.size):
        if u[k] == 0:
            # tau_k = s_k c_k: compared without dividing by c_k, which may be 0
            low, high = min(data.leak * c[k], c[k]), max(data.leak * c[k], c[k])
            if tau[k] < low - floor or tau[k] > high + floor:
                return k
    return -1
