"""Whether a fast phase has all but reached its critical point, and the way that is left."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.landscape.alignment import D
from reluflow.prediction.crew import NO_PULL, Crew, first_total
from reluflow.prediction.polish import ON, Polished, keeps_sides, polish

_NEAR = 1e-5  # relative distance at which a critical point ends the phase
_NEAR_UNIQUE = 1e-2  # the same where it is the only one and the tail meets no kink
_GONE = 1e-6  # an active neuron this small beside the largest, and shrinking, is leaving
_FAR = 1e-9  # pull, over the largest at first, of a sample that is fitted at infinity only
_SEPARATED = 1e-3  # pull, over its first, of a sample that is on the right side for good
_TAIL_NODES = 24


@dataclass(frozen=True, eq=False)
class Arrival:
    """The critical point, who shrinks to zero on the way, and which samples go to infinity.

    ``found`` is None where all samples do.
    """

    found: Polished | None
    leaving: NDArray[np.bool_]
    far: NDArray[np.bool_]


def _leaving(crew: Crew, c: Array) -> NDArray[np.bool_]:
    """Active neurons that are tiny and shrink as fast as their size does."""
    acting = crew.acting
    small = acting.log < acting.log.max() + np.log(_GONE)
    if small.any():
        small &= acting.settled(c).rates < 0.0
    return small


def _far(core: Crew, c: Array) -> NDArray[np.bool_]:
    """Samples on their way to infinity (margin losses).

    Their pull has become small beside the first one, or too small to move any active neuron while
    every sample that one of them reads has a growing margin: at a critical point some sample that
    is read has a margin of 0 or less, since <w_j, D_j> = sum_k |c_k| y_k phi(<w_j, x_k>).
    """
    problem = core.problem
    if not problem.loss.margin:
        return np.zeros(problem.n, dtype=bool)
    first = np.abs(problem.pull)
    far = np.abs(c) < _FAR * first.max()
    sides = core.acting.U
    read = ((sides > 0) | ((sides < 0) & (problem.leak > 0.0))).any(axis=0)
    if not far[read].all() and (np.abs(c) < _SEPARATED * first)[read].all():
        force = np.linalg.norm(D(problem, core.V, c, tol=ON), axis=1)
        if (force <= 2.0 * NO_PULL * first_total(problem)).all():
            far = far | read
    return far


def arrival(crew: Crew, c: Array) -> Arrival | None:
    """The critical point this state is bound for, if it is near enough to be sure."""
    leaving = _leaving(crew, c)
    stay = np.flatnonzero(~leaving)
    core = crew.rows(stay, len(stay))
    far = _far(core, c)
    if far.all():
        return Arrival(None, leaving, far)
    found = polish(core, far)
    if found is None or not found.same or found.residual > 1e-10:
        return None
    if found.distance > _NEAR:
        if found.flat or found.distance > _NEAR_UNIQUE or leaving.any():
            return None
        if not _tail_keeps_pattern(core, found):
            return None
    return Arrival(found, leaving, far)


def _tail_keeps_pattern(core: Crew, found: Polished) -> bool:
    """Whether no active neuron crosses a hyperplane on the straight way to the critical point."""
    a, b = core.acting, found.crew
    start = np.exp(2.0 * a.log)[:, None] * a.V
    end = np.exp(2.0 * b.log)[:, None] * b.V
    way = ((1 - share) * start + share * end for share in np.linspace(0.0, 1.0, 9))
    return all(keeps_sides(replace(a, V=w / np.linalg.norm(w, axis=1)[:, None])) for w in way)


def ride_tail(riding: Crew, t: float, found: Polished) -> tuple[Crew, float]:
    """Tracers under the linear flow's pull until that is within rounding of its limit."""
    linear = found.linear
    felt = np.abs(linear.vectors.T @ linear.start) > 1e-14 * np.abs(linear.start).max()
    values = linear.values[felt & (linear.values > 1e-12 * linear.values.max())]
    if values.size == 0:
        return riding, t
    ends = np.geomspace(0.02 / values.max(), 40.0 / values.min(), _TAIL_NODES)
    for t0, t1 in zip(np.concatenate([[0.0], ends[:-1]]), ends, strict=True):
        riding = riding.moved(found.pull + linear.pull_shift(t0, t1), t1 - t0)
    return riding, t + ends[-1]
