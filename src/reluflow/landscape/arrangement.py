r"""Rays and faces of a central hyperplane arrangement, exact also off general position.

A face is a sign pattern v in {-1, 0, 1}^H that some direction has. In an arrangement whose normals
span the space every face touches a ray (an intersection of dimension one), and the faces that touch
a ray are, near it, the faces of the arrangement of the hyperplanes through it: {-1, 0, 1}^K when
those are independent, else found by the same rule one dimension lower.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb, exp, inf, lgamma, log

import numpy as np

from reluflow.arrays import Array, Sides
from reluflow.landscape.canonical import Canonical, row_space

CLEAR = 1e-7
"""Normals closer to dependent than this, but not dependent, leave completeness unproved."""

_DUAL = 12  # independent normals beyond which rays are taken from the inverse matrix


def in_span(N: Array, tol: float) -> Array:
    """The normals in coordinates of their own span, (H, rank)."""
    basis = row_space(N, tol)
    return N if len(basis) == N.shape[1] else N @ basis.T


def null_vectors(blocks: Array, tol: float) -> tuple[Array, Array]:
    """Unit null vectors (B', r) of blocks (B, r-1, r) and how far each block is from dependent.

    Blocks dependent up to tol are dropped.
    """
    if blocks.shape[2] == 2:
        x = np.stack([blocks[:, 0, 1], -blocks[:, 0, 0]], axis=1)
        size = np.ones(len(x))
    elif blocks.shape[2] == 3:
        x = np.cross(blocks[:, 0], blocks[:, 1])
        size = np.linalg.norm(x, axis=1)
    else:
        _, sizes, Vt = np.linalg.svd(blocks)
        x, size = Vt[:, -1], sizes[:, -1]
    x, size = x[size > tol], size[size > tol]
    return x / np.linalg.norm(x, axis=1, keepdims=True), size


def rays(N: Array, tol: float, chunk: int = 100_000) -> tuple[Array, Sides, bool]:
    """All rays of the arrangement with normals N (H, r) of rank r: unit rows and their patterns.

    The last value is False when some normals are dependent up to less than `CLEAR` but more than
    tol: double precision then cannot place their rays to within tol.
    """
    H, r = N.shape
    clear = True
    if r == 0 or H == 0:
        return np.zeros((0, r)), np.zeros((0, H), dtype=np.int8), clear
    if r == 1:
        lines: Array = np.ones((1, 1))
    elif r == H > _DUAL:  # each ray lies on all hyperplanes but one: the dual basis
        clear = bool(np.linalg.svd(N, compute_uv=False)[-1] > CLEAR)
        dual = np.linalg.inv(N).T
        lines = dual / np.linalg.norm(dual, axis=1, keepdims=True)
    else:
        subsets = combinations(range(H), r - 1)
        parts, seen = [], set()
        left = comb(H, r - 1)
        while left > 0:
            size = min(chunk, left)
            index = np.fromiter(
                (k for _ in range(size) for k in next(subsets)), dtype=np.intp, count=size * (r - 1)
            ).reshape(size, r - 1)
            left -= size
            x, apart = null_vectors(N[index], tol)
            clear = clear and bool((apart > CLEAR).all())
            on = np.abs(x @ N.T) <= tol
            new = on.sum(axis=1) == r - 1  # simple rays come from one subset only
            for i in np.flatnonzero(~new):
                key = np.packbits(on[i]).tobytes()
                if key not in seen:
                    seen.add(key)
                    new[i] = True
                    # the line through all hyperplanes of the group, to full accuracy
                    x[i] = np.linalg.svd(N[on[i]])[2][-1]
            parts.append(x[new])
        lines = np.concatenate(parts)
    both = np.concatenate([lines, -lines])
    p = both @ N.T
    return both, (np.sign(p) * (np.abs(p) > tol)).astype(np.int8), clear


def patterns(N: Array, tol: float) -> Sides:
    """All faces of the arrangement of N (H, r), the zero pattern (the origin) included."""
    H = len(N)
    if H == 0:
        return np.zeros((1, 0), dtype=np.int8)
    N = in_span(N, tol)
    r = N.shape[1]
    if r == H:  # independent normals: every sign vector is a face
        return np.array(list(product((-1, 0, 1), repeat=H)), dtype=np.int8).reshape(-1, H)
    _, sides, _ = rays(N, tol)
    local: dict[bytes, Sides] = {}
    parts = [np.zeros((1, H), dtype=np.int8)]
    for side in sides:
        on = side == 0
        key = on.tobytes()
        if key not in local:
            local[key] = patterns(N[on], tol)
        around = np.repeat(side[None], len(local[key]), axis=0)
        around[:, on] = local[key]
        parts.append(around)
    return np.unique(np.concatenate(parts), axis=0)


def work(H: int, r: int) -> float:
    """Faces looked at by the arrangement method when the normals are in general position."""
    return 2.0 * exp(min(log_subsets(H, r - 1) + (r - 1) * log(3.0), 700.0)) if r > 0 else 1.0


def log_subsets(H: int, k: int) -> float:
    """Logarithm of the number of subsets of k among H, which no float need hold."""
    return lgamma(H + 1) - lgamma(k + 1) - lgamma(H - k + 1) if 0 <= k <= H else -inf


def candidates(form: Canonical) -> tuple[Sides, Array, Sides, bool]:
    """Sides that may hold a critical point, the rays with their patterns, and completeness.

    The tests made on the way (signs and balance of the projected gradient) are necessary ones, so
    the list is complete unless near-dependent normals blur the rays (see `rays`).
    """
    from reluflow.kernels.landscape import faces_at_rays

    H, r = form.N.shape
    if H == 0:
        none = np.zeros((0, 0), dtype=np.int8)
        return np.zeros((1, 0), dtype=np.int8), np.zeros((0, r)), none, True
    basis = row_space(form.N, form.tol)
    inner = form.N if len(basis) == r else form.N @ basis.T
    q = inner.shape[1] - 1
    lines, sides, clear = rays(inner, form.tol)
    if len(basis) < r:
        lines = lines @ basis
    count = (sides == 0).sum(axis=1)
    parts = []
    if len(basis) < r:  # the face on all hyperplanes is more than the origin
        parts.append(np.zeros((1, H), dtype=np.int8))
    simple = sides[count == q]
    K = np.nonzero(simple == 0)[1].reshape(len(simple), q)
    room = 1000
    while len(simple):
        found = np.empty((room, H), dtype=np.int8)
        args = (form.N, form.m, form.kappa, K, simple, form.tol, 1e-12 * form.scale)
        total = faces_at_rays(*args, found)
        if total <= room:
            parts.append(np.unique(found[:total], axis=0))
            break
        room = total
    local: dict[bytes, Sides] = {}
    for side in sides[count > q]:
        on = side == 0
        key = on.tobytes()
        if key not in local:
            local[key] = patterns(inner[on], form.tol)
        around = np.repeat(side[None], len(local[key]), axis=0)
        around[:, on] = local[key]
        parts.append(around)
    return np.unique(np.concatenate(parts), axis=0), lines, sides, clear
