"""Cones of a column generation: where they come from, their program, and its sharpened end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array, Sides
from reluflow.landscape.canonical import Canonical, canonical
from reluflow.landscape.multistart import climb, starts
from reluflow.optimum.program import (
    Point,
    Task,
    best_in_cones,
    fewest_neurons,
    merge_neurons,
    sharper_points,
)

STARTS = 96  # directions from which new cones are looked for in each round
MOST_NEW = 24  # directions that bring cones in one round, fewer in high dimension
LANDSCAPE_TOL = 1e-13  # tolerance and gap of the bound: as fine as rounding allows
NEAR = 4  # times the rank: hyperplanes that describe a cone at first
PATIENCE = 3  # rounds a cone may be idle
SPREAD = 1e-7  # a direction on a hyperplane brings the cones on either side of it
MET = 1e-8  # bound and value this close, relatively, are one
SHARP = 1e-9  # and this close, none of them needs another try
NOTHING = 1e-13  # a value this small, on samples and targets of size 1, is no value


def landscape(task: Task, c: Array) -> Canonical:
    """G_c in the coordinates of the task."""
    return canonical(task.problem.X, c, task.problem.leak, LANDSCAPE_TOL, reduce=False)


def promising_directions(
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


class Pool:
    """Cones in use: patterns (B, H) with outer signs s (B,), none twice.

    walls (B, H): hyperplanes that describe each cone, the nearest first, more as they are needed.
    """

    def __init__(self, task: Task) -> None:
        H = len(task.normals)
        self.task = task
        self.patterns: Sides = np.zeros((0, H), dtype=np.int8)
        self.s = np.zeros(0)
        self.walls = np.zeros((0, H), dtype=bool)
        self.idle = np.zeros(0, dtype=int)  # rounds each cone has gone without a neuron

    def _key(self, u: Sides, sign: float) -> bytes:
        return u.tobytes() + (b"+" if sign > 0 else b"-")

    def add(self, w: Array, s: Array) -> int:
        """Add the cones around unit directions w (B, r); returns how many were new."""
        nudge = np.random.default_rng(len(self.s)).normal(size=w.shape) * SPREAD
        near = max(NEAR * w.shape[1], 40)
        known = {self._key(u, sign) for u, sign in zip(self.patterns, self.s, strict=True)}
        new: list[tuple[Array, Sides, float]] = []
        for directions in (w + nudge, w - nudge):
            patterns = self.task.patterns(directions)
            for direction, u, sign in zip(directions, patterns, s, strict=True):
                key = self._key(u, sign)
                if key not in known:
                    known.add(key)
                    new.append((direction, u, float(sign)))
        if new:
            distance = np.abs(np.array([each[0] for each in new]) @ self.task.normals.T)
            rank = np.argsort(np.argsort(distance, axis=1, kind="stable"), axis=1)
            self.walls = np.vstack([self.walls, rank < near])
            self.patterns = np.vstack([self.patterns, [each[1] for each in new]])
            self.s = np.append(self.s, [each[2] for each in new])
            self.idle = np.append(self.idle, np.zeros(len(new), dtype=int))
        return len(new)

    def solve(self, unit: float) -> Point | None:
        """The best network of these cones; walls are added until no vector leaves its cone."""
        while True:
            point = best_in_cones(self.task, self.patterns, self.s, self.walls, unit)
            if point is None:
                return None
            sizes = np.linalg.norm(point.v, axis=1, keepdims=True)
            outside = self.patterns * (point.v @ self.task.normals.T) < -1e-12 * sizes
            outside &= self.task.used(point.v, point.t, 1e-9)[:, None] & ~self.walls
            if not outside.any():
                return point
            self.walls |= outside

    def only(self, used: NDArray[np.bool_]) -> Pool:
        """The pool of some of the cones."""
        part = Pool(self.task)
        part.patterns, part.s, part.walls = self.patterns[used], self.s[used], self.walls[used]
        part.idle = self.idle[used]
        return part

    def forget(self, point: Point, better: bool) -> tuple[Pool, Point]:
        """Count idle cones; when the value has grown leave out those idle for long.

        Values never fall, so a cone that comes back comes back to a better program.
        """
        self.idle = np.where(self.task.used(point.v, point.t, 1e-7), 0, self.idle + 1)
        keep = self.idle <= PATIENCE
        if not better or keep.all():
            return self, point
        return self.only(keep), replace(point, v=point.v[keep], s=point.s[keep])


def sharpen(task: Task, pool: Pool, point: Point, rng: np.random.Generator) -> list[Point]:
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
        for p in sharper_points(task, start):
            points.append(p)
            value, error = _value(task, p)
            kept = value >= p.t * (1.0 - SHARP) and error <= SHARP
            if kept and reach(task, p, rng) <= p.t * (1.0 + SHARP):
                return points + _fewer(task, p)
        if start is not point:
            points.append(start)
    return points + [q for p in points for q in _fewer(task, p)]


def _fewer(task: Task, point: Point) -> list[Point]:
    found = fewest_neurons(task, point)
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
            v, s = merge_neurons(p.v, p.s, 1e-13, 1e-12)
            p = replace(p, v=v / np.linalg.norm(v, axis=1).sum(), s=s)
        tried.append((p, *_value(task, p)))
    least = min(error for _, _, error in tried)
    good = [each for each in tried if each[2] <= max(100.0 * least, 1e-13)]
    most = max(value for _, value, _ in good)
    equal = [g for g in reversed(good) if g[1] >= most - 1e-13 * abs(most)]
    return min(equal, key=lambda g: len(g[0].s))
