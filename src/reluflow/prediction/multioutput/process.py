"""The result of `limit` with several outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.prediction.process import JumpProcess, log_inverse


@dataclass(frozen=True, eq=False, repr=False)
class VectorProcess(JumpProcess):
    """A :class:`JumpProcess` with several outputs; ``signs`` are 0.

    ``outer`` has for each plateau the unit directions (m, K) of the outer weights. ``parts_at`` is
    the time, in units of log(1/scale), at which neurons that have jumped together part; the
    process is not followed beyond it. Infinite where that does not happen.
    """

    outer: tuple[Array, ...] = ()
    parts_at: float = np.inf

    def at(self, t: float, scale: float | None = None, log_scale: float | None = None) -> Network:
        """The network at real time ``t`` from a start of this scale, as for one output."""
        L = log_inverse(scale, log_scale)
        jumps = self.jump_times(scale, log_scale)
        i = int(np.searchsorted(jumps, t, side="right"))
        start = self.times[i - 1] if i else 0.0
        stop = self.times[i] if i < self.n_jumps else np.inf
        beta = self.exponents[i] + (min(max(float(t) / L, start), stop) - start) * self.rates[i]
        saddle, on = self.networks[i], self.active[i]
        W = np.where(on[:, None], saddle.W, self.directions[i])
        a = np.where(on[:, None], saddle.a, self.outer[i])
        scales = np.where(on, saddle.log_factors, L * beta)
        return Network(W, a, scales, leak=self.problem.leak, bias=self.problem.bias)
