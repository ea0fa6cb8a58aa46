"""Basins of the ascent and descent of G on the sphere in three dimensions, by quadrature."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.landscape.canonical import Canonical
from reluflow.landscape.kinds import Critical
from reluflow.landscape.multistart import climb


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
    sides = {p.side.tobytes(): i for i, p in enumerate(points) if abs(p.value) == 0.0}
    for column, sign in enumerate((1.0, -1.0)):
        ends, ok = climb(form, starts, sign)
        near = ends @ z.T
        best = near.argmax(axis=1)
        for i in np.flatnonzero(ok):
            row = sides.get(form.signs(ends[i]).tobytes())
            if row is None and np.linalg.norm(ends[i] - z[best[i]]) < 1e-6:
                row = int(best[i])
            if row is not None:
                shares[row, column] += 1.0 / count
    return shares
