r"""Gradient descent neuron by neuron, forward and backward pass fused (small d).

.. math:: w_j \leftarrow (1 - lr \lambda) w_j + lr\, a_j D_j, \quad
          a_j \leftarrow (1 - lr \lambda) a_j + lr \langle w_j, D_j \rangle, \quad
          D_j = \sum_k \phi'_{jk} c_k x_k, \quad f_k = \sum_j a_j \phi(\langle w_j, x_k \rangle)

with the weight decay :math:`\lambda` and :math:`\phi'_{jk}` = 1 where <w_j, x_k> > 0 and leak
elsewhere (also on the kink). A neuron sees the others through the pulls c alone, so one pass over
the neurons moves each of them and adds its new output to f: its weights are read once a step.
Samples are stored by feature (``XT``), so that the inner loops run over samples and vectorise also
when d is 2 or 3.
"""

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.codes import DIVERGED, DONE
from reluflow.kernels.pull import Targets, exploded, pulls


@njit(cache=True)
def add_outputs(j, W, a, scale2, XT, leak, slope, s, f):
    """Add scale2 * a_j * phi(<w_j, x_k>) to f (n,), writing phi' into slope[j]."""
    d, n = XT.shape
    for k in range(n):
        s[k] = W[j, 0] * XT[0, k]
    for i in range(1, d):
        for k in range(n):
            s[k] += W[j, i] * XT[i, k]
    outer = scale2[j] * a[j]
    for k in range(n):
        slope[j, k] = 1.0 if s[k] > 0.0 else leak
        f[k] += outer * slope[j, k] * s[k]


@njit(cache=True, fastmath={"reassoc", "contract"})
def add_up(j, slope, c, XT, D):
    """D = sum_k phi'_jk c_k x_k.

    The compiler may reorder the sum (``reassoc``), else it could not use vector registers here.
    """
    d, n = XT.shape
    for i in range(d):
        total = 0.0
        for k in range(n):
            total += slope[j, k] * c[k] * XT[i, k]
        D[i] = total


@njit(cache=True, fastmath={"contract"})
def add_outputs_planar(w0, w1, outer, x0, x1, leak, f):
    """:func:`add_outputs` for two features, in one pass and without storing slopes."""
    for k in range(f.size):
        s = w0 * x0[k] + w1 * x1[k]
        f[k] += outer * max(s, leak * s)


@njit(cache=True, fastmath={"reassoc", "contract"})
def add_up_planar(w0, w1, x0, x1, c, leak):
    """:func:`add_up` for two features; the signs are computed anew, cheaper than to store them."""
    first, second = 0.0, 0.0
    for k in range(c.size):
        g = c[k] if w0 * x0[k] + w1 * x1[k] > 0.0 else leak * c[k]
        first += g * x0[k]
        second += g * x1[k]
    return first, second


@njit(cache=True)
def dense_steps(W, a, scale2, XT, targets, leak, both, lrs, batches, limit, f, slope):
    """Take len(lrs) steps in place; f (n,) and slope (m, n) belong to the state on entry and exit.

    ``targets`` are :class:`reluflow.kernels.pull.Targets`, or a tuple of their fields. Neuron j is
    in units of the root of scale2[j], so its output is scale2[j] a_j phi(<w_j, x_k>). ``both``:
    outer weights move, and decay, too.
    Returns a code and the number of steps taken. With two features ``slope`` is not used.
    """
    targets = Targets(*targets)  # a plain tuple is handed over more quickly
    (d, n), m = XT.shape, a.size
    planar = d == 2
    c, s = np.empty(n), np.empty(n)
    D = np.empty(d)
    x0, x1 = XT[0], XT[d - 1]
    for t in range(lrs.size):
        if exploded(f, limit):
            return DIVERGED, t
        pulls(targets, f, batches[t], c, s)
        lr = lrs[t]
        keep = 1.0 - lr * targets.decay  # exactly 1 without decay, so that nothing is rounded by it
        for k in range(n):
            f[k] = 0.0
        for j in range(m):
            if planar:
                D[0], D[1] = add_up_planar(W[j, 0], W[j, 1], x0, x1, c, leak)
            else:
                add_up(j, slope, c, XT, D)
            outer, inner = a[j], 0.0
            for i in range(d):
                inner += W[j, i] * D[i]  # with w before the step, as in the gradient
                W[j, i] = keep * W[j, i] + lr * outer * D[i]
            if both:
                a[j] = keep * outer + lr * inner
            if planar:
                add_outputs_planar(W[j, 0], W[j, 1], scale2[j] * a[j], x0, x1, leak, f)
            else:
                add_outputs(j, W, a, scale2, XT, leak, slope, s, f)
    if exploded(f, limit):
        return DIVERGED, lrs.size
    return DONE, lrs.size
