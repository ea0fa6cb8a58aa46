"""The last digits: sharper points near the solver's, and the best network among them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluflow.optimum.columns_ascent import reach
from reluflow.optimum.columns_pool import Pool
from reluflow.optimum.program import Point, Task
from reluflow.optimum.program_polish import merged, polished, vertex

MET = 1e-8  # bound and value this close, relatively, are one
SHARP = 1e-9  # and this close, none of them needs another try
NOTHING = 1e-13  # a value this small, on samples and targets of size 1, is no value


def sharpened(task: Task, pool: Pool, point: Point, rng: np.random.Generator) -> list[Point]:
    """The point and what Newton's method makes of it, the best guess last.

    If it fails it is tried without the cones not used: cones that share a face share its neurons
    in many ways, which costs the solver digits.
    """
    if not point.t > NOTHING:
        return [point]
    points = [point]
    sizes = np.linalg.norm(point.v, axis=1)
    for used in (np.ones(len(sizes), dtype=bool), task.used(point.v, point.t, 1e-5)):
        start = point if used.all() else pool.only(used).solve(point.t)
        if start is None or not start.t > NOTHING:
            continue
        for p in polished(task, start):
            points.append(p)
            value, error = _value(task, p)
            kept = value >= p.t * (1.0 - SHARP) and error <= SHARP
            if kept and reach(task, p, rng) <= p.t * (1.0 + SHARP):
                return points + _fewer(task, p)
        if start is not point:
            points.append(start)
    return points + [q for p in points for q in _fewer(task, p)]


def _fewer(task: Task, point: Point) -> list[Point]:
    found = vertex(task, point)
    return [] if found is None else [found]


def _value(task: Task, p: Point) -> tuple[float, float]:
    """What the neurons reach by their true outputs, and the largest error of a label they fit,
    each relative to its own size."""
    F, y = task.outputs(p.v, p.s), task.problem.y
    if task.margin:
        return float((np.sign(y) * F / np.abs(y)).min()), 0.0
    error = float((np.abs(F / p.t - y) / task.sizes).max()) if p.t > NOTHING else np.inf
    return p.t if error < 1.0 else 0.0, error


def best_network(task: Task, points: list[Point]) -> tuple[Point, float, float]:
    """The best of the networks found; of equals the narrowest, then the last, the sharpest: a
    value is flat at its maximum and does not tell them apart. Its value and error."""
    tried = []
    for p in points:
        if p.t > NOTHING:
            v, s = merged(p.v, p.s, 1e-13, 1e-12)
            p = replace(p, v=v / np.linalg.norm(v, axis=1).sum(), s=s)
        tried.append((p, *_value(task, p)))
    least = min(error for _, _, error in tried)
    good = [each for each in tried if each[2] <= max(100.0 * least, 1e-13)]
    most = max(value for _, value, _ in good)
    equal = [g for g in reversed(good) if g[1] >= most - 1e-13 * abs(most)]
    return min(equal, key=lambda g: len(g[0].s))
