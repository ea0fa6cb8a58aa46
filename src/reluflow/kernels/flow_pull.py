"""The pull c_k = -weight l'(f_k) on each sample, how it bends, and its interpolation in a step."""

import numpy as np
from numba import njit

from reluflow.kernels.codes import EXPONENTIAL, LOGISTIC, SQUARE
from reluflow.kernels.inner import inner


@inner
def softplus(q):
    """log(1 + e^q)."""
    return q + np.log1p(np.exp(-q)) if q > 0 else np.log1p(np.exp(q))


@njit(cache=True)
def pull(data, f, c):
    """c_k = -weight l'(f_k), divided by L when ``by_loss``; returns log L (0 for squares)."""
    n = f.size
    if data.kind == SQUARE:
        for k in range(n):
            c[k] = data.weight * data.factor * (data.y[k] - f[k])
        return 0.0
    base = np.log(data.factor * data.weight)
    top = -np.inf
    for k in range(n):
        q = data.y[k] * f[k]
        if data.kind == EXPONENTIAL:
            value = -q
        elif q > 36.0:
            value = -q - 0.5 * np.exp(-q)
        else:
            value = np.log(softplus(-q))
        c[k] = value
        top = max(top, value)
    total = 0.0
    for k in range(n):
        total += np.exp(c[k] - top)
    log_loss = base + top + np.log(total)
    frame = log_loss if data.by_loss else 0.0
    for k in range(n):
        q = data.y[k] * f[k]
        slope = -q if data.kind == EXPONENTIAL else -softplus(q)
        c[k] = data.y[k] * np.exp(base + slope - frame)
    return log_loss


@njit(cache=True)
def stiffness(data, f, c, bends):
    """Sum_k |x_k|^2 |dc_k / df_k|: change of D per unit of sum_j |a_j||w_j| (generously)."""
    total = 0.0
    loss_pull = 0.0
    for k in range(f.size):
        if data.kind == SQUARE:
            bend = data.weight * data.factor
        elif data.kind == LOGISTIC:
            q = data.y[k] * f[k]
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
    """The sampled pull at theta in [0, 1] from its Chebyshev coefficients."""
    x = 2.0 * theta - 1.0
    before, now = x, 1.0
    for k in range(c.size):
        c[k] = cn[0, k]
    for i in range(1, cn.shape[0]):
        before, now = now, (2.0 * x * now - before if i > 1 else x)
        for k in range(c.size):
            c[k] += now * cn[i, k]
