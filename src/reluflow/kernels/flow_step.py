r"""Runge-Kutta steps of all columns, in the frame of the force at their start.

A column obeys y' = M_u(c) y. With c_0 the pull at the start of the step and v = exp(-M_u(c_0) t) y
(Lawson's transformation; the exponential is cosh and sinh, see `flow_path`),

.. math:: v' = e^{-M_u(c_0) t} (M_u(c) - M_u(c_0)) y, \qquad v' = 0 \text{ at } t = 0,

so growth under a constant pull is exact, and the step is limited by how fast the pull changes, not
by how fast neurons grow; the first stage is zero. Stages and weights are those of the pair of order
8 of Dormand and Prince ([HNW93]_ II.5): 12 stages and the velocity at the end, three more for dense
output.

Weight decay, z' = (M_u - lambda I) z, is left out of the columns: z = exp(-lambda t) y with
y' = M_u(c) y, where c is the pull at f = exp(-2 lambda t) f(y). So it enters where outputs become f
(``fade``), directions and kinks do not feel it, and whoever takes a step lowers all log-norms.
"""

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.flow_field import forces, move, outputs, pull
from reluflow.kernels.flow_path import basis, turn_one
from reluflow.kernels.flow_types import N_NODES
from reluflow.kernels.inner import inner


@inner
def turn(cones, frame, t, C):
    """Apply exp(M_u(c_0) t) to all columns, in place."""
    for g in range(cones.size.size):
        if frame.rate[g] == 0.0 or t == 0.0:  # the identity
            continue
        unit, ch, sh = frame.unit[g], np.cosh(frame.rate[g] * t), np.sinh(frame.rate[g] * t)
        for i in range(cones.offset[g], cones.offset[g + 1]):
            turn_one(C[i], unit, ch, sh)


@inner
def combine(C, K, weights, count, h, out):
    """out = C + h sum_i weights_i K_i."""
    for i in range(C.shape[0]):
        for e in range(C.shape[1]):
            s = 0.0
            for p in range(count):
                if weights[p] != 0.0:  # a third of the table is
                    s += weights[p] * K[p, i, e]
            out[i, e] = C[i, e] + h * s


@inner
def correct(corrections, i, f):
    """f at time i of the method from the outputs of the columns there, in place."""
    for k in range(f.size):
        f[k] += corrections.extra[i, k]
    if corrections.fade.size > 0:
        for k in range(f.size):
            f[k] *= corrections.fade[i]


@inner
def stage(data, cones, method, frame, corrections, s, y, field, out):
    """Velocity of v at stage s from y = exp(M t) v: exp(-M t) (M(c) - M(c_0)) y."""
    f, c, D = field
    outputs(data, cones, y, f)
    correct(corrections, s, f)
    pull(data, f, c)
    forces(data, cones, c, D)
    for g in range(D.shape[0]):
        for e in range(D.shape[1]):
            D[g, e] -= frame.rate[g] * frame.unit[g, e]  # M(c) - M(c_0) is linear in it
    move(cones, y, D, out)
    turn(cones, frame, -method.c[s] * frame.h, out)


@njit(cache=True)
def stages(data, cones, method, frame, corrections, first, last, C, K, field, v, new):
    """Stages first .. last - 1 of a step from C: fills K, and v and exp(M t) v at the last one.

    Stages 1 .. 12 make the step, v being its end; 13 .. 15 are for dense output. K[0] is 0.
    ``field`` = (f, c, D) receives outputs, pull and forces (less those of the frame) of the last.
    """
    h = frame.h
    for s in range(first, last):
        combine(C, K, method.A[s], s, h, v)
        for i in range(C.shape[0]):
            for e in range(C.shape[1]):
                new[i, e] = v[i, e]
        turn(cones, frame, method.c[s] * h, new)
        stage(data, cones, method, frame, corrections, s, new, field, K[s])


@inner
def error_from(h, q5, q3):
    """Error estimate from the squares of those of orders 5 and 3 ([HNW93]_ II.10)."""
    return h * q5 / np.sqrt(q5 + 0.01 * q3) if q5 > 0.0 else 0.0


@njit(cache=True)
def step_error(cones, method, frame, C, new, K, growth, e5, e3):
    """Largest column error, relative to the column (or to what a propagator may shrink by).

    A neuron is a combination of the columns of a propagator that may be exp(growth) times smaller
    than they are, so an error of theirs counts that much more.
    """
    h, worst = frame.h, 0.0
    for i in range(C.shape[0]):
        for e in range(C.shape[1]):
            s5, s3 = 0.0, 0.0
            for p in range(13):
                s5 += method.E5[p] * K[p, i, e]
                s3 += method.E3[p] * K[p, i, e]
            e5[i, e] = s5
            e3[i, e] = s3
    turn(cones, frame, h, e5)
    turn(cones, frame, h, e3)
    for g in range(cones.size.size):
        sum5, sum3 = 0.0, 0.0
        for i in range(cones.offset[g], cones.offset[g + 1]):
            q5, q3, size = 0.0, 0.0, 0.0
            for e in range(C.shape[1]):
                q5 += e5[i, e] ** 2
                q3 += e3[i, e] ** 2
                size += new[i, e] ** 2
            if cones.lumped[g]:  # columns of a propagator are judged together
                sum5 += q5
                sum3 += q3
            else:
                worst = max(worst, error_from(h, q5, q3) / np.sqrt(max(size, 1e-300)))
        if cones.lumped[g]:
            worst = max(worst, error_from(h, sum5, sum3) * np.exp(growth[g]))
    return worst


@njit(cache=True)
def at(cones, frame, F, theta, out):
    """Columns at fraction theta of a step."""
    phi = np.empty(8)
    basis(theta, phi)
    for i in range(out.shape[0]):
        for e in range(out.shape[1]):
            s = 0.0
            for q in range(8):
                s += phi[q] * F[q, i, e]
            out[i, e] = s
    turn(cones, frame, theta * frame.h, out)


@njit(cache=True)
def sample_pull(data, cones, method, frame, corrections, F, work, cn, logs):
    """Chebyshev coefficients of the pull (rows of ``cn``) and of log L within a step.

    Neurons that meet kinks are carried under this pull alone, one by one (`flow_trace`): sampling
    it once is cheaper than integrating them along with everything else.
    """
    n = data.y.size
    f, c, values = np.empty(n), np.empty(n), np.zeros((N_NODES, n + 1))
    for i in range(N_NODES):
        at(cones, frame, F, method.nodes[i], work)
        outputs(data, cones, work, f)
        correct(corrections, 16 + i, f)  # rows 0 .. 15 are the stages, then the nodes
        values[i, n] = pull(data, f, c)
        for k in range(n):
            values[i, k] = c[k]
    for p in range(N_NODES):
        logs[p] = 0.0
        for k in range(n):
            cn[p, k] = 0.0
        for i in range(N_NODES):
            weight = method.fit[p, i]
            logs[p] += weight * values[i, n]
            for k in range(n):
                cn[p, k] += weight * values[i, k]
