r"""Steps of a wide network on many samples: BLAS, step control, kinks not located.

With n m kinks met all the time the velocity is a smooth function plus noise: each crossing changes
D_j by c_k x_k, a jump of relative size 1/n that no high-order estimate resolves. A pair of low
order with a moderate tolerance averages over them; its steps are then as long as the smooth part
allows, a fraction of the time in which norms grow e-fold.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import RK23, RK45

from reluflow.arrays import Array
from reluflow.kernels.blas import backward, forward
from reluflow.kernels.flow_field import pull
from reluflow.kernels.flow_types import Data
from reluflow.kernels.planar import planar_outputs, planar_velocity
from reluflow.network import Network
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


class Wide:
    """Neurons ``exp(ls) * Z`` (m, d + 1), moved by the 3(2) pair of Bogacki and Shampine.

    The error of a step is the larger of two: the root mean square over neurons of each one's error
    relative to its own size, and the error of all weights relative to their norm.
    """

    pair: Any = RK23

    def __init__(self, data: Data, net: Network, rtol: float, damped: bool = False) -> None:
        self.data, self.rtol = data, rtol
        self.XT = np.ascontiguousarray(data.X.T)
        self.damped = damped  # let what relaxes fastest relax below rtol
        self.Z, self.ls = np.column_stack([net.W, net.a]), net.log_factors.copy()
        self._rescale()
        self.t, self.log_time, self.last_error = 0.0, -math.inf, 1.0
        self.steps = self.rejected = self.evaluations = 0
        self.rate = self.velocity(self.Z)
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

    def outputs(self, Z: Array) -> tuple[Array, Array]:
        """Products <w_j, x_k> (n, m), none for two features, and f, of the neurons exp(ls) * Z."""
        f, outer = np.empty(self.data.y.size), Z[:, -1] * np.exp(2.0 * self.ls)
        if self.XT.shape[0] == 2:
            planar_outputs(Z, outer, self.XT, self.data.leak, f)
            return np.empty((0, 0)), f
        H = self.data.X @ Z[:, :-1].T
        forward(H, outer, self.data.leak, f)
        return H, f

    def velocity(self, Z: Array) -> Array:
        """(a D, <w, D>) of every neuron, slopes from the present signs."""
        H, self.f = self.outputs(Z)
        c = np.empty_like(self.f)
        self._log_loss = float(pull(self.data, self.f, c))
        self.evaluations += 1
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
                old, new = new, self.Z + h * _combined(row, K)
                K.append(self.velocity(new))
                logs.append(self._log_loss)
            e2 = np.sum((h * _combined(self.pair.E, K)) ** 2, axis=1)
            size2 = np.maximum(np.sum(new**2, axis=1), 1e-300)
            weight = np.exp(2.0 * (self.ls - self.ls.max()))
            own = float(np.mean(e2 / size2))
            whole = float(np.sum(weight * e2) / max(float(np.sum(weight * size2)), 1e-300))
            error = math.sqrt(max(own, whole)) / self.rtol if np.isfinite(self.f).all() else 1e10
            apart = float(np.sum(weight * np.sum((new - old) ** 2, axis=1)))
            change = float(np.sum(weight * np.sum((K[-1] - K[-2]) ** 2, axis=1)))
        stiff = math.sqrt(change / apart) if apart > 0 and math.isfinite(change) else 0.0
        return Step(h, new, K, np.array(logs), error if math.isfinite(error) else 1e10, stiff)

    def step(self, limit: float) -> Step:
        """An accepted step of at most ``limit``, :meth:`finish` moves to its end."""
        h, again = min(self.h, limit), 0
        order = self.pair.error_estimator_order + 1
        while (trial := self._attempt(h)).error > 1.0:
            # a kink makes errors proportional to h: the order is not to be relied on twice
            h *= max(LEAST, SAFETY * trial.error ** (-1.0 if again else -1.0 / order))
            again += 1
            self.rejected += 1
            if h < 1e-14 * max(self.t, 1e-300):
                break
        error = max(trial.error, 1e-6)
        factor = SAFETY * error ** (-0.7 / order) * self.last_error ** (0.4 / order)
        factor = min(1.0 if again else MOST, max(LEAST, factor))
        self.h = h * factor if again or factor < 1.0 or h == self.h else max(self.h, h * factor)
        if self.damped and trial.stiff > 0:
            self.h = min(self.h, DAMPED / trial.stiff)
        self.last_error = error
        self.steps += 1
        return trial

    def finish(self, step: Step) -> None:
        """Move to the end of a step."""
        self.log_time = self.log_time_at(step, 1.0)
        self.t += step.h
        self.Z, self.rate, self.log_loss = step.new, step.K[-1], float(step.logs[-1])
        top = np.max(np.abs(self.Z), axis=1)
        if top.max() > FAR or top[top > 0].min(initial=1.0) < 1.0 / FAR:
            self._rescale()
            self.rate = self.rate / self._factor[:, None]

    # ------------------------------------------------------------------ within a step
    def within(self, step: Step, theta: float) -> Array:
        """Neurons, in units of exp(ls), at a fraction of a step: the cubic through its ends."""
        return self.Z + step.h * _combined(self._weights(theta), step.K)

    def _weights(self, theta: float) -> Array:
        """Weights of the stages at a fraction of a step."""
        P = self.pair.P
        return np.asarray(P @ np.cumprod(np.full(P.shape[1], theta)))

    def log_time_at(self, step: Step, theta: float) -> float:
        """log of the flow time at a fraction of a step."""
        if not self.data.by_loss:
            log_dt = math.log(max(theta * step.h, 1e-320))
        else:  # dt = ds / L, by the weights of the method
            low = float(step.logs.min())
            total = float(self._weights(theta) @ np.exp(low - step.logs))
            log_dt = math.log(max(step.h * total, 1e-320)) - low
        return float(np.logaddexp(self.log_time, log_dt))

    # ------------------------------------------------------------------ for stops
    def residual(self) -> float:
        """Norm of the gradient, or the largest relative rate of a growing neuron if larger."""
        grow = np.sum(self.Z * self.rate, axis=1) / np.maximum(np.sum(self.Z**2, axis=1), 1e-300)
        size = np.linalg.norm(self.rate, axis=1) * np.exp(self.ls)
        return max(float(np.linalg.norm(size)), float(np.max(grow, initial=0.0)))


class Smooth(Wide):
    """As :class:`Wide` with a smoothed activation: no kinks, so a pair of order 5(4)."""

    pair: Any = RK45

    def __init__(
        self, data: Data, net: Network, rtol: float, damped: bool, activation: SmoothedRelu
    ) -> None:
        self.activation = activation
        super().__init__(data, net, rtol, damped)

    def outputs(self, Z: Array) -> tuple[Array, Array]:
        """phi(w_j, x_k) (n, m), and f, of the neurons exp(ls) * Z."""
        S = self.activation.value(Z[:, :-1], self.data.X)
        return S, S @ (Z[:, -1] * np.exp(2.0 * self.ls))

    def velocity(self, Z: Array) -> Array:
        """(a D, <w, D>) of every neuron."""
        self.f = self.outputs(Z)[1]
        c = np.empty_like(self.f)
        self._log_loss = float(pull(self.data, self.f, c))
        self.evaluations += 1
        D = self.activation.pulled(Z[:, :-1], self.data.X, c)
        return np.column_stack([Z[:, -1:] * D, np.sum(Z[:, :-1] * D, axis=1)])


def _combined(weights: Array, K: list[Array]) -> Array:
    """Sum of weights_i K_i."""
    total = weights[0] * K[0]
    for q, k in zip(weights[1:], K[1:], strict=False):
        if q != 0.0:
            total += q * k
    return np.asarray(total)
