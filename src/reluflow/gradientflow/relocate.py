"""Kinks are located again: from a mover that passes over them to one that lands on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluflow.arrays import Array
from reluflow.gradientflow.cones import place
from reluflow.gradientflow.present import never
from reluflow.gradientflow.solver import Solver
from reluflow.gradientflow.unlocated import Unlocated
from reluflow.kernels.flow_field import pull

FINE = 1e-8  # least tolerance taken in exchange for a coarser one


def located_rtol(rtol: float) -> float:
    """Tolerance of steps that land on kinks, for one of steps that pass over them.

    The other way round it is the square root (:meth:`Solver.handover`): an error proportional to
    the step there, to a high power of it here.
    """
    return min(rtol, max(rtol * rtol, FINE))


@dataclass(frozen=True)
class Relocate:
    """How to locate kinks once more.

    Parameters
    ----------
    rtol, policy, patient, bundles
        As for :class:`Solver`.
    landings : float
        Landings from then on after which it passes over kinks again.
    next_record : callable
        Position of the record after another.
    """

    rtol: float
    policy: int
    patient: bool = False
    bundles: bool = True
    landings: float = math.inf
    next_record: Callable[[float], float] = never

    def __call__(self, old: Unlocated) -> Solver:
        """Neurons, clocks and counts of a mover, in one that locates kinks."""
        now = old.present()
        size = np.linalg.norm(now.Z, axis=1)
        size[size == 0.0] = 1.0
        c = np.empty_like(old.f)
        pull(old.data, old.f, c)
        Z, ls = now.Z / size[:, None], now.ls + np.log(size)
        state, events = place(old.data, Z, ls, c, self.policy)
        most = old.cost["landings"] + self.landings
        new = Solver(
            state,
            self.rtol,
            self.policy,
            old.damped,
            self.patient,
            None,
            self.bundles,
            old.decay,
            most,
        )
        new.events[:0] = old.events or []
        new.t, new.log_time = old.t, old.log_time
        new.cost.update(old.cost)
        new.note(_at(events, old.t))
        new.locate, new.next_record = self, self.next_record
        return new


def _at(events: Array, t: float) -> Array:
    """The same events at time t."""
    events[1 : 1 + int(events[0, 0]), 2] = t
    return events
