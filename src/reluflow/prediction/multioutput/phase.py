"""Neurons during a fast phase, and an error-controlled step of all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reluflow.arrays import Array, Sides
from reluflow.landscape.multioutput import ride
from reluflow.problem import Problem

HUGE = 1e100  # a pull whose square would overflow: the step was too long


class Phase(NamedTuple):
    """Neurons during a fast phase: w = e^log v, a = e^log b for balanced ones; active first."""

    problem: Problem
    V: Array
    B: Array
    U: Sides
    log: Array
    n_active: int

    def outputs(self) -> Array:
        """f (n, K), made by the active neurons."""
        k, leak = self.n_active, self.problem.leak
        S = self.problem.X @ self.V[:k].T
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.exp(2.0 * self.log[:k])[:, None]
            return np.asarray(np.maximum(S, leak * S) @ (size * self.B[:k]))

    def pull(self) -> Array:
        """C (n, K) at these outputs."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.problem.pull_at(self.outputs())

    def move(self, C: Array, t: float) -> Phase:
        """Everybody after a time t under a constant pull."""
        found = ride(self.problem, self.V, self.B, self.U, np.ascontiguousarray(C), t)
        factor = np.sqrt(2.0)  # |v|^2 + |b|^2 = 2 for a balanced neuron of norm e^log
        log = self.log + found.log - np.log(factor)
        return self._replace(V=factor * found.W, B=factor * found.A, U=found.U, log=log)

    def part(self, index: Any, n_active: int) -> Phase:
        """Some of the neurons."""
        return Phase(
            self.problem, self.V[index], self.B[index], self.U[index], self.log[index], n_active
        )


def doubled_step(phase: Phase, C: Array, h: float) -> tuple[Phase, float]:
    """A doubled midpoint step and its error in directions, growths and the pull."""

    def midpoint(phase: Phase, C: Array, h: float) -> Phase | None:
        middle = phase.move(C, 0.5 * h).pull()
        return phase.move(middle, h) if np.abs(middle).max() < HUGE else None

    whole, half = midpoint(phase, C, h), midpoint(phase, C, 0.5 * h)
    two = None if half is None else midpoint(half, half.pull(), 0.5 * h)
    if whole is None or two is None or not np.isfinite(two.pull()).all():
        return phase, np.inf
    turn = max(np.abs(two.V - whole.V).max(), np.abs(two.B - whole.B).max())
    grow = np.abs(two.log - whole.log).max()
    first = np.abs(phase.problem.pull).max()
    error = max(turn, grow, float(np.abs(two.pull() - whole.pull()).max()) / first)
    if not np.isfinite(error) or (two.U != whole.U).any():
        return two, float(error) if np.isfinite(error) else np.inf
    V, B = two.V + (two.V - whole.V) / 3.0, two.B + (two.B - whole.B) / 3.0
    return two._replace(V=V, B=B, log=two.log + (two.log - whole.log) / 3.0), float(error)
