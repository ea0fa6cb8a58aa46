r"""Event-driven ascent of G on the sphere: straight pieces w + tau D between hyperplanes.

.. math:: w' = D_{v(w)}, \qquad D_v = m + \sum_h v_h \kappa_h n_h

has the same directions as the ascent on the sphere, because G is homogeneous: what D has along w
only changes the length. In a cone D is constant, so the path is a straight line, and the next
hyperplane on it is found by division. Where two sides push towards each other w slides, with the D
of minimal norm on the face (kernels.boxls). Every piece raises G, and G takes finitely many
gradients, so the path ends at a critical direction: w parallel to D.
"""

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.boxls import box_least_norm
from reluflow.kernels.vectors import norm


@njit(cache=True)
def least_gradient(N, m, kappa, v, D):
    """Write into D the gradient of minimal norm on the face of pattern v (zeros on the face)."""
    H, r = N.shape
    base = np.empty(r)
    for c in range(r):
        base[c] = m[c]
    k = 0
    for h in range(H):
        if v[h] == 0:
            k += 1
        else:
            for c in range(r):
                base[c] += v[h] * kappa[h] * N[h, c]
    if k == 0:
        for c in range(r):
            D[c] = base[c]
        return
    Z, slopes = np.empty((k, r)), np.empty(k)
    k = 0
    for h in range(H):
        if v[h] == 0:
            for c in range(r):
                Z[k, c] = kappa[h] * N[h, c]
            k += 1
    box_least_norm(base, Z, -1.0, slopes, D)


@njit(cache=True)
def ascend(N, m, kappa, W, tol, zero, most, status):
    """Move each unit row of W up G to its end; status 1: ended, 0: too many pieces.

    In a cone the direction turns towards the constant gradient D, along w + tau D; the first
    hyperplane met is crossed, or joined when it attracts (gradient of minimal norm on the face).
    """
    (H, r), B = N.shape, W.shape[0]
    D, p, v = np.empty(r), np.empty(H), np.empty(H, np.int8)
    for i in range(B):
        w = W[i]
        status[i] = 0
        for h in range(H):
            x = 0.0
            for c in range(r):
                x += N[h, c] * w[c]
            v[h] = 0 if abs(x) <= tol else (1 if x > 0 else -1)
        for _ in range(most):
            least_gradient(N, m, kappa, v, D)
            size = norm(D)
            if size <= zero:
                status[i] = 1
                break
            # a gradient along w or -w (a maximum of negative value) turns w no further
            p0, side = 0.0, 0.0
            for c in range(r):
                p0 += D[c] * w[c]
            for c in range(r):
                side += (D[c] - p0 * w[c]) ** 2
            if np.sqrt(side) <= tol * size:
                status[i] = 1
                break
            # zeros the gradient points away from are left; a repelling one changes the gradient
            again = False
            for h in range(H):
                p[h] = 0.0
                for c in range(r):
                    p[h] += N[h, c] * D[c]
                if v[h] == 0 and abs(p[h]) > tol * size:
                    v[h] = 1 if p[h] > 0 else -1
                    again = again or kappa[h] > 0
            if again:
                continue
            step = np.inf
            for h in range(H):
                if v[h] * p[h] < 0:
                    x = 0.0
                    for c in range(r):
                        x += N[h, c] * w[c]
                    step = min(step, max(0.0, -x / p[h]))
            if step == np.inf:
                for c in range(r):
                    w[c] = D[c] / size
                status[i] = 1
                break
            for c in range(r):
                w[c] += step * D[c]
            size = norm(w)
            for c in range(r):
                w[c] /= size
            for h in range(H):
                if v[h] * p[h] < 0:
                    x = 0.0
                    for c in range(r):
                        x += N[h, c] * w[c]
                    if abs(x) <= tol:
                        v[h] = 0
                        for c in range(r):
                            w[c] -= x * N[h, c]
