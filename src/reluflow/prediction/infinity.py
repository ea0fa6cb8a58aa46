"""Where a network goes that fits every sample with an ever growing margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reluflow.arrays import Array, Mask, Sides
from reluflow.network import Network
from reluflow.optimum.program import Point, Task, best_in_cones, merge_neurons
from reluflow.problem import Problem

_ON = 1e-7  # |<v, n>| <= _ON |v|: the neuron touches the hyperplane with normal n
_USED = 1e-7  # part of a margin that a neuron must make to count
_ROUNDS = 40
_NEAR = 40  # hyperplanes that describe a cone at first, and samples that ask for a margin


class Direction(NamedTuple):
    """The direction of divergence, words on it, and whether no neighbouring cone is better."""

    network: Network | None
    words: str
    settled: bool


def limit_direction(
    problem: Problem, net: Network, stop: Callable[[], bool] = lambda: False
) -> Direction:
    r"""Direction of divergence of the active neurons of ``net``, normalised, and words on it.

    Margin losses drive the weights to a KKT point of the largest normalised margin
    ([LLWA21]_, [TK24]_). While neurons keep to their activation cones that problem is convex, so
    its solution over the cones of the active neurons is the limit; where a solution touches the
    border of a cone, the cone behind is admitted as well. Cones without a neuron are left out
    again, and of hyperplanes and samples only those that bind enter the program.

    Parameters
    ----------
    problem, net
        The network at the end of the process, whose margins are all positive.
    stop : callable
        Called between two programs; True ends the search with what was found so far.
    """
    on = np.isfinite(net.log_norms)
    task, size = _task(problem)
    W = net.directions[on]
    cones = _Cones(task, task.patterns(W), W, np.sign(net.a[on]))
    best: Point | None = None
    settled = False
    for _ in range(_ROUNDS):
        found = cones.solve()
        if found is None or found.t <= 0.0:
            break
        settled = best is not None and found.t <= best.t * (1.0 + 1e-10)
        if settled:
            break
        best = found
        settled = not cones.widen(found)
        if settled or stop():
            break
    if best is None:
        return Direction(None, "; the direction could not be found.", False)
    v, signs = merge_neurons(best.v, best.s, 1e-9, 1e-5)
    root = np.sqrt(0.5 * np.linalg.norm(v, axis=1))
    direction = Network(
        v / (2.0 * root[:, None]), signs * root, leak=problem.leak, bias=problem.bias
    )
    words = f", towards a direction of normalised margin {0.5 * best.t * size:.8g}."
    if not settled:
        words = words[:-1] + ", the best that was found in the time given."
    return Direction(direction, words, settled)


class Outlook(NamedTuple):
    """Whether diverging neurons keep to their cones, and whether they may come to fit more."""

    keeps: bool
    gains: bool


def outlook(problem: Problem, V: Array, s: Array, U: Sides, read: Mask) -> Outlook:
    """What becomes of neurons that fit the samples ``read`` with growing margin.

    V (k, d), s (k,), U (k, n): directions, signs and sides of the neurons. While they keep to their
    cones they tend to the direction of the largest margin there; if that one touches no hyperplane
    but those on which they slide, they keep to them for ever. Where it touches that of a sample
    that is not read, with the label of the neuron's sign, they may come to fit this sample too.
    """
    task, _ = _task(problem)
    on = task.member >= 0
    sides = np.zeros((len(s), len(task.normals)), dtype=np.int8)
    sides[:, task.member[on]] = U[:, on] * task.side[on]
    cones = _Cones(task, np.where(sides > 0, 1, -1).astype(np.int8), V, s, read)
    found = cones.solve()
    if found is None or not found.t > 0.0:
        return Outlook(False, True)
    slides = np.zeros(cones.patterns.shape, dtype=bool)
    for row, sign, side in zip(np.where(sides > 0, 1, -1), s, sides, strict=True):
        same = (cones.patterns == row).all(axis=1) & (cones.signs == sign)
        slides[same] |= side == 0
    used = cones.task.used(found.v, found.t, _USED)
    met = (cones.touch(found) & ~slides)[used]
    fits = cones.signs[used][:, None] * problem.y[on] > 0.0
    gains = met[:, task.member[on]] & fits & ~read[on]
    return Outlook(not met.any(), bool(gains.any()))


def _task(problem: Problem) -> tuple[Task, float]:
    """The task of the largest margin with samples of size 1, and their size before."""
    size = float(np.abs(problem.X).max())
    scaled = problem.replace(X=problem.X / size, bias=None)
    return Task.of(scaled, margin=True, sign=None), size


class _Cones:
    """Cones (patterns with signs) that may hold a neuron of the limit direction.

    walls (B, H) and samples (n,) say which hyperplanes and samples enter the program: the nearest
    ones first, others when a solution violates them. Only the samples ``wanted`` need a margin.
    """

    def __init__(
        self,
        task: Task,
        patterns: Sides,
        directions: Array,
        signs: Array,
        wanted: Mask | None = None,
    ) -> None:
        self.task = task
        rows = np.column_stack([patterns, signs.astype(np.int8)])
        self.cones, first = np.unique(rows, axis=0, return_index=True)
        near = max(_NEAR, 2 * task.problem.d)
        self.walls = _smallest(np.abs(directions[first] @ task.normals.T), near)
        self.wanted = np.ones(task.problem.n, dtype=bool) if wanted is None else wanted
        margins = task.problem.y * task.outputs(directions, signs)
        self.samples = _smallest(np.where(self.wanted, margins, np.inf)[None], near)[0]
        self.samples &= self.wanted

    @property
    def patterns(self) -> Sides:
        return self.cones[:, :-1]

    @property
    def signs(self) -> Array:
        return self.cones[:, -1].astype(float)

    def solve(self) -> Point | None:
        """The largest margin over these cones; None when the solver fails."""
        task, y = self.task, self.task.problem.y
        slopes = self.signs[:, None] * task.slopes(self.patterns)
        while True:
            found = best_in_cones(task, self.patterns, self.signs, self.walls, 1.0, self.samples)
            if found is None:
                return None
            length = np.linalg.norm(found.v, axis=1, keepdims=True)
            outside = self.patterns * (found.v @ task.normals.T) < -1e-12 * length
            outside &= ~self.walls
            F = np.einsum("bk,kb->k", slopes, task.problem.X @ found.v.T)
            wrong = np.sign(y) * F < found.t * np.abs(y) * (1.0 - 1e-12)
            wrong &= self.wanted & ~self.samples
            if not outside.any() and not wrong.any():
                return found
            self.walls |= outside
            self.samples |= wrong

    def touch(self, found: Point) -> Mask:
        """Hyperplanes (B, H) on which the neurons of a solution lie."""
        distance = np.abs(found.v @ self.task.normals.T)
        return np.asarray(distance <= _ON * np.linalg.norm(found.v, axis=1, keepdims=True))

    def widen(self, found: Point) -> bool:
        """Keep the cones with a neuron and add those behind the hyperplanes they touch.

        Returns whether any were added.
        """
        used, touch = self.task.used(found.v, found.t, _USED), self.touch(found)
        known = {cone.tobytes() for cone in self.cones}
        new, walls = [], []
        for b, h in np.argwhere(touch & used[:, None]):
            other = self.cones[b].copy()
            other[h] = -other[h]
            if other.tobytes() not in known:
                known.add(other.tobytes())
                new.append(other)
                walls.append(self.walls[b] | touch[b])
        if not new:
            return False
        self.cones = np.vstack([self.cones[used], new])
        self.walls = np.vstack([self.walls[used], walls])
        return True


def _smallest(values: Array, count: int) -> Mask:
    """The ``count`` smallest entries of each row."""
    rank = np.argsort(np.argsort(values, axis=1, kind="stable"), axis=1)
    return np.asarray(rank < count)
