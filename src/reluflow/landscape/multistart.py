"""Ascent and descent of G from many starts: critical points, verified but maybe not all; basins."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array, Mask, Sides
from reluflow.landscape.canonical import ZERO_TOL, Canonical, unit_of
from reluflow.landscape.kinds import Critical

GRAM = 1000  # hyperplanes up to which their products are held


def climb(form: Canonical, starts: Array, sign: float = 1.0) -> tuple[Array, Mask]:
    """Ends (B, r) of the ascent of sign * G from unit rows, and whether each one ended."""
    from reluflow.kernels.landscape_ascent import ascend

    W = np.array(starts, dtype=np.float64, order="C")
    status = np.zeros(len(W), dtype=np.int64)
    most = 50 * (form.H + 10)
    unit = unit_of(form.scale)  # the path does not depend on it, and squares of tiny pulls vanish
    m, kappa = sign * form.m / unit, sign * form.kappa / unit
    gram = form.N @ form.N.T if form.H <= GRAM else np.empty((0, 0))
    ascend(form.N, gram, m, kappa, W, form.tol, ZERO_TOL * form.scale / unit, most, status)
    return W, status == 1


def starts(form: Canonical, count: int, rng: np.random.Generator) -> Array:
    """Unit rows: the normals both ways, the mean gradient both ways, and random directions."""
    mean = form.m[None] / unit_of(form.scale)
    fixed = np.vstack([form.N, -form.N, mean, -mean])
    if len(fixed) > count:
        fixed = fixed[rng.permutation(len(fixed))[:count]]
    W = np.vstack([fixed, rng.normal(size=(max(count - len(fixed), 0), form.r))])
    size = np.linalg.norm(W, axis=1)
    return np.asarray(W[size > 0] / size[size > 0, None])


def candidates(form: Canonical, count: int, rng: np.random.Generator) -> tuple[Sides, Array]:
    """Distinct patterns of the ends, with one end each."""
    W = starts(form, count, rng)
    ends = np.concatenate([e[ok] for e, ok in (climb(form, W), climb(form, W, -1.0))])
    v, first = np.unique(form.pattern(ends), axis=0, return_index=True)
    return v, ends[first]


def fibonacci_sphere(count: int) -> Array:
    """Nearly equidistributed unit rows (count, 3): equal slices in height, golden angle around."""
    i = np.arange(count) + 0.5
    height = 1.0 - 2.0 * i / count
    angle = np.pi * (1.0 + np.sqrt(5.0)) * i
    radius = np.sqrt(1.0 - height**2)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)


def sphere_basins(form: Canonical, points: list[Critical], count: int) -> Array:
    """Share of equidistributed starts that climb (column 0) or descend (column 1) to each point.

    A quadrature, not exact: a share is good to about 1 / sqrt(count). An end with D = 0 goes to the
    listed face with its pattern, an end nowhere in the list to no row (the column then sums to
    less than 1).
    """
    shares = np.zeros((len(points), 2))
    if not points:
        return shares
    starts = fibonacci_sphere(count)
    z = np.array([p.z for p in points])
    flat = {p.pattern.tobytes(): i for i, p in enumerate(points) if abs(p.value) == 0.0}
    for column, sign in enumerate((1.0, -1.0)):
        ends, ok = climb(form, starts, sign)
        near = ends @ z.T
        best = near.argmax(axis=1)
        for i in np.flatnonzero(ok):
            row = flat.get(form.pattern(ends[i]).tobytes())
            if row is None and np.linalg.norm(ends[i] - z[best[i]]) < 1e-6:
                row = int(best[i])
            if row is not None:
                shares[row, column] += 1.0 / count
    return shares
