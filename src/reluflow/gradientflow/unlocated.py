r"""The mover that does not locate kinks: BLAS and step control, for wide networks, many samples.

With n m kinks met all the time the velocity is a smooth function plus noise: each crossing changes
D_j by c_k x_k, a jump of relative size 1/n that no high-order estimate resolves. A pair of low
order with a moderate tolerance averages over them; its steps are then as long as the smooth part
allows, a fraction of the time in which norms grow e-fold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import RK23, RK45

from reluflow.arrays import Array
from reluflow.gradientflow.chatter import Chatter
from reluflow.gradientflow.mover import Handover, Mover, Snapshot, time_in_words, turning_of
from reluflow.kernels.blas import backward, forward
from reluflow.kernels.flow_field import pull
from reluflow.kernels.flow_types import Data
from reluflow.kernels.planar import planar_outputs, planar_velocity
from reluflow.problem.activation import SmoothedRelu

SAFETY, MOST, LEAST = 0.9, 4.0, 0.2  # of step size control
DAMPED = 1.6  # step times relaxation rate, 2.5 being the limit of stability
FAR = 1e20  # size at which neurons are brought back to unit norm


class Step(NamedTuple):
    """A step on trial: its length, end, velocities and log L at its stages, and its error."""

    h: float
    new: Array
    K: list[Array]
    logs: Array
    error: float
    stiff: float  # rate of relaxation seen between the last two stages


class Unlocated:
    """Neurons ``exp(ls) * Z`` (m, d + 1), moved by the 3(2) pair of Bogacki and Shampine.

    The error of a step is the larger of two: the root mean square over neurons of each one's error
    relative to its own size, and the error of all weights relative to their norm.

    Parameters
    ----------
    data : Data
    Z, ls : arrays, shapes (m, d + 1) and (m,)
        Neurons at the start.
    rtol : float
        Error aimed at in one step.
    damped : bool
        Whether steps are kept short enough to let what relaxes fastest relax below rtol.
    decay : float
        Weight decay.
    """

    kind = "unlocated"
    pair: Any = RK23
    pending: Step
    reach: float  # where the prepared step ends
    since = "Kinks"  # beginning of the remark: of which time and why, after a handover
    until = ""  # its end: until when, where another mover has gone on
    locate: Callable[[Unlocated], Mover] | None = None  # the mover that goes on where neurons slide

    def __init__(
        self,
        data: Data,
        Z: Array,
        ls: Array,
        rtol: float,
        damped: bool = False,
        decay: float = 0.0,
    ) -> None:
        self.data, self.rtol, self.damped, self.decay = data, rtol, damped, decay
        self.XT = data.X.T.copy()
        self.Z, self.ls = Z, ls.copy()
        self._rescale()
        self.alive = self._find_alive()
        self.t, self.log_time, self.last_error = 0.0, -math.inf, 1.0
        self.chatter, self.slides = Chatter(data.X), False
        self.cost: Counter[str] = Counter(steps=0, rejected=0, evaluations=0)
        self.events: list[Array] | None = None
        self.rate = self._velocity(self.Z)
        self.log_loss = self._log_loss
        fast = np.max(np.linalg.norm(self.rate, axis=1), initial=0.0)
        self.h = 0.01 / fast if fast > 0 else math.inf

    def _rescale(self) -> None:
        top = np.max(np.abs(self.Z), axis=1)
        top[top == 0] = 1.0
        self.Z = self.Z / top[:, None]
        size = np.linalg.norm(self.Z, axis=1)
        size[size == 0] = 1.0
        self.Z /= size[:, None]
        self.ls += np.log(top) + np.log(size)
        self._factor = top * size

    def _find_alive(self) -> NDArray[np.intp] | None:
        """Neurons that some sample activates, None for all: the others never move."""
        if self.data.leak != 0.0:
            return None
        W = self.Z[:, : self.data.X.shape[1]]
        alive = np.asarray((self.data.X @ W.T > 0.0).any(axis=0))
        return None if alive.all() else np.flatnonzero(alive)

    def outputs(self, Z: Array) -> tuple[Array, Array]:
        """As :meth:`_outputs`, but the products are of the neurons that are alive."""
        if self.alive is None:
            return self._outputs(Z, self.ls)
        return self._outputs(Z[self.alive], self.ls[self.alive])

    def _outputs(self, Z: Array, ls: Array) -> tuple[Array, Array]:
        """Products <w_j, x_k> (n, m), none for two features, and f, of the neurons exp(ls) * Z."""
        f, outer = np.empty(self.data.y.size), Z[:, -1] * np.exp(2.0 * ls)
        if self.XT.shape[0] == 2:
            planar_outputs(Z, outer, self.XT, self.data.leak, f)
            return np.empty((0, 0)), f
        H = self.data.X @ Z[:, :-1].T
        forward(H, outer, self.data.leak, f)
        return H, f

    def _velocity(self, Z: Array) -> Array:
        """:meth:`velocity` less what weight decay takes."""
        V = self.velocity(Z)
        return V - self.decay * Z if self.decay else V

    def velocity(self, Z: Array) -> Array:
        """(a D, <w, D>) of every neuron, slopes from the present signs."""
        if self.alive is None:
            return self._velocity_of(Z, self.ls)
        V = np.zeros_like(Z)
        V[self.alive] = self._velocity_of(Z[self.alive], self.ls[self.alive])
        return V

    def _velocity_of(self, Z: Array, ls: Array) -> Array:
        """:meth:`velocity` of the given neurons, which make f alone."""
        H, self.f = self._outputs(Z, ls)
        c = np.empty_like(self.f)
        self._log_loss = float(pull(self.data, self.f, c))
        self.cost["evaluations"] += 1
        if self.XT.shape[0] == 2:
            V = np.empty_like(Z)
            planar_velocity(Z, c, self.XT, self.data.leak, V)
            return V
        along = np.empty(Z.shape[0])
        backward(H, c, self.data.leak, along)
        return np.column_stack([Z[:, -1:] * (H.T @ self.data.X), along])

    # ------------------------------------------------------------------ steps
    def _attempt(self, h: float) -> Step:
        K, logs, new = [self.rate], [self.log_loss], self.Z
        with np.errstate(over="ignore", invalid="ignore"):
            for row in (*self.pair.A[1:], self.pair.B):
                old, new = new, self.Z + h * _weighted_sum(row, K)
                K.append(self._velocity(new))
                logs.append(self._log_loss)
            e2 = np.sum((h * _weighted_sum(self.pair.E, K)) ** 2, axis=1)
            size2 = np.maximum(np.sum(new**2, axis=1), 1e-300)
            weight = np.exp(2.0 * (self.ls - self.ls.max()))
            own = float(np.mean(e2 / size2))
            whole = float(np.sum(weight * e2) / max(float(np.sum(weight * size2)), 1e-300))
            error = math.sqrt(max(own, whole)) / self.rtol if np.isfinite(self.f).all() else 1e10
            apart = float(np.sum(weight * np.sum((new - old) ** 2, axis=1)))
            change = float(np.sum(weight * np.sum((K[-1] - K[-2]) ** 2, axis=1)))
        stiff = math.sqrt(change / apart) if apart > 0 and math.isfinite(change) else 0.0
        return Step(h, new, K, np.array(logs), error if math.isfinite(error) else 1e10, stiff)

    def step(self, end: float) -> float:
        """Find a step that meets the tolerance; the position it reaches."""
        if not math.isfinite(self.h):
            return math.inf
        h, again = min(self.h, end - self.t), 0
        order = self.pair.error_estimator_order + 1
        while (trial := self._attempt(h)).error > 1.0:
            # a kink makes errors proportional to h: the order is not to be relied on twice
            h *= max(LEAST, SAFETY * trial.error ** (-1.0 if again else -1.0 / order))
            again += 1
            self.cost["rejected"] += 1
            if h < 1e-14 * max(self.t, 1e-300):
                break
        error = max(trial.error, 1e-6)
        factor = SAFETY * error ** (-0.7 / order) * self.last_error ** (0.4 / order)
        factor = min(1.0 if again else MOST, max(LEAST, factor))
        self.h = h * factor if again or factor < 1.0 or h == self.h else max(self.h, h * factor)
        if self.damped and trial.stiff > 0:
            self.h = min(self.h, DAMPED / trial.stiff)
        self.last_error = error
        self.cost["steps"] += 1
        self.pending, self.reach = trial, self.t + h
        if end - self.reach <= 1e-14 * self.reach:
            self.reach = end
        return self.reach

    def finish(self) -> None:
        """Move to the end of the step."""
        step = self.pending
        self.log_time = self._log_time_at(1.0)
        self.t = self.reach
        if self.locate is not None and self.chatter.due():
            ahead = self.Z + step.h * self.rate
            W = (Z[:, :-1] for Z in (self.Z, ahead, step.new))
            self.slides = self.chatter.look(*W)
        self.Z, self.rate, self.log_loss = step.new, step.K[-1], float(step.logs[-1])
        top = np.max(np.abs(self.Z), axis=1)
        if top.max() > FAR or top[top > 0].min(initial=1.0) < 1.0 / FAR:
            self._rescale()
            self.rate = self.rate / self._factor[:, None]

    def present(self) -> Snapshot:
        """Neurons now."""
        return Snapshot(self.t, self.Z, self.ls, self.log_time)

    def handover(self) -> Handover | None:
        """To a mover that locates kinks, where neurons slide on some and hardly meet others."""
        if self.locate is None or not self.slides:
            return None
        reason = "where neurons slide on kinks"
        self.until = f" until {time_in_words(self)}, {reason}"
        return Handover(self.locate(self), reason)

    # ------------------------------------------------------------------ within a step
    def within(self, position: float) -> Snapshot:
        """Neurons at a position inside the step."""
        theta = max(position - self.t, 0.0) / self.pending.h
        return Snapshot(position, self._at(theta), self.ls, self._log_time_at(theta))

    def where(self, excess: Callable[[Array], float]) -> Snapshot | None:
        """Neurons where a falling function of the outputs reaches 0 inside the step.

        Each look takes a pass over all data, so by Brent's method and not beyond 1e-9 of the step.
        """
        from scipy.optimize import brentq

        def value(theta: float) -> float:
            return excess(self.outputs(self._at(theta))[1])

        if excess(self.f) > 0.0 or not value(0.0) > 0.0 > value(1.0):
            return None
        theta = float(brentq(value, 0.0, 1.0, xtol=1e-9))
        position = self.t + theta * self.pending.h
        return Snapshot(position, self._at(theta), self.ls, self._log_time_at(theta))

    def _at(self, theta: float) -> Array:
        """Neurons, in units of exp(ls), at a fraction of the step: the cubic through its ends."""
        return self.Z + self.pending.h * _weighted_sum(self._weights(theta), self.pending.K)

    def _weights(self, theta: float) -> Array:
        """Weights of the stages at a fraction of a step."""
        P = self.pair.P
        return np.asarray(P @ np.cumprod(np.full(P.shape[1], theta)))

    def _log_time_at(self, theta: float) -> float:
        """log of the flow time at a fraction of the step."""
        step = self.pending
        if not self.data.by_loss:
            log_dt = math.log(max(theta * step.h, 1e-320))
        else:  # dt = ds / L, by the weights of the method
            low = float(step.logs.min())
            total = float(self._weights(theta) @ np.exp(low - step.logs))
            log_dt = math.log(max(step.h * total, 1e-320)) - low
        return float(np.logaddexp(self.log_time, log_dt))

    # ------------------------------------------------------------------ for stops
    def gradient(self) -> float:
        """Norm of the gradient."""
        return float(np.linalg.norm(np.linalg.norm(self.rate, axis=1) * np.exp(self.ls)))

    def grows(self, rate: float) -> bool:
        """Whether the logarithm of some neuron's size grows at more than this rate."""
        grow = np.sum(self.Z * self.rate, axis=1) / np.maximum(np.sum(self.Z**2, axis=1), 1e-300)
        return float(np.max(grow, initial=0.0)) > rate

    def noise(self) -> tuple[float, float]:
        """None: damped steps let the gradient fall below rtol."""
        return 0.0, 0.0

    def turning(self) -> tuple[float, float]:
        """Rates at which log |theta| grows and the direction theta/|theta| moves."""
        scale = np.exp(self.ls - self.ls.max())[:, None]
        return turning_of(scale * self.Z, scale * self.rate)

    # ------------------------------------------------------------------ for the record
    def remark(self) -> str:
        """How the error was kept small."""
        return f"{self.since} were not located{self.until}: {self._control}"

    @property
    def _control(self) -> str:
        return (
            f"an estimate keeps the error of each step below {self.rtol:g} of the neurons' sizes, "
            "in the root mean square."
        )

    def total_cost(self) -> dict[str, float]:
        """Steps, rejected steps and evaluations; of a mover that went before, its counts too."""
        return {**{k: int(v) for k, v in self.cost.items()}, "log_time": self.log_time}

    def pack(self) -> dict[str, NDArray[Any]]:
        """Everything the continuation depends on."""
        numbers = [self.t, self.log_time, self.h, self.log_loss, self.last_error, self.rtol]
        packed = {"Z": self.Z, "ls": self.ls, "rate": self.rate, "f": self.f}
        if self.events is not None:
            packed["events"] = np.vstack([np.empty((0, 4)), *self.events])
        packed |= {"numbers": np.array(numbers), "since": np.array(self.since)}
        return {**packed, **self.chatter.pack()}

    def unpack(self, packed: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`pack` gave."""
        self.Z, self.ls, self.rate, self.f = (packed[k] for k in ("Z", "ls", "rate", "f"))
        numbers = (float(v) for v in packed["numbers"])
        self.t, self.log_time, self.h, self.log_loss, self.last_error, self.rtol = numbers
        self.since, self.alive = str(packed["since"]), self._find_alive()
        self.chatter.unpack(packed)
        self.events = [packed["events"]] if "events" in packed else None


class Smooth(Unlocated):
    """As :class:`Unlocated` with a smoothed activation: no kinks, so a pair of order 5(4)."""

    kind = "smooth"
    pair: Any = RK45

    def __init__(
        self,
        data: Data,
        Z: Array,
        ls: Array,
        rtol: float,
        damped: bool,
        activation: SmoothedRelu,
        decay: float = 0.0,
    ) -> None:
        self.activation = activation
        super().__init__(data, Z, ls, rtol, damped, decay)

    def remark(self) -> str:
        """How the error was kept small."""
        return f"There are no kinks: {self._control}"

    def outputs(self, Z: Array) -> tuple[Array, Array]:
        """phi(w_j, x_k) (n, m), and f, of the neurons exp(ls) * Z."""
        S = self.activation.value(Z[:, :-1], self.data.X)
        return S, S @ (Z[:, -1] * np.exp(2.0 * self.ls))

    def velocity(self, Z: Array) -> Array:
        """(a D, <w, D>) of every neuron."""
        self.f = self.outputs(Z)[1]
        c = np.empty_like(self.f)
        self._log_loss = float(pull(self.data, self.f, c))
        self.cost["evaluations"] += 1
        D = self.activation.pulled(Z[:, :-1], self.data.X, c)
        return np.column_stack([Z[:, -1:] * D, np.sum(Z[:, :-1] * D, axis=1)])


def _weighted_sum(weights: Array, K: list[Array]) -> Array:
    """Sum of weights_i K_i."""
    total = weights[0] * K[0]
    for q, k in zip(weights[1:], K[1:], strict=False):
        if q != 0.0:
            total += q * k
    return np.asarray(total)
