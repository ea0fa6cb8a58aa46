"""Neurons from the columns of their cones: present values, paths, moments."""

import numpy as np
from numba import njit

from reluflow.kernels.flow_vector import normalise
from reluflow.kernels.inner import inner


@inner
def place_of(lumped, offset, g, own):
    """Whether cone g is lumped, and the first column that makes a neuron with column ``own``."""
    return lumped[g], offset[g] if lumped[g] else own


@inner
def member(lumped, first, C, Z, j, z):
    """Neuron j, in units of exp(ls_j), when the columns are at C."""
    for e in range(z.size):
        if not lumped:
            z[e] = C[first, e]
            continue
        s = 0.0
        for i in range(z.size):
            s += C[first + i, e] * Z[j, i]
        z[e] = s


@inner
def path_of(cones, members, F, j, path):
    """Dense output of neuron j from that of its cone's columns."""
    lumped, first = place_of(cones.lumped, cones.offset, members.gid[j], members.col[j])
    for q in range(8):
        member(lumped, first, F[q], members.Z, j, path[q])


@njit(cache=True)
def sync(cones, C, members):
    """Bring every neuron to the present: unit z_j and its log-scale."""
    z = np.empty(members.Z.shape[1])
    for j in range(members.gid.size):
        lumped, first = place_of(cones.lumped, cones.offset, members.gid[j], members.col[j])
        member(lumped, first, C, members.Z, j, z)
        members.ls[j] += normalise(z)
        for e in range(z.size):
            members.Z[j, e] = z[e]


@njit(cache=True)
def starts(cones, members, F, which, B):
    """Contributions at the start of the step of the listed neurons."""
    z = np.empty(members.Z.shape[1])
    for i in range(which.size):
        j = which[i]
        lumped, first = place_of(cones.lumped, cones.offset, members.gid[j], members.col[j])
        member(lumped, first, F[0], members.Z, j, z)
        B[i] = 0.5 * np.exp(2.0 * (members.ls[j] + normalise(z)))


@njit(cache=True)
def moments(cones, members, log_size, Q):
    """Second moments of lumped cones, squared factors of the others, in units of log_size."""
    gid, col, Z, ls = members
    width = Z.shape[1]
    for i in range(Q.size):
        Q[i] = 0.0
    for j in range(gid.size):
        g = gid[j]
        s = np.exp(2.0 * (ls[j] - log_size[g]))
        q0 = cones.q_offset[g]
        if not cones.lumped[g]:
            Q[q0 + col[j] - cones.offset[g]] = s
            continue
        for i in range(width):
            for e in range(width):
                Q[q0 + i * width + e] += s * Z[j, i] * Z[j, e]


@njit(cache=True)
def group_max(gid, ls, out):
    """Largest log-scale of each cone."""
    for g in range(out.size):
        out[g] = -np.inf
    for j in range(gid.size):
        out[gid[j]] = max(out[gid[j]], ls[j])
