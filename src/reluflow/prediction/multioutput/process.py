"""The result of `limit` with several outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array, Mask
from reluflow.network import Network
from reluflow.prediction.process import JumpProcess, log_inverse

APART = 1e-13  # by which kinks, located to rounding, leave neurons apart that are one in the limit
TOGETHER = 0.1  # factor by which differences within a group should have fallen when it jumps
LEVEL = 1e-3  # of the fall, within which a level is to be reached


@dataclass(frozen=True, eq=False, repr=False)
class VectorProcess(JumpProcess):
    """A :class:`JumpProcess` with several outputs; ``signs`` are 0.

    ``outer`` has for each plateau the unit directions (m, K) of the outer weights. A jump may be
    one of neurons that part, having jumped together before (``parting``): they go on in several
    pieces, at a time of leading order, and ``neurons`` names them once more. ``paces`` has the rate
    at which the group of each jump grows, or parts; at its jump a group is scale^q apart,
    ``apart`` being q (infinite for one neuron). ``strain`` has for each jump the growth, in units
    of log(1/scale), of the logarithm of a difference between neurons that jumped together before
    it: a run in floating point has differences of rounding at least. ``courses`` has for each jump
    (T, 2) times since its middle and the loss then, on the way to the plateau: what a run shows at
    any scale, until the next jump is felt (see :meth:`loss_after`).
    """

    outer: tuple[Array, ...] = ()
    strain: Array = field(default_factory=lambda: np.empty(0))
    courses: tuple[Array, ...] = ()
    paces: Array = field(default_factory=lambda: np.empty(0))
    parting: Mask = field(default_factory=lambda: np.empty(0, dtype=bool))
    apart: Array = field(default_factory=lambda: np.empty(0))

    def _pace(self, i: int) -> float:
        return float(self.paces[i])

    def _further_doubts(self, i: int, L: float) -> list[str]:
        found = []
        jumped = i
        while self.parting[jumped]:  # back to where this group jumped
            jumped = max(k for k in range(jumped) if self.neurons[i][0] in self.neurons[k])
        far = float(np.exp(-L * self.apart[jumped]))
        if far > TOGETHER:
            yet = "were not together when they jumped" if jumped < i else "are not together yet"
            found.append(f"its neurons {yet}, {far:.2g} apart for 1 at the start")
        if i and self.strain[i] > 0.0:
            real = self.jump_times(log_scale=-L)
            stretch = (real[i] - real[0]) / (self.times[i] - self.times[0])  # L, and offsets add
            if stretch * self.strain[i] > -np.log(APART):
                found.append(
                    "rounding alone parts neurons that jumped together before, in a run this long"
                )
        return found

    def loss_after(self, i: int, time: ArrayLike) -> Array:
        """Loss a real time after the middle of jump ``i``, on the way to the plateau or on it.

        The middle is where half of the fall of the loss is done. A plateau that takes long to rest,
        or never does, is passed at this loss and not at ``losses[i + 1]``.
        """
        t, loss = self.courses[i].T
        return np.asarray(np.interp(np.asarray(time, dtype=float), t, loss))

    def level_doubts_at(
        self, scale: float | None = None, log_scale: float | None = None
    ) -> tuple[str, ...]:
        """Why a run from this scale may not reach a level, one text (or "") for each jump.

        The level is that of the plateau before the jump, empty for the first. It is reached to
        1e-3 of the fall where the plateau lasts long beside the times in which what is left of the
        last jump fades and the next one comes to be felt; :meth:`loss_after` has the loss on the
        way there.
        """
        L = log_inverse(scale, log_scale)
        lengths = np.diff(self.jump_times(log_scale=-L))
        texts = [""] * self.n_jumps
        for i in range(1, self.n_jumps):
            assert self.relaxation is not None
            slow = float(self.relaxation[i])
            grow = self._pace(i)
            # both are felt in the loss by their squares
            needed = -0.5 * np.log(LEVEL) * (slow + 1.0 / grow)
            if np.isinf(slow):
                what = "margins" if self.problem.loss.margin else "weights"
                texts[i] = f"the plateau before it never rests: {what} grow for ever"
            elif lengths[i - 1] < needed:
                texts[i] = (
                    f"the plateau before it lasts {lengths[i - 1]:.3g}, and {needed:.3g} are "
                    f"needed for its level to be reached within {LEVEL:g} of the fall"
                )
        return tuple(texts)

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
