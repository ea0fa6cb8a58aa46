"""Slow, independent looks at G: definitions on samples, dense grids, tiny circles."""

from itertools import combinations

import numpy as np


def G(X, c, leak, w):
    p = w @ X.T
    return np.where(p > 0, p, leak * p) @ c


def random_problem(rng, d, trial):
    """Regression or +-1 labels, leak 0 or 0.2, in turn."""
    n = int(rng.integers(2, 9))
    X = rng.normal(size=(n, d))
    y = rng.normal(size=n) if trial % 2 else rng.choice([-1.0, 1.0], size=n)
    return X, y, (0.0, 0.2)[(trial // 2) % 2]


def sampled_directions(X, rng):
    """Directions in every cone of R^2 or R^3 and every face: sorted angles, planes, rays, grid."""
    n, d = X.shape

    def circle(e, f):
        """Between and on the hyperplanes met by the circle through e, f."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.arctan2(-(X @ e), X @ f)
        scale = np.hypot(X @ e, X @ f) / np.linalg.norm(X, axis=1)
        t = np.sort(np.mod(np.concatenate([t, t + np.pi])[np.tile(scale > 1e-9, 2)], 2 * np.pi))
        mid = 0.5 * (t + np.append(t[1:], t[0] + 2 * np.pi))
        t = np.concatenate([t, mid])
        return np.outer(np.cos(t), e) + np.outer(np.sin(t), f)

    if d == 2:
        return circle(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    parts = [rng.normal(size=(4000, 3))]
    for k in range(n):
        e, f = np.linalg.svd(X[k : k + 1])[2][1:]
        on = circle(e, f)
        parts.append(on)
        normal = X[k] / np.linalg.norm(X[k])
        parts += [on + 1e-7 * normal, on - 1e-7 * normal]  # thin cones beside the plane
    for i, j in combinations(range(n), 2):
        ray = np.cross(X[i], X[j])
        e, f = np.linalg.svd(ray[None])[2][1:]
        ray /= np.linalg.norm(ray)
        t = np.linspace(0, 2 * np.pi, 60, endpoint=False)[:, None]
        ring = np.cos(t) * e + np.sin(t) * f
        parts += [ray + 1e-6 * ring, -ray + 1e-6 * ring]
    W = np.concatenate(parts)
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def signs(X, W, tol=1e-10):
    p = W @ X.T
    return (np.sign(p) * (np.abs(p) > tol * np.linalg.norm(X, axis=1))).astype(int)


def extremal(X, c, leak, W):
    """[BF24] Def. 1 on the patterns of W, by plain linear algebra on the samples.

    Returns {pattern: (w, G, slopes strictly inside)} for D not 0; general position assumed.
    """
    out = {}
    for u in {tuple(row) for row in signs(X, W)}:
        u = np.array(u)
        K = np.flatnonzero(u == 0)
        base = np.where(u > 0, 1.0, leak)[u != 0] * c[u != 0] @ X[u != 0]
        if len(K):
            Z = c[K, None] * X[K]
            s = np.linalg.lstsq(Z.T, -base, rcond=None)[0]
            if len(K) == X.shape[1] - 1:  # a ray: only the part of D across it must vanish
                ray = np.linalg.svd(X[K])[2][-1]
                s = np.linalg.lstsq(Z.T, -(base - (base @ ray) * ray), rcond=None)[0]
            if (s < leak - 1e-9).any() or (s > 1 + 1e-9).any():
                continue
            D = base + s @ Z
        else:
            D = base
        size = np.linalg.norm(D)
        if size < 1e-11:
            continue
        for sign in (1, -1):
            if (signs(X, sign * D[None] / size, 1e-9)[0] == u).all():
                out[tuple(u)] = (sign * D / size, sign * size)
    return out


def local_kind(X, c, leak, w):
    """Kind of w from values of G on a tiny circle around it (d = 2: two points; d = 3)."""
    d = len(w)
    N = X / np.linalg.norm(X, axis=1, keepdims=True)
    p = np.abs(N @ w)
    eps = min(1e-4, 0.2 * p[p > 1e-9].min(initial=1.0))
    basis = np.linalg.svd(w[None])[2][1:]
    if d == 2:
        v = np.array([basis[0], -basis[0]])
    else:
        t = np.linspace(0, 2 * np.pi, 720, endpoint=False)
        for n in N[p <= 1e-9]:  # the kinks themselves
            a = np.arctan2(-(n @ basis[0]), n @ basis[1])
            t = np.append(t, [a, a + np.pi])
        t = np.sort(t)
        v = np.outer(np.cos(t), basis[0]) + np.outer(np.sin(t), basis[1])
    around = np.cos(eps) * w + np.sin(eps) * v
    scale = np.abs(c) @ np.linalg.norm(X, axis=1)
    change = G(X, c, leak, around) - G(X, c, leak, w)
    up, down = change > 1e-13 * scale, change < -1e-13 * scale
    if up.all():
        return "min"
    if down.all():
        return "max"
    if up.any() and down.any():
        return "saddle"
    return "weak min" if up.any() else "weak max" if down.any() else "flat"


def grid_extrema(X, c, leak):
    """Strict extrema of G on a dense grid, refined by shrinking local search: (w, kind) pairs."""
    d = X.shape[1]
    if d == 2:
        t = np.linspace(0, 2 * np.pi, 7000, endpoint=False)
        W = np.stack([np.cos(t), np.sin(t)], axis=1)
        near = np.stack([np.roll(np.arange(7000), 1), np.roll(np.arange(7000), -1)], axis=1)
        step = 2 * np.pi / 7000
    else:
        from scipy.spatial import cKDTree

        i = np.arange(6000) + 0.5
        z, a = 1 - 2 * i / 6000, np.pi * (1 + 5**0.5) * i
        W = np.stack([np.sqrt(1 - z**2) * np.cos(a), np.sqrt(1 - z**2) * np.sin(a), z], axis=1)
        near = cKDTree(W).query(W, k=20)[1][:, 1:]
        step = 0.06
    value = G(X, c, leak, W)
    out = []
    for s, name in ((1, "max"), (-1, "min")):
        top = np.flatnonzero((s * value[:, None] > s * value[near] + 1e-9).all(axis=1))
        for k in top:
            out.append((refine(X, c, leak, W[k], s, step), name))
    return out


def refine(X, c, leak, w, s, step):
    """Shrinking pattern search for a maximum of s * G near w."""
    d = len(w)
    rng = np.random.default_rng(0)
    for _ in range(400):
        basis = np.linalg.svd(w[None])[2][1:]
        t = np.linspace(-1, 1, 41)[:, None]
        v = t * basis[0] if d == 2 else rng.uniform(-1, 1, size=(200, 2)) @ basis
        try_w = w + step * v
        # ridges are thin: also try the same points moved onto the kinks nearby, and their crossings
        N = X / np.linalg.norm(X, axis=1, keepdims=True)
        near = N[np.abs(N @ w) < 2 * step]
        if d == 3:
            parts = [try_w] + [try_w - np.outer(try_w @ n, n) for n in near]
            rays = [np.cross(a, b) for a, b in combinations(near, 2)]
            rays = [r / np.linalg.norm(r) * np.sign(r @ w) for r in rays if r.any()]
            parts += [r[None] for r in rays if np.linalg.norm(r - w) < 2 * step]
            try_w = np.concatenate(parts)
        try_w /= np.linalg.norm(try_w, axis=1, keepdims=True)
        values = s * G(X, c, leak, try_w)
        if values.max() > s * G(X, c, leak, w) + 1e-3 * step**2:
            w = try_w[values.argmax()]
        else:
            step *= 0.6
    return w
