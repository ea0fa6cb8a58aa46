"""Leaps: all neurons moved in closed form while the pull may be taken as constant."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.gradientflow.leaps import leap_length, relaxed, stiffest
from reluflow.gradientflow.present import Present
from reluflow.kernels.codes import SQUARE
from reluflow.kernels.flow_leap import leap_all
from reluflow.kernels.flow_types import Members

DAMPED = 3.5  # step times relaxation rate
REST = 1e-13  # held cones whose force is this small against the largest met are at rest


class Leaper:
    """Decides when a leap pays, takes it, and remembers the last one for dense output."""

    def __init__(self, now: Present) -> None:
        self.now = now
        self.still = 0.0  # what held cones allowed last

    def worth(self, limit: float) -> tuple[float, NDArray[np.bool_], float] | None:
        """Length of a leap that pays (at most ``limit``), the held cones, log B_tol; or None.

        Held cones first relax by steps until they allow what dormant ones do, or no more.
        """
        now = self.now
        K, bend = now.stiffness()
        room, still, held, log_tol = leap_length(now.log_sizes(), now.rates, K, now.rtol)
        if now.state.data.kind == SQUARE and float(now.rates[held].max(initial=0)) < REST * now.top:
            still = math.inf
        room = min(room, limit)
        relaxing = still < room and still > 1.1 * self.still
        self.still = still
        H = min(room, still)
        if relaxing or min(2.0 * now.h, limit) > H:
            if relaxing and float(now.rates[held].max()) < 1e-3 * now.top:
                self._damp(held, bend)
            return None
        return H, held, log_tol

    def _damp(self, held: NDArray[np.bool_], bend: Array) -> None:
        """Keep steps short enough to damp the relaxation of held cones."""
        s = self.now.state
        index = np.flatnonzero(held)
        aa, ww = np.empty(index.size), np.empty((index.size, s.d, s.d))
        for i, g in enumerate(index):
            C = s.C[s.cones.offset[g] : s.cones.offset[g + 1]]
            Q = s.cones.Q[s.cones.q_offset[g] : s.cones.q_offset[g + 1]]
            QC = Q.reshape(C.shape[0], -1) @ C if s.cones.lumped[g] else Q[:, None] * C
            S = s.cones.size[g] * (C.T @ QC)
            aa[i], ww[i] = S[-1, -1], S[:-1, :-1]
        fast = stiffest(s.data.X, s.cones.S[index], aa, ww, bend)
        if fast > 0:
            self.now.h = min(self.now.h, DAMPED / fast)

    def _relaxed(self, held: NDArray[np.bool_]) -> Array:
        """Pull once held cones have come to rest."""
        now, s = self.now, self.now.state
        if not held.any() or s.data.by_loss:
            return now.c.copy()
        index = np.flatnonzero(held)
        N = [s.cones.N[s.cones.n_offset[g] : s.cones.n_offset[g + 1]] for g in index]
        return relaxed(s.data.X, s.cones.S[index], N, now.stiffness()[1], now.c)

    def leap(self, H: float, held: NDArray[np.bool_], log_tol: float) -> None:
        """Leap by H, or less if dormant neurons would grow too much."""
        now, s = self.now, self.now.state
        s.sync()
        self.before = (s.Z.copy(), s.ls.copy(), s.gid.copy(), s.U.copy(), held, self._relaxed(held))
        moved = ~held[s.gid]
        bound = max(log_tol, _log_half_sum(s.ls[moved]) + 0.7)
        while True:
            V, events = self._leapt(H, s.Z, s.ls)
            if _log_half_sum(s.ls[moved]) <= bound or not math.isfinite(log_tol):
                break
            H *= 0.5
            s.Z[:], s.ls[:] = self.before[0], self.before[1]
            now.cost["rejected"] += 1
        self.length, self.clocks = H, (now.log_time, now.log_loss)
        changed = np.flatnonzero((s.U[s.gid] != V).any(axis=1))
        if changed.size:
            s.assign(changed, V[changed])
        now.note(events)
        now.cost["leaps"] += 1
        now.cost["steps"] += 1
        now.log_time = self._log_time(H)
        now.t += H
        now.renew()

    def _leapt(self, H: float, Z: Array, ls: Array) -> tuple[NDArray[np.int8], Array]:
        """Leap Z and ls in place from the last start: patterns reached, and events."""
        now, s = self.now, self.now.state
        _, _, gid, U, held, c = self.before
        V = np.empty((gid.size, U.shape[1]), np.int8)
        events = np.zeros((1 + 8 * gid.size + 1000, 4))
        members = Members(gid, s.col, Z, ls)
        leap_all(s.data, U, members, held, c, H, now.t, now.policy, V, events)
        return V, events

    def _log_time(self, H: float) -> float:
        """log of the flow time H into the last leap, during which L is constant."""
        log_time, log_loss = self.clocks
        log_dt = math.log(max(H, 1e-320)) - (log_loss if self.now.state.data.by_loss else 0.0)
        return float(np.logaddexp(log_time, log_dt))

    def within(self, time: float) -> tuple[Array, Array, float]:
        """Unit vectors, log-scales and log of the flow time at a time inside the last leap."""
        H = time - (self.now.t - self.length)
        Z, ls = self.before[0].copy(), self.before[1].copy()
        self._leapt(H, Z, ls)
        return Z, ls, self._log_time(H)


def _log_half_sum(ls: Array) -> float:
    """log of half the sum of exp(2 ls), -inf for none."""
    top = float(np.max(ls, initial=-math.inf))
    if not math.isfinite(top):
        return top
    return 2.0 * top + math.log(0.5 * float(np.sum(np.exp(2.0 * (ls - top)))))
