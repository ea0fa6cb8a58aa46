r"""Outputs and forces of the lumped gradient flow.

Neuron j of cone u obeys :math:`z_j' = M_u(c) z_j`, :math:`M_u = [[0, D_u], [D_u^T, 0]]`, so a
cone is a few **columns** y_i with y_i' = M_u y_i: its neurons themselves when they are few, else
the d + 1 columns of the propagator P_u, with second moments Q. A row of ``C`` is one column
(w part, then a part). On a face (u_k = 0) D_u is the projection of the rest onto the complement
of the span of the x_k, the sliding velocity.
"""

import numpy as np
from numba import njit

from reluflow.kernels.flow_pull import pull
from reluflow.kernels.inner import inner


@njit(cache=True)
def outputs(data, cones, C, f):
    """f_k = sum_u slope_uk <x_k, sum_{j in u} a_j w_j> from columns and moments."""
    X, d = data.X, data.X.shape[1]
    mean = np.empty(d)
    for k in range(f.size):
        f[k] = 0.0
    for g in range(cones.size.size):
        if cones.size[g] == 0.0:
            continue
        lo, hi, q0 = cones.offset[g], cones.offset[g + 1], cones.q_offset[g]
        r = hi - lo
        for e in range(d):
            mean[e] = 0.0
        for i in range(r):
            if cones.lumped[g]:
                s = 0.0
                for p in range(r):
                    s += cones.Q[q0 + i * r + p] * C[lo + p, d]
            else:
                s = cones.Q[q0 + i] * C[lo + i, d]
            for e in range(d):
                mean[e] += s * C[lo + i, e]
        for k in range(f.size):
            slope = cones.S[g, k]
            if slope != 0.0:
                s = 0.0
                for e in range(d):
                    s += X[k, e] * mean[e]
                f[k] += cones.size[g] * slope * s


@inner
def forces(data, cones, c, D):
    """D_u(c) of every cone, projected off the samples of its faces."""
    X, d = data.X, data.X.shape[1]
    for g in range(D.shape[0]):
        for e in range(d):
            D[g, e] = 0.0
        for k in range(c.size):
            s = cones.S[g, k] * c[k]
            if s != 0.0:
                for e in range(d):
                    D[g, e] += s * X[k, e]
        for row in range(cones.n_offset[g], cones.n_offset[g + 1]):
            s = 0.0
            for e in range(d):
                s += D[g, e] * cones.N[row, e]
            for e in range(d):
                D[g, e] -= s * cones.N[row, e]


@njit(cache=True)
def field(data, cones, C, f, c, D):
    """Outputs, pull and forces of the columns C; returns log L."""
    outputs(data, cones, C, f)
    log_loss = pull(data, f, c)
    forces(data, cones, c, D)
    return log_loss


@inner
def move(cones, C, D, out):
    """M_u applied to every column: (a D, <w, D>)."""
    d = D.shape[1]
    for g in range(D.shape[0]):
        for i in range(cones.offset[g], cones.offset[g + 1]):
            s = 0.0
            a = C[i, d]
            for e in range(d):
                out[i, e] = a * D[g, e]
                s += C[i, e] * D[g, e]
            out[i, d] = s


@njit(cache=True)
def contributions(cones, C, B):
    """Bound B_g on sum_{j in g} |a_j||w_j|, half of sum |z_j|^2, in units of the cone's size."""
    for g in range(B.size):
        lo, hi, q0 = cones.offset[g], cones.offset[g + 1], cones.q_offset[g]
        r = hi - lo
        total = 0.0
        for i in range(r):
            if cones.lumped[g]:
                for p in range(r):
                    s = 0.0
                    for e in range(C.shape[1]):
                        s += C[lo + i, e] * C[lo + p, e]
                    total += cones.Q[q0 + i * r + p] * s
            else:
                s = 0.0
                for e in range(C.shape[1]):
                    s += C[lo + i, e] ** 2
                total += cones.Q[q0 + i] * s
        B[g] = 0.5 * max(total, 0.0)
