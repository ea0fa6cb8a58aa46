"""Best-first branch and bound with a bound that holds whenever it stops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluflow.arrays import Array
from reluflow.landscape.canonical import Canonical

Nodes = tuple[np.ndarray, ...]
Expand = Callable[[Nodes, float], tuple[Nodes, Array, Array]]


def best_first(
    expand: Expand,
    nodes: Nodes,
    bounds: Array,
    g: Canonical,
    z: Array,
    value: float,
    floor: float,
    budget: int,
    slack: float,
) -> tuple[Array, float, float, int]:
    """Best-first branch and bound; returns the best point, its value, the bound and node count.

    The last array of nodes says which of them can be split further.
    """
    closed, used = -np.inf, len(bounds)
    while len(bounds):
        keep = (bounds > max(value, floor) + slack) & nodes[-1]
        closed = max(closed, float(bounds[~keep].max(initial=-np.inf)))
        nodes, bounds = tuple(a[keep] for a in nodes), bounds[keep]
        room = (budget - used) // 2
        if not len(bounds) or room <= 0:
            break
        take = np.argsort(-bounds, kind="stable")[: min(max(64, len(bounds) // 4), room)]
        chosen = np.zeros(len(bounds), dtype=bool)
        chosen[take] = True
        parents = bounds[chosen]
        children, tops, points = expand(tuple(a[chosen] for a in nodes), max(value, floor) + slack)
        used += len(tops)
        tops = np.minimum(tops, np.tile(parents, len(tops) // max(len(parents), 1)))
        tried = g.G(points)
        if len(tried) and tried.max() > value:
            z, value = points[tried.argmax()], float(tried.max())
        nodes = tuple(np.concatenate([a[~chosen], b]) for a, b in zip(nodes, children, strict=True))
        bounds = np.concatenate([bounds[~chosen], tops])
    upper = max(closed, value, float(bounds.max(initial=-np.inf)))
    return z, value, upper, used
