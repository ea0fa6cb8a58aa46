"""All critical points in the plane by one sweep over the angles: O(n log n)."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array, Indices, Sides
from reluflow.landscape.canonical import ZERO_TOL, Canonical
from reluflow.landscape.kinds import Critical


def _name(level: int, ahead: int, behind: int) -> str:
    """Kind from the signs of g along the two tangents; a zero slope follows the level of G."""
    slopes = [g if g else -level for g in (ahead, behind)]
    if slopes == [0, 0]:
        return "flat"
    if 0 in slopes:
        return "weak min" if max(slopes) > 0 else "weak max"
    if slopes[0] != slopes[1]:
        return "saddle" if level else "degenerate saddle"
    return "min" if slopes[0] > 0 else "max"


def sweep(form: Canonical) -> tuple[list[Critical], Array]:
    """Critical points in angular order, and for each arc between them the slope of G along it.

    Needs r = 2 and at least one kink. Two rays w, tangents t = n_h: with D- and D+ the gradients
    before and after the ray, g(t) = <D+, t> and g(-t) = -<D-, t>; the ray is critical unless G
    passes it with a slope of one sign.
    """
    from reluflow.kernels.landscape import sweep_gradients

    ray = np.stack([form.N[:, 1], -form.N[:, 0]], axis=1)
    flip = (ray[:, 1] < 0) | ((ray[:, 1] == 0) & (ray[:, 0] < 0))
    ray = np.where(flip[:, None], -ray, ray)
    order = np.argsort(np.arctan2(ray[:, 1], ray[:, 0]), kind="stable")
    ray, kappa = ray[order], form.kappa[order]
    H = len(order)
    normals = np.stack([-ray[:, 1], ray[:, 0]], axis=1)
    D = np.empty((2 * H, 2))
    sweep_gradients(normals, kappa, form.m, D)
    ray, tangent = np.vstack([ray, -ray]), np.vstack([normals, -normals])
    size = np.linalg.norm(D, axis=1)
    null = size <= ZERO_TOL * form.scale
    before, after = np.roll(np.arange(2 * H), 1), np.arange(2 * H)

    def sign(arc: Indices, side: float) -> Indices:
        g = side * np.einsum("ij,ij->i", D[arc], tangent)
        return np.where(null[arc] | (np.abs(g) <= form.tol * size[arc]), 0, np.sign(g)).astype(int)

    ahead, behind = sign(after, 1.0), sign(before, -1.0)
    value = np.einsum("ij,ij->i", ray, np.where(null[:, None], D[before], D))
    level = np.where(np.abs(value) <= ZERO_TOL * form.scale, 0, np.sign(value)).astype(int)

    end = np.roll(ray, -1, axis=0)
    places: list[tuple[float, Critical]] = []

    def pattern_of(z: Array, on: int | None = None) -> Sides:
        v = form.pattern(z)
        if on is not None:
            v[order[on % H]] = 0
        return v

    for i in np.flatnonzero(ahead * behind >= 0).tolist():
        name = _name(level[i], ahead[i], behind[i])
        loose = level[i] == 0 or ahead[i] == 0 or behind[i] == 0
        index = -1 if loose else int(kappa[i % H] < 0)
        z, G = ray[i], 0.0 if level[i] == 0 else float(form.G(ray[i]))
        places.append((i, Critical(z, G, name, pattern_of(z, i), bool(loose), index)))
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = D / size[:, None]
    for s in (1.0, -1.0):
        w = s * unit
        from_start = ray[:, 0] * w[:, 1] - ray[:, 1] * w[:, 0]
        to_end = w[:, 0] * end[:, 1] - w[:, 1] * end[:, 0]
        for i in np.flatnonzero(~null & (from_start > form.tol) & (to_end > form.tol)).tolist():
            v = pattern_of(w[i])
            fresh = form.m + (v * form.kappa) @ form.N  # summed afresh for this arc
            z = s * fresh / np.linalg.norm(fresh)
            found = Critical(
                z, float(s * np.linalg.norm(fresh)), "max" if s > 0 else "min", v, False, int(s > 0)
            )
            places.append((i + 0.5, found))
    for i in np.flatnonzero(null).tolist():
        gap = np.arctan2(ray[i, 0] * end[i, 1] - ray[i, 1] * end[i, 0], ray[i] @ end[i])
        half = 0.5 * (gap if gap > 0 else gap + 2 * np.pi)
        z = np.cos(half) * ray[i] + np.sin(half) * tangent[i]
        places.append((i + 0.5, Critical(z, 0.0, "flat", pattern_of(z), True, -1)))
    places.sort(key=lambda place: place[0])
    # slope of G just after each critical place: what follows the ray, or the far side of an arc
    slopes = np.zeros(len(places))
    for j, (at, point) in enumerate(places):
        i = int(at)
        if at == i:
            slopes[j] = ahead[i] if ahead[i] else -level[i]
        elif point.kind != "flat":
            slopes[j] = -1.0 if point.kind == "max" else 1.0
    return [point for _, point in places], slopes


def arc_basins(points: list[Critical], slopes: Array) -> Array:
    """Exact share of the circle that climbs to (column 0) or descends to (column 1) each point.

    Between neighbours in the list G is monotone. An open flat arc keeps its own length.
    """
    share = np.zeros((len(points), 2))
    if not points:
        return share
    z = np.array([point.z for point in points])
    angle = np.arctan2(z[:, 1], z[:, 0])
    gaps = np.mod(np.roll(angle, -1) - angle, 2 * np.pi)
    if len(points) == 1:
        gaps[:] = 2 * np.pi
    for i, gap in enumerate(gaps / (2 * np.pi)):
        j = (i + 1) % len(points)
        if slopes[i] > 0:
            share[j, 0] += gap
            share[i, 1] += gap
        elif slopes[i] < 0:
            share[i, 0] += gap
            share[j, 1] += gap
        else:  # half of a flat arc
            flat = i if points[i].kind == "flat" else j
            share[flat] += gap
    return share
