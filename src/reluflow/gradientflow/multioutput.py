r"""Gradient flow with several outputs: movers with kinks located and without.

Neurons are exp(ls) * (w, a) with a in R^K, rows of Z (m, d + K). Without locating kinks a step is
that of :class:`~reluflow.gradientflow.unlocated.Unlocated` with other products. With kinks located
every neuron keeps its side of each hyperplane during a step, 0 where it slides: then

.. math:: w' = P M a, \quad a' = M^\top w, \qquad M = \sum_{u_k \ne 0} \phi'_{u_k} x_k c_k^\top

is smooth, P being the projection off the samples slid on, and a pair of order 5(4) takes it. A step
ends where <w_j, x_k> changes its sign (the neuron crosses, or slides if the other side pushes
back), or where the slope that holds it on a kink leaves [leak, 1] (it exits).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import RK45

from reluflow.arrays import Array, Sides
from reluflow.errors import ReluflowError
from reluflow.gradientflow.mover import Handover, Snapshot
from reluflow.gradientflow.terms import check_decay
from reluflow.gradientflow.unlocated import Unlocated
from reluflow.kernels.codes import CROSS, EXIT, SLIDE
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.problem.losses import scaled_slopes

FEW = 20_000  # neurons times samples up to which kinks are located unless asked otherwise
AT_ONCE = 1e-13  # share of a step within which an event is now
HELD = 1e-12  # by which a slope may leave [leak, 1] before a neuron leaves the kink
BUSY = 2_000  # events, all but few steps of that stretch, after which kinks are no longer located


class VectorData(NamedTuple):
    """What a mover with several outputs knows of the problem."""

    problem: Problem
    X: Array
    norms: Array
    leak: float
    by_loss: bool

    @property
    def y(self) -> Array:
        """Labels (n, K)."""
        return self.problem.y


def vector_data(problem: Problem, clock: str, decay: float = 0.0) -> VectorData:
    """The problem for its movers; ``clock="loss"`` divides the pull by the loss."""
    if clock not in ("time", "loss"):
        raise ReluflowError(f"clock must be 'time' or 'loss', got {clock!r}")
    if clock == "loss" and not problem.loss.margin:
        raise ReluflowError(
            f"clock='loss' is for losses that vanish at infinity (softmax, logistic), "
            f"got {problem.loss.name}: use clock='time'"
        )
    check_decay(clock, decay)
    return VectorData(problem, problem.X, problem.norms, problem.leak, clock == "loss")


class VectorSnapshot(NamedTuple):
    """Neurons ``exp(ls) * Z`` with K outputs at a position of the clock."""

    position: float
    Z: Array  # (m, d + K)
    ls: Array
    log_time: float

    def network(self, problem: Problem) -> Network:
        """The network of these neurons."""
        d = problem.d
        return Network(self.Z[:, :d], self.Z[:, d:], self.ls, problem.leak, problem.bias)


class UnlocatedVectors(Unlocated):
    """:class:`Unlocated` with a in R^K."""

    kind = "unlocated, several outputs"
    data: Any

    def __init__(
        self,
        data: VectorData,
        Z: Array,
        ls: Array,
        rtol: float,
        damped: bool,
        decay: float = 0.0,
    ) -> None:
        self.d = data.problem.d
        super().__init__(data, Z, ls, rtol, damped, decay)  # type: ignore[arg-type]

    def pull(self, f: Array) -> Array:
        """C (n, K), over the loss if that is the clock."""
        problem: Problem = self.data.problem
        if self.data.by_loss:
            self._log_loss = float(problem.log_value(f))
            return -problem.weight * scaled_slopes(problem.loss, f, problem.y, self._log_loss)
        self._log_loss = 0.0
        return problem.pull_at(f)

    def slopes(self, H: Array) -> Array:
        """phi' (n, m) at the products H."""
        return np.where(H > 0.0, 1.0, self.data.leak)

    def outputs(self, Z: Array) -> tuple[Array, Array]:
        """phi(<w_j, x_k>) (n, m), and f (n, K), of the neurons exp(ls) * Z."""
        H = self.data.X @ Z[:, : self.d].T
        self._slope = self.slopes(H)
        H *= self._slope
        return H, H @ (Z[:, self.d :] * np.exp(2.0 * self.ls)[:, None])

    def velocity(self, Z: Array) -> Array:
        """(M a, M^T w) of every neuron."""
        H, self.f = self.outputs(Z)
        C = self.pull(self.f)
        self.cost["evaluations"] += 1
        B = (C @ Z[:, self.d :].T) * self._slope
        return np.hstack([B.T @ self.data.X, H.T @ C])

    def present(self) -> Any:
        return VectorSnapshot(*super().present())

    def within(self, position: float) -> Any:
        return VectorSnapshot(*super().within(position))

    def where(self, excess: Callable[[Array], float]) -> Any:
        found: Snapshot | None = super().where(excess)
        return None if found is None else VectorSnapshot(*found)


class Event(NamedTuple):
    """What ends a step: at which share of it, who, at which kink, and where the neuron goes."""

    theta: float
    neuron: int
    sample: int
    side: int  # -1 or 1 for an exit to that side, 0 for an arrival at the kink


class LocatedVectors(UnlocatedVectors):
    """Several outputs with kinks located, one step for each stretch between two events."""

    kind = "located, several outputs"
    pair: Any = RK45
    due: Event | None = None

    def __init__(
        self,
        data: VectorData,
        Z: Array,
        ls: Array,
        rtol: float,
        damped: bool,
        decay: float = 0.0,
    ) -> None:
        self.U: Sides = np.where(Z[:, : data.problem.d] @ data.X.T > 0.0, 1, -1).astype(np.int8)
        self._since = 0, 0  # events and steps when it was last asked whether these pay
        self._read_sides()
        super().__init__(data, Z, ls, rtol, damped, decay)
        self.events = []

    def _read_sides(self) -> None:
        """Slopes of all neurons, and for those that slide the samples they slide on."""
        self._sliding = {
            int(j): np.flatnonzero(self.U[j] == 0)
            for j in np.flatnonzero((self.U == 0).any(axis=1))
        }
        self._table: Array | None = None

    def slopes(self, H: Array) -> Array:
        if self._table is None:
            leak = self.data.leak
            self._table = np.where(self.U > 0, 1.0, np.where(self.U < 0, leak, 0.0)).T.copy()
        return self._table

    def velocity(self, Z: Array) -> Array:
        V = super().velocity(Z)
        for j, samples in self._sliding.items():
            V[j, : self.d] -= _along(self.data.X[samples], V[j, : self.d])
        return V

    # ------------------------------------------------------------------ events
    def step(self, end: float) -> float:
        """Find a step that meets the tolerance and ends at the first event in it, if any."""
        for _ in range(10 * self.U.shape[1] + 100):
            reach = super().step(end)
            self.due = None
            if not math.isfinite(reach):
                return reach
            event = self._first_event()
            if event is None:
                return reach
            if event.theta > AT_ONCE:
                self.pending = self._attempt(event.theta * self.pending.h)
                self.due, self.reach = event, self.t + self.pending.h
                return self.reach
            self._apply(event)
        return self.reach  # a corner without a consistent side: go on over it

    def finish(self) -> None:
        """Move to the end of the step, and through the event there."""
        super().finish()
        if self.due is not None:
            self._apply(self.due)

    def _first_event(self) -> Event | None:
        """The first event of the prepared step."""
        step, X, d = self.pending, self.data.X, self.d
        S = step.new[:, :d] @ X.T
        size = np.linalg.norm(step.new[:, :d], axis=1)[:, None] * self.data.norms
        wrong = (-1e-14 * size > S * self.U) & (self.U != 0)
        first: Event | None = None
        if wrong.any():
            for j, k in zip(*np.nonzero(wrong), strict=True):
                theta = self._crossing(int(j), int(k))
                if first is None or theta < first.theta:
                    first = Event(theta, int(j), int(k), 0)
        late = 1.0 if first is None else first.theta
        if self._sliding:
            left = self._escapes(late)
            if left:
                first = self._first_escape(late)
        return first

    def _crossing(self, j: int, k: int) -> float:
        """Share of the step at which <w_j, x_k> changes its sign, from the dense output."""
        x, d, h = self.data.X[k], self.d, self.pending.h
        moved = np.array([K[j, :d] @ x for K in self.pending.K])
        poly = h * (moved @ self.pair.P)  # of theta, theta^2, ...
        start, side = float(self.Z[j, :d] @ x), float(self.U[j, k])
        low, high = 0.0, 1.0
        if side * start <= 0.0 and side * poly[0] <= 0.0:
            return 0.0
        for _ in range(60):
            theta = 0.5 * (low + high)
            value = start + float(np.polyval(poly[::-1], theta)) * theta
            low, high = (theta, high) if side * value > 0.0 else (low, theta)
        return high

    def _escapes(self, theta: float) -> list[Event]:
        """Neurons whose slope on a kink is out of its range at a share of the step."""
        Z = self._at(theta)
        C = self.pull(self.outputs(Z)[1])
        return [
            Event(theta, j, k, side)
            for j, samples in self._sliding.items()
            for k, side in self._released(Z[j], j, samples, C)
        ]

    def _released(
        self, z: Array, j: int, samples: NDArray[np.intp], C: Array
    ) -> list[tuple[int, int]]:
        """Samples that no longer hold neuron j, and the side it goes to."""
        X, a = self.data.X, z[self.d :]
        slope = np.where(self.U[j] > 0, 1.0, np.where(self.U[j] < 0, self.data.leak, 0.0))
        drive = C @ a
        D = (slope * drive) @ X
        held = -np.linalg.lstsq(X[samples].T, D, rcond=None)[0]  # slope times <c_k, a>
        tol = HELD * np.abs(drive).max()
        out = []
        for k, r in zip(samples.tolist(), held.tolist(), strict=True):
            if r > self.data.leak * drive[k] + tol:
                out.append((k, -1))
            elif r < drive[k] - tol:
                out.append((k, 1))
        return out

    def _first_escape(self, high: float) -> Event:
        """The first of the escapes before ``high``, by bisection."""
        low, found = 0.0, self._escapes(high)
        now = self._escapes(0.0)
        if now:
            return now[0]._replace(theta=0.0)
        for _ in range(50):
            middle = 0.5 * (low + high)
            here = self._escapes(middle)
            if here:
                high, found = middle, here
            else:
                low = middle
            if high - low < 1e-12:
                break
        return found[0]._replace(theta=high)

    def _apply(self, event: Event) -> None:
        """Give a neuron on a kink its new side, and the velocities that follow."""
        j, k = event.neuron, event.sample
        X, d = self.data.X, self.d
        kind = EXIT
        if event.side:
            self.U[j, k] = event.side
        else:
            self.Z[j, :d] -= X[k] * (self.Z[j, :d] @ X[k]) / (X[k] @ X[k])
            kind = CROSS if self._passes(j, k) else SLIDE
            self.U[j, k] = -self.U[j, k] if kind == CROSS else 0
        if (self.U[j] == 0).any():
            self.Z[j, :d] -= _along(X[self.U[j] == 0], self.Z[j, :d])
        assert self.events is not None
        self.events.append(np.array([[j, k, self.t, kind]], dtype=float))
        self._read_sides()
        self.rate = self._velocity(self.Z)
        self.log_loss = self._log_loss

    def _passes(self, j: int, k: int) -> bool:
        """Whether a neuron that arrives at a kink goes through."""
        X, d = self.data.X, self.d
        x = X[k]
        if j in self._sliding:
            x = x - _along(X[self._sliding[j]], x)
        if x @ x <= 1e-20 * (X[k] @ X[k]):
            return False
        side = int(self.U[j, k])
        C = self.pull(self.outputs(self.Z)[1])
        change = (self.data.leak - 1.0) if side > 0 else (1.0 - self.data.leak)
        after = float(self.rate[j, :d] @ X[k]) + change * float(C[k] @ self.Z[j, d:]) * float(x @ x)
        return bool(-side * after > 0.0)

    def handover(self) -> Handover | None:
        """To a mover that does not locate kinks, where events are all that a run is busy with."""
        events, steps = len(self.events or ()), self.cost["steps"]
        if events - self._since[0] < BUSY:
            return None
        busy = events - self._since[0] > 0.8 * (steps - self._since[1])
        self._since = events, steps
        if not busy:
            return None
        other = UnlocatedVectors(
            self.data, self.Z, self.ls, math.sqrt(self.rtol), self.damped, self.decay
        )
        other.t, other.log_time, other.cost, other.events = (
            self.t,
            self.log_time,
            self.cost,
            self.events,
        )
        other.since = "Afterwards kinks"
        return Handover(other, "where steps ended at kinks more often than not")

    def remark(self) -> str:
        """Nothing to say."""
        return ""

    def pack(self) -> dict[str, NDArray[Any]]:
        return {**super().pack(), "U": self.U, "seen": np.array(self._since)}

    def unpack(self, packed: Mapping[str, NDArray[Any]]) -> None:
        super().unpack(packed)
        self.U = packed["U"]
        self._since = int(packed["seen"][0]), int(packed["seen"][1])
        self._read_sides()


def _along(rows: Array, v: Array) -> Array:
    """The part of v in the span of rows."""
    return np.asarray(rows.T @ np.linalg.lstsq(rows.T, v, rcond=None)[0])


def vector_mover(
    kind: str, data: VectorData, net: Network, rtol: float, damped: bool, decay: float = 0.0
) -> UnlocatedVectors:
    """A mover of the given kind at the start."""
    cls = LocatedVectors if kind == LocatedVectors.kind else UnlocatedVectors
    return cls(data, np.hstack([net.W, net.a]), net.log_factors, rtol, damped, decay)
