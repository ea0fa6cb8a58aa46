"""The cones of a program that grows: added when they promise more, left out when idle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array, Sides
from reluflow.optimum.program import Point, Task, restricted

NEAR = 4  # times the rank: hyperplanes that describe a cone at first
PATIENCE = 3  # rounds a cone may be idle
SPREAD = 1e-7  # a direction on a hyperplane brings the cones on either side of it


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
            point = restricted(self.task, self.patterns, self.s, self.walls, unit)
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
