"""The present of a flow: state, outputs, pull, forces, clocks and what has been met so far."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from reluflow.arrays import Array, Indices
from reluflow.gradientflow.cones import State
from reluflow.kernels.flow_arrival import arrive, arrive_bundle, empty_log, flush
from reluflow.kernels.flow_field import contributions, field, stiffness
from reluflow.kernels.flow_path import normalise


def lengths(D: Array) -> Array:
    """|D_u| of each row, also where its square is no float."""
    top = np.max(np.abs(D), axis=1, initial=0.0)
    safe = np.where((top > 0.0) & np.isfinite(top), top, 1.0)
    return np.asarray(np.linalg.norm(D / safe[:, None], axis=1) * safe)


def never(_: float) -> float:
    """No record is wanted."""
    return math.inf


class Present:
    """A :class:`State` with the field it moves in.

    Parameters
    ----------
    state : State
    rtol : float
        Relative error aimed at, per neuron and in f.
    policy : int
        What a neuron does on a ridge: ``codes.STAY`` or ``LEAVE``.
    decay : float
        Weight decay: all log-norms lose so much per unit of time.
    """

    def __init__(self, state: State, rtol: float, policy: int, decay: float = 0.0) -> None:
        self.state, self.rtol, self.policy, self.decay = state, rtol, policy, decay
        self.t, self.log_time, self.h = 0.0, -math.inf, 0.0
        self.cost: Counter[str] = Counter(steps=0, leaps=0, rejected=0, landings=0, traces=0)
        self.events: list[Array] = []
        self.next_record: Callable[[float], float] = never  # position of the one after another
        self.top = 0.0  # largest force met
        self.scale = 0.0  # largest pull met, the unit of rounding noise in slopes
        self.look()

    def look(self) -> None:
        """Outputs, pull and forces of the present state."""
        s = self.state
        n = s.data.y.size
        self.f, self.c, self.D = np.empty(n), np.empty(n), np.empty((s.U.shape[0], s.d))
        self._stiffness: tuple[float, Array] | None = None  # of these outputs, once asked for
        self._log_sizes: Array | None = None  # likewise
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
        if self._log_sizes is None:
            s = self.state
            B = np.empty(s.U.shape[0])
            contributions(s.cones, s.C, B)
            with np.errstate(divide="ignore"):
                self._log_sizes = np.log(B) + 2.0 * s.log_size
        return self._log_sizes

    def velocities(self) -> tuple[Array, Array, Array]:
        """Unit vectors, log-scales, and velocities M_u z - decay z of the unit vectors."""
        Z, ls = self.state.neurons()
        D = self.D[self.state.gid]
        V = np.column_stack([Z[:, -1:] * D, np.sum(Z[:, :-1] * D, axis=1)])
        return Z, ls, V - self.decay * Z

    def stiffness(self) -> tuple[float, Array]:
        """Change of D per unit of B, and |dc_k / df_k| of each sample."""
        if self._stiffness is None:
            bend = np.empty_like(self.f)
            self._stiffness = float(stiffness(self.state.data, self.f, self.c, bend)), bend
        return self._stiffness

    def renew(self) -> None:
        """Start columns afresh after neurons were brought up to date."""
        self.state.rebuild()
        self.look()

    def settle(self, which: Indices, k: int, c: Array, D: Array | None = None) -> None:
        """Give neurons that stand on the kink of sample k (and are up to date) their patterns.

        With the force D of their cone they are near it only, and each is taken to its own moment
        on the kink and back.
        """
        s = self.state
        V = s.U[s.gid[which]].copy()
        events = np.zeros((1 + 4 * V.size, 4))
        if D is not None:
            arrive_bundle(s.data, which, V, s.members, c, k, D, self.t, self.policy, events)
        else:
            for i, j in enumerate(which):
                log = empty_log(V.shape[1])
                arrive(s.data, V[i], s.Z[j], c, k, self.t, log, self.policy)
                s.ls[j] += normalise(s.Z[j])
                flush(log, j, events)
        self.note(events)
        s.assign(which, V)

    def note(self, events: Array) -> None:
        """Keep a list of events (row 0 holds its length)."""
        count = int(events[0, 0])
        if count:
            kept = min(count, events.shape[0] - 1)
            self.events.append(events[1 : kept + 1].copy())
            self.cost["events"] += count
