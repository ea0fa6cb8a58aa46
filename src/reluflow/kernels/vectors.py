"""Products, norms and parallel samples, for every kernel: <x, w>, |D|, cos(x_i, x_k) = +-1.

As loops and not as ``np.dot``: for vectors of two or three entries the call costs more than the
sum, and the order of the additions is the same on every machine; only sums over all samples leave
it to the compiler, since they are long.
"""

import numpy as np

from reluflow.kernels.inner import in_any_order, inner


@inner
def dot(X, k, z):
    """<x_k, w>, over as many entries as x_k has."""
    s = 0.0
    for e in range(X.shape[1]):
        s += X[k, e] * z[e]
    return s


@in_any_order
def weighted_sum(XT, e, weights):
    """Sum_k weights_k x_ke, of samples as columns of XT."""
    s = 0.0
    for k in range(weights.size):
        s += weights[k] * XT[e, k]
    return s


@inner
def along(z, D):
    """<w, D>, over as many entries as D has."""
    s = 0.0
    for e in range(D.size):
        s += z[e] * D[e]
    return s


@inner
def norm(D):
    """|D|, also where its square is no float: then the largest entry is divided out first."""
    s = 0.0
    for e in range(D.size):
        s += D[e] * D[e]
    if 1e-280 < s < 1e300:
        return np.sqrt(s)
    top = 0.0
    for e in range(D.size):
        top = max(top, abs(D[e]))
    if top == 0.0 or not np.isfinite(top):
        return np.sqrt(s)
    s = 0.0
    for e in range(D.size):
        s += (D[e] / top) ** 2
    return top * np.sqrt(s)


@inner
def parallel(X, norms, i, k):
    """Cosine sign (+1, -1) of two parallel samples, 0 when they are not parallel.

    cos = 1 - angle^2/2, so 1e-12 off the cosine is an angle of 1.4e-6: samples closer than that
    have one hyperplane for every purpose of a kink.
    """
    s = dot(X, i, X[k])
    size = norms[i] * norms[k]
    if size == 0.0 or abs(s) < (1.0 - 1e-12) * size:
        return 0
    return 1 if s > 0.0 else -1
