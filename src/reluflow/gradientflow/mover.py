"""What the loop of a flow and its stops ask of whatever moves the neurons.

There are two movers: :class:`~reluflow.gradientflow.solver.Solver` locates kinks,
:class:`~reluflow.gradientflow.unlocated.Unlocated` does not. A step has two halves, so that records
and stops can look inside it: :meth:`Mover.step` prepares it, :meth:`Mover.finish` moves to its end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.kernels.flow_types import Data
from reluflow.network import Network
from reluflow.problem import Problem


class Snapshot(NamedTuple):
    """Neurons ``exp(ls) * Z`` at a position of the clock, and the logarithm of the time there."""

    position: float
    Z: Array  # (m, d + 1): inner weights and, last, the outer one
    ls: Array  # (m,)
    log_time: float

    def network(self, problem: Problem) -> Network:
        """The network of these neurons."""
        leak, bias, smoothing = problem.leak, problem.bias, problem.smoothing
        return Network(self.Z[:, :-1], self.Z[:, -1], self.ls, leak, bias, smoothing=smoothing)


class Handover(NamedTuple):
    """The mover to go on with, and why: a clause that begins with "where"."""

    mover: Mover
    reason: str


class Mover(Protocol):
    """A network that moves along the flow, step by step."""

    kind: str  # name of the class of movers, for checkpoints
    rtol: float
    t: float  # position of the clock
    log_time: float  # log of the flow time, the same as log t unless the clock is the loss
    f: Array  # outputs at the samples
    cost: Counter[str]  # "steps" among others

    @property
    def data(self) -> Data:
        """The problem as kernels take it."""

    @property
    def events(self) -> Sequence[Array] | None:
        """Lists of rows neuron, sample, time, kind; None if kinks were never located."""

    def step(self, end: float) -> float | None:
        """Prepare a step towards ``end``, and return the position it reaches.

        That is infinity if nothing moves any more, and None if neurons that stand on a kink were
        given a side of it: then no time passes and there is nothing to finish.
        """

    def within(self, position: float) -> Snapshot:
        """Neurons at a position inside the prepared step."""

    def where(self, excess: Callable[[Array], float]) -> Snapshot | None:
        """Neurons where a falling function of the outputs reaches 0 inside the prepared step."""

    def finish(self) -> None:
        """Move to the end of the prepared step."""

    def present(self) -> Snapshot:
        """Neurons now; not between :meth:`step` and :meth:`finish`."""

    def handover(self) -> Handover | None:
        """Another mover that should go on from here, if any; asked after each step."""

    # ------------------------------------------------------------------ for stops
    def gradient(self) -> float:
        """Norm of the subgradient of minimal norm."""

    def grows(self, rate: float) -> bool:
        """Whether some neuron grows at more than this rate."""

    def noise(self) -> tuple[float, float]:
        """Error that steps leave in the rates |D_j| and in the gradient; 0 if they leave none."""

    def turning(self) -> tuple[float, float]:
        """Rates at which log |theta| grows and the direction theta/|theta| moves."""

    # ------------------------------------------------------------------ for the record
    def remark(self) -> str:
        """A sentence on the way of moving that belongs into the status, or nothing."""

    def total_cost(self) -> dict[str, float]:
        """Counts for :attr:`Trajectory.cost`."""

    def pack(self) -> dict[str, NDArray[Any]]:
        """Everything the continuation depends on, but for ``cost``."""

    def unpack(self, packed: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`pack` gave."""


def turning_of(Z: Array, dZ: Array) -> tuple[float, float]:
    """Rates at which log |Z| grows and Z/|Z| moves under the velocity dZ."""
    norm2 = float(np.sum(Z * Z))
    growth = float(np.sum(Z * dZ)) / norm2
    return growth, math.sqrt(max(float(np.sum(dZ * dZ)) / norm2 - growth**2, 0.0))


def time_in_words(mover: Mover) -> str:
    """Gradient-flow time of a mover, for a sentence, also where its clock is the loss."""
    if not mover.data.by_loss:
        return f"time {mover.t:.6g}"
    if mover.log_time == -math.inf:
        return "time 0"
    late = mover.log_time > 690.0  # no float holds it
    return f"time exp({mover.log_time:.6g})" if late else f"time {exp_in_words(mover.log_time)}"


def exp_in_words(log: float) -> str:
    """exp(log), also where no float holds it."""
    return f"{math.exp(log):.6g}" if log > -700 else f"exp({log:.6g})"
