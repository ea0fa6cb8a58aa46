"""Forces on one neuron: projected off the samples of its faces, or of least norm over slopes."""

import numpy as np

from reluflow.kernels.boxls import box_least_norm
from reluflow.kernels.flow_vector import norm
from reluflow.kernels.inner import inner


@inner
def has_face(u):
    """Whether a sample has u_k = 0."""
    found = False
    for k in range(u.size):
        found = found or u[k] == 0
    return found


@inner
def rest_force(data, u, c, D):
    """D = sum of slope_k c_k x_k over the samples off the faces; returns how many are on them."""
    n, d = data.X.shape
    for e in range(d):
        D[e] = 0.0
    faces = 0
    for k in range(n):
        if u[k] == 0:
            faces += 1
            continue
        s = c[k] if u[k] > 0 else data.leak * c[k]
        if s != 0.0:
            for e in range(d):
                D[e] += s * data.X[k, e]
    return faces


@inner
def face_force(data, u, c, D, tau):
    """D_u(c), projected off the x_k with u_k = 0; tau_k = slope_k c_k there. Returns rank gap."""
    X = data.X
    n, d = X.shape
    faces = rest_force(data, u, c, D)
    for k in range(n):
        tau[k] = 0.0
    if faces == 0:
        return 0
    Q, R = np.zeros((faces, d)), np.zeros((faces, faces))
    index = np.empty(faces, np.int64)
    rank = 0
    for k in range(n):
        if u[k] != 0:
            continue
        q = X[k].copy()
        for _ in range(2):
            for b in range(rank):
                p = np.sum(Q[b] * q)
                R[b, rank] += p
                q -= p * Q[b]
        left = norm(q)
        if left <= 1e-12 * data.norms[k]:
            R[:, rank] = 0.0
            continue
        R[rank, rank] = left
        Q[rank] = q / left
        index[rank] = k
        rank += 1
    x = np.zeros(rank)
    for b in range(rank):
        for _ in range(2):
            p = np.sum(Q[b] * D)
            x[b] -= p
            D -= p * Q[b]
    for b in range(rank - 1, -1, -1):
        for q in range(b + 1, rank):
            x[b] -= R[b, q] * x[q]
        x[b] /= R[b, b]
        tau[index[b]] = x[b]
    return faces - rank


@inner
def box_force(data, u, c, D, slopes):
    """Element of minimal norm over slopes in [leak, 1] of the samples with u_k = 0."""
    n, d = data.X.shape
    base = np.empty(d)
    faces = rest_force(data, u, c, base)
    Z, s = np.empty((faces, d)), np.empty(faces)
    i = 0
    for k in range(n):
        if u[k] == 0:
            Z[i] = c[k] * data.X[k]
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
    lost = face_force(data, u, c, D, tau)
    if lost > 0:  # dependent samples: slopes are not unique, compare the two forces
        best, slopes = np.empty(D.size), np.empty(u.size)
        box_force(data, u, c, best, slopes)
        if norm(best - D) > 1e-9 * norm(best) + floor:
            for k in range(u.size):
                if u[k] == 0 and (slopes[k] <= data.leak or slopes[k] >= 1.0):
                    return k
        return -1
    for k in range(u.size):
        if u[k] == 0:
            low, high = min(data.leak * c[k], c[k]), max(data.leak * c[k], c[k])
            if tau[k] < low - floor or tau[k] > high + floor:
                return k
    return -1
