"""Directions that promise more than the neurons in use: ends of ascents in the landscape."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.landscape.canonical import Canonical, canonical
from reluflow.landscape.multistart import climb, starts
from reluflow.optimum.program import Point, Task

STARTS = 96  # directions from which new cones are looked for in each round
MOST_NEW = 24  # directions that bring cones in one round, fewer in high dimension
LANDSCAPE_TOL = 1e-13  # tolerance and gap of the bound: as fine as rounding allows


def landscape(task: Task, c: Array) -> Canonical:
    """G_c in the coordinates of the task."""
    return canonical(task.problem.X, c, task.problem.leak, LANDSCAPE_TOL, reduce=False)


def promising(
    task: Task, c: Array, extra: Array, floor: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Ends of ascents of s G_c above `floor`, best first, and their signs."""
    form = landscape(task, c)
    W, signs = np.zeros((0, task.problem.d)), np.zeros(0)
    for sign in task.signs:
        ends, _ = climb(form, np.vstack([starts(form, STARTS, rng), extra]), float(sign))
        W, signs = np.vstack([W, ends]), np.append(signs, np.full(len(ends), float(sign)))
    values = signs * form.G(W)
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > floor]
    most = min(max(5 * MOST_NEW // task.problem.d, 4), MOST_NEW)
    rows = np.hstack([W[order].round(9), signs[order, None]])
    order = order[np.sort(np.unique(rows, axis=0, return_index=True)[1])][:most]
    return W[order], signs[order]


def reach(task: Task, point: Point, rng: np.random.Generator) -> float:
    """The largest s G_c found by ascent."""
    form = landscape(task, point.c)
    W = np.vstack([starts(form, STARTS, rng), directions(point)])
    return max(float((s * form.G(climb(form, W, float(s))[0])).max()) for s in task.signs)


def directions(point: Point) -> Array:
    """Unit vectors of the neurons in use."""
    sizes = np.linalg.norm(point.v, axis=1)
    used = sizes > 1e-13 * sizes.sum()
    return np.asarray(point.v[used] / sizes[used, None])
