r"""Neurons and their cones: equal patterns, present values, paths, moments.

.. math:: z_j = e^{ls_j} \sum_i Z_{ji}\, y_i \quad (lumped), \qquad z_j = e^{ls_j}\, y_{col_j}
    \quad (single), \qquad Q_{ie} = \sum_{j \in u} e^{2 (ls_j - log\_size_u)} Z_{ji} Z_{je}

with the columns y_i of the neuron's cone, which start as the identity: a lumped neuron is then a
fixed combination Z_j of columns, and nothing is done for it while it stays in its cone. Sizes stay
in exponents; only their ratios to the largest of the cone are taken out of them.
"""

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.flow_path import normalise
from reluflow.kernels.inner import inner


@inner
def hash_of(u):
    """A 64-bit hash of a row of signs (FNV-1a)."""
    value = np.uint64(14695981039346656037)  # offset and, below, prime of FNV-1a for 64 bits
    for k in range(u.size):
        value = (value ^ np.uint64(u[k] + 2)) * np.uint64(1099511628211)
    return value ^ (value >> np.uint64(32))  # only low bits are used: mix the high ones in


@inner
def same(u, v):
    """Whether two rows are equal."""
    equal = True
    for k in range(u.size):
        equal = equal and u[k] == v[k]
    return equal


@njit(cache=True)
def group_rows(V, group, first):
    """group[i] numbers row i by first appearance, first[g] is that row; returns their count.

    Open addressing in a table at most half full: linear in the number of rows, where sorting them
    would compare whole patterns again and again.
    """
    size = 4
    while size < 2 * V.shape[0]:
        size *= 2
    table = np.full(size, -1)
    count = 0
    for i in range(V.shape[0]):
        place = np.int64(hash_of(V[i]) & np.uint64(size - 1))
        # another pattern may have taken this place: go on to the next free one
        while table[place] >= 0 and not same(V[first[table[place]]], V[i]):
            place = (place + 1) % size
        if table[place] < 0:
            table[place] = count
            first[count] = i
            count += 1
        group[i] = table[place]
    return count


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
    """Half of |z_j|^2, which bounds |a_j||w_j|, of the listed neurons at the start of the step."""
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
            Q[q0 + col[j] - cones.offset[g]] = s  # its column is the neuron itself
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
