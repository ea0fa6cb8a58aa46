r"""Upper bounds of G on cells of the sphere and on partial sign patterns.

.. math:: G(w) = f(w) + g(w), \quad
          f = \langle w, m \rangle + \sum_P \kappa_h |\langle w, n_h \rangle|, \quad
          g = \sum_N \kappa_h |\langle w, n_h \rangle|,

P the convex kinks (kappa > 0), N the concave ones. On the unit ball a concave function has one
maximum, and by duality

.. math:: \max_{|w| \le 1} \langle a, w \rangle + g(w)
          = \min_{-1 \le t \le 1} \Big| a + \sum_N t_h \kappa_h n_h \Big|,

a least-norm problem (kernels.boxls). So only the convex kinks need a search, by cells of the sphere
(`cell_bounds`) or by their signs (`sign_bounds`). Bounds are rounded up by a few units in the last
place: they are used as proofs.
"""

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.boxls import box_least_norm_from


@njit(cache=True)
def convex_part(W, m, NP, kP):
    """f(w) = <w, m> + sum kP |<w, n>| at the rows of W."""
    out = np.empty(W.shape[0])
    for i in range(W.shape[0]):
        x = 0.0
        for c in range(m.size):
            x += W[i, c] * m[c]
        for h in range(kP.size):
            p = 0.0
            for c in range(m.size):
                p += W[i, c] * NP[h, c]
            x += kP[h] * abs(p)
        out[i] = x
    return out


@njit(cache=True)
def _cap(b, u, cos_radius):
    """max <b, w> over unit w within the cap around u, rounded up."""
    size, p = np.sqrt(np.sum(b * b)), 0.0
    for c in range(u.size):
        p += b[c] * u[c]
    if size == 0.0:
        return 0.0
    cos_angle = min(1.0, max(-1.0, p / size))
    if cos_angle >= cos_radius:
        return size * (1.0 + 1e-14)
    sin_angle = np.sqrt(max(0.0, 1.0 - cos_angle * cos_angle))
    sin_radius = np.sqrt(max(0.0, 1.0 - cos_radius * cos_radius))
    return size * (cos_angle * cos_radius + sin_angle * sin_radius + 1e-14)


@njit(cache=True)
def cell_bounds(V, F, NN, kN, target, bounds, points):
    """Upper bounds of G on simplicial cones with unit corners V (B, r, r) and f there F (B, r).

    f is convex and homogeneous, so it is below the linear function <a, w> that meets it at the
    corners; g is concave, so it is below each of its linear pieces, and over the whole ball
    max <a, w> + g(w) = min |a + sum t kN n| over -1 <= t <= 1. A cell inside one cone of the convex
    kinks is thus bounded by the global maximum of the piece it lies in. Writes bounds (B,) and
    directions worth trying as lower bounds, points (B, r).
    """
    B, r = F.shape
    k = kN.size
    Z = np.empty((k, r))
    for h in range(k):
        for c in range(r):
            Z[h, c] = kN[h] * NN[h, c]
    state, slopes, D = np.empty(k, np.int8), np.empty(k), np.empty(r)
    for i in range(B):
        a = np.linalg.solve(V[i], F[i])
        u = np.zeros(r)
        for j in range(r):
            u += V[i, j]
        u /= np.sqrt(np.sum(u * u))
        cos_radius, defect, most = 1.0, 0.0, 0.0
        for j in range(r):
            p, q = 0.0, 0.0
            for c in range(r):
                p += V[i, j, c] * u[c]
                q += V[i, j, c] * a[c]
            cos_radius = min(cos_radius, p)
            defect = max(defect, F[i, j] - q)
            most = max(most, abs(F[i, j]))
        # rounding of a: <a, v> may miss f(v) by the defect at a corner
        slack = (defect + 1e-15 * r * most) / cos_radius
        cos_radius -= 1e-15 * r
        b = a.copy()
        for h in range(k):
            p = 0.0
            for c in range(r):
                p += NN[h, c] * u[c]
            state[h] = 1 if p >= 0.0 else -1
            for c in range(r):
                b[c] += state[h] * Z[h, c]
        bound = _cap(b, u, cos_radius) + slack
        points[i] = u
        if bound > target:
            box_least_norm_from(a, Z, -1.0, state, slopes, D)
            size = np.sqrt(np.sum(D * D))
            bound = min(bound, size * (1.0 + 1e-14) + slack, _cap(D, u, cos_radius) + slack)
            if size > 0.0:
                points[i] = D / size
        bounds[i] = bound


@njit(cache=True)
def sign_bounds(states, m, NP, kP, NN, kN, gram, bounds, points, pick):
    """Upper bounds of max G over partial signs (B, P) of the convex kinks (0: not decided).

    With the decided kinks in q and D = q + sum t kN n the shortest over -1 <= t <= 1, every way to
    decide the others gives at most |D + sum s kP n| <= the least of three bounds (triangle, row
    sums of the Gram matrix). At a maximum the signs agree with the gradient, which interval bounds
    may exclude (bound -inf). Writes the convex kink to decide next into pick.
    """
    B, P = states.shape
    r, k = m.size, kN.size
    Z = np.empty((k, r))
    for h in range(k):
        for c in range(r):
            Z[h, c] = kN[h] * NN[h, c]
    state, slopes, D = np.empty(k, np.int8), np.empty(k), np.empty(r)
    for i in range(B):
        q = m.copy()
        for h in range(P):
            if states[i, h] != 0:
                for c in range(r):
                    q[c] += states[i, h] * kP[h] * NP[h, c]
        for h in range(k):
            p = 0.0
            for c in range(r):
                p += NN[h, c] * q[c]
            state[h] = 1 if p >= 0.0 else -1
        box_least_norm_from(q, Z, -1.0, state, slopes, D)
        size2 = np.sum(D * D)
        size = np.sqrt(size2)
        points[i] = D / size if size > 0.0 else D
        triangle, rows, best = size, size2, -1.0
        pick[i] = -1
        for h in range(P):
            if states[i, h] != 0:
                continue
            p = 0.0
            for c in range(r):
                p += NP[h, c] * D[c]
            triangle += kP[h]
            rows += 2.0 * kP[h] * abs(p)
            for j in range(P):
                if states[i, j] == 0:
                    rows += kP[h] * kP[j] * abs(gram[h, j])
            if kP[h] * (abs(p) + kP[h]) > best:
                pick[i], best = h, kP[h] * (abs(p) + kP[h])
        bounds[i] = min(triangle, np.sqrt(rows)) * (1.0 + 1e-13)
        for h in range(P):
            if states[i, h] == 0:
                continue
            p, spread = 0.0, 0.0
            for c in range(r):
                p += NP[h, c] * q[c]
            for j in range(P):
                if states[i, j] == 0:
                    spread += kP[j] * abs(gram[h, j])
            for j in range(k):
                x = 0.0
                for c in range(r):
                    x += NP[h, c] * Z[j, c]
                spread += abs(x)
            if states[i, h] * p + spread < -1e-9 * (abs(p) + spread):
                bounds[i] = -np.inf
                break
