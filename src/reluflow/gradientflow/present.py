"""The present of a flow: state, outputs, pull, forces, clocks and what has been met so far."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.gradientflow.cones import State
from reluflow.kernels.flow_arrival import arrive, arrive_bundle, empty_log, flush
from reluflow.kernels.flow_field import contributions, field, stiffness
from reluflow.kernels.flow_path import normalise


def lengths(D: Array) -> Array:
    """|D_u| of each row, also where its square is no float."""
    top = np.max(np.abs(D), axis=1, initial=0.0)
    safe = np.where((top > 0.0) & np.isfinite(top), top, 1.0)
    return np.asarray(np.linalg.norm(D / safe[:, None], axis=1) * safe)


class Present:
    """A :class:`State` with the field it moves in.

    Parameters
    ----------
    state : State
    rtol : float
        Relative error aimed at, per neuron and in f.
    policy : int
        What a neuron does on a ridge: ``codes.STAY`` or ``LEAVE``.
    """

    def __init__(self, state: State, rtol: float, policy: int) -> None:
        self.state, self.rtol, self.policy = state, rtol, policy
        self.t, self.log_time, self.h = 0.0, -math.inf, 0.0
        self.cost: Counter[str] = Counter(steps=0, leaps=0, rejected=0, landings=0, traces=0)
        self.events: list[Array] = []
        self.top = 0.0  # largest force met
        self.scale = 0.0  # largest pull met, the unit of rounding noise in slopes
        self.look()

    def look(self) -> None:
        """Outputs, pull and forces of the present state."""
        s = self.state
        n = s.data.y.size
        self.f, self.c, self.D = np.empty(n), np.empty(n), np.empty((s.U.shape[0], s.d))
        self.log_loss = field(s.data, s.cones, s.C, self.f, self.c, self.D)
        self.rates = lengths(self.D)
        safe = np.where(self.rates > 0, self.rates, 1.0)
        self.unit = self.D / safe[:, None]
        self.top = max(self.top, self.fastest)
        self.scale = max(self.scale, float(np.max(np.abs(self.c), initial=0.0)))

    @property
    def fastest(self) -> float:
        """Largest |D_u|."""
        return float(self.rates.max(initial=0.0))

    @property
    def floor(self) -> float:
        """Rounding level of tau_k = slope_k c_k."""
        return 1e-14 * self.scale

    def log_sizes(self) -> Array:
        """log B_u of every cone."""
        s = self.state
        B = np.empty(s.U.shape[0])
        contributions(s.cones, s.C, B)
        with np.errstate(divide="ignore"):
            return np.log(B) + 2.0 * s.log_size

    def stiffness(self) -> tuple[float, Array]:
        """Change of D per unit of B, and |dc_k / df_k| of each sample."""
        bend = np.empty_like(self.f)
        return float(stiffness(self.state.data, self.f, self.c, bend)), bend

    def renew(self) -> None:
        """Start columns afresh after neurons were brought up to date."""
        self.state.rebuild()
        self.look()

    def settle(self, which: NDArray[np.int64], k: int, c: Array) -> None:
        """Give neurons that stand on the kink of sample k (and are up to date) their patterns."""
        s = self.state
        V = s.U[s.gid[which]].copy()
        events = np.zeros((1 + 4 * V.size, 4))
        for i, j in enumerate(which):
            log = empty_log(V.shape[1])
            arrive(s.data, V[i], s.Z[j], c, k, self.t, log, self.policy)
            s.ls[j] += normalise(s.Z[j])
            flush(log, j, events)
        self.note(events)
        s.assign(which, V)

    def settle_bundle(self, which: NDArray[np.int64], k: int, c: Array, D: Array) -> None:
        """As :meth:`settle`, for neurons of one cone that are near the kink of sample k.

        ``D`` is the force of that cone. Each is taken to its own moment on the kink and back.
        """
        s = self.state
        V = s.U[s.gid[which]].copy()
        events = np.zeros((1 + 4 * V.size, 4))
        arrive_bundle(s.data, which, V, s.members, c, k, D, self.t, self.policy, events)
        self.note(events)
        s.assign(which, V)

    def note(self, events: Array) -> None:
        """Keep a list of events (row 0 holds its length)."""
        count = int(events[0, 0])
        if count:
            kept = min(count, events.shape[0] - 1)
            self.events.append(events[1 : kept + 1].copy())
            self.cost["events"] += count
