r"""Outputs, pull and forces of the lumped gradient flow.

With z_j = (w_j, a_j), slopes s_uk of cone u, moments S_u = sum_{j in u} z_j z_j^T:

.. math:: f_k = \sum_u s_{uk} x_k^T S_u[w, a], \quad c_k = -weight\, \ell'(f_k), \quad
    D_u = \sum_k s_{uk} c_k x_k, \quad z_j' = M_u z_j = (a_j D_u, \langle w_j, D_u \rangle).

A cone is a few **columns** y_i with y_i' = M_u y_i: its neurons themselves when they are few, else
the d + 1 columns of the propagator P_u. So S_u = C^T Q C with the columns as rows of C: Q holds the
second moments of the neurons in that basis (r x r), or the weights exp(2 ls_j) of single neurons (r
of them), both over the common factor ``size`` of the cone. On a face (u_k = 0) D_u is the
projection of the rest onto the complement of the span of the x_k: the part that pushes across the
face is what the slopes there cancel, and what is left is the sliding velocity.

The losses of margins q_k = y_k f_k are computed in logarithms: their pulls lose no digits at
margins of thousands, and with ``by_loss`` (ds = L dt) c is divided by L before it can underflow.
"""

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.codes import EXPONENTIAL, LOGISTIC, SQUARE
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import weighted_sum

PLAIN = 600.0  # outputs up to which losses are floats with all their digits


@inner
def softplus(q):
    """log(1 + e^q)."""
    return q + np.log1p(np.exp(-q)) if q > 0 else np.log1p(np.exp(q))


@njit(cache=True)
def log_pull(data, f, xi):
    """xi_k = log |c_k| of a loss of margins q_k = y_k f_k; returns log L.

    Logistic: l = factor log(1 + e^-q), -l' = factor y / (1 + e^q); exponential: l = factor e^-q.
    """
    n = f.size
    base = np.log(data.factor * data.weight)
    top = -np.inf
    for k in range(n):  # log of the loss of each sample, kept in xi for a moment
        q = data.y[k] * f[k]
        if data.kind == EXPONENTIAL:
            value = -q
        elif q > 36.0:  # log log(1 + e^-q), where 1 + e^-q is 1 to rounding
            value = -q - 0.5 * np.exp(-q)
        else:
            value = np.log(softplus(-q))
        xi[k] = value
        top = max(top, value)
    total = 0.0
    for k in range(n):
        total += np.exp(xi[k] - top)
    log_loss = base + top + np.log(total)
    frame = log_loss if data.by_loss else 0.0
    for k in range(n):
        q = data.y[k] * f[k]
        slope = -q if data.kind == EXPONENTIAL else -softplus(q)
        xi[k] = base + slope - frame
    return log_loss


@inner
def logistic_pull(data, f, c):
    """:func:`pull` of the logistic loss while |f| <= `PLAIN`, where e^-q is an ordinary float.

    With t = e^-|q| the loss is log(1 + t) + max(-q, 0) and its slope t / (1 + t) or 1 / (1 + t):
    two functions of the library for a sample where the way through logarithms takes seven, which
    was half of a step.
    """
    total = 0.0
    for k in range(f.size):
        q = data.y[k] * f[k]
        t = np.exp(-abs(q))
        total += np.log1p(t) + max(-q, 0.0)
        c[k] = data.y[k] * (t if q > 0.0 else 1.0) / (1.0 + t)
    unit = 1.0 / total if data.by_loss else data.factor * data.weight
    for k in range(f.size):
        c[k] *= unit
    return np.log(data.factor * data.weight * total)


@njit(cache=True)
def pull(data, f, c):
    """c_k = -weight l'(f_k), divided by L when ``by_loss``; returns log L (0 for squares)."""
    n = f.size
    if data.kind == SQUARE:
        for k in range(n):
            c[k] = data.weight * data.factor * (data.y[k] - f[k])
        return 0.0
    if data.kind == LOGISTIC:
        largest = 0.0
        for k in range(n):
            largest = max(largest, abs(f[k]))
        if largest <= PLAIN:
            return logistic_pull(data, f, c)
    log_loss = log_pull(data, f, c)
    for k in range(n):
        c[k] = data.y[k] * np.exp(c[k])
    return log_loss


@njit(cache=True)
def stiffness(data, f, c, bends):
    """Sum_k |x_k|^2 |dc_k / df_k|: change of D per unit of sum_j |a_j||w_j| (generously).

    ``bends`` receives |dc_k / df_k|. In the clock of the loss c_k also changes through 1 / L, by
    c_k c_i per unit of f_i: the square (sum_k |c_k||x_k|)^2 added at the end.
    """
    total = 0.0
    loss_pull = 0.0
    for k in range(f.size):
        if data.kind == SQUARE:
            bend = data.weight * data.factor
        elif data.kind == LOGISTIC:
            q = data.y[k] * f[k]
            # |dc/df| = weight factor s (1 - s), s = 1 / (1 + e^q), and |c| = weight factor s
            bend = abs(c[k]) / (1.0 + np.exp(-q)) if q > -700 else 0.0
        else:
            bend = abs(c[k])
        bends[k] = bend
        total += bend * data.norms[k] ** 2
        loss_pull += abs(c[k]) * data.norms[k]
    if data.by_loss:
        total += loss_pull * loss_pull
    return total


@njit(cache=True)
def pull_at(cn, theta, c):
    """sum_i cn_i T_i(2 theta - 1), T_i the Chebyshev polynomials: the sampled pull at theta."""
    x = 2.0 * theta - 1.0
    before, now = x, 1.0
    for k in range(c.size):
        c[k] = cn[0, k]
    for i in range(1, cn.shape[0]):
        before, now = now, (2.0 * x * now - before if i > 1 else x)
        for k in range(c.size):
            c[k] += now * cn[i, k]


@njit(cache=True)
def outputs(data, cones, C, f):
    """f_k = sum_u slope_uk <x_k, sum_{j in u} a_j w_j> from columns and moments.

    Row i of Q C[:, a] times row i of C adds up to the mean sum_j a_j w_j: one vector per cone,
    whatever its number of neurons.
    """
    XT, (d, n) = data.XT, data.XT.shape
    mean, along = np.empty(d), np.empty(n)
    for k in range(f.size):
        f[k] = 0.0
    for g in range(cones.size.size):
        if cones.size[g] == 0.0:  # smaller than any float: nothing of it is felt
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
        for k in range(n):
            along[k] = 0.0
        for e in range(d):
            for k in range(n):
                along[k] += XT[e, k] * mean[e]
        for k in range(n):  # slope 0 on a face, where <w, x_k> = 0 adds nothing
            f[k] += cones.size[g] * cones.S[g, k] * along[k]


@inner
def forces(data, cones, c, D):
    """D_u(c) of every cone, projected off the samples of its faces."""
    XT, (d, n) = data.XT, data.XT.shape
    weights = np.empty(n)
    for g in range(D.shape[0]):
        for k in range(n):
            weights[k] = cones.S[g, k] * c[k]
        for e in range(d):
            D[g, e] = weighted_sum(XT, e, weights)
        for row in range(cones.n_offset[g], cones.n_offset[g + 1]):  # orthonormal: one by one
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
        B[g] = 0.5 * max(total, 0.0)  # moments may be negative by rounding
