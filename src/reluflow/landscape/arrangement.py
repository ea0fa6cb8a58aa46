r"""Rays and faces of a central hyperplane arrangement, exact also off general position.

A face is a sign pattern v in {-1, 0, 1}^H that some direction has. In an arrangement whose normals
span the space every face touches a ray (an intersection of dimension one), and the faces that touch
a ray are, near it, the faces of the arrangement of the hyperplanes through it: {-1, 0, 1}^K when
those are independent, else found by the same rule one dimension lower.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from math import comb, exp, inf, lgamma, log
from typing import Any

import numpy as np

from reluflow.arrays import Array, Sides
from reluflow.landscape.canonical import ZERO_TOL, Canonical, row_space, signs_of

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
    return both, signs_of(both @ N.T, tol), clear


def faces(N: Array, tol: float) -> Sides:
    """Patterns of all faces of the arrangement of N (H, r), the origin (all 0) included."""
    H = len(N)
    if H == 0:
        return np.zeros((1, 0), dtype=np.int8)
    N = in_span(N, tol)
    r = N.shape[1]
    if r == H:  # independent normals: every sign vector is a face
        return np.array(list(product((-1, 0, 1), repeat=H)), dtype=np.int8).reshape(-1, H)
    origin = np.zeros((1, H), dtype=np.int8)
    return np.unique(np.concatenate([origin, *_faces_around(rays(N, tol)[1], N, tol)]), axis=0)


def _faces_around(rays_of: Sides, N: Array, tol: float) -> list[Sides]:
    """For each ray, given by its pattern, the faces that touch it."""
    local: dict[bytes, Sides] = {}  # opposite rays lie on the same hyperplanes
    parts = []
    for ray in rays_of:
        on = ray == 0
        key = on.tobytes()
        if key not in local:
            local[key] = faces(N[on], tol)
        around = np.repeat(ray[None], len(local[key]), axis=0)
        around[:, on] = local[key]
        parts.append(around)
    return parts


def collect(fill: Callable[[Sides], tuple[Any, ...]], H: int, capacity: int) -> tuple[Any, ...]:
    """The patterns (count, H) a kernel writes, and what else it returns.

    ``fill`` writes as many as the array it is given holds and returns how many there are first:
    with more of them it is called again.
    """
    while True:
        found = np.empty((capacity, H), dtype=np.int8)
        total, *rest = fill(found)
        if total <= capacity:
            return found[:total], *rest
        capacity = total


def work(H: int, r: int) -> float:
    """Faces looked at by the arrangement method when the normals are in general position."""
    return 2.0 * exp(min(log_subsets(H, r - 1) + (r - 1) * log(3.0), 700.0)) if r > 0 else 1.0


def log_subsets(H: int, k: int) -> float:
    """Logarithm of the number of subsets of k among H, which no float need hold."""
    return lgamma(H + 1) - lgamma(k + 1) - lgamma(H - k + 1) if 0 <= k <= H else -inf


def candidates(form: Canonical) -> tuple[Sides, Array, Sides, bool]:
    """Patterns of faces that may hold a critical point, rays with their patterns, completeness.

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
    lines, ray_patterns, clear = rays(inner, form.tol)
    if len(basis) < r:
        lines = lines @ basis
    count = (ray_patterns == 0).sum(axis=1)
    parts = []
    if len(basis) < r:  # the face on all hyperplanes is more than the origin
        parts.append(np.zeros((1, H), dtype=np.int8))
    simple = ray_patterns[count == q]
    if len(simple):
        K = np.ascontiguousarray(np.nonzero(simple == 0)[1]).reshape(len(simple), q)
        args = (form.N, form.m, form.kappa, K, simple, form.tol, ZERO_TOL * form.scale)
        (found,) = collect(lambda found: (faces_at_rays(*args, found),), H, 1000)
        parts.append(np.unique(found, axis=0))
    parts += _faces_around(ray_patterns[count > q], inner, form.tol)
    return np.unique(np.concatenate(parts), axis=0), lines, ray_patterns, clear
