"""Where a network goes that fits every sample with an ever growing margin."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Sides
from reluflow.network import Network
from reluflow.optimum.program import Point, Task, restricted
from reluflow.optimum.program_polish import merged
from reluflow.problem import Problem

_ON = 1e-7  # |<v, n>| <= _ON |v|: the neuron touches the hyperplane with normal n
_ROUNDS = 20


def limit_direction(problem: Problem, net: Network) -> tuple[Network | None, str]:
    r"""Direction of divergence of the active neurons of ``net``, normalised, and words on it.

    Margin losses drive the weights to a KKT point of the largest normalised margin
    ([LLWA21]_, [TK24]_). While neurons keep to their activation cones that problem is convex, so
    its solution over the cones of the active neurons is the limit; where a solution touches the
    border of a cone, the cone behind is admitted as well.
    """
    on = np.isfinite(net.log_norms)
    W, s = net.directions[on], np.sign(net.a[on])
    size = float(np.abs(problem.X).max())
    task = Task.of(problem.replace(X=problem.X / size, bias=None), margin=True, sign=None)
    cones = _unique(np.column_stack([task.patterns(W), s.astype(np.int8)]))
    best: Point | None = None
    for _ in range(_ROUNDS):
        walls = np.ones((len(cones), len(task.normals)), dtype=bool)
        found = restricted(task, cones[:, :-1], cones[:, -1].astype(float), walls, 1.0)
        if found is None or found.t <= 0.0:
            break
        if best is not None and found.t <= best.t * (1.0 + 1e-10):
            break
        best = found
        wider = _unique(np.vstack([cones, *_behind(task, cones, found)]))
        if len(wider) == len(cones):
            break
        cones = wider
    if best is None:
        return None, "; the direction could not be found."
    v, signs = merged(best.v, best.s, 1e-9, 1e-5)
    root = np.sqrt(0.5 * np.linalg.norm(v, axis=1))
    direction = Network(
        v / (2.0 * root[:, None]), signs * root, leak=problem.leak, bias=problem.bias
    )
    margin = 0.5 * best.t * size
    return direction, f", towards a direction of normalised margin {margin:.8g}."


def _unique(cones: Sides) -> Sides:
    return np.unique(cones, axis=0)


def _behind(task: Task, cones: Sides, found: Point) -> list[Sides]:
    """Cones on the other side of the hyperplanes that the solution touches."""
    out = []
    z = found.v @ task.normals.T
    length = np.linalg.norm(found.v, axis=1)
    for cone, row, size in zip(cones, z, length, strict=True):
        for h in np.flatnonzero(np.abs(row) <= _ON * size) if size > 1e-9 else ():
            other = cone.copy()
            other[h] = -other[h]
            out.append(other[None])
    return out
