r"""Loops over cones: the angle sweep in the plane and the test of faces around rays.

In the canonical form of G (landscape.canonical) a pattern v has the gradient

.. math:: D_v = m + \sum_h v_h \kappa_h n_h, \qquad v_h = \mathrm{sign} \langle w, n_h \rangle,

and a face (v_h = 0 on some hyperplanes) holds a critical point of G on the sphere when D_v,
projected on the face, has the signs v (a point of positive value) or -v (of negative value), and
slopes in [-1, 1] on the hyperplanes of the face take up what the projection removed.

In the plane the cones are arcs and each ray changes one sign, so one running sum has all gradients.
In more dimensions every face touches a ray, where r - 1 hyperplanes meet if they are in general
position: 3^(r-1) faces around each ray are all there are.
"""

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.boxls import box_least_norm


@njit(cache=True)
def sweep_gradients(normals, kappa, m, D):
    """Write into D (2H, 2) the gradient on the arc that follows each of the 2H rays.

    normals (H, 2) are sorted by the angle of their rays in [0, pi), each the anticlockwise tangent
    at its ray; ray H + i is opposite to ray i. Sums run in twice the working precision (Knuth's
    two-sum: ``lo`` collects what each addition rounds off), so the rounding does not grow with H.
    """
    H = kappa.size
    for c in range(2):
        hi, lo = m[c], 0.0
        for i in range(3 * H):  # all kinks at -1, then each turned to +1, then each back to -1
            h = i % H
            x = 2.0 * kappa[h] * normals[h, c]
            if i < H:  # before the first ray every sample is on its negative side
                x *= -0.5
            elif i >= 2 * H:
                x = -x
            total = hi + x
            part = total - hi
            lo += (hi - (total - part)) + (x - part)
            hi = total
            if i >= H:
                D[i - H, c] = hi + lo


@njit(cache=True)
def _orthonormal(N, K, mask, Q):
    """Write an orthonormal basis of the normals K selected by mask into Q; return its size."""
    r, z = N.shape[1], 0
    for b in range(K.size):
        if not (mask >> b) & 1:
            continue
        for i in range(r):
            Q[z, i] = N[K[b], i]
        for _ in range(2):
            for e in range(z):
                p = 0.0
                for i in range(r):
                    p += Q[e, i] * Q[z, i]
                for i in range(r):
                    Q[z, i] -= p * Q[e, i]
        size = 0.0
        for i in range(r):
            size += Q[z, i] * Q[z, i]
        size = np.sqrt(size)
        for i in range(r):
            Q[z, i] /= size
        z += 1
    return z


@njit(cache=True)
def _off(Q, z, x):
    """Take the first z rows of Q out of x."""
    for e in range(z):
        p = 0.0
        for i in range(x.size):
            p += Q[e, i] * x[i]
        for i in range(x.size):
            x[i] -= p * Q[e, i]


@njit(cache=True)
def faces_at_rays(N, m, kappa, K, sides, tol, zero, found):
    """Critical candidates among the faces that touch given simple rays.

    K (R, q) are the q independent hyperplanes through each ray, sides (R, H) the sign of the ray on
    every hyperplane (0 on K). Each of the 3^q faces around a ray is a pattern v with zeros Z: its
    candidate is D_v projected on the intersection of Z, and it stays if its signs are +v or -v
    (margin tol) or it is shorter than zero, and slopes in the box balance the rest of the gradient.
    Writes patterns into found (capacity, H), the same face once for each of its rays, and returns
    how many there are (more than the capacity means: call again with more room).
    """
    (H, r), (R, q) = N.shape, K.shape
    Q = np.empty((q, r))
    base, D = np.empty(r), np.empty(r)
    part = np.empty((q, r))
    out = np.empty(q, np.int64)
    rest, left, Z, slopes = np.empty(r), np.empty(r), np.empty((q, r)), np.empty(q)
    count = 0
    for i in range(R):
        for c in range(r):
            base[c] = m[c]
        for h in range(H):
            if sides[i, h] != 0:
                for c in range(r):
                    base[c] += sides[i, h] * kappa[h] * N[h, c]
        for mask in range(1 << q):  # which hyperplanes through the ray hold the face
            z = _orthonormal(N, K[i], mask, Q)
            free = 0
            for b in range(q):
                if not (mask >> b) & 1:
                    out[free] = b
                    for c in range(r):
                        part[free, c] = kappa[K[i, b]] * N[K[i, b], c]
                    _off(Q, z, part[free])
                    free += 1
            for signs in range(1 << free):  # the sides of the others
                for c in range(r):
                    D[c] = base[c]
                _off(Q, z, D)
                for f in range(free):
                    t = 1.0 if (signs >> f) & 1 else -1.0
                    for c in range(r):
                        D[c] += t * part[f, c]
                size = 0.0
                for c in range(r):
                    size += D[c] * D[c]
                size = np.sqrt(size)
                ok = True
                if size > zero:
                    s = 0.0  # all products v_h <n_h, D> must have one sign, that of the value
                    for f in range(free):
                        p = 0.0
                        for c in range(r):
                            p += N[K[i, out[f]], c] * D[c]
                        p = p if (signs >> f) & 1 else -p
                        if abs(p) <= tol * size or s * p < 0.0:
                            ok = False
                            break
                        s = p
                    if ok:
                        for h in range(H):
                            if sides[i, h] == 0:
                                continue
                            p = 0.0
                            for c in range(r):
                                p += N[h, c] * D[c]
                            p *= sides[i, h]
                            if abs(p) <= tol * size or s * p < 0.0:
                                ok = False
                                break
                            s = p
                if ok and z > 0:  # slopes in the box must balance the rest of the gradient
                    for c in range(r):
                        rest[c] = base[c] - D[c]
                    for f in range(free):
                        h = K[i, out[f]]
                        t = kappa[h] if (signs >> f) & 1 else -kappa[h]
                        for c in range(r):
                            rest[c] += t * N[h, c]
                    k = 0
                    for b in range(q):
                        if (mask >> b) & 1:
                            for c in range(r):
                                Z[k, c] = kappa[K[i, b]] * N[K[i, b], c]
                            k += 1
                    box_least_norm(rest, Z[:k], -1.0, slopes[:k], left)
                    allowed = max(8.0 * tol * size, 8.0 * zero)
                    size = 0.0
                    for c in range(r):
                        size += left[c] * left[c]
                    ok = np.sqrt(size) <= allowed
                if not ok:
                    continue
                if count < found.shape[0]:
                    for h in range(H):
                        found[count, h] = sides[i, h]
                    for f in range(free):
                        found[count, K[i, out[f]]] = 1 if (signs >> f) & 1 else -1
                count += 1
    return count
