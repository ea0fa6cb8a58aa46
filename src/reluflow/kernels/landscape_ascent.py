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
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import dot, norm

ANEW = 32  # crossings after which products are computed anew


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


@inner
def products(N, v, out):
    """<n_h, v> of every hyperplane."""
    for h in range(out.size):
        out[h] = dot(N, h, v)


@inner
def cross(gram, kappa, N, v, hit, D, p):
    """Cross the hyperplane ``hit``, off all others: bring v, D and its products up to date.

    Returns whether D goes on to lead across on the other side; else nothing is changed, as the
    hyperplane attracts.
    """
    change = -2.0 * v[hit] * kappa[hit]
    if not v[hit] * (p[hit] + change) < 0.0:
        return False
    v[hit] = -v[hit]
    for c in range(D.size):
        D[c] += change * N[hit, c]
    for h in range(p.size):
        p[h] += change * gram[hit, h]
    return True


@njit(cache=True)
def ascend(N, gram, m, kappa, W, tol, zero, most, status):
    """Move each unit row of W up G to its end; status 1: ended, 0: too many pieces.

    In a cone the direction turns towards the constant gradient D, along w + tau D; the first
    hyperplane met is crossed, or joined when it attracts (gradient of minimal norm on the face).
    ``gram`` is N N^T or empty: with it a crossing costs H operations instead of H r, the products
    of N with w and D being brought up to date, and computed anew now and then against rounding.
    """
    (H, r), B = N.shape, W.shape[0]
    D, p, s, v = np.empty(r), np.empty(H), np.empty(H), np.empty(H, np.int8)
    for i in range(B):
        w = W[i]
        status[i] = 0
        products(N, w, s)
        for h in range(H):
            v[h] = 0 if abs(s[h]) <= tol else (1 if s[h] > 0 else -1)
        stale = ANEW
        for _ in range(most):
            if stale >= ANEW:
                least_gradient(N, m, kappa, v, D)
                products(N, D, p)
                products(N, w, s)
                stale = 0
            size = norm(D)
            # ends are judged, and taken, by products without the rounding of many crossings
            if size <= zero:
                if stale > 0:
                    stale = ANEW
                    continue
                status[i] = 1
                break
            # a gradient along w or -w (a maximum of negative value) turns w no further
            p0, side = 0.0, 0.0
            for c in range(r):
                p0 += D[c] * w[c]
            for c in range(r):
                side += (D[c] - p0 * w[c]) ** 2
            if np.sqrt(side) <= tol * size:
                if stale > 0:
                    stale = ANEW
                    continue
                status[i] = 1
                break
            # zeros the gradient points away from are left; a repelling one changes the gradient
            again, faces = False, 0
            for h in range(H):
                if v[h] == 0:
                    if abs(p[h]) > tol * size:
                        v[h] = 1 if p[h] > 0 else -1
                        again = again or kappa[h] > 0
                    else:
                        faces += 1
            if again:
                stale = ANEW
                continue
            # a hyperplane that D itself is on is approached for ever: the sign of p is rounding
            step, least = np.inf, tol * size
            for h in range(H):
                if v[h] * p[h] < -least:
                    step = min(step, max(0.0, -s[h] / p[h]))
            if step == np.inf:
                if stale > 0:
                    stale = ANEW
                    continue
                for c in range(r):
                    w[c] = D[c] / size
                status[i] = 1
                break
            square = 0.0
            for c in range(r):
                square += (w[c] + step * D[c]) ** 2
            size = np.sqrt(square)
            if size <= tol:  # back to the origin, all along -w but for rounding
                if stale > 0:
                    stale = ANEW
                    continue
                status[i] = 1
                break
            for c in range(r):
                w[c] = (w[c] + step * D[c]) / size
            met, hit = 0, -1
            for h in range(H):
                s[h] = (s[h] + step * p[h]) / size
                if v[h] * p[h] < -least and abs(s[h]) <= tol:
                    met, hit = met + 1, h
            if met == 1 and faces == 0 and gram.size > 0 and cross(gram, kappa, N, v, hit, D, p):
                stale += 1
                continue
            for h in range(H):
                if v[h] * p[h] < -least and abs(s[h]) <= tol:
                    v[h] = 0
                    x = dot(N, h, w)
                    for c in range(r):
                        w[c] -= x * N[h, c]
            stale = ANEW
